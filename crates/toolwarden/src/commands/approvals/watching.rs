//! `approvals watch`: held calls as they come, answered by key.
//!
//! A key acts on the call that was on the screen when it was pressed: the choice is by id, and where that call is gone
//! nothing is chosen until a person chooses again.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::time::Duration;

use anyhow::Result;
use toolwarden_control::operations::{
    ApprovalsApprove, ApprovalsDeny, ApprovalsList, ApprovalsShow, approvals_answer, approvals_approve, approvals_deny,
    approvals_list, approvals_show,
};
use toolwarden_control::{ApprovalView, NarrowedOffer};
use toolwarden_core::AnswerScope;
use toolwarden_core::name::shown_json;

use super::{in_words, showing};
use crate::clerk::Desk;
use crate::environment::{self, RawTerminal};
use crate::output::{self, Exit, in_one_line, shorten};

const PAUSE: Duration = Duration::from_millis(500);
const PAGE: u32 = 200;
const MOST_PAGES: usize = 25;
const KEYS: &str = "↑↓ choose · a approve once · s session · n such calls · t tool always · d deny · q quit";

pub fn watch(desk: &Desk, json: bool) -> Result<Exit> {
    match RawTerminal::enter().filter(|_| !json) {
        Some(terminal) => by_key(desk, terminal),
        None => lines(desk, json),
    }
}

/// What waits, if anything moved since it was last looked at; whoever waits longest comes first. Page by page, so that one
/// caller's many calls hide nobody else's.
fn held(desk: &Desk, seen: &mut Option<u64>) -> Result<Option<Vec<ApprovalView>>> {
    let asked = approvals_list::Request { limit: Some(PAGE), since: *seen, ..approvals_list::Request::default() };
    let mut page = desk.ask::<ApprovalsList>(asked)?;
    if *seen == Some(page.version) {
        return Ok(None);
    }
    *seen = Some(page.version);
    let mut found = page.approvals;
    for _ in 1..MOST_PAGES {
        let Some(after) = page.next else { break };
        let asked =
            approvals_list::Request { limit: Some(PAGE), after: Some(after), ..approvals_list::Request::default() };
        page = desk.ask::<ApprovalsList>(asked)?;
        found.append(&mut page.approvals);
    }
    found.reverse();
    Ok(Some(found))
}

/// One line for each call that comes, until nobody reads.
fn lines(desk: &Desk, json: bool) -> Result<Exit> {
    let (mut known, mut seen) = (BTreeSet::new(), None);
    loop {
        let Some(found) = held(desk, &mut seen)? else {
            desk.pause(PAUSE);
            continue;
        };
        let now: BTreeSet<String> = found.iter().map(|view| view.id.clone()).collect();
        for view in found.iter().filter(|view| !known.contains(&view.id)) {
            let line = if json {
                shown_json(&format!("{}\n", serde_json::to_string(view)?)).into_owned()
            } else {
                let arguments = in_one_line(&view.arguments.to_string());
                format!("{}  {}  {}  {}  {arguments}\n", view.id, showing::who(view), showing::tool(view), view.reason)
            };
            if !output::text_read(&line)? {
                return Ok(Exit::Done);
            }
        }
        known = now;
        desk.pause(PAUSE);
    }
}

/// What a key means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Up,
    Down,
    Approve(AnswerScope),
    /// Shows what a narrowed answer could ask for; a number chooses one.
    Narrow,
    Number(usize),
    Deny,
    Quit,
}

fn key(bytes: &[u8]) -> Option<Key> {
    Some(match bytes {
        b"\x1b[A" | b"\x1bOA" | b"k" => Key::Up,
        b"\x1b[B" | b"\x1bOB" | b"j" => Key::Down,
        b"a" => Key::Approve(AnswerScope::Once),
        b"s" => Key::Approve(AnswerScope::Session),
        b"t" => Key::Approve(AnswerScope::Tool),
        b"n" => Key::Narrow,
        [number @ b'1'..=b'9'] => Key::Number(usize::from(number - b'1')),
        b"d" => Key::Deny,
        // Ctrl-C and Ctrl-D are keys here.
        b"q" | b"\x03" | b"\x04" => Key::Quit,
        _ => return None,
    })
}

/// What is on the screen.
#[derive(Debug, Default)]
struct Board {
    calls: Vec<ApprovalView>,
    chosen: Option<String>,
    message: String,
    /// How many offers of the chosen one were on the screen as a whole.
    offers: usize,
}

impl Board {
    /// Takes over what waits now. A choice stays with its call, and goes with it.
    fn take(&mut self, calls: Vec<ApprovalView>) {
        let was_empty = self.calls.is_empty();
        // What was offered for the chosen one stays as it was shown: a number means what it meant.
        let offered = self.chosen().map(|view| (view.id.clone(), view.narrowed.clone()));
        self.calls = calls;
        if let Some((id, narrowed)) = offered {
            self.offer(&id, narrowed);
        }
        let is_there = |id: &String| self.calls.iter().any(|view| view.id == *id);
        if !self.chosen.as_ref().is_some_and(is_there) {
            self.chosen = self.calls.first().filter(|_| was_empty).map(|view| view.id.clone());
        }
    }

    fn chosen(&self) -> Option<&ApprovalView> {
        self.calls.iter().find(|view| Some(&view.id) == self.chosen.as_ref())
    }

    fn offer(&mut self, id: &str, narrowed: Vec<NarrowedOffer>) {
        if let Some(view) = self.calls.iter_mut().find(|view| view.id == id) {
            view.narrowed = narrowed;
        }
    }

    fn step(&mut self, down: i64) {
        let place = self.calls.iter().position(|view| Some(&view.id) == self.chosen.as_ref());
        let last = self.calls.len().saturating_sub(1);
        let next = match place {
            None => 0,
            Some(place) if down > 0 => (place + 1).min(last),
            Some(place) => place.saturating_sub(1),
        };
        self.chosen = self.calls.get(next).map(|view| view.id.clone());
    }

    /// The lines of the screen, none wider or more than fit; and how many offers stand there as a whole.
    fn lines(&self, width: usize, height: usize) -> (Vec<String>, usize) {
        let (room, mut offers) = (height.saturating_sub(2), 0);
        let mut lines = vec![format!("Toolwarden · {} held", self.calls.len()), String::new()];
        let most = (height / 2).max(3);
        let place = self.calls.iter().position(|view| Some(&view.id) == self.chosen.as_ref()).unwrap_or(0);
        for view in self.calls.iter().skip(place.saturating_sub(most - 1)).take(most) {
            let mark = if Some(&view.id) == self.chosen.as_ref() { "▶" } else { " " };
            let arguments = in_one_line(&view.arguments.to_string());
            lines.push(format!("{mark} {}  {}  {arguments}", showing::who(view), showing::tool(view)));
        }
        if self.calls.is_empty() {
            lines.push("  no call waits for an answer".to_owned());
        }
        lines.push(String::new());
        if let Some(view) = self.chosen() {
            for (place, offer) in view.narrowed.iter().take(9).enumerate() {
                let words = format!("  {}  always with {}", place + 1, in_one_line(&offer.in_words()));
                let offered = wrapped(&words, width);
                // What is not on the screen as a whole cannot be chosen.
                if lines.len() + offered.len() >= room {
                    break;
                }
                lines.extend(offered);
                offers = place + 1;
            }
            if offers > 0 {
                lines.push(String::new());
            }
            // What has a number is not said twice.
            let view = ApprovalView { narrowed: Vec::new(), ..view.clone() };
            lines.extend(showing::plain(&view).lines().map(str::to_owned));
        }
        if lines.len() > room {
            lines.truncate(room.saturating_sub(1));
            lines.push("  … more: `toolwarden approvals show ID` has all of it".to_owned());
        }
        lines.resize(room, String::new());
        lines.push(self.message.clone());
        lines.push(KEYS.to_owned());
        (lines.iter().map(|line| shorten(line, width)).collect(), offers)
    }
}

/// A line in as many as it takes.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let letters: Vec<char> = line.chars().collect();
    letters.chunks(width.max(20)).map(|chunk| chunk.iter().collect()).collect()
}

fn by_key(desk: &Desk, terminal: RawTerminal) -> Result<Exit> {
    let (mut board, mut seen) = (Board::default(), None);
    loop {
        if let Some(calls) = held(desk, &mut seen)? {
            board.take(calls);
        }
        show(&mut board)?;
        match terminal.key().as_deref().and_then(key) {
            None => {}
            Some(Key::Quit) => break,
            Some(Key::Up) => board.step(-1),
            Some(Key::Down) => board.step(1),
            Some(Key::Approve(scope)) => board.message = approve(desk, &board, scope, None),
            Some(Key::Narrow) => {
                board.message = narrow(desk, &mut board);
                show(&mut board)?;
                // What was pressed before anybody could read the offers is no answer to them.
                let _ = terminal.key();
            }
            Some(Key::Number(place)) => board.message = approve(desk, &board, AnswerScope::Narrowed, Some(place)),
            Some(Key::Deny) => board.message = deny(desk, &board),
        }
    }
    drop(terminal);
    Ok(Exit::Done)
}

const CHOOSE: &str = "choose a call first";

/// Permits the chosen call; says what came of it.
fn approve(desk: &Desk, board: &Board, scope: AnswerScope, place: Option<usize>) -> String {
    let Some(view) = board.chosen() else { return CHOOSE.to_owned() };
    let mut request = approvals_approve::Request { id: view.id.clone(), scope: Some(scope), ..<_>::default() };
    if let Some(place) = place {
        let Some(offer) = view.narrowed.get(place).filter(|_| place < board.offers) else {
            return "n shows what there is to choose; what does not fit the screen is for `approvals show`".to_owned();
        };
        (request.conditions, request.free) = (offer.conditions.clone(), offer.free.clone());
    }
    came_of(desk.ask::<ApprovalsApprove>(request))
}

fn deny(desk: &Desk, board: &Board) -> String {
    let Some(id) = board.chosen().map(|view| view.id.clone()) else { return CHOOSE.to_owned() };
    let request = approvals_deny::Request { id, remember: false, note: None, take_back: false };
    came_of(desk.ask::<ApprovalsDeny>(request))
}

fn came_of(done: Result<approvals_answer::Outcome>) -> String {
    match done {
        Ok(outcome) => outcome.not_done.clone().unwrap_or_else(|| in_one_line(&in_words(&outcome))),
        Err(error) => in_one_line(&format!("{error:#}")),
    }
}

/// Looks up what a narrowed answer to the chosen call could ask for.
fn narrow(desk: &Desk, board: &mut Board) -> String {
    let Some(id) = board.chosen().map(|view| view.id.clone()) else { return CHOOSE.to_owned() };
    match desk.ask::<ApprovalsShow>(approvals_show::Request { id: id.clone(), narrowed: true }) {
        Ok(view) if view.narrowed.is_empty() => "there is nothing to narrow such calls by".to_owned(),
        Ok(view) => {
            board.offer(&id, view.narrowed);
            "a number permits the call, and such calls from now on".to_owned()
        }
        Err(error) => in_one_line(&format!("{error:#}")),
    }
}

fn show(board: &mut Board) -> Result<()> {
    let (width, height) = (environment::terminal_width(), environment::terminal_height());
    let mut text = String::from("\u{1b}[H");
    let (lines, offers) = board.lines(width, height);
    board.offers = offers;
    for (place, line) in lines.iter().enumerate() {
        // The rest of each line is wiped; no line break after the last, which would scroll.
        text.push_str(if place == 0 { "" } else { "\r\n" });
        text.push_str(line);
        text.push_str("\u{1b}[K");
    }
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

impl RawTerminal {
    /// The key that was pressed; none where none was for a moment.
    fn key(&self) -> Option<Vec<u8>> {
        let mut bytes = [0; 16];
        let read = std::io::stdin().lock().read(&mut bytes).ok()?;
        bytes.get(..read).filter(|bytes| !bytes.is_empty()).map(<[u8]>::to_vec)
    }
}

#[cfg(test)]
#[path = "watching_tests.rs"]
mod tests;
