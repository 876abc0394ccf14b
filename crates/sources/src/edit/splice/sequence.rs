//! The items of one list or object as tokens, and the text changes that add or remove one.
//!
//! Comments stay where they are: a new item goes behind the comments on its neighbour's line, and a
//! removed item leaves its own behind.

use std::ops::Range;

use jsonc_parser::tokens::{Token, TokenAndRange};

/// A piece of text to replace.
pub(super) type Change = (Range<usize>, String);

/// One item: its first and last token, and its comma.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) first: usize,
    pub(super) last: usize,
    comma: Option<usize>,
}

/// What stands between two brackets.
#[derive(Debug)]
pub(super) struct Sequence {
    open: usize,
    close: usize,
    pub(super) items: Vec<Item>,
}

pub(super) fn is_comment(token: &Token<'_>) -> bool {
    matches!(token, Token::CommentLine(_) | Token::CommentBlock(_))
}

/// Applies changes that do not overlap.
pub(super) fn apply(text: &str, mut changes: Vec<Change>) -> Option<String> {
    changes.sort_by_key(|(range, _)| range.start);
    let mut edited = String::with_capacity(text.len() + 64);
    let mut position = 0;
    for (range, replacement) in changes {
        edited.push_str(text.get(position..range.start)?);
        edited.push_str(&replacement);
        position = range.end;
    }
    edited.push_str(text.get(position..)?);
    Some(edited)
}

/// A look at the tokens around a place.
struct Around<'t> {
    text: &'t str,
    tokens: &'t [TokenAndRange<'t>],
}

impl Around<'_> {
    fn start(&self, index: usize) -> usize {
        self.tokens.get(index).map_or(self.text.len(), |token| token.range.start)
    }

    fn end(&self, index: usize) -> usize {
        self.tokens.get(index).map_or(self.text.len(), |token| token.range.end)
    }

    fn between(&self, from: usize, to: usize) -> &str {
        self.text.get(from..to).unwrap_or_default()
    }

    fn is_comment(&self, index: usize) -> bool {
        self.tokens.get(index).is_some_and(|token| is_comment(&token.token))
    }

    fn is_line_comment(&self, index: usize) -> bool {
        matches!(self.tokens.get(index).map(|token| &token.token), Some(Token::CommentLine(_)))
    }

    /// Whether the token after this one begins on the same line.
    fn next_on_line(&self, index: usize) -> bool {
        !self.between(self.end(index), self.start(index + 1)).contains('\n')
    }

    /// The last of the comments that follow a token on its line, or the token itself.
    fn last_comment_on_line(&self, index: usize) -> usize {
        let mut last = index;
        while self.is_comment(last + 1) && self.next_on_line(last) {
            last += 1;
        }
        last
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// The white space a line begins with.
    fn indent_at(&self, offset: usize) -> String {
        let line = self.between(0, offset).rsplit('\n').next().unwrap_or_default().len();
        let rest = self.between(offset - line, self.text.len());
        rest.chars().take_while(|character| matches!(character, ' ' | '\t')).collect()
    }

    /// One step of indentation as this file does it.
    fn indent_step(&self) -> String {
        let indents = self.text.lines().map(|line| line.len() - line.trim_start_matches([' ', '\t']).len());
        let found = self.text.lines().zip(indents).find(|(line, indent)| *indent > 0 && !line.trim().is_empty());
        found.and_then(|(line, indent)| line.get(..indent)).unwrap_or("  ").to_owned()
    }
}

impl Sequence {
    /// Reads the items behind an opening bracket.
    pub(super) fn read(tokens: &[TokenAndRange<'_>], open: usize) -> Option<Self> {
        let mut items: Vec<Item> = Vec::new();
        let mut depth = 0_usize;
        let mut fresh = true;
        for (index, token) in tokens.iter().enumerate().skip(open + 1) {
            let closes = matches!(token.token, Token::CloseBrace | Token::CloseBracket);
            match &token.token {
                comment if is_comment(comment) => continue,
                _ if closes && depth == 0 => return Some(Self { open, close: index, items }),
                Token::Comma if depth == 0 => {
                    items.last_mut()?.comma = Some(index);
                    fresh = true;
                    continue;
                }
                Token::OpenBrace | Token::OpenBracket => depth += 1,
                _ if closes => depth -= 1,
                _ => {}
            }
            if fresh && !closes {
                items.push(Item { first: index, last: index, comma: None });
                fresh = false;
            } else {
                items.last_mut()?.last = index;
            }
        }
        None
    }

    /// Adds an item at the end, spaced like the one before it.
    pub(super) fn append(&self, text: &str, tokens: &[TokenAndRange<'_>], new: &str) -> Vec<Change> {
        let around = Around { text, tokens };
        let Some(last) = self.items.last() else { return self.append_first(&around, new) };
        let before = around.between(around.end(last.first - 1), around.start(last.first));
        let anchor = around.last_comment_on_line(last.comma.unwrap_or(last.last));
        let space = if before.contains('\n') || around.is_line_comment(anchor) {
            format!("{}{}", around.newline(), around.indent_at(around.start(last.first)))
        } else if self.items.len() > 1 {
            before.to_owned()
        } else {
            " ".to_owned()
        };
        let place = around.end(anchor);
        if last.comma.is_some() {
            return vec![(place..place, format!("{space}{new},"))];
        }
        let end = around.end(last.last);
        if end == place {
            return vec![(end..end, format!(",{space}{new}"))];
        }
        vec![(end..end, ",".to_owned()), (place..place, format!("{space}{new}"))]
    }

    fn append_first(&self, around: &Around<'_>, new: &str) -> Vec<Change> {
        let anchor = around.last_comment_on_line(self.open);
        let place = around.end(anchor);
        let inside = around.between(place, around.start(self.close));
        let space = if inside.contains('\n') {
            let outer = around.indent_at(around.start(self.close));
            format!("{}{outer}{}", around.newline(), around.indent_step())
        } else if anchor == self.open {
            String::new()
        } else {
            " ".to_owned()
        };
        vec![(place..place, format!("{space}{new}"))]
    }

    /// Removes an item with its comma; the last one takes its predecessor's instead.
    pub(super) fn remove(&self, text: &str, tokens: &[TokenAndRange<'_>], position: usize) -> Vec<Change> {
        let around = Around { text, tokens };
        let Some(item) = self.items.get(position) else { return Vec::new() };
        if let Some(comma) = item.comma.filter(|comma| *comma > item.last + 1) {
            // A comment stands before the comma: only the two ends of what was written go.
            let item = around.start(item.first)..around.end(item.last);
            let comma = around.start(comma)..around.end(comma);
            return vec![(item, String::new()), (comma, String::new())];
        }
        let last = item.comma.unwrap_or(item.last);
        let (before, start) = (around.end(item.first - 1), around.start(item.first));
        let begins_line = around.between(before, start).contains('\n');
        let first = position == 0;
        let next_is_close = last + 1 == self.close;
        let cut = if !around.next_on_line(last) || (!begins_line && !first) {
            before..around.end(last)
        } else if next_is_close {
            // Behind a line comment the bracket must stay on its own line.
            let from = if around.is_line_comment(item.first - 1) { start } else { before };
            from..around.end(last)
        } else {
            start..around.start(last + 1)
        };
        let mut changes = vec![(cut, String::new())];
        if let (None, Some(comma)) =
            (item.comma, position.checked_sub(1).and_then(|previous| self.items.get(previous)?.comma))
        {
            changes.push((around.start(comma)..around.end(comma), String::new()));
        }
        changes
    }
}
