//! Arguments of calls as they may stand in the record: secrets, named values and patterns replaced by a mark, and bounded
//! in size (`[audit] arguments`, `redaction`; GATE-15).
//!
//! Hides too much rather than too little. What cannot be looked at is left out.

use std::collections::HashSet;
use std::ops::Range;

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value as Json};
use toolwarden_core::json::{Document, Kind, Limits, Value};
use toolwarden_sources::RedactionRules;

use crate::screen::{Secrets, of_member};

/// Stands where something was hidden.
pub const MARK: &str = "[redacted]";
/// Stands where something was left out because there is too much.
pub const LEFT_OUT: &str = "[left out]";

/// Bytes of one record's arguments, of one text in it, and of a text that is looked at. The last is larger, so that what a
/// record shows of a text was looked at with what follows.
const MOST_BYTES: usize = 16 * 1024;
const LONGEST_TEXT: usize = 1024;
const LOOKED_AT: usize = 16 * 1024;
const LONGEST_NAME: usize = 128;
/// JSON in a text in JSON.
const DEEPEST_TEXT: usize = 4;
const LARGEST_EXPRESSION: usize = 1024 * 1024;
/// Words at the end of a name that may be one that is hidden.
const LONGEST_ENDING: usize = 3;
/// Last words of members whose value is the name of what stands beside it.
const NAMING: [&str; 18] = [
    "name",
    "key",
    "field",
    "header",
    "param",
    "parameter",
    "variable",
    "var",
    "env",
    "option",
    "flag",
    "attribute",
    "property",
    "setting",
    "label",
    "id",
    "column",
    "type",
];

/// Last words of members that hold the value of whatever a member beside them names.
const HOLDING: [&str; 9] = ["value", "values", "val", "answer", "answers", "reply", "response", "input", "entered"];

/// Names that are hidden whatever the config says; their words may be joined, or parted by `_` or `-`.
const ALWAYS: [&str; 32] = [
    "pass",
    "pin",
    "pin_code",
    "otp",
    "totp",
    "cvv",
    "cvc",
    "mfa_code",
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "secrets",
    "secret_key",
    "client_secret",
    "token",
    "access_token",
    "refresh_token",
    "id_token",
    "auth_token",
    "api_token",
    "api_key",
    "access_key",
    "private_key",
    "authorization",
    "credential",
    "credentials",
    "cookie",
    "set_cookie",
    "session_id",
    "bearer",
];

/// Names that hide every name they stand in: `passwordConfirmation`, `PGPASSWORD`.
const ANYWHERE: [&str; 5] = ["password", "passwd", "passphrase", "secret", "apikey"];

/// Values in texts that no name stands before: what follows is the secret, up to the end of the line or quote.
const SHAPES: [&str; 4] = [
    r#"(?i)\b(?:authorization|(?:set-)?cookie)["']?\s*[:=]\s*["']?(?P<value>[^\r\n"']+)"#,
    r#"(?i)(?:^|\s)(?:-u|--user)[= ]\s*['"]?[^\s:'"]+:(?P<value>[^\s'"]+)"#,
    r#"(?i)\b(?:sshpass\s+-p\s*|(?:mysql|mysqldump|mariadb)\b[^\n|;]*?\s-p)(?P<value>[^\s]+)"#,
    r#"<(?P<name>[A-Za-z][A-Za-z0-9_:.-]{0,60})[^<>]*>(?P<value>[^<]+)<"#,
];

/// A name with a value behind `=` or `:`. The value is the whole word.
const ASSIGNED: &str = r#"(?P<name>[A-Za-z][A-Za-z0-9_.-]{0,60})["']?\s*[=:]\s*(?P<value>"[^"]*"|'[^']*'|[^\s"']+)"#;

/// Hides parts of arguments.
#[derive(Debug)]
pub struct Redactor {
    /// None where it could not be built: then every text is hidden.
    secrets: Option<Secrets>,
    names: HashSet<String>,
    /// Dotted paths, such as `user.pin`.
    paths: HashSet<String>,
    /// A named value behind a blank: `--pin 1234`, `password is x`.
    assigned: Option<Regex>,
    /// Values behind `=` and `:`, and other shapes; with `name`, only where that name is hidden.
    shapes: Option<Vec<Regex>>,
    patterns: Vec<Regex>,
}

impl Redactor {
    #[must_use]
    pub fn new(rules: &RedactionRules) -> Self {
        let (paths, names): (Vec<&String>, Vec<&String>) =
            rules.names.iter().partition(|name| name.contains(['.', '/']));
        let paths = paths.into_iter().map(|path| path.trim_matches('/').replace('/', ".").to_lowercase()).collect();
        let plain: HashSet<String> = names.iter().map(|name| letters(name)).filter(|name| !name.is_empty()).collect();
        let words = names.iter().map(|name| name.as_str()).chain(ALWAYS);
        Self {
            secrets: Secrets::new(),
            assigned: assigned(words),
            shapes: SHAPES.iter().chain([&ASSIGNED]).map(|shape| bounded(shape)).collect(),
            names: plain.into_iter().chain(ALWAYS.map(letters)).collect(),
            paths,
            patterns: rules.patterns.clone(),
        }
    }

    /// What may be recorded of arguments.
    #[must_use]
    pub fn redacted(&self, arguments: Value<'_>) -> Json {
        let mut looking = Looking { redactor: self, left: MOST_BYTES, path: Vec::new() };
        looking.value(arguments, None, 0)
    }

    fn hides_member(&self, name: &str, path: &[String]) -> bool {
        let is_path = || {
            let whole = path.join(".");
            self.paths.iter().any(|hidden| whole == *hidden || whole.ends_with(&format!(".{hidden}")))
        };
        // A name that is too long to be looked at hides, too.
        name.len() > LONGEST_NAME || self.hides_name(name) || (!self.paths.is_empty() && is_path())
    }

    /// Whether a name, or how it ends (`DB_PASSWORD`, `userApiKey`), is one that is hidden.
    fn hides_name(&self, name: &str) -> bool {
        if name.len() > LONGEST_NAME {
            return false;
        }
        let words = words(name);
        let ends = (1..=LONGEST_ENDING).filter_map(|count| words.len().checked_sub(count));
        let is_hidden = |name: &str| {
            // `password1`, `tokens`
            let bare = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
            self.names.contains(name) || self.names.contains(bare) || self.names.contains(bare.trim_end_matches('s'))
        };
        let joined = letters(name);
        is_hidden(&joined)
            || ANYWHERE.iter().any(|part| joined.contains(part))
            || ends.filter_map(|start| words.get(start..)).any(|ending| is_hidden(&ending.concat()))
    }

    /// Whether a text names what follows it in a list: `--password`, `API_KEY`. Prose that ends in such a word does not.
    fn names_the_next(&self, value: Value<'_>) -> bool {
        value.kind() == Kind::String && value.as_str().is_some_and(|text| is_one_name(&text) && self.hides_name(&text))
    }

    /// Whether a member names what its siblings hold: `{"name": "API_KEY", "value": "x"}`.
    fn names_its_siblings(&self, key: &str, value: Value<'_>) -> bool {
        let last = words(&toolwarden_core::json::unescape(key)).pop();
        last.is_some_and(|last| NAMING.contains(&last.as_str())) && self.names_the_next(value)
    }

    /// Whether a member holds the value of what another one names: `{"question": "password", "answer": "x"}`.
    fn holds_the_value(key: &str) -> bool {
        words(key).pop().is_some_and(|last| HOLDING.contains(&last.as_str()))
    }

    /// A text without what is hidden in it, and no longer than a record shows.
    fn text(&self, text: &str, name: Option<&str>) -> String {
        let (Some(secrets), Some(assigned), Some(shapes)) = (&self.secrets, &self.assigned, &self.shapes) else {
            return MARK.to_owned();
        };
        let looked_at = text.get(..text.floor_char_boundary(LOOKED_AT)).unwrap_or_default();
        let mut places: Vec<Range<usize>> = Vec::new();
        places.extend(name.and_then(|name| of_member(name, looked_at)).map(|(_, range)| range));
        secrets.find(looked_at, true, |_, range, _| places.push(range));
        places.extend(
            assigned.captures_iter(looked_at).filter_map(|found| found.name("value")).map(|found| found.range()),
        );
        for found in shapes.iter().flat_map(|shape| shape.captures_iter(looked_at)) {
            let is_hidden = found.name("name").is_none_or(|name| self.hides_name(name.as_str()));
            places.extend(found.name("value").filter(|_| is_hidden).map(|value| value.range()));
        }
        for pattern in &self.patterns {
            places.extend(pattern.find_iter(looked_at).map(|found| found.range()));
        }
        let hidden = without(looked_at, places);
        if hidden.len() <= LONGEST_TEXT && looked_at.len() == text.len() {
            return hidden;
        }
        let shown = hidden.get(..hidden.floor_char_boundary(LONGEST_TEXT)).unwrap_or_default();
        format!("{shown}{LEFT_OUT}")
    }
}

/// One look at one value.
struct Looking<'r> {
    redactor: &'r Redactor,
    /// Bytes that may still be recorded.
    left: usize,
    /// Names on the way, in small letters.
    path: Vec<String>,
}

impl Looking<'_> {
    fn value(&mut self, value: Value<'_>, name: Option<&str>, texts: usize) -> Json {
        if self.left == 0 {
            return LEFT_OUT.into();
        }
        match value.kind() {
            Kind::Object => self.object(value, texts),
            Kind::Array => {
                let mut items = Vec::new();
                let mut is_named_before = false;
                for item in value.items() {
                    // `["--password", "x"]`
                    let shown = if is_named_before { MARK.into() } else { self.value(item, name, texts) };
                    is_named_before = !is_named_before && self.redactor.names_the_next(item);
                    items.push(shown);
                    // The last one says that it was left out.
                    if self.left == 0 && items.last().is_some_and(|last| last == LEFT_OUT) {
                        break;
                    }
                    self.spend(2);
                }
                Json::Array(items)
            }
            Kind::String => {
                let text = value.as_str().unwrap_or_default();
                let shown = match self.inner(&text, texts) {
                    Some(inner) => inner,
                    None => self.redactor.text(&text, name),
                };
                self.spend(shown.len() + 2);
                shown.into()
            }
            Kind::Number => {
                let raw = value.raw();
                self.spend(raw.len());
                let is_hidden = self.redactor.patterns.iter().any(|pattern| pattern.is_match(raw));
                if is_hidden || raw.len() > LONGEST_NAME { MARK.into() } else { number(raw) }
            }
            Kind::True | Kind::False => {
                self.spend(5);
                Json::Bool(value.kind() == Kind::True)
            }
            Kind::Null => Json::Null,
        }
    }

    fn object(&mut self, object: Value<'_>, texts: usize) -> Json {
        let mut members = Map::new();
        // `{"name": "API_KEY", "value": "x"}`
        let names_another = object.entries().any(|(key, value)| self.redactor.names_its_siblings(key, value));
        let names_a_value = object.entries().any(|(_, value)| self.redactor.names_the_next(value));
        for (key, value) in object.entries() {
            if self.left == 0 {
                members.insert(LEFT_OUT.to_owned(), Json::Null);
                break;
            }
            let name = toolwarden_core::json::unescape(key).into_owned();
            self.path.push(name.to_lowercase());
            // The name itself can be a secret, and can carry one; a name that the config itself says is none.
            let is_said = self.redactor.names.contains(&letters(&name));
            let mut shown = if is_said { name.clone() } else { self.redactor.text(&name, None) };
            if name.len() > LONGEST_NAME {
                shown = LEFT_OUT.to_owned();
            }
            let is_beside_a_name = names_another && !self.redactor.names_its_siblings(&name, value);
            let is_its_value =
                names_a_value && Redactor::holds_the_value(&name) && !self.redactor.names_the_next(value);
            let hidden = is_beside_a_name || is_its_value || self.redactor.hides_member(&name, &self.path);
            let value = if hidden { MARK.into() } else { self.value(value, Some(&name), texts) };
            self.spend(shown.len() + 4);
            self.path.pop();
            members.insert(unused(&members, shown), value);
        }
        Json::Object(members)
    }

    /// A text that holds JSON is looked at as that.
    fn inner(&mut self, text: &str, texts: usize) -> Option<String> {
        let is_json = text.trim_start().starts_with(['{', '[']);
        if !is_json || texts >= DEEPEST_TEXT || text.len() > LOOKED_AT {
            return None;
        }
        let document = Document::parse(text, Limits::again(text.len())).ok()?;
        let before = self.left;
        let inner = self.value(document.root(), None, texts + 1).to_string();
        self.left = before;
        Some(inner)
    }

    fn spend(&mut self, bytes: usize) {
        self.left = self.left.saturating_sub(bytes);
    }
}

/// Whether a text is a single name, such as an option or a variable.
fn is_one_name(text: &str) -> bool {
    text.len() <= LONGEST_NAME && text.chars().all(|letter| letter.is_alphanumeric() || "-_.:/$".contains(letter))
}

fn number(raw: &str) -> Json {
    serde_json::from_str(raw).unwrap_or_else(|_| Json::String(raw.to_owned()))
}

/// Two names that are hidden alike both stay.
fn unused(members: &Map<String, Json>, name: String) -> String {
    if !members.contains_key(&name) {
        return name;
    }
    (2..).map(|number| format!("{name} {number}")).find(|name| !members.contains_key(name)).unwrap_or(name)
}

/// The words of a name: `userApiKey`, `USER_API_KEY` and `user-api-key` have three.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = ' ';
    for letter in name.chars() {
        let begins = !before.is_alphanumeric() || (before.is_lowercase() && letter.is_uppercase());
        if letter.is_alphanumeric() {
            if begins {
                words.push(String::new());
            }
            if let Some(word) = words.last_mut() {
                word.extend(letter.to_lowercase());
            }
        }
        before = letter;
    }
    words
}

/// `apiKey`, `API_KEY` and `api-key` are one name.
fn letters(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn assigned<'n>(names: impl Iterator<Item = &'n str>) -> Option<Regex> {
    let words: Vec<String> = names.map(|name| regex::escape(name).replace('_', "[_-]?")).collect();
    bounded(&format!(
        r#"(?i)(?:^|[^a-z0-9])(?:{})["']?(?:\s*[=:]\s*|\s+(?:is\s+)?)(?P<value>"[^"]*"|'[^']*'|[^\s"']+)"#,
        words.join("|")
    ))
}

fn bounded(text: &str) -> Option<Regex> {
    RegexBuilder::new(text).size_limit(LARGEST_EXPRESSION).dfa_size_limit(LARGEST_EXPRESSION).build().ok()
}

/// The text with every place replaced once, however they overlap.
fn without(text: &str, mut places: Vec<Range<usize>>) -> String {
    places.sort_by_key(|place| (place.start, place.end));
    let mut shown = String::with_capacity(text.len());
    let mut behind = 0;
    for place in places {
        if place.end <= behind {
            continue;
        }
        if place.start >= behind {
            shown.push_str(text.get(behind..place.start).unwrap_or_default());
            shown.push_str(MARK);
        }
        behind = place.end;
    }
    shown.push_str(text.get(behind..).unwrap_or_default());
    shown
}

#[cfg(test)]
#[path = "redaction_tests.rs"]
mod tests;
