//! Servers of the oldest HTTP transport, which have one line for everybody.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use toolwarden_conversations::Scope;

use super::doors::{SPEECHES, Speech, walk};
use super::eras::puppet::{Puppet, Wire};
use super::house::{Given, House, ada};
use super::recorder::{Recorder, Speaks};

const PATIENCE: Duration = Duration::from_secs(10);

async fn house() -> Option<(House, Puppet)> {
    let puppet = Puppet::start(Wire::Oldest).await.ok()?;
    let given = Given { config: "[auto_run]\nmode = \"run_everything\"\n", ..Given::default() };
    let house = House::around(&given, Recorder::absent(puppet.url.clone(), Speaks::Both)).await?;
    Some((house, puppet))
}

/// The call `act` with these steps; what the client gets, whole.
async fn call(house: &House, speech: Speech, steps: &[&str]) -> String {
    let mut params = json!({"name": "act", "arguments": {"tag": "t;", "steps": steps}});
    if let (Speech::Modern, Some(params)) = (speech, params.as_object_mut()) {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        params.insert("_meta".to_owned(), meta);
    }
    let text = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
    let said = timeout(PATIENCE, walk(house, ada(), Scope::One("notes".into()), speech, &text)).await;
    said.unwrap_or_else(|_| "it hangs".to_owned())
}

#[tokio::test]
async fn a_refused_request_fails_at_once_and_alone() {
    for speech in SPEECHES {
        let built = house().await;
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
