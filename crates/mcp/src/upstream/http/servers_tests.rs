//! Servers for the tests of the client: hyper where they behave, bare sockets where they do not.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ::http::{HeaderValue, Request, Response, StatusCode};
use bytes::Bytes;
use futures_util::StreamExt;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// What a server saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) connections: AtomicUsize,
    pub(super) requests: AtomicUsize,
    pub(super) dropped: AtomicUsize,
}

fn answer(status: u16, content_type: &str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()).boxed());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    if let Ok(value) = HeaderValue::from_str(content_type) {
        response.headers_mut().insert("content-type", value);
    }
    response
}

/// A body that comes in pieces, a moment apart.
fn pieces(content_type: &str, pieces: Vec<Bytes>) -> Answer {
    let stream = futures_util::stream::iter(pieces).then(|piece| async move {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(Frame::data(piece))
    });
    let (mut head, _) = answer(200, content_type, "").into_parts();
    head.headers.remove("content-length");
    Response::from_parts(head, BodyExt::boxed(StreamBody::new(SyncStream(Box::pin(stream)))))
}

/// A boxed body must be `Sync`; a stream behind exclusive access is.
struct SyncStream<T>(std::pin::Pin<Box<dyn futures_util::Stream<Item = T> + Send + Sync>>);

impl<T> futures_util::Stream for SyncStream<T> {
    type Item = T;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, cx: &mut std::task::Context<'_>) -> std::task::Poll<Option<T>> {
        self.0.as_mut().poll_next(cx)
    }
}

async fn handle(request: Request<Incoming>, seen: Arc<Seen>) -> Result<Answer, Infallible> {
    let count = seen.requests.fetch_add(1, Ordering::SeqCst);
    let json = "application/json; charset=utf-8";
    Ok(match request.uri().path() {
        "/count" => answer(200, json, count.to_string()),
        "/headers" => answer(200, json, format!("{} {:?}", request.method(), request.headers())),
        "/echo" => {
            let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            answer(200, json, body)
        }
        "/chunked" => pieces(json, vec![Bytes::from_static(b"{\"a\":"), Bytes::from_static(b"1}")]),
        "/events" => {
            let text = b": hi\n\nid: 1\ndata: {\"a\"\nda";
            pieces("text/event-stream", vec![Bytes::from_static(text), Bytes::from_static(b"ta: :1}\n\n")])
        }
        "/slow" => {
            let guard = OnDrop(seen);
            tokio::time::sleep(Duration::from_secs(60)).await;
            drop(guard);
            answer(200, json, "{}")
        }
        "/accepted" => answer(202, "", ""),
        "/unauthorized" => answer(401, "text/plain", "who are you"),
        "/missing" => answer(404, json, "{\"error\":{\"code\":-32601}}"),
        "/not-allowed" => answer(405, "text/html", vec![b'x'; 100_000]),
        "/moved" => {
            let mut response = answer(307, "text/plain", "");
            response.headers_mut().insert("location", HeaderValue::from_static("/count"));
            response
        }
        "/squeezed" => {
            let mut response = answer(200, json, "xx");
            response.headers_mut().insert("content-encoding", HeaderValue::from_static("gzip"));
            response
        }
        _ => answer(500, json, "{}"),
    })
}

struct OnDrop(Arc<Seen>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::SeqCst);
    }
}

pub(super) async fn serve(
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
    seen: Arc<Seen>,
) {
    seen.connections.fetch_add(1, Ordering::SeqCst);
    let service = service_fn(move |request| handle(request, seen.clone()));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

pub(super) async fn listen() -> (TcpListener, String) {
    let Ok(listener) = TcpListener::bind("127.0.0.1:0").await else { unreachable!("a free port") };
    let url = listener.local_addr().map(|address| format!("http://{address}")).unwrap_or_default();
    (listener, url)
}

pub(super) async fn server() -> (String, Arc<Seen>) {
    let (listener, url) = listen().await;
    let seen = Arc::new(Seen::default());
    let shared = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, shared.clone()));
        }
    });
    (url, seen)
}

/// A server that answers connection after connection with what `script` does to the socket.
pub(super) async fn scripted<F>(script: impl Fn(usize, TcpStream) -> F + Send + 'static) -> String
where
    F: Future<Output = ()> + Send + 'static,
{
    let (listener, url) = listen().await;
    tokio::spawn(async move {
        let mut count = 0;
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(script(count, stream));
            count += 1;
        }
    });
    url
}

pub(super) async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; 10_000];
    let length = stream.read(&mut bytes).await.unwrap_or(0);
    bytes.truncate(length);
    String::from_utf8_lossy(&bytes).into_owned()
}
