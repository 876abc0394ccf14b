//! Clients that can open a page (REVIEW-6): they are given its address, and nothing they say there is an answer.

use std::time::Duration;

use futures_util::StreamExt;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::{ApprovalState, Caller};
use toolwarden_gateway::Answer;

use super::doors::{Speech, walk};
use super::held::{ASKING, answer, approval_id, house, reason, states};
use super::held_in_client::{CALL, back, question, say, session_with, text};
use super::house::{Given, House, ada};
use super::recorder::{ALL_KINDS, Speaks};
use toolwarden_gateway::Hold;

const PAGE: &str = "https://gate.example/approve/";
const PATIENCE: Duration = Duration::from_secs(20);

async fn modern(house: &House, caller: Caller, capabilities: &Value, more: &Value) -> Value {
    // Longer than what is shown in a client.
    let text = text(&json!({"a": "x".repeat(5_000)}), capabilities, more);
    let said = walk(house, caller, Scope::One("notes".into()), Speech::Modern, &text).await;
    serde_json::from_str(&said).unwrap_or(Value::String(said))
}

fn agent() -> Caller {
    let mut agent = Caller::agent("worker", Some("ada".to_owned()));
    agent.context.task = Some("t".to_owned());
    agent.context.job = Some("j".to_owned());
    agent
}

const AGENTS: Given =
    Given { config: "[roles.worker]\nallow = [\"notes:*\"]\n", server: "tools.write.scope = \"both\"\n", ..ASKING };

fn opens() -> Value {
    json!({"elicitation": {"form": {}, "url": {}}})
}

#[tokio::test]
async fn review_6_a_modern_client_that_opens_pages_is_sent_to_the_page_and_comes_back() {
    for speaks in ALL_KINDS {
        // The last is one whose client is trusted with answers, to what it was shown.
        let mut trusted = ada();
        trusted.token.may_answer = true;
        for caller in [ada(), agent(), trusted] {
            let house = house(&AGENTS, speaks).await;
            house.gateway.set_page(PAGE);
            let said = modern(&house, caller.clone(), &opens(), &json!({})).await;
            let (key, state) = question(&said);
            let asked = said.pointer(&format!("/result/inputRequests/{key}/params")).cloned().unwrap_or_default();
            let id = super::held::all(&house).await.first().map(|one| one.id.clone()).unwrap_or_default();
            assert_eq!(asked.get("mode"), Some(&json!("url")), "{said}");
            assert_eq!(asked.get("url"), Some(&json!(format!("{PAGE}{id}"))), "{said}");
            assert!(asked.get("elicitationId").is_none(), "{said}");
            // That its client opened the page, or says anything else, is no answer.
            for word in [
                json!({"action": "accept"}),
                json!({"action": "accept", "content": {"answer": "allow once"}}),
                json!({"action": "decline"}),
            ] {
                let (key, state) = match word.get("content") {
                    None if word.get("action") == Some(&json!("accept")) => (key.clone(), state.clone()),
                    _ => question(&modern(&house, caller.clone(), &opens(), &json!({})).await),
                };
                let back = modern(&house, caller.clone(), &opens(), &back(&state, &key, &word)).await;
                assert_eq!(reason(&back), "not_in_allowlist", "{word}: {back}");
                assert_eq!(states(&house, &[ApprovalState::Held]).await, [ApprovalState::Held], "{word}");
            }
            assert!(house.recorder.calls().is_empty());
            let (key, state) = question(&modern(&house, caller.clone(), &opens(), &json!({})).await);
            answer(&house, &id, true, "bob").await;
            let accept = json!({"action": "accept"});
            let done = modern(&house, caller.clone(), &opens(), &back(&state, &key, &accept)).await;
            assert!(done.get("result").is_some() && reason(&done).starts_with("ran"), "{speaks:?}: {done}");
            assert_eq!(house.recorder.calls().len(), 1);
        }
    }
}

#[tokio::test]
async fn review_6_whoever_cannot_open_pages_and_whoever_has_none_is_told_where_the_call_lies() {
    let house = house(&ASKING, Speaks::Both).await;
    let without = modern(&house, ada(), &opens(), &json!({})).await;
    assert!(!approval_id(&without).is_empty(), "there is no page here: {without}");
    house.gateway.set_page(PAGE);
    for capabilities in [json!({}), json!({"elicitation": {}}), json!({"elicitation": {"form": {}}})] {
        let said = modern(&house, ada(), &capabilities, &json!({})).await;
        assert!(!approval_id(&said).is_empty(), "{capabilities}: {said}");
    }
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn review_6_a_legacy_client_that_opens_pages_is_sent_there_and_comes_back_or_waits() {
    let capabilities = r#"{"elicitation":{"form":{},"url":{}}}"#;
    let (back, wait) = (Hold::Return, Hold::Wait);
    for (hold, word, runs) in [(back, "accept", false), (wait, "accept", true), (back, "decline", false)] {
        let house = house(&Given { hold: Some(hold), ..AGENTS }, Speaks::Both).await;
        house.gateway.set_page(PAGE);
        let session = session_with(&house, agent(), capabilities).await;
        let Answer::Events { mut events, .. } = say(&house, &session, CALL).await else { unreachable!("it asks") };
        let mut last = Value::Null;
        while let Ok(Some(event)) = tokio::time::timeout(PATIENCE, events.next()).await {
            let said: Value = serde_json::from_slice(&event.data.unwrap_or_default()).unwrap_or_default();
            if said.get("method") != Some(&json!("elicitation/create")) {
                last = said;
                continue;
            }
            let params = said.get("params").cloned().unwrap_or_default();
            assert_eq!(params.get("mode"), Some(&json!("url")), "{said}");
            let id = params.get("elicitationId").and_then(Value::as_str).unwrap_or_default().to_owned();
            assert_eq!(params.get("url"), Some(&json!(format!("{PAGE}{id}"))), "{said}");
            let reply = json!({"jsonrpc": "2.0", "id": said.get("id"), "result": {"action": word}}).to_string();
            say(&house, &session, &reply).await;
            if runs {
                answer(&house, &id, true, "bob").await;
            }
        }
        assert_eq!(house.recorder.calls().len(), usize::from(runs), "{word}: {last}");
        assert_eq!(reason(&last).starts_with("ran"), runs, "{word}: {last}");
        let state = if runs { ApprovalState::Succeeded } else { ApprovalState::Held };
        assert_eq!(states(&house, &[state]).await, [state], "{word}");
        if !runs {
            // Whoever comes back once somebody said yes there runs it.
            answer(&house, &approval_id(&last), true, "bob").await;
            let Answer::Events { .. } = say(&house, &session, CALL).await else {
                assert_eq!(house.recorder.calls().len(), 1, "{word}");
                continue;
            };
            unreachable!("it is asked no more");
        }
    }
}
