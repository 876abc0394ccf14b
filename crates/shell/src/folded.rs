//! Texts as the most forgiving file system reads them: case, Unicode forms and invisible characters ignored.
//! Takes text from outside; gives a form in which two spellings of one name are equal. More may become equal
//! than any one file system thinks, never less: it is used to find what must be held.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::decompose_compatible;

/// The text in small letters, decomposed, without characters that are not seen.
pub(super) fn folded(text: &str) -> Cow<'_, str> {
    if !text.is_ascii() {
        return Cow::Owned(fold(text.nfkd()));
    }
    match text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(text.to_ascii_lowercase()),
        false => Cow::Borrowed(text),
    }
}

fn fold(characters: impl Iterator<Item = char>) -> String {
    let mut text = String::new();
    for character in characters.filter(|character| !is_ignorable(*character)) {
        match character {
            'ß' | 'ẞ' => text.push_str("ss"),
            other => text.extend(other.to_lowercase()),
        }
    }
    text
}

/// Whether a character disappears or becomes plain ASCII when folded, so that a name may be spelt with it.
pub(super) fn may_stand_for_ascii(character: char) -> bool {
    // Most of what people write in other scripts; nothing in these blocks has an ASCII form.
    if matches!(character, '\u{400}'..='\u{52f}' | '\u{3041}'..='\u{3096}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
    {
        return false;
    }
    if character.is_ascii() || matches!(character, 'ß' | 'ẞ') || is_ignorable(character) {
        return true;
    }
    let mut is_plain = true;
    decompose_compatible(character, |part| {
        let is_letter = || part.to_lowercase().all(|part| part.is_ascii() || part == 'ß');
        is_plain &= is_ignorable(part) || is_letter();
    });
    is_plain
}

/// What file systems that ignore case skip when they compare names: Unicode's default ignorable characters.
fn is_ignorable(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

#[cfg(test)]
#[path = "folded_tests.rs"]
mod tests;
