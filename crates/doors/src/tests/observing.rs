//! `/metrics` and `/readyz`: what calls leave there, whoever made them, and that no secret does.

use std::error::Error;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use super::doors::{Entrance, Reach, Speech, open_session, post_in_session, send};
use super::house::{Given, House};
use super::patience::eventually;
use crate::serve_request;

type Outcome = Result<(), Box<dyn Error>>;

const CONFIG: &str = "[auto_run]\nmode = \"use_allowlist\"\n";

async fn built() -> Result<House, Box<dyn Error>> {
    let given = Given { config: CONFIG, allowlist: &["notes:write"], ..Given::default() };
    House::build(&given).await.ok_or_else(|| "no gateway".into())
}

async fn asked(house: &House, method: Method, path: &str, host: &str) -> Result<(StatusCode, String), Box<dyn Error>> {
    let mut request = Request::new(Full::<Bytes>::default());
    *request.method_mut() = method;
    *request.uri_mut() = path.parse()?;
    request.headers_mut().insert(http::header::HOST, HeaderValue::from_str(host)?);
    let response = serve_request(&house.gateway, request).await;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    Ok((status, String::from_utf8_lossy(&body).into_owned()))
}

async fn metrics(house: &House) -> Result<String, Box<dyn Error>> {
    let (status, page) = asked(house, Method::GET, "/metrics", "localhost").await?;
    assert_eq!(status, StatusCode::OK);
    Ok(page)
}

/// The value of one line.
fn value(page: &str, line: &str) -> f64 {
    let found = page.lines().find_map(|one| one.strip_prefix(line)?.strip_prefix(' ')?.parse().ok());
    found.unwrap_or(-1.0)
}

#[tokio::test]
async fn calls_are_counted_at_every_door_as_they_ended() -> Outcome {
    let house = built().await?;
    let call = r#""name":"write","arguments":{"note":"pl4nted-s3cret"}"#;
    let held = r#""name":"other","arguments":{"note":"pl4nted-s3cret"}"#;
    let unknown = r#""name":"pl4nted-s3cret","arguments":{}"#;
    for (entrance, speech) in [
        (Entrance::Http(Reach::One), Speech::Modern),
        (Entrance::Http(Reach::One), Speech::Legacy),
        (Entrance::Stdio(Reach::One), Speech::Modern),
    ] {
        for params in [call, held, unknown] {
            send(&house, entrance, speech, "tools/call", params).await;
        }
    }
    let page = metrics(&house).await?;
    let calls = |door: &str, decision: &str, status: &str| {
        let labels = format!("server=\"notes\",door=\"{door}\",decision=\"{decision}\",status=\"{status}\"");
        value(&page, &format!("toolwarden_calls_total{{{labels}}}")) as i64
    };
    assert_eq!(calls("mcp_http", "allow", "ok"), 2, "{page}");
    assert_eq!(calls("mcp_stdio", "allow", "ok"), 1, "{page}");
    assert_eq!(calls("mcp_http", "hold", "held"), 2, "{page}");
    assert_eq!(calls("mcp_http", "deny", "denied"), 2, "{page}");
    for (line, expected) in [
        ("toolwarden_refusals_total{decision=\"hold\",reason=\"not_in_allowlist\"}", 3.0),
        ("toolwarden_refusals_total{decision=\"deny\",reason=\"unknown_tool\"}", 3.0),
        ("toolwarden_calls_in_flight{server=\"notes\"}", 0.0),
        ("toolwarden_call_duration_seconds_count{server=\"notes\"}", 3.0),
        ("toolwarden_call_admission_seconds_count{server=\"notes\"}", 3.0),
        ("toolwarden_server_state{server=\"notes\",state=\"connected\"}", 1.0),
        ("toolwarden_journal_writable", 1.0),
        ("toolwarden_policy_is_current", 1.0),
    ] {
        assert!((value(&page, line) - expected).abs() < f64::EPSILON, "{line}\n{page}");
    }
    for line in [
        "toolwarden_request_bytes_total{server=\"notes\"}",
        "toolwarden_response_bytes_total{server=\"notes\"}",
        "toolwarden_journal_records_total",
        "toolwarden_sessions",
        "toolwarden_resident_memory_bytes",
        "toolwarden_open_files",
        "toolwarden_start_time_seconds",
    ] {
        assert!(value(&page, line) > 0.0, "{line}\n{page}");
    }
    assert!(!page.contains("pl4nted-s3cret"), "{page}");
    Ok(())
}

#[tokio::test]
async fn a_call_on_its_way_is_in_flight_and_one_whose_client_went_is_cancelled() -> Outcome {
    let house = built().await?;
    let session = open_session(&house).await;
    house.recorder.goes_silent(true);
    let call = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"write","arguments":{}}}"#;
    {
        let mut going = Box::pin(post_in_session(&house, &session, call));
        let in_flight = eventually(async || {
            let _ = tokio::time::timeout(std::time::Duration::from_millis(1), &mut going).await;
            let page = metrics(&house).await.unwrap_or_default();
            value(&page, "toolwarden_calls_in_flight{server=\"notes\"}") > 0.5
        });
        assert!(in_flight.await);
    }
    let page = metrics(&house).await?;
    assert!(value(&page, "toolwarden_calls_in_flight{server=\"notes\"}").abs() < f64::EPSILON, "{page}");
    assert!(page.contains("decision=\"allow\",status=\"cancelled\"} 1\n"), "{page}");
    Ok(())
}

#[tokio::test]
async fn what_is_turned_away_at_the_door_is_counted_and_not_recorded() -> Outcome {
    let house = built().await?;
    let before = house.records().await.len();
    assert_eq!(asked(&house, Method::GET, "/mcp/notes", "evil.example").await?.0, StatusCode::FORBIDDEN);
    assert_eq!(asked(&house, Method::POST, "/mcp/notes", "localhost").await?.0, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let session = HeaderValue::from_static("pl4nted-s3cret");
    post_in_session(&house, &session, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    post_in_session(&house, &session, "pl4nted-s3cret").await;
    let page = metrics(&house).await?;
    for (why, count) in [("host", 1), ("headers", 1), ("session", 1), ("malformed", 1), ("origin", 0)] {
        let line = format!("toolwarden_messages_turned_away_total{{why=\"{why}\"}} {count}\n");
        assert!(page.contains(&line), "{line}{page}");
    }
    assert!(!page.contains("pl4nted-s3cret"), "{page}");
    // The mark with which records are asked for is one itself.
    assert_eq!(house.records().await.len(), before + 1);
    Ok(())
}

#[tokio::test]
async fn the_pages_are_behind_the_host_check_and_only_read() -> Outcome {
    let house = built().await?;
    for path in ["/metrics", "/readyz", "/healthz"] {
        assert_eq!(asked(&house, Method::GET, path, "evil.example").await?.0, StatusCode::FORBIDDEN, "{path}");
        assert_eq!(asked(&house, Method::POST, path, "localhost").await?.0, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(asked(&house, Method::GET, path, "localhost").await?.0, StatusCode::OK, "{path}");
    }
    assert_eq!(asked(&house, Method::GET, "/metricsx", "localhost").await?.0, StatusCode::NOT_FOUND);
    Ok(())
}

#[tokio::test]
async fn a_server_that_is_down_is_told_and_makes_nothing_unready() -> Outcome {
    let house = built().await?;
    house.recorder.goes_down(true);
    send(&house, Entrance::Http(Reach::One), Speech::Modern, "tools/call", r#""name":"write","arguments":{}"#).await;
    let (status, text) = asked(&house, Method::GET, "/readyz", "localhost").await?;
    let detail: Value = serde_json::from_str(&text)?;
    assert_eq!(status, StatusCode::OK, "{text}");
    assert_eq!(detail.pointer("/ready"), Some(&Value::Bool(true)), "{text}");
    assert_eq!(detail.pointer("/servers/0/name"), Some(&Value::from("notes")), "{text}");
    assert_eq!(detail.pointer("/servers/0/state"), Some(&Value::from("error")), "{text}");
    assert_eq!(detail.pointer("/policy/refused"), Some(&Value::Null), "{text}");
    let page = metrics(&house).await?;
    assert!(page.contains("toolwarden_server_state{server=\"notes\",state=\"error\"} 1\n"), "{page}");
    assert!(page.contains("decision=\"none\",status=\"upstream_error\"} 1\n"), "{page}");
    Ok(())
}

#[tokio::test]
async fn a_policy_that_was_refused_is_told_and_makes_nothing_unready() -> Outcome {
    let house = built().await?;
    let reloads = &house.gateway.telemetry().reloads;
    reloads.refuse(jiff::Timestamp::UNIX_EPOCH, "rules.cedar:3: that is no rule");
    let (status, text) = asked(&house, Method::GET, "/readyz", "localhost").await?;
    assert!(status == StatusCode::OK && text.contains("\"refused\":{\"since\""), "{text}");
    assert!(!text.contains("rules.cedar"), "why is for those who may know: {text}");
    reloads.accepted(jiff::Timestamp::UNIX_EPOCH);
    let (status, text) = asked(&house, Method::GET, "/readyz", "localhost").await?;
    assert!(status == StatusCode::OK && text.contains("\"refused\":null"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_gateway_that_stops_is_not_ready() -> Outcome {
    let house = built().await?;
    house.gateway.closing().begin();
    let (status, text) = asked(&house, Method::GET, "/readyz", "localhost").await?;
    assert!(status == StatusCode::SERVICE_UNAVAILABLE && text.contains("\"stopping\":true"), "{text}");
    Ok(())
}

#[tokio::test]
async fn a_journal_that_takes_nothing_makes_it_unready() -> Outcome {
    let house = built().await?;
    house.journal.clone().close().await?;
    send(&house, Entrance::Http(Reach::One), Speech::Modern, "tools/call", r#""name":"write","arguments":{}"#).await;
    let (status, text) = asked(&house, Method::GET, "/readyz", "localhost").await?;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{text}");
    let detail: Value = serde_json::from_str(&text)?;
    assert_eq!(detail.pointer("/journal/writable"), Some(&Value::Bool(false)), "{text}");
    let page = metrics(&house).await?;
    assert!(page.contains("toolwarden_journal_writable 0\n"), "{page}");
    assert!(page.contains("toolwarden_messages_turned_away_total{why=\"record\"} 1\n"), "{page}");
    assert!(!page.contains("toolwarden_calls_total{"), "it did not run\n{page}");
    Ok(())
}
