//! One definition from first sight to acceptance.

use toolwarden_core::json::{Document, Limits};

use super::*;
use crate::choose;

fn document(text: &str) -> Document {
    match Document::parse(text, Limits::DEFAULT) {
        Ok(document) => document,
        Err(error) => unreachable!("{text}: {error}"),
    }
}

fn given<'a>(document: &'a Document, name: &str) -> Given<'a> {
    Given::new(name.to_owned(), document.root())
}

/// The version that would be accepted of a tool.
fn chosen(section: &Section, name: &str, version: Option<&str>) -> Result<String, NotAccepted> {
    let pins = ServerPins { tools: section.clone(), ..ServerPins::default() };
    let chosen = choose(&pins, Some((Kind::Tool, name)), version)?;
    assert_eq!(chosen.len(), 1);
    Ok(chosen.into_iter().map(|waiting| waiting.digest).collect())
}

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn section_with(text: &str) -> Section {
    let mut section = Section::default();
    assert_eq!(section.record(&given(&document(text), "t"), Changes::Wait, NOW), Some(How::Baseline));
    section.baseline = Some(NOW);
    section
}

#[test]
fn the_order_of_keys_is_no_change_and_everything_else_is() {
    let section = section_with(r#"{"name":"t","description":"reads","annotations":{"readOnlyHint":true}}"#);
    let same = document(r#"{ "annotations": {"readOnlyHint":true}, "description":"reads","name":"t" }"#);
    assert_eq!(section.view(&given(&same, "t")).0, Standing::Accepted);
    assert_eq!(section.view(&given(&same, "t")).1, Some(same.root().raw()));
    for changed in [
        r#"{"name":"t","description":"Reads","annotations":{"readOnlyHint":true}}"#,
        r#"{"name":"t","description":"reads","annotations":{"readOnlyHint":false}}"#,
        r#"{"name":"t","description":"reads"}"#,
        r#"{"name":"t","title":"T","description":"reads","annotations":{"readOnlyHint":true}}"#,
        r#"{"name":"t","description":"reads","annotations":{"readOnlyHint":true},"_meta":{}}"#,
    ] {
        let changed = document(changed);
        let (standing, shown) = section.view(&given(&changed, "t"));
        assert_eq!(standing, Standing::Changed);
        assert!(shown.is_some_and(|shown| shown.starts_with(r#"{"name":"t","description":"reads","ann"#)));
    }
}

#[test]
fn a_change_waits_until_it_is_accepted_and_the_former_version_stays_accepted() {
    let mut section = section_with(r#"{"v":1}"#);
    let (first, second) = (document(r#"{"v":1}"#), document(r#"{"v":2}"#));
    assert_eq!(section.record(&given(&second, "t"), Changes::Wait, NOW), Some(How::Waiting));
    assert_eq!(section.record(&given(&second, "t"), Changes::Wait, NOW), None, "it is known by now");
    assert_eq!(section.view(&given(&second, "t")), (Standing::Changed, Some(r#"{"v":1}"#)));
    let waiting = vec![short(&given(&second, "t").digest)];
    assert_eq!(chosen(&section, "t", Some("nothing")), Err(NotAccepted::NoSuchVersion { waiting }));
    assert_eq!(chosen(&section, "other", None), Err(NotAccepted::Unknown));
    let digest = given(&second, "t").digest;
    assert_eq!(chosen(&section, "t", None), Ok(digest.clone()));
    assert_eq!(chosen(&section, "t", Some(&short(&digest))), Ok(digest.clone()));
    assert_eq!(section.accept("t", &digest, "ann", NOW), Ok(()));
    assert_eq!(section.accept("t", &digest, "ann", NOW), Err(NotAccepted::NothingWaits));
    assert_eq!(chosen(&section, "t", None), Err(NotAccepted::NothingWaits));
    assert_eq!(section.view(&given(&second, "t")), (Standing::Accepted, Some(r#"{"v":2}"#)));
    assert_eq!(section.view(&given(&first, "t")), (Standing::Accepted, Some(r#"{"v":1}"#)), "a set, not one");
    let third = document(r#"{"v":3}"#);
    assert_eq!(section.view(&given(&third, "t")), (Standing::Changed, Some(r#"{"v":2}"#)), "the last accepted");
}

#[test]
fn what_appears_after_the_baseline_is_hidden_until_accepted() {
    let mut section = section_with(r#"{"v":1}"#);
    let late = document(r#"{"late":1}"#);
    assert_eq!(section.record(&given(&late, "late"), Changes::Wait, NOW), Some(How::Waiting));
    assert_eq!(section.view(&given(&late, "late")), (Standing::New, None));
    let again = document(r#"{"late":2}"#);
    assert_eq!(section.record(&given(&again, "late"), Changes::Wait, NOW), Some(How::Waiting), "and so is its change");
    assert_eq!(section.view(&given(&again, "late")), (Standing::New, None));
    let Err(NotAccepted::Several(_, versions)) = chosen(&section, "late", None) else {
        unreachable!("two versions wait")
    };
    let first = chosen(&section, "late", versions.first().map(String::as_str)).unwrap_or_default();
    assert_eq!(section.accept("late", &first, "ann", NOW), Ok(()));
    assert_eq!(section.view(&given(&late, "late")), (Standing::Accepted, Some(r#"{"late":1}"#)));
    assert_eq!(section.view(&given(&again, "late")), (Standing::Changed, Some(r#"{"late":1}"#)));
}

#[test]
fn whoever_follows_takes_everything_over() {
    let mut section = section_with(r#"{"v":1}"#);
    let (second, late) = (document(r#"{"v":2}"#), document(r#"{"late":1}"#));
    assert_eq!(section.record(&given(&second, "t"), Changes::Follow, NOW), Some(How::Followed));
    assert_eq!(section.record(&given(&late, "late"), Changes::Follow, NOW), Some(How::Followed));
    assert_eq!(section.view(&given(&second, "t")).0, Standing::Accepted);
    assert_eq!(section.view(&given(&late, "late")).0, Standing::Accepted);
}

#[test]
fn a_server_cannot_fill_the_record() {
    let mut section = section_with(r#"{"v":0}"#);
    for version in 1..100 {
        let changed = document(&format!(r#"{{"v":{version}}}"#));
        section.record(&given(&changed, "t"), Changes::Wait, NOW);
        assert_eq!(section.view(&given(&changed, "t")).0, Standing::Changed);
    }
    assert_eq!(section.entries.get("t").map(|pin| pin.waiting.len()), Some(MOST_WAITING));
    for number in 0..MOST_DEFINITIONS + 10 {
        let late = document(r#"{"late":1}"#);
        section.record(&given(&late, &format!("late{number}")), Changes::Wait, NOW);
    }
    assert_eq!(section.entries.len(), MOST_DEFINITIONS);
    for version in 0..100 {
        let changed = document(&format!(r#"{{"f":{version}}}"#));
        section.record(&given(&changed, "t"), Changes::Follow, NOW);
    }
    assert!(section.entries.get("t").is_some_and(|pin| pin.accepted.len() <= MOST_ACCEPTED));
}

#[test]
fn what_is_too_large_to_be_kept_is_shown_to_nobody() {
    let text = format!(r#"{{"name":"t","description":"{}"}}"#, "x".repeat(LARGEST));
    let Ok(large) = Document::parse(text.clone(), Limits { bytes: text.len(), depth: 8 }) else {
        unreachable!("it is JSON")
    };
    let mut section = Section::default();
    for changes in [Changes::Wait, Changes::Follow] {
        let before = section.entries.len();
        let name = format!("t{before}");
        assert_eq!(section.record(&given(&large, &name), changes, NOW), Some(How::TooLarge));
        assert_eq!(section.view(&given(&large, &name)), (Standing::New, None));
        let digest = given(&large, &name).digest;
        assert_eq!(section.accept(&name, &digest, "ann", NOW), Err(NotAccepted::TooLarge));
    }
}

#[test]
fn what_a_server_offers_goes_on_waiting_when_another_version_is_accepted() {
    let digest_of = |text: &str| given(&document(text), "t").digest;
    let waiting = |section: &Section| {
        let pin = section.entries.get("t").cloned().unwrap_or_default();
        pin.waiting.into_iter().map(|version| version.text).collect::<Vec<_>>()
    };
    let mut section = section_with(r#"{"v":1}"#);
    for changed in [r#"{"v":2}"#, r#"{"v":3}"#, r#"{"v":4}"#] {
        section.record(&given(&document(changed), "t"), Changes::Wait, NOW);
    }
    let mut with_second = section.clone();
    assert_eq!(with_second.accept("t", &digest_of(r#"{"v":2}"#), "ann", NOW), Ok(()));
    assert_eq!(waiting(&with_second), [r#"{"v":4}"#], "it is offered by now");
    assert_eq!(section.accept("t", &digest_of(r#"{"v":4}"#), "ann", NOW), Ok(()));
    assert_eq!(waiting(&section), Vec::<String>::new(), "nobody offers the others any more");
}
