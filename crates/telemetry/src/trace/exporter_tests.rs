//! Spans at a real HTTP receiver: what arrives, and what happens when it does not.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use toolwarden_core::{Decision, Reason, Secret, Status};

use super::{Exporter, LARGEST_BATCH, MOST_WAITING, start};
use crate::paper::Paper;
use crate::trace::{Collector, CollectorError, Ending, TraceContext, Tracer};
use crate::{Door, LogFormat};

type Outcome = Result<(), Box<dyn Error>>;
type Received = (String, HeaderMap, Value);

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A collector that keeps what it gets. Status 0 answers nothing.
#[derive(Debug, Clone, Default)]
struct Receiver {
    received: Arc<Mutex<Vec<Received>>>,
    status: Arc<AtomicU16>,
}

impl Receiver {
    async fn open(status: u16) -> Result<(Self, String), Box<dyn Error>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let receiver = Self { status: Arc::new(AtomicU16::new(status)), ..Self::default() };
        let own = receiver.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let receiver = own.clone();
                let service = service_fn(move |request| receiver.clone().take(request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok((receiver, address))
    }

    async fn take(self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let body = serde_json::from_slice(&body).unwrap_or_default();
        self.lock().push((parts.uri.path().to_owned(), parts.headers, body));
        let status = self.status.load(Ordering::Relaxed);
        if status == 0 {
            std::future::pending::<()>().await;
        }
        let mut response = Response::new(Full::from("{}"));
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
        Ok(response)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Received>> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spans(&self) -> Vec<Value> {
        let spans = |(_, _, body): &Received| {
            let spans = body.pointer("/resourceSpans/0/scopeSpans/0/spans").and_then(Value::as_array);
            spans.cloned().unwrap_or_default()
        };
        self.lock().iter().flat_map(spans).collect()
    }
}

fn started(address: &str) -> Result<(Tracer, Exporter), CollectorError> {
    let headers = BTreeMap::from([("authorization".to_owned(), Secret::new("Bearer t0ken".to_owned()))]);
    Ok(start(Collector::new(address, &headers)?, "serve-1"))
}

fn ending(tool: &str, reason: Reason, status: Status) -> Ending {
    Ending {
        method: "tools/call".into(),
        server: Some("notes".into()),
        tool: Some(tool.into()),
        session: Some("5f".to_owned()),
        door: Door::Http,
        call: 7,
        decision: Some(reason.decision()),
        reason: Some(reason),
        status,
        took: Duration::from_millis(5),
        request_bytes: 10,
        response_bytes: 20,
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap_or_default()
}

fn end_one(tracer: &Tracer) {
    let span = tracer.begin(None, at(100));
    tracer.end(span, ending("write", Reason::AllowlistMatch, Status::Ok));
}

/// The attributes of a span by name.
fn attributes(span: &Value) -> BTreeMap<String, Value> {
    let all = span.get("attributes").and_then(Value::as_array).into_iter().flatten();
    let pair = |one: &Value| Some((one.get("key")?.as_str()?.to_owned(), one.get("value")?.clone()));
    all.filter_map(pair).collect()
}

#[tokio::test]
async fn a_span_arrives_as_otlp() -> Outcome {
    let (receiver, address) = Receiver::open(200).await?;
    let (tracer, exporter) = started(&address)?;
    let client = TraceContext::parse(PARENT, Some("a=b"));
    let below = tracer.begin(client, at(100));
    let told = below.context().to_string();
    tracer.end(below, ending("write", Reason::AllowlistMatch, Status::ToolError));
    exporter.stop().await;
    let (path, headers, body) = receiver.lock().first().cloned().ok_or("nothing came")?;
    assert_eq!(path, "/v1/traces");
    assert_eq!(headers.get("authorization").map(http::HeaderValue::as_bytes), Some(b"Bearer t0ken".as_slice()));
    assert_eq!(headers.get("content-type").map(http::HeaderValue::as_bytes), Some(b"application/json".as_slice()));
    let resource = body.pointer("/resourceSpans/0/resource").ok_or("no resource")?;
    assert_eq!(attributes(resource).get("service.name"), Some(&json!({ "stringValue": "toolwarden" })));
    let span = receiver.spans().first().cloned().ok_or("no span")?;
    let text = |name: &str| span.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    assert_eq!(text("traceId"), "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(text("parentSpanId"), "b7ad6b7169203331");
    assert_eq!(told, format!("00-{}-{}-01", text("traceId"), text("spanId")), "a server is told this very span");
    assert_eq!((text("name"), text("traceState")), ("tools/call".to_owned(), "a=b".to_owned()));
    assert_eq!(text("startTimeUnixNano"), "100000000000");
    assert_eq!(text("endTimeUnixNano"), "100005000000");
    assert_eq!(span.pointer("/status/code"), Some(&json!(2)));
    let said = attributes(&span);
    for (name, value) in [
        ("mcp.method.name", "tools/call"),
        ("mcp.session.id", "5f"),
        ("gen_ai.tool.name", "write"),
        ("gen_ai.operation.name", "execute_tool"),
        ("network.transport", "tcp"),
        ("error.type", "tool_error"),
        ("toolwarden.server", "notes"),
        ("toolwarden.door", "mcp_http"),
        ("toolwarden.decision", "allow"),
        ("toolwarden.reason", "allowlist_match"),
        ("toolwarden.status", "tool_error"),
        ("toolwarden.call", "7"),
    ] {
        assert_eq!(said.get(name), Some(&json!({ "stringValue": value })), "{name}");
    }
    assert_eq!(said.get("toolwarden.response_bytes"), Some(&json!({ "intValue": "20" })));
    assert_eq!(tracer.counts().sent.load(Ordering::Relaxed), 1);
    Ok(())
}

#[tokio::test]
async fn a_trace_of_its_own_is_like_no_other_and_texts_of_clients_are_left_out() -> Outcome {
    let (receiver, address) = Receiver::open(200).await?;
    let (tracer, exporter) = started(&address)?;
    end_one(&tracer);
    end_one(&tracer);
    let unknown = ending("pl4nted-s3cret", Reason::UnknownTool, Status::Denied);
    tracer.end(tracer.begin(None, at(1)), unknown.clone());
    let unlisted =
        Ending { method: "pl4nted-s3cret".into(), reason: Some(Reason::MethodNotListed), tool: None, ..unknown };
    tracer.end(tracer.begin(None, at(1)), unlisted);
    let unsampled = TraceContext::parse(&PARENT.replace("-01", "-00"), None);
    tracer.end(tracer.begin(unsampled, at(1)), ending("write", Reason::Paid, Status::Ok));
    exporter.stop().await;
    let spans = receiver.spans();
    assert_eq!(spans.len(), 4, "one was not wanted: {spans:?}");
    let mut ids: Vec<_> = spans.iter().flat_map(|span| [span.get("traceId"), span.get("spanId")]).collect();
    ids.sort_by_key(|id| id.map(ToString::to_string));
    ids.dedup();
    assert_eq!(ids.len(), 8);
    assert!(spans.iter().all(|span| span.get("parentSpanId").is_none()));
    assert!(!format!("{spans:?}").contains("pl4nted-s3cret"), "{spans:?}");
    assert_eq!(
        attributes(spans.first().ok_or("none")?).get("toolwarden.decision"),
        Some(&json!({ "stringValue": Decision::Allow.as_str() }))
    );
    Ok(())
}

#[tokio::test]
async fn a_collector_that_hangs_blocks_nobody_and_spans_that_do_not_fit_are_counted() -> Outcome {
    let (receiver, address) = Receiver::open(0).await?;
    let (tracer, exporter) = started(&address)?;
    // No await: nobody carries anything away meanwhile.
    for _ in 0..MOST_WAITING + 5 {
        end_one(&tracer);
    }
    assert_eq!(tracer.counts().dropped.load(Ordering::Relaxed), 5);
    // Each of the batches would wait longer than this by itself.
    let ended = tokio::time::timeout(super::GOODBYE * 3, exporter.stop()).await;
    assert!(ended.is_ok(), "the end is bounded");
    assert!(receiver.spans().len() <= LARGEST_BATCH);
    Ok(())
}

async fn until(counted: impl Fn() -> bool) -> bool {
    for _ in 0..2000 {
        if counted() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn a_collector_that_fails_is_told_of_once_and_once_when_it_is_back() -> Outcome {
    let paper = Paper::default();
    let _guard = paper.take_log(LogFormat::Text { colours: false });
    let (receiver, address) = Receiver::open(503).await?;
    let headers = BTreeMap::from([("authorization".to_owned(), Secret::new("Bearer t0ken".to_owned()))]);
    let counts = Arc::new(super::SpanCounts::default());
    let collector = Collector::new(&address, &headers)?;
    let (queue, mut spans) = tokio::sync::mpsc::channel(16);
    let tracer = Tracer::new(queue, counts.clone());
    let mut delivery =
        super::Delivery { collector, node: "serve-1".to_owned(), counts: counts.clone(), is_failing: false };
    let mut batch = Vec::new();
    for status in [503, 503, 200, 200] {
        receiver.status.store(status, Ordering::Relaxed);
        end_one(&tracer);
        batch.extend(spans.recv().await);
        delivery.deliver(&mut batch).await;
    }
    assert_eq!((counts.failed.load(Ordering::Relaxed), counts.sent.load(Ordering::Relaxed)), (2, 2));
    let log = paper.text();
    assert_eq!(log.matches("traces are not delivered").count(), 1, "{log}");
    assert_eq!(log.matches("takes traces again").count(), 1, "{log}");
    assert!(log.contains("answers 503") && !log.contains("t0ken"), "{log}");
    Ok(())
}

#[tokio::test]
async fn spans_are_gathered_and_delivered_without_being_asked() -> Outcome {
    let (receiver, address) = Receiver::open(200).await?;
    let (tracer, _exporter) = started(&address)?;
    for _ in 0..3 {
        end_one(&tracer);
    }
    assert!(until(|| tracer.counts().sent.load(Ordering::Relaxed) == 3).await);
    assert_eq!(receiver.lock().len(), 1, "in one batch");
    Ok(())
}

#[test]
fn what_cannot_be_a_collector_is_refused_without_being_repeated() {
    let none = BTreeMap::new();
    for address in ["nothing", "ftp://h", "http://user:p4ssword@h", "http://h?key=p4ssword", "unix:/x"] {
        let refused = Collector::new(address, &none).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!refused.is_empty() && !refused.contains("p4ssword"), "{address}: {refused}");
    }
    let wrong = BTreeMap::from([("a header".to_owned(), Secret::new("p4ssword".to_owned()))]);
    let refused = Collector::new("http://h", &wrong).err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("a header") && !refused.contains("p4ssword"), "{refused}");
    let broken = BTreeMap::from([("a".to_owned(), Secret::new("p4ssword\r\nb: c".to_owned()))]);
    assert!(Collector::new("http://h", &broken).is_err());
    let secret = BTreeMap::from([("a".to_owned(), Secret::new("p4ssword".to_owned()))]);
    assert!(!format!("{:?}", Collector::new("http://h", &secret)).contains("p4ssword"));
}
