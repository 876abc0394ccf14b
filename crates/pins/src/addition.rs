//! An optional field more than before: accepted, but without its words.
//!
//! A new field of a tool's input, or a new argument of a prompt, that may be left out. Its name must be
//! a plain word, and of its description only the type is shown: other text would reach the model before a
//! person read it.

use toolwarden_core::Digest;
use toolwarden_core::json::{Document, Kind, Limits, Value, unescape};

use crate::Version;
use crate::pins::LARGEST;

const MOST_ADDED: usize = 16;
const LONGEST_NAME: usize = 64;
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];

/// What is shown for `given` if it only adds optional fields to what was accepted last.
pub(super) fn served(last: &Version, given: Value<'_>) -> Option<String> {
    let read = |text: &str| Document::parse(text, Limits::again(LARGEST)).ok();
    let (before, shown) = (read(&last.text)?, read(last.shown())?);
    let (before, shown) = (before.root(), shown.root());
    let key = ["inputSchema", "arguments"].into_iter().find(|key| !same_member(before, given, key))?;
    if !same_but(before, given, key) {
        return None;
    }
    match key {
        "inputSchema" => {
            let (before, given) = (before.get(key)?, given.get(key)?);
            let added = added_fields(before, given)?;
            with_fields(shown, shown.get(key)?, &added)
        }
        _ => {
            let added = added_arguments(before.get(key), given.get(key)?)?;
            with_arguments(shown, shown.get(key), &added)
        }
    }
}

fn same(one: Value<'_>, other: Value<'_>) -> bool {
    Digest::of_json(one) == Digest::of_json(other)
}

fn same_member(one: Value<'_>, other: Value<'_>, key: &str) -> bool {
    match (one.get(key), other.get(key)) {
        (None, None) => true,
        (Some(one), Some(other)) => same(one, other),
        _ => false,
    }
}

/// Whether two objects are the same but for one member.
fn same_but(one: Value<'_>, other: Value<'_>, left_out: &str) -> bool {
    let members = |value: Value<'_>| -> Option<Vec<String>> {
        (value.kind() == Kind::Object).then(|| value.entries().map(|(key, _)| unescape(key).into_owned()).collect())
    };
    let (Some(ones), Some(others)) = (members(one), members(other)) else { return false };
    ones.iter().chain(&others).filter(|key| *key != left_out).all(|key| same_member(one, other, key))
}

/// A plain word that can hardly be an instruction.
fn is_plain(name: &str) -> bool {
    let word = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-' | '.');
    !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(word)
}

/// The fields that are new, as a name and what is shown of them. Those that must be given are listed in
/// `required`, which then differs.
fn added_fields(before: Value<'_>, given: Value<'_>) -> Option<Vec<(String, String)>> {
    if !same_but(before, given, "properties") {
        return None;
    }
    let old = before.get("properties");
    let new = given.get("properties").filter(|new| new.kind() == Kind::Object)?;
    let stays = |(key, value): (&str, Value<'_>)| new.get(&unescape(key)).is_some_and(|now| same(value, now));
    if !old.into_iter().flat_map(Value::entries).all(stays) {
        return None;
    }
    let is_new = |name: &str| old.is_none_or(|old| old.get(name).is_none());
    let named = new.entries().map(|(key, value)| (unescape(key).into_owned(), type_alone(value)));
    checked(named.filter(|(name, _)| is_new(name)).collect())
}

fn checked(added: Vec<(String, String)>) -> Option<Vec<(String, String)>> {
    let fits = (1..=MOST_ADDED).contains(&added.len()) && added.iter().all(|(name, _)| is_plain(name));
    fits.then_some(added)
}

fn type_alone(schema: Value<'_>) -> String {
    let kind = schema.get("type").and_then(Value::as_str).filter(|kind| TYPES.contains(&&**kind));
    kind.map_or("{}".to_owned(), |kind| format!("{{\"type\":\"{kind}\"}}"))
}

/// The arguments of a prompt that are new.
fn added_arguments(before: Option<Value<'_>>, given: Value<'_>) -> Option<Vec<(String, String)>> {
    let old: Vec<Value<'_>> = before.into_iter().flat_map(Value::items).collect();
    let new: Vec<Value<'_>> = given.items().collect();
    if !old.iter().all(|was| new.iter().any(|now| same(*was, *now))) {
        return None;
    }
    let mut added = Vec::new();
    for argument in new.iter().filter(|now| !old.iter().any(|was| same(*was, **now))) {
        let name = argument.get("name")?.as_str()?.into_owned();
        let is_taken = old.iter().any(|was| was.get("name").and_then(Value::as_str).is_some_and(|was| was == name));
        if is_taken || argument.get("required").is_some_and(|required| required.raw() != "false") {
            return None;
        }
        let shown = format!("{{\"name\":\"{name}\"}}");
        added.push((name, shown));
    }
    checked(added)
}

fn with_fields(shown: Value<'_>, schema: Value<'_>, added: &[(String, String)]) -> Option<String> {
    let members: Vec<String> = added.iter().map(|(name, text)| format!("\"{name}\":{text}")).collect();
    match schema.get("properties") {
        Some(properties) => inserted(shown, properties, &members.join(",")),
        None => inserted(shown, schema, &format!("\"properties\":{{{}}}", members.join(","))),
    }
}

fn with_arguments(shown: Value<'_>, list: Option<Value<'_>>, added: &[(String, String)]) -> Option<String> {
    let items: Vec<&str> = added.iter().map(|(_, text)| text.as_str()).collect();
    match list {
        Some(list) => inserted(shown, list, &items.join(",")),
        None => inserted(shown, shown, &format!("\"arguments\":[{}]", items.join(","))),
    }
}

/// `whole` with something more at the end of an object or list inside of it.
fn inserted(whole: Value<'_>, container: Value<'_>, more: &str) -> Option<String> {
    let end = container.span().end.checked_sub(whole.span().start + 1)?;
    let (before, after) = whole.raw().split_at_checked(end)?;
    let is_empty = container.entries().next().is_none() && container.items().next().is_none();
    Some(format!("{before}{}{more}{after}", if is_empty { "" } else { "," }))
}

#[cfg(test)]
#[path = "addition_tests.rs"]
mod tests;
