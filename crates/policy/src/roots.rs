//! Whether a client's root may be passed on to a server (GATE-18): a server takes roots for permission.

use std::path::{Component, Path, PathBuf};

use toolwarden_core::Caller;

use crate::set::PolicySet;

/// A directory of this machine, written plainly, that neither lies in what is Toolwarden's own nor holds
/// its directories or a whole home. Single protected files may lie in it: a workspace has some. Agents
/// pass on none.
#[must_use]
pub fn permits_root(policy: &PolicySet, caller: &Caller, uri: &str) -> bool {
    if caller.is_agent() {
        return false;
    }
    let Some(path) = local_path(uri) else { return false };
    let is_plain =
        path.is_absolute() && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let places = &policy.base().places;
    // `.roomodes` is a file, whatever it lacks.
    let is_hidden = |own: &Path| own.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let is_directory = |own: &Path| own.extension().is_none() && !is_hidden(own);
    let touches = |own: &PathBuf| path.starts_with(own) || (own.starts_with(&path) && is_directory(own));
    let holds_home = places.home().is_some_and(|home| home.starts_with(&path));
    is_plain && path != Path::new("/") && !holds_home && !places.paths().iter().any(touches)
}

/// The path of a `file://` address without a host.
fn local_path(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let encoded = rest.strip_prefix("localhost").unwrap_or(rest);
    if !encoded.starts_with('/') || encoded.contains(['?', '#']) {
        return None;
    }
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut left = encoded.bytes();
    while let Some(byte) = left.next() {
        bytes.push(match byte {
            b'%' => {
                let high = char::from(left.next()?).to_digit(16)?;
                let low = char::from(left.next()?).to_digit(16)?;
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    let text = String::from_utf8(bytes).ok()?;
    (!text.contains('\0')).then(|| PathBuf::from(text))
}

#[cfg(test)]
#[path = "roots_tests.rs"]
mod tests;
