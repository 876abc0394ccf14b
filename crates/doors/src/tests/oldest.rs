//! Servers of the oldest HTTP transport, which have one line for everybody.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolwarden_conversations::Scope;
use toolwarden_core::Caller;

use super::doors::{SPEECHES, Speech, open_session, post_in_session, walk};
use super::eras::puppet::{Puppet, Wire};
use super::house::{Given, House, ada};
use super::recorder::{Recorder, Speaks};

const PATIENCE: Duration = Duration::from_secs(10);

async fn house(server: &'static str) -> (House, Puppet) {
    let built = built(server).await;
    assert!(built.is_some());
    built.unwrap_or_else(|| unreachable!("asserted"))
}

async fn built(server: &'static str) -> Option<(House, Puppet)> {
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
        let (house, puppet) = house("").await;
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
            let (house, puppet) = house("").await;
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
            let (house, puppet) = house("").await;
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
    let (house, puppet) = house("type = \"sse\"").await;
    assert!(call(&house, Speech::Modern, &[]).await.contains("done t;"));
    puppet.becomes(Wire::Legacy);
    // It stays an error of the server's, with a rest after each try.
    let failed = calls_until_done(&house, Speech::Modern, 10).await;
    assert_eq!(failed.len(), 10);
    assert!(!failed.concat().contains("has forgotten"), "{failed:?}");
}

#[tokio::test]
async fn a_session_with_a_server_that_was_replaced_is_over() {
    const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let (house, puppet) = house("").await;
    let session = open_session(&house).await;
    assert_eq!(post_in_session(&house, &session, LIST).await.status(), StatusCode::OK);
    puppet.becomes(Wire::Legacy);
    let mut statuses = Vec::new();
    // The line that broke has a short rest first.
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        statuses.push(post_in_session(&house, &session, LIST).await.status());
        if statuses.ends_with(&[StatusCode::NOT_FOUND]) {
            break;
        }
    }
    assert!(statuses.ends_with(&[StatusCode::NOT_FOUND]), "so that the client opens another: {statuses:?}");
    let session = open_session(&house).await;
    assert_eq!(post_in_session(&house, &session, LIST).await.status(), StatusCode::OK);
}
