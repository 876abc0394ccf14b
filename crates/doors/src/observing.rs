//! What people who run the gateway look at: `/healthz`, `/readyz`, `/metrics`; and the counting of messages
//! that are turned away at a door.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Response, StatusCode};
use serde_json::json;
use toolwarden_gateway::{Gateway, Refusal};
use toolwarden_telemetry::{ProcessObserved, ServerObserved, TurnedAway, render};

use crate::body::AnswerBody;
use crate::hosts::HostError;
use crate::http::{JSON, plain};

const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The page at a path, where one is there.
pub(crate) async fn page(gateway: &Arc<Gateway>, method: &Method, path: &str) -> Option<Response<AnswerBody>> {
    if !matches!(path, "/healthz" | "/readyz" | "/metrics") {
        return None;
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "use GET");
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return Some(response);
    }
    if path == "/healthz" {
        return Some(plain(StatusCode::OK, "ok"));
    }
    // Both look at files: not on the thread that serves calls.
    let (gateway, wants_metrics) = (gateway.clone(), path == "/metrics");
    let look = move || if wants_metrics { metrics(&gateway) } else { readiness(&gateway) };
    let looked = tokio::task::spawn_blocking(look).await;
    Some(looked.unwrap_or_else(|_| plain(StatusCode::INTERNAL_SERVER_ERROR, "it cannot be said")))
}

fn metrics(gateway: &Gateway) -> Response<AnswerBody> {
    let mut observed = gateway.observed();
    observed.process = ProcessObserved::now();
    whole(StatusCode::OK, PROMETHEUS, render(gateway.telemetry(), &observed))
}

/// Whether calls can be served: nobody told it to stop, and their records can be written. A server that is down is no reason to send
/// clients elsewhere, and neither is a policy that was refused: the former one is in force.
fn readiness(gateway: &Gateway) -> Response<AnswerBody> {
    let fault = gateway.journal_fault();
    let observed = gateway.observed();
    let reloads = &gateway.telemetry().reloads;
    let refused = reloads.refusal();
    let servers = observed.servers.iter().map(|server| {
        let waiting = gateway.definitions_waiting(&server.name);
        json!({ "name": server.name, "state": server.state, "definitions_waiting": waiting })
    });
    let is_refused = |server: &&ServerObserved| gateway.refused_tools(&server.name).is_some();
    let refused_tools: Vec<_> = observed.servers.iter().filter(is_refused).map(|server| &server.name).collect();
    let is_stopping = gateway.closing().has_begun();
    let is_ready = fault.is_none() && !is_stopping;
    let detail = json!({
        "ready": is_ready,
        "stopping": is_stopping,
        "policy": {
            "version": observed.policy_version,
            "in_force_since": reloads.taken_at().to_string(),
            "waits_for_restart": reloads.for_restart(),
            // Why is for those who may ask: it names files, and servers that are not everybody's.
            "servers_with_refused_tools": refused_tools,
            "refused": refused.map(|refused| json!({ "since": refused.since.to_string() })),
        },
        "journal": { "writable": fault.is_none(), "error": fault },
        "held_calls": if gateway.is_unmanned() {
            "nobody hears of them: no webhook is told, nobody watches, no client may be asked"
        } else {
            "somebody hears of them, or none can be held"
        },
        "servers": servers.collect::<Vec<_>>(),
    });
    let status = if is_ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    whole(status, JSON, format!("{detail}\n"))
}

fn whole(status: StatusCode, kind: HeaderValue, text: String) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Whole(Some(Bytes::from(text))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Counts a message that ends at the door.
pub(crate) fn turn_away(gateway: &Gateway, why: TurnedAway) {
    gateway.telemetry().metrics.turned_away(why);
}

/// Why a door refused it, as it is counted.
pub(crate) fn why(refusal: &Refusal) -> TurnedAway {
    match refusal {
        Refusal::Unauthorized(_) | Refusal::TooManyGuesses | Refusal::Unverified => TurnedAway::Credential,
        Refusal::UnknownMode(_) | Refusal::Query(_) => TurnedAway::Mode,
        Refusal::Malformed(_) | Refusal::Batch => TurnedAway::Malformed,
        Refusal::Rung(_) | Refusal::VersionHeader(_) => TurnedAway::Headers,
        Refusal::SessionMissing | Refusal::SessionGone | Refusal::TooManySessions | Refusal::TooManyStreams => {
            TurnedAway::Session
        }
        _ => TurnedAway::Unusable,
    }
}

pub(crate) fn why_host(error: HostError) -> TurnedAway {
    match error {
        HostError::Host => TurnedAway::Host,
        HostError::Origin => TurnedAway::Origin,
    }
}
