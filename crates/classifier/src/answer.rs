//! What counts as an answer: one JSON object with three members, and the mark of the question.
//!
//! Takes a text; gives a verdict and the machine's words, fit to be shown. Refuses everything else: prose around it, a
//! member too many or twice, another mark.

use toolwarden_core::MachineVerdict;
use toolwarden_core::json::{Document, Kind, Limits, Value};
use toolwarden_core::name::shown;

use crate::Failure;

/// A reason is a sentence; what is longer is none.
const LONGEST: usize = 4 * 1024;
const LONGEST_REASON: usize = 1_000;
/// As much of it as is kept, in characters.
const KEPT: usize = 300;
const DEEPEST: usize = 2;

/// A verdict in the form that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) verdict: MachineVerdict,
    pub(crate) words: String,
}

/// The schema that machines are held to where they can be.
pub(crate) fn schema() -> serde_json::Value {
    serde_json::json!({
        "type": "object",
        "properties": {
            "verdict": { "type": "string", "enum": ["allow", "hold"] },
            "reason": { "type": "string", "description": "one short sentence" },
            "mark": { "type": "string", "description": "the mark of this question" },
        },
        "required": ["verdict", "reason", "mark"],
        "additionalProperties": false,
    })
}

pub(crate) fn read(text: &str, mark: &str) -> Result<Answer, Failure> {
    let document = Document::parse(text, Limits { bytes: LONGEST, depth: DEEPEST });
    let document = document.map_err(|_| Failure::Answer("no strict JSON"))?;
    let root = document.root();
    if root.kind() != Kind::Object || root.entries().count() != 3 {
        return Err(Failure::Answer("not the three members"));
    }
    let (mut verdict, mut reason, mut echo) = (None, None, None);
    for (key, value) in root.entries() {
        let place = match key {
            "\"verdict\"" => &mut verdict,
            "\"reason\"" => &mut reason,
            "\"mark\"" => &mut echo,
            _ => return Err(Failure::Answer("a member nobody asked for")),
        };
        *place = value.as_str();
    }
    let (Some(verdict), Some(reason), Some(echo)) = (verdict, reason, echo) else {
        return Err(Failure::Answer("a member is no text"));
    };
    if *echo != *mark {
        return Err(Failure::Mark);
    }
    if reason.len() > LONGEST_REASON {
        return Err(Failure::AnswerTooLong);
    }
    let verdict = match &*verdict {
        "allow" => MachineVerdict::Allow,
        "hold" => MachineVerdict::Hold,
        _ => return Err(Failure::Answer("no verdict there is")),
    };
    Ok(Answer { verdict, words: shown(&reason).chars().take(KEPT).collect() })
}

/// A whole answer of an API, read strictly.
pub(crate) fn document(body: &[u8]) -> Result<Document, Failure> {
    const OF_API: usize = 32;
    let text = std::str::from_utf8(body).map_err(|_| Failure::Answer("no text"))?;
    let document = Document::parse(text, Limits { bytes: body.len(), depth: OF_API });
    document.map_err(|_| Failure::Answer("no strict JSON"))
}

/// The one item of a list.
pub(crate) fn only(list: Option<Value<'_>>) -> Option<Value<'_>> {
    let mut items = list.filter(|list| list.kind() == Kind::Array)?.items();
    let first = items.next()?;
    items.next().is_none().then_some(first)
}

/// A member that is this text.
pub(crate) fn says(value: Value<'_>, member: &str, wanted: &str) -> bool {
    value.get(member).and_then(Value::as_str).is_some_and(|text| text == wanted)
}

/// A member that is not there, or null.
pub(crate) fn lacks(value: Value<'_>, member: &str) -> bool {
    value.get(member).is_none_or(|found| found.kind() == Kind::Null)
}

/// A count of tokens.
pub(crate) fn count(value: Value<'_>, member: &str) -> Option<u64> {
    value.get(member).filter(|found| found.kind() == Kind::Number).and_then(|found| found.raw().parse().ok())
}

/// Tokens as an API counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

#[cfg(test)]
#[path = "answer_tests.rs"]
mod tests;
