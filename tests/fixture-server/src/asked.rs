//! One request as the fixture sees it, the same in both eras: a name, arguments, and answers to earlier questions.

use rmcp::ErrorData;
use rmcp::model::{InputResponses, JsonObject};
use serde_json::{Map, Value};

/// What kind of thing was asked for.
#[derive(Clone, Copy, Debug)]
pub enum Subject {
    Tool,
    Prompt,
    Resource,
}

/// A request, or its repetition with answers.
#[derive(Debug)]
pub struct Asked {
    pub subject: Subject,
    /// The tool's or prompt's name, or the resource's URI.
    pub name: String,
    pub arguments: JsonObject,
    pub answers: InputResponses,
    pub state: Option<String>,
    /// The client's capabilities, as they stood in the message.
    pub capabilities: Value,
}

/// What the fixture says to a request.
#[derive(Debug)]
pub enum Reply {
    /// The result, in the protocol's own shape.
    Done(Value),
    /// Questions to the client; the request comes back with the answers.
    Ask { questions: Map<String, Value>, state: Option<String> },
}

pub type Outcome = Result<Reply, ErrorData>;

/// What became of a form.
#[derive(Debug)]
pub enum Form<'a> {
    Filled(&'a JsonObject),
    /// Declined or cancelled.
    Refused(&'a str),
    /// Not answered yet, or not in a usable shape.
    Open,
}

impl Asked {
    pub fn argument(&self, name: &str) -> Result<&str, ErrorData> {
        self.arguments
            .get(name)
            .and_then(Value::as_str)
            .ok_or_else(|| ErrorData::invalid_params(format!("the argument {name} must be a string"), None))
    }

    /// The user's answer to a form.
    pub fn form(&self, question: &str) -> Form<'_> {
        let Some(answer) = self.answers.get(question) else { return Form::Open };
        match (answer.get("action").and_then(Value::as_str), answer.get("content").and_then(Value::as_object)) {
            (Some("accept"), Some(content)) => Form::Filled(content),
            (Some(action @ ("decline" | "cancel")), _) => Form::Refused(action),
            _ => Form::Open,
        }
    }

    /// The text of a model's answer.
    pub fn sampled(&self, question: &str) -> Option<&str> {
        let content = self.answers.get(question)?.get("content")?;
        content.get("text").or_else(|| content.get(0)?.get("text"))?.as_str()
    }

    /// The client's roots.
    pub fn roots(&self, question: &str) -> Option<Vec<&str>> {
        let roots = self.answers.get(question)?.get("roots")?.as_array()?;
        Some(roots.iter().filter_map(|root| root.get("uri")?.as_str()).collect())
    }

    /// Whether the client said it can answer this method.
    pub fn answers_method(&self, method: &str) -> bool {
        capability(method).is_some_and(|name| self.capabilities.get(name).is_some())
    }
}

/// The client capability a question needs.
pub fn capability(method: &str) -> Option<&'static str> {
    match method {
        "elicitation/create" => Some("elicitation"),
        "sampling/createMessage" => Some("sampling"),
        "roots/list" => Some("roots"),
        _ => None,
    }
}
