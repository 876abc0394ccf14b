//! Nobody accepts what they have not seen.

use jiff::Timestamp;
use toolwarden_core::json::{Document, Limits};

use super::*;
use crate::{Changes, Given};

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

/// The server lists a tool after its baseline.
fn lists(pins: &mut ServerPins, name: &str, text: &str) {
    let Ok(document) = Document::parse(text, Limits::DEFAULT) else { unreachable!("{text} is JSON") };
    pins.tools.baseline = Some(NOW);
    pins.tools.record(&Given::new(name.to_owned(), document.root()), Changes::Wait, NOW);
}

fn names(chosen: Result<Vec<Waiting>, NotAccepted>) -> Vec<String> {
    match chosen {
        Ok(chosen) => chosen.into_iter().map(|one| one.name).collect(),
        Err(why) => unreachable!("{why}"),
    }
}

#[test]
fn gate_12_everything_of_a_server_is_accepted_by_the_digest_of_what_was_shown() {
    let mut pins = ServerPins::default();
    assert_eq!(choose(&pins, None, None), Err(NotAccepted::NothingWaits));
    lists(&mut pins, "a", r#"{"v":1}"#);
    assert_eq!(names(choose(&pins, None, None)), ["a"], "of one there is no doubt");
    lists(&mut pins, "b", r#"{"v":1}"#);
    let shown = digest_of_waiting(&pins);
    assert_eq!(choose(&pins, None, None), Err(NotAccepted::Unseen { count: 2, digest: shown.clone() }));
    assert_eq!(names(choose(&pins, None, Some(&shown))), ["a", "b"]);
    assert_eq!(choose(&pins, None, Some("")), Err(NotAccepted::OtherWaits), "it is named whole");
    lists(&mut pins, "c", r#"{"v":1}"#);
    assert_eq!(choose(&pins, None, Some(&shown)), Err(NotAccepted::OtherWaits), "it was not shown");
    assert_eq!(names(choose(&pins, Some((Kind::Tool, "c")), None)), ["c"]);
}

#[test]
fn gate_12_another_version_of_what_was_shown_is_something_else() {
    let mut pins = ServerPins::default();
    lists(&mut pins, "a", r#"{"v":1}"#);
    let shown = digest_of_waiting(&pins);
    lists(&mut pins, "a", r#"{"v":2}"#);
    assert_eq!(choose(&pins, None, Some(&shown)), Err(NotAccepted::OtherWaits));
    let both = digest_of_waiting(&pins);
    assert!(matches!(choose(&pins, None, Some(&both)), Err(NotAccepted::Several(..))), "one of them is to be named");
}
