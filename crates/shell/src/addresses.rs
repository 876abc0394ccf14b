//! Paths that `file:` addresses mean.
//! Takes a text of a line or a call; gives each path that a program may make of it. Some ignore the host, some take it for
//! a directory, and some keep what stands behind `?`, so all of these count. Nothing is decoded here.

/// The paths of a `file:` address in any case, whatever its host; none for other texts.
pub fn file_paths(text: &str) -> impl Iterator<Item = &str> {
    let rest = text.split_once(':').filter(|(scheme, _)| scheme.trim_start().eq_ignore_ascii_case("file"));
    let whole = rest.map(|(_, rest)| rest);
    let path = whole.map(|rest| rest.split(['?', '#']).next().unwrap_or(rest));
    [path, whole].into_iter().flatten().flat_map(|rest| {
        let named = rest.strip_prefix("//");
        let behind_host = named.and_then(|named| named.find(['/', '\\']).and_then(|at| named.get(at..)));
        [behind_host, named, Some(rest)].into_iter().flatten()
    })
}

/// Whether a text begins like such an address.
#[must_use]
pub fn is_file_address(text: &str) -> bool {
    file_paths(text).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::file_paths;

    #[test]
    fn self_1_every_path_of_an_address_counts() {
        for text in [
            "file:/a/b",
            "file:///a/b",
            "FILE:///a/b",
            "file://localhost/a/b",
            "File://LOCALHOST/a/b",
            "file://127.0.0.1/a/b",
            "file://x/a/b",
            "file:///a/b?c#d",
        ] {
            assert!(file_paths(text).any(|path| path == "/a/b"), "{text}");
        }
        assert!(file_paths("file://a/b").any(|path| path == "a/b"));
        assert!(file_paths("file:a/b").any(|path| path == "a/b"));
        assert!(file_paths("file:///a?b").any(|path| path == "/a?b"));
        for text in ["http://a/b", "a/b", "afile:/a", "", "file"] {
            assert_eq!(file_paths(text).count(), 0, "{text}");
        }
    }
}
