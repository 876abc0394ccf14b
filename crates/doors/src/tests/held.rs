//! Held calls and a person's answers: nothing leaves without one, and exactly one call with one.

use futures_util::future::join_all;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::{AnswerScope, ApprovalState, Caller, HeldAnswer};
use toolwarden_gateway::Hold;
use toolwarden_store::state::{Approval, ApprovalFilter, Moved};

use super::doors::{SPEECHES, Speech, walk};
use super::eras::puppet::{Puppet, Wire};
use super::house::{Given, House, Noon, ada};
use super::parking::EVERYTHING;
use super::recorder::{ALL_KINDS, Recorder, Speaks};

pub(super) const ASKING: Given = Given { config: "", hold: Some(Hold::Return), ..Given::OPEN };

pub(super) async fn house(given: &Given, speaks: Speaks) -> House {
    let house = House::before(given, speaks).await;
    assert!(house.is_some());
    let Some(house) = house else { unreachable!("asserted") };
    house
}

/// A call of `write`, with what stands in the place of its arguments and behind them.
pub(super) fn text(speech: Speech, arguments: &str, more: &str) -> String {
    let meta = match speech {
        Speech::Legacy => String::new(),
        Speech::Modern => r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
            .to_owned(),
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"write","arguments":{arguments}{more}{meta}}}}}"#
    )
}

async fn call(house: &House, speech: Speech, arguments: &str) -> Value {
    call_as(house, ada(), speech, arguments, "").await
}

async fn call_as(house: &House, caller: Caller, speech: Speech, arguments: &str, more: &str) -> Value {
    let said = walk(house, caller, Scope::One("notes".into()), speech, &text(speech, arguments, more)).await;
    serde_json::from_str(&said).unwrap_or(Value::String(said))
}

pub(super) fn reason(said: &Value) -> String {
    let reason = said.pointer("/result/_meta/toolwarden~1decision/reason").and_then(Value::as_str);
    reason.map_or_else(|| format!("ran: {said}"), str::to_owned)
}

pub(super) fn approval_id(said: &Value) -> String {
    let id = said.pointer("/result/_meta/toolwarden~1approval").and_then(Value::as_str);
    let text = said.pointer("/result/content/0/text").and_then(Value::as_str).unwrap_or_default();
    assert!(id.is_some_and(|id| text.contains(id)), "{said}");
    id.unwrap_or_default().to_owned()
}

/// A person's answer, as the clerk keeps it.
pub(super) async fn answer(house: &House, id: &str, is_approval: bool, by: &str) -> Option<Approval> {
    use toolwarden_core::Clock;
    let given = HeldAnswer {
        is_approval,
        by: by.to_owned(),
        groups: Vec::new(),
        door: "cli".to_owned(),
        at: Noon.now(),
        scope: AnswerScope::Once,
        note: Some("because I say so".to_owned()),
        token: None,
    };
    let until = Noon.now().checked_add(std::time::Duration::from_secs(60)).ok()?;
    match house.state.as_ref()?.answer_approval(id, &given, until).await.ok()? {
        Moved::Done(approval) => Some(*approval),
        Moved::Not(_) | Moved::NoSuch => None,
    }
}

pub(super) async fn all(house: &House) -> Vec<Approval> {
    let Some(state) = &house.state else { return Vec::new() };
    let found = state.approvals(&ApprovalFilter { limit: 100, ..ApprovalFilter::default() }).await;
    found.map(|found| found.approvals).unwrap_or_default()
}

/// Waits until the held calls are in these states, in whatever order: the clock of the house stands still.
pub(super) async fn states(house: &House, wanted: &[ApprovalState]) -> Vec<ApprovalState> {
    let sorted = |mut states: Vec<ApprovalState>| {
        states.sort();
        states
    };
    let mut found = Vec::new();
    for _ in 0..500 {
        found = all(house).await.iter().map(|approval| approval.state).collect();
        if sorted(found.clone()) == sorted(wanted.to_vec()) {
            return wanted.to_vec();
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    found
}

fn is_done(said: &Value) -> bool {
    said.get("result").is_some_and(|result| result.get("isError") != Some(&Value::Bool(true)))
}

/// What is another call than `{"a":1,"b":"x"}`, though it looks much like it (REVIEW-5).
const OTHERS: [(&str, &str); 9] = [
    (r#"{"a":2,"b":"x"}"#, ""),
    (r#"{"a":1.0,"b":"x"}"#, ""),
    (r#"{"a":1e0,"b":"x"}"#, ""),
    (r#"{"a":"1","b":"x"}"#, ""),
    (r#"{"a":1,"b":"x","c":null}"#, ""),
    (r#"{"a":1}"#, ""),
    (r#"{"a":1,"b":"\u0078"}"#, ""),
    (r#"{"a":1,"b":"x "}"#, ""),
    (r#"{"a":1,"b":"x"}"#, r#","other":1"#),
];

#[tokio::test]
async fn review_4_an_approved_call_runs_once_and_only_as_it_was_shown() {
    for speaks in ALL_KINDS {
        for speech in SPEECHES {
            let house = house(&ASKING, speaks).await;
            let said = call(&house, speech, r#"{"a":1,"b":"x"}"#).await;
            assert_eq!(reason(&said), "not_in_allowlist");
            let id = approval_id(&said);
            let again = call(&house, speech, r#"{"b":"x","a":1}"#).await;
            assert_eq!(approval_id(&again), id, "the same call lies there once");
            assert!(house.recorder.calls().is_empty(), "{:?}", house.recorder.calls());
            assert!(answer(&house, &id, true, "ada").await.is_some());
            for (arguments, more) in OTHERS {
                let said = call_as(&house, ada(), speech, arguments, more).await;
                assert_eq!(reason(&said), "not_in_allowlist", "{arguments}{more}");
                assert_ne!(approval_id(&said), id, "{arguments}{more}");
            }
            assert!(house.recorder.calls().is_empty(), "{:?}", house.recorder.calls());
            let ran = call(&house, speech, r#"{ "b" : "x", "a" : 1 }"#).await;
            assert!(is_done(&ran), "{speaks:?} {speech:?}: {ran}");
            assert_eq!(house.recorder.calls().len(), 1);
            let third = call(&house, speech, r#"{"a":1,"b":"x"}"#).await;
            assert_ne!(approval_id(&third), id, "it is used up");
            assert_eq!(house.recorder.calls().len(), 1);
        }
    }
}

#[tokio::test]
async fn review_4_every_step_of_an_approval_is_recorded() {
    let house = house(&ASKING, Speaks::Both).await;
    let id = approval_id(&call(&house, Speech::Modern, "{}").await);
    answer(&house, &id, true, "bob").await;
    assert!(is_done(&call(&house, Speech::Modern, "{}").await));
    assert_eq!(states(&house, &[ApprovalState::Succeeded]).await, [ApprovalState::Succeeded]);
    let records = house.records().await;
    let of_this = records.iter().filter(|record| record.get("approval_id") == Some(&json!(id)));
    let told: Vec<_> = of_this
        .map(|record| {
            let word = |name: &str| record.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            if word("kind") == "event" { word("method") } else { format!("{} {}", word("kind"), word("reason")) }
        })
        .collect();
    let expected = ["approval_held", "refusal not_in_allowlist", "approval_consumed", "intent paid", "outcome "];
    assert_eq!(told, expected, "{records:?}");
}

#[tokio::test]
async fn review_3_a_rejected_call_is_refused_at_once_with_the_persons_words() {
    let house = house(&ASKING, Speaks::Both).await;
    let id = approval_id(&call(&house, Speech::Modern, "{}").await);
    answer(&house, &id, false, "bob").await;
    let said = call(&house, Speech::Modern, "{}").await;
    assert_eq!(reason(&said), "rejected");
    assert!(said.to_string().contains("because I say so"), "{said}");
    for number in 2..4 {
        let arguments = format!(r#"{{"n":{number}}}"#);
        let id = approval_id(&call(&house, Speech::Modern, &arguments).await);
        answer(&house, &id, false, "bob").await;
    }
    let said = call(&house, Speech::Modern, r#"{"n":4}"#).await;
    assert_eq!(reason(&said), "rejected_often");
    assert!(said.pointer("/result/_meta/toolwarden~1decision/retry_after_seconds").is_some(), "{said}");
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn review_4_another_callers_approval_counts_for_nobody_else() {
    let house = house(&ASKING, Speaks::Both).await;
    let id = approval_id(&call(&house, Speech::Modern, "{}").await);
    answer(&house, &id, true, "ada").await;
    for caller in [Caller::person("bob"), Caller::person("ada")] {
        let said = call_as(&house, caller, Speech::Modern, "{}", "").await;
        assert_eq!(reason(&said), "not_in_allowlist");
        assert_ne!(approval_id(&said), id);
    }
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn core_5_what_became_denied_stays_denied_and_the_approval_is_not_used() {
    let house = house(&ASKING, Speaks::Both).await;
    let id = approval_id(&call(&house, Speech::Modern, "{}").await);
    answer(&house, &id, true, "ada").await;
    house.judge_by(&Given { blocks: &["notes:write"], ..ASKING });
    let said = call(&house, Speech::Modern, "{}").await;
    assert_eq!(reason(&said), "user_blocked");
    house.judge_by(&ASKING);
    assert_eq!(all(&house).await.iter().map(|one| one.state).collect::<Vec<_>>(), [ApprovalState::Approved]);
    assert!(house.recorder.calls().is_empty());
    assert!(is_done(&call(&house, Speech::Modern, "{}").await), "it counts again");
    assert_eq!(house.recorder.calls().len(), 1);
}

#[tokio::test]
async fn review_4_an_approval_of_another_definition_does_not_count() {
    let house = house(&ASKING, Speaks::Both).await;
    let id = approval_id(&call(&house, Speech::Modern, "{}").await);
    answer(&house, &id, true, "ada").await;
    let changed = json!([{ "name": "write", "description": "does more", "inputSchema": { "type": "object" } }]);
    house.recorder.lists("tools/list", vec![json!({ "tools": changed })]);
    house.gateway.pins.forget_looks("notes");
    let said = call(&house, Speech::Modern, "{}").await;
    assert_eq!(reason(&said), "definition_changed", "nobody accepted it, and no approval does");
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn review_4_where_another_person_is_needed_ones_own_answer_does_not_do() {
    let given = Given { config: "[control]\nsecond_person = [\"notes:write\"]\n", ..ASKING };
    let house = house(&given, Speaks::Both).await;
    let id = approval_id(&call(&house, Speech::Modern, "{}").await);
    // As a clerk would keep it that knows nothing of the rule, or from before it.
    answer(&house, &id, true, "ada").await;
    let said = call(&house, Speech::Modern, "{}").await;
    assert_eq!(reason(&said), "not_in_allowlist");
    assert!(house.recorder.calls().is_empty());
    let id = approval_id(&call(&house, Speech::Modern, r#"{"n":2}"#).await);
    answer(&house, &id, true, "bob").await;
    assert!(is_done(&call(&house, Speech::Modern, r#"{"n":2}"#).await));
    assert_eq!(house.recorder.calls().len(), 1);
}

#[tokio::test]
async fn review_4_one_of_a_hundred_retries_runs() {
    let house = house(&ASKING, Speaks::Both).await;
    let id = approval_id(&call(&house, Speech::Modern, "{}").await);
    answer(&house, &id, true, "ada").await;
    let all = join_all((0..100).map(|_| call(&house, Speech::Modern, "{}"))).await;
    let ran = all.iter().filter(|said| is_done(said)).count();
    assert_eq!((ran, house.recorder.calls().len()), (1, 1), "{:?}", all.iter().map(reason).collect::<Vec<_>>());
}

#[tokio::test]
async fn review_4_a_call_that_ended_in_doubt_is_not_made_again_blindly() {
    let house = house(&ASKING, Speaks::Both).await;
    let id = approval_id(&call(&house, Speech::Modern, "{}").await);
    answer(&house, &id, true, "ada").await;
    house.recorder.goes_silent(true);
    // Its client goes away while the server works.
    let going = call(&house, Speech::Modern, "{}");
    assert!(tokio::time::timeout(std::time::Duration::from_millis(300), going).await.is_err());
    assert_eq!(states(&house, &[ApprovalState::Unknown]).await, [ApprovalState::Unknown]);
    house.recorder.goes_silent(false);
    assert_eq!(reason(&call(&house, Speech::Modern, "{}").await), "outcome_unknown");
    assert_eq!(house.recorder.calls().len(), 1);
    assert!(answer(&house, &id, true, "ada").await.is_some(), "a person looked, and permits it once more");
    assert!(is_done(&call(&house, Speech::Modern, "{}").await));
    assert_eq!(house.recorder.calls().len(), 2);
}

#[tokio::test]
async fn a_call_too_large_to_look_at_is_not_held_for_a_person() {
    let house = house(&ASKING, Speaks::Both).await;
    let arguments = format!(r#"{{"text":"{}"}}"#, "x".repeat(256 * 1024));
    assert_eq!(reason(&call(&house, Speech::Modern, &arguments).await), "too_large_to_show");
    assert!(all(&house).await.is_empty() && house.recorder.calls().is_empty());
}

#[tokio::test]
async fn review_8_where_holds_are_denied_nobody_is_asked() {
    let house = house(&Given { hold: Some(Hold::Deny), ..ASKING }, Speaks::Both).await;
    let said = call(&house, Speech::Modern, "{}").await;
    assert_eq!(said.pointer("/result/_meta/toolwarden~1decision/decision"), Some(&json!("deny")));
    assert!(all(&house).await.is_empty() && house.recorder.calls().is_empty());
}

/// A call that asks its client something goes on under the approval it left with: judged again, and not held again.
#[tokio::test]
async fn review_6_a_call_that_asks_its_client_goes_on_under_its_approval() {
    let Ok(puppet) = Puppet::start(Wire::Legacy).await else { unreachable!("it starts") };
    let given = Given { server: "may_ask = [\"elicitation\", \"url\"]", ..ASKING };
    let recorder = Recorder::absent(puppet.url.clone(), Speaks::Both);
    let Some(house) = House::around(&given, recorder).await else { unreachable!("it is built") };
    let held = super::parking::call(&house, ada(), &["Ask"], EVERYTHING, &json!({})).await;
    answer(&house, &approval_id(&held), true, "ada").await;
    let asked = super::parking::call(&house, ada(), &["Ask"], EVERYTHING, &json!({})).await;
    let keys = asked.pointer("/result/inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
    assert_eq!(keys.len(), 1, "{asked}");
    assert_eq!(states(&house, &[ApprovalState::Dispatched]).await, [ApprovalState::Dispatched]);
    let accept = json!({"action": "accept", "content": {"tag": "t;"}});
    let answers = keys.keys().map(|key| (key.clone(), accept.clone())).collect::<serde_json::Map<_, _>>();
    let state = asked.pointer("/result/requestState").cloned().unwrap_or_default();
    let back = json!({"requestState": state, "inputResponses": answers});
    let done = super::parking::call(&house, ada(), &["Ask"], EVERYTHING, &back).await;
    assert_eq!(done.pointer("/result/content/0/text"), Some(&json!("done t;")), "{done}");
    assert_eq!(states(&house, &[ApprovalState::Succeeded]).await, [ApprovalState::Succeeded]);
    let again = super::parking::call(&house, ada(), &["Ask"], EVERYTHING, &back).await;
    assert!(again.pointer("/error").is_some(), "a state opens once: {again}");
    // Whoever blocks it between two rounds is heard.
    let held = super::parking::call(&house, ada(), &["Ask", "Ask"], EVERYTHING, &json!({})).await;
    answer(&house, &approval_id(&held), true, "ada").await;
    let asked = super::parking::call(&house, ada(), &["Ask", "Ask"], EVERYTHING, &json!({})).await;
    let state = asked.pointer("/result/requestState").cloned().unwrap_or_default();
    assert!(state.is_string(), "{asked}");
    house.judge_by(&Given { blocks: &["notes:act"], ..given });
    let back = json!({"requestState": state, "inputResponses": {}});
    let denied = super::parking::call(&house, ada(), &["Ask", "Ask"], EVERYTHING, &back).await;
    assert_eq!(reason(&denied), "user_blocked", "{denied}");
    let ends = [ApprovalState::Unknown, ApprovalState::Succeeded];
    assert_eq!(states(&house, &ends).await, ends, "what it did before it was taken away is not known");
}
