//! Two versions of a definition, compared value by value, for people to read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toolwarden_core::json::{Document, Limits, Value, unescape};

use crate::pins::LARGEST;

/// One value that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// Keys and positions on the way to the value, such as `inputSchema/properties/path/type`.
    pub path: String,
    pub old: Option<String>,
    pub new: Option<String>,
}

/// What differs between two versions; none of the first means that all of the second is new.
#[must_use]
pub fn changes(old: Option<&str>, new: &str) -> Vec<Change> {
    let (old, new) = (old.map(leaves).unwrap_or_default(), leaves(new));
    let mut paths: Vec<&String> = old.keys().chain(new.keys().filter(|path| !old.contains_key(*path))).collect();
    paths.sort();
    let differs = |path: &&String| old.get(*path) != new.get(*path);
    let change =
        |path: &String| Change { path: path.clone(), old: old.get(path).cloned(), new: new.get(path).cloned() };
    paths.into_iter().filter(differs).map(change).collect()
}

fn leaves(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    if let Ok(document) = Document::parse(text, Limits::again(LARGEST)) {
        walk(document.root(), "", &mut found);
    }
    found
}

/// A key that cannot be taken for two.
pub(super) fn key_in_path(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// Depth is bounded by the limits the text was parsed under.
fn walk(value: Value<'_>, path: &str, found: &mut BTreeMap<String, String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}/{key}") };
    let mut is_leaf = true;
    for (key, member) in value.entries() {
        is_leaf = false;
        walk(member, &below(&key_in_path(&unescape(key))), found);
    }
    for (place, item) in value.items().enumerate() {
        is_leaf = false;
        walk(item, &below(&place.to_string()), found);
    }
    if is_leaf {
        let text = value.as_str().map_or_else(|| value.raw().to_owned(), std::borrow::Cow::into_owned);
        found.insert(path.to_owned(), text);
    }
}

#[cfg(test)]
#[test]
fn every_value_that_differs_is_named_by_its_place_and_no_other() {
    let old = r#"{"name":"a","description":"reads","inputSchema":{"type":"object","required":["p"]}}"#;
    let new = r#"{"inputSchema":{"required":["p","q"],"type":"object"},"name":"a","description":"reads\u001b"}"#;
    let change = |path: &str, old: Option<&str>, new: Option<&str>| Change {
        path: path.to_owned(),
        old: old.map(str::to_owned),
        new: new.map(str::to_owned),
    };
    let expected =
        [change("description", Some("reads"), Some("reads\u{1b}")), change("inputSchema/required/1", None, Some("q"))];
    assert_eq!(changes(Some(old), new), expected);
    assert_eq!(changes(Some(old), old), []);
    assert_eq!(changes(None, r#"{"x":[]}"#), [change("x", None, Some("[]"))]);
}
