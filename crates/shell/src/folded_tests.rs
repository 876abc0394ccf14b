//! Spellings that some file system takes for one name fold to one text.

use super::{folded, is_ignorable, may_stand_for_ascii};

#[test]
fn spellings_of_one_name_fold_to_one_text() {
    for text in ["Hooks.JSON", "hoo\u{212a}s.json", "hook\u{17f}.json", "\u{ff48}ooks.json", "ho\u{200b}oks.json"] {
        assert_eq!(folded(text), "hooks.json", "{text}");
    }
    assert_eq!(folded("J\u{fc}rgen"), folded("ju\u{308}RGEN"));
    assert_eq!(folded("STRASSE"), folded("straße"));
}

#[test]
fn every_character_that_can_stand_for_ascii_is_known() {
    for character in (0..=0x10_ffff_u32).filter_map(char::from_u32).filter(|character| !character.is_ascii()) {
        let text = folded(character.encode_utf8(&mut [0; 4])).into_owned();
        assert_eq!(may_stand_for_ascii(character), text.is_ascii(), "{:x} {text:?}", u32::from(character));
        assert_eq!(is_ignorable(character), text.is_empty(), "{:x}", u32::from(character));
    }
}
