//! ALLOW-1 and ALLOW-3: the entry grammar.

use super::{Entry, EntryFault};
use crate::name::NameFault;

#[test]
fn allow_1_entries_of_the_grammar() {
    for text in ["github:create_issue", "linear:*", "*:read_file", "*:*", "s:web.fetch", "my server:a tool"] {
        assert_eq!(Entry::parse(text).map(|entry| entry.to_string()), Ok(text.to_owned()));
    }
}

#[test]
fn allow_3_texts_that_are_not_entries() {
    for (text, fault) in [
        ("", EntryFault::Separator),
        ("github", EntryFault::Separator),
        ("a:b:c", EntryFault::Separator),
        ("::", EntryFault::Separator),
        (":tool", EntryFault::Server(NameFault::Empty)),
        ("server:", EntryFault::Tool(NameFault::Empty)),
        ("git*:x", EntryFault::Server(NameFault::Reserved)),
        ("github:create_*", EntryFault::Tool(NameFault::Reserved)),
        ("**:x", EntryFault::Server(NameFault::Reserved)),
        ("a: ", EntryFault::Tool(NameFault::Blank)),
        ("a:b\n", EntryFault::Tool(NameFault::Control)),
    ] {
        assert_eq!(Entry::parse(text), Err(fault), "{text:?}");
    }
}

#[test]
fn allow_4_wider_entries_cover_narrower_ones() {
    let entry = |text| Entry::parse(text).ok();
    for (wide, narrow, covers) in [
        ("*:*", "a:b", true),
        ("a:*", "A:b", true),
        ("*:b", "a:B", true),
        ("a:b", "a:*", false),
        ("a:b", "*:b", false),
        ("a:*", "*:*", false),
    ] {
        let (wide_entry, narrow_entry) = (entry(wide), entry(narrow));
        let found = wide_entry.zip(narrow_entry).map(|(wide, narrow)| wide.covers(&narrow));
        assert_eq!(found, Some(covers), "{wide} {narrow}");
    }
}
