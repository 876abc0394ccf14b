//! YAML into a tree: the plain part of it that people write by hand.
//!
//! Anchors, aliases, tags, merge keys, complex keys and further documents are refused: they make a
//! file mean something other than what it shows.

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};
use toolwarden_core::{Weakness, weak};

use super::text::Places;
use super::{Budget, DEEPEST, Key, Node, Place, TreeError, Value, bounds, table};

pub(super) fn parse(text: &str) -> Result<Node, TreeError> {
    bounds::check_yaml(text)
        .map_err(|found| TreeError::new(Places::new(text).at(found.offset), found.code, found.message))?;
    let mut builder = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, span) = event.map_err(|error| syntax(&error))?;
        builder.take(event, place(span))?;
    }
    builder.root.ok_or_else(|| TreeError::new(Place { line: 1, column: 1 }, "syntax", "the file is empty"))
}

fn syntax(error: &ScanError) -> TreeError {
    let marker = error.marker();
    TreeError::new(Place::from((marker.line(), marker.col() + 1)), "syntax", error.info())
}

fn place(span: Span) -> Place {
    Place::from((span.start.line(), span.start.col() + 1))
}

/// A list or table that is not closed yet.
struct Open {
    place: Place,
    filling: Filling,
}

enum Filling {
    List(Vec<Node>),
    Table(Vec<(Key, Node)>, Option<Key>),
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
    budget: Budget,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, place: Place) -> Result<(), TreeError> {
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) => {
                self.documents += 1;
                if self.documents > 1 { Err(refused(place, "a second document")) } else { Ok(()) }
            }
            Event::Alias(_) if weak::is(Weakness::Limits) => self.scalar("", ScalarStyle::Plain, place),
            Event::Alias(_) => Err(refused(place, "an alias (`*name`)")),
            Event::Scalar(_, _, anchor, _) | Event::SequenceStart(anchor, _) | Event::MappingStart(anchor, _)
                if anchor != 0 && !weak::is(Weakness::Limits) =>
            {
                Err(refused(place, "an anchor (`&name`)"))
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                Err(refused(place, "a tag (`!name`)"))
            }
            Event::Scalar(text, style, _, None) => self.scalar(&text, style, place),
            Event::SequenceStart(_, None) => self.begin(place, Filling::List(Vec::new())),
            Event::MappingStart(_, None) => self.begin(place, Filling::Table(Vec::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => self.end(),
        }
    }

    fn begin(&mut self, place: Place, filling: Filling) -> Result<(), TreeError> {
        if let Some(Open { filling: Filling::Table(_, None), .. }) = self.open.last() {
            return Err(refused(place, "a key that is a list or table"));
        }
        if self.open.len() >= weak::limit(DEEPEST) {
            return Err(TreeError::new(place, "too_deep", "nested deeper than 64 levels"));
        }
        self.open.push(Open { place, filling });
        Ok(())
    }

    fn end(&mut self) -> Result<(), TreeError> {
        let Some(Open { place, filling }) = self.open.pop() else { return Ok(()) };
        let value = match filling {
            Filling::List(items) => Value::List(items),
            Filling::Table(entries, _) => table(entries)?,
        };
        self.add(Node { value, place })
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, place: Place) -> Result<(), TreeError> {
        if let Some(Open { filling: Filling::Table(_, key @ None), .. }) = self.open.last_mut() {
            if text == "<<" && style == ScalarStyle::Plain {
                return Err(refused(place, "a merge key (`<<`)"));
            }
            *key = Some(Key { text: text.to_owned(), place });
            return Ok(());
        }
        let value = if style == ScalarStyle::Plain { plain(text) } else { Value::String(text.to_owned()) };
        self.add(Node { value, place })
    }

    fn add(&mut self, node: Node) -> Result<(), TreeError> {
        self.budget.spend(node.place, self.open.len())?;
        match self.open.last_mut().map(|open| &mut open.filling) {
            None => self.root = Some(node),
            Some(Filling::List(items)) => items.push(node),
            Some(Filling::Table(entries, key)) => {
                if let Some(key) = key.take() {
                    entries.push((key, node));
                }
            }
        }
        Ok(())
    }
}

fn refused(place: Place, what: &str) -> TreeError {
    TreeError::new(place, "yaml_feature", format!("{what} is not read here; write the value out"))
}

/// The core schema of YAML 1.2.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).unwrap_or_else(|| Value::String(text.to_owned())),
    }
}

fn number(text: &str) -> Option<Value> {
    let digits = text.trim_start_matches(['-', '+']);
    if !digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Some(Value::Integer(integer));
    }
    let floating = digits.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    floating.then(|| text.parse::<f64>().ok()).flatten().filter(|float| float.is_finite()).map(Value::Float)
}
