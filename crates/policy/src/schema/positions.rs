//! The places of a schema that are schemas themselves, found through keywords and references, and whether they can
//! be checked at all: a reference that leads elsewhere, or round and round, makes a schema unusable.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Draft;
use serde_json::{Map, Value};

use super::strays;

/// Keywords that hold one schema.
const ONE: [&str; 12] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords that hold a list of schemas.
const LISTED: [&str; 5] = ["allOf", "anyOf", "oneOf", "prefixItems", "items"];
/// Keywords that hold schemas by name.
const NAMED: [&str; 6] =
    ["properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions"];
/// Keywords whose schemas look at the same value as the schema they stand in.
const SAME_VALUE: [&str; 9] =
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies"];

/// More schemas in one are not looked at.
const MOST_PLACES: usize = 20_000;

/// Every place that is a schema, by its JSON pointer.
///
/// # Errors
/// Why the schema cannot be used.
pub(super) fn places(root: &Value) -> Result<BTreeSet<String>, String> {
    // Those that keywords lead to from the top come first: what is left for references alone is nobody's keyword.
    let mut found = BTreeSet::new();
    let mut referred = follow(root, String::new(), &mut found)?;
    let mut strays = Vec::new();
    while let Some(place) = referred.pop() {
        if !found.contains(&place) {
            strays.push(place.clone());
            referred.extend(follow(root, place, &mut found)?);
        }
    }
    identities(root, &found)?;
    strays::check(root, &strays)?;
    circle(root, &found)?;
    Ok(found)
}

/// Adds a place and all that keywords lead to from it; gives where references lead.
fn follow(root: &Value, place: String, found: &mut BTreeSet<String>) -> Result<Vec<String>, String> {
    let mut open = vec![place];
    let mut referred = Vec::new();
    while let Some(place) = open.pop() {
        let Some(schema) = root.pointer(&place) else {
            return Err(format!("`$ref` to `#{place}` leads nowhere"));
        };
        if !found.insert(place.clone()) {
            continue;
        }
        if found.len() > MOST_PLACES {
            return Err(format!("it holds more than {MOST_PLACES} schemas"));
        }
        let Some(members) = schema.as_object() else { continue };
        dialect(members, &place)?;
        open.extend(inside(members).into_iter().map(|(_, inner)| format!("{place}/{inner}")));
        referred.extend(target(members, &place)?);
    }
    Ok(referred)
}

/// A schema within a schema that has an address of its own would be where references begin anew, so that the library
/// followed them elsewhere than they are followed here. In draft 4 the address is `id`, which is a word like any other
/// in later dialects.
fn identities(root: &Value, places: &BTreeSet<String>) -> Result<(), String> {
    let schemas = || places.iter().filter_map(|place| Some((place, root.pointer(place)?.as_object()?)));
    let is_draft_4 = |members: &Map<String, Value>| {
        let dialect = members.get("$schema").and_then(Value::as_str);
        dialect.is_some_and(|name| Draft::from_schema_uri(name) == Draft::Draft4)
    };
    let has_draft_4 = schemas().any(|(_, members)| is_draft_4(members));
    let words: &[&str] = if has_draft_4 { &["$id", "id"] } else { &["$id"] };
    for (place, members) in schemas().filter(|(place, _)| !place.is_empty()) {
        if let Some(word) = words.iter().find(|word| members.get(**word).is_some_and(Value::is_string)) {
            return Err(format!("`{word}` at `#{place}`: schemas within a schema must not have one"));
        }
    }
    Ok(())
}

/// A dialect nobody knows may be one without rules: the library takes a schema that names itself as its own, by an empty
/// name, too, and then checks nothing.
fn dialect(members: &Map<String, Value>, place: &str) -> Result<(), String> {
    let Some(dialect) = members.get("$schema") else { return Ok(()) };
    let is_known = dialect.as_str().is_some_and(|name| Draft::from_schema_uri(name) != Draft::Unknown);
    if is_known { Ok(()) } else { Err(format!("`$schema` at `#{place}` names no dialect that is known")) }
}

/// The schemas in a schema: whether they look at the same value, and where they stand.
pub(super) fn inside(members: &Map<String, Value>) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    for (keyword, value) in members {
        let name = keyword.as_str();
        let is_same = SAME_VALUE.contains(&name);
        match value {
            Value::Array(items) if LISTED.contains(&name) => {
                found.extend((0..items.len()).map(|index| (is_same, format!("{name}/{index}"))));
            }
            Value::Object(inner) if NAMED.contains(&name) => {
                let schemas = inner.iter().filter(|(_, schema)| schema.is_object());
                found.extend(schemas.map(|(key, _)| (is_same, format!("{name}/{}", escaped(key)))));
            }
            Value::Object(_) if ONE.contains(&name) => found.push((is_same, name.to_owned())),
            _ => {}
        }
    }
    found
}

/// How many schemas a schema puts before each value it sees.
pub(super) fn fan_out(members: &Map<String, Value>) -> usize {
    1 + inside(members).len() + usize::from(members.contains_key("$ref"))
}

/// Where a reference leads. Only places of the schema itself can be referred to: nothing is fetched, and names that
/// are resolved while a value is checked cannot be followed before.
pub(super) fn target(members: &Map<String, Value>, place: &str) -> Result<Option<String>, String> {
    for dynamic in ["$dynamicRef", "$recursiveRef"] {
        if members.contains_key(dynamic) {
            return Err(format!("`{dynamic}` at `#{place}` is not supported"));
        }
    }
    let Some(reference) = members.get("$ref") else { return Ok(None) };
    let Some(text) = reference.as_str() else {
        return Err(format!("`$ref` at `#{place}` is no text"));
    };
    let Some(pointer) = text.strip_prefix('#').filter(|rest| rest.is_empty() || rest.starts_with('/')) else {
        return Err(format!("`$ref` at `#{place}` leads out of the schema; only `#/..` is followed"));
    };
    percent_decoded(pointer).map(Some).ok_or_else(|| format!("`$ref` at `#{place}` is no JSON pointer"))
}

/// A pointer in a URL fragment may be percent-encoded.
fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok()
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Whether a schema leads back to itself at the same value, which no check would ever end.
fn circle(root: &Value, places: &BTreeSet<String>) -> Result<(), String> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Mark {
        Open,
        Done,
    }
    let mut marks: BTreeMap<String, Mark> = BTreeMap::new();
    for start in places {
        let mut stack = vec![(start.clone(), false)];
        while let Some((place, is_left)) = stack.pop() {
            if is_left {
                marks.insert(place, Mark::Done);
                continue;
            }
            match marks.get(&place) {
                Some(Mark::Done) => continue,
                Some(Mark::Open) => return Err(format!("`#{place}` refers to itself without end")),
                None => {}
            }
            marks.insert(place.clone(), Mark::Open);
            stack.push((place.clone(), true));
            let Some(members) = root.pointer(&place).and_then(Value::as_object) else { continue };
            let same = inside(members).into_iter().filter(|(is_same, _)| *is_same);
            let next: Vec<String> =
                same.map(|(_, inner)| format!("{place}/{inner}")).chain(target(members, &place)?).collect();
            if let Some(open) = next.iter().find(|place| marks.get(*place) == Some(&Mark::Open)) {
                return Err(format!("`#{open}` refers to itself without end"));
            }
            stack.extend(next.into_iter().map(|place| (place, false)));
        }
    }
    Ok(())
}

/// How many schemas a check may visit for one value, every reference written out; none where there is no end to it.
pub(super) fn unfolded(root: &Value, most: u64) -> Option<u64> {
    fn visit(root: &Value, place: &str, depth: usize, left: &mut u64) -> Option<()> {
        *left = left.checked_sub(1)?;
        (depth < 256).then_some(())?;
        let Some(members) = root.pointer(place).and_then(Value::as_object) else { return Some(()) };
        for (_, inner) in inside(members) {
            visit(root, &format!("{place}/{inner}"), depth + 1, left)?;
        }
        match target(members, place).ok()? {
            Some(target) => visit(root, &target, depth + 1, left),
            None => Some(()),
        }
    }
    let mut left = most;
    visit(root, "", 0, &mut left)?;
    Some(most - left)
}
