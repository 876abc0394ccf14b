//! JSON with comments and trailing commas into a tree.
//!
//! Nothing looser is accepted: no unquoted keys, single quotes, hexadecimal or missing commas,
//! because the client that owns the file would not accept them either.

use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::text::Places;
use super::{Budget, Key, Node, TreeError, Value, bounds, table};

/// Comments and trailing commas, nothing else beyond JSON.
pub const STRICT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) fn parse(text: &str) -> Result<Node, TreeError> {
    let places = Places::new(text);
    bounds::check_jsonc(text).map_err(|found| TreeError::new(places.at(found.offset), found.code, found.message))?;
    let parsed = parse_to_ast(text, &CollectOptions::default(), &STRICT).map_err(|error| {
        let message = error.kind().to_string();
        TreeError::new(places.at(error.range().start), "syntax", lower_first(&message))
    })?;
    let Some(value) = parsed.value else {
        return Err(TreeError::new(places.at(text.len()), "syntax", "the file is empty"));
    };
    convert(&value, &places, &mut Budget::default(), 0)
}

/// Depth was bounded before the parser ran, so the recursion is too.
fn convert(value: &ast::Value<'_>, places: &Places<'_>, budget: &mut Budget, depth: usize) -> Result<Node, TreeError> {
    let place = places.at(value.range().start);
    budget.spend(place, depth)?;
    let value = match value {
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::BooleanLit(literal) => Value::Bool(literal.value),
        ast::Value::StringLit(literal) => Value::String(literal.value.clone().into_owned()),
        ast::Value::NumberLit(literal) => number(literal.value)
            .ok_or_else(|| TreeError::new(place, "syntax", format!("invalid number `{}`", literal.value)))?,
        ast::Value::Array(array) => {
            let items = array.elements.iter().map(|item| convert(item, places, budget, depth + 1));
            Value::List(items.collect::<Result<_, _>>()?)
        }
        ast::Value::Object(object) => {
            let mut entries = Vec::with_capacity(object.properties.len());
            for property in &object.properties {
                let key = Key { text: property.name.as_str().to_owned(), place: places.at(property.range.start) };
                entries.push((key, convert(&property.value, places, budget, depth + 1)?));
            }
            table(entries)?
        }
    };
    Ok(Node { value, place })
}

fn number(text: &str) -> Option<Value> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Value::Integer(integer));
    }
    text.parse::<f64>().ok().filter(|float| float.is_finite()).map(Value::Float)
}

/// The parser's messages begin with a capital; ours do not.
fn lower_first(message: &str) -> String {
    let mut characters = message.chars();
    characters.next().map_or_else(String::new, |first| first.to_lowercase().chain(characters).collect())
}
