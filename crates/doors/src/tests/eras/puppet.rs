//! A server that does what each call tells it, in one era and over one transport.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// How the puppet is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tests) enum Wire {
    Modern,
    Legacy,
    /// The legacy era over the oldest HTTP transport: one line for everybody.
    Oldest,
}

type Sent = mpsc::UnboundedSender<String>;

#[derive(Debug, Clone)]
pub(in crate::tests) struct Puppet {
    pub(in crate::tests) url: String,
    wire: Arc<Mutex<Wire>>,
    /// Questions that wait for an answer, by session and id.
    waiting: Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>,
    /// Open streams, by session.
    streams: Arc<Mutex<HashMap<String, Sent>>>,
    complaints: Arc<Mutex<Vec<String>>>,
    /// Notifications that arrived, whole.
    notices: Arc<Mutex<Vec<Value>>>,
    /// Calls it does not answer, and how many of them lost their stream.
    hanging: Arc<AtomicUsize>,
    hung_up: Arc<AtomicUsize>,
    /// Questions it has asked, and those that were answered.
    asked: Arc<AtomicUsize>,
    answered: Arc<AtomicUsize>,
    /// Calls that arrived.
    calls: Arc<AtomicUsize>,
    /// It takes its time to say which era it speaks.
    slow: Arc<AtomicBool>,
    /// Requests that arrived while it did.
    met_slow: Arc<AtomicUsize>,
    /// The call whose stream it broke off.
    late: Arc<Mutex<Option<Value>>>,
    /// Whoever wants to listen has to wait.
    holds_back: Arc<AtomicBool>,
    /// Its tool is another than before.
    changed: Arc<AtomicBool>,
    /// It becomes another while it lists it, and the answer says so.
    changes_while_listing: Arc<AtomicBool>,
}

/// A call that is not answered until its connection closes.
struct Hanging(Arc<AtomicUsize>);

impl Drop for Hanging {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

fn whole(status: StatusCode, body: String) -> Answer {
    let mut response = Response::new(http_body_util::Full::from(body).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    response.headers_mut().insert("mcp-session-id", http::HeaderValue::from_static("puppet"));
    response
}

fn events(receiver: mpsc::UnboundedReceiver<String>) -> Answer {
    let frames = futures_util::stream::unfold(receiver, |mut receiver| async move {
        let text = receiver.recv().await?;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(text))), receiver))
    });
    let mut response = Response::new(StreamBody::new(StreamExt::boxed(frames)).boxed_unsync());
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
    response
}

fn list_changed() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
}

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

impl Puppet {
    pub(in crate::tests) async fn start(wire: Wire) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let path = if wire == Wire::Oldest { "sse" } else { "mcp" };
        let url = format!("http://{}/{path}", listener.local_addr()?);
        let puppet = Self {
            url,
            wire: Arc::new(Mutex::new(wire)),
            waiting: Arc::default(),
            streams: Arc::default(),
            complaints: Arc::default(),
            notices: Arc::default(),
            hanging: Arc::default(),
            hung_up: Arc::default(),
            asked: Arc::default(),
            answered: Arc::default(),
            calls: Arc::default(),
            slow: Arc::default(),
            met_slow: Arc::default(),
            late: Arc::default(),
            holds_back: Arc::default(),
            changed: Arc::default(),
            changes_while_listing: Arc::default(),
        };
        let serving = puppet.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                let puppet = serving.clone();
                let service = service_fn(move |request| {
                    let puppet = puppet.clone();
                    async move { Ok::<_, Infallible>(puppet.respond(request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(puppet)
    }

    pub(in crate::tests) fn complaints(&self) -> Vec<String> {
        lock(&self.complaints).clone()
    }

    /// The cancellations that arrived.
    pub(in crate::tests) fn cancelled(&self) -> usize {
        let is_cancel = |notice: &&Value| notice.get("method") == Some(&json!("notifications/cancelled"));
        lock(&self.notices).iter().filter(is_cancel).count()
    }

    pub(in crate::tests) fn questions_answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }

    pub(in crate::tests) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    pub(in crate::tests) fn takes_its_time(&self, slow: bool) {
        self.slow.store(slow, Ordering::Relaxed);
    }

    /// Requests that arrived while it took its time.
    pub(in crate::tests) fn met_slow(&self) -> usize {
        self.met_slow.load(Ordering::Relaxed)
    }

    /// Answers the call whose stream it broke off, on every stream that is open.
    pub(in crate::tests) fn answer_late(&self, result: &Value) {
        let id = lock(&self.late).take();
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        for stream in lock(&self.streams).values() {
            let _ = stream.send(event("message", &answer));
        }
    }

    /// Calls that were not answered so far.
    pub(in crate::tests) fn hanging(&self) -> usize {
        self.hanging.load(Ordering::Relaxed)
    }

    /// Those of them whose client is gone.
    pub(in crate::tests) fn hung_up(&self) -> usize {
        self.hung_up.load(Ordering::Relaxed)
    }

    fn hang(&self) -> Hanging {
        self.hanging.fetch_add(1, Ordering::Relaxed);
        Hanging(self.hung_up.clone())
    }

    /// Half of an answer that is too large to be gathered, and nothing more.
    fn half(&self, id: &Value) -> Answer {
        let (sender, receiver) = mpsc::unbounded_channel();
        let text = "x".repeat(200 * 1024);
        let _ = sender.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"x\":\"{text}"));
        let hanging = self.hang();
        tokio::spawn(async move {
            sender.closed().await;
            drop(hanging);
        });
        let mut response = events(receiver);
        response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
        response
    }

    fn wire(&self) -> Wire {
        *lock(&self.wire)
    }

    /// Another server takes its place, at the same address.
    pub(in crate::tests) fn becomes(&self, wire: Wire) {
        *lock(&self.wire) = wire;
        lock(&self.streams).clear();
    }

    /// How many lines of the oldest transport were opened so far.
    pub(in crate::tests) fn lines(&self) -> usize {
        lock(&self.streams).len()
    }

    async fn respond(&self, request: Request<Incoming>) -> Answer {
        self.met_slow.fetch_add(usize::from(self.slow.load(Ordering::Relaxed)), Ordering::Relaxed);
        let session = request.uri().query().unwrap_or("one").to_owned();
        if request.method() != Method::POST {
            let has_session = request.headers().contains_key("mcp-session-id");
            if self.wire() == Wire::Legacy && !has_session {
                return whole(StatusCode::BAD_REQUEST, String::new());
            }
            return self.stream(&session);
        }
        let text = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let message: Value = serde_json::from_slice(&text).unwrap_or_default();
        if message.get("method").is_none() {
            self.answered(&session, &message);
            return whole(StatusCode::ACCEPTED, String::new());
        }
        let Some(id) = message.get("id").cloned() else {
            lock(&self.notices).push(message);
            return whole(StatusCode::ACCEPTED, String::new());
        };
        if let Some(refusal) = self.refusal(&message, &id) {
            return refusal;
        }
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
        while matches!(method, "initialize" | "server/discover") && self.slow.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        self.calls.fetch_add(usize::from(method == "tools/call"), Ordering::Relaxed);
        let does = |step: &str| {
            let steps = message.pointer("/params/arguments/steps").and_then(Value::as_array);
            steps.is_some_and(|steps| steps.contains(&json!(step)))
        };
        if does("HangAtOnce") && self.wire() != Wire::Oldest {
            let _hanging = self.hang();
            std::future::pending::<()>().await;
        }
        if does("HalfALargeAnswer") {
            return self.half(&id);
        }
        if does("BreakALargeAnswer") {
            let (sender, receiver) = mpsc::unbounded_channel();
            let _ = sender.send(format!("{{\"id\":{id},\"result\":{{\"x\":\"{}\"", "x".repeat(200 * 1024)));
            let mut response = events(receiver);
            response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
            return response;
        }
        if message.pointer("/params/arguments/steps/0").and_then(Value::as_str) == Some("Refuse") {
            return whole(StatusCode::PAYLOAD_TOO_LARGE, String::new());
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        if self.wire() == Wire::Oldest {
            let stream = lock(&self.streams).get(&session).cloned();
            let Some(stream) = stream else { return whole(StatusCode::NOT_FOUND, String::new()) };
            tokio::spawn(self.clone().act(session, message, id, stream));
            return whole(StatusCode::ACCEPTED, String::new());
        }
        if message.get("method").and_then(Value::as_str) == Some("tools/call") {
            tokio::spawn(self.clone().act(session, message, id, sender));
            return events(receiver);
        }
        if message.get("method").and_then(Value::as_str) == Some("subscriptions/listen") {
            while self.holds_back.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            return self.listened(&message, &id, receiver, sender);
        }
        let result = self.plain(&message);
        if method == "tools/list" && self.changes_while_listing.swap(false, Ordering::Relaxed) {
            self.changed.store(true, Ordering::Relaxed);
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            let _ = sender.send(event("message", &list_changed().to_string()));
            let _ = sender.send(event("message", &answer.to_string()));
            return events(receiver);
        }
        whole(StatusCode::OK, json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
    }

    /// Tells everybody who listens that its tools have changed.
    pub(in crate::tests) fn announce(&self) {
        self.tell(&list_changed());
    }

    pub(in crate::tests) fn changes_while_listing(&self) {
        self.changes_while_listing.store(true, Ordering::Relaxed);
    }

    /// Says something to everybody who listens.
    pub(in crate::tests) fn tell(&self, message: &Value) {
        for stream in lock(&self.streams).values() {
            let _ = stream.send(event("message", &message.to_string()));
        }
    }

    /// Asks on every stream; gives the answer that comes first, or null. What was said before was heard by then.
    pub(in crate::tests) async fn asks(&self, method: &str, params: &Value) -> Value {
        let id = json!(format!("puppet-{}", self.asked.fetch_add(1, Ordering::Relaxed)));
        let mut answers = Vec::new();
        for session in lock(&self.streams).keys() {
            let (sender, answer) = oneshot::channel();
            lock(&self.waiting).insert(format!("{session} {id}"), sender);
            answers.push(answer);
        }
        self.tell(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let first = futures_util::future::select_all(answers);
        let first = tokio::time::timeout(Duration::from_secs(10), first).await;
        first.ok().and_then(|(answer, _, _)| answer.ok()).unwrap_or_default()
    }

    pub(in crate::tests) fn holds_back(&self, holds_back: bool) {
        self.holds_back.store(holds_back, Ordering::Relaxed);
    }

    /// Whether anybody listens.
    pub(in crate::tests) fn is_heard(&self) -> bool {
        lock(&self.streams).values().any(|stream| !stream.is_closed())
    }

    /// Ends every stream of news.
    pub(in crate::tests) fn hang_up(&self) {
        lock(&self.streams).clear();
    }

    /// Agrees to tell what is wanted.
    fn listened(&self, message: &Value, id: &Value, heard: mpsc::UnboundedReceiver<String>, tell: Sent) -> Answer {
        let agreed = json!({"notifications": message.pointer("/params/notifications"),
            "_meta": {"io.modelcontextprotocol/subscriptionId": id}});
        let first = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": agreed});
        let _ = tell.send(event("message", &first.to_string()));
        let mut streams = lock(&self.streams);
        let place = streams.len();
        streams.insert(format!("listener-{place}"), tell);
        events(heard)
    }

    /// The stream of the oldest transport, or the standing one of a legacy session.
    fn stream(&self, session: &str) -> Answer {
        if self.wire() == Wire::Modern {
            return whole(StatusCode::METHOD_NOT_ALLOWED, String::new());
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut streams = lock(&self.streams);
        let session = format!("{session}-{}", streams.len());
        if self.wire() == Wire::Oldest {
            let _ = sender.send(event("endpoint", &format!("/sse?{session}")));
        }
        streams.insert(session, sender);
        events(receiver)
    }

    fn refusal(&self, message: &Value, id: &Value) -> Option<Answer> {
        let claims = message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some();
        if claims == (self.wire() == Wire::Modern) {
            return None;
        }
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "another era"}});
        Some(whole(StatusCode::BAD_REQUEST, error.to_string()))
    }

    fn plain(&self, message: &Value) -> Value {
        let offers = json!({"tools": {"listChanged": true}});
        match message.get("method").and_then(Value::as_str).unwrap_or_default() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": offers,
                "serverInfo": {"name": "puppet", "version": "1"}}),
            "server/discover" => json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": offers, "ttlMs": 0, "cacheScope": "private"}),
            "tools/list" => json!({"tools": [self.tool()],
                "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}),
            _ => json!({"resultType": "complete"}),
        }
    }

    fn tool(&self) -> Value {
        let description = if self.changed.load(Ordering::Relaxed) { "Acts otherwise." } else { "Acts." };
        json!({"name": "act", "description": description, "inputSchema": {"type": "object"}})
    }

    fn answered(&self, session: &str, message: &Value) {
        let id = format!("{session} {}", message.get("id").map(Value::to_string).unwrap_or_default());
        if let Some(waiter) = lock(&self.waiting).remove(&id) {
            let _ = waiter.send(message.clone());
        }
    }

    /// Does what a call says, then answers it.
    async fn act(self, session: String, message: Value, id: Value, out: Sent) {
        let say = |value: &Value| drop(out.send(event("message", &value.to_string())));
        if message.get("method").and_then(Value::as_str) != Some("tools/call") {
            return say(&json!({"jsonrpc": "2.0", "id": id, "result": self.plain(&message)}));
        }
        let argument = |name: &str| message.pointer(&format!("/params/arguments/{name}"));
        let tag = argument("tag").and_then(Value::as_str).unwrap_or_default().to_owned();
        let steps: Vec<&str> =
            argument("steps").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
        let token = message.pointer("/params/_meta/progressToken").cloned();
        // In the modern era a call comes back with its state: the number of the step it stopped at.
        let state = message.pointer("/params/requestState").and_then(Value::as_str);
        let begin = match state.map(|state| state.split_once(' ')) {
            None => 0,
            Some(Some((number, of))) if of == tag => number.parse().unwrap_or(0),
            Some(_) => return self.complain(format!("{tag} came back with the state {state:?}")),
        };
        if begin > 0 {
            self.check(&tag, message.pointer("/params/inputResponses/form"));
        }
        for (place, step) in steps.iter().enumerate().skip(begin) {
            match *step {
                "Progress" => {
                    if let Some(token) = &token {
                        say(&json!({"jsonrpc": "2.0", "method": "notifications/progress",
                            "params": {"progressToken": token, "progress": place, "message": tag}}));
                    }
                }
                "Ask" if self.wire() == Wire::Modern => {
                    let form = json!({"method": "elicitation/create", "params": {"message": tag, "mode": "form",
                        "requestedSchema": {"type": "object", "properties": {"tag": {"type": "string"}}}}});
                    return say(&json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "input_required",
                        "inputRequests": {"form": form}, "requestState": format!("{} {tag}", place + 1)}}));
                }
                "Ask" => self.ask(&session, &tag, place, &say).await,
                "AskTwo" => {
                    let other = format!("{tag}b");
                    tokio::join!(self.ask(&session, &tag, place, &say), self.ask(&session, &other, place + 100, &say));
                }
                "AskAndReport" => {
                    let report = async {
                        if let Some(token) = &token {
                            say(&json!({"jsonrpc": "2.0", "method": "notifications/progress",
                                "params": {"progressToken": token, "progress": place, "message": tag}}));
                        }
                    };
                    tokio::join!(self.ask(&session, &tag, place, &say), report);
                }
                "Url" => {
                    let asks = json!([{"mode": "url", "elicitationId": "e", "message": "pay", "url": "https://pay.example.com/"}]);
                    return say(&json!({"jsonrpc": "2.0", "id": id,
                        "error": {"code": -32042, "message": "open this first", "data": {"elicitations": asks}}}));
                }
                "Hang" | "HangAtOnce" if self.wire() == Wire::Oldest => {
                    self.hanging.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                "Hang" => {
                    let _hanging = self.hang();
                    return out.closed().await;
                }
                "BreakOff" => {
                    let news = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                        "params": {"progressToken": token, "progress": place}});
                    drop(out.send(format!("id: e{place}\n{}", event("message", &news.to_string()))));
                    *lock(&self.late) = Some(id);
                    return;
                }
                "ChangeTools" => {
                    self.changed.store(true, Ordering::Relaxed);
                    say(&list_changed());
                }
                "Pause" => tokio::time::sleep(Duration::from_millis(5)).await,
                other => illegal(other, &id, &say, &out),
            }
        }
        let text = json!([{"type": "text", "text": format!("done {tag}")}]);
        say(&json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "content": text}}));
    }

    /// Asks, and goes on after a while where nobody answers.
    async fn ask(&self, session: &str, tag: &str, place: usize, say: &impl Fn(&Value)) {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let id = json!(format!("q{place}-{number}-{tag}"));
        let (sender, answer) = oneshot::channel();
        lock(&self.waiting).insert(format!("{session} {id}"), sender);
        say(&json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"message": tag,
            "requestedSchema": {"type": "object", "properties": {"tag": {"type": "string"}}}}}));
        if let Ok(Ok(answer)) = tokio::time::timeout(Duration::from_secs(10), answer).await {
            self.check(tag, answer.get("result"));
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An answer that says something must say it for this call.
    fn check(&self, tag: &str, answer: Option<&Value>) {
        let said = answer.and_then(|answer| answer.pointer("/content/tag")).and_then(Value::as_str);
        if said.is_some_and(|said| said != tag) {
            self.complain(format!("{tag} was answered {answer:?}"));
        }
    }

    fn complain(&self, what: String) {
        lock(&self.complaints).push(what);
    }
}

/// What nobody may hear.
fn illegal(step: &str, id: &Value, say: &impl Fn(&Value), out: &Sent) {
    let text = json!([{"type": "text", "text": "wrong"}]);
    match step {
        "AskTooMuch" => say(&json!({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage",
            "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "wrong"}}], "maxTokens": 1}})),
        "AnswerForeign" => {
            let other = id.as_u64().map_or(json!(900), |id| json!(id + 900));
            say(&json!({"jsonrpc": "2.0", "id": other, "result": {"resultType": "complete", "content": text}}));
        }
        "ProgressForeign" => say(&json!({"jsonrpc": "2.0", "method": "notifications/progress",
            "params": {"progressToken": 900, "progress": 1, "message": "wrong"}})),
        "Unlisted" => say(&json!({"jsonrpc": "2.0", "method": "puppet/news", "params": {"text": "wrong"}})),
        "Junk" => drop(out.send(event("message", "{\"wrong\":"))),
        _ => say(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})),
    }
}
