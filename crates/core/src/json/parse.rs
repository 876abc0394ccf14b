//! The strict, non-recursive JSON parser behind `Document`.

use std::borrow::Cow;
use std::collections::HashSet;

use super::view::unescape;
use super::{Fault, JsonError, Kind, Limits, Node};
use crate::weak::{self, Weakness};

/// Parses `text` into nodes and the deepest nesting met.
pub(super) fn parse(text: &str, limits: Limits) -> Result<(Vec<Node>, usize), JsonError> {
    if text.len() > weak::limit(limits.bytes) || u32::try_from(text.len()).is_err() {
        return Err(JsonError { fault: Fault::TooLarge, position: limits.bytes });
    }
    // Room for the nodes of a usual message, so that the vector does not grow step by step.
    let nodes = Vec::with_capacity((text.len() / 8).clamp(4, 64));
    let bytes = text.as_bytes();
    let mut parser = Parser { text, bytes, position: 0, nodes, open: Vec::with_capacity(8), depth: 0, limits };
    let ran = parser.run();
    weak::worked(u64::try_from(parser.nodes.len()).unwrap_or(u64::MAX));
    ran?;
    Ok((parser.nodes, parser.depth))
}

/// Objects with more keys are looked through by hashes.
const FEW_KEYS: usize = 12;

/// What the parser waits for.
enum Expect {
    Value,
    /// A value, or the end of the array just opened.
    FirstItem,
    /// A key, or the end of the object just opened.
    FirstKey,
    Key,
    /// A comma or the end of the innermost container.
    Separator,
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    position: usize,
    nodes: Vec<Node>,
    /// Indexes of the containers not yet closed.
    open: Vec<usize>,
    depth: usize,
    limits: Limits,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), JsonError> {
        let mut expect = Expect::Value;
        loop {
            self.skip_white_space();
            expect = match expect {
                Expect::Value => self.value()?,
                Expect::FirstItem if self.peek() == Some(b']') => self.close(Kind::Array)?,
                Expect::FirstItem => self.value()?,
                Expect::FirstKey if self.peek() == Some(b'}') => self.close(Kind::Object)?,
                Expect::FirstKey | Expect::Key => self.key()?,
                Expect::Separator => match self.separator()? {
                    Some(next) => next,
                    None => return Ok(()),
                },
            };
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.position).copied()
    }

    fn error<T>(&self, fault: Fault) -> Result<T, JsonError> {
        Err(JsonError { fault, position: self.position })
    }

    fn skip_white_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.position += 1;
        }
    }

    fn value(&mut self) -> Result<Expect, JsonError> {
        match self.peek() {
            Some(b'{') => self.open(Kind::Object),
            Some(b'[') => self.open(Kind::Array),
            Some(b'"') => self.string().map(|()| Expect::Separator),
            Some(b't') => self.word("true", Kind::True),
            Some(b'f') => self.word("false", Kind::False),
            Some(b'n') => self.word("null", Kind::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => self.error(Fault::Unexpected),
            None => self.error(Fault::End),
        }
    }

    fn key(&mut self) -> Result<Expect, JsonError> {
        match self.peek() {
            Some(b'"') => self.string()?,
            Some(_) => return self.error(Fault::Unexpected),
            None => return self.error(Fault::End),
        }
        self.skip_white_space();
        match self.peek() {
            Some(b':') => {
                self.position += 1;
                Ok(Expect::Value)
            }
            Some(_) => self.error(Fault::Unexpected),
            None => self.error(Fault::End),
        }
    }

    /// After a value: a comma, the end of a container, or the end of the text (`None`).
    fn separator(&mut self) -> Result<Option<Expect>, JsonError> {
        let innermost = self.open.last().and_then(|index| self.nodes.get(*index)).map(|node| node.kind);
        match (innermost, self.peek()) {
            (None, None) => Ok(None),
            (None, Some(_)) if weak::is(Weakness::Json) => Ok(None),
            (None, Some(_)) => self.error(Fault::Trailing),
            (Some(_), None) => self.error(Fault::End),
            (Some(kind), Some(b',')) => {
                self.position += 1;
                Ok(Some(if kind == Kind::Object { Expect::Key } else { Expect::Value }))
            }
            (Some(Kind::Object), Some(b'}')) => self.close(Kind::Object).map(Some),
            (Some(Kind::Array), Some(b']')) => self.close(Kind::Array).map(Some),
            (Some(_), Some(_)) => self.error(Fault::Unexpected),
        }
    }

    fn open(&mut self, kind: Kind) -> Result<Expect, JsonError> {
        if self.open.len() >= weak::limit(self.limits.depth) {
            return self.error(Fault::TooDeep);
        }
        self.open.push(self.nodes.len());
        self.depth = self.depth.max(self.open.len());
        self.push(kind, self.position);
        self.position += 1;
        Ok(if kind == Kind::Object { Expect::FirstKey } else { Expect::FirstItem })
    }

    fn close(&mut self, kind: Kind) -> Result<Expect, JsonError> {
        self.position += 1;
        let (end, next) = (offset(self.position), offset(self.nodes.len()));
        if let Some(index) = self.open.pop() {
            if kind == Kind::Object && !weak::is(Weakness::Json) {
                self.refuse_duplicate_keys(index)?;
            }
            if let Some(node) = self.nodes.get_mut(index) {
                (node.end, node.next) = (end, next);
            }
        }
        Ok(Expect::Separator)
    }

    fn push(&mut self, kind: Kind, start: usize) {
        let next = offset(self.nodes.len() + 1);
        self.nodes.push(Node { kind, start: offset(start), end: offset(self.position), next });
    }

    fn refuse_duplicate_keys(&self, object: usize) -> Result<(), JsonError> {
        // Most objects have few keys, all of them plain: comparing them costs less than hashing.
        let mut few = [""; FEW_KEYS];
        for (count, (raw, position)) in self.keys(object).enumerate() {
            let Some(place) = few.get_mut(count).filter(|_| !raw.contains('\\')) else {
                return self.refuse_duplicates_of_many(object);
            };
            *place = raw;
            if few.iter().take(count).any(|seen| *seen == raw) {
                return Err(JsonError { fault: Fault::DuplicateKey, position });
            }
        }
        Ok(())
    }

    fn refuse_duplicates_of_many(&self, object: usize) -> Result<(), JsonError> {
        let mut seen: HashSet<Cow<'_, str>> = HashSet::new();
        for (raw, position) in self.keys(object) {
            if !seen.insert(unescape(raw)) {
                return Err(JsonError { fault: Fault::DuplicateKey, position });
            }
        }
        Ok(())
    }

    /// The keys of an object that was just closed, as written, with their positions.
    fn keys(&self, object: usize) -> impl Iterator<Item = (&str, usize)> {
        let mut index = object + 1;
        std::iter::from_fn(move || {
            let key = self.nodes.get(index)?;
            index = self.nodes.get(index + 1).map_or(usize::MAX, |value| value.next as usize);
            let (start, end) = (key.start as usize, key.end as usize);
            Some((self.text.get(start..end).unwrap_or_default(), start))
        })
    }

    fn word(&mut self, word: &str, kind: Kind) -> Result<Expect, JsonError> {
        let start = self.position;
        if !self.bytes.get(start..).is_some_and(|rest| rest.starts_with(word.as_bytes())) {
            return self.error(Fault::Unexpected);
        }
        self.position += word.len();
        self.push(kind, start);
        Ok(Expect::Separator)
    }

    fn number(&mut self) -> Result<Expect, JsonError> {
        let start = self.position;
        self.accept(b'-');
        match self.peek() {
            Some(b'0') => self.position += 1,
            _ => self.digits()?,
        }
        if self.accept(b'.') {
            self.digits()?;
        }
        if self.accept(b'e') || self.accept(b'E') {
            let _ = self.accept(b'+') || self.accept(b'-');
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'0'..=b'9')) {
            return self.error(Fault::Number);
        }
        self.push(Kind::Number, start);
        Ok(Expect::Separator)
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let start = self.position;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.position += 1;
        }
        if self.position == start { self.error(Fault::Number) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<(), JsonError> {
        let start = self.position;
        self.position += 1;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => self.escape()?,
                Some(0..=0x1F) => return self.error(Fault::Control),
                Some(_) => self.position += 1,
                None => return self.error(Fault::End),
            }
        }
        self.position += 1;
        self.push(Kind::String, start);
        Ok(())
    }

    fn escape(&mut self) -> Result<(), JsonError> {
        self.position += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.position += 1;
                Ok(())
            }
            Some(b'u') => self.unicode_escape(),
            _ => self.error(Fault::Escape),
        }
    }

    /// `\u` and four digits, where a high surrogate must be followed by its low one: what cannot be a
    /// character cannot be judged as text.
    fn unicode_escape(&mut self) -> Result<(), JsonError> {
        match self.hex_escape()? {
            _ if weak::is(Weakness::Json) => Ok(()),
            0xD800..=0xDBFF => {
                if !(self.accept(b'\\') && self.peek() == Some(b'u')) {
                    return self.error(Fault::Escape);
                }
                match self.hex_escape()? {
                    0xDC00..=0xDFFF => Ok(()),
                    _ => self.error(Fault::Escape),
                }
            }
            0xDC00..=0xDFFF => self.error(Fault::Escape),
            _ => Ok(()),
        }
    }

    fn hex_escape(&mut self) -> Result<u32, JsonError> {
        let digits = self.bytes.get(self.position + 1..self.position + 5).unwrap_or_default();
        let mut code = 0;
        for byte in digits {
            match char::from(*byte).to_digit(16) {
                Some(digit) => code = code * 16 + digit,
                None => return self.error(Fault::Escape),
            }
        }
        if digits.len() < 4 {
            return self.error(Fault::Escape);
        }
        self.position += 5;
        Ok(code)
    }
}

/// Positions fit: `parse` refuses longer texts, and there are never more nodes than bytes.
fn offset(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}
