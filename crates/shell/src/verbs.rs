//! The verbs of Toolwarden's own program: which change something.
//! Takes the words behind its name; gives the verb that changes something or is not known.

use crate::line::Word;

/// Global options without a value that may stand before or behind a verb.
const FLAGS: &[&str] = &["--json", "--quiet", "-q", "--verbose", "-v", "--no-color", "--help", "-h", "--version", "-V"];
const VALUED: &[&str] = &["--config", "--data-dir"];

/// Verbs that only read. `None`: the verb alone reads; otherwise the second words that read.
const READING: &[(&str, Option<&[&str]>)] = &[
    ("explain", None),
    ("lint", None),
    ("describe", None),
    ("allowlist", None),
    ("doctor", None),
    ("help", None),
    ("hook", None),
    ("stdio", None),
    ("run", None),
    ("servers", Some(&["list", "show"])),
    ("tools", Some(&["list", "diff", "show"])),
    ("modes", Some(&["list", "show", "validate", "suggest", "template"])),
    ("sessions", Some(&["list"])),
    ("roles", Some(&["list", "show"])),
    ("rules", Some(&["list", "check", "show"])),
    ("settings", Some(&["get", "list", "show"])),
    ("admin", Some(&["show"])),
    ("policy", Some(&["history", "diff", "replay"])),
    ("grants", Some(&["list"])),
    ("approvals", Some(&["list", "show"])),
    ("audit", Some(&["tail", "query", "verify", "stats", "export"])),
    ("completions", None),
    ("man", None),
    ("vault", Some(&["status"])),
];

/// Verbs that are known to change something: their words are no prose. Whatever is not among those that read counts as changing.
const CHANGING: &[&str] =
    &["allow", "disallow", "unblock", "trust", "init", "import", "connect", "serve", "edge", "tokens", "leases"];

/// The verb when it changes something or is not known.
pub(super) fn changing_verb(arguments: &[Word]) -> Option<String> {
    let mut words = arguments.iter().map(|word| word.text.as_str());
    let verb = match next_verb(&mut words) {
        Next::Verb(verb) => verb,
        Next::Nothing => return None,
        Next::Odd(option) => return Some(option.to_owned()),
    };
    let Some((_, second_words)) = READING.iter().find(|(known, _)| *known == verb) else {
        return Some(verb.to_owned());
    };
    let Some(reading) = second_words else { return None };
    match next_verb(&mut words) {
        Next::Verb(second) if reading.contains(&second) => None,
        Next::Nothing => None,
        Next::Verb(second) | Next::Odd(second) => Some(format!("{verb} {second}")),
    }
}

enum Next<'a> {
    Verb(&'a str),
    Nothing,
    /// An option that is not known, so that the word behind it may be its value or a verb.
    Odd(&'a str),
}

fn next_verb<'a>(words: &mut impl Iterator<Item = &'a str>) -> Next<'a> {
    while let Some(word) = words.next() {
        if matches!(word, "--help" | "-h" | "--version" | "-V") {
            return Next::Nothing;
        }
        if !word.starts_with('-') {
            return Next::Verb(word);
        }
        let name = word.split('=').next().unwrap_or(word);
        if VALUED.contains(&name) {
            if !word.contains('=') {
                words.next();
            }
        } else if !FLAGS.contains(&word) {
            return Next::Odd(word);
        }
    }
    Next::Nothing
}

/// Whether a verb is one of ours, or cannot be known.
pub(super) fn is_ours(verb: &str) -> bool {
    let first = verb.split(' ').next().unwrap_or(verb);
    CHANGING.contains(&first)
        || READING.iter().any(|(known, _)| *known == first)
        || first.starts_with('-')
        || first.contains(['$', '`'])
}
