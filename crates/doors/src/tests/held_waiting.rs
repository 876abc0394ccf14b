//! Held calls whose callers wait for the answer (REVIEW-8).

use std::time::Duration;

use http_body_util::{BodyExt, Collected};
use serde_json::Value;
use toolwarden_core::ApprovalState;
use toolwarden_gateway::Hold;

use super::doors::{Entrance, Reach, SPEECHES, Speech, over_http, post_modern};
use super::held::{ASKING, all, answer, house, reason, states, text};
use super::house::{Given, House};
use super::recorder::{ALL_KINDS, Speaks};

const WAITING: Given = Given { hold: Some(Hold::Wait), ..ASKING };
const PATIENCE: Duration = Duration::from_secs(20);

/// The id of the one call that waits.
async fn waiting(house: &House) -> String {
    for _ in 0..1000 {
        if let [approval] = all(house).await.as_slice() {
            return approval.id.clone();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    unreachable!("nothing waits")
}

/// Makes a call and gives what its stream said, message by message.
async fn call(house: &House, speech: Speech, more: &str) -> Vec<Value> {
    let text = text(speech, "{}", more);
    let said = tokio::time::timeout(PATIENCE, over_http(house, Entrance::Http(Reach::One), speech, &text)).await;
    let said = said.unwrap_or_default();
    let pieces = said.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    pieces.filter_map(|piece| serde_json::from_str(piece).ok()).collect()
}

#[tokio::test]
async fn review_8_whoever_waits_gets_the_answer_of_the_call_once_it_is_approved() {
    for speaks in ALL_KINDS {
        for speech in SPEECHES {
            let house = house(&WAITING, speaks).await;
            let (said, ()) = tokio::join!(call(&house, speech, ""), async {
                let id = waiting(&house).await;
                assert!(house.recorder.calls().is_empty());
                assert!(answer(&house, &id, true, "ada").await.is_some());
            });
            let last = said.last().cloned().unwrap_or_default();
            assert!(
                last.get("result").is_some_and(|result| result.get("isError") != Some(&Value::Bool(true))),
                "{said:?}"
            );
            assert_eq!(house.recorder.calls().len(), 1, "{speaks:?} {speech:?}");
            assert_eq!(states(&house, &[ApprovalState::Succeeded]).await, [ApprovalState::Succeeded]);
        }
    }
}

#[tokio::test]
async fn review_8_whoever_waits_is_told_of_a_denial_and_nothing_runs() {
    let house = house(&WAITING, Speaks::Both).await;
    let (said, ()) = tokio::join!(call(&house, Speech::Legacy, ""), async {
        let id = waiting(&house).await;
        assert!(answer(&house, &id, false, "bob").await.is_some());
    });
    let last = said.last().cloned().unwrap_or_default();
    assert_eq!(reason(&last), "rejected");
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn review_8_whoever_asked_for_progress_hears_that_it_waits() {
    let house = house(&WAITING, Speaks::Both).await;
    let (said, ()) = tokio::join!(call(&house, Speech::Legacy, r#","_meta":{"progressToken":"p"}"#), async {
        let id = waiting(&house).await;
        answer(&house, &id, true, "ada").await;
    });
    let progress = said.iter().find(|message| message.get("method").is_some()).cloned().unwrap_or_default();
    assert_eq!(progress.pointer("/params/progressToken").and_then(Value::as_str), Some("p"), "{said:?}");
    assert_eq!(house.recorder.calls().len(), 1);
}

#[tokio::test]
async fn review_8_a_caller_who_waited_long_enough_is_told_where_the_call_lies() {
    let house = house(&Given { hold_time: Some(Duration::from_millis(100)), ..WAITING }, Speaks::Both).await;
    let said = call(&house, Speech::Modern, "").await;
    let last = said.last().cloned().unwrap_or_default();
    assert_eq!(reason(&last), "not_in_allowlist");
    let id = waiting(&house).await;
    assert!(last.to_string().contains(&id), "{last}");
    // The same call, made again, runs once a person answered meanwhile.
    answer(&house, &id, true, "ada").await;
    call(&house, Speech::Modern, "").await;
    assert_eq!(house.recorder.calls().len(), 1);
}

#[tokio::test]
async fn review_8_a_call_that_its_caller_gives_up_waits_no_longer() {
    let house = house(&WAITING, Speaks::Both).await;
    let going = call(&house, Speech::Modern, "");
    assert!(tokio::time::timeout(Duration::from_millis(500), going).await.is_err());
    assert_eq!(states(&house, &[ApprovalState::Cancelled]).await, [ApprovalState::Cancelled]);
    let id = waiting(&house).await;
    assert!(answer(&house, &id, true, "ada").await.is_none(), "there is nothing to answer");
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn core_5_a_policy_that_forbids_before_anybody_listens_ends_the_waiting() {
    let house = house(&WAITING, Speaks::Both).await;
    let response = post_modern(&house, &text(Speech::Modern, "{}", "")).await;
    waiting(&house).await;
    house.judge_by(&Given { blocks: &["notes:write"], ..WAITING });
    let body = tokio::time::timeout(PATIENCE, response.into_body().collect()).await;
    let body = body.ok().and_then(Result::ok).map(Collected::to_bytes).unwrap_or_default();
    assert!(String::from_utf8_lossy(&body).contains("user_blocked"), "{body:?}");
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn core_5_a_policy_that_forbids_ends_the_waiting() {
    let house = house(&WAITING, Speaks::Both).await;
    let (said, ()) = tokio::join!(call(&house, Speech::Modern, ""), async {
        waiting(&house).await;
        house.judge_by(&Given { blocks: &["notes:write"], ..WAITING });
    });
    let last = said.last().cloned().unwrap_or_default();
    assert_eq!(reason(&last), "user_blocked");
    assert!(house.recorder.calls().is_empty());
}
