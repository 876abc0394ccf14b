//! Results that wait for a person (`review = "result"`): the call is made once, and nobody sees what it gave before somebody
//! permitted it.

use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::{ApprovalState, Caller};
use toolwarden_gateway::Hold;

use super::doors::{Speech, walk};
use super::held::{ASKING, all, answer, approval_id, house, reason, text};
use super::house::{Given, House, ada};
use super::recorder::{ALL_KINDS, Speaks};

const LOOKED_AT: Given = Given { server: "tools.write = { review = \"result\" }", allowlist: &["notes:*"], ..ASKING };

async fn call(house: &House, caller: Caller, speech: Speech, arguments: &str) -> Value {
    let text = text(speech, arguments, "");
    let said = walk(house, caller, Scope::One("notes".into()), speech, &text).await;
    let json = said.find("{\"jsonrpc\"").and_then(|at| said.get(at..)).unwrap_or_default();
    serde_json::from_str(json.lines().next().unwrap_or_default()).unwrap_or(Value::String(said))
}

/// Whether what the tool gave is in it.
fn shows(said: &Value) -> bool {
    said.pointer("/result/content/0/text") == Some(&json!("done"))
}

fn made(house: &House) -> usize {
    house.recorder.calls().len()
}

#[tokio::test]
async fn a_result_waits_for_a_person_and_its_call_is_made_once() {
    for speaks in ALL_KINDS {
        for speech in [Speech::Modern, Speech::Legacy] {
            let house = house(&LOOKED_AT, speaks).await;
            let first = call(&house, ada(), speech, "{\"a\":1}").await;
            let id = approval_id(&first);
            assert!(!id.is_empty() && !first.to_string().contains("done"), "{speaks:?} {speech:?}: {first}");
            assert_eq!(made(&house), 1, "{speaks:?} {speech:?}: {first}");
            // Whoever asks again learns that it waits, and nothing is made again.
            let again = call(&house, ada(), speech, "{\"a\":1}").await;
            assert_eq!((reason(&again).as_str(), made(&house)), ("result_review", 1), "{again}");
            assert!(again.to_string().contains("nothing was run again"), "{again}");
            let kept = all(&house).await;
            let is_kept = |one: &toolwarden_store::state::Approval| {
                let result = one.call.result.clone().unwrap_or_default();
                one.id == id && one.state == ApprovalState::Held && result.contains("done")
            };
            assert!(kept.len() == 1 && kept.iter().all(is_kept), "{kept:?}");
            answer(&house, &id, true, "bob").await;
            let shown = call(&house, ada(), speech, "{\"a\":1}").await;
            assert!(shows(&shown) && made(&house) == 1, "{speaks:?} {speech:?}: {shown}");
            let has_type = shown.pointer("/result/resultType") == Some(&json!("complete"));
            assert_eq!(has_type, speech == Speech::Modern, "{shown}");
            // It was handed over: the same call is another one.
            let next = call(&house, ada(), speech, "{\"a\":1}").await;
            assert!(approval_id(&next) != id && made(&house) == 2, "{next}");
        }
    }
}

#[tokio::test]
async fn a_result_that_a_person_rejects_is_seen_by_nobody() {
    let house = house(&LOOKED_AT, Speaks::Both).await;
    let id = approval_id(&call(&house, ada(), Speech::Modern, "{\"a\":1}").await);
    answer(&house, &id, false, "bob").await;
    for _ in 0..2 {
        let said = call(&house, ada(), Speech::Modern, "{\"a\":1}").await;
        assert_eq!((reason(&said).as_str(), made(&house)), ("rejected", 1), "{said}");
        assert!(!said.to_string().contains("done"), "{said}");
    }
}

#[tokio::test]
async fn a_result_is_its_callers_alone_and_of_this_very_call() {
    let house = house(&LOOKED_AT, Speaks::Both).await;
    let id = approval_id(&call(&house, ada(), Speech::Modern, "{\"a\":1}").await);
    answer(&house, &id, true, "carol").await;
    let other = call(&house, ada(), Speech::Modern, "{\"a\":2}").await;
    assert!(!shows(&other) && made(&house) == 2, "{other}");
    let bob = call(&house, Caller::person("bob"), Speech::Modern, "{\"a\":1}").await;
    assert!(!shows(&bob), "{bob}");
    let mine = call(&house, ada(), Speech::Modern, "{\"a\":1}").await;
    assert!(shows(&mine), "{mine}");
}

#[tokio::test]
async fn where_nobody_is_asked_or_another_person_is_needed_nothing_is_shown() {
    let denied = house(&Given { hold: Some(Hold::Deny), ..LOOKED_AT }, Speaks::Both).await;
    let said = call(&denied, ada(), Speech::Modern, "{\"a\":1}").await;
    assert!(!said.to_string().contains("done") && all(&denied).await.is_empty(), "{said}");
    let given = Given { config: "[control]\nsecond_person = [\"notes:write\"]\n", ..LOOKED_AT };
    let strict = house(&given, Speaks::Both).await;
    let id = approval_id(&call(&strict, ada(), Speech::Modern, "{\"a\":1}").await);
    answer(&strict, &id, true, "ada").await;
    let said = call(&strict, ada(), Speech::Modern, "{\"a\":1}").await;
    assert!(!shows(&said) && made(&strict) == 1, "{said}");
}

/// A policy that forbids the tool by now forbids to fetch what it gave.
#[tokio::test]
async fn a_result_of_a_tool_that_is_forbidden_by_now_is_not_shown() {
    let house = house(&LOOKED_AT, Speaks::Both).await;
    let id = approval_id(&call(&house, ada(), Speech::Modern, "{\"a\":1}").await);
    answer(&house, &id, true, "bob").await;
    house.judge_by(&Given { blocks: &["notes:write"], ..LOOKED_AT });
    let said = call(&house, ada(), Speech::Modern, "{\"a\":1}").await;
    assert_eq!(reason(&said), "user_blocked", "{said}");
}

/// Both: a person before the call, and a person before its result.
#[tokio::test]
async fn a_tool_can_be_looked_at_before_and_after() {
    let given = Given { server: "tools.write = { review = \"both\" }", ..LOOKED_AT };
    let house = house(&given, Speaks::Both).await;
    let before = call(&house, ada(), Speech::Modern, "{\"a\":1}").await;
    assert_eq!((reason(&before).as_str(), made(&house)), ("human_review", 0));
    answer(&house, &approval_id(&before), true, "bob").await;
    let after = call(&house, ada(), Speech::Modern, "{\"a\":1}").await;
    assert!(approval_id(&after) != approval_id(&before) && made(&house) == 1, "{after}");
    answer(&house, &approval_id(&after), true, "bob").await;
    let shown = call(&house, ada(), Speech::Modern, "{\"a\":1}").await;
    assert!(shows(&shown) && made(&house) == 1, "{shown}");
}

/// A server gets past nobody by saying of its result that it is something else.
#[tokio::test]
async fn a_result_in_another_dress_waits_all_the_same() {
    for (speaks, speech) in [(Speaks::Legacy, Speech::Legacy), (Speaks::Modern, Speech::Modern)] {
        for more in
            [r#""task":{}"#, r#""task":{"taskId":"t"}"#, r#""resultType":"input_required""#, r#""resultType":"task""#]
        {
            let house = house(&LOOKED_AT, speaks).await;
            let kind = if more.contains("resultType") { "" } else { r#","resultType":"complete""# };
            house.recorder.answers(&format!(r#"{{"content":[{{"type":"text","text":"done"}}],{more}{kind}}}"#));
            let said = call(&house, ada(), speech, "{\"a\":1}").await;
            assert!(!said.to_string().contains("done"), "{speaks:?} {more}: {said}");
        }
    }
}

/// Handing a result over is on record like every other end of a call.
#[tokio::test]
async fn whoever_gets_a_result_that_waited_is_on_record() {
    let house = house(&LOOKED_AT, Speaks::Both).await;
    let id = approval_id(&call(&house, ada(), Speech::Modern, "{\"a\":1}").await);
    answer(&house, &id, true, "bob").await;
    let before = house.records().await.len();
    assert!(shows(&call(&house, ada(), Speech::Modern, "{\"a\":1}").await));
    let records = house.records().await;
    let new: Vec<_> = records.iter().skip(before).collect();
    let is = |record: &Value, name: &str, text: &str| record.get(name).and_then(Value::as_str) == Some(text);
    assert!(
        new.iter().any(|record| is(record, "method", "approval_consumed") && is(record, "approval_id", &id)),
        "{new:?}"
    );
    assert!(new.iter().any(|record| is(record, "method", "tools/call") && is(record, "status", "ok")), "{new:?}");
}
