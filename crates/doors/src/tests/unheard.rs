//! A server says that its lists changed, and no client listens (GATE-12): the gateway hears it all the same.

use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::{Speech, request, walk};
use super::eras::puppet::Wire;
use super::house::{House, ada};
use super::parking::{call, house};
use super::pipe::Pipe;

async fn list(house: &House) -> String {
    let list = request(Speech::Modern, "tools/list", "");
    walk(house, ada(), Scope::One("notes".into()), Speech::Modern, &list).await
}

#[tokio::test]
async fn gate_12_a_change_that_is_told_in_a_call_is_found_before_the_next_one() {
    for wire in [Wire::Legacy, Wire::Oldest] {
        let (house, puppet) = house(wire).await;
        let listed = list(&house).await;
        assert!(listed.contains("Acts."), "{wire:?}: {listed}");
        let changes = call(&house, ada(), &["ChangeTools"], "{}", &json!({})).await;
        assert!(changes.to_string().contains("done"), "{wire:?}: {changes}");
        let held = call(&house, ada(), &[], "{}", &json!({})).await;
        assert!(held.to_string().contains("definition_changed"), "{wire:?}: {held}");
        assert_eq!(puppet.calls(), 1, "{wire:?}");
    }
}

#[tokio::test]
async fn gate_12_a_change_that_is_told_with_the_list_is_found_before_the_next_call() {
    let (house, puppet) = house(Wire::Legacy).await;
    puppet.changes_while_listing();
    let listed = list(&house).await;
    assert!(listed.contains("Acts."), "{listed}");
    let held = call(&house, ada(), &[], "{}", &json!({})).await;
    assert!(held.to_string().contains("definition_changed"), "{held}");
    assert_eq!(puppet.calls(), 0);
}

#[tokio::test]
async fn news_without_params_in_a_call_reach_who_listens() {
    let (house, _puppet) = house(Wire::Legacy).await;
    let mut pipe = Pipe::open(&house, Scope::One("notes".into()), Speech::Modern).await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let wanted = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    pipe.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": wanted })).await;
    let agreed = pipe.hear().await;
    assert!(agreed.to_string().contains("acknowledged"), "{agreed}");
    let params = json!({ "name": "act", "arguments": { "tag": "t", "steps": ["ChangeTools"] }, "_meta": meta });
    pipe.say(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params })).await;
    let told = [pipe.hear().await, pipe.hear().await];
    let is_news = |said: &Value| said.get("method") == Some(&json!("notifications/tools/list_changed"));
    assert!(told.iter().any(is_news), "{told:?}");
}
