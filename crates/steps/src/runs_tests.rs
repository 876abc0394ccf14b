//! What runs for tasks is bounded, and one at a time for each.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use toolwarden_mcp::sse::Event;

use super::{MOST_AWAITED_OF_ONE, MOST_SAID, Runs};

#[tokio::test]
async fn a_task_runs_once_at_a_time_and_rests_where_it_could_not() {
    let runs = Arc::<Runs>::default();
    let running = runs.begin("one", None);
    assert!(running.is_some() && runs.begin("one", None).is_none() && runs.begin("other", None).is_some());
    if let Some(running) = &running {
        running.rest(Duration::from_millis(200));
    }
    drop(running);
    assert!(runs.begin("one", None).is_none(), "it rests");
    let mut again = None;
    for _ in 0..1_000 {
        again = runs.begin("one", None);
        if again.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(again.is_some());
    drop(again);
    runs.all_ended().await;
}

#[test]
fn a_task_is_waited_for_once_and_one_caller_leaves_room_for_others() {
    let runs = Arc::<Runs>::default();
    let first = runs.wait_for("0", "ada");
    assert!(first.is_some() && runs.wait_for("0", "ada").is_none());
    let more: Vec<_> = (1..MOST_AWAITED_OF_ONE).map(|number| runs.wait_for(&number.to_string(), "ada")).collect();
    assert!(more.iter().all(Option::is_some) && runs.wait_for("more", "ada").is_none());
    assert!(runs.wait_for("his", "bob").is_some());
    drop(first);
    assert!(runs.wait_for("more", "ada").is_some());
}

#[test]
fn what_a_call_says_is_heard_by_its_own_conversation_and_bounded() {
    let runs = Arc::<Runs>::default();
    let Some(running) = runs.begin("one", Some("here")) else { unreachable!("nothing runs") };
    for number in 0..MOST_SAID + 3 {
        running.run.say(Event::of(Bytes::from(number.to_string())), number == 0);
    }
    assert!(running.run.heard(None).is_empty() && running.run.heard(Some("elsewhere")).is_empty());
    assert!(running.run.asks());
    assert_eq!(running.run.heard(Some("here")).len(), MOST_SAID);
    assert!(running.run.heard(Some("here")).is_empty() && !running.run.asks());
}
