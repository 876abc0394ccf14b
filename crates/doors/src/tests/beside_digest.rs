//! Members of `_meta` that the digest leaves out (REVIEW-5): with an approved call nothing travels under their names that
//! a person did not see, but for short values of a fixed form.

use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::{SPEECHES, Speech, walk};
use super::held::{ASKING, answer, approval_id, house, reason};
use super::held_tasks::one;
use super::house::{Given, House, ada};
use super::recorder::{ALL_KINDS, Speaks};

const CARGO: &str = "smuggled";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Members with data in every form.
fn cargos() -> Vec<Value> {
    let inside = json!({ "command": CARGO });
    let mut cargos = Vec::new();
    for name in ["traceparent", "tracestate", "baggage", "progressToken", "io.modelcontextprotocol/logLevel"] {
        for value in [json!(CARGO), json!(format!("{CARGO} of data")), inside.clone(), json!([CARGO])] {
            cargos.push(json!({ name: value }));
        }
    }
    cargos.push(json!({ "traceparent": PARENT, "tracestate": format!("a={CARGO}"), "baggage": format!("a={CARGO}") }));
    cargos.push(json!({ "traceparent": format!("{PARENT}-{CARGO}") }));
    cargos.push(json!({ "io.modelcontextprotocol/clientInfo": { "name": "c", "version": "1", "more": CARGO } }));
    cargos.push(json!({ "io.modelcontextprotocol/clientInfo": CARGO }));
    cargos.push(json!({ "io.modelcontextprotocol/clientCapabilities": { "experimental": { "x": { "run": CARGO } } } }));
    cargos
}

async fn say(house: &House, scope: Scope, speech: Speech, meta: &Value) -> Value {
    let tool = if scope == Scope::All { "notes__write" } else { "write" };
    let mut all = match speech {
        Speech::Legacy => json!({}),
        Speech::Modern => json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }),
    };
    if let (Some(all), Some(meta)) = (all.as_object_mut(), meta.as_object()) {
        all.extend(meta.clone());
    }
    let params = json!({ "name": tool, "arguments": { "a": 1 }, "_meta": all });
    let text = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params }).to_string();
    let said = walk(house, ada(), scope, speech, &text).await;
    serde_json::from_str(&said).unwrap_or(Value::String(said))
}

#[tokio::test]
async fn review_5_an_approved_call_carries_nothing_beside_its_digest() {
    for speaks in ALL_KINDS {
        for speech in SPEECHES {
            for scope in [one(), Scope::All] {
                let house = house(&ASKING, speaks).await;
                for cargo in cargos() {
                    house.recorder.forget();
                    let id = approval_id(&say(&house, scope.clone(), speech, &json!({})).await);
                    assert!(answer(&house, &id, true, "bob").await.is_some());
                    let said = say(&house, scope.clone(), speech, &cargo).await;
                    let what = format!("{speaks:?} {speech:?} {scope:?} {cargo}");
                    assert!(reason(&said).starts_with("ran") && said.get("error").is_none(), "{what}: {said}");
                    let calls = house.recorder.calls();
                    // A short token of plain letters travels: progress is told under it.
                    let is_token = cargo.get("progressToken") == Some(&json!(CARGO));
                    let sent = calls.iter().map(|(_, text)| text.as_str()).collect::<String>();
                    assert!(calls.len() == 1 && (is_token || !sent.contains(CARGO)), "{what}: {sent}");
                }
            }
        }
    }
}

#[tokio::test]
async fn review_5_well_formed_members_travel_with_a_call_nobody_is_asked_about() {
    let well_formed = json!({
        "traceparent": PARENT,
        "tracestate": "rojo=00f067aa0ba902b7",
        "baggage": "userId=alice",
        "progressToken": "token 1",
    });
    for speech in SPEECHES {
        let house = house(&Given { allowlist: &["notes:*"], ..ASKING }, Speaks::Both).await;
        say(&house, one(), speech, &well_formed).await;
        let calls = house.recorder.calls();
        let sent: Value = calls.first().and_then(|(_, text)| serde_json::from_str(text).ok()).unwrap_or_default();
        for (name, value) in well_formed.as_object().into_iter().flatten() {
            let found = sent.pointer("/params/_meta").and_then(|meta| meta.get(name));
            assert_eq!(found, Some(value), "{speech:?} {sent}");
        }
        // What is not of its form goes nowhere, whoever asks.
        house.recorder.forget();
        for cargo in
            [json!({ "traceparent": { "a": CARGO } }), json!({ "baggage": [CARGO] }), json!({ "tracestate": CARGO })]
        {
            say(&house, one(), speech, &cargo).await;
        }
        assert!(!house.recorder.calls().is_empty());
        assert!(house.recorder.calls().iter().all(|(_, text)| !text.contains(CARGO)), "{:?}", house.recorder.calls());
    }
}
