//! TOML into a tree. Dates and times are refused: no setting is one.

use std::ops::Range;

use toml_edit::{Document, Item, Key as TomlKey, TableLike, Value as TomlValue};

use super::text::Places;
use super::{Budget, Key, Node, Place, TreeError, Value, bounds, duplicate, table};

pub(super) fn parse(text: &str) -> Result<Node, TreeError> {
    let places = Places::new(text);
    bounds::check_toml(text).map_err(|found| TreeError::new(places.at(found.offset), found.code, found.message))?;
    let document = Document::parse(text).map_err(|error| syntax(text, &places, &error))?;
    let mut walk = Walk { places: &places, budget: Budget::default() };
    let value = walk.table(document.as_table(), 0)?;
    Ok(Node { value, place: Place { line: 1, column: 1 } })
}

fn syntax(text: &str, places: &Places<'_>, error: &toml_edit::TomlError) -> TreeError {
    let span = error.span().unwrap_or_default();
    let place = places.at(span.start);
    let message = error.message().trim();
    if message == "duplicate key" {
        let key = text.get(span.clone()).unwrap_or_default();
        return duplicate(key, place, earlier(text, span.start, key).map(|offset| places.at(offset)));
    }
    TreeError::new(place, "syntax", message.replace('\n', ", "))
}

/// Where the same key, or the same table header, was written before: the nearest line that begins
/// with it. Not found inside inline tables, where the place of the second one has to do.
fn earlier(text: &str, before: usize, key: &str) -> Option<usize> {
    let head = text.get(..before)?;
    let this_line = head.rsplit('\n').next().unwrap_or_default();
    let in_header = this_line.trim_start().starts_with('[');
    let mut offset = head.len() - this_line.len();
    let whole = this_line.trim_start();
    for line in head.get(..offset)?.trim_end_matches('\n').rsplit('\n') {
        offset = offset.saturating_sub(line.len() + 1);
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        if in_header && trimmed.strip_prefix(whole).is_some_and(|rest| rest.starts_with(key)) {
            return Some(offset + indent);
        }
        let rest = trimmed.strip_prefix(key).unwrap_or_default().trim_start();
        if !in_header && (rest.starts_with('=') || rest.starts_with('.')) {
            return Some(offset + indent);
        }
        if !in_header && trimmed.starts_with('[') {
            return None;
        }
    }
    None
}

struct Walk<'a> {
    places: &'a Places<'a>,
    budget: Budget,
}

impl Walk<'_> {
    fn place(&self, span: Option<Range<usize>>, otherwise: Place) -> Place {
        span.map_or(otherwise, |span| self.places.at(span.start))
    }

    fn table(&mut self, source: &dyn TableLike, depth: usize) -> Result<Value, TreeError> {
        let mut entries = Vec::with_capacity(source.len());
        for (name, item) in source.iter() {
            let span = source.key(name).and_then(TomlKey::span);
            let place = self.place(span, Place::default());
            let node = self.item(item, place, depth + 1)?;
            entries.push((Key { text: name.to_owned(), place }, node));
        }
        table(entries)
    }

    fn item(&mut self, item: &Item, key: Place, depth: usize) -> Result<Node, TreeError> {
        self.budget.spend(key, depth)?;
        let value = match item {
            Item::None => Value::Null,
            Item::Value(value) => return self.value(value, key, depth),
            Item::Table(inner) => self.table(inner, depth)?,
            Item::ArrayOfTables(tables) => {
                let mut items = Vec::with_capacity(tables.len());
                for inner in tables {
                    let place = self.place(inner.span(), key);
                    self.budget.spend(place, depth + 1)?;
                    items.push(Node { value: self.table(inner, depth + 1)?, place });
                }
                Value::List(items)
            }
        };
        Ok(Node { value, place: key })
    }

    fn value(&mut self, value: &TomlValue, key: Place, depth: usize) -> Result<Node, TreeError> {
        let place = self.place(value.span(), key);
        self.budget.spend(place, depth)?;
        let value = match value {
            TomlValue::String(text) => Value::String(text.value().clone()),
            TomlValue::Integer(number) => Value::Integer(*number.value()),
            TomlValue::Float(number) => Value::Float(*number.value()),
            TomlValue::Boolean(value) => Value::Bool(*value.value()),
            TomlValue::Datetime(_) => {
                return Err(TreeError::new(place, "wrong_type", "a date or time is not a setting; put it in quotes"));
            }
            TomlValue::Array(array) => {
                let items = array.iter().map(|item| self.value(item, place, depth + 1));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            TomlValue::InlineTable(inner) => self.table(inner, depth)?,
        };
        Ok(Node { value, place })
    }
}
