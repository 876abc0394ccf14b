//! Removes quotes: what a shell would make of one token of a word.
//! Takes the raw text of an unquoted word, a quoted string or an escape; gives its value and whether that
//! value is certain. Refuses text in which a shell would see structure that the parser did not report.

use crate::line::{Unparsable, Word};

/// Something an unquoted token may turn into in an interactive shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum History {
    Quiet,
    /// Holds a `!` that an interactive shell would replace from its history.
    Possible,
}

/// Reads an unquoted token of a command. Globs, braces, tildes and a leading `=` (zsh) make it uncertain.
pub(super) fn unquoted(raw: &str) -> Result<(Word, History), Unparsable> {
    let mut value = String::new();
    let mut literal = !raw.starts_with(['~', '=']);
    let mut history = History::Quiet;
    let mut characters = raw.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('\n') | None => return Err(Unparsable::Ambiguous("a line continuation inside a word")),
                Some(escaped) => value.push(escaped),
            },
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`' | '"' | '\'' | '$' => {
                return Err(Unparsable::Ambiguous("an unexpected character in a word"));
            }
            '*' | '?' | '[' | '{' | '}' => {
                literal = false;
                value.push(character);
            }
            '=' | ':' => {
                // `key=~/x` is expanded by some shells.
                literal &= characters.peek() != Some(&'~');
                value.push(character);
            }
            '!' => {
                if characters.peek().is_some_and(|next| *next != '=') {
                    history = History::Possible;
                    literal = false;
                }
                value.push(character);
            }
            other => {
                // Some systems take single bytes of such characters for blanks.
                literal &= other.is_ascii();
                value.push(other);
            }
        }
    }
    if raw == "{}" {
        return Ok((Word::literal(raw), history));
    }
    Ok((if literal { Word::literal(value) } else { Word::raw(raw) }, history))
}

/// Whether a word is a revision of git's such as `stash@{0}` or `@{u}..HEAD`: braces without a comma or dots are
/// ordinary characters.
pub(super) fn is_revision(raw: &str) -> bool {
    let is_plain =
        |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./@^~:".contains(letter));
    let mut parts = raw.split("@{");
    let starts_plainly = parts.next().is_some_and(|start| is_plain(start) && !start.starts_with(['~', '-', ':']));
    let is_bounded = |part: &str| {
        part.split_once('}').is_some_and(|(inner, rest)| {
            let is_name = inner.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
            is_name && !inner.is_empty() && is_plain(rest) && !rest.contains(":~")
        })
    };
    raw.contains("@{") && starts_plainly && parts.all(is_bounded)
}

/// Reads text inside `${..}`, where blanks and operators are ordinary characters.
pub(super) fn check_expansion_text(raw: &str) -> Result<(), Unparsable> {
    if raw.contains(['$', '`', '"', '\'', '\\', '{', '}', '\n', '<', '>', '(', ')']) {
        return Err(Unparsable::Ambiguous("quoting inside an expansion"));
    }
    Ok(())
}

/// The text of a single-quoted string.
pub(super) fn single_quoted(raw: &str) -> Result<Word, Unparsable> {
    let inner = raw.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')).filter(|_| raw.len() >= 2);
    match inner {
        Some(text) if !text.contains('\'') => Ok(Word::literal(text)),
        _ => Err(Unparsable::Ambiguous("odd single quotes")),
    }
}

/// One stretch of a double-quoted string between expansions.
pub(super) fn double_quoted(raw: &str) -> Result<(String, History), Unparsable> {
    let mut value = String::new();
    let mut history = History::Quiet;
    let mut characters = raw.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some('\n') => {}
                Some(escaped @ ('$' | '`' | '"' | '\\')) => value.push(escaped),
                Some(other) => {
                    value.push('\\');
                    value.push(other);
                }
                // The parser took the next character for the start of an expansion, a shell would not.
                None => return Err(Unparsable::Ambiguous("an escaped expansion")),
            },
            '`' | '"' => return Err(Unparsable::Ambiguous("odd double quotes")),
            '$' if characters.peek().is_some_and(|next| opens_expansion(*next)) => {
                return Err(Unparsable::Ambiguous("an expansion that was not recognised"));
            }
            '!' => {
                if characters.peek().is_some_and(|next| !matches!(next, ' ' | '\t' | '\n' | '=')) {
                    history = History::Possible;
                }
                value.push(character);
            }
            other => value.push(other),
        }
    }
    Ok((value, history))
}

/// One stretch of an expanded here-document between expansions.
pub(super) fn here_document(raw: &str) -> Result<(), Unparsable> {
    let mut characters = raw.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                // A continued line could hide the line that ends the document.
                Some('\n') | None => return Err(Unparsable::Ambiguous("a line continuation in a here-document")),
                Some(_) => {}
            },
            '`' => return Err(Unparsable::Ambiguous("backquotes in a here-document")),
            '$' if characters.peek().is_some_and(|next| opens_expansion(*next)) => {
                return Err(Unparsable::Ambiguous("an expansion that was not recognised"));
            }
            _ => {}
        }
    }
    Ok(())
}

fn opens_expansion(next: char) -> bool {
    matches!(next, '(' | '{' | '[' | '\\' | '`') || next.is_alphanumeric() || next == '_'
}

/// The value of `$'..'`; uncertain when it uses an escape that shells decode differently.
pub(super) fn ansi_quoted(raw: &str) -> Result<Word, Unparsable> {
    const ODD: Unparsable = Unparsable::Ambiguous("odd quotes");
    let inner = raw.strip_prefix("$'").and_then(|text| text.strip_suffix('\'')).ok_or(ODD)?;
    let mut value = String::new();
    let mut literal = true;
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => return Err(ODD),
            '\\' => match characters.next() {
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                // Shells without `$'..'` end the quotes here.
                Some('\'') => return Err(Unparsable::Ambiguous("an escaped quote in `$'..'`")),
                Some(escaped @ ('\\' | '"')) => value.push(escaped),
                Some('x') => match hexadecimal(characters.as_str()) {
                    Some(decoded) => {
                        value.push(decoded);
                        characters.nth(1);
                    }
                    None => literal = false,
                },
                // Read on: the quotes must end where the parser says, whatever the value is.
                Some(_) => literal = false,
                None => return Err(ODD),
            },
            other => value.push(other),
        }
    }
    Ok(if literal { Word::literal(value) } else { Word::raw(raw) })
}

/// Two hexadecimal digits that give a printable ASCII character.
fn hexadecimal(rest: &str) -> Option<char> {
    let digits = rest.get(..2).filter(|digits| digits.chars().all(|digit| digit.is_ascii_hexdigit()))?;
    let code = u8::from_str_radix(digits, 16).ok()?;
    (code.is_ascii_graphic() || code == b' ').then_some(char::from(code))
}

/// Whether a command word is a plain name or path, the same in every shell.
pub(super) fn is_plain_name(raw: &str) -> bool {
    let starts_well =
        raw.starts_with(|first: char| first.is_ascii_alphanumeric() || matches!(first, '_' | '.' | '/' | ':' | '['));
    starts_well
        && (raw == "["
            || raw.chars().all(|character| {
                character.is_ascii_alphanumeric() || matches!(character, '_' | '.' | '/' | '+' | '-' | '@' | ':' | ',')
            }))
}
