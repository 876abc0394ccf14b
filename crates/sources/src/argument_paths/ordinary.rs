//! The short way for ordinary texts, which most arguments are: letters, digits, blanks and slashes, without anything that a
//! tool could decode, expand or read as a command.
//! Such a text means itself as a path, and so does each of its words. Everything else goes the long way, which would find
//! the same here (a property test compares them).

use std::borrow::Cow;
use std::path::PathBuf;

use super::{ENTERS, Found, LONGEST_PATH, is_delimiter};

/// Whether a text is ordinary.
pub(super) fn is_ordinary(text: &str) -> bool {
    text.len() <= LONGEST_PATH
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-./+! \t\r\n,;=<>()|&#]}".contains(&byte))
        && !(text.contains(is_blank) && ENTERS.iter().any(|name| text.contains(name)))
}

fn is_blank(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\n' | ';')
}

impl<'a> Found<'a> {
    /// Looks at an ordinary text.
    pub(super) fn ordinary(&mut self, text: Cow<'a, str>) {
        let has_slash = text.contains('/');
        let is_path = !text.contains(char::is_control) && (has_slash || !text.contains(' '));
        if is_path && self.leads(&text) {
            self.may_be_directories.insert(text.clone().into_owned());
        }
        if has_slash {
            self.diff(&text);
        }
        for word in words(&text).filter(|word| *word != text) {
            if self.is_full() {
                break;
            }
            self.leads(word);
        }
        self.ordinary.push(text);
    }

    /// Keeps the ordinary texts and their words like all others: they may be names in a directory.
    pub(super) fn take_ordinary(&mut self) {
        for text in std::mem::take(&mut self.ordinary) {
            for word in words(&text).filter(|word| !word.starts_with('/')) {
                if self.is_full() {
                    return;
                }
                if !self.pieces.contains(word) {
                    self.pieces.insert(word.to_owned());
                }
            }
            self.wholes.insert(text.into_owned());
        }
    }

    /// Keeps a path that may lead through a link; says whether it may.
    fn leads(&mut self, text: &str) -> bool {
        if text.starts_with('/') {
            return self.keep(PathBuf::from(text));
        }
        let Some(workspace) = self.workspace.filter(|_| !text.is_empty()) else { return false };
        self.may_lead(workspace, text) && self.keep(workspace.join(text))
    }

    fn keep(&mut self, path: PathBuf) -> bool {
        self.paths.insert(path);
        true
    }
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(is_delimiter).filter(|word| !word.is_empty())
}

#[cfg(test)]
#[path = "ordinary_tests.rs"]
mod tests;
