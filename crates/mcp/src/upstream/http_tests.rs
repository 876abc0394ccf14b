//! The client against real servers in this process.

#[path = "http/servers_tests.rs"]
mod servers;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Method};
use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;
use toolwarden_core::Secret;

use self::servers::{Seen, listen, read_request, scripted, serve, server};
use super::{HttpTarget, HttpUpstream, Reply, ReplyBody, Timeouts, Tls, UpstreamError};
use crate::compose::Wire;
use crate::sse::{Event, Item};

fn wire(text: &'static str) -> Wire {
    Wire::new(Bytes::from_static(text.as_bytes()))
}

const PATIENT: Timeouts =
    Timeouts { connect: Duration::from_secs(5), head: Duration::from_secs(20), idle: Duration::from_secs(30) };

fn upstream(url: &str, path: &str) -> HttpUpstream {
    let target = HttpTarget { timeouts: PATIENT, ..HttpTarget::new(format!("{url}{path}")) };
    let Ok(upstream) = HttpUpstream::new(&target) else { unreachable!("a good target") };
    upstream
}

async fn text(reply: Result<Reply, UpstreamError>) -> (u16, String) {
    match reply {
        Ok(Reply { status, body: ReplyBody::Json(body), .. }) => {
            let bytes = body.collect(1_000_000).await;
            (
                status.as_u16(),
                bytes.map_or_else(|error| error.to_string(), |bytes| String::from_utf8_lossy(&bytes).into()),
            )
        }
        Ok(Reply { status, body: ReplyBody::Other(bytes), .. }) => {
            (status.as_u16(), String::from_utf8_lossy(&bytes).into())
        }
        Ok(Reply { status, body, .. }) => (status.as_u16(), format!("{body:?}")),
        Err(error) => (0, error.to_string()),
    }
}

#[tokio::test]
async fn connections_are_reused_for_every_kind_of_body() {
    let (url, seen) = server().await;
    let base = upstream(&url, "/count");
    for expected in 0..50 {
        let reply = base.post(wire("{}"), HeaderMap::new()).await;
        assert_eq!(text(reply).await, (200, expected.to_string()));
    }
    assert_eq!(seen.connections.load(Ordering::SeqCst), 1);
    for path in ["/chunked", "/accepted", "/unauthorized", "/missing", "/events", "/count"] {
        let other = HttpUpstream { place: upstream(&url, path).place, ..base.clone() };
        for _ in 0..2 {
            match other.post(wire("{}"), HeaderMap::new()).await.map(|reply| reply.body) {
                Ok(ReplyBody::Events(mut events)) => while let Ok(Some(_)) = events.next_item().await {},
                Ok(ReplyBody::Json(mut body)) => while let Ok(Some(_)) = body.chunk().await {},
                Ok(_) => {}
                Err(error) => unreachable!("{path}: {error}"),
            }
        }
        assert_eq!(seen.connections.load(Ordering::SeqCst), 1, "{path}");
    }
}

#[tokio::test]
async fn parallel_requests_have_connections_of_their_own_and_share_them_later() {
    let (url, seen) = server().await;
    let upstream = upstream(&url, "/chunked");
    for _ in 0..3 {
        let calls = (0..8).map(|_| async { text(upstream.post(wire("{}"), HeaderMap::new()).await).await });
        for answer in futures_util::future::join_all(calls).await {
            assert_eq!(answer, (200, "{\"a\":1}".to_owned()));
        }
    }
    assert_eq!(seen.connections.load(Ordering::SeqCst), 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_lose_no_answer() {
    let (url, seen) = server().await;
    let upstream = upstream(&url, "/echo");
    let calls = (0..32).map(|caller| {
        let upstream = upstream.clone();
        tokio::spawn(async move {
            for number in 0..50 {
                let sent = Bytes::from(format!("[{caller},{number}]").repeat(1 + number * number));
                let reply = upstream.post(Wire::new(sent.clone()), HeaderMap::new()).await;
                assert_eq!(text(reply).await, (200, String::from_utf8_lossy(&sent).into_owned()));
            }
        })
    });
    assert!(futures_util::future::join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(seen.requests.load(Ordering::SeqCst), 32 * 50);
    assert!(seen.connections.load(Ordering::SeqCst) <= 32);
}

#[tokio::test]
async fn a_connection_that_died_while_waiting_is_replaced() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let url = scripted(move |_, mut stream| async move {
        let _ = read_request(&mut stream).await;
        let _ = stream.write_all(answer.as_bytes()).await;
    })
    .await;
    let upstream = upstream(&url, "/");
    for _ in 0..20 {
        assert_eq!(text(upstream.post(wire("{}"), HeaderMap::new()).await).await, (200, "{}".to_owned()));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The server hangs up in the moment between the look at a waiting connection and its use.
#[tokio::test]
async fn a_request_of_which_nothing_was_written_comes_back() {
    let url = scripted(|_, stream| async move { drop(stream) }).await;
    let upstream = upstream(&url, "/");
    let live = super::connect::connect(&upstream.place, &upstream.pool, PATIENT.connect).await;
    let Ok(mut live) = live else { unreachable!("a connection") };
    tokio::time::sleep(Duration::from_millis(50)).await;
    let mut request = ::http::Request::new(http_body_util::Full::new(Bytes::from_static(b"{}")));
    *request.method_mut() = Method::POST;
    let sent = live.send(request, Duration::from_secs(5), upstream.place()).await;
    let Err(super::connection::SendFault::Unsent(request)) = sent else { unreachable!("{sent:?}") };
    assert_eq!(request.method(), Method::POST);
}

#[tokio::test]
async fn a_request_that_was_written_is_never_sent_again() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let url = scripted(move |_, mut stream| {
        let requests = counted.clone();
        async move {
            // Answers the first request of a connection, takes the second and hangs up.
            while !read_request(&mut stream).await.is_empty() {
                if requests.fetch_add(1, Ordering::SeqCst) > 0 {
                    return;
                }
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        }
    })
    .await;
    let upstream = upstream(&url, "/");
    assert_eq!(text(upstream.post(wire("{}"), HeaderMap::new()).await).await.0, 200);
    let second = upstream.post(wire("{}"), HeaderMap::new()).await;
    assert!(matches!(second, Err(UpstreamError::Closed { .. })), "{second:?}");
    assert_eq!(requests.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_server_that_says_when_it_closes_is_believed() {
    let (url, _) = server().await;
    let upstream = upstream(&url, "/count");
    let reply = upstream.post(wire("{}"), HeaderMap::new()).await;
    assert_eq!(text(reply).await.0, 200);
    let live = upstream.pool.take().await;
    assert!(live.as_ref().is_some_and(|live| live.keep_alive.is_none()));
    assert_eq!(super::reply::offered_time("timeout=5, max=100"), Some(Duration::from_secs(4)));
    assert_eq!(super::reply::offered_time("max=100"), None);
}

#[tokio::test]
async fn a_slow_head_is_given_up_and_the_server_notices() {
    let (url, seen) = server().await;
    let reply = upstream(&url, "/slow").post_within(wire("{}"), HeaderMap::new(), Duration::from_millis(200)).await;
    assert!(matches!(reply, Err(UpstreamError::Timeout { .. })), "{reply:?}");
    for _ in 0..100 {
        if seen.dropped.load(Ordering::SeqCst) == 1 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    unreachable!("the server still works on a call that was given up");
}

#[tokio::test]
async fn dropping_a_reply_closes_its_connection() {
    let (sender, mut closed) = tokio::sync::mpsc::channel(1);
    let url = scripted(move |_, mut stream| {
        let sender = sender.clone();
        async move {
            let _ = read_request(&mut stream).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: 1\n\n";
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = sender.send(stream.read(&mut [0; 10]).await.unwrap_or(0)).await;
        }
    })
    .await;
    let reply = upstream(&url, "/").post(wire("{}"), HeaderMap::new()).await;
    let Ok(ReplyBody::Events(mut events)) = reply.map(|reply| reply.body) else { unreachable!("events") };
    assert_eq!(events.next_item().await, Ok(Some(Item::Event(Event::of(Bytes::from_static(b"1"))))));
    drop(events);
    let end = tokio::time::timeout(Duration::from_secs(5), closed.recv()).await;
    assert_eq!(end, Ok(Some(0)));
}

#[tokio::test]
async fn headers_without_end_are_refused() {
    let url = scripted(|_, mut stream| async move {
        let _ = read_request(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nx: ").await;
        while stream.write_all(&[b'y'; 10_000]).await.is_ok() {}
    })
    .await;
    let reply = upstream(&url, "/").post(wire("{}"), HeaderMap::new()).await;
    let said = reply.map(|_| ()).map_err(|error| error.to_string());
    assert!(said.as_ref().is_err_and(|said| said.contains("headers larger than the limit")), "{said:?}");
}

#[tokio::test]
async fn what_is_not_http_is_refused() {
    let url = scripted(|_, mut stream| async move {
        let _ = read_request(&mut stream).await;
        let _ = stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n").await;
    })
    .await;
    let reply = upstream(&url, "/").post(wire("{}"), HeaderMap::new()).await;
    assert!(matches!(reply, Err(UpstreamError::Protocol { .. })), "{reply:?}");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_an_error() {
    for head in ["content-length: 100", "transfer-encoding: chunked"] {
        let url = scripted(move |_, mut stream| async move {
            let _ = read_request(&mut stream).await;
            let text = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{head}\r\n\r\n5\r\n{{\"a\":\r\n");
            let _ = stream.write_all(text.as_bytes()).await;
        })
        .await;
        let reply = upstream(&url, "/").post(wire("{}"), HeaderMap::new()).await;
        let Ok(ReplyBody::Json(body)) = reply.map(|reply| reply.body) else { unreachable!("json") };
        let whole = body.collect(1000).await;
        assert!(matches!(whole, Err(UpstreamError::Closed { .. })), "{head}: {whole:?}");
    }
}

#[tokio::test]
async fn events_are_decoded_across_chunks() {
    let (url, _) = server().await;
    let reply = upstream(&url, "/events").get_stream(HeaderMap::new()).await;
    let Ok(ReplyBody::Events(mut events)) = reply.map(|reply| reply.body) else { unreachable!("events") };
    assert_eq!(events.next_item().await, Ok(Some(Item::Comment(Bytes::from_static(b"hi")))));
    let event = Event { id: Some(Bytes::from_static(b"1")), ..Event::of(Bytes::from_static(b"{\"a\"\n:1}")) };
    assert_eq!(events.next_item().await, Ok(Some(Item::Event(event))));
    assert_eq!(events.next_item().await, Ok(None));
}

#[tokio::test]
async fn statuses_and_their_bodies() {
    let (url, _) = server().await;
    let post = |path| {
        let upstream = upstream(&url, path);
        async move { text(upstream.post(wire("{}"), HeaderMap::new()).await).await }
    };
    assert_eq!(post("/accepted").await, (202, "Empty".to_owned()));
    assert_eq!(post("/unauthorized").await, (401, "who are you".to_owned()));
    assert_eq!(post("/missing").await, (404, "{\"error\":{\"code\":-32601}}".to_owned()));
    assert_eq!(post("/moved").await, (307, "Empty".to_owned()));
    let (status, shown) = post("/not-allowed").await;
    assert_eq!((status, shown.len()), (405, 8192));
    let (_, said) = post("/squeezed").await;
    assert!(said.contains("compression"), "{said}");
}

#[tokio::test]
async fn large_bodies_go_both_ways_and_limits_hold() {
    let (url, _) = server().await;
    let upstream = upstream(&url, "/echo");
    let large = Bytes::from(vec![b'7'; 3_000_000]);
    let reply = upstream.post(Wire::new(large.clone()), HeaderMap::new()).await;
    let Ok(ReplyBody::Json(body)) = reply.map(|reply| reply.body) else { unreachable!("json") };
    assert!(body.collect(3_000_000).await.is_ok_and(|whole| whole == large));
    let reply = upstream.post(Wire::new(large.clone()), HeaderMap::new()).await;
    let Ok(ReplyBody::Json(body)) = reply.map(|reply| reply.body) else { unreachable!("json") };
    assert!(matches!(body.collect(2_999_999).await, Err(UpstreamError::TooLarge { .. })));
}

#[tokio::test]
async fn a_clients_credentials_do_not_pass_and_ours_do() {
    let (url, _) = server().await;
    let target = HttpTarget {
        headers: vec![("X-Api-Key".to_owned(), Secret::new("ours".to_owned()))],
        ..HttpTarget::new(format!("{url}/headers"))
    };
    let Ok(upstream) = HttpUpstream::new(&target) else { unreachable!("a good target") };
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("authorization", "Bearer client"),
        ("cookie", "client=1"),
        ("host", "client.example"),
        ("proxy-authorization", "client"),
        ("transfer-encoding", "chunked"),
        ("content-length", "999"),
        ("x-api-key", "client"),
        ("mcp-method", "tools/call"),
    ] {
        headers.append(name, HeaderValue::from_static(value));
        headers.append(name, HeaderValue::from_static(value));
    }
    let (_, seen) = text(upstream.post(wire("{}"), headers.clone()).await).await;
    assert!(!seen.contains("client"), "{seen}");
    for expected in
        ["ours", "tools/call", "application/json, text/event-stream", "\"content-length\": \"2\"", "127.0.0.1"]
    {
        assert!(seen.contains(expected), "{expected}: {seen}");
    }
    let (_, seen) = text(upstream.delete(headers).await).await;
    assert!(seen.starts_with(Method::DELETE.as_str()) && !seen.contains("client"), "{seen}");
    let refreshed = upstream.with_headers(&[("Authorization".to_owned(), Secret::new("Bearer new".to_owned()))]);
    let Ok(refreshed) = refreshed else { unreachable!("a good header") };
    let (_, seen) = text(refreshed.post(wire("{}"), HeaderMap::new()).await).await;
    assert!(seen.contains("Bearer new") && !seen.contains("ours"), "{seen}");
    assert!(!format!("{refreshed:?}").contains("new"));
}

#[tokio::test]
async fn an_address_nobody_listens_on() {
    let (listener, url) = listen().await;
    drop(listener);
    let reply = upstream(&url, "/?key=hush").post(wire("{}"), HeaderMap::new()).await;
    let Err(UpstreamError::Unreachable { place, reason }) = reply else { unreachable!("{reply:?}") };
    assert!(place.starts_with("127.0.0.1:") && !place.contains("hush") && !reason.contains("hush"));
}

#[tokio::test]
async fn a_unix_socket() {
    let Ok(directory) = tempfile::tempdir() else { unreachable!("a directory") };
    let path = directory.path().join("server.sock");
    let Ok(listener) = UnixListener::bind(&path) else { unreachable!("a socket") };
    let seen = Arc::new(Seen::default());
    let shared = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, shared.clone()));
        }
    });
    let upstream = upstream(&format!("unix://{}", path.display()), "#/count");
    assert_eq!(text(upstream.post(wire("{}"), HeaderMap::new()).await).await, (200, "0".to_owned()));
    assert_eq!(text(upstream.post(wire("{}"), HeaderMap::new()).await).await, (200, "1".to_owned()));
    assert_eq!(seen.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn waiting_connections_are_closed_in_time() {
    let (url, _) = server().await;
    let timeouts = Timeouts { idle: Duration::from_millis(50), ..PATIENT };
    let target = HttpTarget { timeouts, ..HttpTarget::new(format!("{url}/count")) };
    let Ok(upstream) = HttpUpstream::new(&target) else { unreachable!("a good target") };
    assert_eq!(text(upstream.post(wire("{}"), HeaderMap::new()).await).await.0, 200);
    assert_eq!(upstream.pool.waiting_count(), 1);
    for _ in 0..1_000 {
        if upstream.pool.waiting_count() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(upstream.pool.waiting_count(), 0);
}

#[tokio::test]
async fn secure_connections_check_the_server() {
    let Ok(certified) = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]) else {
        unreachable!("a certificate")
    };
    let certificate = certified.cert.der().to_vec();
    let (listener, url) = listen().await;
    let acceptor = acceptor(&certified);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(stream) = acceptor.accept(stream).await {
                    serve(stream, Arc::default()).await;
                }
            });
        }
    });
    let by_name = url.replace("http://127.0.0.1", "https://localhost");
    let with = |url: &str, tls: Option<Tls>| {
        let target = HttpTarget { tls, timeouts: PATIENT, ..HttpTarget::new(format!("{url}/count")) };
        HttpUpstream::new(&target)
    };
    let trusted = Tls::trusting([certificate]).ok();
    // However it is written, and whatever the name stands for when it is looked up.
    let numbered = url.replace("http:", "https:");
    for place in [&by_name, &numbered, &numbered.replace("127.0.0.1", "[::ffff:127.0.0.1]"), &url] {
        let target = HttpTarget { tls: trusted.clone(), public_only: true, ..HttpTarget::new(place.clone()) };
        let Ok(near) = HttpUpstream::new(&target) else { unreachable!("a good target") };
        let (_, said) = text(near.post(wire("{}"), HeaderMap::new()).await).await;
        assert!(said.contains("public network"), "{place}: {said}");
    }
    let Ok(good) = with(&by_name, trusted.clone()) else { unreachable!("a good target") };
    for count in ["0", "1"] {
        let (status, seen) = text(good.post(wire("{}"), HeaderMap::new()).await).await;
        assert_eq!((status, seen.as_str()), (200, count));
    }
    for bad in [with(&by_name, Tls::trusting([]).ok()), with(&url.replace("http:", "https:"), trusted)] {
        let Ok(bad) = bad else { unreachable!("a good target") };
        let reply = bad.post(wire("{}"), HeaderMap::new()).await;
        assert!(matches!(reply, Err(UpstreamError::Tls { .. })), "{reply:?}");
    }
}

fn acceptor(certified: &rcgen::CertifiedKey<rcgen::KeyPair>) -> tokio_rustls::TlsAcceptor {
    use tokio_rustls::rustls::pki_types::PrivateKeyDer;
    use tokio_rustls::rustls::{ServerConfig, crypto};
    let Ok(key) = PrivateKeyDer::try_from(certified.signing_key.serialize_der()) else { unreachable!("a key") };
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(|builder| builder.with_no_client_auth().with_single_cert(vec![certified.cert.der().clone()], key));
    let Ok(Ok(config)) = config else { unreachable!("a configuration") };
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}
