//! The rules of the screen, without a terminal.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::{Just, ProptestConfig, Strategy, prop, prop_assert, prop_oneof, proptest};
use toolwarden_control::{ApprovalView, NarrowedOffer, Offer};
use toolwarden_core::{AnswerScope, ApprovalNeeds, ApprovalState, HeldAnswer, HeldCaller};

use super::{Answer, Board, Question, Verb, Wish};
use crate::keys::Key;
use crate::screen::{Screen, Size};

const WIDE: Size = Size { width: 80, height: 24 };
const TALL: Size = Size { width: 80, height: 40 };
const NARROW: Size = Size { width: 40, height: 10 };

fn noon() -> Timestamp {
    "2026-11-18T12:00:00Z".parse().unwrap_or_default()
}

/// A call whose arguments have so many rows, each with a word of its own.
fn call(id: &str, rows: usize) -> ApprovalView {
    let words: Vec<_> = (0..rows).map(|row| format!("  \"{id}-{row:03}\"")).collect();
    let offer = |scope, permits: &str| Offer { scope, permits: permits.to_owned() };
    ApprovalView {
        id: id.to_owned(),
        digest: format!("digest of {id} with {rows}"),
        state: ApprovalState::Held,
        server: "notes".to_owned(),
        tool: "write_note".to_owned(),
        arguments: serde_json::Value::Null,
        sent: "{}".to_owned(),
        laid_out: format!("[\n{}\n]", words.join("\n")),
        besides: None,
        claims: Some("Writes a note\u{1b}[2J\u{202e}".to_owned()),
        result: None,
        caller: HeldCaller {
            user: Some("ada".to_owned()),
            role: Some("worker".to_owned()),
            client: Some("claude-code 2.1".to_owned()),
            ..HeldCaller::default()
        },
        reason: "not_in_allowlist".to_owned(),
        message: "no allowlist entry matches".to_owned(),
        rule: None,
        held_at: "2026-11-18T11:58:00Z".to_owned(),
        expires_at: "2026-11-18T12:58:00Z".to_owned(),
        changed_at: String::new(),
        needs: ApprovalNeeds::default(),
        machine_opinion: None,
        narrowed: Vec::new(),
        offers: vec![
            offer(AnswerScope::Once, "nothing else: this call, once"),
            offer(AnswerScope::Session, "every call of write_note on notes in this conversation, for at most 8 hours"),
            offer(AnswerScope::Tool, "every call of write_note on notes, with any arguments, from now on"),
            offer(AnswerScope::Server, "every call of every tool on notes, from now on"),
        ],
        answer: None,
        followed: true,
    }
}

fn answered(view: &ApprovalView, by: &str) -> ApprovalView {
    let answer = HeldAnswer {
        is_approval: true,
        by: by.to_owned(),
        groups: Vec::new(),
        door: "cli".to_owned(),
        at: noon(),
        scope: AnswerScope::Once,
        note: None,
        token: None,
    };
    ApprovalView { state: ApprovalState::Approved, answer: Some(answer), ..view.clone() }
}

/// A board with a terminal of a certain size.
struct Desk {
    board: Board,
    size: Size,
    screen: Screen,
    calls: Vec<ApprovalView>,
}

impl Desk {
    fn new(calls: Vec<ApprovalView>, size: Size) -> Self {
        let mut desk = Self { board: Board::new(noon()), size, screen: Screen::default(), calls: Vec::new() };
        desk.take(calls, &[]);
        desk.later(1);
        desk
    }

    fn later(&mut self, seconds: i64) {
        let now = self.board.now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or_default();
        self.board.tick(now);
        self.draw();
    }

    fn take(&mut self, calls: Vec<ApprovalView>, ended: &[ApprovalView]) {
        self.calls.clone_from(&calls);
        self.board.take(calls, ended);
        self.draw();
    }

    /// Looks up what is chosen, and draws.
    fn draw(&mut self) {
        if let Some(id) = self.board.wanted()
            && let Some(view) = self.calls.iter().find(|view| view.id == id)
        {
            self.board.looked_up(view.clone());
        }
        self.screen = self.board.draw(self.size);
        self.board.was_drawn(&self.screen);
    }

    fn press(&mut self, key: &Key) -> Wish {
        let wish = self.board.press(key);
        self.draw();
        wish
    }

    fn letter(&mut self, letter: char) -> Wish {
        self.press(&Key::Char(letter))
    }

    fn resize(&mut self, size: Size) {
        self.size = size;
        self.draw();
    }

    fn text(&self) -> String {
        let row = |row: &Vec<crate::screen::Piece>| {
            row.iter().map(|piece| piece.text.as_str()).collect::<String>().trim_end().to_owned()
        };
        self.screen.rows.iter().map(row).collect::<Vec<_>>().join("\n")
    }
}

fn approval(wish: Wish) -> Option<Answer> {
    match wish {
        Wish::Send(answer) if answer.is_approval() => Some(*answer),
        _ => None,
    }
}

fn offer() -> NarrowedOffer {
    NarrowedOffer {
        conditions: vec!["name=equals:plan".to_owned()],
        free: vec!["text".to_owned()],
        entry: r#"notes:write_note where {"/name":{"equals":"plan"},"/text":"free"}"#.to_owned(),
        rule: String::new(),
        would_have_allowed: 2,
        of_earlier_calls: 3,
        of_them_denied: 1,
    }
}

/// A key that was pressed while the call could not be read does not answer it when another size shows it.
#[test]
fn review_3_a_size_that_shows_the_rest_of_a_call_gives_time_to_read_it() {
    let mut desk = Desk::new(vec![call("one", 2)], Size { width: 12, height: 3 });
    desk.later(5);
    assert!(approval(desk.letter('a')).is_none());
    desk.resize(TALL);
    assert!(approval(desk.letter('a')).is_none(), "{}", desk.text());
    desk.later(1);
    assert!(approval(desk.letter('a')).is_some(), "{}", desk.text());
}

#[test]
fn review_3_the_screens_of_watch() {
    let mut desk = Desk::new(vec![call("one", 2), call("two", 40)], WIDE);
    insta::assert_snapshot!("watch_80x24", desk.text());
    desk.press(&Key::Next);
    insta::assert_snapshot!("watch_80x24_long", desk.text());
    desk.resize(NARROW);
    insta::assert_snapshot!("watch_40x10_long", desk.text());
    desk.press(&Key::Previous);
    desk.letter('D');
    insta::assert_snapshot!("watch_40x10_block", desk.text());
    desk.press(&Key::Escape);
    desk.letter('d');
    "no, use the other one".chars().for_each(|letter| drop(desk.letter(letter)));
    insta::assert_snapshot!("watch_40x10_deny", desk.text());
    desk.press(&Key::Escape);
    desk.resize(TALL);
    desk.resize(WIDE);
    desk.later(1);
    desk.letter('t');
    insta::assert_snapshot!("watch_80x24_tool", desk.text());
    desk.press(&Key::Escape);
    desk.board.offered(&ApprovalView { narrowed: vec![offer()], ..call("one", 2) });
    desk.draw();
    insta::assert_snapshot!("watch_80x24_narrowed", desk.text());
    desk.press(&Key::Escape);
    desk.letter('?');
    insta::assert_snapshot!("watch_80x24_help", desk.text());
    desk.press(&Key::Escape);
    desk.take(vec![call("two", 40)], &[answered(&call("one", 2), "bob")]);
    desk.board.fails("the server does not answer; trying again");
    desk.draw();
    insta::assert_snapshot!("watch_80x24_answered_elsewhere", desk.text());
    for size in
        [WIDE, NARROW, Size { width: 25, height: 7 }, Size { width: 200, height: 60 }, Size { width: 12, height: 3 }]
    {
        desk.resize(size);
        assert_eq!(desk.screen.rows.len(), size.height, "{size:?}");
        assert!(desk.text().lines().all(|line| line.chars().count() <= size.width), "{size:?}\n{}", desk.text());
        assert!(!desk.text().contains(['\u{1b}', '\u{202e}']));
    }
}

#[test]
fn review_3_nothing_is_approved_before_all_of_it_was_shown() {
    let mut desk = Desk::new(vec![call("one", 40)], WIDE);
    for letter in ['a', 's', 't', 'S', 'v', 'n'] {
        assert_eq!(desk.letter(letter), Wish::Nothing, "{letter}");
        assert!(
            desk.text().contains("scroll to the end to approve") && desk.board.question.is_none(),
            "{}",
            desk.text()
        );
    }
    // The end alone is not all of it.
    desk.press(&Key::End);
    assert_eq!(desk.letter('a'), Wish::Nothing);
    desk.press(&Key::Home);
    (0..100).for_each(|_| drop(desk.press(&Key::Down)));
    let sent = approval(desk.letter('a'));
    assert!(sent.is_some_and(|answer| answer.id == "one" && answer.digest == "digest of one with 40"));
    assert_eq!(desk.letter('a'), Wish::Nothing, "one answer at a time");
}

#[test]
fn review_3_permanent_answers_ask_once_more_and_escape_leaves() {
    let mut desk = Desk::new(vec![call("one", 2)], TALL);
    let narrowed = ApprovalView { narrowed: vec![offer()], ..call("one", 2) };
    for (letter, entry) in [
        ('t', "notes:write_note"),
        ('S', "notes:*"),
        ('v', "notes:*"),
        ('D', "notes:write_note"),
        ('n', &*offer().entry),
    ] {
        for no in [Key::Escape, Key::Char('n'), Key::Char('q'), Key::Enter] {
            if letter == 'n' {
                assert_eq!(desk.letter('n'), Wish::Offers("one".to_owned()));
                desk.board.offered(&narrowed);
                assert_eq!(desk.letter('2'), Wish::Nothing);
                assert!(matches!(desk.board.question, Some(Question::Offers { .. })));
                assert_eq!(desk.letter('1'), Wish::Nothing);
            } else {
                assert_eq!(desk.letter(letter), Wish::Nothing);
            }
            assert!(desk.text().contains(entry), "{}", desk.text());
            assert!(matches!(desk.board.question, Some(Question::Confirm { .. })), "{letter}");
            assert_eq!(desk.press(&no), Wish::Nothing);
            assert!(desk.board.question.is_none() && desk.text().contains("nothing was answered"), "{}", desk.text());
        }
    }
    desk.letter('n');
    desk.board.offered(&narrowed);
    assert_eq!(desk.press(&Key::Escape), Wish::Nothing);
    assert!(desk.board.question.is_none());
    desk.letter('t');
    let sent = approval(desk.letter('y'));
    assert!(sent.is_some_and(|answer| matches!(answer.verb, Verb::Approve { scope: AnswerScope::Tool, .. })));
}

/// A question that does not fit the screen is answered only once all of it was shown.
#[test]
fn review_3_a_question_is_read_before_it_is_answered() {
    let mut desk = Desk::new(vec![call("one", 1)], TALL);
    let long = NarrowedOffer { entry: format!("notes:write_note where {}", "x".repeat(900)), ..offer() };
    desk.letter('n');
    desk.board.offered(&ApprovalView { narrowed: vec![long], ..call("one", 1) });
    desk.resize(NARROW);
    desk.letter('1');
    assert_eq!(desk.letter('y'), Wish::Nothing);
    assert!(desk.text().contains("scroll to answer"), "{}", desk.text());
    (0..100).for_each(|_| drop(desk.press(&Key::PageDown)));
    assert!(approval(desk.letter('y')).is_some(), "{}", desk.text());
}

#[test]
fn review_3_a_denial_takes_a_note_and_needs_no_reading() {
    let mut desk = Desk::new(vec![call("one", 400)], WIDE);
    assert_eq!(desk.letter('d'), Wish::Nothing);
    "not today!".chars().for_each(|letter| drop(desk.letter(letter)));
    desk.press(&Key::Backspace);
    desk.press(&Key::Paste(" a\ny\r".to_owned()));
    let Wish::Send(answer) = desk.press(&Key::Enter) else { unreachable!("it is sent: {}", desk.text()) };
    assert_eq!((answer.verb, answer.note.as_deref()), (Verb::Deny { remember: false }, Some("not todaya y")));
    // Where a note is asked for, there is no answer without one.
    let needs = ApprovalNeeds { reason: true, ..ApprovalNeeds::default() };
    let mut desk = Desk::new(vec![ApprovalView { needs, ..call("one", 2) }], TALL);
    assert_eq!(desk.letter('a'), Wish::Nothing);
    assert_eq!(desk.press(&Key::Enter), Wish::Nothing);
    assert!(desk.text().contains("a note is needed here"));
    desk.letter('x');
    assert!(approval(desk.press(&Key::Enter)).is_some_and(|answer| answer.note.as_deref() == Some("x")));
}

#[test]
fn review_3_a_key_never_acts_on_a_call_that_was_not_chosen() {
    let mut desk = Desk::new(vec![call("one", 1), call("two", 1)], TALL);
    desk.press(&Key::Next);
    assert_eq!(desk.board.chosen.as_deref(), Some("two"));
    desk.letter('t');
    // The call is answered by somebody else while its question is open, and another one takes its line.
    desk.take(vec![call("one", 1), call("three", 1)], &[answered(&call("two", 1), "bob")]);
    assert!(desk.text().contains("approved by bob") && desk.text().contains("no longer held"), "{}", desk.text());
    assert!(["y", "a", "d"].iter().all(|keys| keys.chars().all(|letter| desk.letter(letter) == Wish::Nothing)));
    desk.later(10);
    assert_eq!(desk.board.chosen, None);
    assert_eq!(desk.letter('a'), Wish::Nothing);
    desk.press(&Key::Next);
    assert!(approval(desk.letter('a')).is_some_and(|answer| answer.id == "one"));
    // One that comes up by itself is not answered by a key that was meant for another.
    let mut desk = Desk::new(Vec::new(), TALL);
    desk.take(vec![call("new", 1)], &[]);
    assert_eq!(desk.letter('a'), Wish::Nothing);
    assert_eq!(desk.letter('d'), Wish::Nothing);
    assert!(desk.board.question.is_none() && desk.text().contains("has just come up"));
    desk.later(1);
    assert!(approval(desk.letter('a')).is_some());
}

/// The same id with another text: nothing of the former one counts.
#[test]
fn review_4_a_call_that_changes_on_the_screen_is_read_again() {
    let mut desk = Desk::new(vec![call("one", 1)], TALL);
    desk.letter('t');
    desk.take(vec![call("one", 50)], &[]);
    assert!(desk.board.question.is_none() && desk.text().contains("this call changed"), "{}", desk.text());
    desk.later(1);
    assert!(["a", "t", "y"].iter().all(|keys| keys.chars().all(|letter| desk.letter(letter) == Wish::Nothing)));
    desk.take(vec![call("one", 2)], &[]);
    desk.later(1);
    assert!(approval(desk.letter('a')).is_some_and(|answer| answer.digest == "digest of one with 2"));
}

#[derive(Debug, Clone)]
enum Step {
    Press(Key),
    Resize(Size),
    /// The held calls from now on: id and number of rows.
    Take(Vec<(u8, usize)>),
    Later,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let letters = prop::sample::select("aaaassttSvnnddDyyy1 jkgG".chars().collect::<Vec<_>>());
    let others = prop::sample::select(vec![
        Key::Next,
        Key::Previous,
        Key::Down,
        Key::Up,
        Key::PageDown,
        Key::PageDown,
        Key::PageUp,
        Key::Home,
        Key::End,
        Key::Enter,
        Key::Escape,
        Key::Paste("ay".to_owned()),
    ]);
    let calls = prop::collection::btree_map(0_u8..4, 0_usize..40, 0..4);
    let step = prop_oneof![
        6 => letters.prop_map(|letter| Step::Press(Key::Char(letter))),
        6 => others.prop_map(Step::Press),
        1 => (10_usize..100, 3_usize..60).prop_map(|(width, height)| Step::Resize(Size { width, height })),
        1 => calls.prop_map(|calls| Step::Take(calls.into_iter().collect())),
        1 => Just(Step::Later),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is pressed, whatever comes and goes: an approval is for a call that is held, with its digest, and every
    /// row of its arguments was in the text of a screen that was drawn.
    #[test]
    fn review_3_what_is_approved_was_on_the_screen(steps in steps()) {
        let mut desk = Desk::new(vec![call("c0", 3), call("c1", 30)], WIDE);
        let mut rows: BTreeMap<String, usize> = [("c0".to_owned(), 3), ("c1".to_owned(), 30)].into();
        let mut shown: BTreeSet<String> = BTreeSet::new();
        for step in steps {
            let words = desk.text();
            shown.extend(words.split('"').filter(|word| word.contains('-')).map(str::to_owned));
            let wish = match step {
                Step::Press(key) => desk.press(&key),
                Step::Resize(size) => { desk.resize(size); Wish::Nothing }
                Step::Later => { desk.later(3); Wish::Nothing }
                Step::Take(calls) => {
                    let known: BTreeMap<String, usize> = calls.iter().map(|(id, rows)| (format!("c{id}"), *rows)).collect();
                    // Another text under the same id begins anew.
                    shown.retain(|word| rows.iter().all(|(id, rows)| !word.starts_with(id.as_str()) || known.get(id) == Some(rows)));
                    desk.take(known.iter().map(|(id, rows)| call(id, *rows)).collect(), &[]);
                    rows = known;
                    Wish::Nothing
                }
            };
            match wish {
                Wish::Send(answer) => {
                    let held = rows.get(&answer.id).copied();
                    prop_assert!(held.is_some(), "{answer:?} is not held");
                    let of = held.unwrap_or_default();
                    prop_assert!(answer.digest == format!("digest of {} with {of}", answer.id), "{answer:?}");
                    if answer.is_approval() {
                        let unseen: Vec<_> = (0..of).map(|row| format!("{}-{row:03}", answer.id)).filter(|word| !shown.contains(word)).collect();
                        prop_assert!(unseen.is_empty(), "{answer:?} without {unseen:?}");
                    }
                    desk.board.answered(Ok(String::new()));
                }
                Wish::Offers(id) => {
                    let of = rows.get(&id).copied().unwrap_or_default();
                    desk.board.offered(&ApprovalView { narrowed: vec![offer()], ..call(&id, of) });
                    desk.draw();
                }
                _ => {}
            }
        }
    }
}
