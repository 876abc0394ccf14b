//! `/api/v1/...`: one route per operation, JSON out, one form of error.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, Extension, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use http::{StatusCode, Uri, header};
use serde::Serialize;
use toolwarden_control::operations::{self, Visitor};
use toolwarden_control::{Clerk, ControlError, Fault, Kind, Operation};

use crate::events::{EVENTS_PATH, events};
use crate::peer::Peer;

/// Requests are a few names; more is a mistake.
const LARGEST_REQUEST: usize = 256 * 1024;

/// All operations of a clerk. Every request must carry a `Peer`.
pub(crate) fn router(clerk: Arc<Clerk>) -> Router {
    let mut routes = Routes(Router::new());
    operations::all(&mut routes);
    let Routes(router) = routes;
    router
        .route(EVENTS_PATH, get(events))
        .fallback(|| async { refuse(StatusCode::NOT_FOUND, "not_found", "there is no such operation") })
        .method_not_allowed_fallback(|| async {
            refuse(StatusCode::METHOD_NOT_ALLOWED, "bad_input", "operations that change something are POST, others GET")
        })
        .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
        .with_state(clerk)
}

/// A route for every operation.
struct Routes(Router<Arc<Clerk>>);

impl Visitor for Routes {
    fn visit<O: Operation>(&mut self) {
        let method = match O::KIND {
            Kind::Read => get(read::<O>),
            Kind::Post => post(change::<O>),
        };
        self.0 = std::mem::take(&mut self.0).route(O::PATH, method);
    }
}

async fn read<O: Operation>(State(clerk): State<Arc<Clerk>>, peer: Option<Extension<Peer>>, uri: Uri) -> Response {
    let request = Query::<O::Request>::try_from_uri(&uri).map(|Query(request)| request);
    act::<O>(&clerk, peer, request.map_err(|error| error.body_text())).await
}

async fn change<O: Operation>(
    State(clerk): State<Arc<Clerk>>,
    peer: Option<Extension<Peer>>,
    body: Result<Bytes, BytesRejection>,
) -> Response {
    let body = match body {
        Ok(body) => body,
        Err(rejection) => return refuse(rejection.status(), "bad_input", &rejection.body_text()),
    };
    let request = serde_json::from_slice(&body).map_err(|error| error.to_string());
    act::<O>(&clerk, peer, request).await
}

/// The life of a request: who asks, what, and what came of it.
async fn act<O: Operation>(
    clerk: &Clerk,
    peer: Option<Extension<Peer>>,
    request: Result<O::Request, String>,
) -> Response {
    let Some(Extension(peer)) = peer else {
        return refuse(StatusCode::FORBIDDEN, "forbidden", "nobody vouches for who asks");
    };
    let actor = peer.actor(clerk);
    let unreadable = |message| Err(ControlError::BadInput(format!("the request cannot be read: {message}")));
    let outcome = match request {
        Ok(request) => clerk.perform::<O>(&actor, request).await,
        // Whoever may not ask is told so, and not how to ask.
        Err(message) => match clerk.admit::<O>(&actor).await {
            Ok(()) => unreadable(message),
            Err(refused) => Err(refused),
        },
    };
    match outcome {
        Ok(outcome) => json(StatusCode::OK, &outcome),
        Err(error) => failed(&error),
    }
}

pub(crate) fn failed(error: &ControlError) -> Response {
    let fault = error.fault();
    problem(status(&fault), fault)
}

/// An error after RFC 9457. `error` is the form of earlier versions, and stays.
#[derive(Serialize)]
struct Problem {
    error: Fault,
    r#type: String,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(flatten)]
    fault: Fault,
}

fn problem(status: StatusCode, fault: Fault) -> Response {
    let problem = Problem {
        r#type: format!("urn:toolwarden:problem:{}", fault.code),
        title: status.canonical_reason().unwrap_or("Error"),
        status: status.as_u16(),
        detail: fault.message.clone(),
        error: fault.clone(),
        fault,
    };
    encoded(status, "application/problem+json", &problem)
}

fn status(fault: &Fault) -> StatusCode {
    match fault.code.as_str() {
        "not_found" => StatusCode::NOT_FOUND,
        "conflict" => StatusCode::CONFLICT,
        "forbidden" => StatusCode::FORBIDDEN,
        _ if fault.is_input() => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

pub(crate) fn refuse(status: StatusCode, code: &str, message: &str) -> Response {
    problem(status, Fault::new(code, message))
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    encoded(status, "application/json", value)
}

fn encoded(status: StatusCode, kind: &'static str, value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => (status, [(header::CONTENT_TYPE, kind)], bytes).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}
