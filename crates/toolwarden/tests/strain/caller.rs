//! A legacy MCP client over plain HTTP: one session on one connection, one request at a time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::house::PATIENCE;

/// The tool that gives its arguments back, at the fixture server and at our own.
pub const ECHO: &str = "test_echo";

/// Why a request has not got the answer it should have.
#[derive(Debug)]
pub enum Fault {
    /// The connection could not be made, or ended: whoever was there is gone.
    Broken(String),
    /// There was an answer, and it is a wrong one.
    Wrong(String),
    /// No answer within all patience.
    Silence,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(why) => write!(formatter, "the connection broke: {why}"),
            Self::Wrong(what) => write!(formatter, "a wrong answer: {what}"),
            Self::Silence => write!(formatter, "no answer in {PATIENCE:?}"),
        }
    }
}

impl std::error::Error for Fault {}

fn broken(error: impl fmt::Display) -> Fault {
    Fault::Broken(error.to_string())
}

/// An open session.
pub struct Session {
    base: String,
    path: String,
    headers: HeaderMap,
    sender: SendRequest<Full<Bytes>>,
    next: u64,
}

async fn connect(base: &str) -> Result<SendRequest<Full<Bytes>>, Fault> {
    let stream = TcpStream::connect(base).await.map_err(broken)?;
    stream.set_nodelay(true).map_err(broken)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // How it ended is seen by whoever waits for an answer.
    tokio::spawn(connection);
    Ok(sender)
}

fn bearer(token: &str) -> Result<HeaderValue, Fault> {
    HeaderValue::try_from(format!("Bearer {token}")).map_err(broken)
}

/// What a person asks of the API, on a connection of its own: the status and the answer.
pub async fn post(base: &str, path: &str, token: &str, body: &Value) -> Result<(u16, String), Fault> {
    post_with(base, path, token, &[], body).await
}

/// A modern request of whoever bears a token, at one server's door; the whole answer.
pub async fn ask_modern(base: &str, token: &str, method: &str, params: &Value) -> Result<Value, Fault> {
    let mut params = params.clone();
    let name = ["name", "taskId"].into_iter().find_map(|key| params.get(key)?.as_str().map(str::to_owned));
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    if let Some(params) = params.as_object_mut() {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        params.insert("_meta".to_owned(), meta);
    }
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", method),
        ("mcp-name", name.as_deref().unwrap_or_default()),
    ];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let (_, said) = post_with(base, "/mcp/notes", token, &headers, &body).await?;
    serde_json::from_str(&said).map_err(|_| Fault::Wrong(said))
}

async fn post_with(
    base: &str,
    path: &str,
    token: &str,
    more: &[(&'static str, &str)],
    body: &Value,
) -> Result<(u16, String), Fault> {
    let exchange = async {
        let mut request = Request::new(Full::new(Bytes::from(body.to_string())));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path.parse().map_err(broken)?;
        for (name, value) in [
            ("host", HeaderValue::from_static("localhost")),
            ("content-type", HeaderValue::from_static("application/json")),
            ("authorization", bearer(token)?),
        ] {
            request.headers_mut().insert(name, value);
        }
        for (name, value) in more {
            request.headers_mut().insert(*name, HeaderValue::try_from(*value).map_err(broken)?);
        }
        let (head, body) = connect(base).await?.send_request(request).await.map_err(broken)?.into_parts();
        let bytes = body.collect().await.map_err(broken)?.to_bytes();
        Ok((head.status.as_u16(), String::from_utf8_lossy(&bytes).into_owned()))
    };
    timeout(PATIENCE, exchange).await.map_err(|_| Fault::Silence)?
}

impl Session {
    /// Opens a session with one server of a gateway.
    pub async fn open(base: &str, server: &str) -> Result<Self, Fault> {
        Self::open_with(base, server, HeaderMap::new()).await
    }

    /// The same for whoever bears a token.
    pub async fn open_as(base: &str, server: &str, token: &str) -> Result<Self, Fault> {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", bearer(token)?);
        Self::open_with(base, server, headers).await
    }

    async fn open_with(base: &str, server: &str, mut headers: HeaderMap) -> Result<Self, Fault> {
        for (name, value) in [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2025-11-25"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let (base, path) = (base.to_owned(), format!("/mcp/{server}"));
        let mut session = Self { sender: connect(&base).await?, base, path, headers, next: 0 };
        let info = json!({"name": "strain", "version": "1"});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        let (answer, headers) = session.request("initialize", &hello).await?;
        let id = headers.get("mcp-session-id").ok_or_else(|| Fault::Wrong(answer.to_string()))?;
        session.headers.insert("mcp-session-id", id.clone());
        session.tell(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await?;
        Ok(session)
    }

    async fn tell(&mut self, news: &Value) -> Result<(), Fault> {
        let accepted = timeout(PATIENCE, self.send(Method::POST, &news.to_string())).await;
        let accepted = accepted.map_err(|_| Fault::Silence)??;
        match accepted.status().is_success() {
            true => Ok(()),
            false => Err(Fault::Wrong(accepted.status().to_string())),
        }
    }

    /// The same session on another connection.
    pub async fn beside(&self) -> Result<Self, Fault> {
        let (base, path, headers) = (self.base.clone(), self.path.clone(), self.headers.clone());
        Ok(Self { sender: connect(&base).await?, base, path, headers, next: self.next })
    }

    /// Gives up the request that was made since, on the other connection.
    pub async fn give_up(&mut self) -> Result<(), Fault> {
        let params = json!({"requestId": self.next + 1, "reason": "enough"});
        self.tell(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await
    }

    /// Sends on the session's connection; on a new one if that was closed while nothing was on its way.
    async fn send(&mut self, method: Method, body: &str) -> Result<Response<Incoming>, Fault> {
        let mut request = Request::new(Full::new(Bytes::from(body.to_owned())));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.parse().map_err(broken)?;
        request.headers_mut().clone_from(&self.headers);
        if self.sender.ready().await.is_err() {
            self.sender = connect(&self.base).await?;
        }
        let request = match self.sender.try_send_request(request).await {
            Ok(response) => return Ok(response),
            Err(mut error) => error.take_message().ok_or_else(|| broken(error.error()))?,
        };
        self.sender = connect(&self.base).await?;
        self.sender.send_request(request).await.map_err(broken)
    }

    /// Ends the session.
    pub async fn leave(mut self) -> Result<(), Fault> {
        let left = timeout(PATIENCE, self.send(Method::DELETE, "")).await.map_err(|_| Fault::Silence)??;
        match left.status().is_success() {
            true => Ok(()),
            false => Err(Fault::Wrong(left.status().to_string())),
        }
    }

    /// The head of the answer to a call; its body is the caller's.
    pub async fn begin(&mut self, tool: &str, arguments: &Value) -> Result<Response<Incoming>, Fault> {
        self.next += 1;
        let params = call_params(tool, arguments);
        let text = json!({"jsonrpc": "2.0", "id": self.next, "method": "tools/call", "params": params}).to_string();
        timeout(PATIENCE, self.send(Method::POST, &text)).await.map_err(|_| Fault::Silence)?
    }

    /// A request and its answer, whichever form it comes in.
    pub async fn request(&mut self, method: &str, params: &Value) -> Result<(Value, HeaderMap), Fault> {
        self.next += 1;
        let id = self.next;
        let text = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string();
        let exchange = async {
            let response = self.send(Method::POST, &text).await?;
            let (head, body) = response.into_parts();
            let bytes = body.collect().await.map_err(broken)?.to_bytes();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let is_stream = head.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
            let last = text.lines().rev().find_map(|line| line.strip_prefix("data: "));
            let message = if is_stream { last.unwrap_or_default() } else { &text };
            let answer: Value = serde_json::from_str(message).map_err(|_| Fault::Wrong(text.clone()))?;
            match answer.get("id").and_then(Value::as_u64) == Some(id) {
                true => Ok((answer, head.headers)),
                false => Err(Fault::Wrong(format!("{}: {answer}", head.status))),
            }
        };
        timeout(PATIENCE, exchange).await.map_err(|_| Fault::Silence)?
    }

    /// Calls a tool; gives the whole response, a result or an error.
    pub async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Fault> {
        self.request("tools/call", &call_params(tool, arguments)).await.map(|(answer, _)| answer)
    }

    /// Sends a number and gets it back: the answer is one's own.
    pub async fn echo(&mut self, number: &str) -> Result<(), Fault> {
        let answer = self.call(ECHO, &json!({"number": number})).await?;
        let text = answer.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default();
        let given: Value = serde_json::from_str(text).unwrap_or_default();
        match given.get("number").and_then(Value::as_str) == Some(number) {
            true => Ok(()),
            false => Err(Fault::Wrong(format!("{number} got {answer}"))),
        }
    }

    /// The stream of news of this session, on a connection of its own.
    pub async fn news(&self) -> Result<Incoming, Fault> {
        let mut request = Request::new(Full::default());
        *request.uri_mut() = self.path.parse().map_err(broken)?;
        request.headers_mut().clone_from(&self.headers);
        request.headers_mut().remove("content-type");
        let mut sender = connect(&self.base).await?;
        let response = timeout(PATIENCE, sender.send_request(request)).await.map_err(|_| Fault::Silence)?;
        let response = response.map_err(broken)?;
        match response.status().is_success() {
            true => Ok(response.into_body()),
            false => Err(Fault::Wrong(response.status().to_string())),
        }
    }
}

/// The params of a call, as they are sent.
pub fn call_params(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

/// The words of an error in an answer; none for a result.
pub fn error_of(answer: &Value) -> Option<&str> {
    answer.pointer("/error/message").and_then(Value::as_str)
}

/// Callers of a healthy server, while something else is going on.
pub struct Bystanders {
    tasks: Vec<JoinHandle<Result<(), Fault>>>,
    answers: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Bystanders {
    /// Begins to call, several at once.
    pub fn at(base: &str, server: &str) -> Self {
        let (answers, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let tasks = (0..4).map(|me| {
            let (base, server) = (base.to_owned(), server.to_owned());
            let (answers, stop) = (answers.clone(), stop.clone());
            tokio::spawn(async move {
                let mut session = Session::open(&base, &server).await?;
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    number += 1;
                    session.echo(&format!("bystander-{me}-{number}")).await?;
                    answers.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                Ok(())
            })
        });
        Self { tasks: tasks.collect(), answers, stop }
    }

    /// Waits until they got so many more answers: they are served now, not only before and after.
    pub async fn served(&self, more: u64) -> Result<(), Fault> {
        let wanted = self.answers.load(Ordering::Relaxed) + more;
        let waiting = async {
            while self.answers.load(Ordering::Relaxed) < wanted && !self.tasks.iter().any(JoinHandle::is_finished) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(PATIENCE, waiting).await.map_err(|_| Fault::Silence)
    }

    /// Ends them; each of their calls must have had its answer.
    pub async fn leave(self) -> Result<u64, Fault> {
        self.stop.store(true, Ordering::Relaxed);
        for task in self.tasks {
            task.await.map_err(broken)??;
        }
        Ok(self.answers.load(Ordering::Relaxed))
    }
}
