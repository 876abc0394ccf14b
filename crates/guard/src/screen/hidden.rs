//! Characters that people do not see, or that make them see something else: terminal escapes, text-direction
//! controls, zero-width and tag characters, variation selectors in heaps.
//!
//! Many scripts need some of them. A joiner inside a word of a script that joins, or between two emoji, is
//! writing; the same character between Latin letters is a hiding place.

use toolwarden_core::name::{is_deceptive, is_invisible};

/// What a hidden character is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hidden {
    /// Moves the cursor, changes colours, opens links: ESC and the C1 controls.
    TerminalEscape,
    Control,
    Direction,
    Invisible,
    Tag,
    VariationSelector,
}

impl Hidden {
    pub(super) const ALL: [Self; 6] =
        [Self::TerminalEscape, Self::Control, Self::Direction, Self::Invisible, Self::Tag, Self::VariationSelector];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::TerminalEscape => "terminal-escape",
            Self::Control => "control-character",
            Self::Direction => "text-direction",
            Self::Invisible => "invisible-character",
            Self::Tag => "tag-character",
            Self::VariationSelector => "variation-selector",
        }
    }
}

/// Whether nothing in it needs a second look: printable ASCII and line ends.
pub(super) fn is_plain(text: &str) -> bool {
    text.bytes().fold(true, |plain, byte| plain & (matches!(byte, 0x20..=0x7E | b'\n' | b'\r' | b'\t')))
}

/// The hidden characters of a text with their places.
pub(super) fn characters(text: &str, mut found: impl FnMut(usize, char, Hidden)) {
    if is_plain(text) {
        return;
    }
    let mut before = None;
    let (mut flag_end, mut leftwards_end) = (0, 0);
    for (place, character) in text.char_indices() {
        if is_ordinary(character) {
            before = Some(character);
            continue;
        }
        let rest = || text.get(place + character.len_utf8()..).unwrap_or_default().chars();
        if character == BLACK_FLAG {
            flag_end = place + flag_length(text.get(place..).unwrap_or_default());
        }
        if runs_leftwards(character) {
            leftwards_end = place + NEAR;
        }
        let hidden = match character {
            '\n' | '\r' | '\t' => None,
            // Some programs begin their files so.
            '\u{FEFF}' if place == 0 => None,
            // Marks that texts of these scripts need beside numbers and foreign names.
            '\u{200E}' | '\u{200F}' | '\u{061C}' if place < leftwards_end => None,
            '\u{200E}' | '\u{200F}' | '\u{061C}' if rest().take(NEAR / 4).any(runs_leftwards) => None,
            _ if place < flag_end => None,
            _ => hidden(before, character, || rest().next()),
        };
        if let Some(hidden) = hidden {
            found(place, character, hidden);
        }
        before = Some(character);
    }
}

/// Letters of most scripts, which need no second look.
fn is_ordinary(character: char) -> bool {
    matches!(
        character,
        ' '..='~' | '\u{A1}'..='\u{AC}' | '\u{AE}'..='\u{2FF}' | '\u{370}'..='\u{58F}' | '\u{3001}'..='\u{3163}'
            | '\u{3165}'..='\u{A7FF}' | '\u{AC00}'..='\u{D7FF}'
    )
}

/// So near, in bytes, a letter that runs leftwards explains a mark of direction.
const NEAR: usize = 32;

fn hidden(before: Option<char>, character: char, after: impl Fn() -> Option<char>) -> Option<Hidden> {
    match character {
        ' '..='~' => None,
        '\u{1B}' | '\u{80}'..='\u{9F}' => Some(Hidden::TerminalEscape),
        '\u{E0000}'..='\u{E007F}' => Some(Hidden::Tag),
        '\u{FE00}'..='\u{FE0F}' | '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{E0100}'..='\u{E01EF}' => {
            let is_writing = before.is_some_and(|before| takes_variation(before, character));
            (!is_writing).then_some(Hidden::VariationSelector)
        }
        '\u{200C}' | '\u{200D}' => {
            let joins_letters = before.is_some_and(is_joining);
            let joins_emoji = character == '\u{200D}'
                && before.is_some_and(|before| is_emoji(before) || before == '\u{FE0F}')
                && after().is_some_and(is_emoji);
            (!joins_letters && !joins_emoji).then_some(Hidden::Invisible)
        }
        _ if character.is_control() => Some(Hidden::Control),
        _ if is_deceptive(character) => Some(Hidden::Direction),
        _ if is_invisible(character) => Some(Hidden::Invisible),
        _ => None,
    }
}

const BLACK_FLAG: char = '\u{1F3F4}';

/// The length of a flag of England, Scotland or Wales, which is written with tags; 0 for anything else.
fn flag_length(text: &str) -> usize {
    let tag = |letter: char| char::from_u32(0xE0000 + u32::from(letter));
    let is_flag = |name: &&str| {
        let tags = name.chars().filter_map(tag).chain(['\u{E007F}']);
        tags.eq(text.chars().skip(1).take(name.len() + 1))
    };
    let is_any = ["gbeng", "gbsct", "gbwls"].iter().any(is_flag);
    if is_any { text.chars().take(7).map(char::len_utf8).sum() } else { 0 }
}

/// Letters of scripts in which joiners shape words: Arabic to N'Ko, the Indic scripts, Myanmar, Khmer, Mongolian.
fn is_joining(character: char) -> bool {
    matches!(
        character,
        '\u{0610}'..='\u{08FF}' | '\u{0900}'..='\u{0DFF}' | '\u{0F00}'..='\u{109F}' | '\u{1780}'..='\u{17B3}'
            | '\u{17B6}'..='\u{180A}' | '\u{1810}'..='\u{18AF}' | '\u{1900}'..='\u{1CFF}' | '\u{A800}'..='\u{ABFF}'
            | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' | '\u{11000}'..='\u{11FFF}'
    ) && character != '\u{061C}'
}

fn runs_leftwards(character: char) -> bool {
    matches!(character, '\u{0590}'..='\u{08FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' | '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}')
        && character != '\u{061C}'
}

fn is_emoji(character: char) -> bool {
    matches!(
        character,
        '\u{00A9}' | '\u{00AE}' | '\u{203C}' | '\u{2049}' | '\u{2122}' | '\u{2139}' | '\u{2190}'..='\u{21FF}'
            | '\u{2300}'..='\u{23FF}' | '\u{2460}'..='\u{24FF}' | '\u{25A0}'..='\u{27BF}' | '\u{2900}'..='\u{297F}'
            | '\u{2B00}'..='\u{2BFF}' | '\u{3030}' | '\u{303D}' | '\u{3297}' | '\u{3299}' | '\u{1F000}'..='\u{1FAFF}'
    )
}

/// Whether a selector after this character chooses between forms that exist.
fn takes_variation(base: char, selector: char) -> bool {
    let is_ideograph = matches!(base, '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}');
    match selector {
        // A key cap is a digit with two characters after it.
        '\u{FE0E}' | '\u{FE0F}' => is_emoji(base) || matches!(base, '0'..='9' | '#' | '*'),
        '\u{180B}'..='\u{180F}' => matches!(base, '\u{1810}'..='\u{18AF}'),
        '\u{E0100}'..='\u{E01EF}' => is_ideograph,
        _ => {
            is_ideograph
                || matches!(base, '\u{2200}'..='\u{22FF}' | '\u{2A00}'..='\u{2AFF}' | '\u{1000}'..='\u{109F}' | '\u{3000}'..='\u{30FF}' | '\u{FF00}'..='\u{FFEF}' | '\u{A840}'..='\u{A87F}')
        }
    }
}
