//! One look at what a server lists or says of itself, and what it comes to.

use std::sync::Arc;

use toolwarden_core::Caller;
use toolwarden_core::json::{Kind as JsonKind, Part, Value};

use crate::{Given, How, Kind};

/// One look at definitions of a server.
#[derive(Debug, Clone)]
pub struct Sighting {
    pub server: Arc<str>,
    pub kind: Kind,
    pub caller: Arc<Caller>,
    /// Results as the server gave them: pages of a list, or what it said of itself.
    pub pages: Vec<Part>,
    /// Whether this is everything it has of that kind.
    pub is_whole: bool,
    /// How many changes of the server were heard of before it was asked (`Book::changes_heard`).
    pub after: u64,
}

impl Sighting {
    pub(super) fn given(&self) -> Vec<Option<Given<'_>>> {
        self.pages.iter().flat_map(|page| entries(self.kind, page.value())).collect()
    }
}

/// The definitions in a result; none for an entry that cannot be one.
fn entries(kind: Kind, result: Value<'_>) -> Vec<Option<Given<'_>>> {
    let list = |key: &str| result.get(key).into_iter().flat_map(Value::items).map(named).collect();
    let words = || result.get("instructions").filter(|words| words.kind() == JsonKind::String);
    match kind {
        Kind::Tool => list("tools"),
        Kind::Prompt => list("prompts"),
        Kind::Instructions => words().map(|words| Some(Given::new(String::new(), words))).into_iter().collect(),
        Kind::Launch => vec![Some(Given::new(String::new(), result))],
    }
}

fn named(entry: Value<'_>) -> Option<Given<'_>> {
    Some(Given::new(entry.get("name")?.as_str()?.into_owned(), entry))
}

/// What clients are shown of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    AsGiven,
    Instead(Arc<str>),
    Hidden,
}

/// What a look comes to, entry by entry.
#[derive(Debug, Default)]
pub struct Sighted {
    pub shown: Vec<Shown>,
    pub noted: Vec<Noted>,
}

/// Something that was put on record just now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    pub kind: Kind,
    pub name: String,
    pub how: How,
    /// No version of it was ever accepted.
    pub is_new: bool,
    pub digest: String,
}
