//! The state behind the screen: held calls, the chosen one, and the question that is open.
//!
//! Only `send` makes an answer, and only for the call that is on the screen: by its id and digest, and for an approval
//! only after every row of it was drawn. A call that goes or changes takes its open question with it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use toolwarden_control::{ApprovalView, NarrowedOffer};
use toolwarden_core::{AnswerScope, ApprovalState};

use crate::content::{Pane, Seen, Style, visible};
use crate::describing;
use crate::keys::Key;
use crate::screen::{self, Screen, Size};
use crate::words;

/// How long a call that was answered stays in the list.
const GOODBYE: SignedDuration = SignedDuration::from_secs(5);
/// A call that came up by itself is not answered by a key that was meant for something else.
const MOMENT: SignedDuration = SignedDuration::from_millis(500);
const LONGEST_NOTE: usize = 1_000;
const NOTHING_ANSWERED: &str = "nothing was answered";
const NOT_SHOWN: &str = "not all of this call was shown yet: scroll to the end to approve";

/// What is to be done outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wish {
    Nothing,
    Leave,
    Suspend,
    Redraw,
    /// The narrowed entries for this call are wanted.
    Offers(String),
    Send(Box<Answer>),
}

/// An answer, bound to the call that was on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub id: String,
    pub digest: String,
    pub verb: Verb,
    pub note: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verb {
    Approve { scope: AnswerScope, entry: String, conditions: Vec<String>, free: Vec<String> },
    Deny { remember: bool },
}

impl Answer {
    fn is_approval(&self) -> bool {
        matches!(self.verb, Verb::Approve { .. })
    }

    /// Whether it goes on after this call and this session.
    fn is_permanent(&self) -> bool {
        match &self.verb {
            Verb::Approve { scope, .. } => !matches!(scope, AnswerScope::Once | AnswerScope::Session),
            Verb::Deny { remember } => *remember,
        }
    }
}

/// A call in the list.
#[derive(Debug)]
pub struct Entry {
    pub view: ApprovalView,
    /// What became of it, and until when that is shown.
    pub ended: Option<(String, Timestamp)>,
}

/// The chosen call as it is shown.
#[derive(Debug)]
pub struct Open {
    pub view: ApprovalView,
    pub pane: Pane,
    /// Digest of the text in the pane.
    text: String,
}

#[derive(Debug)]
pub enum Question {
    Help(Pane),
    Offers { pane: Pane, offers: Vec<NarrowedOffer> },
    Note { pane: Pane, answer: Answer, text: String, is_required: bool },
    Confirm { pane: Pane, answer: Answer },
}

impl Question {
    pub fn pane(&self) -> &Pane {
        match self {
            Self::Help(pane) | Self::Offers { pane, .. } | Self::Note { pane, .. } | Self::Confirm { pane, .. } => pane,
        }
    }

    fn pane_mut(&mut self) -> &mut Pane {
        match self {
            Self::Help(pane) | Self::Offers { pane, .. } | Self::Note { pane, .. } | Self::Confirm { pane, .. } => pane,
        }
    }
}

#[derive(Debug)]
pub struct Board {
    pub entries: Vec<Entry>,
    pub chosen: Option<String>,
    pub open: Option<Open>,
    pub question: Option<Question>,
    pub notice: (String, Style),
    /// Why the list may be out of date.
    pub trouble: Option<String>,
    pub now: Timestamp,
    /// Parts of calls that were shown, by id and digest of the text.
    seen: BTreeMap<(String, String), Seen>,
    /// When the chosen call came up by itself, or by another size of the screen; none where a person chose it.
    came_up: Option<Timestamp>,
    /// The size that was drawn last, and whether that is another one than before.
    size: Option<Size>,
    is_resized: bool,
    is_sending: bool,
    /// The chosen call has to be looked up.
    is_stale: bool,
    /// What was typed before the question could be read is no answer to it.
    drops_input: bool,
}

impl Board {
    pub fn new(now: Timestamp) -> Self {
        Self {
            entries: Vec::new(),
            chosen: None,
            open: None,
            question: None,
            notice: (String::new(), Style::Plain),
            trouble: None,
            now,
            seen: BTreeMap::new(),
            came_up: None,
            size: None,
            is_resized: false,
            is_sending: false,
            is_stale: false,
            drops_input: false,
        }
    }

    /// Takes over the calls that are held now, and those that are no longer.
    pub fn take(&mut self, mut calls: Vec<ApprovalView>, ended: &[ApprovalView]) {
        let was_empty = self.entries.iter().all(|entry| entry.ended.is_some());
        let mut entries = Vec::new();
        for entry in std::mem::take(&mut self.entries) {
            if let Some(place) = calls.iter().position(|view| view.id == entry.view.id) {
                if entry.ended.is_some() {
                    self.forget(&entry.view.id);
                }
                entries.push(Entry { view: calls.remove(place), ended: None });
            } else if entry.ended.is_some() {
                entries.push(entry);
            } else {
                let view = ended.iter().find(|view| view.id == entry.view.id).cloned().unwrap_or(entry.view);
                let until = self.now.checked_add(GOODBYE).unwrap_or(Timestamp::MAX);
                entries.push(Entry { ended: Some((outcome(&view), until)), view });
            }
        }
        entries.extend(calls.into_iter().map(|view| Entry { view, ended: None }));
        self.entries = entries;
        self.trouble = None;
        self.is_stale = self.chosen.is_some();
        self.tidy();
        if self.chosen.is_none() && was_empty {
            let first = self.live().next().map(|entry| entry.view.id.clone());
            self.choose(first);
            self.came_up = Some(self.now);
        }
    }

    /// A call that was gone and is back is read again.
    fn forget(&mut self, id: &str) {
        self.seen.retain(|(known, _), _| known != id);
        if self.open.as_ref().is_some_and(|open| open.view.id == id) {
            self.open = None;
        }
    }

    /// Time passes: calls that ended leave the list.
    pub fn tick(&mut self, now: Timestamp) {
        self.now = now;
        self.tidy();
    }

    fn tidy(&mut self) {
        let now = self.now;
        self.entries.retain(|entry| entry.ended.as_ref().is_none_or(|(_, until)| *until > now));
        let entries = &self.entries;
        self.seen.retain(|(id, _), _| entries.iter().any(|entry| entry.view.id == *id));
        let chosen = self.chosen.as_ref().and_then(|id| entries.iter().find(|entry| entry.view.id == *id));
        let ended = match chosen {
            None => Some(None),
            Some(Entry { ended: Some((words, _)), .. }) => Some(Some(words.clone())),
            Some(_) => None,
        };
        let Some(words) = ended else { return };
        if !matches!(self.question, None | Some(Question::Help(_))) {
            self.question = None;
            self.say("the call this question was about is no longer held", Style::Caution);
        }
        if words.is_none() {
            (self.chosen, self.open) = (None, None);
            if self.notice.1 == Style::Caution && self.question.is_none() {
                self.say("", Style::Plain);
            }
        }
    }

    fn live(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.ended.is_none())
    }

    /// The chosen call as it is shown, while it is held.
    pub fn live_open(&self) -> Option<&Open> {
        let open = self.open.as_ref().filter(|open| Some(&open.view.id) == self.chosen.as_ref())?;
        self.live().any(|entry| entry.view.id == open.view.id).then_some(open)
    }

    pub fn held(&self) -> usize {
        self.live().count()
    }

    pub fn say(&mut self, text: &str, style: Style) {
        self.notice = (visible(text), style);
    }

    /// The list could not be brought up to date.
    pub fn fails(&mut self, why: &str) {
        self.trouble = Some(visible(why));
    }

    fn choose(&mut self, id: Option<String>) {
        if let Some(open) = self.open.take() {
            self.seen.insert((open.view.id, open.text), open.pane.seen);
        }
        (self.is_stale, self.came_up, self.chosen) = (id.is_some(), None, id);
    }

    fn step(&mut self, is_forward: bool) {
        let place = self.entries.iter().position(|entry| Some(&entry.view.id) == self.chosen.as_ref());
        let last = self.entries.len().saturating_sub(1);
        let next = match place {
            None => 0,
            Some(place) if is_forward => {
                if place == last {
                    0
                } else {
                    place + 1
                }
            }
            Some(place) => place.checked_sub(1).unwrap_or(last),
        };
        let id = self.entries.get(next).map(|entry| entry.view.id.clone());
        if id != self.chosen {
            self.choose(id);
            self.say("", Style::Plain);
        }
    }

    /// The call that has to be looked up, once.
    pub fn wanted(&mut self) -> Option<String> {
        std::mem::take(&mut self.is_stale).then(|| self.chosen.clone()).flatten()
    }

    /// The chosen call was looked up.
    pub fn looked_up(&mut self, view: ApprovalView) {
        if Some(&view.id) != self.chosen.as_ref() || view.state != ApprovalState::Held {
            return;
        }
        let content = describing::call(&view);
        let text = format!("{} {}", content.digest(), view.digest);
        match &mut self.open {
            Some(open) if open.view.id == view.id && open.text == text => open.view = view,
            former => {
                let changed = former.as_ref().is_some_and(|open| open.view.id == view.id);
                let seen = self.seen.remove(&(view.id.clone(), text.clone())).unwrap_or_default();
                self.open = Some(Open { view, pane: Pane::new(content, seen), text });
                if changed {
                    self.question = None;
                    self.came_up = Some(self.now);
                    self.say("this call changed: read it again", Style::Caution);
                }
            }
        }
    }

    /// Narrowed entries were looked up.
    pub fn offered(&mut self, view: &ApprovalView) {
        let Ok(open) = self.answerable() else { return };
        if open.view.id != view.id || open.view.digest != view.digest || self.question.is_some() {
            return;
        }
        if view.narrowed.is_empty() {
            return self.say("there is nothing to narrow such calls by", Style::Caution);
        }
        let offers: Vec<_> = view.narrowed.iter().take(9).cloned().collect();
        let pane = Pane::new(describing::offers(view, &offers), Seen::default());
        self.ask(Question::Offers { pane, offers });
    }

    fn ask(&mut self, question: Question) {
        self.say("", Style::Plain);
        self.drops_input = !matches!(question, Question::Note { .. } | Question::Help(_));
        self.question = Some(question);
    }

    /// Whether what was typed so far is to be forgotten.
    pub fn drops_input(&mut self) -> bool {
        std::mem::take(&mut self.drops_input)
    }

    /// An answer came back, or did not.
    pub fn answered(&mut self, outcome: Result<String, String>) {
        self.is_sending = false;
        match outcome {
            Ok(words) => self.say(&words, Style::Good),
            Err(words) => self.say(&words, Style::Bad),
        }
    }

    /// The call on the screen, if an answer to it can count.
    fn answerable(&self) -> Result<&Open, &'static str> {
        let chosen = self.chosen.as_ref().ok_or("choose a call first: Tab")?;
        if !self.live().any(|entry| entry.view.id == *chosen) {
            return Err("this call is no longer held");
        }
        if self.is_sending {
            return Err("an answer is on its way");
        }
        if self.came_up.is_some_and(|since| self.now.duration_since(since) < MOMENT) {
            return Err("this call has just come up: read it first");
        }
        self.live_open().ok_or("this call is being looked up")
    }

    /// The same, if all of it was on the screen.
    fn approvable(&self) -> Result<&Open, &'static str> {
        self.answerable().and_then(|open| if open.pane.is_read() { Ok(open) } else { Err(NOT_SHOWN) })
    }

    fn answer(open: &Open, verb: Verb) -> Answer {
        Answer { id: open.view.id.clone(), digest: open.view.digest.clone(), verb, note: None }
    }

    fn approve(&mut self, scope: AnswerScope) -> Wish {
        let answer = self.approvable().and_then(|open| {
            let is_offered = open.view.offers.iter().any(|offer| offer.scope == scope);
            let entry = describing::entry(&open.view, scope);
            let verb = Verb::Approve { scope, entry, conditions: Vec::new(), free: Vec::new() };
            is_offered.then(|| Self::answer(open, verb)).ok_or("this answer is not offered for this call")
        });
        self.begin(answer)
    }

    fn deny(&mut self, remember: bool) -> Wish {
        let answer = self.answerable().map(|open| Self::answer(open, Verb::Deny { remember }));
        self.begin(answer)
    }

    /// Asks what has to be asked before an answer is sent.
    fn begin(&mut self, answer: Result<Answer, &'static str>) -> Wish {
        let (answer, open) = match (answer, &self.open) {
            (Ok(answer), Some(open)) => (answer, open),
            (Err(why), _) => return self.refuse(why),
            (Ok(_), None) => return self.refuse("this call is being looked up"),
        };
        let is_required = open.view.needs.reason;
        let is_plain_denial = !answer.is_approval() && !answer.is_permanent();
        if is_required || is_plain_denial {
            let pane = Pane::new(describing::note(&open.view, &answer, is_required), Seen::default());
            self.ask(Question::Note { pane, answer, text: String::new(), is_required });
            return Wish::Nothing;
        }
        self.go_on(answer)
    }

    /// The note is there, or none is needed.
    fn go_on(&mut self, answer: Answer) -> Wish {
        match &self.open {
            Some(open) if answer.is_permanent() => {
                let pane = Pane::new(describing::confirmation(&open.view, &answer), Seen::default());
                self.ask(Question::Confirm { pane, answer });
                Wish::Nothing
            }
            _ => self.send(answer),
        }
    }

    /// The only place that makes an answer.
    fn send(&mut self, answer: Answer) -> Wish {
        let found = if answer.is_approval() { self.approvable() } else { self.answerable() };
        match found {
            Err(why) => self.refuse(why),
            Ok(open) if open.view.id != answer.id || open.view.digest != answer.digest => {
                self.refuse("this is another call than the one that was shown")
            }
            Ok(_) => {
                self.question = None;
                self.is_sending = true;
                self.say("sending the answer", Style::Dim);
                Wish::Send(Box::new(answer))
            }
        }
    }

    fn refuse(&mut self, why: &str) -> Wish {
        self.say(why, Style::Caution);
        Wish::Nothing
    }

    fn leave_question(&mut self) -> Wish {
        let was_help = matches!(self.question, Some(Question::Help(_)));
        self.question = None;
        self.say(if was_help { "" } else { NOTHING_ANSWERED }, Style::Dim);
        Wish::Nothing
    }

    /// A key was pressed.
    pub fn press(&mut self, key: &Key) -> Wish {
        match key {
            Key::Interrupt => return Wish::Leave,
            Key::Suspend => return Wish::Suspend,
            Key::Redraw => return Wish::Redraw,
            _ => {}
        }
        match self.question {
            Some(Question::Note { .. }) => self.type_note(key),
            Some(_) => self.press_in_question(key),
            None => self.press_on_list(key),
        }
    }

    fn press_on_list(&mut self, key: &Key) -> Wish {
        match key {
            Key::Char('a') => return self.approve(AnswerScope::Once),
            Key::Char('s') => return self.approve(AnswerScope::Session),
            Key::Char('t') => return self.approve(AnswerScope::Tool),
            Key::Char('S' | 'v') => return self.approve(AnswerScope::Server),
            Key::Char('n') => {
                return match self.approvable() {
                    Err(why) => self.refuse(why),
                    Ok(open) if !describing::may_narrow(&open.view) => {
                        self.refuse("no entry would help: a person is asked each time")
                    }
                    Ok(open) => Wish::Offers(open.view.id.clone()),
                };
            }
            Key::Char('d') => return self.deny(false),
            Key::Char('D') => return self.deny(true),
            Key::Char('?' | 'h') => self.ask(Question::Help(Pane::new(describing::help(), Seen::default()))),
            Key::Char('q') => return Wish::Leave,
            Key::Next => self.step(true),
            Key::Previous => self.step(false),
            _ => {
                if let Some(open) = &mut self.open {
                    scroll(&mut open.pane, key);
                }
            }
        }
        Wish::Nothing
    }

    fn press_in_question(&mut self, key: &Key) -> Wish {
        let Some(question) = &mut self.question else { return Wish::Nothing };
        if scroll(question.pane_mut(), key) {
            return Wish::Nothing;
        }
        match (question, key) {
            (Question::Help(_), Key::Char('?' | 'h' | 'q') | Key::Escape | Key::Enter)
            | (Question::Offers { .. }, Key::Char('n' | 'q') | Key::Escape | Key::Enter)
            | (Question::Confirm { .. }, Key::Char('n' | 'N' | 'q') | Key::Escape | Key::Enter) => {
                self.leave_question()
            }
            (Question::Confirm { pane, answer }, Key::Char('y' | 'Y')) => {
                let (is_read, answer) = (pane.is_read(), answer.clone());
                if is_read { self.send(answer) } else { self.refuse("scroll to the end of the question first") }
            }
            (Question::Offers { offers, .. }, Key::Char(digit @ '1'..='9')) => {
                let place = digit.to_digit(10).and_then(|digit| usize::try_from(digit).ok()).unwrap_or(1) - 1;
                let offer = offers.get(place).cloned();
                self.narrow(offer)
            }
            _ => Wish::Nothing,
        }
    }

    fn narrow(&mut self, offer: Option<NarrowedOffer>) -> Wish {
        let Some(NarrowedOffer { entry, conditions, free, .. }) = offer else {
            return self.refuse("there is no such entry");
        };
        let verb = Verb::Approve { scope: AnswerScope::Narrowed, entry, conditions, free };
        let answer = self.approvable().map(|open| Self::answer(open, verb));
        self.begin(answer)
    }

    fn type_note(&mut self, key: &Key) -> Wish {
        let Some(Question::Note { pane, answer, text, is_required }) = &mut self.question else { return Wish::Nothing };
        match key {
            Key::Escape => return self.leave_question(),
            Key::Enter if *is_required && text.trim().is_empty() => return self.refuse("a note is needed here"),
            Key::Enter => {
                let note = Some(text.trim().to_owned()).filter(|note| !note.is_empty());
                let answer = Answer { note, ..answer.clone() };
                return self.go_on(answer);
            }
            Key::Char(letter) => text.push(*letter),
            Key::Paste(pasted) => text.push_str(&pasted.split_whitespace().collect::<Vec<_>>().join(" ")),
            Key::Backspace => drop(text.pop()),
            Key::Clear => text.clear(),
            other => drop(scroll(pane, other)),
        }
        text.truncate(text.floor_char_boundary(LONGEST_NOTE));
        Wish::Nothing
    }

    /// The screen at a size.
    pub fn draw(&mut self, size: Size) -> Screen {
        self.is_resized = self.size.replace(size).is_some_and(|before| before != size);
        let layout = screen::layout(self, size);
        match &mut self.question {
            Some(question) => question.pane_mut().fit(size.width, layout.pane),
            None => {
                if let Some(open) = &mut self.open {
                    open.pane.fit(size.width, layout.pane);
                }
            }
        }
        screen::render(self, size)
    }

    /// The screen was drawn on the terminal, at its size.
    pub fn was_drawn(&mut self, screen: &Screen) {
        if !screen.has_pane {
            return;
        }
        match &mut self.question {
            Some(question) => question.pane_mut().was_drawn(),
            None => {
                if let Some(open) = &mut self.open {
                    let was_read = open.pane.is_read();
                    open.pane.was_drawn();
                    // A key that was pressed before the size changed was pressed before the rest could be read.
                    if self.is_resized && !was_read && open.pane.is_read() {
                        self.came_up = Some(self.now);
                    }
                }
            }
        }
    }
}

/// Scrolls, if the key is for that.
fn scroll(pane: &mut Pane, key: &Key) -> bool {
    let page = pane.page();
    match key {
        Key::Up | Key::Char('k') => pane.scroll_by(-1),
        Key::Down | Key::Char('j') => pane.scroll_by(1),
        Key::PageUp => pane.scroll_by(-page),
        Key::PageDown => pane.scroll_by(page),
        Key::Home | Key::Char('g') => pane.scroll_to(0),
        Key::End | Key::Char('G') => pane.go_to_end(),
        Key::Char(' ') => pane.go_to_unseen(),
        _ => return false,
    }
    true
}

/// What became of a call that is no longer held.
fn outcome(view: &ApprovalView) -> String {
    match &view.answer {
        Some(answer) => {
            let what = if answer.is_approval { "approved" } else { "denied" };
            format!("{what} by {}", visible(&answer.by))
        }
        None if view.state == ApprovalState::Held => "no longer held".to_owned(),
        None => view.state.as_str().to_owned(),
    }
}

/// Who calls, and by which program where it is known.
pub fn who(view: &ApprovalView) -> String {
    let who = words::who(view);
    match &view.caller.client {
        Some(client) => visible(&format!("{who} ({client})")),
        None => visible(&who),
    }
}

#[cfg(test)]
#[path = "board_tests.rs"]
mod tests;
