//! A tool's schemas, compiled once, and checks with a budget. Remote references are never fetched.
//!
//! Everything that cannot be read or compiled makes the schema unusable, and an unusable schema fits nothing: its tool
//! is denied (WORK-1). There is no other way to make a `Schema`.

mod budget;
mod patterns;
mod positions;
mod strays;
mod unevaluated;

use serde_json::Value;
use toolwarden_core::json::{self, Kind};
use toolwarden_core::{Weakness, weak};

use crate::numbers;
pub use budget::briefly;

/// The largest schema that is compiled, in values.
const MOST_SCHEMA_VALUES: usize = 50_000;
/// The most values that are checked against a schema.
const MOST_VALUES: usize = 500_000;
/// The most values times the widest part of the schema.
const MOST_COMPARISONS: usize = 20_000_000;
/// The most values the schemas of one server may hold, and bytes their compiled patterns.
const MOST_VALUES_OF_A_SERVER: usize = 1_000_000;
const MOST_PATTERNS_OF_A_SERVER: usize = 16 * 1024 * 1024;
/// What a schema that is compiled again counts, in values: about as much memory.
const VALUES_OF_A_SCHEMA: usize = 32;
/// Where a fault is looked for: so many values, each against so many schemas.
const MOST_EXPLAINED: u64 = 100_000;

/// How many schemas are followed to find out.
const MOST_UNFOLDED: u64 = 2_000;

/// A compiled JSON Schema, or the reason it could not be compiled.
#[derive(Debug)]
pub struct Schema {
    compiled: Result<Compiled, String>,
    /// Of the room of its server.
    taken: Room,
    /// It could be used if the others of its server were smaller.
    is_for_want_of_room: bool,
}

#[derive(Debug)]
struct Compiled {
    validator: jsonschema::Validator,
    /// The most members or items of one of its parts.
    widest: usize,
    /// What every name in a value may be searched for.
    of_names: u64,
    /// How many schemas one value may be put before, where that is few enough to look for the place of a fault.
    unfolded: Option<u64>,
}

/// What the schemas of a server may take, or one of them takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Room {
    values: usize,
    patterns: usize,
}

impl Room {
    const NONE: Self = Self { values: 0, patterns: 0 };

    /// What one server has.
    pub(crate) fn of_a_server() -> Self {
        let (values, patterns) = (MOST_VALUES_OF_A_SERVER, MOST_PATTERNS_OF_A_SERVER);
        Self { values: weak::limit(values), patterns: weak::limit(patterns) }
    }

    fn without(self, taken: Self) -> Option<Self> {
        let values = self.values.checked_sub(taken.values)?;
        Some(Self { values, patterns: self.patterns.checked_sub(taken.patterns)? })
    }
}

/// What a check took, for tests that hold it to its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    pub values: usize,
    pub steps: u64,
}

impl Schema {
    /// Compiles a schema. MCP says it is an object; anything else is unusable, also where a server could mean
    /// "anything" by it. A text says why a schema could not be read.
    #[must_use]
    pub fn compile(schema: &Value) -> Self {
        Self::compile_within(schema, &mut Room::of_a_server())
    }

    /// The same of one of many, in the room they leave each other.
    pub(crate) fn compile_within(schema: &Value, room: &mut Room) -> Self {
        let mut taken = Room::NONE;
        let compiled = compile(schema, *room, &mut taken);
        let is_for_want_of_room = matches!(compiled, Err(Fault::Room));
        let compiled = compiled.map_err(|fault| match fault {
            Fault::Schema(why) => why,
            Fault::Room => "it and the other schemas of its server are too large together".to_owned(),
        });
        weak::worked(u64::try_from(taken.values.saturating_add(taken.patterns / 256)).unwrap_or(u64::MAX));
        *room = room.without(taken).unwrap_or(Room::NONE);
        Self { compiled, taken, is_for_want_of_room }
    }

    /// Takes the room again it took when it was compiled; false where it must be compiled anew.
    pub(crate) fn fits_again(&self, room: &mut Room) -> bool {
        let left = room.without(self.taken).filter(|_| !self.is_for_want_of_room);
        *room = left.unwrap_or(*room);
        left.is_some()
    }

    /// What is wrong with the schema itself.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.compiled.as_ref().err().map(String::as_str)
    }

    /// Checks arguments; a tool called without any is called with an empty object.
    ///
    /// # Errors
    /// The place and the rule that is broken, without the value: it may be a secret.
    pub fn check(&self, arguments: Option<json::Value<'_>>) -> Result<(), String> {
        self.fits(arguments, "the arguments", Numbers::Exact).0
    }

    /// Checks the result of a call: what it has for programs to read.
    ///
    /// # Errors
    /// The same of a result.
    pub fn check_result(&self, result: json::Value<'_>) -> Result<(), String> {
        match result.get("structuredContent") {
            None => Err("the result has no `structuredContent`".to_owned()),
            content => self.fits(content, "`structuredContent`", Numbers::Near).0,
        }
    }

    /// The same check of arguments, with the work it took.
    ///
    /// # Errors
    /// As `check`.
    pub fn measured(&self, arguments: Option<json::Value<'_>>) -> (Result<(), String>, Work) {
        self.fits(arguments, "the arguments", Numbers::Exact)
    }

    fn fits(&self, value: Option<json::Value<'_>>, whole: &str, numbers: Numbers) -> (Result<(), String>, Work) {
        let mut work = Work { values: 0, steps: 0 };
        let compiled = match &self.compiled {
            Ok(compiled) => compiled,
            Err(_) if weak::is(Weakness::Schemas) => return (Ok(()), work),
            Err(fault) => return (Err(format!("the tool's schema cannot be used: {fault}")), work),
        };
        let most = weak::limit(MOST_VALUES.min(MOST_COMPARISONS / compiled.widest.max(1)));
        let instance = match value {
            None => Value::Object(serde_json::Map::new()),
            Some(value) => match convert(value, most, numbers, &mut work.values) {
                Ok(instance) => instance,
                Err(why) => return (Err(format!("{whole}: {why}")), work),
            },
        };
        // The library searches names before it comes to what counts; what it can search at once is bounded here.
        let names = if compiled.of_names == 0 { 0 } else { steps_of_names(&instance) };
        let names = names.saturating_mul(compiled.of_names);
        if budget::is_too_much(names, budget::MOST_STEPS) {
            work.steps = names;
            return (Err(format!("{whole}: checking their names takes more than {} steps", budget::MOST_STEPS)), work);
        }
        let (fits, steps) = budget::counted(|| compiled.validator.is_valid(&instance));
        work.steps = steps;
        weak::worked(steps.saturating_add(u64::try_from(work.values).unwrap_or(u64::MAX)));
        let checked = match fits {
            Some(true) => Ok(()),
            Some(false) => Err(compiled.describe(&instance, work.values, whole)),
            None => Err(format!("{whole}: checking them takes more than {} steps", budget::MOST_STEPS)),
        };
        (checked, work)
    }
}

impl Compiled {
    /// The first fault and its place. It is looked for only where that is little work.
    fn describe(&self, instance: &Value, values: usize, whole: &str) -> String {
        let values = u64::try_from(values).unwrap_or(u64::MAX).max(1);
        let is_little =
            self.unfolded.is_some_and(|schemas| !budget::is_too_much(schemas.saturating_mul(values), MOST_EXPLAINED));
        if !is_little {
            return format!("{whole}: they do not fit the tool's schema");
        }
        match budget::counted(|| self.validator.validate(instance)).0 {
            None | Some(Ok(())) => format!("{whole}: they do not fit the tool's schema"),
            Some(Err(error)) => {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { whole.to_owned() } else { place };
                format!("{place}: {}", error.masked())
            }
        }
    }
}

/// Why a schema could not be compiled.
enum Fault {
    Schema(String),
    Room,
}

impl From<String> for Fault {
    fn from(why: String) -> Self {
        Self::Schema(why)
    }
}

fn compile(schema: &Value, room: Room, taken: &mut Room) -> Result<Compiled, Fault> {
    match schema {
        Value::Object(_) => {}
        Value::String(why) => return Err(why.clone().into()),
        _ => return Err("it is no object".to_owned().into()),
    }
    let (values, widest) = size(schema);
    if values > weak::limit(MOST_SCHEMA_VALUES) {
        return Err(format!("it holds {values} values, more than {MOST_SCHEMA_VALUES}").into());
    }
    if values > room.values {
        return Err(Fault::Room);
    }
    taken.values = values;
    let places = positions::places(schema)?;
    let again = unevaluated::compiled_again(schema, &places).ok_or_else(|| {
        format!("its `unevaluated..` keywords stand for more than {} schemas", unevaluated::MOST_SCHEMAS)
    })?;
    taken.values = values.saturating_add(again.saturating_mul(VALUES_OF_A_SCHEMA));
    if taken.values > room.values {
        return Err(Fault::Room);
    }
    let of_one = weak::limit(patterns::MOST_OF_ONE);
    let measured = patterns::measure(schema, &places, of_one.min(room.patterns));
    // What was compiled to find out counts as well, so that nobody finds out again and again.
    taken.patterns = measured.as_ref().map_or(of_one.min(room.patterns), |measured| measured.taken);
    let measured = measured.map_err(|fault| match fault {
        patterns::Fault::Pattern(why) => Fault::Schema(why),
        patterns::Fault::Room if room.patterns < of_one => Fault::Room,
        patterns::Fault::Room => Fault::Schema(format!("its patterns become larger than {of_one} bytes together")),
    })?;
    let counted = budget::with_counts(schema, &places, &measured);
    let searching = jsonschema::PatternOptions::regex()
        .size_limit(weak::limit(patterns::LARGEST_PATTERN))
        .dfa_size_limit(patterns::LARGEST_MEMORY);
    let options = jsonschema::options().with_keyword(budget::name(), budget::keyword).with_pattern_options(searching);
    let validator = options.build(&counted).map_err(|error| error.to_string())?;
    let of_names = measured.of_names.values().fold(0, |all: u64, one| all.saturating_add(*one));
    Ok(Compiled { validator, widest, of_names, unfolded: positions::unfolded(schema, MOST_UNFOLDED) })
}

/// What all names in a value take to be searched once.
fn steps_of_names(value: &Value) -> u64 {
    match value {
        Value::Array(items) => items.iter().map(steps_of_names).sum(),
        Value::Object(members) => {
            members.iter().map(|(name, value)| budget::steps_of(name.len()).saturating_add(steps_of_names(value))).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

/// How many values a schema holds, and the most in one of its parts.
fn size(schema: &Value) -> (usize, usize) {
    let inner: Vec<&Value> = match schema {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    inner
        .iter()
        .map(|value| size(value))
        .fold((1, inner.len()), |(values, widest), (more, other)| (values.saturating_add(more), widest.max(other)))
}

/// The schema of a definition as a server sent it. A text that cannot be read becomes the words why, which no tool
/// can be called with.
#[must_use]
pub fn read_schema(schema: json::Value<'_>) -> Value {
    match schema.kind() {
        Kind::Object => {}
        Kind::Null => return Value::Null,
        _ => return Value::String("it is no object".to_owned()),
    }
    // The other library says what it cannot read, such as a schema too deep for it; its numbers are not exact.
    if let Err(error) = serde_json::from_str::<Value>(schema.raw()) {
        return Value::String(format!("it cannot be read: {error}"));
    }
    convert(schema, usize::MAX, Numbers::Exact, &mut 0).unwrap_or_else(Value::String)
}

/// What a tool's listed definition says its arguments are. MCP demands that it says something: nothing is no "anything", and
/// a tool without it cannot be called (GATE-12).
#[must_use]
pub fn read_input_schema(schema: Option<json::Value<'_>>) -> Value {
    schema.map_or_else(missing_input_schema, read_schema)
}

/// The same where there is none.
#[must_use]
pub fn missing_input_schema() -> Value {
    Value::String("its server lists none, and MCP demands one (`inputSchema`)".to_owned())
}

/// How numbers are taken that the checker, which knows 64 bits, cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbers {
    /// Refused: what is compared must be what the server is sent (WORK-2).
    Exact,
    /// The nearest one: for results, which were made already.
    Near,
}

impl Numbers {
    fn read(self, text: &str) -> Result<Value, String> {
        if let Ok(whole) = text.parse::<i64>() {
            return Ok(whole.into());
        }
        if let Ok(whole) = text.parse::<u64>() {
            return Ok(whole.into());
        }
        let fraction = text.parse::<f64>().ok().filter(|fraction| fraction.is_finite());
        let fraction = fraction.ok_or_else(|| "a number is too large to be checked".to_owned())?;
        if self == Self::Exact && !numbers::is_exactly(text, fraction) && !weak::is(Weakness::Arguments) {
            let why = "a number cannot be represented exactly: integers have 64 bits, fractions at most 17 digits";
            return Err(why.to_owned());
        }
        Ok(fraction.into())
    }
}

/// The value another library can read; why not, where a number is beyond it or there are too many values.
fn convert(value: json::Value<'_>, most: usize, numbers: Numbers, taken: &mut usize) -> Result<Value, String> {
    *taken += 1;
    if *taken > most {
        return Err(format!("it holds more than the {most} values that can be checked against this schema"));
    }
    Ok(match value.kind() {
        Kind::Null => Value::Null,
        Kind::True => Value::Bool(true),
        Kind::False => Value::Bool(false),
        Kind::Number => numbers.read(value.raw())?,
        Kind::String => Value::String(value.as_str().unwrap_or_default().into_owned()),
        Kind::Array => {
            Value::Array(value.items().map(|item| convert(item, most, numbers, taken)).collect::<Result<_, String>>()?)
        }
        Kind::Object => {
            let members = value
                .entries()
                .map(|(key, member)| Ok((json::unescape(key).into_owned(), convert(member, most, numbers, taken)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
    })
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
