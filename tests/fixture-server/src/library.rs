//! Prompts, resources and completions.

use rmcp::ErrorData;
use serde_json::{Value, json};

use crate::asked::{Asked, Form, Outcome, Reply};
use crate::catalogue::{CHANGING_PROMPT, WATCHED_RESOURCE};
use crate::content::{PNG, image, resource, text};
use crate::questions::ask_form;

/// Words the completion knows.
const WORDS: [&str; 6] = ["tea", "team", "temper", "test", "testing", "text"];

/// The prompt of that name.
pub fn prompt(asked: &Asked) -> Outcome {
    let messages = match asked.name.as_str() {
        "test_simple_prompt" => vec![text("Say something.")],
        "test_prompt_with_arguments" => {
            let (first, second) = (asked.argument("arg1")?, asked.argument("arg2")?);
            vec![text(format!("Compare {first} with {second}."))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = asked.argument("resourceUri")?;
            vec![resource(uri, "text/plain", "What the resource says."), text("Read the resource.")]
        }
        "test_prompt_with_image" => vec![image(), text("Look at the picture.")],
        "test_input_required_result_prompt" => match asked.form("user_context") {
            Form::Filled(content) => vec![text(format!("Context: {}", Value::Object(content.clone())))],
            Form::Refused(action) => vec![text(format!("No context: {action}."))],
            Form::Open => {
                return Ok(ask_form(
                    "user_context",
                    "Which context?",
                    &json!({"context": {"type": "string"}}),
                    &["context"],
                ));
            }
        },
        CHANGING_PROMPT => vec![text("Still here.")],
        unknown => return Err(ErrorData::invalid_params(format!("Unknown prompt: {unknown}"), None)),
    };
    let messages: Vec<_> = messages.into_iter().map(|content| json!({"role": "user", "content": content})).collect();
    Ok(Reply::Done(json!({"messages": messages})))
}

/// The resource at that URI.
pub fn read(asked: &Asked) -> Outcome {
    let uri = asked.name.as_str();
    let content = match uri {
        "test://static-text" => plain(uri, "Always the same words."),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        WATCHED_RESOURCE => plain(uri, "Watched."),
        "test://input-required" => match asked.form("confirm") {
            Form::Filled(_) => plain(uri, "You may read this."),
            Form::Refused(action) => plain(uri, &format!("Nothing to read: {action}.")),
            Form::Open => return Ok(ask_form("confirm", "Read it?", &json!({"ok": {"type": "boolean"}}), &["ok"])),
        },
        _ => match uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data")) {
            Some(id) => {
                let document = json!({"id": id, "pages": 1});
                json!({"uri": uri, "mimeType": "application/json", "text": document.to_string()})
            }
            None => return Err(ErrorData::resource_not_found("Resource not found", Some(json!({"uri": uri})))),
        },
    };
    Ok(Reply::Done(json!({"contents": [content]})))
}

/// The words that begin as the user began.
pub fn complete(beginning: &str) -> Value {
    let values: Vec<_> = WORDS.into_iter().filter(|word| word.starts_with(beginning)).collect();
    json!({"completion": {"values": values, "total": values.len(), "hasMore": false}})
}

fn plain(uri: &str, words: &str) -> Value {
    json!({"uri": uri, "mimeType": "text/plain", "text": words})
}
