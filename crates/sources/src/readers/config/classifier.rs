//! `[classifier]`: the machine that may pay for some holds. Counts in the user's own config alone: what came with a workspace
//! must not say who allows.

use std::time::Duration;

use toolwarden_core::Secret;

use super::Standing;
use crate::readers::known::Section;
use crate::report::Report;
use crate::tree::{Key, Node};

/// `[classifier]`.
#[derive(Debug, Clone, Default)]
pub struct ClassifierSection {
    /// `openai`, `anthropic` or `command`.
    pub kind: String,
    pub url: Option<String>,
    pub model: Option<String>,
    pub command: Vec<String>,
    pub api_key: Option<Secret>,
    pub timeout: Option<Duration>,
    /// Questions per hour.
    pub budget: Option<u64>,
    /// Questions at the same time.
    pub at_once: Option<u64>,
    pub prices: Option<Prices>,
    pub plain_http: bool,
    /// Asks and records, and pays nothing.
    pub shadow: bool,
    pub allow_instructions: Vec<String>,
    pub block_instructions: Vec<String>,
}

/// What may be spent on a day, and what a million tokens cost; in billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    pub max_cost: u64,
    pub input: u64,
    pub output: u64,
}

pub(super) fn read(
    report: &mut Report,
    standing: Standing,
    section_key: &Key,
    node: &Node,
) -> Option<ClassifierSection> {
    let mut section = ClassifierSection::default();
    let (mut kind, mut costs) = (None, [None; 3]);
    let [cost, input, output] = &mut costs;
    for (key, value) in report.keys(Section::Classifier, "classifier", node) {
        let what = key.text.as_str();
        match what {
            "kind" => kind = report.word(what, value, &["openai", "anthropic", "command"]),
            "url" => section.url = report.text(what, value),
            "model" => section.model = report.text(what, value),
            "command" => section.command = report.text_or_texts(what, value).unwrap_or_default(),
            "api_key" => section.api_key = report.text(what, value).map(Secret::new),
            "timeout" => section.timeout = report.duration(what, value),
            "budget" => section.budget = report.count(what, value),
            "at_once" => section.at_once = report.count(what, value),
            "max_cost" => *cost = report.amount(what, value),
            "price_input" => *input = report.amount(what, value),
            "price_output" => *output = report.amount(what, value),
            "plain_http" => section.plain_http = report.boolean(what, value) == Some(true),
            "shadow" => section.shadow = report.boolean(what, value) == Some(true),
            "allow_instructions" => section.allow_instructions = report.plain_texts(what, value).unwrap_or_default(),
            "block_instructions" => section.block_instructions = report.plain_texts(what, value).unwrap_or_default(),
            _ => report.unread(key),
        }
    }
    if standing == Standing::Workspace {
        report.warning(section_key.place, "not_counted", "`[classifier]` counts only in the user's own config");
        return None;
    }
    if kind.is_none() && node.get("kind").is_none() {
        report.error(section_key.place, "missing_key", "`[classifier]` needs `kind`");
        report.help("openai, anthropic or command");
    }
    section.kind = kind?;
    section.prices = match costs {
        [None, ..] => None,
        [Some(max_cost), Some(input), Some(output)] => Some(Prices { max_cost, input, output }),
        _ => {
            report.error(section_key.place, "missing_key", "`max_cost` needs `price_input` and `price_output`");
            None
        }
    };
    needs(report, section_key, &section);
    Some(section)
}

/// What each kind cannot do without.
fn needs(report: &mut Report, section_key: &Key, section: &ClassifierSection) {
    let place = section_key.place;
    match section.kind.as_str() {
        "command" if section.command.is_empty() => {
            report.error(place, "missing_key", "`kind = \"command\"` needs `command`");
        }
        "command" if section.prices.is_some() => {
            report.error(place, "not_counted", "what a command costs is not known: `max_cost` is for APIs");
        }
        "command" => {}
        _ if section.model.as_deref().is_none_or(str::is_empty) => {
            report.error(place, "missing_key", "`[classifier]` needs `model`");
        }
        _ => {}
    }
}
