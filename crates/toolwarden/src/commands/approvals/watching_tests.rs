//! The screen of held calls, without a terminal.

use toolwarden_control::{ApprovalView, NarrowedOffer};
use toolwarden_core::{AnswerScope, ApprovalNeeds, ApprovalState, HeldCaller};

use super::{Board, Key, key};

fn call(id: &str) -> ApprovalView {
    ApprovalView {
        id: id.to_owned(),
        state: ApprovalState::Held,
        server: "notes".to_owned(),
        tool: "write_note".to_owned(),
        arguments: serde_json::json!({ "text": "a long text ".repeat(20) }),
        sent: "{}".to_owned(),
        laid_out: "{}".to_owned(),
        besides: None,
        claims: None,
        result: None,
        caller: HeldCaller { user: Some("ada".to_owned()), ..HeldCaller::default() },
        reason: "not_in_allowlist".to_owned(),
        message: "no allowlist entry matches".to_owned(),
        rule: None,
        held_at: String::new(),
        expires_at: String::new(),
        changed_at: String::new(),
        needs: ApprovalNeeds::default(),
        machine_opinion: None,
        narrowed: Vec::new(),
        offers: Vec::new(),
        answer: None,
    }
}

#[test]
fn review_3_a_key_never_acts_on_a_call_that_was_not_chosen() {
    let mut board = Board::default();
    board.take(vec![call("one"), call("two")]);
    assert_eq!(board.chosen().map(|view| view.id.as_str()), Some("one"));
    board.step(1);
    assert_eq!(board.chosen().map(|view| view.id.as_str()), Some("two"));
    // The chosen one is answered by somebody else, and another one takes its line.
    board.take(vec![call("one"), call("three")]);
    assert_eq!(board.chosen().map(|view| view.id.as_str()), None);
    board.step(1);
    assert_eq!(board.chosen().map(|view| view.id.as_str()), Some("one"));
}

#[test]
fn the_screen_is_as_large_as_the_terminal() {
    let mut board = Board::default();
    board.take((0..50).map(|number| call(&number.to_string())).collect());
    for (width, height) in [(80, 24), (40, 12), (200, 60)] {
        let (lines, _) = board.lines(width, height);
        assert_eq!(lines.len(), height);
        assert!(lines.iter().all(|line| line.chars().count() <= width));
    }
}

#[test]
fn review_3_a_number_means_the_offer_that_was_shown() {
    let mut board = Board::default();
    board.take(vec![call("one"), call("two")]);
    let offer = |condition: &str| NarrowedOffer {
        conditions: vec![condition.to_owned()],
        free: vec!["text".to_owned()],
        entry: String::new(),
        rule: String::new(),
        would_have_allowed: 2,
        of_earlier_calls: 3,
        of_them_denied: 1,
    };
    let long = format!("path=equals:{}", "a/".repeat(300));
    board.offer("one", vec![offer("path=path:src"), offer(&long), offer("path=equals:src/a")]);
    let (lines, offers) = board.lines(120, 40);
    let screen = lines.join("\n");
    assert!(
        screen.contains(
            "1  always with any text, path below src; it would have let 2 of 3 earlier calls run, 1 of them denied"
        ),
        "{screen}"
    );
    assert_eq!(offers, 3);
    // One that does not fit cannot be chosen, nor one after it.
    assert_eq!(board.lines(60, 18).1, 1);
    // Another call comes: what was offered stays with the call it was offered for.
    board.take(vec![call("zero"), call("one"), call("two")]);
    assert_eq!(board.chosen().map(|view| view.narrowed.len()), Some(3));
    board.step(1);
    assert_eq!(board.chosen().map(|view| (view.id.as_str(), view.narrowed.len())), Some(("two", 0)));
}

#[test]
fn keys_mean_what_the_last_line_says() {
    assert_eq!(key(b"a"), Some(Key::Approve(AnswerScope::Once)));
    assert_eq!(key(b"d"), Some(Key::Deny));
    assert_eq!(key(b"\x1b[B"), Some(Key::Down));
    assert_eq!(key(b"\x03"), Some(Key::Quit));
    assert_eq!((key(b"n"), key(b"1"), key(b"9")), (Some(Key::Narrow), Some(Key::Number(0)), Some(Key::Number(8))));
    assert!(key(b"x").is_none() && key(b"0").is_none() && key(b"12").is_none());
}
