//! The HTTP door: paths, Host and Origin, credentials; then POST, GET or DELETE of MCP.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::Body;
use toolwarden_conversations::Scope;
use toolwarden_core::{Caller, Secret, Weakness, weak};
use toolwarden_gateway::{Answer, Credential, Gateway, Refusal, Reply, Shape, answer, identify};
use toolwarden_mcp::{Era, Version, headers};

use crate::body::AnswerBody;
use crate::query::{Query, decoded};
use crate::{hosts, landing, observing, post, sse, streams};

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");

/// A request that passed the door's own checks.
#[derive(Debug)]
pub(crate) struct Visit {
    pub(crate) scope: Scope,
    pub(crate) caller: Arc<Caller>,
    pub(crate) headers: Arc<HeaderMap>,
}

/// Answers one HTTP request.
pub async fn serve_request<B>(gateway: &Arc<Gateway>, request: Request<B>) -> Response<AnswerBody>
where
    B: Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (mut parts, body) = request.into_parts();
    // Headers travel on in what can be shown in a log.
    parts
        .headers
        .iter_mut()
        .filter(|(name, _)| **name == AUTHORIZATION)
        .for_each(|(_, value)| value.set_sensitive(true));
    if let Err(error) = hosts::check(&parts.headers, &parts.uri, &gateway.settings().allowed_hosts) {
        observing::turn_away(gateway, observing::why_host(error));
        return plain(StatusCode::FORBIDDEN, &error.to_string());
    }
    let path = parts.uri.path();
    let oldest = scope_of(path, "/sse");
    let Some(scope) = oldest.clone().or_else(|| scope_of(path, "/mcp")) else {
        if let Some(page) = landing::page(&parts.method, path) {
            return page;
        }
        let page = observing::page(gateway, &parts.method, path).await;
        return page.unwrap_or_else(|| if is_of_oauth(path) { no_oauth() } else { nothing_here() });
    };
    let said = match Query::read(parts.uri.query(), oldest.is_some() && parts.method == Method::POST) {
        Ok(said) => said,
        Err(refusal) => return refused(gateway, &refusal),
    };
    let caller = match identify(gateway, &credential(&parts.headers), said.mode.as_deref()) {
        Ok(caller) => caller,
        Err(refusal) => return refused(gateway, &refusal),
    };
    let visit = Visit { scope, caller, headers: Arc::new(parts.headers) };
    if oldest.is_some() {
        return sse::visit(gateway, visit, &parts.method, path, &said, body).await;
    }
    match parts.method {
        Method::POST => post::post(gateway, visit, body).await,
        Method::GET => streams::get(gateway, &visit).await,
        Method::DELETE => streams::delete(gateway, &visit).await,
        _ => {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "use POST, GET or DELETE");
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST, GET, DELETE"));
            response
        }
    }
}

/// What the client shows. A header that is no bearer token, or several, is shown all the same: as one nobody issued.
pub(crate) fn credential(headers: &HeaderMap) -> Credential {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let (Some(first), more) = (shown.next(), shown.next()) else { return Credential::Anonymous };
    let text = first.to_str().ok().filter(|_| more.is_none()).and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
    });
    Credential::Token(Secret::new(text.unwrap_or_default()))
}

fn scope_of(path: &str, door: &str) -> Option<Scope> {
    match path.strip_prefix(door)? {
        "" | "/" => Some(Scope::All),
        rest => {
            let server = decoded(rest.strip_prefix('/')?.trim_end_matches('/'))?;
            (!server.is_empty() && !server.contains('/')).then(|| Scope::One(server.into()))
        }
    }
}

/// Where clients look for an authorization server once they are refused: each reads JSON there, also when nothing is.
fn is_of_oauth(path: &str) -> bool {
    const DOCUMENTS: [&str; 3] = ["oauth-protected-resource", "oauth-authorization-server", "openid-configuration"];
    let document = path.split_once("/.well-known/").map(|(_, document)| document);
    let is_document = document.is_some_and(|document| {
        DOCUMENTS
            .iter()
            .any(|name| document.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
    });
    is_document || matches!(path, "/register" | "/authorize" | "/token")
}

fn no_oauth() -> Response<AnswerBody> {
    let body = serde_json::json!({
        "error": "not_found",
        "error_description": "this gateway has no OAuth authorization server: send a token that its user was given as \
                              `Authorization: Bearer TOKEN`",
    });
    let mut response = plain(StatusCode::NOT_FOUND, &body.to_string());
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

fn nothing_here() -> Response<AnswerBody> {
    plain(
        StatusCode::NOT_FOUND,
        "nothing is here; MCP is at /mcp and /mcp/{server}, for old clients at /sse and /sse/{server}",
    )
}

pub(crate) fn plain(status: StatusCode, text: &str) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Whole(Some(Bytes::from(format!("{text}\n")))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A refusal before any message was read.
pub(crate) fn refused(gateway: &Gateway, refusal: &Refusal) -> Response<AnswerBody> {
    observing::turn_away(gateway, observing::why(refusal));
    if let Refusal::Unauthorized(why) = refusal {
        gateway.say_refused_credential(why);
    }
    let shape = Shape { id: None, wants_answer: true, is_tool_call: false, era: Era::Legacy };
    let mut response = respond(answer::refuse(&shape, refusal));
    if matches!(refusal, Refusal::Unauthorized(_)) {
        response.headers_mut().insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if matches!(refusal, Refusal::TooManyGuesses) {
        response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from_static("60"));
    }
    response
}

pub(crate) fn respond(answer: Answer) -> Response<AnswerBody> {
    let mut response = match answer {
        Answer::Accepted => {
            let mut response = Response::new(AnswerBody::empty());
            *response.status_mut() = StatusCode::ACCEPTED;
            return response;
        }
        Answer::Message(reply) => return message(reply),
        Answer::Body(body) => {
            let mut response = Response::new(AnswerBody::Passing(body));
            response.headers_mut().insert(CONTENT_TYPE, JSON);
            return response;
        }
        Answer::Events { events, .. } => Response::new(AnswerBody::events(events)),
    };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, EVENT_STREAM);
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

fn message(reply: Reply) -> Response<AnswerBody> {
    let mut response = Response::new(AnswerBody::Whole(Some(reply.body)));
    *response.status_mut() = reply.status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    if let Some(Ok(session)) = reply.session.map(HeaderValue::try_from) {
        response.headers_mut().insert(headers::SESSION, session);
    }
    response
}

/// The revision a legacy request says it speaks.
pub(crate) fn legacy_version(headers: &HeaderMap) -> Result<Option<Version>, Refusal> {
    match headers::single(headers, &headers::VERSION) {
        headers::Single::Absent => Ok(None),
        headers::Single::One(text) => match Version::parse(text) {
            Some(version) => Ok(Some(version)),
            None if weak::is(Weakness::Ladder) => Ok(None),
            None => Err(Refusal::VersionHeader(text.to_owned())),
        },
        headers::Single::Unusable => Err(Refusal::VersionHeader("given twice".to_owned())),
    }
}
