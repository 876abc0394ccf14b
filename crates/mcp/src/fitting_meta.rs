//! Members of `_meta` that are no part of a call's digest (REVIEW-5), and so of nothing that a person approves.
//!
//! Takes `_meta` as it came; gives it as it travels. Every such member is of its protocol's form and bounded, or it is
//! left out. For a call that somebody answered for, what a person did not see is left out as well: only members with a
//! narrow form travel (a short progress token, the protocol version, a log level, `traceparent`, the client's name and
//! version, and the names of capabilities). All other members are as they came: they are part of the digest.

use toolwarden_core::LEFT_OUT_OF_META;
use toolwarden_core::json::{Document, Kind, Limits, Value};

use crate::compose::{object_with, quoted};

const LONGEST_TOKEN: usize = 256;
const LONGEST_PLAIN_TOKEN: usize = 64;
/// An integer of 64 bits with its sign.
const LONGEST_NUMBER: usize = 20;
/// Largest capabilities that travel with a call somebody answered for.
const LARGEST_PLAIN: usize = 2_048;
const LARGEST_OBJECT: usize = 64 * 1024;
const LONGEST_NAME: usize = 128;
/// What the standard asks everybody to pass on.
const LONGEST_STATE: usize = 512;
const MOST_STATES: usize = 32;
const LONGEST_BAGGAGE: usize = 8192;
const MOST_BAGGAGE: usize = 64;
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// Members of `clientInfo` that travel with an approved call.
const NAMES: [&str; 3] = ["name", "version", "title"];

/// Whether somebody answered for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answered {
    /// Nobody was asked.
    No,
    /// A person, a grant or a classifier did, by what they were shown.
    Yes,
}

/// What becomes of a member.
enum Fit {
    AsItIs,
    Out,
    As(String),
}

/// `_meta` as it travels; none where it is as it came.
#[must_use]
pub fn fitting_meta(meta: Value<'_>, answered: Answered) -> Option<String> {
    if meta.kind() != Kind::Object {
        return None;
    }
    let is_traced = meta.get("traceparent").and_then(|parent| parent.as_str()).is_some_and(|it| is_parent(&it));
    let mut changed: Vec<(&str, Option<String>)> = Vec::new();
    // Only members the digest leaves out: those in another spelling are part of it.
    let members = meta.entries().filter(|(key, _)| LEFT_OUT_OF_META.contains(key));
    for (key, value) in members {
        let name = key.trim_matches('"');
        let fit = match name {
            "tracestate" | "baggage" if answered == Answered::Yes => Fit::Out,
            "tracestate" => kept(is_traced && text(value).is_some_and(|text| is_state(&text))),
            "baggage" => kept(text(value).is_some_and(|text| is_baggage(&text))),
            "traceparent" => kept(is_traced),
            "progressToken" => kept(is_token(value, answered)),
            "io.modelcontextprotocol/protocolVersion" => kept(text(value).is_some_and(|text| is_plain(&text))),
            "io.modelcontextprotocol/logLevel" => kept(is_log_level(value)),
            "io.modelcontextprotocol/clientInfo" => client_info(value, answered),
            "io.modelcontextprotocol/clientCapabilities" => capabilities(value, answered),
            _ => Fit::Out,
        };
        match fit {
            Fit::AsItIs => {}
            Fit::Out => changed.push((name, None)),
            Fit::As(text) => changed.push((name, Some(text))),
        }
    }
    let changed: Vec<(&str, Option<&str>)> = changed.iter().map(|(name, text)| (*name, text.as_deref())).collect();
    (!changed.is_empty()).then(|| object_with(Some(meta), &changed))
}

/// The same for `_meta` that the gateway wrote.
#[must_use]
pub fn fitting_meta_text(meta: String, answered: Answered) -> String {
    let limits = Limits::again(meta.len());
    match Document::parse(meta.as_str(), limits) {
        Ok(document) => fitting_meta(document.root(), answered).unwrap_or(meta),
        Err(_) => "{}".to_owned(),
    }
}

/// Capabilities as they travel with an approved call: names, objects and switches, and no other values.
#[must_use]
pub fn plain_capabilities(capabilities: Value<'_>) -> String {
    let is_name = |key: &str| {
        let name = key.trim_matches('"');
        !name.is_empty()
            && name.len() <= LONGEST_NAME
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte))
    };
    let member = |(key, value): (&str, Value<'_>)| match value.kind() {
        Kind::Object if is_name(key) => Some(format!("{key}:{}", plain_capabilities(value))),
        Kind::True | Kind::False if is_name(key) => Some(format!("{key}:{}", value.raw())),
        _ => None,
    };
    format!("{{{}}}", capabilities.entries().filter_map(member).collect::<Vec<_>>().join(","))
}

/// Whether a value is one of the eight log levels.
#[must_use]
pub fn is_log_level(value: Value<'_>) -> bool {
    text(value).is_some_and(|text| LEVELS.contains(&&*text))
}

fn kept(is_fit: bool) -> Fit {
    if is_fit { Fit::AsItIs } else { Fit::Out }
}

/// Written without escapes, as everybody writes these.
fn text(value: Value<'_>) -> Option<std::borrow::Cow<'_, str>> {
    value.as_str().filter(|text| text.len() + 2 == value.raw().len())
}

fn is_plain(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
    !text.is_empty() && text.len() <= LONGEST_PLAIN_TOKEN && text.bytes().all(is_letter)
}

fn is_token(value: Value<'_>, answered: Answered) -> bool {
    match (value.kind(), answered) {
        (Kind::String, Answered::No) => value.raw().len() <= LONGEST_TOKEN,
        (Kind::String, Answered::Yes) => text(value).is_some_and(|text| is_plain(&text)),
        (Kind::Number, _) => {
            let digits = value.raw().strip_prefix('-').unwrap_or(value.raw());
            value.raw().len() <= LONGEST_NUMBER && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        _ => false,
    }
}

fn client_info(value: Value<'_>, answered: Answered) -> Fit {
    if value.kind() != Kind::Object || value.raw().len() > LARGEST_OBJECT {
        return Fit::Out;
    }
    if answered == Answered::No {
        return Fit::AsItIs;
    }
    let is_name = |text: &str| text.chars().count() <= LONGEST_NAME && !text.chars().any(char::is_control);
    let member = |name: &&str| {
        let text = value.get(name)?.as_str().filter(|text| is_name(text))?;
        Some(format!("{}:{}", quoted(name), quoted(&text)))
    };
    let members: Vec<String> = NAMES.iter().filter_map(member).collect();
    if members.is_empty() { Fit::Out } else { Fit::As(format!("{{{}}}", members.join(","))) }
}

fn capabilities(value: Value<'_>, answered: Answered) -> Fit {
    if value.kind() != Kind::Object {
        return Fit::Out;
    }
    let fitting = fitting_capabilities(value, answered);
    if fitting == value.raw() { Fit::AsItIs } else { Fit::As(fitting) }
}

/// Capabilities as they travel: bounded and, with a call that somebody answered for, names and switches alone. None
/// where there is too much, because a modern server needs the member.
#[must_use]
pub fn fitting_capabilities(value: Value<'_>, answered: Answered) -> String {
    let (fitting, most) = match answered {
        Answered::No => (value.raw().to_owned(), LARGEST_OBJECT),
        Answered::Yes => (plain_capabilities(value), LARGEST_PLAIN),
    };
    if fitting.len() <= most { fitting } else { "{}".to_owned() }
}

/// `traceparent` of W3C Trace Context, version 00: 55 characters.
fn is_parent(text: &str) -> bool {
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, span, flags] = parts.as_slice() else { return false };
    let is_zero = |part: &str| part.bytes().all(|byte| byte == b'0');
    *version == "00" && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2) && !is_zero(trace) && !is_zero(span)
}

/// `tracestate` of W3C Trace Context: members `key=value`.
fn is_state(text: &str) -> bool {
    let is_key = |key: &str| {
        let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
        !key.is_empty() && key.len() <= 256 && key.bytes().all(is_letter)
    };
    let is_value = |value: &str| {
        let is_letter = |byte: u8| (0x20..0x7f).contains(&byte) && byte != b',' && byte != b'=';
        !value.is_empty() && value.len() <= 256 && value.bytes().all(is_letter)
    };
    let is_member = |member: &str| member.split_once('=').is_some_and(|(key, value)| is_key(key) && is_value(value));
    is_list(text, LONGEST_STATE, MOST_STATES, is_member)
}

/// `baggage` of W3C Baggage: members `key=value;property`.
fn is_baggage(text: &str) -> bool {
    let is_token = |text: &str| {
        let text = text.trim_matches([' ', '\t']);
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        !text.is_empty() && text.bytes().all(is_letter)
    };
    let is_value = |text: &str| {
        let text = text.trim_matches([' ', '\t']);
        let is_letter = |byte: u8| matches!(byte, 0x21 | 0x23..=0x2b | 0x2d..=0x3a | 0x3c..=0x5b | 0x5d..=0x7e);
        text.bytes().all(is_letter)
    };
    let is_pair = |pair: &str| pair.split_once('=').is_some_and(|(key, value)| is_token(key) && is_value(value));
    let is_member = |member: &str| {
        let mut parts = member.split(';');
        parts.next().is_some_and(is_pair) && parts.all(|property| is_pair(property) || is_token(property))
    };
    is_list(text, LONGEST_BAGGAGE, MOST_BAGGAGE, is_member)
}

fn is_list(text: &str, longest: usize, most: usize, is_member: impl Fn(&str) -> bool) -> bool {
    let members: Vec<&str> = text.split(',').map(|member| member.trim_matches([' ', '\t'])).collect();
    !text.is_empty()
        && text.len() <= longest
        && members.len() <= most
        && members.iter().all(|member| member.is_empty() || is_member(member))
        && members.iter().any(|member| !member.is_empty())
}

#[cfg(test)]
#[path = "fitting_meta_tests.rs"]
mod tests;
