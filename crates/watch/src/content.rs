//! Text that has to be read as a whole: escaped, wrapped to a width, and which parts of it were on the screen.
//!
//! Positions are counted in characters of the text, not in rows of the screen, so that another width changes nothing
//! about what was shown.

use std::ops::Range;

use toolwarden_core::Digest;
use toolwarden_core::name::{shown, shown_json};
use unicode_width::UnicodeWidthChar;

/// How a piece of a row looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Dim,
    Strong,
    Good,
    Caution,
    Bad,
    /// The title of a pane.
    Title,
}

/// One line before it is wrapped: words of ours in front, then text that may be anybody's.
#[derive(Debug, Clone)]
struct Line {
    /// In front of the first row.
    front: String,
    /// In front of the rows that follow.
    hang: String,
    text: String,
    style: Style,
    /// Broken between words; else exactly where the row is full.
    by_words: bool,
}

/// Lines that belong together.
#[derive(Debug, Clone, Default)]
pub struct Content {
    lines: Vec<Line>,
}

/// In front of every row of a call's own text, so that none of it can look like words of ours.
const GUTTER: &str = "│ ";
const LABEL: usize = 11;

impl Content {
    /// A line of ours.
    pub fn say(&mut self, text: &str, style: Style) {
        self.push(String::new(), String::new(), visible(text), style, true);
    }

    /// A name and what it stands for.
    pub fn field(&mut self, name: &str, text: &str) {
        let front = format!("{name:<LABEL$}");
        self.push(front, " ".repeat(LABEL), visible(text), Style::Plain, true);
    }

    /// The same for somebody else's words.
    pub fn quote(&mut self, name: &str, text: &str) {
        self.push(
            format!("{name:<LABEL$}{GUTTER}"),
            format!("{:LABEL$}{GUTTER}", ""),
            visible(text),
            Style::Plain,
            true,
        );
    }

    /// JSON as it was sent, line by line behind a gutter.
    pub fn json(&mut self, name: &str, json: &str) {
        self.say(name, Style::Strong);
        for line in json.split('\n') {
            let text = escaped(&shown_json(line), |letter, text| {
                let units =
                    letter.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
                text.push_str(&units);
            });
            self.push(GUTTER.to_owned(), GUTTER.to_owned(), text, Style::Plain, false);
        }
    }

    fn push(&mut self, front: String, hang: String, text: String, style: Style, by_words: bool) {
        self.lines.push(Line { front, hang, text, style, by_words });
    }

    /// Another text has another digest.
    pub fn digest(&self) -> Digest {
        let lines = self.lines.iter().map(|line| format!("{}\n{}\n", line.front, line.text));
        Digest::of_bytes(lines.collect::<String>().as_bytes())
    }
}

/// Somebody's text with nothing in it that hides, moves the cursor or takes no room of its own.
pub fn visible(text: &str) -> String {
    escaped(&shown(text), |letter, text| text.extend(letter.escape_unicode()))
}

fn escaped(text: &str, escape: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        let is_odd = cells(letter) == 0 || (letter.is_whitespace() && letter != ' ');
        if is_odd { escape(letter, &mut out) } else { out.push(letter) }
    }
    out
}

/// Columns a character takes at most: where terminals differ, the wider one counts.
fn cells(letter: char) -> usize {
    letter.width_cjk().unwrap_or(0)
}

/// Columns a text takes at most.
pub fn width(text: &str) -> usize {
    text.chars().map(cells).sum()
}

/// As much of a text as fits, with a mark where something is cut.
pub fn cut(text: &str, most: usize) -> String {
    if width(text) <= most {
        return text.to_owned();
    }
    let (mut out, mut used) = (String::new(), cells('…'));
    for letter in text.chars() {
        used += cells(letter);
        if used > most {
            break;
        }
        out.push(letter);
    }
    if most > 0 {
        out.push('…');
    }
    out
}

/// One row on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub front: String,
    pub text: String,
    pub style: Style,
    /// The part of the whole text that stands here.
    part: Range<usize>,
}

/// Parts of a text that were on the screen.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// In order, apart from each other.
    parts: Vec<Range<usize>>,
}

impl Seen {
    fn add(&mut self, part: Range<usize>) {
        let (mut start, mut end) = (part.start, part.end);
        self.parts.retain(|other| {
            let touches = other.start <= end && start <= other.end;
            if touches {
                (start, end) = (start.min(other.start), end.max(other.end));
            }
            !touches
        });
        let place = self.parts.iter().position(|other| other.start > start).unwrap_or(self.parts.len());
        self.parts.insert(place, start..end);
    }

    fn has(&self, part: &Range<usize>) -> bool {
        self.parts.iter().any(|seen| seen.start <= part.start && part.end <= seen.end)
    }
}

/// A text in a part of the screen, with the place it is scrolled to.
#[derive(Debug, Clone)]
pub struct Pane {
    content: Content,
    rows: Vec<Row>,
    width: usize,
    height: usize,
    top: usize,
    pub seen: Seen,
}

impl Pane {
    pub fn new(content: Content, seen: Seen) -> Self {
        Self { content, rows: Vec::new(), width: 0, height: 0, top: 0, seen }
    }

    /// Wraps the text to this size; the first row that was there stays on the screen.
    pub fn fit(&mut self, width: usize, height: usize) {
        self.height = height;
        if self.width != width {
            let start = self.rows.get(self.top).map(|row| row.part.start);
            self.rows = wrapped(&self.content, width);
            self.width = width;
            self.top = start.and_then(|start| self.rows.iter().rposition(|row| row.part.start <= start)).unwrap_or(0);
        }
        self.top = self.top.min(self.last_top());
    }

    fn last_top(&self) -> usize {
        self.rows.len().saturating_sub(self.height)
    }

    pub fn scroll_to(&mut self, top: usize) {
        self.top = top.min(self.last_top());
    }

    pub fn scroll_by(&mut self, rows: isize) {
        self.scroll_to(self.top.saturating_add_signed(rows));
    }

    /// One row less than fits, so that a row of the former page stays.
    pub fn page(&self) -> isize {
        isize::try_from(self.height.saturating_sub(1).max(1)).unwrap_or(1)
    }

    pub fn go_to_end(&mut self) {
        self.top = self.last_top();
    }

    /// The next rows that were not on the screen yet, below first.
    pub fn go_to_unseen(&mut self) {
        let unseen = |row: &Row| !self.seen.has(&row.part);
        let below = self.rows.iter().skip(self.top).position(unseen).map(|place| place + self.top);
        if let Some(place) = below.or_else(|| self.rows.iter().position(unseen)) {
            // A row of what was read stays, where there is room for it.
            self.scroll_to(place.saturating_sub(usize::from(self.height > 1)));
        }
    }

    /// The rows that are on the screen.
    pub fn rows(&self) -> &[Row] {
        let end = (self.top + self.height).min(self.rows.len());
        self.rows.get(self.top..end).unwrap_or_default()
    }

    /// Where it is scrolled to, of how many rows; none where everything fits.
    pub fn place(&self) -> Option<(usize, usize, usize)> {
        let end = (self.top + self.height).min(self.rows.len());
        (self.rows.len() > self.height).then_some((self.top + 1, end, self.rows.len()))
    }

    /// The rows that are on the screen were drawn there.
    pub fn was_drawn(&mut self) {
        let (first, last) = (self.rows().first(), self.rows().last());
        if let (Some(first), Some(last)) = (first, last) {
            let part = first.part.start..last.part.end;
            self.seen.add(part);
        }
    }

    /// Rows that are not on the screen and were not on it before.
    pub fn left(&self) -> usize {
        let on_screen = self.top..self.top + self.height;
        let rows = self.rows.iter().enumerate().filter(|(place, _)| !on_screen.contains(place));
        rows.filter(|(_, row)| !self.seen.has(&row.part)).count()
    }

    /// Whether every character was drawn on the screen. Never before the text was laid out once.
    pub fn is_read(&self) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| self.seen.has(&row.part))
    }
}

fn wrapped(content: &Content, width: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut start = 0;
    for line in &content.lines {
        let mut rest = line.text.as_str();
        let mut is_first = true;
        loop {
            let mut front = if is_first { line.front.clone() } else { line.hang.clone() };
            // Where nothing would be left for the text, it comes without its margin.
            if self::width(&front) + 8 > width {
                front = cut(&front, width.saturating_sub(8));
            }
            let room = width.saturating_sub(self::width(&front));
            let (text, after) = rest.split_at(fitting(rest, room, line.by_words));
            let count = text.chars().count();
            // A line that ends takes one more position, so that an empty one has to be shown, too.
            let end = start + count + usize::from(after.is_empty());
            rows.push(Row { front, text: text.to_owned(), style: line.style, part: start..end });
            start = end;
            is_first = false;
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    rows
}

/// How many bytes fit: at least one character, whatever the room.
fn fitting(text: &str, room: usize, by_words: bool) -> usize {
    let (mut used, mut end, mut word) = (0, 0, None);
    for (place, letter) in text.char_indices() {
        used += cells(letter);
        if used > room && place > 0 {
            let at_word = word.filter(|word| by_words && *word * 2 > end);
            return at_word.unwrap_or(end);
        }
        end = place + letter.len_utf8();
        if letter == ' ' {
            word = Some(end);
        }
    }
    text.len()
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
