//! What else is at the same address: the control side, for persons who show a token. That somebody comes from this
//! machine is never enough here (GATE-2), and no agent gets in.

use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use toolwarden_core::{Caller, CallerKind};
use toolwarden_gateway::{Answer, Credential, Events, Gateway, Refusal, identify};
use toolwarden_telemetry::TurnedAway;

use crate::body::AnswerBody;
use crate::http::{credential, refused, respond};
use crate::{hosts, landing, observing, post};

/// Where it begins.
const PATH: &str = "/api/";
/// Where the pages begin by which persons answer held calls.
const PAGES: &str = "/approve/";
/// Requests are a few names.
const LARGEST: usize = 256 * 1024;
/// And forms a note.
const LARGEST_FORM: usize = 16 * 1024;
/// Errors after RFC 9457.
const PROBLEM: http::HeaderValue = http::HeaderValue::from_static("application/problem+json");

/// An answer on its way.
pub type Answering = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;

/// Whoever answers there.
pub trait Beside: Debug + Send + Sync {
    /// Answers a person whose token was found good just now.
    fn answer(&self, person: Arc<Caller>, request: Request<Bytes>) -> Answering;

    /// Answers whoever opens a page of a held call: who that is, they find out themselves.
    fn page(&self, request: Request<Bytes>) -> Answering;

    /// The origins of its own pages, as browsers write them: `scheme://host[:port]`. No other page may speak to it.
    fn origins(&self) -> &[String];

    /// What such a person hears at the address of events, if this is it and they may.
    fn events(&self, person: &Arc<Caller>, path: &str) -> Option<Events>;
}

/// Whether a request is for the control side.
pub(crate) fn is_meant(path: &str) -> bool {
    path.starts_with(PATH) || path.starts_with(PAGES)
}

/// Answers one request of the control side.
pub(crate) async fn serve<B>(gateway: &Gateway, beside: &dyn Beside, request: Request<B>) -> Response<AnswerBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
{
    let (mut parts, body) = request.into_parts();
    let checked = hosts::check(&parts.headers, &parts.uri, &gateway.settings().allowed_hosts);
    if let Err(error) = checked.and_then(|()| hosts::check_own(&parts.headers, beside.origins())) {
        observing::turn_away(gateway, observing::why_host(error));
        return fault(StatusCode::FORBIDDEN, "forbidden", &error.to_string());
    }
    if let Some(page) = landing::page(&parts.method, parts.uri.path()) {
        return page;
    }
    if parts.uri.path().starts_with(PAGES) {
        return match post::collected(&parts.headers, body, LARGEST_FORM, None).await {
            Ok(bytes) => {
                let answer = beside.page(Request::from_parts(parts, bytes)).await;
                answer.map(|bytes| AnswerBody::Whole(Some(bytes)))
            }
            Err((status, text)) => {
                observing::turn_away(gateway, TurnedAway::Body);
                fault(status, "bad_input", text)
            }
        };
    }
    let person = match person(gateway, &credential(&parts.headers)) {
        Ok(person) => person,
        Err(response) => return *response,
    };
    parts.headers.remove(AUTHORIZATION);
    if parts.method == Method::GET
        && let Some(events) = beside.events(&person, parts.uri.path())
    {
        return respond(Answer::Events { events, resumable: false });
    }
    let mut room = gateway.body_room(&person);
    let bytes = match post::collected(&parts.headers, body, LARGEST, Some(&mut room)).await {
        Ok(bytes) => bytes,
        Err((status, text)) => {
            observing::turn_away(gateway, TurnedAway::Body);
            return fault(status, "bad_input", text);
        }
    };
    drop(room);
    beside.answer(person, Request::from_parts(parts, bytes)).await.map(|bytes| AnswerBody::Whole(Some(bytes)))
}

fn person(gateway: &Gateway, credential: &Credential) -> Result<Arc<Caller>, Box<Response<AnswerBody>>> {
    let nobody = || Refusal::Unauthorized("the control side is for persons who show a token, wherever they come from");
    if !matches!(credential, Credential::Token(_)) {
        return Err(Box::new(unidentified(gateway, &nobody())));
    }
    let caller = identify(gateway, credential, None).map_err(|refusal| Box::new(unidentified(gateway, &refusal)))?;
    if caller.token.id.is_none() {
        return Err(Box::new(unidentified(gateway, &nobody())));
    }
    if caller.kind == CallerKind::Agent {
        let why = "this is for persons; the token is an agent's";
        return Err(Box::new(fault(StatusCode::FORBIDDEN, "forbidden", why)));
    }
    Ok(caller)
}

/// Whoever is not known gets the status and headers of the MCP side, and the form of this side.
fn unidentified(gateway: &Gateway, refusal: &Refusal) -> Response<AnswerBody> {
    let (parts, _) = refused(gateway, refusal).into_parts();
    let (code, message) = match refusal {
        Refusal::Unauthorized(why) => ("unauthorized", (*why).to_owned()),
        Refusal::TooManyGuesses => ("too_many_requests", "too many wrong tokens; try again in a minute".to_owned()),
        _ => ("unavailable", "who asks cannot be found out now; try again".to_owned()),
    };
    let mut response = fault(parts.status, code, &message);
    for name in [http::header::WWW_AUTHENTICATE, http::header::RETRY_AFTER] {
        if let Some(value) = parts.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// In the form of the control side's own errors.
fn fault(status: StatusCode, code: &str, message: &str) -> Response<AnswerBody> {
    let body = serde_json::json!({
        "type": format!("urn:toolwarden:problem:{code}"),
        "title": status.canonical_reason().unwrap_or("Error"),
        "status": status.as_u16(),
        "detail": message,
        "code": code,
        "message": message,
        "error": { "code": code, "message": message },
    });
    let body = body.to_string();
    let mut response = Response::new(AnswerBody::Whole(Some(Bytes::from(body))));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, PROBLEM);
    response
}
