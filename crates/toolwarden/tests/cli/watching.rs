//! `approvals watch` on a real terminal.

use std::process::Command;

use crate::approving::{call, held, house, notes, state};
use crate::house::House;
use crate::server::{Server, eventually};
use crate::terminal::Terminal;

const ESCAPE: &str = "\u{1b}";
const PAGE_DOWN: &str = "\u{1b}[6~";
const WIDE: (u16, u16) = (80, 24);

fn watch(house: &House, size: (u16, u16)) -> Terminal {
    let terminal = Terminal::start(house, "approvals watch", size);
    terminal.shows("? help");
    terminal
}

/// The call came up by itself, and a moment has passed since.
fn settled(terminal: &mut Terminal) {
    terminal.shows("arguments");
    presses_until(terminal, "D", "permanent answer");
    terminal.press(ESCAPE);
    terminal.hides("permanent answer");
}

/// Pressed until it counts: a terminal may still be busy with the last key.
fn presses_until(terminal: &mut Terminal, key: &str, words: &str) {
    for _ in 0..200 {
        if terminal.text().contains(words) {
            return;
        }
        terminal.press(key);
        crate::approving::pause(std::time::Duration::from_millis(20));
    }
    unreachable!("{words}:\n{}", terminal.text());
}

#[test]
fn review_3_arguments_beyond_the_screen_are_not_approved_before_they_were_shown() {
    let house = house("");
    let server = Server::start(&house);
    let text = format!("{}THE-END", "x".repeat(4_000));
    call(&server, &text);
    let id = held(&house);
    let mut terminal = watch(&house, WIDE);
    settled(&mut terminal);
    assert!(!terminal.text().contains("THE-END") && !terminal.text().contains("a once"), "{}", terminal.text());
    for key in ["a", "s", "t", "S", "n"] {
        terminal.press(key);
        terminal.shows("not all of this call was shown yet");
        terminal.press("D");
        terminal.shows("permanent answer");
        terminal.press(ESCAPE);
        terminal.shows("nothing was answered");
    }
    // The end alone is not all of it.
    terminal.press("G");
    terminal.shows("THE-END");
    terminal.press("a");
    terminal.shows("not all of this call was shown yet");
    assert_eq!(state(&house, &id), "held");
    terminal.press("g");
    terminal.shows("called by");
    presses_until(&mut terminal, PAGE_DOWN, "a once");
    terminal.press("a");
    terminal.shows("approved by");
    assert!(call(&server, &text).contains("wrote plan"));
    // On the list there is no question to leave.
    terminal.press(ESCAPE);
    crate::approving::pause(std::time::Duration::from_millis(500));
    terminal.press("?");
    terminal.shows("Esc back");
    terminal.press(ESCAPE);
    terminal.hides("Esc back");
    terminal.press("q");
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn review_3_escape_leaves_the_narrowed_offers_and_a_number_asks_once_more() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "mine");
    let id = held(&house);
    let before = house.read("home/.cursor/permissions.json");
    let mut terminal = watch(&house, WIDE);
    settled(&mut terminal);
    terminal.press("n");
    terminal.shows("narrowed entries");
    terminal.press(ESCAPE);
    terminal.hides("narrowed entries");
    // A number means nothing by now, and neither does a yes.
    terminal.press("1");
    terminal.press("y");
    terminal.press("n");
    terminal.shows("narrowed entries");
    terminal.press("1");
    terminal.shows("permanent answer");
    assert!(terminal.text().contains("notes:write_note where"), "{}", terminal.text());
    terminal.press(ESCAPE);
    terminal.shows("nothing was answered");
    assert_eq!((state(&house, &id).as_str(), house.read("home/.cursor/permissions.json")), ("held", before));
    terminal.press("n");
    terminal.shows("narrowed entries");
    terminal.press("1");
    terminal.shows("y yes");
    terminal.press("y");
    terminal.shows("approved by");
    assert!(house.read("home/.cursor/permissions.json").contains("notes:write_note where"));
}

#[test]
fn review_3_always_asks_once_more() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "mine");
    let id = held(&house);
    let before = house.read("home/.cursor/permissions.json");
    let mut terminal = watch(&house, WIDE);
    settled(&mut terminal);
    for (key, entry) in [("t", "notes:write_note"), ("S", "notes:*"), ("D", "notes:write_note")] {
        for no in [ESCAPE, "n", "\r"] {
            terminal.press(key);
            terminal.shows("permanent answer");
            assert!(terminal.text().contains(entry), "{}", terminal.text());
            terminal.press(no);
            terminal.hides("permanent answer");
        }
    }
    // What is typed before the question can be read is no answer to it.
    terminal.press("ty");
    terminal.shows("permanent answer");
    terminal.press(ESCAPE);
    terminal.shows("nothing was answered");
    assert_eq!((state(&house, &id).as_str(), house.read("home/.cursor/permissions.json")), ("held", before));
    terminal.press("t");
    terminal.shows("y yes");
    terminal.press("y");
    terminal.shows("approved by");
    assert!(house.read("home/.cursor/permissions.json").contains("notes:write_note"));
    assert!(call(&server, "another").contains("wrote plan"));
}

#[test]
fn review_3_a_denial_by_key_takes_a_note() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "mine");
    let id = held(&house);
    let mut terminal = watch(&house, WIDE);
    settled(&mut terminal);
    terminal.press("d");
    terminal.shows("Enter send");
    terminal.press("never mind");
    terminal.press(ESCAPE);
    terminal.shows("nothing was answered");
    assert_eq!(state(&house, &id), "held");
    terminal.press("d");
    terminal.shows("Enter send");
    terminal.press("nö, ask Q and A first");
    terminal.shows("note: nö, ask Q and A first");
    terminal.press("\r");
    terminal.shows("denied by");
    let said = call(&server, "mine");
    assert!(said.contains("nö, ask Q and A first"), "{said}");
}

#[test]
fn review_3_another_size_shows_the_same_call() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "mine");
    let id = held(&house);
    let mut terminal = watch(&house, (40, 10));
    terminal.shows("scroll to approve");
    presses_until(&mut terminal, "a", "not all of this call was shown");
    terminal.resize(12, 4);
    terminal.shows("too small");
    terminal.press("a");
    terminal.resize(80, 30);
    terminal.shows("a once");
    assert_eq!(state(&house, &id), "held");
    // What was shown counts at every size.
    terminal.resize(40, 10);
    terminal.hides("n narrow  d deny");
    terminal.shows("a once");
    presses_until(&mut terminal, "a", "approved by");
    assert!(call(&server, "mine").contains("wrote plan"));
}

#[test]
fn review_3_a_call_that_is_replaced_under_the_cursor_is_not_answered() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "first");
    let first = held(&house);
    let mut terminal = watch(&house, WIDE);
    settled(&mut terminal);
    terminal.press("t");
    terminal.shows("permanent answer");
    // Somebody else answers it, and another call takes its place.
    assert_eq!(house.run(&["approvals", "deny", &first]).code, 0);
    call(&server, "second");
    let second = held(&house);
    terminal.shows("no longer held");
    for key in ["y", "a", "t", "y", "d", "\r"] {
        terminal.press(key);
    }
    terminal.shows("denied by");
    terminal.press("?");
    terminal.shows("scroll the call by a row");
    assert_eq!(state(&house, &second), "held", "{}", terminal.text());
    terminal.press(ESCAPE);
    terminal.hides("scroll the call by a row");
    terminal.hides("denied by");
    presses_until(&mut terminal, "\t", "\"second\"");
    presses_until(&mut terminal, "a", "approved by");
    assert!(eventually(|| state(&house, &second) == "approved"));
    assert!(!notes(&server).contains("first"));
}

#[test]
fn review_3_whoever_watches_hears_that_the_server_is_gone_and_back() {
    let house = house("");
    let server = Server::start(&house);
    let mut terminal = watch(&house, WIDE);
    drop(server);
    terminal.shows("the server does not answer");
    let server = Server::start(&house);
    terminal.hides("the server does not answer");
    call(&server, "mine");
    settled(&mut terminal);
    terminal.press("a");
    terminal.shows("approved by");
}

/// However it ends, the terminal is as it was before.
#[test]
fn review_3_every_signal_that_ends_watch_leaves_the_terminal_as_it_was() {
    let house = house("");
    let _server = Server::start(&house);
    for signal in ["-HUP", "-INT", "-QUIT", "-TERM"] {
        let mut terminal = watch(&house, WIDE);
        let line = terminal.line();
        assert!(line.contains("-icanon") && line.contains("-echo "), "{signal}: {line}");
        let ended = Command::new("kill").args([signal, &terminal.pid()]).status();
        assert!(ended.is_ok_and(|status| status.success()), "{signal}");
        assert_eq!(terminal.code(), Some(0), "{signal}");
        let all = terminal.all();
        let is_after = |last: &str, before: &str| all.rfind(last) > all.rfind(before);
        assert!(is_after("\u{1b}[?1049l", "\u{1b}[?1049h"), "{signal}: the screen is put back");
        assert!(is_after("\u{1b}[?25h", "\u{1b}[?25l"), "{signal}: the cursor is shown");
    }
}

#[test]
fn review_3_watch_needs_a_terminal_or_json() {
    let house = house("");
    let ran = house.run(&["approvals", "watch"]);
    assert!(ran.code == 2 && ran.err.contains("approvals list") && ran.err.contains("--json"), "{}", ran.err);
}
