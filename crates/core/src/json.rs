//! A JSON text and a flat index over it, so that what is judged is exactly what is sent.
//!
//! Takes UTF-8 text; gives a `Document` that keeps number text and string bytes as written; refuses
//! duplicate keys, lone surrogates, trailing text, and anything over the given limits.

mod parse;
mod part;
mod view;

use std::sync::Arc;

pub use part::Part;
pub(crate) use part::depth;
pub use view::{Entries, Items, Value, unescape};

/// Bounds on a text from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub bytes: usize,
    pub depth: usize,
}

impl Limits {
    pub const DEFAULT: Self = Self { bytes: 16 * 1024 * 1024, depth: 128 };
    /// No limit on what comes in is beyond this.
    const DEEPEST: usize = 1024;

    /// Of a text of so many bytes that was accepted before, or put together from what was.
    #[must_use]
    pub const fn again(bytes: usize) -> Self {
        Self { bytes, depth: Self::DEEPEST }
    }
}

/// What is wrong with a text, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {position}")]
pub struct JsonError {
    pub fault: Fault,
    pub position: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the text is larger than the limit")]
    TooLarge,
    #[error("nested deeper than the limit")]
    TooDeep,
    #[error("the text ends too early")]
    End,
    #[error("unexpected character")]
    Unexpected,
    #[error("text after the end of the value")]
    Trailing,
    #[error("invalid number")]
    Number,
    #[error("invalid escape in a string")]
    Escape,
    #[error("control character in a string")]
    Control,
    #[error("duplicate key")]
    DuplicateKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Null,
    True,
    False,
    Number,
    String,
    Array,
    Object,
}

/// One value or key of the text. Children follow their parent; keys and values alternate.
#[derive(Debug, Clone, Copy)]
struct Node {
    kind: Kind,
    start: u32,
    end: u32,
    /// The index after the last node below this one.
    next: u32,
}

/// A parsed JSON text.
#[derive(Debug, Clone)]
pub struct Document {
    text: Arc<str>,
    nodes: Vec<Node>,
    depth: usize,
}

impl Document {
    /// Parses a whole text.
    ///
    /// # Errors
    /// The text is not strict JSON, repeats a key, or exceeds a limit.
    pub fn parse(text: impl Into<Arc<str>>, limits: Limits) -> Result<Self, JsonError> {
        let text = text.into();
        let (nodes, depth) = parse::parse(&text, limits)?;
        Ok(Self { text, nodes, depth })
    }

    #[must_use]
    pub fn root(&self) -> Value<'_> {
        Value::new(self, 0)
    }

    /// The text as it was given.
    #[must_use]
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// How deep the text nests; a scalar has depth 0.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.depth
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
