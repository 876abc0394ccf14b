//! Traces through the corridor: what servers are told, what the collector hears, and what neither may see.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use toolwarden_telemetry::trace::{Collector, Exporter, start};

use super::doors::{Speech, request, send_with};
use super::house::{Given, House};
use super::recorder::Speaks;

type Outcome = Result<(), Box<dyn Error>>;
type Bodies = Arc<Mutex<Vec<String>>>;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const OTHER: &str = "00-11111111111111111111111111111111-2222222222222222-01";
const ARGUMENTS: &str = r#""arguments":{"text":"pl4nted-argument"}"#;

/// A house whose calls are told to a collector.
struct Traced {
    house: House,
    exporter: Exporter,
    bodies: Bodies,
}

impl Traced {
    async fn build(speaks: Speaks) -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = format!("http://{}", listener.local_addr()?);
        let bodies = Bodies::default();
        let kept = bodies.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let kept = kept.clone();
                let service = service_fn(move |request| keep(kept.clone(), request));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        let (tracer, exporter) = start(Collector::new(&address, &BTreeMap::new())?, "test-1");
        let given = Given { allowlist: &["notes:write"], tracer: Some(tracer), ..Given::default() };
        let house = House::before(&given, speaks).await.ok_or("no gateway")?;
        Ok(Self { house, exporter, bodies })
    }

    /// Every span, once the last has been told.
    async fn spans(self) -> Vec<Value> {
        self.exporter.stop().await;
        let bodies = self.bodies.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let spans = |body: &String| {
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            body.pointer("/resourceSpans/0/scopeSpans/0/spans").and_then(Value::as_array).cloned().unwrap_or_default()
        };
        bodies.iter().flat_map(spans).collect()
    }
}

async fn keep(bodies: Bodies, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    bodies.lock().unwrap_or_else(PoisonError::into_inner).push(String::from_utf8_lossy(&body).into_owned());
    Ok(Response::new(Full::from("{}")))
}

/// A call, with something more in its `_meta`.
fn call(speech: Speech, tool: &str, meta: &str) -> String {
    let params = format!("\"name\":\"{tool}\",{ARGUMENTS}");
    let text = request(speech, "tools/call", &params);
    match speech {
        Speech::Modern if !meta.is_empty() => text.replace("\"_meta\":{", &format!("\"_meta\":{{{meta},")),
        Speech::Legacy if !meta.is_empty() => text.replace(&params, &format!("{params},\"_meta\":{{{meta}}}")),
        _ => text,
    }
}

fn headers(pairs: &[(&'static str, &'static str)]) -> Vec<(HeaderName, HeaderValue)> {
    let header =
        |(name, value): &(&'static str, &'static str)| (HeaderName::from_static(name), HeaderValue::from_static(value));
    pairs.iter().map(header).collect()
}

/// What the server was told: its header, and its `_meta`.
fn told(house: &House) -> (Option<String>, Option<String>, String) {
    let sent = house.recorder.call_headers().pop().unwrap_or_default();
    let header = sent.get("traceparent").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let text = house.recorder.calls().pop().map(|(_, text)| text).unwrap_or_default();
    let message: Value = serde_json::from_str(&text).unwrap_or_default();
    let meta = message.pointer("/params/_meta/traceparent").and_then(Value::as_str).map(str::to_owned);
    (header, meta, text)
}

fn text(span: &Value, name: &str) -> String {
    span.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_trace_in_meta_goes_on_in_meta_and_header_across_every_era() -> Outcome {
    for (speech, speaks) in [
        (Speech::Modern, Speaks::Both),
        (Speech::Legacy, Speaks::Both),
        (Speech::Modern, Speaks::Legacy),
        (Speech::Legacy, Speaks::Modern),
    ] {
        let traced = Traced::build(speaks).await?;
        traced
            .house
            .recorder
            .answers(r#"{"content":[{"type":"text","text":"pl4nted-result"}],"resultType":"complete"}"#);
        let meta = format!(r#""traceparent":"{PARENT}","tracestate":"a=b","baggage":"k=v""#);
        // The header says something else: what stands in the message counts.
        let more = headers(&[("traceparent", OTHER)]);
        let answer = send_with(&traced.house, speech, &call(speech, "write", &meta), &more).await;
        assert!(answer.contains("pl4nted-result"), "{speech:?} {speaks:?}: {answer}");
        let (header, in_meta, whole) = told(&traced.house);
        assert!(header.is_some() && header == in_meta, "{speech:?} {speaks:?}: {header:?} {whole}");
        assert!(whole.contains(r#""tracestate":"a=b","baggage":"k=v""#), "{whole}");
        let spans = traced.spans().await;
        let [span] = spans.as_slice() else { return Err(format!("{speech:?} {speaks:?}: {spans:?}").into()) };
        assert_eq!(
            (text(span, "traceId"), text(span, "parentSpanId")),
            (TRACE.to_owned(), "b7ad6b7169203331".to_owned())
        );
        assert_eq!(header, Some(format!("00-{TRACE}-{}-01", text(span, "spanId"))));
        let all = format!("{spans:?}");
        assert!(!all.contains("pl4nted") && !all.contains("k=v"), "{all}");
    }
    Ok(())
}

#[tokio::test]
async fn a_trace_in_headers_goes_on_in_headers_alone() -> Outcome {
    let traced = Traced::build(Speaks::Both).await?;
    let more = headers(&[("traceparent", PARENT), ("tracestate", "a=b"), ("baggage", "k=v")]);
    let plain = call(Speech::Modern, "write", "");
    send_with(&traced.house, Speech::Modern, &plain, &more).await;
    let (header, in_meta, whole) = told(&traced.house);
    assert!(header.as_ref().is_some_and(|header| header.contains(TRACE) && header != PARENT), "{header:?}");
    assert!(in_meta.is_none(), "{whole}");
    let sent = traced.house.recorder.call_headers().pop().unwrap_or_default();
    assert_eq!(sent.get("tracestate"), Some(&HeaderValue::from_static("a=b")));
    assert!(sent.get("baggage").is_none());
    // Without any, a trace begins here; a wrong one is none.
    for more in [headers(&[]), headers(&[("traceparent", "00-wrong")])] {
        send_with(&traced.house, Speech::Modern, &plain, &more).await;
        let (header, ..) = told(&traced.house);
        assert!(header.is_some_and(|header| header.len() == PARENT.len() && !header.contains(TRACE)));
    }
    let spans = traced.spans().await;
    assert_eq!(spans.len(), 3, "{spans:?}");
    Ok(())
}

#[tokio::test]
async fn refusals_have_spans_too_and_lists_have_none() -> Outcome {
    let traced = Traced::build(Speaks::Both).await?;
    for tool in ["other", "pl4nted-tool"] {
        send_with(&traced.house, Speech::Modern, &call(Speech::Modern, tool, ""), &[]).await;
    }
    send_with(&traced.house, Speech::Modern, &request(Speech::Modern, "tools/list", ""), &[]).await;
    let spans = traced.spans().await;
    assert_eq!(spans.len(), 2, "{spans:?}");
    let all = format!("{spans:?}");
    assert!(all.contains("not_in_allowlist") && all.contains("unknown_tool") && !all.contains("pl4nted"), "{all}");
    Ok(())
}

#[tokio::test]
async fn without_tracing_meta_passes_as_it_is_and_headers_stay_here() -> Outcome {
    let given = Given { allowlist: &["notes:write"], ..Given::default() };
    let house = House::build(&given).await.ok_or("no gateway")?;
    let meta = format!(r#""traceparent":"{PARENT}""#);
    send_with(&house, Speech::Modern, &call(Speech::Modern, "write", &meta), &headers(&[("traceparent", OTHER)])).await;
    let (header, in_meta, _) = told(&house);
    assert_eq!((header, in_meta.as_deref()), (None, Some(PARENT)));
    Ok(())
}
