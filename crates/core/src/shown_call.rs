//! A call as a person reads it: every member as it was sent, laid out in lines, nothing left out but what belongs to the
//! exchange.
//!
//! From the bytes themselves: a parser that rounds numbers, or gives up on one, must not decide what a person sees.

use crate::beside_arguments::{MemberBeside, beside_arguments};
use crate::json::{Document, Kind, Limits, Value};

/// What a person is shown of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownCall {
    /// The arguments of a tool, or everything where it is none; as they were sent.
    pub arguments: String,
    /// The same in lines.
    pub laid_out: String,
    /// What is sent besides, as it is, where anything is.
    pub besides: Option<String>,
}

impl ShownCall {
    /// Of the params of a method. What cannot be read is shown as it is.
    #[must_use]
    pub fn of(method: &str, params: &str) -> Self {
        let Ok(document) = Document::parse(params, Limits::again(params.len())) else {
            return Self { arguments: params.to_owned(), laid_out: params.to_owned(), besides: None };
        };
        let all = document.root();
        if method != "tools/call" {
            return Self { arguments: all.raw().to_owned(), laid_out: laid_out(all), besides: None };
        }
        let arguments = all.get("arguments");
        Self {
            arguments: arguments.map_or("{}", Value::raw).to_owned(),
            laid_out: arguments.map_or("{}".to_owned(), laid_out),
            besides: besides(all),
        }
    }
}

fn besides(all: Value<'_>) -> Option<String> {
    let line = |member: &MemberBeside<'_>| {
        let place = if member.is_in_meta { "_meta " } else { "" };
        format!("{place}{}: {}", member.key, member.value.raw())
    };
    let lines: Vec<String> = beside_arguments(all).iter().map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A value in lines; numbers and texts as they were sent. Depth is bounded by the limits it was read under.
fn laid_out(value: Value<'_>) -> String {
    let mut text = String::new();
    write(&mut text, value, 0);
    text
}

fn write(text: &mut String, value: Value<'_>, depth: usize) {
    let inner = "  ".repeat(depth + 1);
    let (open, close, lines): (_, _, Vec<String>) = match value.kind() {
        Kind::Object => {
            let member = |(key, value): (&str, Value<'_>)| {
                let mut line = format!("{inner}{key}: ");
                write(&mut line, value, depth + 1);
                line
            };
            ('{', '}', value.entries().map(member).collect())
        }
        Kind::Array => {
            let item = |value| {
                let mut line = inner.clone();
                write(&mut line, value, depth + 1);
                line
            };
            ('[', ']', value.items().map(item).collect())
        }
        Kind::Null | Kind::True | Kind::False | Kind::Number | Kind::String => return text.push_str(value.raw()),
    };
    text.push(open);
    if !lines.is_empty() {
        text.push_str(&format!("\n{}\n{}", lines.join(",\n"), "  ".repeat(depth)));
    }
    text.push(close);
}

#[cfg(test)]
#[path = "shown_call_tests.rs"]
mod tests;
