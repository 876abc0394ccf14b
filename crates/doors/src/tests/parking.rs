//! A modern client's call that waits at a legacy server for an answer: every way it can end.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::Caller;

use super::doors::{Speech, answer_whole, walk};
use super::eras::puppet::{Puppet, Wire};
use super::house::{Given, House, ada};
use super::recorder::{Recorder, Speaks};

pub(super) const EVERYTHING: &str = r#"{"elicitation":{"form":{},"url":{}}}"#;

pub(super) async fn house(wire: Wire) -> (House, Puppet) {
    house_with(wire, None).await
}

async fn house_with(wire: Wire, answer_time: Option<Duration>) -> (House, Puppet) {
    let puppet = Puppet::start(wire).await;
    assert!(puppet.is_ok());
    let Ok(puppet) = puppet else { unreachable!("asserted") };
    let config = "[auto_run]\nmode = \"run_everything\"\n";
    let given = Given { config, server: "may_ask = [\"elicitation\", \"url\"]", answer_time, ..Given::default() };
    let house = House::around(&given, Recorder::absent(puppet.url.clone(), Speaks::Both)).await;
    assert!(house.is_some());
    let Some(house) = house else { unreachable!("asserted") };
    (house, puppet)
}

/// The call `act` with these steps, and further members of params.
pub(super) async fn call(house: &House, caller: Caller, steps: &[&str], capabilities: &str, more: &Value) -> Value {
    let capabilities: Value = serde_json::from_str(capabilities).unwrap_or_default();
    let mut params = json!({"name": "act", "arguments": {"tag": "t;", "steps": steps}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }});
    if let (Some(params), Some(more)) = (params.as_object_mut(), more.as_object()) {
        params.extend(more.clone());
    }
    let text = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}).to_string();
    let said = walk(house, caller, Scope::One("notes".into()), Speech::Modern, &text).await;
    serde_json::from_str(&said).unwrap_or(Value::String(said))
}

fn state(said: &Value) -> Value {
    said.pointer("/result/requestState").cloned().unwrap_or_default()
}

fn keys(said: &Value) -> Vec<String> {
    let asked = said.pointer("/result/inputRequests").and_then(Value::as_object);
    asked.into_iter().flatten().map(|(key, _)| key.clone()).collect()
}

fn answers(keys: &[String], answer: &Value) -> Value {
    keys.iter().map(|key| (key.clone(), answer.clone())).collect::<serde_json::Map<_, _>>().into()
}

fn accept() -> Value {
    json!({"action": "accept", "content": {"tag": "t;"}})
}

pub(super) async fn statuses(house: &House) -> Vec<String> {
    let records = house.records().await;
    let outcomes = records.iter().filter(|record| record.get("kind") == Some(&json!("outcome")));
    outcomes.filter_map(|record| record.get("status")?.as_str().map(str::to_owned)).collect()
}

async fn cancels(puppet: &Puppet, wanted: usize) -> usize {
    for _ in 0..100 {
        if puppet.cancelled() >= wanted {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    puppet.cancelled()
}

#[tokio::test]
async fn an_answer_goes_on_and_every_round_is_recorded() {
    for wire in [Wire::Legacy, Wire::Oldest] {
        let (house, puppet) = house(wire).await;
        let mut said = call(&house, ada(), &["Ask", "Ask"], EVERYTHING, &json!({})).await;
        for _ in 0..2 {
            assert_eq!(keys(&said).len(), 1, "{wire:?}: {said}");
            let back = json!({"requestState": state(&said), "inputResponses": answers(&keys(&said), &accept())});
            said = call(&house, ada(), &["Ask", "Ask"], EVERYTHING, &back).await;
        }
        assert_eq!(said.pointer("/result/content/0/text"), Some(&json!("done t;")), "{wire:?}: {said}");
        assert_eq!(said.pointer("/result/resultType"), Some(&json!("complete")));
        assert_eq!(statuses(&house).await, ["ok", "ok", "ok"], "{wire:?}");
        assert_eq!((puppet.complaints(), puppet.cancelled()), (Vec::new(), 0), "{wire:?}");
    }
}

#[tokio::test]
async fn questions_at_the_same_time_come_together() {
    let (house, puppet) = house(Wire::Legacy).await;
    let said = call(&house, ada(), &["AskTwo"], EVERYTHING, &json!({})).await;
    assert_eq!(keys(&said).len(), 2, "{said}");
    let empty = json!({"action": "decline"});
    let back = json!({"requestState": state(&said), "inputResponses": answers(&keys(&said), &empty)});
    let said = call(&house, ada(), &["AskTwo"], EVERYTHING, &back).await;
    assert_eq!(said.pointer("/result/content/0/text"), Some(&json!("done t;")), "{said}");
    assert_eq!(puppet.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_no_answer_is_asked_again() {
    let (house, puppet) = house(Wire::Legacy).await;
    let mut said = call(&house, ada(), &["Ask"], EVERYTHING, &json!({})).await;
    let key = keys(&said);
    for no_answer in
        [json!({}), answers(&key, &json!({})), answers(&key, &json!({"action": "maybe"})), answers(&key, &json!("yes"))]
    {
        let back = json!({"requestState": state(&said), "inputResponses": no_answer});
        said = call(&house, ada(), &["Ask"], EVERYTHING, &back).await;
        assert_eq!(keys(&said), key, "{no_answer}: {said}");
    }
    let back = json!({"requestState": state(&said), "inputResponses": answers(&key, &accept())});
    said = call(&house, ada(), &["Ask"], EVERYTHING, &back).await;
    assert_eq!(said.pointer("/result/content/0/text"), Some(&json!("done t;")), "{said}");
    assert_eq!(puppet.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn a_waiting_call_is_its_callers_own_and_comes_back_once() {
    let (house, puppet) = house(Wire::Legacy).await;
    let said = call(&house, ada(), &["Ask"], EVERYTHING, &json!({})).await;
    let back = json!({"requestState": state(&said), "inputResponses": answers(&keys(&said), &accept())});
    let mut bob = ada();
    bob.user = Some("bob".to_owned());
    for (caller, steps) in [(bob, ["Ask"]), (ada(), ["Pause"])] {
        let refused = call(&house, caller, &steps, EVERYTHING, &back).await;
        assert_eq!(refused.pointer("/error/code"), Some(&json!(-32602)), "{refused}");
    }
    let (first, second) = tokio::join!(
        call(&house, ada(), &["Ask"], EVERYTHING, &back),
        call(&house, ada(), &["Ask"], EVERYTHING, &back)
    );
    let done = [&first, &second].into_iter().filter(|said| said.to_string().contains("done t;")).count();
    let refused = [&first, &second].into_iter().filter(|said| said.to_string().contains("used before")).count();
    assert_eq!((done, refused), (1, 1), "{first} {second}");
    assert_eq!(puppet.complaints(), Vec::<String>::new());
}

#[tokio::test]
async fn a_call_nobody_comes_back_for_is_given_up_and_its_end_is_unknown() {
    let (house, puppet) = house(Wire::Legacy).await;
    let said = call(&house, ada(), &["Ask"], EVERYTHING, &json!({})).await;
    house.gateway.close().await;
    assert_eq!(cancels(&puppet, 1).await, 1);
    assert_eq!(statuses(&house).await, ["unknown"]);
    let back = json!({"requestState": state(&said), "inputResponses": answers(&keys(&said), &accept())});
    let said = call(&house, ada(), &["Ask"], EVERYTHING, &back).await;
    assert!(said.to_string().contains("no longer waits"), "{said}");
    assert_eq!(statuses(&house).await, ["unknown", "unknown"]);
}

#[tokio::test]
async fn what_the_client_cannot_be_asked_ends_the_call() {
    let (house, puppet) = house(Wire::Legacy).await;
    let said = call(&house, ada(), &["Ask"], "{}", &json!({})).await;
    assert_eq!(said.pointer("/error/code"), Some(&json!(-32021)), "{said}");
    assert_eq!(said.pointer("/error/data/requiredCapabilities"), Some(&json!({"elicitation": {}})), "{said}");
    assert_eq!(cancels(&puppet, 1).await, 1);
}

#[tokio::test]
async fn addresses_that_must_be_opened_first_are_asked_and_the_call_is_made_again() {
    let (house, _puppet) = house(Wire::Legacy).await;
    let said = call(&house, ada(), &["Url"], EVERYTHING, &json!({})).await;
    let shown = said.pointer("/result/inputRequests/q1-1/params/message");
    assert_eq!(shown, Some(&json!("Server \"notes\" asks you to open pay.example.com: pay")), "{said}");
    assert!(!said.to_string().contains("elicitationId"), "{said}");
    let back = json!({"requestState": state(&said), "inputResponses": {"q1-1": {"action": "accept"}}});
    let said = call(&house, ada(), &["Url"], EVERYTHING, &back).await;
    assert_eq!(keys(&said), ["q2-1"], "the server asks again, in the next round: {said}");
}

#[tokio::test]
async fn many_calls_wait_at_the_same_time_and_one_more_makes_room() {
    let (house, puppet) = house_with(Wire::Oldest, Some(Duration::from_millis(300))).await;
    let mut waiting = Vec::new();
    for _ in 0..9 {
        let said = call(&house, ada(), &["Ask"], EVERYTHING, &json!({})).await;
        assert_eq!(keys(&said).len(), 1, "{said}");
        waiting.push(said);
    }
    let (mut done, mut lost) = (0, 0);
    for said in waiting {
        let back = json!({"requestState": state(&said), "inputResponses": answers(&keys(&said), &accept())});
        let said = call(&house, ada(), &["Ask"], EVERYTHING, &back).await.to_string();
        done += usize::from(said.contains("done t;"));
        lost += usize::from(said.contains("no longer waits"));
    }
    assert_eq!((done, lost, puppet.questions_answered()), (8, 1, 8), "the oldest gave way");
    assert_eq!(puppet.complaints(), Vec::<String>::new());
}

/// A question is put also where the server goes on talking.
#[tokio::test]
async fn a_question_is_put_though_progress_follows_it() {
    let (house, _puppet) = house(Wire::Legacy).await;
    let told = json!({"_meta": {"progressToken": 3, "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}});
    let text = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "act",
        "arguments": {"tag": "t;", "steps": ["AskAndReport"]}, "_meta": told.get("_meta")}});
    let said = answer_whole(&house, &text.to_string()).await;
    assert!(said.contains("notifications/progress") && said.contains("input_required"), "{said}");
}

/// One principal cannot use up the room of the others.
#[tokio::test]
async fn only_so_many_calls_of_one_principal_wait() {
    let (house, _puppet) = house(Wire::Legacy).await;
    let more = json!({});
    let calls = (0..256).map(|_| call(&house, ada(), &["Ask"], EVERYTHING, &more));
    let said = futures_util::future::join_all(calls).await;
    assert!(said.iter().all(|said| keys(said).len() == 1), "{:?}", said.iter().find(|said| keys(said).is_empty()));
    let refused = call(&house, ada(), &["Ask"], EVERYTHING, &more).await;
    assert!(refused.to_string().contains("busy with other calls of yours"), "{refused}");
    let mut bob = ada();
    bob.user = Some("bob".to_owned());
    let said = call(&house, bob, &["Ask"], EVERYTHING, &more).await;
    assert_eq!(keys(&said).len(), 1, "{said}");
}

/// A call that began to wait a moment ago is not given up for another, which waits for its turn instead.
#[tokio::test]
async fn a_call_that_waits_is_not_driven_out_by_the_next() {
    let (house, puppet) = house(Wire::Oldest).await;
    let more = json!({});
    let mut waiting = Vec::new();
    for _ in 0..8 {
        waiting.push(call(&house, ada(), &["Ask"], EVERYTHING, &more).await);
    }
    let last = call(&house, ada(), &[], EVERYTHING, &more);
    let mut last = std::pin::pin!(last);
    let soon = tokio::time::timeout(Duration::from_millis(500), &mut last).await;
    assert!(soon.is_err(), "all lines are taken: {soon:?}");
    assert_eq!(puppet.cancelled(), 0);
    let first = waiting.first().cloned().unwrap_or_default();
    let back = json!({"requestState": state(&first), "inputResponses": answers(&keys(&first), &accept())});
    let said = call(&house, ada(), &["Ask"], EVERYTHING, &back).await;
    assert!(said.to_string().contains("done t;"), "{said}");
    let said = tokio::time::timeout(Duration::from_secs(10), last).await.unwrap_or_default();
    assert!(said.to_string().contains("done t;"), "{said}");
}

/// Who comes first, is first, however many wait.
#[tokio::test]
async fn calls_that_wait_for_a_turn_get_it_in_the_order_they_came() {
    let (house, _puppet) = house(Wire::Oldest).await;
    let more = json!({});
    let mut parked = Vec::new();
    for _ in 0..8 {
        parked.push(call(&house, ada(), &["Ask"], EVERYTHING, &more).await);
    }
    let next = |number: usize| {
        let (house, more) = (&house, &more);
        async move { (number, call(house, ada(), &[], EVERYTHING, more).await) }
    };
    let mut waiting = FuturesUnordered::new();
    for number in 0..10 {
        waiting.push(next(number));
        let soon = tokio::time::timeout(Duration::from_millis(20), waiting.next()).await;
        assert!(soon.is_err(), "all lines are taken: {soon:?}");
    }
    let first = parked.first().cloned().unwrap_or_default();
    let back = json!({"requestState": state(&first), "inputResponses": answers(&keys(&first), &accept())});
    let said = call(&house, ada(), &["Ask"], EVERYTHING, &back).await;
    assert!(said.to_string().contains("done t;"), "{said}");
    let mut order = Vec::new();
    while let Ok(Some((number, said))) = tokio::time::timeout(Duration::from_secs(10), waiting.next()).await {
        assert!(said.to_string().contains("done t;"), "{said}");
        order.push(number);
    }
    assert_eq!(order, (0..10).collect::<Vec<_>>());
}
