//! The tools that need nothing from the client.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::request::Parts;
use rmcp::ErrorData;
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use crate::Fixture;
use crate::asked::{Asked, Outcome, Reply};
use crate::catalogue::CHANGING_TOOL;
use crate::changes::Change;
use crate::content::{answer, audio, image, line, resource, text};
use crate::jobs;
use crate::rounds::{from_json, is_modern};

/// How long a tool waits between two things a client should see apart.
const PAUSE: Duration = Duration::from_millis(50);
/// POST streams of one session that `test_reconnection` looks for.
const STREAMS: u64 = 256;

/// Runs a tool.
pub async fn call(fixture: &Fixture, asked: &Asked, context: &RequestContext<RoleServer>) -> Outcome {
    if let Some(outcome) = jobs::run(asked, jobs::WAITED_FOR).await {
        return outcome;
    }
    Ok(Reply::Done(match asked.name.as_str() {
        "test_simple_text" => line("Just a line of text."),
        "test_image_content" => answer(&[image()]),
        "test_audio_content" => answer(&[audio()]),
        "test_embedded_resource" => answer(&[resource("test://embedded-resource", "text/plain", "Embedded.")]),
        "test_multiple_content_types" => {
            let data = resource("test://mixed-content-resource", "application/json", r#"{"pieces":3}"#);
            answer(&[text("Three kinds of content:"), image(), data])
        }
        "test_error_handling" => json!({"isError": true, "content": [text("This tool always fails.")]}),
        "test_tool_with_logging" | "test_logging_tool" => logging(fixture, context).await?,
        "test_tool_with_progress" => progress(context).await?,
        "test_reconnection" => reconnection(fixture, context).await,
        "test_trigger_tool_change" => {
            fixture.shared.with_tool.fetch_xor(true, Ordering::Relaxed);
            changed(fixture, Change::Tools).await
        }
        "test_trigger_prompt_change" => {
            fixture.shared.with_prompt.fetch_xor(true, Ordering::Relaxed);
            changed(fixture, Change::Prompts).await
        }
        "test_trigger_resource_change" => changed(fixture, Change::Watched).await,
        "greet" => line(format!("Hello, {}!", asked.argument("name")?)),
        "test_custom_header" => line(format!("The region is {}.", asked.argument("region")?)),
        "json_schema_2020_12_tool" | "test_echo" => echo(asked),
        "test_delay" => delay(fixture, asked, context).await?,
        "test_request_headers" => line(headers(context).to_string()),
        CHANGING_TOOL => line("Still here."),
        unknown => return Err(ErrorData::invalid_params(format!("Unknown tool: {unknown}"), None)),
    }))
}

fn echo(asked: &Asked) -> Value {
    let arguments = Value::Object(asked.arguments.clone());
    json!({"content": [text(arguments.to_string())], "structuredContent": arguments})
}

/// Tells everybody, after whoever was told that it listens really does.
async fn changed(fixture: &Fixture, change: Change) -> Value {
    let opening = &fixture.shared.opening;
    for _ in 0..200 {
        if opening.load(Ordering::SeqCst) == 0 {
            break;
        }
        sleep(PAUSE / 10).await;
    }
    // What is left of them never opened.
    opening.store(0, Ordering::SeqCst);
    // Nobody listening is fine.
    let _ = fixture.shared.news.send(change);
    line(format!("Changed: {change:?}."))
}

async fn logging(fixture: &Fixture, context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
    for words in ["first", "second", "third"] {
        log(fixture, context, words).await?;
        sleep(PAUSE).await;
    }
    Ok(line("Logged."))
}

/// Sends a message at level info, if the client wants to hear that level.
#[expect(deprecated, reason = "logging is deprecated, and still has to be served")]
async fn log(fixture: &Fixture, context: &RequestContext<RoleServer>, words: &str) -> Result<(), ErrorData> {
    let info = rmcp::model::LoggingLevel::Info as usize;
    let threshold = match context.meta.log_level() {
        Some(level) => Some(level as usize),
        None if is_modern(context) => None,
        None => Some(fixture.level.load(Ordering::Relaxed)),
    };
    if threshold.is_none_or(|threshold| info < threshold) {
        return Ok(());
    }
    let message = from_json(json!({"level": "info", "data": words}))?;
    let sent = context.peer.notify_logging_message(message).await;
    sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn progress(context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
    for done in [0, 50, 100] {
        report(context, done, 100).await?;
        sleep(PAUSE).await;
    }
    Ok(line("Progress reported."))
}

async fn report(context: &RequestContext<RoleServer>, done: u64, total: u64) -> Result<(), ErrorData> {
    let Some(token) = context.meta.get_progress_token() else { return Ok(()) };
    let report = from_json(json!({"progressToken": token, "progress": done, "total": total}))?;
    let sent = context.peer.notify_progress(report).await;
    sent.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// Waits in steps; says in the record if the caller gave up first.
async fn delay(fixture: &Fixture, asked: &Asked, context: &RequestContext<RoleServer>) -> Result<Value, ErrorData> {
    let total = asked.arguments.get("milliseconds").and_then(Value::as_u64).unwrap_or_default().min(60_000);
    let mut waited = 0;
    while waited < total {
        report(context, waited, total).await?;
        let step = (total - waited).min(100);
        tokio::select! {
            () = sleep(Duration::from_millis(step)) => waited += step,
            () = context.ct.cancelled() => {
                fixture.note("cancelled", &asked.name)?;
                return Err(ErrorData::internal_error("cancelled", None));
            }
        }
    }
    Ok(line(format!("Waited {total} ms.")))
}

/// Closes the open POST streams of a legacy session, this call's own among them, and answers later.
async fn reconnection(fixture: &Fixture, context: &RequestContext<RoleServer>) -> Value {
    let session = context
        .extensions
        .get::<Parts>()
        .and_then(|parts| parts.headers.get("mcp-session-id")?.to_str().ok())
        .filter(|_| !is_modern(context));
    let handle = match session {
        Some(id) => fixture.shared.sessions.sessions.read().await.get(id).cloned(),
        None => None,
    };
    if let Some(handle) = handle {
        sleep(PAUSE).await;
        for stream in 0..STREAMS {
            // Streams that are unknown or already closed are no concern of ours.
            let _ = handle.close_sse_stream(stream, Some(PAUSE)).await;
        }
        sleep(PAUSE * 2).await;
    }
    line("Reconnected.")
}

/// The request's headers, several values of one name joined; nothing over stdio.
fn headers(context: &RequestContext<RoleServer>) -> Value {
    let mut seen = Map::new();
    for (name, value) in context.extensions.get::<Parts>().iter().flat_map(|parts| &parts.headers) {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        let joined = match seen.get(name.as_str()).and_then(Value::as_str) {
            Some(before) => format!("{before}, {value}"),
            None => value,
        };
        seen.insert(name.to_string(), Value::String(joined));
    }
    Value::Object(seen)
}
