//! Tools, prompts and resources that need something from the client before they can answer.

use rmcp::ErrorData;
use rmcp::model::{RequestStateCodec, SealOptions};
use serde_json::{Map, Value, json};

use crate::asked::{Asked, Form, Outcome, Reply};
use crate::content::line;

/// Seals the states; a fixture has no secrets, so the key is a constant.
const KEY: &[u8] = b"a key for tests, known to everyone";

/// The tool that asks whether or not the client can answer.
pub const CARELESS_TOOL: &str = "test_missing_capability";

/// The answer of a tool that asks, or nothing if the name is not one of them.
pub fn tool(asked: &Asked) -> Option<Outcome> {
    Some(match asked.name.as_str() {
        "test_sampling" => sampling(asked),
        CARELESS_TOOL => Ok(model(asked, "model", "Say anything.", 10)),
        "test_elicitation" => elicitation(asked),
        "test_elicitation_sep1034_defaults" => Ok(report(asked, "form", defaults_form())),
        "test_elicitation_sep1330_enums" => Ok(report(asked, "form", choices_form())),
        "test_streaming_elicitation" => Ok(report(asked, "form", yes_form())),
        "test_input_required_result_elicitation" | "test_tool_with_task" => Ok(greeting(asked)),
        "test_input_required_result_sampling" => Ok(model(asked, "capital_question", "Name a capital in Europe.", 100)),
        "test_input_required_result_list_roots" => Ok(roots(asked)),
        "test_input_required_result_request_state" | "test_input_required_result_tampered_state" => confirmed(asked),
        "test_input_required_result_multiple_inputs" => three_at_once(asked),
        "test_input_required_result_multi_round" => two_rounds(asked),
        "test_input_required_result_capabilities" => Ok(whatever_is_possible(asked)),
        "confirm_delete" => deletion(asked),
        "multi_input" => Ok(two_at_once(asked)),
        _ => return None,
    })
}

/// The end of a tool whose user said no.
fn refused(asked: &Asked) -> Option<Reply> {
    let action = asked.answers.keys().find_map(|question| match asked.form(question) {
        Form::Refused(action) => Some(action),
        Form::Filled(_) | Form::Open => None,
    })?;
    Some(Reply::Done(line(format!("Not answered: {action}."))))
}

/// One question that is a form.
pub fn ask_form(question: &str, message: &str, properties: &Value, required: &[&str]) -> Reply {
    ask([(question, form(message, properties, required))], None)
}

fn ask<const N: usize>(questions: [(&str, Value); N], state: Option<String>) -> Reply {
    let questions: Map<_, _> = questions.into_iter().map(|(name, question)| (name.to_owned(), question)).collect();
    Reply::Ask { questions, state }
}

fn form(message: &str, properties: &Value, required: &[&str]) -> Value {
    json!({"method": "elicitation/create", "params": {
        "message": message,
        "requestedSchema": {"type": "object", "properties": properties, "required": required},
    }})
}

fn name_form(message: &str) -> Value {
    form(message, &json!({"name": {"type": "string"}}), &["name"])
}

fn prompt(words: &str, tokens: u32) -> Value {
    json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": words}}],
        "maxTokens": tokens,
    }})
}

fn roots_question() -> Value {
    json!({"method": "roots/list", "params": {}})
}

fn sampling(asked: &Asked) -> Outcome {
    Ok(model(asked, "model", asked.argument("prompt")?, 100))
}

fn model(asked: &Asked, question: &str, words: &str, tokens: u32) -> Reply {
    match asked.sampled(question) {
        Some(answer) => Reply::Done(line(format!("The model said: {answer}"))),
        None => ask([(question, prompt(words, tokens))], None),
    }
}

fn elicitation(asked: &Asked) -> Outcome {
    let properties = json!({
        "username": {"type": "string", "description": "What to call you."},
        "email": {"type": "string", "description": "Where to write to you."},
    });
    let question = form(asked.argument("message")?, &properties, &["username", "email"]);
    Ok(report(asked, "form", question))
}

/// Asks, then says what came back.
fn report(asked: &Asked, name: &str, question: Value) -> Reply {
    let (action, content) = match asked.form(name) {
        Form::Open => return ask([(name, question)], None),
        Form::Refused(action) => (action, Value::Null),
        Form::Filled(content) => ("accept", Value::Object(content.clone())),
    };
    Reply::Done(line(format!("The user answered {action} with {content}")))
}

fn defaults_form() -> Value {
    let properties = json!({
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    });
    form("Everything here has a default.", &properties, &[])
}

fn choices_form() -> Value {
    let plain = ["option1", "option2", "option3"];
    let titled = json!([
        {"const": "value1", "title": "First"},
        {"const": "value2", "title": "Second"},
        {"const": "value3", "title": "Third"},
    ]);
    let properties = json!({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    });
    form("Choose.", &properties, &[])
}

fn yes_form() -> Value {
    form("Go on?", &json!({"ok": {"type": "boolean"}}), &["ok"])
}

fn greeting(asked: &Asked) -> Reply {
    let name = match asked.form("user_name") {
        Form::Refused(action) => return Reply::Done(line(format!("No name: {action}."))),
        Form::Filled(content) => content.get("name").and_then(Value::as_str),
        Form::Open => None,
    };
    match name {
        Some(name) => Reply::Done(line(format!("Hello, {name}!"))),
        None => ask([("user_name", name_form("Who is there?"))], None),
    }
}

fn deletion(asked: &Asked) -> Outcome {
    let name = asked.argument("filename")?;
    let question = form(&format!("Delete {name}?"), &json!({"confirm": {"type": "boolean"}}), &["confirm"]);
    Ok(report(asked, "confirm", question))
}

fn two_at_once(asked: &Asked) -> Reply {
    if let Some(reply) = refused(asked) {
        return reply;
    }
    match (asked.form("first"), asked.form("second")) {
        (Form::Filled(_), Form::Filled(_)) => Reply::Done(line("Both were answered.")),
        _ => ask([("first", name_form("Who is first?")), ("second", name_form("Who is second?"))], None),
    }
}

fn roots(asked: &Asked) -> Reply {
    match asked.roots("client_roots") {
        Some(uris) => Reply::Done(line(format!("Roots: {}", uris.join(" ")))),
        None => ask([("client_roots", roots_question())], None),
    }
}

fn confirmed(asked: &Asked) -> Outcome {
    let sealed = unseal(asked)?;
    if let Some(reply) = refused(asked) {
        return Ok(reply);
    }
    if let (Some(_), Form::Filled(_)) = (sealed, asked.form("confirm")) {
        return Ok(Reply::Done(line("state-ok")));
    }
    Ok(ask([("confirm", yes_form())], Some(seal(asked, "confirm")?)))
}

fn three_at_once(asked: &Asked) -> Outcome {
    unseal(asked)?;
    if let Some(reply) = refused(asked) {
        return Ok(reply);
    }
    if let (Form::Filled(content), Some(greeting), Some(roots)) =
        (asked.form("user_name"), asked.sampled("greeting"), asked.roots("client_roots"))
    {
        let name = content.get("name").and_then(Value::as_str).unwrap_or("nobody");
        return Ok(Reply::Done(line(format!("{greeting} ({name}, {} roots)", roots.len()))));
    }
    let questions = [
        ("user_name", name_form("Who is there?")),
        ("greeting", prompt("Greet somebody.", 50)),
        ("client_roots", roots_question()),
    ];
    Ok(ask(questions, Some(seal(asked, "three")?)))
}

fn two_rounds(asked: &Asked) -> Outcome {
    let state = unseal(asked)?;
    if let Some(reply) = refused(asked) {
        return Ok(reply);
    }
    let filled = |question, field| match asked.form(question) {
        Form::Filled(content) => content.get(field).and_then(Value::as_str),
        Form::Refused(_) | Form::Open => None,
    };
    if let (Some(name), Some(color)) =
        (state.as_deref().and_then(|state| state.strip_prefix("named ")), filled("step2", "color"))
    {
        return Ok(Reply::Done(line(format!("{name} likes {color}."))));
    }
    if let (Some("start"), Some(name)) = (state.as_deref(), filled("step1", "name")) {
        let question = form("Which color do you like?", &json!({"color": {"type": "string"}}), &["color"]);
        return Ok(ask([("step2", question)], Some(seal(asked, &format!("named {name}"))?)));
    }
    Ok(ask([("step1", name_form("Who is there?"))], Some(seal(asked, "start")?)))
}

fn whatever_is_possible(asked: &Asked) -> Reply {
    let questions = [
        ("user_name", name_form("Who is there?")),
        ("greeting", prompt("Greet somebody.", 50)),
        ("client_roots", roots_question()),
    ];
    let possible: Map<_, _> = questions
        .into_iter()
        .filter(|(_, question)| {
            question.get("method").and_then(Value::as_str).is_some_and(|it| asked.answers_method(it))
        })
        .map(|(name, question)| (name.to_owned(), question))
        .collect();
    if possible.is_empty() || possible.keys().all(|name| asked.answers.contains_key(name)) {
        return Reply::Done(line(format!("{} answers", asked.answers.len())));
    }
    Reply::Ask { questions: possible, state: None }
}

fn codec() -> Result<RequestStateCodec, ErrorData> {
    RequestStateCodec::try_new(KEY).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A state that only this tool can open.
fn seal(asked: &Asked, state: &str) -> Result<String, ErrorData> {
    Ok(codec()?.seal_with(state.as_bytes(), &SealOptions::new().associated_data(asked.name.as_bytes())))
}

fn unseal(asked: &Asked) -> Result<Option<String>, ErrorData> {
    let Some(sealed) = &asked.state else { return Ok(None) };
    let opened = codec()?
        .open_with(sealed, asked.name.as_bytes())
        .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
    Ok(Some(String::from_utf8_lossy(&opened).into_owned()))
}
