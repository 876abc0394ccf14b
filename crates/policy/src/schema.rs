//! A tool's schemas, compiled once. Remote references are never fetched.

use serde_json::Value;
use toolwarden_core::json::{self, Kind};

/// A compiled JSON Schema, or the reason it could not be compiled.
#[derive(Debug)]
pub struct Schema(Result<jsonschema::Validator, String>);

impl Schema {
    #[must_use]
    pub fn compile(schema: &Value) -> Self {
        Self(jsonschema::validator_for(schema).map_err(|error| error.to_string()))
    }

    /// What is wrong with the schema itself.
    #[must_use]
    pub fn fault(&self) -> Option<&str> {
        self.0.as_ref().err().map(String::as_str)
    }

    /// Checks arguments; a tool called without any is called with an empty object.
    ///
    /// # Errors
    /// The place and the rule that is broken, without the value: it may be a secret.
    pub fn check(&self, arguments: Option<json::Value<'_>>) -> Result<(), String> {
        let empty = || Some(Value::Object(serde_json::Map::new()));
        self.fits(arguments.map_or_else(empty, to_value), "the arguments")
    }

    /// Checks the result of a call: what it has for programs to read.
    ///
    /// # Errors
    /// The same of a result.
    pub fn check_result(&self, result: json::Value<'_>) -> Result<(), String> {
        match result.get("structuredContent") {
            None => Err("the result has no `structuredContent`".to_owned()),
            Some(content) => self.fits(to_value(content), "`structuredContent`"),
        }
    }

    fn fits(&self, instance: Option<Value>, whole: &str) -> Result<(), String> {
        let validator = self.0.as_ref().map_err(|fault| format!("the tool's schema cannot be used: {fault}"))?;
        let Some(instance) = instance else {
            return Err(format!("{whole}: a number is too large to be checked"));
        };
        match validator.iter_errors(&instance).next() {
            None => Ok(()),
            Some(error) => {
                let place = error.instance_path().to_string();
                let place = if place.is_empty() { whole.to_owned() } else { place };
                Err(format!("{place}: {}", error.masked()))
            }
        }
    }
}

/// The value another library can read; none where a number is beyond it, which must not pass unseen.
pub(crate) fn to_value(value: json::Value<'_>) -> Option<Value> {
    Some(match value.kind() {
        Kind::Null => Value::Null,
        Kind::True => Value::Bool(true),
        Kind::False => Value::Bool(false),
        Kind::Number => serde_json::from_str(value.raw()).ok()?,
        Kind::String => Value::String(value.as_str()?.into_owned()),
        Kind::Array => Value::Array(value.items().map(to_value).collect::<Option<_>>()?),
        Kind::Object => {
            let members =
                value.entries().map(|(key, member)| Some((json::unescape(key).into_owned(), to_value(member)?)));
            Value::Object(members.collect::<Option<_>>()?)
        }
    })
}
