//! Every way a message can come in, as one function: the door's own code is used, nothing is faked.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolwarden_conversations::Scope;
use toolwarden_conversations::greeting::{Hello, greet};
use toolwarden_conversations::sessions::{Agreed, ClientSession, Push, principal};
use toolwarden_conversations::stream_log::StreamLog;
use toolwarden_core::Caller;
use toolwarden_core::json::{Limits, Part};
use toolwarden_gateway::{Answer, Arrival, Course, Credential, Via, handle};
use toolwarden_mcp::message::read_one;
use toolwarden_mcp::{Id, Version, headers};
use toolwarden_policy::housekeeping;

use super::house::House;
use crate::{AnswerBody, serve_request, stdio};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entrance {
    /// `/mcp/notes` or `/mcp`.
    Http(Reach),
    /// `stdio --server notes` or `stdio`.
    Stdio(Reach),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    One,
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speech {
    Legacy,
    Modern,
}

pub(super) const ENTRANCES: [Entrance; 4] =
    [Entrance::Http(Reach::One), Entrance::Http(Reach::All), Entrance::Stdio(Reach::One), Entrance::Stdio(Reach::All)];
pub(super) const SPEECHES: [Speech; 2] = [Speech::Legacy, Speech::Modern];

impl Entrance {
    pub(super) fn reach(self) -> Reach {
        match self {
            Self::Http(reach) | Self::Stdio(reach) => reach,
        }
    }

    pub(super) fn scope(self) -> Scope {
        match self.reach() {
            Reach::One => Scope::One("notes".into()),
            Reach::All => Scope::All,
        }
    }

    /// A name as it is called behind this door.
    pub(super) fn name(self, tool: &str) -> String {
        match self.reach() {
            Reach::One => tool.to_owned(),
            Reach::All => format!("notes__{tool}"),
        }
    }

    pub(super) fn uri(self, uri: &str) -> String {
        match self.reach() {
            Reach::One => uri.to_owned(),
            Reach::All => format!("toolwarden://notes/{uri}"),
        }
    }
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
pub(super) const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// The same from a client that knows tasks.
pub(super) const TASKS_META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// A request of one era. `params` are the members between the braces. Modern requests about tasks declare the
/// extension.
pub(super) fn request(speech: Speech, method: &str, params: &str) -> String {
    let meta = if method.starts_with("tasks/") { TASKS_META } else { META };
    let params = match (speech, params) {
        (Speech::Legacy, params) => params.to_owned(),
        (Speech::Modern, "") => meta.to_owned(),
        (Speech::Modern, params) => format!("{params},{meta}"),
    };
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{{{params}}}}}"#)
}

/// Sends one request as the local person through the real door and gives the answer's text.
pub(super) async fn send(house: &House, entrance: Entrance, speech: Speech, method: &str, params: &str) -> String {
    let text = request(speech, method, params);
    match entrance {
        Entrance::Http(_) => over_http(house, entrance, speech, &text).await,
        Entrance::Stdio(_) => over_stdio(house, entrance, speech, &text).await,
    }
}

fn post(entrance: Entrance, text: &str, more: &[(HeaderName, HeaderValue)]) -> Request<Full<Bytes>> {
    let path = if entrance.reach() == Reach::One { "/mcp/notes" } else { "/mcp" };
    let mut request = Request::new(Full::from(text.to_owned()));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = http::Uri::from_static(path);
    let fixed = [
        (http::header::HOST, "localhost"),
        (http::header::CONTENT_TYPE, "application/json"),
        (http::header::ACCEPT, "application/json, text/event-stream"),
    ];
    for (name, value) in fixed {
        request.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in more {
        request.headers_mut().insert(name, value.clone());
    }
    request
}

/// A legacy session at `/mcp/notes`.
pub(super) async fn open_session(house: &House) -> HeaderValue {
    let opened = serve_request(&house.gateway, post(Entrance::Http(Reach::One), HELLO, &[])).await;
    let session = opened.headers().get(headers::SESSION).cloned();
    assert!(session.is_some());
    session.unwrap_or(HeaderValue::from_static(""))
}

/// A message of no session.
pub(super) async fn post_plain(house: &House, text: &str) -> http::Response<AnswerBody> {
    serve_request(&house.gateway, post(Entrance::Http(Reach::One), text, &[])).await
}

/// Sends a modern message to `/mcp/notes` and leaves the body of the answer unread.
pub(super) async fn post_modern(house: &House, text: &str) -> http::Response<AnswerBody> {
    serve_request(&house.gateway, post(Entrance::Http(Reach::One), text, &mirrors(text))).await
}

/// A message of that session.
pub(super) async fn post_in_session(house: &House, session: &HeaderValue, text: &str) -> http::Response<AnswerBody> {
    let more = [(headers::SESSION, session.clone())];
    serve_request(&house.gateway, post(Entrance::Http(Reach::One), text, &more)).await
}

/// The standing stream of that session.
pub(super) async fn get_in_session(house: &House, session: &HeaderValue) -> http::Response<AnswerBody> {
    get(house, &[(headers::SESSION, session.clone())]).await
}

/// What of a stream of that session came after an event.
pub(super) async fn resume(house: &House, session: &HeaderValue, event: &str) -> http::Response<AnswerBody> {
    let event = HeaderValue::try_from(event).unwrap_or(HeaderValue::from_static("?"));
    get(house, &[(headers::SESSION, session.clone()), (headers::LAST_EVENT, event)]).await
}

async fn get(house: &House, more: &[(HeaderName, HeaderValue)]) -> http::Response<AnswerBody> {
    let mut request = post(Entrance::Http(Reach::One), "", more);
    *request.method_mut() = http::Method::GET;
    serve_request(&house.gateway, request).await
}

/// What a legacy client hears when it opens a conversation.
pub(super) async fn greeting(house: &House, entrance: Entrance) -> String {
    match entrance {
        Entrance::Http(_) => {
            let opened = serve_request(&house.gateway, post(entrance, HELLO, &[])).await;
            let body = opened.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            String::from_utf8_lossy(&body).into_owned()
        }
        // As what it says first; what follows is of no interest.
        Entrance::Stdio(_) => over_stdio(house, entrance, Speech::Modern, HELLO).await,
    }
}

/// Sends a text to `/mcp/notes` with further headers.
pub(super) async fn send_with(
    house: &House,
    speech: Speech,
    text: &str,
    further: &[(HeaderName, HeaderValue)],
) -> String {
    over_http_with(house, Entrance::Http(Reach::One), speech, text, further).await
}

pub(super) async fn over_http(house: &House, entrance: Entrance, speech: Speech, text: &str) -> String {
    over_http_with(house, entrance, speech, text, &[]).await
}

async fn over_http_with(
    house: &House,
    entrance: Entrance,
    speech: Speech,
    text: &str,
    further: &[(HeaderName, HeaderValue)],
) -> String {
    let mut more = Vec::new();
    if speech == Speech::Legacy {
        let opened = serve_request(&house.gateway, post(entrance, HELLO, &[])).await;
        more.extend(opened.headers().get(headers::SESSION).map(|id| (headers::SESSION, id.clone())));
    } else {
        more = mirrors(text);
    }
    more.extend_from_slice(further);
    let response = serve_request(&house.gateway, post(entrance, text, &more)).await;
    let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    String::from_utf8_lossy(&body).into_owned()
}

/// The headers that mirror a modern body.
pub(super) fn mirrors(text: &str) -> Vec<(HeaderName, HeaderValue)> {
    let message: serde_json::Value = serde_json::from_str(text).unwrap_or_default();
    let text =
        |pointer: &str| message.pointer(pointer).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
    let names = ["/params/name", "/params/uri", "/params/taskId"].map(&text);
    let name = names.into_iter().find(|name| !name.is_empty()).unwrap_or_default();
    vec![
        (headers::VERSION, HeaderValue::from_static("2026-07-28")),
        (headers::METHOD, HeaderValue::try_from(text("/method")).unwrap_or(HeaderValue::from_static("?"))),
        (headers::NAME, headers::encode(&name)),
    ]
}

async fn over_stdio(house: &House, entrance: Entrance, speech: Speech, text: &str) -> String {
    let (client, server) = tokio::io::duplex(1024 * 1024);
    let (input, output) = tokio::io::split(server);
    let gateway = house.gateway.clone();
    let serving = tokio::spawn(async move {
        let client = stdio::Client { scope: entrance.scope(), credential: &Credential::Local, mode: None };
        stdio::serve(&gateway, client, (input, output), std::future::pending(), stdio::nothing_to_catch_up).await
    });
    let (read, mut write) = tokio::io::split(client);
    let mut lines = BufReader::new(read).lines();
    if speech == Speech::Legacy {
        assert!(write.write_all(format!("{HELLO}\n").as_bytes()).await.is_ok());
        let _ = lines.next_line().await;
    }
    assert!(write.write_all(format!("{text}\n").as_bytes()).await.is_ok());
    let answer = lines.next_line().await.ok().flatten().unwrap_or_default();
    drop(write);
    drop(lines);
    serving.abort();
    answer
}

/// The whole answer to a modern request at `/mcp/notes`, streamed or not.
pub(super) async fn answer_whole(house: &House, text: &str) -> String {
    let whole = over_http(house, Entrance::Http(Reach::One), Speech::Modern, text);
    tokio::time::timeout(std::time::Duration::from_secs(10), whole).await.unwrap_or_default()
}

/// Opens the session's conversation with the server, as `initialize` does, for whoever may reach it.
pub(super) async fn greet_server(house: &House, session: &Arc<ClientSession>) {
    let server: Arc<str> = match &session.scope {
        Scope::One(server) => server.clone(),
        Scope::All => "notes".into(),
    };
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}"#;
    let params = Part::composed(params.to_owned()).ok();
    let Ok(hello) = housekeeping(server.clone(), "initialize", params) else { unreachable!("no greeting") };
    let who = principal(&session.caller());
    let hello = Hello { outbound: &hello, id: &Id::number(0), capabilities: "{}", principal: &who };
    // A server that was removed greets nobody: its calls are refused without a conversation.
    if let Some(upstream) = house.gateway.upstream(&server)
        && house.gateway.may_reach(&session.caller(), &server)
        && let Ok((link, _)) = greet(&upstream, hello).await
    {
        session.keep_link(&upstream, link);
    }
}

/// Walks the corridor as any caller: credentials come in a later form, their callers are judged now.
pub(super) async fn walk(house: &House, caller: Caller, scope: Scope, speech: Speech, text: &str) -> String {
    let Ok(message) = read_one(text.as_bytes(), Limits::DEFAULT) else { return "no message".to_owned() };
    let caller = Arc::new(caller);
    let push = Push::Log(Arc::new(StreamLog::new(0)));
    let session = Arc::new(ClientSession::new("test".to_owned(), caller.clone(), scope.clone(), push));
    if speech == Speech::Legacy {
        session.agree(Agreed { version: Version::LATEST_LEGACY, capabilities: None, client: None });
        greet_server(house, &session).await;
    }
    let mut mirrored = HeaderMap::new();
    mirrored.extend(mirrors(text));
    let arrival = Arrival {
        via: Via::Http,
        scope,
        caller,
        message,
        size: text.len(),
        headers: Arc::new(mirrored),
        session: (speech == Speech::Legacy).then_some(session),
        version: if speech == Speech::Legacy { Version::LATEST_LEGACY } else { Version::LATEST_MODERN },
        course: Course::default(),
        room: None,
    };
    match handle(&house.gateway, arrival).await {
        Answer::Message(reply) => String::from_utf8_lossy(&reply.body).into_owned(),
        other => format!("{other:?}"),
    }
}
