//! One entry of a terminal allowlist or blocklist: `base` or `base:glob`.
//! Takes the text of an entry; gives something that can be compared with a command. Refuses empty entries,
//! a `*` in the base, stray blanks and control characters. Comparing is pure: obstacles are judged elsewhere.

use crate::line::{SimpleCommand, Word, join};

/// `git`, `git:status`, `npm:install*`, `cargo test`, `ls:` (exactly no arguments).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellEntry {
    /// The words of the base: the command, then the arguments it must start with.
    base: Vec<String>,
    /// `None`: any further arguments.
    glob: Option<Glob>,
}

/// Why an entry is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryFault {
    #[error("the entry names no command")]
    Empty,
    #[error("the command of an entry may not hold `*`")]
    StarInBase,
    #[error("the command of an entry may not start or end with a blank or hold two in a row")]
    Blanks,
    #[error("the entry holds a control character")]
    ControlCharacter,
}

impl ShellEntry {
    pub fn parse(text: &str) -> Result<Self, EntryFault> {
        if text.chars().any(char::is_control) {
            return Err(EntryFault::ControlCharacter);
        }
        let (base, glob) = match text.split_once(':') {
            Some((base, glob)) => (base, Some(Glob::new(glob))),
            None => (text, None),
        };
        if base.trim().is_empty() {
            return Err(EntryFault::Empty);
        }
        if base.contains('*') {
            return Err(EntryFault::StarInBase);
        }
        let words: Vec<String> = base.split(' ').map(str::to_owned).collect();
        if words.iter().any(String::is_empty) {
            return Err(EntryFault::Blanks);
        }
        Ok(Self { base: words, glob })
    }

    /// The command word of the entry.
    pub fn command(&self) -> &str {
        self.base.first().map_or("", String::as_str)
    }

    /// Pure comparison: says nothing about obstacles or redirections.
    pub fn matches(&self, command: &SimpleCommand) -> bool {
        command.name.as_deref() == Some(self.command()) && self.matches_arguments(&command.arguments)
    }

    /// Compares everything behind the command word.
    pub(super) fn matches_arguments(&self, arguments: &[Word]) -> bool {
        let prefix = self.base.get(1..).unwrap_or(&[]);
        let (Some(leading), Some(rest)) = (arguments.get(..prefix.len()), arguments.get(prefix.len()..)) else {
            return false;
        };
        leading.iter().zip(prefix).all(|(word, wanted)| word.text == *wanted)
            && self.glob.as_ref().is_none_or(|glob| glob.matches(&join(rest)))
    }

    /// The whole argument text, when only one text can match.
    pub(super) fn exact_arguments(&self) -> Option<&str> {
        if self.base.len() == 1 { self.glob.as_ref().and_then(Glob::exact) } else { None }
    }
}

/// A pattern anchored at both ends in which `*` spans anything, also nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    /// The texts between the stars; at least one.
    parts: Vec<String>,
}

impl Glob {
    pub fn new(pattern: &str) -> Self {
        Self { parts: pattern.split('*').map(str::to_owned).collect() }
    }

    fn exact(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// Leftmost matching of the inner parts is enough, because `*` is the only wildcard.
    pub fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.parts.split_first() else { return text.is_empty() };
        let Some((last, middle)) = rest.split_last() else { return text == first };
        let Some(mut remaining) = text.strip_prefix(first.as_str()) else { return false };
        for part in middle {
            match remaining.split_once(part.as_str()) {
                Some((_, behind)) => remaining = behind,
                None => return false,
            }
        }
        remaining.ends_with(last.as_str())
    }
}
