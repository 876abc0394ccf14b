//! What an argument counts as, by kind: the directories it lies below, the host it names, the branch it is.
//!
//! Everything that two programs could read differently counts as nothing: dots that lead elsewhere, signs a shell or a
//! URL would decode, names that only look alike. Such a call is asked about.

/// The longest text that counts as anything.
const LONGEST: usize = 4_096;
const MOST_PARTS: usize = 64;

/// How an argument is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Likeness {
    /// Exactly this text, number, truth value or null.
    Equals,
    /// A path below this directory.
    Path,
    /// A web address on this host, or the host's bare name.
    Host,
    /// This branch, or one below it.
    Branch,
}

impl Likeness {
    pub(super) const ALL: [Self; 4] = [Self::Equals, Self::Path, Self::Host, Self::Branch];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Equals => "equals",
            Self::Path => "path",
            Self::Host => "host",
            Self::Branch => "branch",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|likeness| likeness.as_str() == text)
    }

    /// Its place in `ALL`.
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// What a value must be.
    pub(super) fn of_value(self) -> &'static str {
        match self {
            Self::Equals => "text of at most 4096 bytes, number or truth value",
            Self::Path => "plain path of a directory (no `.`, `..`, `~`, `%`, `\\`, spaces or end with `/`)",
            Self::Host => "host name in lower case, with its port where that is not the usual one",
            Self::Branch => "plain name of a branch",
        }
    }

    /// Whether a call's argument could ever count as this.
    pub(super) fn is_value(self, value: &str) -> bool {
        match self {
            Self::Equals => value.len() <= LONGEST,
            // A file below it must be possible.
            Self::Path => path(&format!("{value}/x")).last().is_some_and(|last| last == value),
            Self::Host => host(value).as_deref() == Some(value),
            Self::Branch => branch(value).last().is_some_and(|last| last == value),
        }
    }

    /// Everything a text counts as; for `Equals` that is for the caller to say, who knows its type.
    pub(super) fn of_text(self, text: &str) -> Vec<String> {
        match self {
            Self::Equals => Vec::new(),
            Self::Path => path(text),
            Self::Host => host(text).into_iter().collect(),
            Self::Branch => branch(text),
        }
    }
}

/// The directories a path lies below, as it was written, the outermost first; itself is none of them.
fn path(text: &str) -> Vec<String> {
    let Some(parts) = parts(text.strip_prefix('/').unwrap_or(text)) else { return Vec::new() };
    let root = if text.starts_with('/') { "/" } else { "" };
    (1..parts.len()).map(|end| format!("{root}{}", beginning(&parts, end))).collect()
}

/// A branch and what it lies below, the outermost first.
fn branch(text: &str) -> Vec<String> {
    // What `git check-ref-format` refuses, and what a command would take for an option.
    let is_no_branch =
        |part: &&str| part.starts_with(['.', '-']) || part.contains("..") || part.ends_with(".lock") || *part == "@";
    let Some(parts) = parts(text).filter(|parts| !parts.iter().any(is_no_branch)) else { return Vec::new() };
    (1..=parts.len()).map(|end| beginning(&parts, end)).collect()
}

fn beginning(parts: &[&str], end: usize) -> String {
    parts.iter().take(end).copied().collect::<Vec<_>>().join("/")
}

/// The parts between `/`, where each is a plain name.
fn parts(text: &str) -> Option<Vec<&str>> {
    if text.len() > LONGEST {
        return None;
    }
    let parts: Vec<&str> = text.split('/').collect();
    (parts.len() <= MOST_PARTS && parts.iter().all(|part| is_plain(part))).then_some(parts)
}

/// Letters, digits and few signs. No sign beyond ASCII: some become a dot or a slash when they are folded.
fn is_plain(part: &str) -> bool {
    let is_plain = |character: char| match character {
        '.' | '_' | '-' | '+' | '@' => true,
        _ if character.is_ascii() => character.is_ascii_alphanumeric(),
        _ => character.is_alphabetic(),
    };
    // An end of dots is dropped by some systems.
    !part.is_empty() && !part.ends_with('.') && part.chars().all(is_plain)
}

/// The host of a web address, or of a bare name; with the port where that is not the scheme's own.
fn host(text: &str) -> Option<String> {
    let is_odd = |character: char| character.is_control() || character.is_whitespace() || character == '\\';
    if text.len() > LONGEST || text.contains(is_odd) {
        return None;
    }
    let (address, rest) = match text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) {
        Some(rest) => (text.to_owned(), rest),
        None => (format!("https://{text}/"), text),
    };
    // The part that names the host as every reader would find it, before anything is decoded.
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_bare = address != text;
    let is_host_sign = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | ':');
    if !authority.chars().all(is_host_sign) || (is_bare && authority != text) {
        return None;
    }
    let written = authority.split(':').next().unwrap_or_default().to_ascii_lowercase();
    let url = url::Url::parse(&address).ok()?;
    let is_as_written = url.host_str() == Some(&*written) && !written.ends_with('.');
    let is_anonymous = url.username().is_empty() && url.password().is_none();
    if !is_as_written || !is_anonymous {
        return None;
    }
    Some(url.port().map_or(written.clone(), |port| format!("{written}:{port}")))
}
