//! A server that speaks both eras over HTTP, or one of them, does nothing, and remembers every message it received.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What a gateway may send on its own account, or to list and open: no call.
const NO_CALLS: [&str; 9] = [
    "initialize",
    "notifications/initialized",
    "server/discover",
    "ping",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "GET or DELETE",
];

/// Which eras it speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    Both,
    Legacy,
    Modern,
}

pub(super) const ALL_KINDS: [Speaks; 3] = [Speaks::Both, Speaks::Legacy, Speaks::Modern];

/// One received message: its method and its whole text.
pub(super) type Received = (String, String);

#[derive(Debug, Clone)]
pub(super) struct Recorder {
    pub(super) url: String,
    speaks: Speaks,
    received: Arc<Mutex<Vec<Received>>>,
    /// The headers of every `tools/call`.
    call_headers: Arc<Mutex<Vec<http::HeaderMap>>>,
    /// What `tools/call` answers with; none = a short text.
    answer: Arc<Mutex<Option<String>>>,
    /// The error it answers every call with, and the status it comes with.
    error: Arc<Mutex<Option<(StatusCode, String)>>>,
    /// Lists it gives page by page, by method; the cursor is the number of the page.
    pages: Arc<Mutex<HashMap<String, Vec<Value>>>>,
    /// The error it answers a list with, and which.
    no_list: Arc<Mutex<Option<(&'static str, &'static str)>>>,
    /// How long it takes for a page of a list.
    slow: Arc<Mutex<Duration>>,
    /// It is there, and answers nothing.
    down: Arc<AtomicBool>,
    /// It takes calls and never answers them.
    silent: Arc<AtomicBool>,
    /// It does not know the sessions of calls any more.
    forgets: Arc<AtomicBool>,
    /// It was started anew: it knows no session before the next is opened.
    anew: Arc<AtomicBool>,
}

/// The tools it lists.
pub(super) fn tools() -> Value {
    let object = json!({ "type": "object" });
    json!([
        { "name": "write", "inputSchema": object },
        { "name": "other", "inputSchema": object },
        { "name": "db.write", "inputSchema": object },
        { "name": "api.call", "inputSchema": object },
        { "name": "odd/name", "inputSchema": object },
        { "name": "odd*name", "inputSchema": object },
        { "name": "strict", "inputSchema": { "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } } },
    ])
}

impl Recorder {
    pub(super) async fn start(speaks: Speaks) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let recorder = Self::absent(url, speaks);
        let serving = recorder.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let recorder = serving.clone();
                let service = service_fn(move |request| {
                    let recorder = recorder.clone();
                    async move { Ok::<_, Infallible>(recorder.respond(request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(recorder)
    }

    /// Stands for a server that a test has itself.
    pub(super) fn absent(url: String, speaks: Speaks) -> Self {
        Self {
            url,
            speaks,
            received: Arc::default(),
            call_headers: Arc::default(),
            answer: Arc::default(),
            error: Arc::default(),
            pages: Arc::default(),
            no_list: Arc::default(),
            slow: Arc::default(),
            down: Arc::default(),
            silent: Arc::default(),
            forgets: Arc::default(),
            anew: Arc::default(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Received>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every call that arrived; a gateway's own questions are none.
    pub(super) fn calls(&self) -> Vec<Received> {
        // For legacy sessions the gateway listens to a modern server on its own account.
        let listens = |method: &str| self.speaks == Speaks::Modern && method == "subscriptions/listen";
        let is_call = |method: &str| !NO_CALLS.contains(&method) && !listens(method);
        self.lock().iter().filter(|(method, _)| is_call(method)).cloned().collect()
    }

    /// Everything that arrived.
    pub(super) fn all(&self) -> Vec<Received> {
        self.lock().clone()
    }

    pub(super) fn call_headers(&self) -> Vec<http::HeaderMap> {
        self.call_headers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    /// A list in pages, each a result without its cursor.
    pub(super) fn lists(&self, method: &str, pages: Vec<Value>) {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner).insert(method.to_owned(), pages);
    }

    pub(super) fn lists_fail_with(&self, method: &'static str, error: &'static str) {
        *self.no_list.lock().unwrap_or_else(PoisonError::into_inner) = Some((method, error));
    }

    pub(super) fn lists_slowly(&self, each: Duration) {
        *self.slow.lock().unwrap_or_else(PoisonError::into_inner) = each;
    }

    pub(super) fn goes_down(&self, down: bool) {
        self.down.store(down, Ordering::Relaxed);
    }

    pub(super) fn goes_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::Relaxed);
    }

    pub(super) fn forgets_sessions(&self, forgets: bool) {
        self.forgets.store(forgets, Ordering::Relaxed);
    }

    pub(super) fn starts_anew(&self) {
        self.anew.store(true, Ordering::Relaxed);
    }

    fn page(&self, method: &str, message: &Value) -> Option<Value> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = pages.get(method)?;
        let cursor = message.pointer("/params/cursor").and_then(Value::as_str);
        let number: usize = cursor.map_or(Some(0), |cursor| cursor.parse().ok())?;
        let mut page = pages.get(number)?.clone();
        if number + 1 < pages.len() {
            page.as_object_mut()?.insert("nextCursor".to_owned(), (number + 1).to_string().into());
        }
        Some(page)
    }

    pub(super) fn answers(&self, result: &str) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(result.to_owned());
    }

    /// Fails every call from now on; none = answers them again.
    pub(super) fn fails_with(&self, error: Option<(StatusCode, &str)>) {
        let error = error.map(|(status, error)| (status, error.to_owned()));
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = error;
    }

    /// What a server of one era says to a request of the other.
    fn refusal(&self, message: &Value) -> Option<Response<Full<Bytes>>> {
        let claims = message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some();
        let error = match self.speaks {
            Speaks::Legacy if claims => json!({ "code": -32000, "message": "Bad Request: Server not initialized" }),
            Speaks::Modern if !claims && message.get("id").is_some() => {
                json!({ "code": -32602, "message": "_meta is missing" })
            }
            _ => return None,
        };
        let body = json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string();
        let mut response = Response::new(Full::from(body));
        *response.status_mut() = StatusCode::BAD_REQUEST;
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        Some(response)
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let headers = request.headers().clone();
        let whole = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let text = String::from_utf8_lossy(&whole).into_owned();
        let message: Value = serde_json::from_str(&text).unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str).unwrap_or("GET or DELETE").to_owned();
        if method == "tools/call" {
            self.call_headers.lock().unwrap_or_else(PoisonError::into_inner).push(headers);
        }
        self.lock().push((method.clone(), text.clone()));
        if self.down.load(Ordering::Relaxed) {
            let mut broken = Response::new(Full::default());
            *broken.status_mut() = StatusCode::BAD_GATEWAY;
            return broken;
        }
        if method == "tools/call" && self.silent.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        let slow = *self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        if method.ends_with("/list") {
            tokio::time::sleep(slow).await;
        }
        if method == "initialize" {
            self.anew.store(false, Ordering::Relaxed);
        }
        let forgets_calls = method == "tools/call" && self.forgets.load(Ordering::Relaxed);
        if forgets_calls || self.anew.load(Ordering::Relaxed) {
            let mut unknown = Response::new(Full::default());
            *unknown.status_mut() = StatusCode::NOT_FOUND;
            return unknown;
        }
        if let Some(refusal) = self.refusal(&message) {
            return refusal;
        }
        if message.get("id").is_none() {
            let mut accepted = Response::new(Full::default());
            *accepted.status_mut() = StatusCode::ACCEPTED;
            return accepted;
        }
        // The id as it was written: a parser would change large numbers.
        let id = raw_id(&text);
        let result = match (method.as_str(), self.answer.lock().unwrap_or_else(PoisonError::into_inner).as_ref()) {
            ("tools/call", Some(answer)) => answer.clone(),
            _ => self.page(&method, &message).unwrap_or_else(|| result(&method)).to_string(),
        };
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let error = error.filter(|_| !NO_CALLS.contains(&method.as_str()));
        let no_list = *self.no_list.lock().unwrap_or_else(PoisonError::into_inner);
        let no_list = no_list.filter(|(list, _)| *list == method);
        let error = no_list.map(|(_, error)| (StatusCode::OK, error.to_owned())).or(error);
        let (status, said) = match error {
            Some((status, error)) => (status, format!("\"error\":{error}")),
            None => (StatusCode::OK, format!("\"result\":{result}")),
        };
        let mut response = Response::new(Full::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{said}}}")));
        *response.status_mut() = status;
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        response.headers_mut().insert("mcp-session-id", http::HeaderValue::from_static("recorder"));
        response
    }
}

fn raw_id(text: &str) -> String {
    let limits = toolwarden_core::json::Limits::DEFAULT;
    let parsed = toolwarden_core::json::Document::parse(text, limits);
    parsed.ok().and_then(|parsed| Some(parsed.root().get("id")?.raw().to_owned())).unwrap_or_default()
}

fn result(method: &str) -> Value {
    let offers =
        json!({ "tools": {}, "prompts": {}, "resources": { "subscribe": true }, "completions": {}, "logging": {} });
    match method {
        "initialize" => json!({ "protocolVersion": "2025-11-25", "capabilities": offers,
            "serverInfo": { "name": "recorder", "version": "1" }, "instructions": "Records." }),
        "server/discover" => json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": offers, "ttlMs": 1000, "cacheScope": "public" }),
        "tools/list" => json!({ "tools": tools(), "resultType": "complete", "ttlMs": 1000, "cacheScope": "public" }),
        "prompts/list" => json!({ "prompts": [{ "name": "hello" }], "resultType": "complete" }),
        "resources/list" => json!({ "resources": [{ "uri": "note://a", "name": "a" }], "resultType": "complete" }),
        "resources/templates/list" => json!({ "resourceTemplates": [], "resultType": "complete" }),
        "tasks/list" => json!({ "tasks": [{ "taskId": "t1" }, { "taskId": "t2" }], "nextCursor": "c" }),
        "resources/read" => json!({ "contents": [{ "uri": "note://a", "text": "a" }], "resultType": "complete" }),
        _ => json!({ "content": [{ "type": "text", "text": "done" }], "resultType": "complete" }),
    }
}
