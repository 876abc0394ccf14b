//! Who may answer, by entries.

use toolwarden_core::{ApprovalNeeds, Layer, Origin, Sourced};

use super::Approvers;
use crate::input::ApproversInput;

fn entry(text: &str) -> Sourced<String> {
    Sourced::new(text.to_owned(), Origin::new(Layer::Config, "test", 1, 1))
}

fn by(approvers: &[&str]) -> ApprovalNeeds {
    ApprovalNeeds { approvers: approvers.iter().map(|&name| name.to_owned()).collect(), ..ApprovalNeeds::default() }
}

#[test]
fn review_4_the_narrowest_entry_says_who_and_what_narrows_adds_up() {
    let input = ApproversInput {
        everywhere: vec!["ada".to_owned()],
        second_person: vec![entry("*:deploy")],
        rules: vec![
            (entry("prod:deploy"), by(&["group:ops"])),
            (entry("prod:*"), ApprovalNeeds { reason: true, ..by(&["bob"]) }),
        ],
    };
    let approvers = Approvers::compile(&input).unwrap_or_default();
    let deploy = approvers.needs("PROD", "Deploy");
    assert_eq!((deploy.approvers, deploy.second_person, deploy.reason), (vec!["group:ops".to_owned()], true, true));
    let logs = approvers.needs("prod", "logs");
    assert_eq!((logs.approvers, logs.second_person, logs.reason), (vec!["bob".to_owned()], false, true));
    let elsewhere = approvers.needs("notes", "read");
    assert_eq!(
        (elsewhere.approvers, elsewhere.second_person, elsewhere.reason),
        (vec!["ada".to_owned()], false, false)
    );
}

#[test]
fn entries_that_are_none_are_refused() {
    let input = ApproversInput { second_person: vec![entry("deploy")], ..ApproversInput::default() };
    assert!(Approvers::compile(&input).is_err());
}
