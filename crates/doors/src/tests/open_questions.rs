//! Questions a client was asked and did not answer: they are forgotten with the call they were asked for, and
//! when their server takes them back.

use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::Speech;
use super::eras::puppet::{Puppet, Wire};
use super::giving_up::{call, cancel};
use super::house::House;
use super::parking::house;
use super::patience::eventually;
use super::pipe::Pipe;

/// More than a session remembers of one server.
const MANY: u64 = 70;

async fn opened(house: &House) -> Pipe {
    Pipe::open_as(house, Scope::One("notes".into()), Speech::Legacy, &json!({"elicitation": {}})).await
}

fn is_question(heard: &Value) -> bool {
    heard.get("method") == Some(&json!("elicitation/create"))
}

#[tokio::test]
async fn questions_of_calls_that_were_given_up_make_room() {
    for wire in [Wire::Legacy, Wire::Oldest, Wire::Modern] {
        let (house, puppet) = house(wire).await;
        let mut pipe = opened(&house).await;
        for number in 1..=MANY {
            pipe.say(&call(Speech::Legacy, number, &["Ask"])).await;
            let asked = pipe.hear().await;
            assert!(is_question(&asked), "{wire:?} {number}: {asked}");
            pipe.say(&cancel(number)).await;
        }
        pipe.say(&call(Speech::Legacy, 100, &["Ask"])).await;
        let asked = pipe.hear().await;
        let answer = json!({"action": "accept", "content": {"tag": "t"}});
        pipe.say(&json!({"jsonrpc": "2.0", "id": asked.get("id"), "result": answer})).await;
        let done = pipe.hear().await;
        assert_eq!(done.pointer("/result/content/0/text"), Some(&json!("done t")), "{wire:?}: {done}");
        assert_eq!(puppet.complaints(), Vec::<String>::new());
    }
}

/// Across the eras nobody waits for the answer to a question whose call was given up.
#[tokio::test]
async fn gate_19_an_answer_that_comes_too_late_is_nobodys() {
    let (house, _puppet) = house(Wire::Modern).await;
    let mut pipe = opened(&house).await;
    pipe.say(&call(Speech::Legacy, 1, &["Ask"])).await;
    let asked = pipe.hear().await;
    assert!(is_question(&asked), "{asked}");
    pipe.say(&cancel(1)).await;
    // The call ends beside the line, and nothing tells when. An answer in time would leave no record, so the check below
    // does not rest on this pause.
    tokio::time::sleep(Duration::from_millis(200)).await;
    pipe.say(&json!({"jsonrpc": "2.0", "id": asked.get("id"), "result": {"action": "decline"}})).await;
    let foreign = async || house.records().await.iter().any(|record| record.to_string().contains("an answer to"));
    assert!(eventually(foreign).await, "{:?}", house.records().await);
}

#[tokio::test]
async fn only_so_many_questions_of_one_server_wait() {
    for wire in [Wire::Legacy, Wire::Oldest, Wire::Modern] {
        let (house, _puppet) = house(wire).await;
        let mut pipe = opened(&house).await;
        let (mut asked, mut ended) = (0, 0);
        for number in 1..=MANY {
            pipe.say(&call(Speech::Legacy, number, &["Ask"])).await;
            let heard = pipe.hear().await;
            asked += usize::from(is_question(&heard));
            ended += usize::from(heard.get("id").and_then(Value::as_u64) == Some(number));
        }
        assert_eq!((asked, ended), (64, 6), "{wire:?}");
    }
}

async fn withdrawn(puppet: &Puppet, pipe: &mut Pipe, number: u64) {
    let id = format!("mine-{number}");
    let schema = json!({"type": "object", "properties": {"tag": {"type": "string"}}});
    puppet.tell(&json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create",
        "params": {"message": "who?", "requestedSchema": schema}}));
    let asked = pipe.hear().await;
    assert!(is_question(&asked), "{number}: {asked}");
    puppet.tell(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id, "reason": "never mind"}}));
    let taken_back = pipe.hear().await;
    assert_eq!(taken_back.get("method"), Some(&json!("notifications/cancelled")), "{number}: {taken_back}");
    assert_eq!(taken_back.pointer("/params/requestId"), asked.get("id"), "{number}: {taken_back}");
}

#[tokio::test]
async fn a_question_that_is_taken_back_need_not_be_answered() {
    for wire in [Wire::Legacy, Wire::Oldest] {
        let (house, puppet) = house(wire).await;
        let mut pipe = opened(&house).await;
        assert!(eventually(async || puppet.is_heard()).await);
        for number in 1..=MANY {
            withdrawn(&puppet, &mut pipe, number).await;
        }
    }
}
