//! The lines of the log: one event is one line, as text or as JSON, whatever a server managed to get into it.
//!
//! Errors quote servers and clients. Characters that end lines, move the cursor or reorder text are escaped
//! here, for every event, so that no place that logs can forget it.

use std::fmt::{self, Debug, Write};
use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::Clock;
use toolwarden_core::name::{shown, shown_json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Bytes of one value that are written.
const LONGEST_VALUE: usize = 8 * 1024;

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text { colours: bool },
    Json,
}

/// Writes events as lines.
#[derive(Debug)]
pub struct LogLines {
    format: LogFormat,
    clock: Arc<dyn Clock>,
}

impl LogLines {
    #[must_use]
    pub fn new(format: LogFormat, clock: Arc<dyn Clock>) -> Self {
        Self { format, clock }
    }
}

impl<S, N> FormatEvent<S, N> for LogLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut said = Said::default();
        event.record(&mut said);
        let (now, about) = (self.clock.now(), event.metadata());
        let line = match self.format {
            LogFormat::Text { colours } => said.text(now, *about.level(), colours),
            LogFormat::Json => said.json(now, *about.level(), about.target()),
        };
        writeln!(writer, "{line}")
    }
}

/// One value, as text or as a number that JSON knows.
#[derive(Debug)]
enum Value {
    Text(String),
    Plain(String),
}

/// What an event says.
#[derive(Debug, Default)]
struct Said {
    message: String,
    fields: Vec<(&'static str, Value)>,
}

impl Said {
    fn take(&mut self, field: &Field, mut text: String) {
        if text.len() > LONGEST_VALUE {
            text.truncate(text.floor_char_boundary(LONGEST_VALUE));
            text.push_str(" ..");
        }
        match field.name() {
            "message" => self.message = text,
            name => self.fields.push((name, Value::Text(text))),
        }
    }

    fn text(&self, now: Timestamp, level: Level, colours: bool) -> String {
        let mut line = format!("{now:.6} ");
        let _ = match colours {
            true => write!(line, "\u{1b}[{}m{level:>5}\u{1b}[0m ", colour(level)),
            false => write!(line, "{level:>5} "),
        };
        line.push_str(&escaped(&self.message));
        for (name, value) in &self.fields {
            let _ = match value {
                Value::Text(text) if is_word(text) => write!(line, " {name}={text}"),
                Value::Text(text) => write!(line, " {name}=\"{}\"", escaped(text).replace('"', "\\\"")),
                Value::Plain(text) => write!(line, " {name}={text}"),
            };
        }
        line
    }

    fn json(&self, now: Timestamp, level: Level, target: &str) -> String {
        let mut line = format!("{{\"time\":\"{now:.6}\",\"level\":\"{}\",\"target\":", level.as_str().to_lowercase());
        push_json(&mut line, target);
        line.push_str(",\"message\":");
        push_json(&mut line, &self.message);
        line.push_str(",\"fields\":{");
        for (place, (name, value)) in self.fields.iter().enumerate() {
            line.push_str(if place == 0 { "" } else { "," });
            push_json(&mut line, name);
            line.push(':');
            match value {
                Value::Text(text) => push_json(&mut line, text),
                Value::Plain(text) => line.push_str(text),
            }
        }
        line.push_str("}}");
        line
    }
}

impl Visit for Said {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.take(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value.to_owned());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.fields.push((field.name(), Value::Plain(value.to_string())));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.fields.push((field.name(), Value::Plain(value.to_string())));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.fields.push((field.name(), Value::Plain(value.to_string())));
    }
}

fn colour(level: Level) -> u8 {
    match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    }
}

/// A value that needs no quotes and no escapes.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|one| one.is_ascii_graphic() && !matches!(one, '"' | '=' | '\\'))
}

/// Text that stays on its line and in its order.
fn escaped(text: &str) -> String {
    shown(&text.replace('\r', "\\r").replace('\n', "\\n").replace('\t', "\\t")).into_owned()
}

/// A text as a JSON string, in which nothing acts on a terminal or hides.
fn push_json(line: &mut String, text: &str) {
    line.push_str(&shown_json(&serde_json::Value::from(text).to_string()));
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
