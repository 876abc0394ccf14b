//! One located tree for every file format, so that each reader is written once.
//!
//! Takes bytes and a format; gives a `Node` whose every key and value knows its line and column.
//! Refuses what is too large, too deep, not UTF-8, carries control characters, or repeats a key.

mod bounds;
mod jsonc;
mod text;
mod toml;
mod yaml;

use std::collections::HashMap;

use toolwarden_core::{name, weak};

pub use jsonc::STRICT;
pub use text::{BYTE_ORDER_MARK, decode};

/// The largest file that is read at all.
pub const LARGEST_FILE: u64 = 4 * 1024 * 1024;
/// The deepest nesting that is read.
pub const DEEPEST: usize = 64;
/// The most values one file may hold.
pub const MOST_NODES: usize = 200_000;

/// A place in a file, both from 1; 0 where the fault is the whole file's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, PartialOrd, Ord)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl From<(usize, usize)> for Place {
    fn from((line, column): (usize, usize)) -> Self {
        Self { line: text::small(line), column: text::small(column) }
    }
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub value: Value,
    pub place: Place,
}

/// A key and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub text: String,
    pub place: Place,
}

/// What a file can say.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    String(String),
    List(Vec<Node>),
    Table(Vec<(Key, Node)>),
}

impl Node {
    /// The value as people would call it.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.value {
            Value::Null => "nothing (null)",
            Value::Bool(_) => "true or false",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::String(_) => "a text",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// The value of a key; none for anything but a table.
    #[must_use]
    pub fn get(&self, wanted: &str) -> Option<&Self> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|(key, _)| key.text == wanted).map(|(_, node)| node),
            _ => None,
        }
    }

    /// A value that stands nowhere.
    #[must_use]
    pub fn from_json(value: &serde_json::Value) -> Self {
        let place = Place::default();
        let value = match value {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => match number.as_i64() {
                Some(whole) => Value::Integer(whole),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Value::String(text.clone()),
            serde_json::Value::Array(items) => Value::List(items.iter().map(Self::from_json).collect()),
            serde_json::Value::Object(entries) => {
                let entry = |(text, value): (&String, &serde_json::Value)| {
                    (Key { text: text.clone(), place }, Self::from_json(value))
                };
                Value::Table(entries.iter().map(entry).collect())
            }
        };
        Self { value, place }
    }

    /// The same value without places.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Integer(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::String(value) => value.as_str().into(),
            Value::List(items) => items.iter().map(Self::to_json).collect(),
            Value::Table(entries) => serde_json::Value::Object(
                entries.iter().map(|(key, node)| (key.text.clone(), node.to_json())).collect(),
            ),
        }
    }
}

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON with comments and trailing commas.
    Jsonc,
    Yaml,
    Toml,
    /// YAML, or JSON as people also write it into the same file (`.roomodes`).
    YamlOrJson,
}

/// Why a text is not a tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TreeError {
    pub place: Place,
    pub code: &'static str,
    pub message: String,
}

impl TreeError {
    #[must_use]
    pub fn new(place: Place, code: &'static str, message: impl Into<String>) -> Self {
        Self { place, code, message: message.into() }
    }
}

/// Reads bytes into a tree.
///
/// # Errors
/// The first thing that makes the text unreadable, with its place.
pub fn parse(bytes: &[u8], format: Format) -> Result<Node, TreeError> {
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(TreeError::new(Place::default(), "too_large", "the file is larger than 4 MiB"));
    }
    let text = decode(bytes)?;
    match format {
        Format::Jsonc => jsonc::parse(text),
        Format::Yaml => yaml::parse(text),
        Format::Toml => toml::parse(text),
        Format::YamlOrJson if text.trim_start().starts_with(['{', '[', '/']) => {
            // Flow YAML begins like JSON too; where both fail, the JSON message is the clearer one.
            jsonc::parse(text).or_else(|error| yaml::parse(text).map_err(|_| error))
        }
        Format::YamlOrJson => yaml::parse(text),
    }
}

/// Counts nodes while a tree is built.
#[derive(Debug, Default)]
struct Budget {
    nodes: usize,
}

impl Budget {
    fn spend(&mut self, place: Place, depth: usize) -> Result<(), TreeError> {
        self.nodes += 1;
        if self.nodes > weak::limit(MOST_NODES) {
            return Err(TreeError::new(place, "too_many_values", "the file holds more than 200000 values"));
        }
        if depth > weak::limit(DEEPEST) {
            return Err(TreeError::new(place, "too_deep", "nested deeper than 64 levels"));
        }
        Ok(())
    }
}

/// A table whose keys are all different.
fn table(entries: Vec<(Key, Node)>) -> Result<Value, TreeError> {
    let mut seen: HashMap<&str, Place> = HashMap::with_capacity(entries.len());
    for (key, _) in &entries {
        if let Some(first) = seen.insert(&key.text, key.place) {
            return Err(duplicate(&key.text, key.place, Some(first)));
        }
    }
    Ok(Value::Table(entries))
}

fn duplicate(key: &str, place: Place, first: Option<Place>) -> TreeError {
    let earlier =
        first.map_or_else(String::new, |first| format!(", first at line {}, column {}", first.line, first.column));
    TreeError::new(place, "duplicate_key", format!("duplicate key `{}`{earlier}", name::shown(key)))
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
