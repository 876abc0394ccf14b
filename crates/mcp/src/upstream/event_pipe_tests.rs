//! The pipe against servers of the oldest transport in this process, well behaved and not.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use toolwarden_core::Secret;

use super::{EventPipe, EventPipeError, EventPipeExit, EventPipeLimits, Said, endpoint_of, is_event_pipe};
use crate::compose::Wire;
use crate::message::Id;
use crate::sse::{Event, SseError};
use crate::upstream::{HttpTarget, HttpUpstream, UpstreamError};

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;
type Messages = mpsc::Receiver<Said>;

const PATIENCE: Duration = Duration::from_secs(20);
const LIMITS: EventPipeLimits =
    EventPipeLimits { endpoint: PATIENCE, post: PATIENCE, grace: PATIENCE, ..EventPipeLimits::DEFAULT };

/// A server and what a test holds of it.
struct Server {
    url: String,
    posts: Arc<Mutex<Vec<String>>>,
    /// The open stream; dropping it ends the stream.
    stream: mpsc::UnboundedSender<Bytes>,
}

/// What a server does.
#[derive(Clone)]
struct Script {
    status: u16,
    content_type: &'static str,
    /// The beginning of the stream.
    first: String,
    /// The answer to posts.
    post: u16,
    /// Time between a post and its answer.
    delay: Duration,
}

impl Script {
    fn new(first: impl Into<String>) -> Self {
        let (status, content_type, post, delay) = (200, "text/event-stream", 202, Duration::ZERO);
        Self { status, content_type, first: first.into(), post, delay }
    }
}

struct Shared {
    script: Script,
    posts: Arc<Mutex<Vec<String>>>,
    stream: Mutex<Option<mpsc::UnboundedReceiver<Bytes>>>,
}

async fn serve(script: Script) -> Server {
    let Ok(listener) = TcpListener::bind("127.0.0.1:0").await else { unreachable!("a free port") };
    let url = listener.local_addr().map(|address| format!("http://{address}")).unwrap_or_default();
    let script = Script { first: script.first.replace("URL", &url), ..script };
    let (stream, pieces) = mpsc::unbounded_channel();
    let posts = Arc::default();
    let shared = Arc::new(Shared { script, posts: Arc::clone(&posts), stream: Mutex::new(Some(pieces)) });
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let shared = shared.clone();
            let service = service_fn(move |request| handle(request, shared.clone()));
            let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(socket), service);
            tokio::spawn(connection);
        }
    });
    Server { url, posts, stream }
}

async fn handle(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Answer, Infallible> {
    let script = &shared.script;
    Ok(if request.method() == Method::GET {
        let first = Bytes::from(script.first.clone());
        let rest = shared.stream.lock().unwrap_or_else(PoisonError::into_inner).take();
        let pieces = futures_util::stream::unfold((Some(first), rest), |(first, mut rest)| async move {
            let piece = match first {
                Some(first) => first,
                None => rest.as_mut()?.recv().await?,
            };
            Some((Ok(Frame::data(piece)), (None, rest)))
        });
        let mut response = Response::new(StreamBody::new(pieces).boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(script.status).unwrap_or_default();
        response.headers_mut().insert("content-type", HeaderValue::from_static(script.content_type));
        response
    } else {
        let query = request.uri().to_string();
        let key = request.headers().get("x-key").is_some();
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let line = format!("{query} {key} {}", String::from_utf8_lossy(&body));
        tokio::time::sleep(script.delay).await;
        shared.posts.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        let mut response = Response::new(Full::new(Bytes::from_static(b"Accepted")).boxed_unsync());
        *response.status_mut() = StatusCode::from_u16(script.post).unwrap_or_default();
        response
    })
}

impl Server {
    fn upstream(&self, max_event_bytes: usize) -> HttpUpstream {
        let headers = vec![("x-key".to_owned(), Secret::new("hush".to_owned()))];
        let target = HttpTarget { headers, max_event_bytes, ..HttpTarget::new(format!("{}/a/sse", self.url)) };
        let Ok(upstream) = HttpUpstream::new(&target) else { unreachable!("a good target") };
        upstream
    }

    async fn open(&self) -> Result<(EventPipe, Messages), UpstreamError> {
        EventPipe::open(&self.upstream(1000), LIMITS).await
    }

    fn say(&self, text: &str) {
        assert!(self.stream.send(Bytes::copy_from_slice(text.as_bytes())).is_ok());
    }

    /// What was posted, once there is so much.
    async fn posted(&self, count: usize) -> Vec<String> {
        for _ in 0..1000 {
            let posts = self.posts.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if posts.len() >= count {
                return posts;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Vec::new()
    }
}

async fn opened(script: Script) -> (Server, EventPipe, Messages) {
    let server = serve(script).await;
    let opened = server.open().await;
    let Ok((pipe, messages)) = opened else { unreachable!("{:?}", opened.err()) };
    (server, pipe, messages)
}

async fn refused(script: Script) -> String {
    match serve(script).await.open().await {
        Ok(_) => "opened".to_owned(),
        Err(error) => error.to_string(),
    }
}

const ENDPOINT: &str = "event: endpoint\ndata: /post?session=1\n\n";

fn wire(text: &str) -> Wire {
    Wire::new(Bytes::copy_from_slice(text.as_bytes()))
}

fn request(text: &str, id: u64) -> Wire {
    Wire::asking(Bytes::copy_from_slice(text.as_bytes()), Id::number(id))
}

async fn next(messages: &mut Messages) -> Option<String> {
    Some(match timeout(PATIENCE, messages.recv()).await.ok().flatten()? {
        Said::Message(message) => String::from_utf8_lossy(&message).into_owned(),
        Said::Refused { request, status } => format!("{} was refused: {status}", request.raw()),
    })
}

async fn exit(pipe: &EventPipe) -> Option<EventPipeExit> {
    let mut exit = pipe.exit();
    let waited = timeout(PATIENCE, exit.wait_for(Option::is_some)).await;
    waited.ok()?.ok().and_then(|exit| exit.clone())
}

#[tokio::test]
async fn the_endpoint_may_be_written_in_every_way_that_stays_on_the_server() {
    for (written, expected) in [
        ("/post?session=1", "/post?session=1"),
        ("post?session=2", "/a/post?session=2"),
        ("?session=3", "/a/sse?session=3"),
        ("URL/x/post?session=4", "/x/post?session=4"),
    ] {
        let (server, pipe, _messages) = opened(Script::new(format!("event: endpoint\ndata: {written}\n\n"))).await;
        assert!(pipe.send(wire("{}")).await.is_ok());
        assert_eq!(server.posted(1).await, [format!("{expected} true {{}}")], "{written}");
    }
}

#[tokio::test]
async fn an_endpoint_elsewhere_is_refused() {
    for written in ["http://127.0.0.1:9/post", "https://example.com/", "//example.com/post", "http://user@127.0.0.1/"] {
        let said = refused(Script::new(format!("event: endpoint\ndata: {written}\n\n"))).await;
        assert!(said.contains("another server"), "{written}: {said}");
    }
    let said = refused(Script::new("event: endpoint\ndata: http://[\n\n")).await;
    assert!(said.contains("cannot be used"), "{said}");
}

#[tokio::test]
async fn a_server_that_names_no_endpoint_in_time_is_given_up() {
    let begun =
        [": waiting\n\n", "", "event: message\ndata: /post\n\n", "data: /post\n\n", "event: endpoint\ndata:\n\n"];
    for first in begun {
        let server = serve(Script::new(first)).await;
        let limits = EventPipeLimits { endpoint: Duration::from_millis(200), ..LIMITS };
        let opened = EventPipe::open(&server.upstream(1000), limits).await;
        assert!(matches!(opened, Err(UpstreamError::OtherTransport { .. })), "{first:?}: {opened:?}");
        // It does not hold on to what it gave up.
        assert!(timeout(PATIENCE, server.stream.closed()).await.is_ok(), "{first:?}");
    }
}

#[tokio::test]
async fn what_is_no_stream_of_events_is_refused() {
    for (status, content_type, expected, is_other) in [
        (200, "application/json", "something else", true),
        (400, "application/json", "refused", true),
        (401, "text/plain", "credential", false),
        (404, "text/event-stream", "404", true),
        (405, "application/json", "405", true),
        (406, "application/json", "refused", true),
        (429, "text/plain", "429", false),
        (503, "text/html", "failed", false),
        (302, "text/html", "refused", false),
    ] {
        let mut server = serve(Script { status, content_type, ..Script::new(ENDPOINT) }).await;
        // The body ends, so that a page is read at once.
        server.stream = mpsc::unbounded_channel().0;
        let said = server.open().await.map(|_| ());
        assert!(said.as_ref().is_err_and(|said| said.to_string().contains(expected)), "{status}: {said:?}");
        assert_eq!(matches!(said, Err(UpstreamError::OtherTransport { .. })), is_other, "{status}");
    }
    let Ok(upstream) = HttpUpstream::new(&HttpTarget::new("http://127.0.0.1:1/sse")) else {
        unreachable!("a good target")
    };
    assert!(matches!(EventPipe::open(&upstream, LIMITS).await, Err(UpstreamError::Unreachable { .. })));
}

#[tokio::test]
async fn messages_come_in_order_and_nothing_else_does() {
    let (server, pipe, mut messages) = opened(Script::new(format!("{ENDPOINT}event: message\ndata: first\n\n"))).await;
    server.say(": alive\n\nevent: ping\ndata: no\n\ndata: unnamed\n\nevent: endpoint\ndata: http://elsewhere/\n\n");
    server.say("event: message\n\nevent: message\ndata: two\nda");
    server.say("ta: lines\n\n");
    for number in 0..100 {
        server.say(&format!("event: message\ndata: {number}\n\n"));
    }
    for expected in ["first", "unnamed", "two\nlines"] {
        assert_eq!(next(&mut messages).await.as_deref(), Some(expected));
    }
    for number in 0..100 {
        assert_eq!(next(&mut messages).await, Some(number.to_string()));
    }
    assert_eq!(*pipe.exit().borrow(), None);
}

#[tokio::test]
async fn messages_are_posted_one_after_another() {
    let delay = Duration::from_millis(2);
    let (server, pipe, _messages) = opened(Script { delay, ..Script::new(ENDPOINT) }).await;
    for number in 0..50 {
        let sent = if number % 2 == 0 {
            pipe.send(wire(&number.to_string())).await
        } else {
            pipe.send_now(wire(&number.to_string()))
        };
        assert_eq!(sent, Ok(()));
    }
    let expected: Vec<_> = (0..50).map(|number| format!("/post?session=1 true {number}")).collect();
    assert_eq!(server.posted(50).await, expected);
}

#[tokio::test]
async fn a_refused_message_ends_the_pipe() {
    for status in [401, 404, 410, 500, 307] {
        let (server, pipe, mut messages) = opened(Script { post: status, ..Script::new(ENDPOINT) }).await;
        server.say("data: before\n\n");
        assert_eq!(next(&mut messages).await.as_deref(), Some("before"));
        assert!(pipe.send(wire("{}")).await.is_ok());
        assert_eq!(exit(&pipe).await, Some(EventPipeExit::Refused { status }));
        assert_eq!(next(&mut messages).await, None);
        assert!(timeout(PATIENCE, server.stream.closed()).await.is_ok());
        let place = pipe.place().clone();
        let ended = EventPipeError::Ended { place, exit: EventPipeExit::Refused { status } };
        assert_eq!(pipe.send(wire("{}")).await, Err(ended.clone()));
        assert_eq!(pipe.send_now(wire("{}")), Err(ended));
        assert_eq!(pipe.end().await, EventPipeExit::Refused { status });
        assert_eq!(server.posted(1).await.len(), 1);
    }
}

#[tokio::test]
async fn a_request_that_is_refused_for_what_it_says_fails_alone() {
    for status in [400, 403, 413, 422, 429] {
        let (server, pipe, mut messages) = opened(Script { post: status, ..Script::new(ENDPOINT) }).await;
        assert!(pipe.send(request("too large", 7)).await.is_ok());
        assert_eq!(next(&mut messages).await, Some(format!("7 was refused: {status}")));
        // A notification nobody waits for; the line goes on for the rest.
        assert!(pipe.send(wire("odd news")).await.is_ok());
        assert!(pipe.send(request("again", 8)).await.is_ok());
        assert_eq!(next(&mut messages).await, Some(format!("8 was refused: {status}")));
        server.say("data: an answer to somebody else\n\n");
        assert_eq!(next(&mut messages).await.as_deref(), Some("an answer to somebody else"));
        assert_eq!((server.posted(3).await.len(), pipe.exit().borrow().clone()), (3, None));
    }
}

#[tokio::test]
async fn a_server_that_does_not_take_messages() {
    let delay = Duration::from_secs(60);
    let server = serve(Script { delay, ..Script::new(ENDPOINT) }).await;
    let limits = EventPipeLimits { queue: 2, post: Duration::from_millis(300), ..LIMITS };
    let Ok((pipe, _messages)) = EventPipe::open(&server.upstream(1000), limits).await else { unreachable!("opens") };
    let mut refused = None;
    for _ in 0..10 {
        refused = refused.or(pipe.send_now(wire("{}")).err());
    }
    assert!(matches!(refused, Some(EventPipeError::Full { .. })), "{refused:?}");
    let exit = exit(&pipe).await;
    assert!(matches!(exit, Some(EventPipeExit::Undelivered(UpstreamError::Timeout { .. }))), "{exit:?}");
}

#[tokio::test]
async fn a_stream_that_ends_ends_the_pipe_after_its_last_message() {
    let (server, pipe, mut messages) = opened(Script::new(ENDPOINT)).await;
    server.say("data: 1\n\ndata: 2\n\ndata: unfinished\n");
    drop(server.stream);
    assert_eq!(exit(&pipe).await, Some(EventPipeExit::StreamEnded));
    assert_eq!(next(&mut messages).await.as_deref(), Some("1"));
    assert_eq!(next(&mut messages).await.as_deref(), Some("2"));
    assert_eq!(next(&mut messages).await, None);
    assert!(matches!(pipe.send(wire("{}")).await, Err(EventPipeError::Ended { .. })));
}

#[tokio::test]
async fn an_oversized_event_ends_the_pipe() {
    let (server, pipe, mut messages) = opened(Script::new(ENDPOINT)).await;
    server.say(&format!("data: {}\n\n", "x".repeat(1000)));
    assert_eq!(next(&mut messages).await.map(|message| message.len()), Some(1000));
    server.say(&format!("data: {}", "x".repeat(1100)));
    let exit = exit(&pipe).await;
    let Some(EventPipeExit::StreamFailed(UpstreamError::Events { reason, .. })) = exit else {
        unreachable!("{exit:?}")
    };
    assert_eq!(reason, SseError::TooLarge { limit: 1000 });
    assert!(timeout(PATIENCE, server.stream.closed()).await.is_ok());
    let said = refused(Script::new(format!("data: {}\n\n{ENDPOINT}", "x".repeat(1100)))).await;
    assert!(said.contains("larger than"), "{said}");
}

#[tokio::test]
async fn dropping_the_pipe_or_its_receiver_closes_the_stream() {
    let (server, pipe, mut messages) = opened(Script::new(ENDPOINT)).await;
    let mut exit = pipe.exit();
    drop(pipe);
    assert!(timeout(PATIENCE, server.stream.closed()).await.is_ok());
    assert_eq!(next(&mut messages).await, None);
    assert!(exit.wait_for(|exit| *exit == Some(EventPipeExit::Closed)).await.is_ok());
    let (server, pipe, messages) = opened(Script::new(ENDPOINT)).await;
    drop(messages);
    server.say("data: nobody listens\n\n");
    assert_eq!(self::exit(&pipe).await, Some(EventPipeExit::Closed));
    assert!(timeout(PATIENCE, server.stream.closed()).await.is_ok());
}

#[tokio::test]
async fn an_end_waits_for_what_was_accepted_but_not_for_ever() {
    let delay = Duration::from_millis(5);
    let (server, pipe, _messages) = opened(Script { delay, ..Script::new(ENDPOINT) }).await;
    for number in 0..10 {
        assert_eq!(pipe.send_now(wire(&number.to_string())), Ok(()));
    }
    assert_eq!(pipe.end().await, EventPipeExit::Closed);
    assert_eq!(server.posted(10).await.len(), 10);
    assert!(timeout(PATIENCE, server.stream.closed()).await.is_ok());
    assert!(matches!(pipe.send(wire("{}")).await, Err(EventPipeError::Ended { exit: EventPipeExit::Closed, .. })));

    let server = serve(Script { delay: PATIENCE, ..Script::new(ENDPOINT) }).await;
    let limits = EventPipeLimits { grace: Duration::from_millis(50), ..LIMITS };
    let Ok((pipe, _messages)) = EventPipe::open(&server.upstream(1000), limits).await else { unreachable!("opens") };
    assert_eq!(pipe.send_now(wire("{}")), Ok(()));
    assert_eq!(pipe.end().await, EventPipeExit::Closed);
    assert!(server.posts.lock().unwrap_or_else(PoisonError::into_inner).is_empty());
}

#[tokio::test]
async fn the_transport_is_known_by_its_first_event() {
    for (first, status, expected) in [
        (ENDPOINT, 200, true),
        (": hi\n\nretry: 100\n\nevent: endpoint\ndata: /post\n\n", 200, true),
        (ENDPOINT, 404, false),
        ("data: {}\n\nevent: endpoint\ndata: /post\n\n", 200, false),
        ("event: endpoint\n\n", 200, false),
        ("", 200, false),
    ] {
        let server = serve(Script { status, ..Script::new(first) }).await;
        let Ok(reply) = server.upstream(1000).get_stream(HeaderMap::new()).await else { unreachable!("a reply") };
        assert_eq!(is_event_pipe(reply, Duration::from_millis(200)).await, expected, "{first:?} {status}");
    }
    let event = |name: Option<&'static str>, data: &'static str| Event {
        name: name.map(Bytes::from),
        ..Event::of(Bytes::from(data))
    };
    assert_eq!(endpoint_of(&event(Some("endpoint"), " /post ")), Some("/post"));
    for (name, data) in
        [(Some("endpoint"), " "), (Some("Endpoint"), "/post"), (None, "/post"), (Some("message"), "/post")]
    {
        assert_eq!(endpoint_of(&event(name, data)), None);
    }
}
