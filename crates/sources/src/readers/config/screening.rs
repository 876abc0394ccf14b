//! What is looked for in results: `[screening]`, and `screening`, `hidden_text` and `patterns` of a server.

use regex::RegexBuilder;

use crate::readers::known::Section;
use crate::report::Report;
use crate::tree::{Key, Node};

/// A compiled pattern has no more memory than this, and nests no deeper.
const LARGEST: usize = 1024 * 1024;
const DEEPEST: u32 = 64;
const MOST_PATTERNS: usize = 64;
const LONGEST_NAME: usize = 40;

/// What becomes of a result in which a secret was found; the later the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Screening {
    /// Nothing is looked for.
    #[default]
    Off,
    /// It passes, and says what was found.
    Mark,
    /// What was found is replaced.
    Redact,
    /// It is not shown.
    Withhold,
}

/// What becomes of characters that people do not see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum HiddenText {
    #[default]
    Pass,
    /// They pass, and the result says so.
    Mark,
    /// They are written as `\u{..}`.
    Neutralise,
}

/// Something to look for besides the shapes that are known.
#[derive(Debug, Clone)]
pub struct Pattern {
    /// What a finding is called.
    pub name: String,
    pub regex: regex::Regex,
}

impl Pattern {
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.regex.as_str() == other.regex.as_str()
    }
}

/// How the results of one server are screened.
#[derive(Debug, Clone, Default)]
pub struct ScreeningRules {
    pub secrets: Screening,
    pub hidden: HiddenText,
    pub patterns: Vec<Pattern>,
}

/// `[screening] patterns`, which count for every server that is screened.
pub(super) fn read(report: &mut Report, node: &Node) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    for (key, value) in report.keys(Section::Screening, "screening", node) {
        match key.text.as_str() {
            "patterns" => patterns = read_patterns(report, value),
            _ => report.unread(key),
        }
    }
    patterns
}

/// One key of a server; says whether it was one of these.
pub(super) fn read_key(report: &mut Report, key: &Key, value: &Node, rules: &mut ScreeningRules) -> bool {
    let what = key.text.as_str();
    match what {
        "screening" => {
            rules.secrets = match report.word(what, value, &["off", "mark", "redact", "withhold"]).as_deref() {
                Some("mark") => Screening::Mark,
                Some("redact") => Screening::Redact,
                Some("off") => Screening::Off,
                // A word that is none breaks the file; until it is repaired nothing is shown.
                _ => Screening::Withhold,
            };
        }
        "hidden_text" => {
            rules.hidden = match report.word(what, value, &["pass", "mark", "neutralise"]).as_deref() {
                Some("pass") => HiddenText::Pass,
                Some("mark") => HiddenText::Mark,
                _ => HiddenText::Neutralise,
            };
        }
        "patterns" => rules.patterns = read_patterns(report, value),
        _ => return false,
    }
    true
}

fn read_patterns(report: &mut Report, node: &Node) -> Vec<Pattern> {
    let items = report.list("patterns", node).unwrap_or_default();
    if items.len() > MOST_PATTERNS {
        report.error(node.place, "too_many", format!("at most {MOST_PATTERNS} patterns"));
    }
    items.iter().take(MOST_PATTERNS).filter_map(|item| read_pattern(report, item)).collect()
}

/// `{ name = "..", pattern = ".." }`.
fn read_pattern(report: &mut Report, node: &Node) -> Option<Pattern> {
    let (mut name, mut regex) = (None, None);
    if report_unknown(node) {
        report.keys(Section::Pattern, "patterns", node);
        return None;
    }
    for (key, value) in report.keys(Section::Pattern, "patterns", node) {
        match key.text.as_str() {
            "name" => name = report.text("name", value).filter(|name| is_name(report, value, name)),
            "pattern" => regex = report.text("pattern", value).and_then(|text| compile(report, value, &text)),
            _ => report.unread(key),
        }
    }
    let has = |what: &str| report_has(node, what);
    for what in ["name", "pattern"].into_iter().filter(|what| !has(what)) {
        report.error(node.place, "missing_key", format!("a pattern needs `{what}`"));
    }
    Some(Pattern { name: name?, regex: regex? })
}

/// Whether a pattern has a key nobody knows.
fn report_unknown(node: &Node) -> bool {
    let is_known = |text: &str| Section::Pattern.standing(text).is_some();
    matches!(&node.value, crate::tree::Value::Table(members) if members.iter().any(|(key, _)| !is_known(&key.text)))
}

fn report_has(node: &Node, what: &str) -> bool {
    match &node.value {
        crate::tree::Value::Table(members) => members.iter().any(|(key, _)| key.text == what),
        // That it is none was said already.
        _ => true,
    }
}

/// Names stand in results and records, so they are plain.
fn is_name(report: &mut Report, node: &Node, name: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_plain = !name.is_empty() && name.len() <= LONGEST_NAME && name.bytes().all(is_letter);
    if !is_plain {
        let message = format!("a pattern's name has 1 to {LONGEST_NAME} small letters, digits and `-`");
        report.error(node.place, "invalid_name", message);
    }
    is_plain
}

pub(super) fn compile(report: &mut Report, node: &Node, text: &str) -> Option<regex::Regex> {
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(LARGEST).dfa_size_limit(LARGEST).nest_limit(DEEPEST);
    match builder.build() {
        Ok(regex) if regex.is_match("") => {
            report.error(node.place, "invalid_pattern", "the pattern matches where nothing is");
            None
        }
        Ok(regex) => Some(regex),
        Err(regex::Error::CompiledTooBig(_)) => {
            report.error(node.place, "invalid_pattern", "the pattern takes more than 1 MiB when compiled");
            None
        }
        Err(error) => {
            // It explains itself over several lines, the last of which says what is wrong.
            let said = error.to_string();
            let said = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            report.error(node.place, "invalid_pattern", format!("the pattern cannot be read: {said}"));
            None
        }
    }
}

#[cfg(test)]
#[path = "screening_tests.rs"]
mod tests;
