//! The kit every reader uses: typed looks at a tree, with a finding for whatever does not fit.
//!
//! Takes nodes; gives plain values with their origin; records unknown keys with the nearest known
//! one, and wrong types with what was found instead.

use std::sync::Arc;
use std::time::Duration;

use toolwarden_core::{Layer, Origin, Sourced, name};

use crate::finding::{Finding, Severity};
use crate::readers::known::{Section, Standing, Unless};
use crate::tree::{self, Format, Key, Node, Place, TreeError, Value};

/// What a reader gives back.
#[derive(Debug)]
pub struct Reading<T> {
    pub value: T,
    pub findings: Vec<Finding>,
    /// The file as a whole does not count.
    pub broken: bool,
}

/// The findings of one file while it is read.
#[derive(Debug)]
pub(crate) struct Report {
    path: Arc<str>,
    layer: Layer,
    unknown_keys: Severity,
    findings: Vec<Finding>,
}

/// A position among the findings, to ask later what was added since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(usize);

impl Report {
    /// For a client's own file: unknown keys are only warned about.
    pub(crate) fn lenient(path: &str, layer: Layer) -> Self {
        Self { path: path.into(), layer, unknown_keys: Severity::Warning, findings: Vec::new() }
    }

    /// For our own file: unknown keys are errors.
    pub(crate) fn strict(path: &str, layer: Layer) -> Self {
        Self { path: path.into(), layer, unknown_keys: Severity::Error, findings: Vec::new() }
    }

    /// Parses the file; a failure is recorded.
    pub(crate) fn parse(&mut self, bytes: &[u8], format: Format) -> Option<Node> {
        match tree::parse(bytes, format) {
            Ok(node) => Some(node),
            Err(TreeError { place, code, message }) => {
                self.push(Severity::Error, code, place, message);
                None
            }
        }
    }

    pub(crate) fn finish<T>(self, value: T, broken: bool) -> Reading<T> {
        Reading { value, findings: self.findings, broken }
    }

    pub(crate) fn layer(&self) -> Layer {
        self.layer
    }

    pub(crate) fn origin(&self, place: Place) -> Origin {
        Origin::new(self.layer, Arc::clone(&self.path), place.line, place.column)
    }

    fn push(&mut self, severity: Severity, code: &'static str, place: Place, message: String) {
        self.findings.push(Finding::at(severity, code, Arc::clone(&self.path), place, message));
    }

    pub(crate) fn error(&mut self, place: Place, code: &'static str, message: impl Into<String>) {
        self.push(Severity::Error, code, place, message.into());
    }

    pub(crate) fn warning(&mut self, place: Place, code: &'static str, message: impl Into<String>) {
        self.push(Severity::Warning, code, place, message.into());
    }

    /// Adds a suggestion to the last finding.
    pub(crate) fn help(&mut self, suggestion: impl Into<String>) {
        if let Some(last) = self.findings.last_mut() {
            last.suggestion = Some(suggestion.into());
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark(self.findings.len())
    }

    /// The errors recorded since a mark, with their lines, as a mode carries them.
    pub(crate) fn errors_since(&self, mark: Mark) -> Vec<String> {
        let new = self.findings.iter().skip(mark.0).filter(|finding| finding.is_error());
        let words = |finding: &Finding| match finding.line {
            0 => finding.message.clone(),
            line => format!("line {line}: {}", finding.message),
        };
        new.map(words).collect()
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.findings.iter().any(Finding::is_error)
    }

    /// Records a key nobody knows.
    pub(crate) fn unknown_key(&mut self, key: &Key, known: &[&str]) {
        let shown = name::shown(&key.text).into_owned();
        self.push(self.unknown_keys, "unknown_key", key.place, format!("unknown key `{shown}`"));
        match nearest(&key.text, known) {
            Some(near) => self.help(format!("did you mean `{near}`?")),
            None => self.help(format!("known keys: {}", known.join(", "))),
        }
    }

    pub(crate) fn wrong_type(&mut self, what: &str, node: &Node, wanted: &str) {
        let message = format!("`{}` must be {wanted}, found {}", name::shown(what), node.kind());
        self.error(node.place, "wrong_type", message);
    }

    /// The entries of a table; nothing, and an error, for other kinds.
    pub(crate) fn table<'n>(&mut self, what: &str, node: &'n Node) -> &'n [(Key, Node)] {
        match &node.value {
            Value::Table(entries) => entries,
            _ => {
                self.wrong_type(what, node, "a table");
                &[]
            }
        }
    }

    /// The entries of a table that act here. Unknown keys, and keys whose feature is not built, are recorded; those that
    /// only inform are left out (SELF-6).
    pub(crate) fn keys<'n>(&mut self, section: Section, what: &str, node: &'n Node) -> Vec<(&'n Key, &'n Node)> {
        let mut used = Vec::new();
        for (key, value) in self.table(what, node) {
            match section.standing(&key.text) {
                Some(Standing::Used) => used.push((key, value)),
                Some(Standing::NotBuilt(feature, unless)) => {
                    if !unless.covers(value) {
                        self.not_built(section, key, feature, unless);
                    }
                }
                Some(Standing::Informational(_)) => {}
                None => self.unknown_key(key, &section.names()),
            }
        }
        used
    }

    /// Records a key whose feature is not built: ignoring it would promise what does not happen.
    pub(crate) fn not_built(&mut self, section: Section, key: &Key, feature: &str, unless: Unless) {
        let place = match section.label() {
            "" => format!("`[{}]`", key.text),
            label => format!("`{}` of {label}", key.text),
        };
        self.error(key.place, "not_built", format!("{place} is refused: {feature} is not built yet"));
        match unless.words() {
            Some(value) => self.help(format!("remove the key, or write {value}, which is what happens today")),
            None => self.help("remove the key"),
        }
    }

    /// Records a key that is listed as used and that its reader does not read.
    pub(crate) fn unread(&mut self, key: &Key) {
        let message = format!("`{}` is known, but not read: a fault of Toolwarden", name::shown(&key.text));
        self.error(key.place, "unread_key", message);
    }

    pub(crate) fn list<'n>(&mut self, what: &str, node: &'n Node) -> Option<&'n [Node]> {
        match &node.value {
            Value::List(items) => Some(items),
            _ => {
                self.wrong_type(what, node, "a list");
                None
            }
        }
    }

    pub(crate) fn text(&mut self, what: &str, node: &Node) -> Option<String> {
        match &node.value {
            Value::String(text) => Some(text.clone()),
            _ => {
                self.wrong_type(what, node, "a text");
                None
            }
        }
    }

    pub(crate) fn sourced_text(&mut self, what: &str, node: &Node) -> Option<Sourced<String>> {
        let text = self.text(what, node)?;
        Some(Sourced::new(text, self.origin(node.place)))
    }

    pub(crate) fn boolean(&mut self, what: &str, node: &Node) -> Option<bool> {
        match node.value {
            Value::Bool(value) => Some(value),
            _ => {
                self.wrong_type(what, node, "true or false");
                None
            }
        }
    }

    /// A whole number that is not negative.
    pub(crate) fn count(&mut self, what: &str, node: &Node) -> Option<u64> {
        match node.value {
            Value::Integer(number) if number >= 0 => u64::try_from(number).ok(),
            Value::Integer(_) => {
                self.error(node.place, "out_of_range", format!("`{what}` must not be negative"));
                None
            }
            _ => {
                self.wrong_type(what, node, "a whole number");
                None
            }
        }
    }

    /// A number that is not negative, in billionths, rounded up.
    pub(crate) fn amount(&mut self, what: &str, node: &Node) -> Option<u64> {
        let text = match node.value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            _ => {
                self.wrong_type(what, node, "a number");
                return None;
            }
        };
        let amount = billionths(&text);
        if amount.is_none() {
            self.error(node.place, "out_of_range", format!("`{what}` is no amount: from 0 to a billion"));
        }
        amount
    }

    /// A list of texts; items of another type are errors and left out.
    pub(crate) fn texts(&mut self, what: &str, node: &Node) -> Option<Vec<Sourced<String>>> {
        let items = self.list(what, node)?;
        let mut texts = Vec::with_capacity(items.len());
        for item in items {
            match &item.value {
                Value::String(text) => texts.push(Sourced::new(text.clone(), self.origin(item.place))),
                _ => {
                    let message =
                        format!("every item of `{}` must be a text, found {}", name::shown(what), item.kind());
                    self.error(item.place, "wrong_type", message);
                }
            }
        }
        Some(texts)
    }

    /// A list of texts without their places.
    pub(crate) fn plain_texts(&mut self, what: &str, node: &Node) -> Option<Vec<String>> {
        let texts = self.texts(what, node)?;
        Some(texts.into_iter().map(|text| text.value).collect())
    }

    /// One text, or a list of them.
    pub(crate) fn text_or_texts(&mut self, what: &str, node: &Node) -> Option<Vec<String>> {
        match &node.value {
            Value::String(text) => Some(vec![text.clone()]),
            Value::List(_) => self.plain_texts(what, node),
            _ => {
                self.wrong_type(what, node, "a text or a list of texts");
                None
            }
        }
    }

    /// One of a few words.
    pub(crate) fn word(&mut self, what: &str, node: &Node, words: &[&str]) -> Option<String> {
        let text = self.text(what, node)?;
        if words.contains(&text.as_str()) {
            return Some(text);
        }
        self.error(node.place, "unknown_value", format!("`{what}` cannot be `{}`", name::shown(&text)));
        self.help(format!("one of: {}", words.join(", ")));
        None
    }

    /// A span of time such as `100ms`, `30s`, `5m`, `1h`, `7d`.
    pub(crate) fn duration(&mut self, what: &str, node: &Node) -> Option<Duration> {
        let text = self.text(what, node)?;
        let parsed = parse_duration(&text);
        if parsed.is_none() {
            self.error(
                node.place,
                "unknown_value",
                format!("`{what}` is not a span of time: `{}`", name::shown(&text)),
            );
            self.help("a number and a unit, such as `100ms`, `30s`, `5m`, `1h` or `7d`");
        }
        parsed
    }
}

/// A decimal number in billionths; more digits round up.
fn billionths(text: &str) -> Option<u64> {
    const DIGITS: usize = 9;
    const MOST: u64 = 1_000_000_000;
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !text.chars().all(|character| character.is_ascii_digit() || character == '.') {
        return None;
    }
    let whole: u64 = whole.parse().ok().filter(|whole| *whole <= MOST)?;
    let (kept, rest) = fraction.split_at(fraction.len().min(DIGITS));
    let kept: u64 = format!("{kept:0<DIGITS$}").parse().ok()?;
    let more = u64::from(rest.chars().any(|digit| digit != '0'));
    whole.checked_mul(MOST)?.checked_add(kept)?.checked_add(more)
}

#[cfg(test)]
#[test]
fn amounts_are_kept_in_billionths() {
    for (text, amount) in [
        ("0", Some(0)),
        ("3", Some(3_000_000_000)),
        ("0.15", Some(150_000_000)),
        ("0.0000000001", Some(1)),
        ("1.0000000001", Some(1_000_000_001)),
        ("1000000000", Some(1_000_000_000_000_000_000)),
        ("1000000001", None),
        ("-1", None),
        ("NaN", None),
        ("inf", None),
        ("1e3", None),
    ] {
        assert_eq!(billionths(text), amount, "{text}");
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    let split = text.find(|character: char| !character.is_ascii_digit())?;
    let (digits, unit) = text.split_at_checked(split)?;
    let number: u64 = digits.parse().ok()?;
    let seconds = |factor: u64| number.checked_mul(factor).map(Duration::from_secs);
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(60 * 60),
        "d" => seconds(24 * 60 * 60),
        _ => None,
    }
}

/// The known key that a text is a misspelling of: a letter or two are another, missing or one too many.
#[must_use]
pub fn misspelt<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let plain = key.to_lowercase();
    let scored = known.iter().map(|known| (strsim::damerau_levenshtein(&plain, &known.to_lowercase()), *known));
    scored.min_by_key(|(distance, _)| *distance).filter(|(distance, _)| *distance <= 2).map(|(_, known)| known)
}

/// The known key that is most alike, if any is alike at all.
#[must_use]
pub fn nearest<'k>(key: &str, known: &[&'k str]) -> Option<&'k str> {
    let scored = known.iter().map(|known| (strsim::jaro_winkler(&key.to_lowercase(), &known.to_lowercase()), *known));
    let best = scored.max_by(|(left, _), (right, _)| left.total_cmp(right));
    best.filter(|(score, _)| *score > 0.75).map(|(_, known)| known)
}
