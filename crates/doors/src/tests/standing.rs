//! The stream of a legacy server's news, which is followed for clients that do not open it themselves.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use toolwarden_gateway::Credential;

use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::time::timeout;
use toolwarden_conversations::Scope;
use toolwarden_mcp::headers;

use super::doors::Speech;
use super::house::{Given, House};
use super::patience::eventually;
use super::pipe::Pipe;
use super::recorder::{Recorder, Speaks};
use crate::{AnswerBody, serve_request, stdio};

const PATIENCE: Duration = Duration::from_secs(10);
const CHANGED: &str = "notifications/tools/list_changed";

/// What the server says to a GET.
#[derive(Debug, Clone, Copy)]
enum Says {
    Status(u16),
    /// The connection breaks.
    Nothing,
    /// One piece of news, and then it is silent.
    News,
    /// The same, and then it ends.
    NewsAndEnd,
}

type Answer = Response<UnsyncBoxBody<Bytes, std::io::Error>>;

/// A legacy server whose stream goes by a script; its last line counts for ever.
#[derive(Debug, Clone, Default)]
struct Server {
    script: Arc<Mutex<VecDeque<Says>>>,
    asked: Arc<AtomicUsize>,
    /// Streams that are open.
    open: Arc<AtomicUsize>,
}

struct OpenStream(Arc<AtomicUsize>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Server {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn next(&self) -> Says {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let next = script.pop_front().unwrap_or(Says::Status(405));
        if script.is_empty() {
            script.push_back(next);
        }
        next
    }

    fn stream(&self, says: Says) -> std::io::Result<Answer> {
        let ends = match says {
            Says::Nothing => return Err(std::io::ErrorKind::BrokenPipe.into()),
            Says::Status(status) => return Ok(whole(status, String::new())),
            Says::News => false,
            Says::NewsAndEnd => true,
        };
        self.open.fetch_add(1, Ordering::SeqCst);
        let (open, news) = (OpenStream(self.open.clone()), json!({"jsonrpc": "2.0", "method": CHANGED}));
        let first = Some(Bytes::from(format!("data: {news}\n\n")));
        let frames = futures_util::stream::unfold((first, open), move |(first, open)| async move {
            if first.is_none() && !ends {
                std::future::pending::<()>().await;
            }
            Some((Ok(Frame::data(first?)), (None, open)))
        });
        let mut response = Response::new(StreamBody::new(StreamExt::boxed(frames)).boxed_unsync());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        Ok(response)
    }

    async fn respond(&self, request: Request<Incoming>) -> std::io::Result<Answer> {
        if request.method() == Method::GET {
            return self.stream(self.next());
        }
        let text = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let message: Value = serde_json::from_slice(&text).unwrap_or_default();
        let Some(id) = message.get("id") else { return Ok(whole(202, String::new())) };
        let claims = message.pointer("/params/_meta/io.modelcontextprotocol~1protocolVersion").is_some();
        let offers = json!({"tools": {"listChanged": true}});
        Ok(match message.get("method").and_then(Value::as_str) {
            _ if claims => {
                whole(400, json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "?"}}).to_string())
            }
            Some("initialize") => {
                let about = json!({"protocolVersion": "2025-11-25", "capabilities": offers, "serverInfo": {"name": "s", "version": "1"}});
                whole(200, json!({"jsonrpc": "2.0", "id": id, "result": about}).to_string())
            }
            _ => whole(200, json!({"jsonrpc": "2.0", "id": id, "result": {"tools": []}}).to_string()),
        })
    }
}

fn whole(status: u16, body: String) -> Answer {
    let body = Full::from(body).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("s"));
    response
}

async fn house(script: &[Says]) -> Option<(House, Server)> {
    let listener = TcpListener::bind("127.0.0.1:0").await.ok()?;
    let url = format!("http://{}/mcp", listener.local_addr().ok()?);
    let server = Server { script: Arc::new(Mutex::new(script.iter().copied().collect())), ..Server::default() };
    let serving = server.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let server = serving.clone();
            let service = service_fn(move |request| {
                let server = server.clone();
                async move { server.respond(request).await }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        }
    });
    let house = House::around(&Given::default(), Recorder::absent(url, Speaks::Both)).await?;
    Some((house, server))
}

/// A modern client begins to listen.
async fn listen(house: &House) -> Response<AnswerBody> {
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}).to_string();
    let mut request = Request::new(Full::<Bytes>::from(text));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = http::Uri::from_static("/mcp/notes");
    let sent = request.headers_mut();
    sent.insert(HOST, HeaderValue::from_static("localhost"));
    sent.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    sent.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    sent.insert(headers::VERSION, HeaderValue::from_static("2026-07-28"));
    sent.insert(headers::METHOD, HeaderValue::from_static("subscriptions/listen"));
    serve_request(&house.gateway, request).await
}

/// Reads until this is said, or nothing more, for some seconds.
async fn heard(response: &mut Response<AnswerBody>, what: &str) -> String {
    let mut text = String::new();
    let reading = async {
        while let Some(Ok(frame)) = response.body_mut().frame().await {
            text.push_str(&String::from_utf8_lossy(frame.data_ref().unwrap_or(&Bytes::new())));
            if text.contains(what) {
                break;
            }
        }
    };
    let _ = timeout(PATIENCE, reading).await;
    text
}

/// What passes, and a stream after it.
const PASSES: [Says; 5] = [Says::Status(503), Says::Nothing, Says::Status(429), Says::Status(502), Says::News];

#[tokio::test]
async fn a_stream_that_cannot_be_had_now_is_asked_for_again() {
    let built = house(&PASSES).await;
    assert!(built.is_some());
    let Some((house, server)) = built else { unreachable!("the gateway is built") };
    let mut stream = listen(&house).await;
    let said = heard(&mut stream, CHANGED).await;
    assert!(said.contains(CHANGED), "{said}");
    assert_eq!(server.asked(), PASSES.len());
    // What is held open for the session ends with it.
    assert_eq!(server.open.load(Ordering::SeqCst), 1);
    house.gateway.close().await;
    for _ in 0..500 {
        if server.open.load(Ordering::SeqCst) == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(server.open.load(Ordering::SeqCst), 0, "its stream is still open");
}

#[tokio::test]
async fn a_server_that_has_no_such_stream_is_asked_once() {
    for status in [405, 404, 501, 200] {
        let built = house(&[Says::Status(status)]).await;
        assert!(built.is_some());
        let Some((house, server)) = built else { unreachable!("the gateway is built") };
        let mut stream = listen(&house).await;
        let said = heard(&mut stream, "acknowledged").await;
        assert!(said.contains("acknowledged"), "{status}: {said}");
        tokio::time::sleep(Duration::from_millis(600)).await;
        let again = timeout(Duration::from_millis(1), stream.body_mut().frame()).await;
        assert_eq!((server.asked(), again.is_err()), (1, true), "{status}: asked once, and the client may listen on");
    }
}

#[tokio::test]
async fn who_listens_to_a_session_that_was_forgotten_is_told() {
    let built = house(&[Says::NewsAndEnd, Says::Status(404)]).await;
    assert!(built.is_some());
    let Some((house, _server)) = built else { unreachable!("the gateway is built") };
    let mut stream = listen(&house).await;
    let said = heard(&mut stream, "\"resultType\":\"complete\"").await;
    assert!(said.contains(CHANGED) && said.contains("\"resultType\":\"complete\""), "{said}");
}

#[tokio::test]
async fn gate_19_a_narrower_policy_closes_the_stream_that_is_followed_for_a_pipe() {
    let built = house(&[Says::News]).await;
    assert!(built.is_some());
    let Some((house, server)) = built else { unreachable!("the gateway is built") };
    let mut pipe = Pipe::open(&house, Scope::One("notes".into()), Speech::Legacy).await;
    assert_eq!(pipe.hear().await.get("method"), Some(&json!(CHANGED)));
    let streams = async |wanted: usize| eventually(async || server.open.load(Ordering::SeqCst) == wanted).await;
    assert!(streams(1).await);
    house.judge_by(&Given { server: "enabled = false", ..Given::default() });
    assert!(streams(0).await, "it is still followed");
    house.judge_by(&Given::default());
    assert!(streams(1).await, "it is followed again");
    assert_eq!(pipe.hear_besides(&["prompts", "resources"]).await.get("method"), Some(&json!(CHANGED)));
}

#[tokio::test]
async fn a_client_on_a_pipe_hears_of_it_too() {
    let built = house(&PASSES).await;
    assert!(built.is_some());
    let Some((house, server)) = built else { unreachable!("the gateway is built") };
    let (client, door) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(door);
    let gateway = house.gateway.clone();
    let scope = Scope::One("notes".into());
    let serving = tokio::spawn(async move {
        let client = stdio::Client { scope, credential: &Credential::Local, mode: None };
        stdio::serve(&gateway, client, (input, output), std::future::pending(), stdio::nothing_to_catch_up).await
    });
    let (read, mut write) = tokio::io::split(client);
    let mut lines = BufReader::new(read).lines();
    let about =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert!(write.write_all(format!("{hello}\n").as_bytes()).await.is_ok());
    let greeted = timeout(PATIENCE, lines.next_line()).await;
    assert!(matches!(&greeted, Ok(Ok(Some(line))) if line.contains("serverInfo")), "{greeted:?}");
    assert!(write.write_all(format!("{ready}\n").as_bytes()).await.is_ok());
    let news = timeout(PATIENCE, lines.next_line()).await;
    assert!(matches!(&news, Ok(Ok(Some(line))) if line.contains(CHANGED)), "{news:?}");
    assert_eq!(server.asked(), PASSES.len());
    serving.abort();
}

/// A client may say more than once that it is ready.
#[tokio::test]
async fn a_stream_is_followed_once() {
    let built = house(&[Says::News]).await;
    assert!(built.is_some());
    let Some((house, server)) = built else { unreachable!("the gateway is built") };
    let mut pipe = Pipe::open(&house, Scope::One("notes".into()), Speech::Legacy).await;
    for _ in 0..3 {
        pipe.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    }
    assert_eq!(pipe.hear().await.get("method"), Some(&json!(CHANGED)));
    pipe.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    let next = pipe.hear().await;
    assert_eq!(next.get("id"), Some(&json!(1)), "news come once: {next}");
    assert_eq!((server.asked(), server.open.load(Ordering::SeqCst)), (1, 1));
}
