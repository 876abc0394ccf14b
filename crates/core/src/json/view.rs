//! Reading a parsed document: values, members and items, without copying what needs no copy.

use std::borrow::Cow;

use super::{Document, Kind, Node};

/// One value of a document.
#[derive(Debug, Clone, Copy)]
pub struct Value<'a> {
    document: &'a Document,
    index: usize,
}

impl<'a> Value<'a> {
    pub(super) fn new(document: &'a Document, index: usize) -> Self {
        Self { document, index }
    }

    fn node(self) -> Option<Node> {
        self.document.nodes.get(self.index).copied()
    }

    #[must_use]
    pub fn kind(self) -> Kind {
        self.node().map_or(Kind::Null, |node| node.kind)
    }

    /// The value as it was written, without surrounding white space.
    #[must_use]
    pub fn raw(self) -> &'a str {
        let range = self.node().map(|node| node.start as usize..node.end as usize);
        range.and_then(|range| self.document.text.get(range)).unwrap_or_default()
    }

    /// Where it stands in the document's text.
    #[must_use]
    pub fn span(self) -> std::ops::Range<usize> {
        self.node().map_or(0..0, |node| node.start as usize..node.end as usize)
    }

    pub(super) fn index(self) -> usize {
        self.index
    }

    /// The text of a string, its escapes resolved.
    #[must_use]
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        (self.kind() == Kind::String).then(|| unescape(self.raw()))
    }

    /// The value of a member; none for anything but an object.
    #[must_use]
    pub fn get(self, key: &str) -> Option<Self> {
        self.entries().find(|(name, _)| unescape(name) == key).map(|(_, value)| value)
    }

    /// The members of an object, keys as written with their quotes; nothing for other kinds.
    #[must_use]
    pub fn entries(self) -> Entries<'a> {
        Entries(self.children(Kind::Object))
    }

    /// The items of an array; nothing for other kinds.
    #[must_use]
    pub fn items(self) -> Items<'a> {
        self.children(Kind::Array)
    }

    fn children(self, kind: Kind) -> Items<'a> {
        let end = self.node().filter(|node| node.kind == kind).map_or(0, |node| node.next as usize);
        Items { document: self.document, index: self.index + 1, end }
    }
}

/// The items of an array.
#[derive(Debug, Clone)]
pub struct Items<'a> {
    document: &'a Document,
    index: usize,
    end: usize,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        if self.index >= self.end {
            return None;
        }
        let value = Value::new(self.document, self.index);
        self.index = value.node()?.next as usize;
        Some(value)
    }
}

/// The members of an object.
#[derive(Debug, Clone)]
pub struct Entries<'a>(Items<'a>);

impl<'a> Iterator for Entries<'a> {
    type Item = (&'a str, Value<'a>);

    fn next(&mut self) -> Option<(&'a str, Value<'a>)> {
        let key = self.0.next()?;
        Some((key.raw(), self.0.next()?))
    }
}

/// The text of a quoted string that the parser accepted.
#[must_use]
pub fn unescape(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(quoted);
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut text = String::with_capacity(inner.len());
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('b') => text.push('\u{8}'),
            Some('f') => text.push('\u{c}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('u') => text.push(unicode(&mut characters)),
            Some(other) => text.push(other),
            None => {}
        }
    }
    Cow::Owned(text)
}

fn unicode(characters: &mut std::str::Chars<'_>) -> char {
    let first = hex(characters);
    let code = if (0xD800..0xDC00).contains(&first) {
        // The parser made sure that `\u` and a low surrogate follow.
        let second = hex(skip_two(characters));
        0x10000 + ((first - 0xD800) << 10) + (second.wrapping_sub(0xDC00) & 0x3FF)
    } else {
        first
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn skip_two<'a, 'b>(characters: &'a mut std::str::Chars<'b>) -> &'a mut std::str::Chars<'b> {
    let _ = (characters.next(), characters.next());
    characters
}

fn hex(characters: &mut std::str::Chars<'_>) -> u32 {
    characters.by_ref().take(4).filter_map(|digit| digit.to_digit(16)).fold(0, |code, digit| code * 16 + digit)
}
