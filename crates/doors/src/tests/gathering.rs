//! Lists that the gateway gathers whole (GATE-13): all pages together within one measure, and nobody waits twice.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::doors::{Entrance, Reach, Speech, send};
use super::house::{Given, House};
use super::recorder::{Recorder, Speaks};

const CONFIG: &str = "[auto_run]\nmode = \"run_everything\"";
const AT_ONE: Entrance = Entrance::Http(Reach::One);
const AT_ALL: Entrance = Entrance::Http(Reach::All);

async fn house(server: &'static str) -> House {
    let Ok(recorder) = Recorder::start(Speaks::Both).await else { unreachable!("it is started") };
    let given = Given { config: CONFIG, server, ..Given::default() };
    let Some(house) = House::around(&given, recorder).await else { unreachable!("the house is built") };
    house
}

/// Pages of one tool each, with a description of this length.
fn pages(count: usize, description: usize) -> Vec<Value> {
    let page = |number: usize| {
        let name = if number == 0 { "write".to_owned() } else { format!("tool{number}") };
        let tool = json!({ "name": name, "description": "x".repeat(description), "inputSchema": { "type": "object" } });
        json!({ "tools": [tool], "resultType": "complete" })
    };
    (0..count).map(page).collect()
}

fn lists(house: &House) -> usize {
    house.recorder.all().iter().filter(|(method, _)| method == "tools/list").count()
}

async fn call(house: &House, entrance: Entrance) -> String {
    let params = format!("\"name\":\"{}\",\"arguments\":{{}}", entrance.name("write"));
    send(house, entrance, Speech::Modern, "tools/call", &params).await
}

#[tokio::test]
async fn gate_13_a_whole_list_is_no_larger_than_one_answer_may_be() {
    let house = house("").await;
    house.recorder.lists("tools/list", pages(9, 3 * 1024 * 1024));
    let refused = call(&house, AT_ONE).await;
    assert!(refused.contains("larger than the limit"), "{refused}");
    assert!(lists(&house) <= 6, "no more is asked for than fits: {}", lists(&house));
    let listed = send(&house, AT_ALL, Speech::Modern, "tools/list", "").await;
    assert!(listed.contains("toolwarden/unavailable") && !listed.contains("write"), "{}", listed.len());
    assert_eq!(house.recorder.calls(), []);
}

#[tokio::test]
async fn gate_13_a_whole_list_takes_no_longer_than_a_server_may_be_silent() {
    let house = house("timeout = \"1s\"").await;
    house.recorder.lists("tools/list", pages(5, 10));
    house.recorder.lists_slowly(Duration::from_millis(400));
    let refused = call(&house, AT_ONE).await;
    assert!(refused.contains("did not answer in time"), "{refused}");
    assert_eq!(house.recorder.calls(), []);
}

#[tokio::test]
async fn gate_13_who_waits_for_a_list_shares_its_failure() {
    let house = house("timeout = \"1s\"").await;
    house.recorder.lists_slowly(Duration::from_secs(60));
    let began = Instant::now();
    let refused = join_all((0..6).map(|_| call(&house, AT_ONE))).await;
    assert!(refused.iter().all(|refused| refused.contains("did not answer in time")), "{refused:?}");
    assert!(began.elapsed() < Duration::from_secs(4), "they waited one after another: {:?}", began.elapsed());
    assert_eq!(lists(&house), 1);
    house.recorder.lists_slowly(Duration::ZERO);
    let runs = call(&house, AT_ONE).await;
    assert!(runs.contains("done"), "who comes later asks again: {runs}");
}

#[tokio::test]
async fn gate_12_an_error_that_speaks_of_unknown_methods_is_no_empty_list() {
    let house = house("").await;
    let error = r#"{"code":-32000,"message":"-32601 is what I would say"}"#;
    house.recorder.lists_fail_with("prompts/list", error);
    let params = "\"name\":\"hello\"";
    let refused = send(&house, AT_ONE, Speech::Modern, "prompts/get", params).await;
    assert!(refused.contains("is what I would say"), "{refused}");
    assert_eq!(house.recorder.calls(), []);
}
