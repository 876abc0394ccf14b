//! Chat completions of OpenAI and of whatever speaks like it: one question, an answer held to a schema.

use toolwarden_core::json::{Kind, Value};

use crate::Failure;
use crate::answer::{Usage, count, lacks, only, says, schema};
use crate::question::Prompt;

/// Room for an answer, and for what some models think before it.
pub(crate) const MOST_TOKENS: u64 = 1_024;

pub(crate) fn body(model: &str, prompt: &Prompt) -> String {
    serde_json::json!({
        "model": model,
        "messages": [
            { "role": "system", "content": prompt.system },
            { "role": "user", "content": prompt.text },
        ],
        "max_completion_tokens": MOST_TOKENS,
        "stream": false,
        "response_format": {
            "type": "json_schema",
            "json_schema": { "name": "verdict", "strict": true, "schema": schema() },
        },
    })
    .to_string()
}

/// What was spent, where that is said.
pub(crate) fn usage(answer: Value<'_>) -> Option<Usage> {
    let usage = answer.get("usage")?;
    Some(Usage { input: count(usage, "prompt_tokens")?, output: count(usage, "completion_tokens")? })
}

pub(crate) fn said(answer: Value<'_>) -> Result<String, Failure> {
    let choice = only(answer.get("choices")).ok_or(Failure::Answer("not one choice"))?;
    let message = choice.get("message").ok_or(Failure::Answer("no message"))?;
    if !lacks(message, "refusal") || says(choice, "finish_reason", "content_filter") {
        return Err(Failure::Declined);
    }
    if !says(choice, "finish_reason", "stop") {
        return Err(Failure::Answer("it was cut off"));
    }
    let calls =
        message.get("tool_calls").is_some_and(|calls| calls.kind() != Kind::Null && calls.items().next().is_some());
    let text = message.get("content").and_then(Value::as_str).filter(|_| !calls);
    text.map(Into::into).ok_or(Failure::Answer("no text"))
}
