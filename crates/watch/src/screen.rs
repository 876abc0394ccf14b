//! The screen as data: rows of styled pieces, made from the state and the size alone.

use jiff::{SignedDuration, Timestamp};

use crate::board::{Board, Entry, Question, who};
use crate::content::{Pane, Row, Style, cut, visible, width};
use crate::describing;
use crate::words;
use toolwarden_core::AnswerScope;

/// Below this nothing useful fits, and nothing can be answered.
const LEAST: Size = Size { width: 20, height: 7 };
/// Rows that are always there: heading, title of the pane, notice, keys.
const FIXED: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    pub width: usize,
    pub height: usize,
}

/// A piece of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    pub style: Style,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Screen {
    pub rows: Vec<Vec<Piece>>,
    /// The rows of the pane are among them.
    pub has_pane: bool,
}

/// How many rows the list and the pane have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    list: usize,
    pub pane: usize,
}

pub fn layout(board: &Board, size: Size) -> Layout {
    let most = match size.height {
        0..=9 => 1,
        10..=15 => 2,
        height => height / 4,
    };
    let (list, input) = match &board.question {
        Some(Question::Note { .. }) => (0, 1),
        Some(_) => (0, 0),
        None => (board.entries.len().clamp(1, most), 0),
    };
    Layout { list, pane: size.height.saturating_sub(FIXED + list + input) }
}

impl Screen {
    fn push(&mut self, pieces: &[(&str, Style)], most: usize) {
        let mut left = most;
        let mut row = Vec::new();
        for (text, style) in pieces {
            let text = cut(text, left);
            left = left.saturating_sub(width(&text));
            row.push(Piece { text, style: *style });
        }
        self.rows.push(row);
    }

    /// Rows of a pane stand as they were wrapped: nothing of them is cut.
    fn push_row(&mut self, row: &Row) {
        let text = Piece { text: row.text.clone(), style: row.style };
        self.rows.push(vec![Piece { text: row.front.clone(), style: Style::Dim }, text]);
    }
}

/// Draws the state. The pane has been fitted to the size.
pub fn render(board: &Board, size: Size) -> Screen {
    let mut screen = Screen::default();
    if size.width < LEAST.width || size.height < LEAST.height {
        screen.push(&[("too small: enlarge", Style::Caution)], size.width);
        screen.rows.resize(size.height.max(1), Vec::new());
        return screen;
    }
    let layout = layout(board, size);
    heading(&mut screen, board, size);
    match &board.question {
        Some(question) => {
            pane(&mut screen, question.pane(), &title_of(question), size.width);
            fill(&mut screen, 2 + layout.pane);
            if let Question::Note { text, .. } = question {
                let text = visible(text);
                let room = size.width.saturating_sub(8);
                // The end of a long note stays in sight.
                let skipped = text
                    .char_indices()
                    .map(|(place, _)| place)
                    .find(|place| text.get(*place..).is_some_and(|rest| width(rest) <= room));
                let tail = text.get(skipped.unwrap_or(0)..).unwrap_or_default();
                screen.push(&[("note: ", Style::Strong), (tail, Style::Plain), ("_", Style::Strong)], size.width);
            }
        }
        None => {
            list(&mut screen, board, layout.list, size.width);
            match &board.open {
                Some(open) if Some(&open.view.id) == board.chosen.as_ref() => {
                    pane(&mut screen, &open.pane, &words::tool(&open.view), size.width);
                }
                _ => screen.push(&[("-".repeat(size.width).as_str(), Style::Dim)], size.width),
            }
            fill(&mut screen, 2 + layout.list + layout.pane);
        }
    }
    screen.has_pane = true;
    screen.push(&[(&board.notice.0, board.notice.1)], size.width);
    screen.push(&[(&keys(board, size.width), Style::Dim)], size.width);
    screen
}

fn fill(screen: &mut Screen, rows: usize) {
    screen.rows.resize(rows.max(screen.rows.len()), Vec::new());
}

fn heading(screen: &mut Screen, board: &Board, size: Size) {
    let calls = match board.held() {
        0 => "no call is held".to_owned(),
        1 => "1 held call".to_owned(),
        held => format!("{held} held calls"),
    };
    let trouble = board.trouble.as_ref().map(|why| format!("  {why}")).unwrap_or_default();
    screen.push(&[("Toolwarden  ", Style::Title), (&calls, Style::Strong), (&trouble, Style::Bad)], size.width);
}

fn title_of(question: &Question) -> String {
    match question {
        Question::Help(_) => "keys",
        Question::Offers { .. } => "narrowed entries",
        Question::Note { .. } => "note",
        Question::Confirm { .. } => "permanent answer",
    }
    .to_owned()
}

fn pane(screen: &mut Screen, pane: &Pane, title: &str, most: usize) {
    let place = pane.place().map(|(from, to, of)| format!(" {from}-{to} of {of} ")).unwrap_or_default();
    let title = cut(&format!("-- {} ", visible(title)), most.saturating_sub(width(&place)));
    let line = "-".repeat(most.saturating_sub(width(&title) + width(&place)));
    screen.push(&[(&title, Style::Title), (&line, Style::Dim), (&place, Style::Strong)], most);
    for row in pane.rows() {
        screen.push_row(row);
    }
}

/// The calls around the chosen one.
fn list(screen: &mut Screen, board: &Board, rows: usize, most: usize) {
    if board.entries.is_empty() {
        return screen.push(&[("  waiting for calls", Style::Dim)], most);
    }
    let place = board.entries.iter().position(|entry| Some(&entry.view.id) == board.chosen.as_ref()).unwrap_or(0);
    let first = place.saturating_sub(rows - 1);
    for entry in board.entries.iter().skip(first).take(rows) {
        let is_chosen = Some(&entry.view.id) == board.chosen.as_ref();
        let mark = if is_chosen { "> " } else { "  " };
        let style = match (&entry.ended, is_chosen) {
            (Some(_), _) => Style::Dim,
            (None, true) => Style::Strong,
            (None, false) => Style::Plain,
        };
        let (age, words, left) = told(entry, board.now);
        let room = most.saturating_sub(width(mark) + 5 + width(&left) + 1);
        let words = cut(&words, room);
        let gap = " ".repeat(room.saturating_sub(width(&words)) + 1);
        let left_style = if entry.ended.is_some() { Style::Caution } else { Style::Dim };
        let pieces =
            [(mark, Style::Title), (&*format!("{age:<5}"), Style::Dim), (&*words, style), (&*gap, Style::Plain)];
        screen.push(&[&pieces[..], &[(&*left, left_style)]].concat(), most);
    }
}

/// Age, what is called and by whom, and what time is left or what became of it.
fn told(entry: &Entry, now: Timestamp) -> (String, String, String) {
    let view = &entry.view;
    let span = |from: &str, is_left: bool| {
        let at: Option<Timestamp> = from.parse().ok();
        at.map(|at| span(if is_left { at.duration_since(now) } else { now.duration_since(at) })).unwrap_or_default()
    };
    let words = format!("{}  {}  {}", visible(&words::tool(view)), who(view), visible(&view.reason));
    let left = match &entry.ended {
        Some((outcome, _)) => outcome.clone(),
        None => format!("{} left", span(&view.expires_at, true)),
    };
    (span(&view.held_at, false), words, left)
}

/// A span of time in the largest unit that fits.
fn span(span: SignedDuration) -> String {
    match span.as_secs().max(0) {
        seconds @ 0..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m", seconds / 60),
        seconds @ 3_600..86_400 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

/// The keys that mean something now, as many as fit.
fn keys(board: &Board, most: usize) -> String {
    let unread = |pane: &Pane, long: &str, short: &str| {
        let rows = pane.left();
        format!("{} ({rows} left)", if most < 70 { short } else { long })
    };
    let mut keys: Vec<String> = Vec::new();
    let mut add = |key: &str| keys.push(key.to_owned());
    match &board.question {
        Some(Question::Help(_)) => add("Esc back"),
        Some(Question::Offers { offers, .. }) => {
            add(&if offers.len() > 1 { format!("1-{} choose", offers.len()) } else { "1 choose".to_owned() });
            add("Esc back");
        }
        Some(Question::Note { .. }) => ["Enter send", "Esc back"].into_iter().for_each(add),
        Some(Question::Confirm { pane, .. }) if pane.left() == 0 => {
            ["y yes", "n no", "Esc back"].into_iter().for_each(add)
        }
        Some(Question::Confirm { pane, .. }) => {
            add(&unread(pane, "scroll to the end to answer", "scroll to answer"));
            add("Esc back");
        }
        None => {
            if let Some(open) = board.live_open() {
                let has = |scope| open.view.offers.iter().any(|offer| offer.scope == scope);
                if open.pane.left() == 0 {
                    add("a once");
                    let scopes = [
                        (AnswerScope::Session, "s session"),
                        (AnswerScope::Tool, "t tool"),
                        (AnswerScope::Server, "S server"),
                    ];
                    scopes.into_iter().filter(|(scope, _)| has(*scope)).for_each(|(_, key)| add(key));
                    if describing::may_narrow(&open.view) {
                        add("n narrow");
                    }
                } else {
                    add(&unread(&open.pane, "scroll to the end to approve", "scroll to approve"));
                }
                ["d deny", "D block"].into_iter().for_each(&mut add);
            }
            if board.entries.len() > 1 {
                add("Tab next");
            }
            ["q quit", "? help"].into_iter().for_each(add);
        }
    }
    fitting(keys, most)
}

/// Drops keys until the rest fits; the first and the last stay.
fn fitting(mut keys: Vec<String>, most: usize) -> String {
    loop {
        let line = keys.join("  ");
        if width(&line) <= most || keys.len() <= 2 {
            return line;
        }
        keys.remove(keys.len() - 2);
    }
}

impl Screen {
    /// In the words of terminals: every row at its place, the rest of it wiped.
    #[must_use]
    pub fn in_escapes(&self, has_colour: bool, is_wiped: bool) -> String {
        let mut text = String::from(if is_wiped { "\u{1b}[2J" } else { "" });
        for (place, row) in self.rows.iter().enumerate() {
            text.push_str(&format!("\u{1b}[{};1H", place + 1));
            for piece in row {
                match code(piece.style).filter(|_| has_colour) {
                    Some(code) => text.push_str(&format!("\u{1b}[{code}m{}\u{1b}[0m", piece.text)),
                    None => text.push_str(&piece.text),
                }
            }
            text.push_str("\u{1b}[K");
        }
        text
    }
}

fn code(style: Style) -> Option<&'static str> {
    Some(match style {
        Style::Plain => return None,
        Style::Dim => "2",
        Style::Strong => "1",
        Style::Good => "1;32",
        Style::Caution => "1;33",
        Style::Bad => "1;31",
        Style::Title => "1;36",
    })
}
