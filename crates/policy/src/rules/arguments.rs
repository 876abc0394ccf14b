//! A call's arguments as Cedar holds them: as a record, and as texts under their JSON pointers.
//!
//! Only places that a rule at hand mentions are taken. A value there that has no form in Cedar is an error, never
//! an absence: otherwise a rule could be escaped by writing `5000.5` or `null` (WORK-2).

use std::collections::BTreeMap;

use cedar_policy::RestrictedExpression;
use toolwarden_core::json::{self, Kind, Value};
use toolwarden_core::{name, weak};

use super::mentions::{Needs, Places};
use crate::numbers::{self, Number};

/// The most values of the arguments that `context.args` holds.
const MOST_TAGS: usize = 4_096;
/// The most values of the arguments that `context.arguments` holds.
const MOST_VALUES: usize = 16_384;
/// How deep arguments are put before rules.
const DEEPEST: usize = 64;

/// A call that cannot be put before the rules; the judge denies it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FactsError {
    #[error("the call cannot be expressed for the rules")]
    Unusable,
    /// A value that a rule mentions and Cedar cannot hold. The value itself is not said: it may be a secret.
    #[error("a rule looks at the argument `{}`, which {why}", name::shown(pointer))]
    Argument { pointer: String, why: &'static str },
    #[error("a rule looks at the address of the fetch, which cannot be read")]
    Address,
}

const NULL: &str = "is null: send a value, or leave it out";
const FRACTION: &str = "is a number with a fraction: rules compare integers only";
const BEYOND: &str = "is an integer beyond 64 bits: rules cannot compare it";
const NO_TEXT: &str = "is a list or an object where the rule expects a single value";
const NO_MEMBERS: &str = "is a single value where the rule looks inside it";
const A_LIST: &str = "is a list where the rule looks for a member by its name";
const ANOTHER_KIND: &str = "is, or holds, another kind of value than the rule compares it with";
const TOO_MANY: &str = "holds more values than rules look at";
const TOO_DEEP: &str = "is nested deeper than rules look";
const TWICE: &str = "is named twice";

fn unfit<T>(pointer: &str, why: &'static str) -> Result<T, FactsError> {
    Err(FactsError::Argument { pointer: pointer.to_owned(), why })
}

/// `context.arguments`, as far as rules mention it.
pub(super) fn record(arguments: Option<Value<'_>>, needs: &Needs) -> Result<RestrictedExpression, FactsError> {
    let empty = || RestrictedExpression::new_record([]).map_err(|_| FactsError::Unusable);
    match arguments {
        None => empty(),
        // The same to servers as leaving them out.
        Some(value) if value.kind() == Kind::Null => empty(),
        Some(value) => {
            let record =
                Builder { left: MOST_VALUES, pointer: String::new() }.expression(value, &needs.arguments, 0)?;
            match needs.comparisons.iter().find_map(|comparison| comparison.unfit(value)) {
                Some(path) => {
                    let pointer: String = path.iter().map(|name| format!("/{}", escaped(name))).collect();
                    unfit(&pointer, ANOTHER_KIND)
                }
                None => Ok(record),
            }
        }
    }
}

struct Builder {
    /// How many more values may be taken.
    left: usize,
    pointer: String,
}

impl Builder {
    fn expression(
        &mut self,
        value: Value<'_>,
        places: &Places,
        depth: usize,
    ) -> Result<RestrictedExpression, FactsError> {
        weak::worked(1);
        self.left = self.left.checked_sub(1).map_or_else(|| unfit(&self.pointer, TOO_MANY), Ok)?;
        if depth > DEEPEST {
            return unfit(&self.pointer, TOO_DEEP);
        }
        Ok(match value.kind() {
            Kind::Null => return unfit(&self.pointer, NULL),
            Kind::True => RestrictedExpression::new_bool(true),
            Kind::False => RestrictedExpression::new_bool(false),
            Kind::Number => match numbers::value(value.raw()) {
                Number::Whole(whole) => RestrictedExpression::new_long(whole),
                Number::Beyond => return unfit(&self.pointer, BEYOND),
                Number::Fraction => return unfit(&self.pointer, FRACTION),
            },
            Kind::String => RestrictedExpression::new_string(value.as_str().unwrap_or_default().into_owned()),
            // Items have no names in Cedar, so all of them are taken.
            Kind::Array => {
                let items = value.items().enumerate();
                let items = items.map(|(index, item)| self.below(&index.to_string(), item, &everything(), depth));
                RestrictedExpression::new_set(items.collect::<Result<Vec<_>, _>>()?)
            }
            Kind::Object => self.object(value, places, depth)?,
        })
    }

    fn object(&mut self, value: Value<'_>, places: &Places, depth: usize) -> Result<RestrictedExpression, FactsError> {
        let mut members = Vec::new();
        for (key, member) in value.entries() {
            let key = json::unescape(key);
            let named = if places.is_named { Some(everything()) } else { places.below.get(&*key).cloned() };
            let Some(named) = named else { continue };
            members.push((key.to_string(), self.below(&key, member, &named, depth)?));
        }
        RestrictedExpression::new_record(members).or_else(|_| unfit(&self.pointer, TWICE))
    }

    fn below(
        &mut self,
        name: &str,
        value: Value<'_>,
        places: &Places,
        depth: usize,
    ) -> Result<RestrictedExpression, FactsError> {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(&escaped(name));
        let expression = self.expression(value, places, depth + 1)?;
        self.pointer.truncate(length);
        Ok(expression)
    }
}

fn everything() -> Places {
    Places { is_named: true, below: BTreeMap::new() }
}

/// A name as part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// `context.args`: values as text under their pointers, as far as rules mention them. A value that a rule mentions and
/// that has no one text to compare is an error, as in `context.arguments`.
pub(super) fn tags(arguments: Option<Value<'_>>, needs: &Needs) -> Result<BTreeMap<String, String>, FactsError> {
    let mut found = BTreeMap::new();
    // The same to servers as leaving them out.
    if let Some(arguments) = arguments.filter(|arguments| arguments.kind() != Kind::Null) {
        let nothing = Places::default();
        flatten(arguments, &mut String::new(), Some(&needs.tags), needs.any_tag, &nothing, &mut found)?;
    }
    Ok(found)
}

fn flatten(
    value: Value<'_>,
    pointer: &mut String,
    places: Option<&Places>,
    any: bool,
    nothing: &Places,
    found: &mut BTreeMap<String, String>,
) -> Result<(), FactsError> {
    let places = places.unwrap_or(nothing);
    if found.len() >= MOST_TAGS {
        return unfit(pointer, TOO_MANY);
    }
    let is_whole = matches!(value.kind(), Kind::Object | Kind::Array);
    if is_whole && places.is_named {
        return unfit(pointer, NO_TEXT);
    }
    if !is_whole && !places.below.is_empty() {
        return unfit(pointer, NO_MEMBERS);
    }
    // A server may take the object in a list for the object a rule means.
    if value.kind() == Kind::Array && !places.below.keys().all(|name| is_index(name)) {
        return unfit(pointer, A_LIST);
    }
    if !any && !places.is_named && places.below.is_empty() {
        return Ok(());
    }
    let length = pointer.len();
    let mut below = |name: &str, value: Value<'_>| {
        let name = escaped(name);
        pointer.push('/');
        pointer.push_str(&name);
        flatten(value, pointer, places.below.get(&name), any, nothing, found)?;
        pointer.truncate(length);
        Ok(())
    };
    match value.kind() {
        Kind::Object => value.entries().try_for_each(|(key, member)| below(&json::unescape(key), member)),
        Kind::Array => value.items().enumerate().try_for_each(|(index, item)| below(&index.to_string(), item)),
        kind => {
            let text = match kind {
                Kind::String => value.as_str().unwrap_or_default().into_owned(),
                Kind::Null => return unfit(pointer, NULL),
                Kind::Number => match numbers::value(value.raw()) {
                    Number::Whole(whole) => whole.to_string(),
                    Number::Beyond => return unfit(pointer, BEYOND),
                    Number::Fraction => return unfit(pointer, FRACTION),
                },
                _ => value.raw().to_owned(),
            };
            found.insert(pointer.clone(), text);
            Ok(())
        }
    }
}

/// Whether a part of a pointer can name an item of a list.
fn is_index(name: &str) -> bool {
    name == "0" || (!name.starts_with('0') && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
