//! A server of the test's own behind the gateway: it records every call before it answers, and answers badly
//! on request. It lives in the test's process, so it outlives every gateway.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, mpsc};

use crate::caller::ECHO;

/// The tool that answers when `of` calls of it are there at once.
pub const MEET: &str = "meet";

/// Tools that answer badly.
pub mod bad {
    /// Reads the request and never answers.
    pub const SILENT: &str = "silent";
    /// Begins a large answer and never goes on.
    pub const STALLED: &str = "stalled";
    /// Says that it failed and never says how.
    pub const STALLED_ERROR: &str = "stalled_error";
    /// One JSON text of `bytes`.
    pub const LONG_JSON: &str = "long_json";
    /// A stream with one event of `bytes`.
    pub const LONG_EVENT: &str = "long_event";
    /// A stream of many events, `bytes` together.
    pub const LONG_STREAM: &str = "long_stream";
}

const TOOLS: [&str; 8] =
    [ECHO, MEET, bad::SILENT, bad::STALLED, bad::STALLED_ERROR, bad::LONG_JSON, bad::LONG_EVENT, bad::LONG_STREAM];
const PIECE: usize = 64 * 1024;

/// A running server.
pub struct Upstream {
    pub url: String,
    known: Arc<Known>,
}

#[derive(Default)]
struct Known {
    /// How often each call was seen, by its number.
    calls: Mutex<HashMap<String, u32>>,
    sessions: AtomicU64,
    /// Bytes of long answers that the gateway took.
    sent: Arc<AtomicU64>,
    /// Connections from now on are accepted and not read.
    deaf: AtomicBool,
    ignored: Mutex<Vec<TcpStream>>,
    listeners: Mutex<Vec<mpsc::Sender<Bytes>>>,
    meeting: Mutex<Option<Arc<Barrier>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Upstream {
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let known = Arc::new(Known::default());
        tokio::spawn(accept(listener, known.clone()));
        Ok(Self { url, known })
    }

    /// How often each call was seen, by its number.
    pub fn calls(&self) -> HashMap<String, u32> {
        lock(&self.known.calls).clone()
    }

    pub fn sessions(&self) -> u64 {
        self.known.sessions.load(Ordering::Relaxed)
    }

    /// Bytes of long answers that the gateway took so far.
    pub fn sent(&self) -> u64 {
        self.known.sent.load(Ordering::Relaxed)
    }

    /// Accepts connections from now on, and reads nothing from them.
    pub fn stop_reading(&self) {
        self.known.deaf.store(true, Ordering::Relaxed);
    }

    /// Connections that wait for somebody to read them.
    pub fn ignored(&self) -> usize {
        lock(&self.known.ignored).len()
    }

    /// Tells every open stream something; gives how many there are.
    pub async fn tell_all(&self) -> usize {
        let listeners: Vec<_> = lock(&self.known.listeners).clone();
        let mut told = 0;
        for listener in listeners {
            let news = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
            told += usize::from(listener.send(Bytes::from(format!("data: {news}\n\n"))).await.is_ok());
        }
        told
    }
}

async fn accept(listener: TcpListener, known: Arc<Known>) {
    while let Ok((stream, _)) = listener.accept().await {
        if known.deaf.load(Ordering::Relaxed) {
            lock(&known.ignored).push(stream);
            continue;
        }
        let _ = stream.set_nodelay(true);
        let known = known.clone();
        let service = service_fn(move |request| {
            let known = known.clone();
            async move { Ok::<_, Infallible>(respond(&known, request).await) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn respond(known: &Known, request: Request<Incoming>) -> Response<Answer> {
    if known.deaf.load(Ordering::Relaxed) {
        // On a connection from before: what was not read so far stays in it.
        return std::future::pending().await;
    }
    match *request.method() {
        Method::GET => {
            let (sender, receiver) = mpsc::channel(16);
            lock(&known.listeners).push(sender);
            return typed("text/event-stream", Answer::News(receiver));
        }
        Method::DELETE => return Response::new(Answer::Whole(None)),
        _ => {}
    }
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let Some(id) = message.get("id").cloned() else {
        let mut accepted = Response::new(Answer::Whole(None));
        *accepted.status_mut() = StatusCode::ACCEPTED;
        return accepted;
    };
    let result = match message.get("method").and_then(Value::as_str).unwrap_or_default() {
        "initialize" => {
            let info = json!({"name": "strain", "version": "1"});
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": info});
            let mut response = whole(&id, &result);
            let number = known.sessions.fetch_add(1, Ordering::Relaxed);
            response.headers_mut().insert("mcp-session-id", HeaderValue::from(number));
            return response;
        }
        "tools/list" => {
            let tools = TOOLS.map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
            json!({ "tools": tools })
        }
        _ => return call(known, &id, &message).await,
    };
    whole(&id, &result)
}

async fn call(known: &Known, id: &Value, message: &Value) -> Response<Answer> {
    let arguments = message.pointer("/params/arguments").cloned().unwrap_or_default();
    if let Some(number) = arguments.get("number").and_then(Value::as_str) {
        *lock(&known.calls).entry(number.to_owned()).or_default() += 1;
    }
    let bytes = arguments.get("bytes").and_then(Value::as_u64).unwrap_or_default();
    let long = |begin: String, piece: String, end: &str| Answer::Long {
        begin: Some(begin.into()),
        left: bytes,
        piece: piece.into(),
        end: Some(Bytes::copy_from_slice(end.as_bytes())),
        sent: known.sent.clone(),
    };
    let beginning = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    let piece = "x".repeat(PIECE);
    match message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default() {
        MEET => {
            let of = arguments.get("of").and_then(Value::as_u64).and_then(|of| usize::try_from(of).ok());
            let new = || Arc::new(Barrier::new(of.unwrap_or_default()));
            let meeting = lock(&known.meeting).get_or_insert_with(new).clone();
            meeting.wait().await;
            whole(id, &json!({"content": [{"type": "text", "text": "met"}]}))
        }
        bad::SILENT => std::future::pending().await,
        bad::STALLED => typed("application/json", Answer::Stalled(Some((beginning + &piece + &piece).into()))),
        bad::STALLED_ERROR => {
            let mut response = typed("application/json", Answer::Stalled(Some(Bytes::from_static(b"{"))));
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        }
        bad::LONG_JSON => typed("application/json", long(beginning, piece, "\"}]}}")),
        bad::LONG_EVENT => typed("text/event-stream", long(format!("data: {beginning}"), piece, "\"}]}}\n\n")),
        bad::LONG_STREAM => {
            let news = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": piece}});
            typed("text/event-stream", long(": begins\n\n".to_owned(), format!("data: {news}\n\n"), ""))
        }
        _ => whole(id, &json!({"content": [{"type": "text", "text": arguments.to_string()}]})),
    }
}

fn whole(id: &Value, result: &Value) -> Response<Answer> {
    let text = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
    typed("application/json", Answer::Whole(Some(text.into())))
}

fn typed(kind: &'static str, answer: Answer) -> Response<Answer> {
    let mut response = Response::new(answer);
    response.headers_mut().insert("content-type", HeaderValue::from_static(kind));
    response
}

/// The body of an answer.
enum Answer {
    Whole(Option<Bytes>),
    /// The same piece again and again, in between a beginning and an end.
    Long {
        begin: Option<Bytes>,
        left: u64,
        piece: Bytes,
        end: Option<Bytes>,
        sent: Arc<AtomicU64>,
    },
    /// A beginning, and nothing more.
    Stalled(Option<Bytes>),
    News(mpsc::Receiver<Bytes>),
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take()),
            Self::Long { begin, left, piece, end, sent } => Poll::Ready(match begin.take() {
                Some(begin) => Some(begin),
                None if *left == 0 => end.take(),
                None => {
                    let size = piece.len() as u64;
                    *left = left.saturating_sub(size);
                    sent.fetch_add(size, Ordering::Relaxed);
                    Some(piece.clone())
                }
            }),
            Self::Stalled(begin) => begin.take().map_or(Poll::Pending, |begin| Poll::Ready(Some(begin))),
            Self::News(news) => news.poll_recv(context),
        };
        bytes.map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }
}
