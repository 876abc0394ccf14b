//! Two versions of a definition in the words of people: parameters of tools, and command lines. Whatever is neither
//! is told value by value, so that nothing is left out.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use toolwarden_core::json::{Document, Kind as JsonKind, Limits, Value, unescape};

use crate::Kind;
use crate::diff::{Change, changes, key_in_path};
use crate::pins::LARGEST;

/// One thing that changed: how it was, and how it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    pub old: Option<Side>,
    pub new: Option<Side>,
}

/// What it is, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    pub label: String,
    pub text: String,
}

/// What differs between two versions; none of the first means that all of the second is new.
#[must_use]
pub fn told(kind: Kind, old: Option<&str>, new: &str) -> Vec<Told> {
    let mut rest = changes(old, new);
    let (place, words) = match kind {
        Kind::Tool => ("inputSchema", tell_parameters(old, new, &mut rest)),
        Kind::Launch => ("reached", tell_launch(old, new, &mut rest)),
        Kind::Instructions | Kind::Prompt => ("", Vec::new()),
    };
    let after = rest.split_off(rest.partition_point(|change| change.path.as_str() < place));
    let plainly = |changes: Vec<Change>| changes.into_iter().map(plain);
    plainly(rest).chain(words).chain(plainly(after)).collect()
}

fn plain(Change { path, old, new }: Change) -> Told {
    let label = if path.is_empty() { "text".to_owned() } else { path };
    let side = |text: String| Side { label: label.clone(), text };
    Told { old: old.map(side), new: new.map(side) }
}

fn read(text: Option<&str>) -> Option<Document> {
    Document::parse(text?, Limits::again(LARGEST)).ok()
}

/// What starts or reaches a server, in one line: `command` or `url`, and its text.
#[must_use]
pub fn reached(launch: &str) -> Option<Side> {
    let document = read(Some(launch))?;
    let reached = document.root().get("reached")?;
    if let Some(url) = reached.get("url") {
        return Some(Side { label: "url".to_owned(), text: url.as_str()?.into_owned() });
    }
    let mut words = vec![quoted(&reached.get("command")?.as_str()?)];
    for argument in reached.get("args").into_iter().flat_map(Value::items) {
        words.push(quoted(&argument.as_str()?));
    }
    Some(Side { label: "command".to_owned(), text: words.join(" ") })
}

/// A word as a shell would need it, so that people see where it begins and ends.
fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "-_./:=,@%+".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn tell_launch(old: Option<&str>, new: &str, rest: &mut Vec<Change>) -> Vec<Told> {
    let told = Told { old: old.and_then(reached), new: reached(new) };
    if told.old == told.new || told.new.is_none() {
        return Vec::new();
    }
    rest.retain(|change| change.path != "reached" && !change.path.starts_with("reached/"));
    vec![told]
}

/// The parameters of a tool, as far as they are plain.
#[derive(Debug, Default)]
struct Parameters {
    /// None for one that is not described by words alone.
    all: BTreeMap<String, Option<Parameter>>,
    /// None where it does not name parameters alone.
    required: Option<BTreeSet<String>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parameter {
    type_name: Option<String>,
    description: Option<String>,
}

impl Parameters {
    fn of(definition: Option<&str>) -> Self {
        let mut found = Self { required: Some(BTreeSet::new()), ..Self::default() };
        let document = read(definition);
        let Some(schema) = document.as_ref().and_then(|document| document.root().get("inputSchema")) else {
            return found;
        };
        for (name, value) in schema.get("properties").into_iter().flat_map(Value::entries) {
            found.all.insert(unescape(name).into_owned(), parameter(value));
        }
        if let Some(required) = schema.get("required") {
            found.required = found.names(required);
        }
        found
    }

    fn names(&self, required: Value<'_>) -> Option<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for item in required.items() {
            let name = item.as_str()?.into_owned();
            let is_plain = self.all.get(&name).is_some_and(Option::is_some);
            if !is_plain || !names.insert(name) {
                return None;
            }
        }
        (required.kind() == JsonKind::Array).then_some(names)
    }

    /// A parameter as it is told. What must be given is told only where all of that can be.
    fn side(&self, name: &str, with_required: bool) -> Option<Side> {
        let Parameter { type_name, description } = self.all.get(name)?.as_ref()?;
        let is_required = self.required.as_ref().is_some_and(|required| required.contains(name));
        let required = if is_required && with_required { ", required" } else { "" };
        let type_name = type_name.as_deref().unwrap_or("any type");
        let label = format!("parameter {name} ({type_name}{required})");
        Some(Side { label, text: description.clone().unwrap_or_default() })
    }

    fn is_odd(&self, name: &str) -> bool {
        self.all.get(name).is_some_and(Option::is_none)
    }
}

fn parameter(value: Value<'_>) -> Option<Parameter> {
    let text = |key: &str| match value.get(key) {
        None => Some(None),
        Some(words) => words.as_str().map(|words| Some(words.into_owned())),
    };
    let is_object = value.kind() == JsonKind::Object;
    is_object.then_some(Parameter { type_name: text("type")?, description: text("description")? })
}

/// Takes out of the rest what is told of parameters.
fn tell_parameters(old: Option<&str>, new: &str, rest: &mut Vec<Change>) -> Vec<Told> {
    let (old, new) = (Parameters::of(old), Parameters::of(Some(new)));
    let names: BTreeSet<&String> = old.all.keys().chain(new.all.keys()).collect();
    let names: Vec<&String> = names.into_iter().filter(|name| !old.is_odd(name) && !new.is_odd(name)).collect();
    let moved = match (&old.required, &new.required) {
        (Some(old), Some(new)) => old.symmetric_difference(new).cloned().collect(),
        _ => Vec::new(),
    };
    let with_required = old.required.is_some() && new.required.is_some();
    let tells_required = !moved.is_empty() && moved.iter().all(|name| names.contains(&name));
    let mut words = Vec::new();
    for name in names {
        let told = Told { old: old.side(name, with_required), new: new.side(name, with_required) };
        if told.old == told.new {
            continue;
        }
        words.push(told);
        let path = format!("inputSchema/properties/{}", key_in_path(name));
        let parts = [path.clone(), format!("{path}/type"), format!("{path}/description")];
        rest.retain(|change| !parts.contains(&change.path));
    }
    let is_told = |path: &str| {
        (path == "inputSchema/properties" && !words.is_empty())
            || (tells_required && (path == "inputSchema/required" || path.starts_with("inputSchema/required/")))
    };
    rest.retain(|change| !is_told(&change.path));
    words
}

#[cfg(test)]
#[path = "told_tests.rs"]
mod tests;
