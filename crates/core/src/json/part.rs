//! One value of a document that keeps its document alive, so that what was judged can be sent later.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::{Document, JsonError, Kind, Limits, Value};

/// A value with its document. Cheap to clone.
#[derive(Clone)]
pub struct Part {
    document: Arc<Document>,
    index: usize,
}

impl Part {
    /// The whole of a document.
    #[must_use]
    pub fn whole(document: Arc<Document>) -> Self {
        Self { document, index: 0 }
    }

    /// A text put together from what was accepted before, read back.
    ///
    /// # Errors
    /// It is not JSON, or nests deeper than anything that was accepted.
    pub fn composed(text: String) -> Result<Self, JsonError> {
        let limits = Limits::again(text.len());
        Document::parse(text, limits).map(|document| Self::whole(Arc::new(document)))
    }

    /// The member of an object.
    #[must_use]
    pub fn member(&self, key: &str) -> Option<Self> {
        let index = self.value().get(key)?.index();
        Some(Self { document: self.document.clone(), index })
    }

    #[must_use]
    pub fn value(&self) -> Value<'_> {
        Value::new(&self.document, self.index)
    }

    /// The value as it was written.
    #[must_use]
    pub fn raw(&self) -> &str {
        self.value().raw()
    }

    #[must_use]
    pub fn document(&self) -> &Arc<Document> {
        &self.document
    }

    /// How deep the value nests; a scalar has depth 0.
    #[must_use]
    pub fn depth(&self) -> usize {
        if self.index == 0 { self.document.depth() } else { depth(self.value()) }
    }

    /// Whether it nests no deeper than that. Looks into it only where the whole text nests deeper.
    #[must_use]
    pub fn is_within(&self, depth: usize) -> bool {
        self.document.depth() <= depth || self.depth() <= depth
    }

    /// Where a value inside this one stands, counted from this one's first byte.
    #[must_use]
    pub fn span_of(&self, inner: Value<'_>) -> Range<usize> {
        let (own, inner) = (self.value().span(), inner.span());
        inner.start.saturating_sub(own.start)..inner.end.saturating_sub(own.start)
    }
}

/// How deep a value nests. Bounded by the limits the document was parsed under.
pub(crate) fn depth(value: Value<'_>) -> usize {
    let inner = match value.kind() {
        Kind::Array => value.items().map(depth).max(),
        Kind::Object => value.entries().map(|(_, inner)| depth(inner)).max(),
        Kind::Null | Kind::True | Kind::False | Kind::Number | Kind::String => return 0,
    };
    1 + inner.unwrap_or(0)
}

impl From<Arc<Document>> for Part {
    fn from(document: Arc<Document>) -> Self {
        Self::whole(document)
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Arguments may hold secrets: a debug print shows their size only.
        write!(formatter, "Part({} bytes)", self.raw().len())
    }
}
