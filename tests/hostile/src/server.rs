//! The hostile server over HTTP: it answers as an attack tells it to, and remembers all that arrived.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::Fault;

/// What a gateway sends on its own account, or to list and open: no calls.
pub const NO_CALLS: [&str; 10] = [
    "initialize",
    "notifications/initialized",
    "server/discover",
    "ping",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "GET",
    "DELETE",
];

/// One message that arrived.
#[derive(Debug, Clone)]
pub struct Heard {
    /// The method of the message; the verb of a request without one.
    pub method: String,
    /// The id as it was written.
    pub id: String,
    pub headers: HeaderMap,
    pub text: String,
    pub message: Value,
}

impl Heard {
    /// What a call names.
    #[must_use]
    pub fn name(&self) -> &str {
        self.member("name")
    }

    #[must_use]
    pub fn member(&self, key: &str) -> &str {
        self.message.get("params").and_then(|params| params.get(key)?.as_str()).unwrap_or_default()
    }

    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    #[must_use]
    pub fn is_call(&self) -> bool {
        self.method == "tools/call"
    }
}

static SESSIONS: AtomicU64 = AtomicU64::new(1);

type Pieces = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// What the server says.
pub struct Said {
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Pieces,
    /// It is said when this is notified.
    after: Option<Arc<Notify>>,
}

impl std::fmt::Debug for Said {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Said({})", self.status)
    }
}

impl Said {
    /// Bytes as they come, of a kind.
    pub fn pieces(kind: &'static str, body: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        let kind = (http::header::CONTENT_TYPE, HeaderValue::from_static(kind));
        Self { status: StatusCode::OK, headers: vec![kind], body: Box::pin(body), after: None }
    }

    /// One text as it stands.
    #[must_use]
    pub fn json(text: &str) -> Self {
        let text = Bytes::from(text.to_owned());
        Self::pieces("application/json", stream::once(async move { text }))
    }

    /// A result under the id of the request.
    #[must_use]
    pub fn result(heard: &Heard, result: &str) -> Self {
        Self::json(&format!(r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#, heard.id))
    }

    /// A result with one text.
    #[must_use]
    pub fn text(heard: &Heard, text: &str) -> Self {
        Self::result(
            heard,
            &json!({ "content": [{ "type": "text", "text": text }], "resultType": "complete" }).to_string(),
        )
    }

    /// Messages as events.
    #[must_use]
    pub fn events(messages: &[String]) -> Self {
        let events: Vec<Bytes> = messages.iter().map(|message| Bytes::from(format!("data: {message}\n\n"))).collect();
        Self::pieces("text/event-stream", stream::iter(events))
    }

    #[must_use]
    pub fn accepted() -> Self {
        let mut said = Self::pieces("text/plain", stream::empty());
        said.status = StatusCode::ACCEPTED;
        said
    }

    #[must_use]
    pub fn status(mut self, status: u16) -> Self {
        self.status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        self
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        let value = HeaderValue::from_str(value).unwrap_or(HeaderValue::from_static(""));
        self.headers.push((HeaderName::from_static(name), value));
        self
    }

    #[must_use]
    pub fn after(mut self, moment: Arc<Notify>) -> Self {
        self.after = Some(moment);
        self
    }
}

type Act = dyn Fn(&Heard) -> Said + Send + Sync;

/// A running server.
#[derive(Debug, Clone)]
pub struct Server {
    pub url: String,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Server {
    /// Starts a server that answers as told.
    ///
    /// # Errors
    /// No port is free.
    pub async fn start(act: impl Fn(&Heard) -> Said + Send + Sync + 'static) -> Result<Self, Fault> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let server = Self { url: format!("http://{}/mcp", listener.local_addr()?), heard: Arc::default() };
        let (heard, act): (_, Arc<Act>) = (server.heard.clone(), Arc::new(act));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (heard, act) = (heard.clone(), act.clone());
                let service = service_fn(move |request| {
                    let (heard, act) = (heard.clone(), act.clone());
                    async move { Ok::<_, Infallible>(respond(&heard, &*act, request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(server)
    }

    /// One that does as servers should, with the tools `safe` and `danger`.
    ///
    /// # Errors
    /// As `start`.
    pub async fn honest() -> Result<Self, Fault> {
        Self::start(honest).await
    }

    /// One that answers calls as told, and all else as servers should.
    ///
    /// # Errors
    /// As `start`.
    pub async fn calls_answered(act: impl Fn(&Heard) -> Said + Send + Sync + 'static) -> Result<Self, Fault> {
        Self::start(move |heard| if heard.is_call() { act(heard) } else { honest(heard) }).await
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Heard>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that arrived.
    #[must_use]
    pub fn heard(&self) -> Vec<Heard> {
        self.lock().clone()
    }

    /// Everything that arrived and is neither a list nor an opening.
    #[must_use]
    pub fn calls(&self) -> Vec<Heard> {
        let is_call = |heard: &&Heard| !NO_CALLS.contains(&heard.method.as_str());
        self.lock().iter().filter(is_call).cloned().collect()
    }

    /// Whether any call arrived whose text holds this.
    #[must_use]
    pub fn saw(&self, text: &str) -> bool {
        self.calls().iter().any(|call| call.text.contains(text))
    }

    /// Waits until something arrived that holds this.
    pub async fn sees(&self, text: &str) -> bool {
        crate::house::eventually(|| self.lock().iter().any(|heard| heard.text.contains(text))).await
    }

    /// Its table in a config.
    #[must_use]
    pub fn table(&self, name: &str) -> String {
        format!("[servers.{name}]\nurl = \"{}\"\n", self.url)
    }
}

async fn respond(
    kept: &Mutex<Vec<Heard>>,
    act: &Act,
    request: Request<Incoming>,
) -> Response<StreamBody<Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, Infallible>> + Send>>>> {
    let (head, body) = request.into_parts();
    let whole = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&whole).into_owned();
    let message: Value = serde_json::from_str(&text).unwrap_or_default();
    let method = message.get("method").and_then(Value::as_str).unwrap_or(head.method.as_str()).to_owned();
    let id = message.get("id").map(Value::to_string).unwrap_or_default();
    let heard = Heard { method, id, headers: head.headers, text, message };
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(heard.clone());
    let said = act(&heard);
    if let Some(moment) = &said.after {
        moment.notified().await;
    }
    let frames: Pin<Box<dyn Stream<Item = _> + Send>> = Box::pin(said.body.map(|piece| Ok(Frame::data(piece))));
    let mut response = Response::new(StreamBody::new(frames));
    *response.status_mut() = said.status;
    response.headers_mut().extend(said.headers);
    response
}

/// An entry of a list of tools.
#[must_use]
pub fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "A tool.", "inputSchema": { "type": "object" } })
}

/// What a well-behaved server answers.
#[must_use]
pub fn honest(heard: &Heard) -> Said {
    with_tools(heard, &[tool("safe"), tool("danger")])
}

/// The same with other tools.
#[must_use]
pub fn with_tools(heard: &Heard, tools: &[Value]) -> Said {
    let offers =
        json!({ "tools": {}, "prompts": {}, "resources": { "subscribe": true }, "completions": {}, "logging": {} });
    let result = match heard.method.as_str() {
        "GET" | "DELETE" => return Said::accepted().status(405),
        _ if heard.id.is_empty() => return Said::accepted(),
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": offers,
            "serverInfo": { "name": "hostile", "version": "1" } }),
        "server/discover" => json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": offers, "ttlMs": 1000, "cacheScope": "public" }),
        "tools/list" => json!({ "tools": tools, "resultType": "complete", "ttlMs": 1000, "cacheScope": "public" }),
        "prompts/list" => json!({ "prompts": [{ "name": "hello" }], "resultType": "complete" }),
        "resources/list" => json!({ "resources": [{ "uri": "note://a", "name": "a" }], "resultType": "complete" }),
        "resources/templates/list" => json!({ "resourceTemplates": [], "resultType": "complete" }),
        "resources/read" => json!({ "contents": [{ "uri": "note://a", "text": "read" }], "resultType": "complete" }),
        _ => json!({ "content": [{ "type": "text", "text": "done" }], "resultType": "complete" }),
    };
    let said = Said::result(heard, &result.to_string());
    if heard.method != "initialize" {
        return said;
    }
    // A session for each opening, as servers give.
    said.with("mcp-session-id", &format!("own-{}", SESSIONS.fetch_add(1, Ordering::Relaxed)))
}

/// Answers calls one after the other: the last answer stays.
pub fn in_turn(answers: Vec<String>) -> impl Fn(&Heard) -> Said + Send + Sync + 'static {
    let left = Mutex::new(VecDeque::from(answers));
    move |heard| {
        let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
        let next = if left.len() > 1 { left.pop_front() } else { left.front().cloned() };
        Said::result(heard, &next.unwrap_or_default())
    }
}
