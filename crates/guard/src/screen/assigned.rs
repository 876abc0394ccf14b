//! Values that stand beside a name which says that they are secret: `api_key = "..."`, `"password": "..."`.

use std::ops::Range;

use super::entropy;

const LONGEST_NAME: usize = 48;
const LONGEST_VALUE: usize = 256;

/// How names of secrets end, without joints and capitals.
const NAMES: [&str; 20] = [
    "apikey",
    "secretkey",
    "accesskey",
    "accountkey",
    "privatekey",
    "signingkey",
    "encryptionkey",
    "masterkey",
    "sharedkey",
    "authkey",
    "servicekey",
    "deploykey",
    "secret",
    "token",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "credential",
    "credentials",
];
/// Names that end so and mean a place in a list.
const HARMLESS: [&str; 6] =
    ["pagetoken", "nexttoken", "continuationtoken", "synctoken", "progresstoken", "pagingtoken"];
/// Names of what people choose themselves, which is shorter and less random.
const CHOSEN: [&str; 4] = ["password", "passwd", "passphrase", "pwd"];
/// What stands where a secret would.
const PLACEHOLDERS: [&str; 24] = [
    "example",
    "xxx",
    "your",
    "changeme",
    "change-me",
    "change_me",
    "placeholder",
    "redacted",
    "<",
    "${",
    "{{",
    "%(",
    "$(",
    "***",
    "...",
    "process.env",
    "environ",
    "getenv",
    "secrets.",
    "dummy",
    "insert",
    "null",
    "undefined",
    "todo",
];
/// What nobody uses for real, or everybody does.
const NO_SECRETS: [&str; 8] = ["password", "passwd", "pass", "secret", "token", "none", "true", "false"];

/// The value that the name around a word gives away, and where the name ends.
pub(super) fn value(text: &str, word: Range<usize>) -> (Option<(&'static str, Range<usize>)>, usize) {
    let Some(name) = name_around(text, word) else { return (None, 0) };
    (value_of(text, name.clone()), name.end)
}

fn value_of(text: &str, name: Range<usize>) -> Option<(&'static str, Range<usize>)> {
    // Most words are part of no assignment.
    let start = assigned_at(text, name.end)?;
    let name = Name::of(text.get(name)?)?;
    let place = value_from(text, start)?;
    Some((name.gives_away(text.get(place.clone())?)?, place))
}

/// What a value is that stands below a name of its own, as members of JSON do.
pub(super) fn member(name: &str, value: &str) -> Option<&'static str> {
    let last = name.len().saturating_sub(LONGEST_NAME);
    let name = name.get(name.ceil_char_boundary(last)..)?;
    Name::of(name)?.gives_away(value)
}

/// A name that says that its value is secret: without joints and capitals.
struct Name(String);

impl Name {
    fn of(name: &str) -> Option<Self> {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        let name = Self(letters.map(|letter| letter.to_ascii_lowercase()).collect());
        (name.ends_with(&NAMES) && !name.ends_with(&HARMLESS)).then_some(name)
    }

    fn ends_with(&self, names: &[&str]) -> bool {
        names.iter().any(|ending| self.0.ends_with(ending))
    }

    fn gives_away(&self, value: &str) -> Option<&'static str> {
        let is_aws = self.0.contains("aws") || self.0.contains("secretaccesskey");
        let kind = match value {
            _ if is_aws && value.len() == 40 && entropy::bits(value) >= 3.5 => "aws-secret-key",
            _ if self.ends_with(&CHOSEN) => is_chosen(value).then_some("password")?,
            _ => is_given(value).then_some("assigned-secret")?,
        };
        (!is_placeholder(value)).then_some(kind)
    }
}

fn is_part_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

/// The whole name that a word is part of.
fn name_around(text: &str, word: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let before =
        bytes.get(..word.start)?.iter().rev().take(LONGEST_NAME).take_while(|byte| is_part_of_name(**byte)).count();
    let after = bytes.get(word.end..)?.iter().take(LONGEST_NAME).take_while(|byte| is_part_of_name(**byte)).count();
    Some(word.start - before..word.end + after)
}

/// Where the value begins that is assigned after a name: `: "x"`, `=x`, `\": \"x\"`, ` := x`, `=> 'x'`, `="x"`.
fn assigned_at(text: &str, name_end: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let skip = |from: usize, most: usize, what: &[u8]| {
        from + bytes.iter().skip(from).take(most).take_while(|byte| what.contains(byte)).count()
    };
    let assigning = skip(name_end, 6, b"\\\"'`] \t");
    let assigned = skip(assigning, 2, b":=>");
    if assigned == assigning {
        return None;
    }
    Some(skip(skip(assigned, 4, b" \t"), 3, b"\\\"'`"))
}

fn value_from(text: &str, start: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let is_quoted = bytes.get(start.checked_sub(1)?).is_some_and(|byte| matches!(byte, b'"' | b'\'' | b'`'));
    let ends = |byte: &u8| {
        matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b'\n' | b'\r')
            || (!is_quoted
                && matches!(
                    byte,
                    b' ' | b'\t' | b',' | b';' | b'&' | b')' | b'(' | b'}' | b']' | b'[' | b'<' | b'>' | b'|'
                ))
    };
    let length = bytes.get(start..)?.iter().take(LONGEST_VALUE).position(ends);
    let length = length.unwrap_or((bytes.len() - start).min(LONGEST_VALUE));
    let end = text.floor_char_boundary(start + length);
    Some(start..end)
}

pub(super) fn is_placeholder(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    PLACEHOLDERS.iter().any(|mark| value.contains(mark)) || NO_SECRETS.contains(&value.as_str())
}

/// A password as people choose them: not one word, not a sentence, not the name of something in a program.
fn is_chosen(value: &str) -> bool {
    let is_sayable = (8..=128).contains(&value.len()) && !value.contains([' ', '(']) && !value.contains("::");
    if !is_sayable || value.starts_with(['/', '.', '$', '@']) {
        return false;
    }
    let kinds = kinds(value);
    let is_member = !kinds.symbols.is_empty() && kinds.symbols.iter().all(|symbol| *symbol == b'.');
    !is_member && (kinds.count() >= 3 || (value.len() >= 10 && kinds.digits && kinds.count() >= 2))
}

/// A key as services give them.
fn is_given(value: &str) -> bool {
    let is_part = |byte: u8| entropy::is_token_byte(byte) || matches!(byte, b'.' | b'~' | b'!' | b'$' | b':');
    if !(16..LONGEST_VALUE).contains(&value.len()) || !value.bytes().all(is_part) {
        return false;
    }
    let kinds = kinds(value);
    let is_hex = value.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_uuid = value.len() == 36 && value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let is_random = kinds.count() >= 2 && if is_hex { value.len() >= 24 } else { kinds.digits };
    !is_uuid && is_random && entropy::bits(value) >= 3.0
}

/// What a value is made of.
struct Kinds {
    capitals: bool,
    small: bool,
    digits: bool,
    symbols: Vec<u8>,
}

impl Kinds {
    fn count(&self) -> usize {
        [self.capitals, self.small, self.digits, !self.symbols.is_empty()].into_iter().filter(|has| *has).count()
    }
}

fn kinds(value: &str) -> Kinds {
    let has = |is: fn(&u8) -> bool| value.bytes().any(|byte| is(&byte));
    Kinds {
        capitals: has(u8::is_ascii_uppercase),
        small: has(u8::is_ascii_lowercase),
        digits: has(u8::is_ascii_digit),
        symbols: value.bytes().filter(|byte| !byte.is_ascii_alphanumeric()).collect(),
    }
}
