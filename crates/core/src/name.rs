//! Names of servers and tools: what makes one valid, how two are compared, how one is shown.
//!
//! Names come from servers, files and callers, so every one is hostile until checked: an invalid
//! name is not refused here (the judge holds such a call), it only says what is wrong with it.

use std::borrow::Cow;
use std::fmt;

use unicode_normalization::UnicodeNormalization;

use crate::weak::{self, Weakness};

/// The longest name, in characters, that can match anything.
pub const LONGEST_NAME: usize = 256;

/// Why a name is not valid (ALLOW-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameFault {
    #[error("the name is empty")]
    Empty,
    #[error("the name is only white space")]
    Blank,
    #[error("the name is longer than 256 characters")]
    TooLong,
    #[error("the name contains a reserved character (`:` or `*`)")]
    Reserved,
    #[error("the name contains a control, line-break or text-direction character")]
    Control,
    #[error("the name begins or ends with a blank or an invisible character")]
    Padded,
}

/// Which names of servers are good in addresses, entries and file names.
pub const SERVER_NAMES: &str = "use letters, digits, `-`, `_` and `.`, and begin with a letter or digit";

/// Whether a name is one of those.
#[must_use]
pub fn is_server_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    name.starts_with(|letter: char| letter.is_ascii_alphanumeric()) && name.chars().all(is_plain)
}

/// Checks a server's or a tool's name.
///
/// # Errors
/// The first rule of ALLOW-2 the name breaks.
pub fn check(name: &str) -> Result<(), NameFault> {
    if is_plain(name) || weak::is(Weakness::Names) {
        return Ok(());
    }
    if name.is_empty() {
        return Err(NameFault::Empty);
    }
    if name.chars().all(char::is_whitespace) {
        return Err(NameFault::Blank);
    }
    if name.chars().count() > LONGEST_NAME {
        return Err(NameFault::TooLong);
    }
    if name.contains([':', '*']) {
        return Err(NameFault::Reserved);
    }
    if name.chars().any(is_deceptive) {
        return Err(NameFault::Control);
    }
    Ok(())
}

/// Checks a name that a person wrote down to restrict something. Servers may list names with outer blanks, but whoever
/// writes one does not see it, and would restrict nothing.
///
/// # Errors
/// The name is invalid, or begins or ends with what cannot be seen.
pub fn check_written(name: &str) -> Result<(), NameFault> {
    check(name)?;
    let is_unseen = |letter: char| letter.is_whitespace() || is_invisible(letter);
    if name.starts_with(is_unseen) || name.ends_with(is_unseen) { Err(NameFault::Padded) } else { Ok(()) }
}

/// The common case in one pass over bytes: short, printable ASCII without reserved characters.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST_NAME
        && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':' && byte != b'*')
}

/// Characters that end lines, move the cursor or reorder text where people read it.
#[must_use]
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{2028}' | '\u{2029}' | '\u{200E}' | '\u{200F}' | '\u{061C}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}'
        )
}

/// Characters that show as nothing: harmless to match, misleading to read.
#[must_use]
pub fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{00AD}' | '\u{034F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200D}' | '\u{2060}'..='\u{2065}' | '\u{206A}'..='\u{206F}' | '\u{3164}' | '\u{FEFF}'
            | '\u{FFA0}' | '\u{FFF9}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}'
    )
}

/// A name as people and prompts may see it: deceptive and invisible characters become `\u{..}`.
#[must_use]
pub fn shown(name: &str) -> Cow<'_, str> {
    let is_odd = |character| is_deceptive(character) || is_invisible(character);
    if !name.chars().any(is_odd) || weak::is(Weakness::Logs) {
        return Cow::Borrowed(name);
    }
    let mut text = String::with_capacity(name.len() + 8);
    for character in name.chars() {
        if is_deceptive(character) || is_invisible(character) {
            text.extend(character.escape_unicode());
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

/// As much of a name as is kept: names come from outside, and a record has no room for a whole request in one.
#[must_use]
pub fn bounded(name: &str) -> &str {
    name.get(..name.floor_char_boundary(LONGEST_NAME)).unwrap_or_default()
}

/// JSON as people may see it: what deceives or does not show is escaped, which changes no value, because outside
/// of texts there is none of it but line breaks.
#[must_use]
pub fn shown_json(json: &str) -> Cow<'_, str> {
    let is_odd = |character| character != '\n' && (is_deceptive(character) || is_invisible(character));
    if !json.chars().any(is_odd) || weak::is(Weakness::Logs) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for character in json.chars() {
        if is_odd(character) {
            let units =
                character.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            text.push_str(&units);
        } else {
            text.push(character);
        }
    }
    Cow::Owned(text)
}

/// A name with ASCII letters in lower case: what matching compares (ALLOW-5).
#[must_use]
pub fn folded(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}

/// What two servers may not share: the name's Unicode normal form, ASCII case ignored.
#[must_use]
pub fn registration_key(name: &str) -> String {
    if weak::is(Weakness::Names) {
        return name.to_owned();
    }
    name.nfkc().collect::<String>().to_ascii_lowercase()
}

/// A tool as its server listed it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolIdentity {
    pub server: String,
    pub tool: String,
}

impl ToolIdentity {
    #[must_use]
    pub fn new(server: impl Into<String>, tool: impl Into<String>) -> Self {
        Self { server: server.into(), tool: tool.into() }
    }
}

impl fmt::Display for ToolIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", shown(&self.server), shown(&self.tool))
    }
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
