//! What a server says on a line of its own is judged by the policy of that moment, not by the one under which
//! somebody began to listen (GATE-18, GATE-19).

use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::Speech;
use super::eras::puppet::{Puppet, Wire};
use super::house::{Given, House};
use super::parking::house;
use super::pipe::Pipe;

const CONFIG: &str = "[auto_run]\nmode = \"run_everything\"\n";

fn news(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn updated() -> Value {
    news("notifications/resources/updated", &json!({"uri": "note://a"}))
}

fn log() -> Value {
    news("notifications/message", &json!({"level": "info", "data": "a"}))
}

fn form() -> Value {
    json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {"tag": {"type": "string"}}}})
}

/// Switches the server off, says this, and switches it on again; gives what the client hears next.
async fn next_after(house: &House, puppet: &Puppet, pipe: &mut Pipe, said: &Value) -> Value {
    house.judge_by(&Given {
        config: CONFIG,
        server: "enabled = false\nmay_ask = [\"elicitation\", \"url\"]",
        ..Given::default()
    });
    puppet.tell(said);
    // Whoever answers this has heard what was said before.
    assert!(puppet.asks("ping", &json!({})).await.get("result").is_some());
    house.judge_by(&Given { config: CONFIG, server: "may_ask = [\"elicitation\", \"url\"]", ..Given::default() });
    puppet.announce();
    pipe.hear_besides(&["prompts", "resources"]).await
}

fn is_the_announcement(heard: &Value) -> bool {
    heard.get("method") == Some(&json!("notifications/tools/list_changed"))
}

/// A client that can be asked has a line of its own; any other shares one.
async fn opened(house: &House, capabilities: &Value) -> Pipe {
    Pipe::open_as(house, Scope::One("notes".into()), Speech::Legacy, capabilities).await
}

#[tokio::test]
async fn gate_19_news_of_a_resource_pass_by_the_policy_of_the_moment() {
    for capabilities in [json!({}), json!({"elicitation": {}})] {
        let (house, puppet) = house(Wire::Oldest).await;
        let mut pipe = opened(&house, &capabilities).await;
        let watch = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe", "params": {"uri": "note://a"}});
        pipe.say(&watch).await;
        let watched = pipe.hear_besides(&["prompts", "resources"]).await;
        assert!(watched.get("result").is_some(), "{watched}");
        puppet.tell(&updated());
        assert_eq!(pipe.hear_besides(&["prompts", "resources"]).await, updated(), "{capabilities}");
        let next = next_after(&house, &puppet, &mut pipe, &updated()).await;
        assert!(is_the_announcement(&next), "{capabilities}: {next}");
    }
}

#[tokio::test]
async fn gate_19_logs_pass_by_the_policy_of_the_moment() {
    let (house, puppet) = house(Wire::Oldest).await;
    let mut pipe = opened(&house, &json!({"elicitation": {}})).await;
    puppet.tell(&log());
    assert_eq!(pipe.hear_besides(&["prompts", "resources"]).await, log());
    let next = next_after(&house, &puppet, &mut pipe, &log()).await;
    assert!(is_the_announcement(&next), "{next}");
}

#[tokio::test]
async fn gate_18_questions_pass_by_the_policy_of_the_moment() {
    let (house, puppet) = house(Wire::Oldest).await;
    let mut pipe = opened(&house, &json!({"elicitation": {}})).await;
    let asking = {
        let puppet = puppet.clone();
        tokio::spawn(async move { puppet.asks("elicitation/create", &form()).await })
    };
    let asked = pipe.hear_besides(&["prompts", "resources"]).await;
    assert_eq!(asked.get("method"), Some(&json!("elicitation/create")), "{asked}");
    let answer = json!({"action": "accept", "content": {"tag": "ada"}});
    pipe.say(&json!({"jsonrpc": "2.0", "id": asked.get("id"), "result": answer})).await;
    assert_eq!(asking.await.unwrap_or_default().get("result"), Some(&answer));

    house.judge_by(&Given {
        config: CONFIG,
        server: "enabled = false\nmay_ask = [\"elicitation\", \"url\"]",
        ..Given::default()
    });
    let declined = puppet.asks("elicitation/create", &form()).await;
    assert!(declined.get("error").is_some(), "{declined}");
    house.judge_by(&Given { config: CONFIG, server: "may_ask = [\"elicitation\", \"url\"]", ..Given::default() });
    puppet.announce();
    let next = pipe.hear_besides(&["prompts", "resources"]).await;
    assert!(is_the_announcement(&next), "{next}");
}
