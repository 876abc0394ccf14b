//! Messages of Anthropic's API: one question, an answer forced into the arguments of a tool.

use toolwarden_core::json::{Kind, Value};

use crate::Failure;
use crate::answer::{Usage, count, only, says, schema};
use crate::question::Prompt;

pub(crate) const MOST_TOKENS: u64 = 1_024;
const TOOL: &str = "give_verdict";

pub(crate) fn body(model: &str, prompt: &Prompt) -> String {
    serde_json::json!({
        "model": model,
        "max_tokens": MOST_TOKENS,
        "system": prompt.system,
        "messages": [{ "role": "user", "content": prompt.text }],
        "tools": [{ "name": TOOL, "description": "Gives the verdict on the call.", "input_schema": schema() }],
        "tool_choice": { "type": "tool", "name": TOOL, "disable_parallel_tool_use": true },
    })
    .to_string()
}

/// What was spent, where that is said: what was read from a cache is counted as if it were not.
pub(crate) fn usage(answer: Value<'_>) -> Option<Usage> {
    let usage = answer.get("usage")?;
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"].iter();
    let cached = cached.filter_map(|member| count(usage, member)).fold(0, u64::saturating_add);
    let input = count(usage, "input_tokens")?.saturating_add(cached);
    Some(Usage { input, output: count(usage, "output_tokens")? })
}

pub(crate) fn said(answer: Value<'_>) -> Result<String, Failure> {
    if says(answer, "stop_reason", "refusal") {
        return Err(Failure::Declined);
    }
    if !says(answer, "type", "message") || !says(answer, "stop_reason", "tool_use") {
        return Err(Failure::Answer("it was cut off, or is no message"));
    }
    let block = only(answer.get("content")).ok_or(Failure::Answer("not one block"))?;
    if !says(block, "type", "tool_use") || !says(block, "name", TOOL) {
        return Err(Failure::Answer("not the tool it was given"));
    }
    let input = block.get("input").filter(|input| input.kind() == Kind::Object);
    Ok(input.ok_or(Failure::Answer("no object"))?.raw().to_owned())
}
