//! Refusals become wire. The only file that knows JSON-RPC codes.

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;
use toolwarden_conversations::Failure;
use toolwarden_core::{Decision, Reason, name};
use toolwarden_mcp::ladder::{Rung, TASKS_EXTENSION};
use toolwarden_mcp::{Era, Id, MessageError, Version, compose};

use crate::refusal::{Denial, Refusal};
use crate::words::{ask_for_approval, without_commands};

/// One message with the status it travels under.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: StatusCode,
    pub body: Bytes,
    /// The id of a session that was just opened.
    pub session: Option<String>,
}

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;
const HEADER_MISMATCH: i64 = -32020;
pub const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;
/// Our own refusals: outside every range the protocol reserves.
const NOT_PERMITTED: i64 = 4030;
/// Where a decision is said: in the `_meta` of a result, in the `data` of an error.
const DECISION: &str = "toolwarden/decision";
/// Where the id of a held call is said.
const APPROVAL: &str = "toolwarden/approval";

/// What a refusal must be shaped to.
#[derive(Debug, Clone)]
pub struct Shape {
    pub id: Option<Id>,
    /// Whether anybody waits for an answer.
    pub wants_answer: bool,
    pub is_tool_call: bool,
    pub era: Era,
}

/// A refusal in wire form; none where nobody waits for it.
#[must_use]
pub fn refuse(shape: &Shape, refusal: &Refusal) -> Option<Reply> {
    let (status, code, message) = match refusal {
        Refusal::TakenAway(now) => return refuse(shape, now),
        Refusal::Denied(denial) | Refusal::Held(denial) if shape.is_tool_call && shape.id.is_some() => {
            return decided(shape, denial);
        }
        Refusal::Denied(denial) | Refusal::Held(denial) => {
            let data = said(denial);
            let body = compose::error(shape.id.as_ref(), NOT_PERMITTED, &in_words(denial), Some(&data));
            return reply(shape, StatusCode::OK, body);
        }
        Refusal::Rung(Rung::Version(version)) => {
            let supported: Vec<_> = Version::modern().map(Version::as_str).collect();
            let data = json!({ "supported": supported, "requested": version });
            let body =
                compose::error(shape.id.as_ref(), UNSUPPORTED_VERSION, "Unsupported protocol version", Some(&data));
            return reply(shape, StatusCode::BAD_REQUEST, body);
        }
        Refusal::Capability(name) => {
            let data = json!({ "requiredCapabilities": { *name: {} } });
            let words =
                format!("the server needs a client that offers `{name}`; what it did before it asked is not known");
            let body = compose::error(shape.id.as_ref(), MISSING_CAPABILITY, &words, Some(&data));
            return reply(shape, StatusCode::BAD_REQUEST, body);
        }
        Refusal::Tasks => {
            let data = json!({ "requiredCapabilities": { "extensions": { TASKS_EXTENSION: {} } } });
            let words = "Missing required client capability: tasks";
            let body = compose::error(shape.id.as_ref(), MISSING_CAPABILITY, words, Some(&data));
            return reply(shape, StatusCode::BAD_REQUEST, body);
        }
        Refusal::Upstream(Failure::Answered { status, error }) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::OK);
            return reply(shape, status, compose::raw_error(shape.id.as_ref(), error));
        }
        other => codes(shape.era, other),
    };
    let data = if let Refusal::Upstream(failure) = refusal { over(failure) } else { None };
    reply(shape, status, compose::error(shape.id.as_ref(), code, &without_commands(&message), data.as_ref()))
}

fn codes(era: Era, refusal: &Refusal) -> (StatusCode, i64, String) {
    let bad = StatusCode::BAD_REQUEST;
    match refusal {
        Refusal::Unauthorized(why) => (StatusCode::UNAUTHORIZED, INVALID_REQUEST, (*why).to_owned()),
        Refusal::TooManyGuesses => {
            let words = "too many credentials that nobody issued were shown here; wait a minute";
            (StatusCode::TOO_MANY_REQUESTS, INVALID_REQUEST, words.to_owned())
        }
        Refusal::Unverified => {
            let reason = Reason::CredentialUnverified;
            (StatusCode::SERVICE_UNAVAILABLE, INTERNAL_ERROR, format!("{}; {}", reason.sentence(), reason.remedy()))
        }
        Refusal::UnknownMode(mode) => (bad, INVALID_REQUEST, format!("no mode is called `{}`", name::shown(mode))),
        Refusal::Query(what) => {
            let what = name::shown(what);
            let words = format!(
                "`{what}` behind the `?` of this address is not read: nothing may stand there but `mode=SLUG`, once"
            );
            (bad, INVALID_REQUEST, words)
        }
        Refusal::Malformed(error @ (MessageError::NotUtf8 | MessageError::NotJson(_))) => {
            (bad, PARSE_ERROR, error.to_string())
        }
        Refusal::Malformed(error) => (bad, INVALID_REQUEST, error.to_string()),
        Refusal::Batch => (bad, INVALID_REQUEST, "batches are part of 2025-03-26 only".to_owned()),
        Refusal::Rung(Rung::Meta(what)) => (bad, INVALID_PARAMS, (*what).to_owned()),
        Refusal::Rung(Rung::Header(what)) => (bad, HEADER_MISMATCH, what.clone()),
        Refusal::Method(method) => {
            let status = if era == Era::Modern { StatusCode::NOT_FOUND } else { StatusCode::OK };
            (status, METHOD_NOT_FOUND, format!("Method not found: {}", name::shown(method)))
        }
        Refusal::Order(what) => (bad, INVALID_REQUEST, (*what).to_owned()),
        Refusal::RepeatedId => (StatusCode::OK, INVALID_REQUEST, "a request of this id is still on its way".to_owned()),
        Refusal::SessionMissing => (bad, INVALID_REQUEST, "Bad Request: Mcp-Session-Id header is required".to_owned()),
        Refusal::SessionGone => {
            (StatusCode::NOT_FOUND, INVALID_REQUEST, "Session not found: initialize again".to_owned())
        }
        Refusal::TooManySessions => {
            (StatusCode::SERVICE_UNAVAILABLE, INTERNAL_ERROR, "too many sessions are open; try again later".to_owned())
        }
        Refusal::TooManyStreams => (
            StatusCode::SERVICE_UNAVAILABLE,
            INTERNAL_ERROR,
            "too many streams of yours are open; close some".to_owned(),
        ),
        Refusal::VersionHeader(version) => {
            (bad, INVALID_REQUEST, format!("Bad Request: Unsupported protocol version: {}", name::shown(version)))
        }
        Refusal::Params(what) => (StatusCode::OK, INVALID_PARAMS, what.clone()),
        Refusal::ForeignTask => (StatusCode::OK, INVALID_PARAMS, "no such task".to_owned()),
        Refusal::State(why) => (StatusCode::OK, INVALID_PARAMS, format!("`requestState` cannot be used: {why}")),
        Refusal::UnknownServer(server) => {
            (StatusCode::NOT_FOUND, INVALID_PARAMS, format!("no server is called `{}`", name::shown(server)))
        }
        Refusal::UnknownTool(tool) | Refusal::Hidden(tool, _) => {
            (StatusCode::OK, INVALID_PARAMS, format!("Unknown tool: {}", name::shown(tool)))
        }
        Refusal::NoRecord => {
            (StatusCode::OK, INTERNAL_ERROR, "the call was not sent: its audit record could not be written".to_owned())
        }
        Refusal::Upstream(failure) => (StatusCode::OK, INTERNAL_ERROR, failure.to_string()),
        Refusal::ListenAgain => {
            (StatusCode::OK, INVALID_REQUEST, "what may be listened to has changed: listen again".to_owned())
        }
        // Answered before this table is asked.
        Refusal::Denied(_)
        | Refusal::Held(_)
        | Refusal::TakenAway(_)
        | Refusal::Capability(_)
        | Refusal::Tasks
        | Refusal::Rung(Rung::Version(_)) => (bad, NOT_PERMITTED, "not permitted".to_owned()),
    }
}

fn reply(shape: &Shape, status: StatusCode, body: Bytes) -> Option<Reply> {
    (shape.wants_answer || status != StatusCode::OK).then_some(Reply { status, body, session: None })
}

/// A decision against a tool call is a result the model can read.
fn decided(shape: &Shape, denial: &Denial) -> Option<Reply> {
    let mut result = json!({
        "content": [{ "type": "text", "text": in_words(denial) }],
        "isError": true,
        "_meta": said(denial),
    });
    if let (Era::Modern, Some(result)) = (shape.era, result.as_object_mut()) {
        result.insert("resultType".to_owned(), "complete".into());
    }
    let id = shape.id.clone().unwrap_or_else(|| Id::number(0));
    reply(shape, StatusCode::OK, compose::result(&id, &result.to_string()))
}

fn in_words(denial: &Denial) -> String {
    let explanation = &denial.explanation;
    let verb = match explanation.decision {
        Decision::Hold if explanation.reason == Reason::ResultReview => "Held by Toolwarden, nothing was run again",
        Decision::Hold => "Held by Toolwarden, nothing was run",
        _ => "Denied by Toolwarden",
    };
    let detail = explanation.detail.as_deref().map(|detail| format!(" ({})", name::shown(detail))).unwrap_or_default();
    let mut text =
        format!("{verb}: {}{detail}. Reason: {}.", denial.message.trim_end_matches('.'), explanation.reason.code());
    if let (Decision::Hold, Some(approval)) = (explanation.decision, &denial.approval) {
        text.push_str(&format!(" It waits for a person: {}, exactly as it is.", ask_for_approval(approval)));
    } else if !explanation.reason.remedy().is_empty() {
        text.push_str(&format!(" What helps: {}.", explanation.reason.remedy()));
    }
    without_commands(&text).into_owned()
}

/// What programs read of a decision.
fn said(denial: &Denial) -> serde_json::Value {
    let mut said = json!({ DECISION: decision(denial) });
    if let (Some(approval), Some(said)) = (&denial.approval, said.as_object_mut()) {
        said.insert(APPROVAL.to_owned(), approval.as_str().into());
    }
    said
}

fn decision(denial: &Denial) -> serde_json::Value {
    let explanation = &denial.explanation;
    let rule = explanation.rule.as_ref().map(|rule| json!({ "text": &*rule.text, "source": rule.origin.to_string() }));
    let mut said = json!({
        "decision": explanation.decision.as_str(),
        "stage": explanation.stage.as_str(),
        "reason": explanation.reason.code(),
        "rule": rule,
        "candidates": explanation.candidates,
        "policy_version": explanation.policy_version,
    });
    if let (Some(seconds), Some(said)) = (denial.retry_after, said.as_object_mut()) {
        said.insert("retry_after_seconds".to_owned(), seconds.into());
    }
    said
}

/// The limit that a call went over, for programs.
fn over(failure: &Failure) -> Option<serde_json::Value> {
    failure.over().map(|reason| json!({ "reason": reason.code() }))
}

/// A server's failure as the response to a request.
#[must_use]
pub fn failure_message(id: Option<&Id>, failure: &Failure) -> Bytes {
    compose::error(id, INTERNAL_ERROR, &without_commands(&failure.to_string()), over(failure).as_ref())
}
