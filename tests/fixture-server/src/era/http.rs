//! The gate before Streamable HTTP.

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, Method, StatusCode, header};
use serde_json::Value;

use super::{Era, Kind, LEGACY_NEWS, MODERN_METHODS, Sent, error};

/// No test sends more in one message.
const LARGEST: usize = 64 * 1024 * 1024;

/// Lets pass what the era knows.
pub async fn gate(State(era): State<Era>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let refusal = match era {
        Era::Both => None,
        Era::Legacy => legacy(&head.method, &head.headers, &body),
        Era::Modern => modern(&head.method, &body),
    };
    match refusal {
        Some(refusal) => refusal,
        None => next.run(Request::from_parts(head, Body::from(body))).await,
    }
}

fn modern(method: &Method, body: &[u8]) -> Option<Response> {
    if method != Method::POST {
        return Some((StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "POST")]).into_response());
    }
    let sent = Sent::read(body)?;
    match sent.kind {
        Kind::Request if sent.claims && sent.is("initialize") => {
            Some(answer(StatusCode::NOT_FOUND, &sent.unknown_method()))
        }
        Kind::Request if sent.claims => None,
        Kind::Request => Some(answer(StatusCode::BAD_REQUEST, &sent.without_claim())),
        Kind::Notification if sent.claims && !LEGACY_NEWS.contains(&sent.method.as_str()) => None,
        Kind::Notification => Some(StatusCode::ACCEPTED.into_response()),
        Kind::Response => {
            Some(answer(StatusCode::BAD_REQUEST, &error(&Value::Null, -32600, "nothing was asked", None)))
        }
    }
}

/// Answers in the words of the TypeScript SDK, which most legacy servers are made with.
fn legacy(method: &Method, headers: &HeaderMap, body: &[u8]) -> Option<Response> {
    let refuse = |words: &str| Some(answer(StatusCode::BAD_REQUEST, &error(&Value::Null, -32000, words, None)));
    let sent = if method == Method::POST { Sent::read(body) } else { None };
    let has_session = headers.contains_key("mcp-session-id");
    if let Some(sent) = &sent
        && !has_session
        && (sent.claims || !sent.is("initialize"))
    {
        return refuse("Bad Request: Server not initialized");
    }
    let version = headers.get("mcp-protocol-version").map(|version| String::from_utf8_lossy(version.as_bytes()));
    if let Some(version) = version.filter(|version| Era::Legacy.versions().iter().all(|it| it.as_str() != *version)) {
        return refuse(&format!("Bad Request: Unsupported protocol version: {version}"));
    }
    let sent = sent?;
    if sent.claims {
        return Some(answer(StatusCode::BAD_REQUEST, &sent.of_other_era()));
    }
    let is_unknown = sent.kind == Kind::Request && MODERN_METHODS.contains(&sent.method.as_str());
    is_unknown.then(|| answer(StatusCode::OK, &sent.unknown_method()))
}

fn answer(status: StatusCode, message: &Value) -> Response {
    (status, axum::Json(message)).into_response()
}
