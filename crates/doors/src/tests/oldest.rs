//! Servers of the oldest HTTP transport, which have one line for everybody.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, StatusCode};
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolwarden_conversations::Scope;
use toolwarden_core::Caller;
use toolwarden_mcp::headers::SESSION;

use super::doors::{SPEECHES, Speech, walk};
use super::eras::puppet::{Puppet, Wire};
use super::house::{Given, House, ada};
use super::recorder::{Recorder, Speaks};
use crate::serve_request;

const PATIENCE: Duration = Duration::from_secs(10);

async fn house(server: &'static str) -> Option<(House, Puppet)> {
    let puppet = Puppet::start(Wire::Oldest).await.ok()?;
    let given = Given { config: "[auto_run]\nmode = \"run_everything\"\n", server, ..Given::default() };
    let house = House::around(&given, Recorder::absent(puppet.url.clone(), Speaks::Both)).await?;
    Some((house, puppet))
}

/// The call `act` with these steps; what the client gets, whole.
async fn call(house: &House, speech: Speech, steps: &[&str]) -> String {
    call_as(house, ada(), speech, steps).await
}

async fn call_as(house: &House, caller: Caller, speech: Speech, steps: &[&str]) -> String {
    let mut params = json!({"name": "act", "arguments": {"tag": "t;", "steps": steps}});
    if let (Speech::Modern, Some(params)) = (speech, params.as_object_mut()) {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        params.insert("_meta".to_owned(), meta);
    }
    let text = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
    let said = timeout(PATIENCE, walk(house, caller, Scope::One("notes".into()), speech, &text)).await;
    said.unwrap_or_else(|_| "it hangs".to_owned())
}

#[tokio::test]
async fn a_refused_request_fails_at_once_and_alone() {
    for speech in SPEECHES {
        let built = house("").await;
        assert!(built.is_some());
        let Some((house, puppet)) = built else { return };
        // The tools become known, and the line is opened.
        assert!(call(&house, speech, &[]).await.contains("done t;"));
        let lines = puppet.lines();
        let busy = ["Pause"; 60];
        let (other, refused) = tokio::join!(call(&house, speech, &busy), call(&house, speech, &["Refuse"]));
        let refused: Value = serde_json::from_str(&refused).unwrap_or(Value::String(refused));
        let why = refused.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
        assert!(why.contains("status 413"), "{speech:?}: {refused}");
        assert!(other.contains("done t;"), "{speech:?}: {other}");
        assert!(call(&house, speech, &[]).await.contains("done t;"), "{speech:?}");
        assert_eq!(puppet.lines(), lines, "{speech:?}: the line is still the same");
        house.gateway.close().await;
    }
}

/// Calls until it goes well, a few times: a line that broke has a short rest, and what is found out counts for the
/// next call.
async fn calls_until_done(house: &House, speech: Speech, tries: usize) -> Vec<String> {
    let mut failed = Vec::new();
    for _ in 0..tries {
        let said = call(house, speech, &[]).await;
        // Newer servers answer with a stream, which is not read here.
        if said.contains("done t;") || said == "Events" {
            return Vec::new();
        }
        failed.push(said);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    failed
}

#[tokio::test]
async fn a_server_that_was_replaced_by_one_of_another_transport_is_found_out_anew() {
    for speech in SPEECHES {
        for next in [Wire::Legacy, Wire::Modern] {
            let built = house("").await;
            assert!(built.is_some());
            let Some((house, puppet)) = built else { return };
            assert!(call(&house, speech, &[]).await.contains("done t;"));
            puppet.becomes(next);
            assert_eq!(calls_until_done(&house, speech, 30).await, Vec::<String>::new(), "{speech:?} {next:?}");
            // And back again.
            puppet.becomes(Wire::Oldest);
            assert_eq!(calls_until_done(&house, speech, 30).await, Vec::<String>::new(), "{speech:?} {next:?}");
            house.gateway.close().await;
        }
    }
}

/// Who opens a conversation of their own hears nothing of the one before.
#[tokio::test]
async fn the_first_to_meet_a_replaced_server_need_not_come_twice() {
    for speech in SPEECHES {
        for next in [Wire::Legacy, Wire::Modern] {
            let built = house("").await;
            assert!(built.is_some());
            let Some((house, puppet)) = built else { return };
            assert!(call(&house, speech, &[]).await.contains("done t;"));
            puppet.becomes(next);
            let mut bob = ada();
            bob.user = Some("bob".to_owned());
            let mut said = Vec::new();
            // The line that broke has a short rest first.
            for _ in 0..50 {
                said.push(call_as(&house, bob.clone(), speech, &[]).await);
                if said.last().is_some_and(|last| last == "Events" || last.contains("done t;")) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            assert!(said.len() < 50, "{speech:?} {next:?}: {:?}", said.last());
            assert!(!said.concat().contains("has forgotten"), "{speech:?} {next:?}: {said:?}");
        }
    }
}

#[tokio::test]
async fn a_server_whose_file_says_sse_is_taken_at_its_word() {
    let built = house("type = \"sse\"").await;
    assert!(built.is_some());
    let Some((house, puppet)) = built else { return };
    assert!(call(&house, Speech::Modern, &[]).await.contains("done t;"));
    puppet.becomes(Wire::Legacy);
    // It stays an error of the server's, with a rest after each try.
    let failed = calls_until_done(&house, Speech::Modern, 10).await;
    assert_eq!(failed.len(), 10);
    assert!(!failed.concat().contains("has forgotten"), "{failed:?}");
}

fn post(body: &str, session: Option<&HeaderValue>) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from(body.to_owned()));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = http::Uri::from_static("/mcp/notes");
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    headers.extend(session.map(|session| (SESSION, session.clone())));
    request
}

#[tokio::test]
async fn a_session_with_a_server_that_was_replaced_is_over() {
    const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let built = house("").await;
    assert!(built.is_some());
    let Some((house, puppet)) = built else { return };
    let opened = serve_request(&house.gateway, post(HELLO, None)).await;
    let session = opened.headers().get(SESSION).cloned();
    let listed = serve_request(&house.gateway, post(LIST, session.as_ref())).await;
    assert_eq!((opened.status(), listed.status()), (StatusCode::OK, StatusCode::OK));
    puppet.becomes(Wire::Legacy);
    let mut statuses = Vec::new();
    // The line that broke has a short rest first.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        statuses.push(serve_request(&house.gateway, post(LIST, session.as_ref())).await.status());
        if statuses.ends_with(&[StatusCode::NOT_FOUND]) {
            break;
        }
    }
    assert!(statuses.ends_with(&[StatusCode::NOT_FOUND]), "so that the client opens another: {statuses:?}");
    let opened = serve_request(&house.gateway, post(HELLO, None)).await;
    let listed = serve_request(&house.gateway, post(LIST, opened.headers().get(SESSION))).await;
    assert_eq!((opened.status(), listed.status()), (StatusCode::OK, StatusCode::OK));
}
