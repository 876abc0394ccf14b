//! Spans as OTLP in JSON: names of attributes follow OpenTelemetry's conventions for MCP where there are any.

use serde_json::{Value, json};
use toolwarden_core::name::{bounded, shown};
use toolwarden_core::{Reason, Status};

use super::{Ending, Finished, Span};
use crate::metrics::Door;

/// A span of somebody who is served.
const SERVER: u8 = 2;
const ERROR: u8 = 2;

/// The body of one request to the collector.
pub(super) fn body(spans: &[Finished], node: &str) -> String {
    let resource = [
        ("service.name", Some(json!("toolwarden"))),
        ("service.version", Some(json!(env!("CARGO_PKG_VERSION")))),
        ("service.instance.id", Some(json!(node))),
    ];
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let scope = json!({ "name": "toolwarden", "version": env!("CARGO_PKG_VERSION") });
    json!({ "resourceSpans": [{
        "resource": { "attributes": attributes(resource) },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] })
    .to_string()
}

fn span(Finished { span, ending }: &Finished) -> Value {
    let Span { context, parent, started } = span;
    let began = started.as_nanosecond();
    let ended = began + i128::try_from(ending.took.as_nanos()).unwrap_or_default();
    let mut told = json!({
        "traceId": format!("{:032x}", context.trace),
        "spanId": format!("{:016x}", context.span),
        "flags": context.flags,
        "name": method(ending),
        "kind": SERVER,
        "startTimeUnixNano": began.to_string(),
        "endTimeUnixNano": ended.to_string(),
        "attributes": attributes(about(ending)),
        "status": if is_error(ending.status) { json!({ "code": ERROR }) } else { json!({}) },
    });
    if let Some(members) = told.as_object_mut() {
        members.extend(parent.map(|parent| ("parentSpanId".to_owned(), json!(format!("{parent:016x}")))));
        members.extend(context.state.as_ref().map(|state| ("traceState".to_owned(), json!(state))));
    }
    told
}

fn about(ending: &Ending) -> impl Iterator<Item = (&'static str, Option<Value>)> {
    let is_tool = &*ending.method == "tools/call";
    // A tool nobody listed is a text of the client.
    let tool = ending.tool.as_deref().filter(|_| ending.reason != Some(Reason::UnknownTool)).map(told);
    let transport = if ending.door == Door::Stdio { "pipe" } else { "tcp" };
    let bytes = i64::try_from(ending.response_bytes).unwrap_or(i64::MAX);
    [
        ("mcp.method.name", Some(json!(method(ending)))),
        ("mcp.session.id", ending.session.as_ref().map(|session| json!(session))),
        ("gen_ai.operation.name", is_tool.then(|| json!("execute_tool"))),
        ("gen_ai.tool.name", tool.map(|tool| json!(tool))),
        ("network.transport", Some(json!(transport))),
        ("error.type", is_error(ending.status).then(|| json!(ending.status.as_str()))),
        ("toolwarden.server", ending.server.as_deref().map(|server| json!(told(server)))),
        ("toolwarden.door", Some(json!(ending.door.as_str()))),
        ("toolwarden.decision", ending.decision.map(|decision| json!(decision.as_str()))),
        ("toolwarden.reason", ending.reason.map(|reason| json!(reason.code()))),
        ("toolwarden.status", Some(json!(ending.status.as_str()))),
        ("toolwarden.call", Some(json!(ending.call.to_string()))),
        ("toolwarden.request_bytes", Some(json!(ending.request_bytes))),
        ("toolwarden.response_bytes", Some(json!(bytes))),
    ]
    .into_iter()
}

/// The method; one that no table lists is a text of the client.
fn method(ending: &Ending) -> String {
    if ending.reason == Some(Reason::MethodNotListed) { "unlisted".to_owned() } else { told(&ending.method) }
}

fn is_error(status: Status) -> bool {
    matches!(status, Status::ToolError | Status::UpstreamError | Status::Timeout | Status::TooLarge)
}

fn attributes(pairs: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Vec<Value> {
    let attribute = |(key, value): (&str, Option<Value>)| {
        let value = match value? {
            // Numbers of 64 bits are texts in OTLP's JSON.
            Value::Number(number) => json!({ "intValue": number.to_string() }),
            other => json!({ "stringValue": other }),
        };
        Some(json!({ "key": key, "value": value }))
    };
    pairs.into_iter().filter_map(attribute).collect()
}

fn told(name: &str) -> String {
    shown(bounded(name)).into_owned()
}
