//! The places of a schema that are schemas themselves, found through keywords and references, and whether they can
//! be checked at all: a reference that leads elsewhere, or round and round, makes a schema unusable.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Draft;
use serde_json::{Map, Value};

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
    let mut found = BTreeSet::new();
    let mut open = vec![String::new()];
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
        if !place.is_empty() && members.get("$id").is_some_and(Value::is_string) {
            return Err(format!("`$id` at `#{place}`: schemas within a schema must not have one"));
        }
        dialect(members, &place)?;
        open.extend(inside(members).into_iter().map(|(_, inner)| format!("{place}/{inner}")));
        open.extend(target(members, &place)?);
    }
    circle(root, &found)?;
    Ok(found)
}

/// A dialect nobody knows may be one without rules: the library takes a schema that names itself as its own, by an empty
/// name, too, and then checks nothing.
fn dialect(members: &Map<String, Value>, place: &str) -> Result<(), String> {
    let Some(dialect) = members.get("$schema") else { return Ok(()) };
    let is_known = dialect.as_str().is_some_and(|name| Draft::from_schema_uri(name) != Draft::Unknown);
    if is_known { Ok(()) } else { Err(format!("`$schema` at `#{place}` names no dialect that is known")) }
}

/// The schemas in a schema: whether they look at the same value, and where they stand.
fn inside(members: &Map<String, Value>) -> Vec<(bool, String)> {
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
fn target(members: &Map<String, Value>, place: &str) -> Result<Option<String>, String> {
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
