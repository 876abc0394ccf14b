//! A session that a person puts in another mode: from its next call on, and for what is open or waits as well (MODE-8).

use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::Caller;
use toolwarden_gateway::NotSwitched;

use super::doors::{Speech, get_in_session, open_session, post_in_session};
use super::eras::puppet::Wire;
use super::giving_up::call;
use super::house::{Given, House};
use super::parking::{house, statuses};
use super::patience::eventually;
use super::pipe::Pipe;
use super::recorder::{Recorder, Speaks};

const MODES: &str = "[auto_run]\nmode = \"run_everything\"\n[modes.quiet]\nallowed_tools = [\"notes:other\"]\n\
                     [modes.away]\nallowed_servers = [\"elsewhere\"]\n";
const WRITE: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"write","arguments":{}}}"#;

fn given() -> Given {
    Given { config: MODES, server: "may_ask = [\"elicitation\", \"url\"]", ..Given::default() }
}

/// The sessions that are open, newest last.
fn marks(house: &House) -> Vec<String> {
    house.gateway.open_sessions().into_iter().map(|session| session.mark).collect()
}

fn switch(house: &House, mark: &str, mode: Option<&str>) {
    let switched = house.gateway.switch_mode(mark, mode);
    assert!(switched.as_ref().is_ok_and(|now| now.caller.mode.as_deref() == mode), "{switched:?}");
}

fn message(id: u64, method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

async fn writes(pipe: &mut Pipe, scope: &Scope) -> bool {
    let name = if *scope == Scope::All { "notes__write" } else { "write" };
    pipe.say(&message(9, "tools/call", &json!({ "name": name, "arguments": {} }))).await;
    let said = pipe.hear().await;
    assert_eq!(said.get("id"), Some(&json!(9)), "{said}");
    said.pointer("/result/isError") != Some(&Value::Bool(true)) && said.get("error").is_none()
}

#[tokio::test]
async fn mode_8_a_switched_session_is_judged_in_its_new_mode_and_told() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        for scope in [Scope::One("notes".into()), Scope::All] {
            let Ok(recorder) = Recorder::start(speaks).await else { unreachable!("it is started") };
            let Some(house) = House::around(&given(), recorder).await else { unreachable!("the house is built") };
            let mut pipe = Pipe::open(&house, scope.clone(), Speech::Legacy).await;
            let [mark] = marks(&house).try_into().unwrap_or_default();
            let mut other = Pipe::open(&house, scope.clone(), Speech::Legacy).await;
            for client in [&mut pipe, &mut other] {
                client.say(&message(1, "tools/list", &json!({}))).await;
                assert!(client.hear().await.to_string().contains("write"));
            }
            assert!(writes(&mut pipe, &scope).await);
            switch(&house, &mark, Some("quiet"));
            let news = pipe.hear().await;
            assert_eq!(news.get("method"), Some(&json!("notifications/tools/list_changed")), "{speaks:?} {scope:?}");
            assert_eq!(house.recorder.calls().len(), 1);
            assert!(!writes(&mut pipe, &scope).await);
            assert_eq!(house.recorder.calls().len(), 1, "{speaks:?} {scope:?}");
            pipe.say(&message(2, "tools/list", &json!({}))).await;
            let listed = pipe.hear().await.to_string();
            assert!(listed.contains("other\"") && !listed.contains("write\""), "{listed}");
            // Nobody else is disturbed, and the way back is as short.
            assert!(writes(&mut other, &scope).await);
            switch(&house, &mark, None);
            assert!(pipe.hear().await.to_string().contains("tools/list_changed"));
            assert!(writes(&mut pipe, &scope).await);
            assert_eq!(house.recorder.calls().len(), 3);
        }
    }
}

/// A list that is on its way when the mode changes is one of the new mode.
#[tokio::test]
async fn mode_8_a_list_on_its_way_is_shown_in_the_new_mode() {
    for scope in [Scope::One("notes".into()), Scope::All] {
        let Some(house) = House::build(&given()).await else { unreachable!("the house is built") };
        let mut pipe = Pipe::open(&house, scope.clone(), Speech::Legacy).await;
        let [mark] = marks(&house).try_into().unwrap_or_default();
        house.recorder.lists_slowly(std::time::Duration::from_millis(300));
        let asked = house.recorder.all().len();
        pipe.say(&message(1, "tools/list", &json!({}))).await;
        assert!(eventually(async || house.recorder.all().len() > asked).await);
        switch(&house, &mark, Some("quiet"));
        let mut listed = pipe.hear().await;
        while listed.get("id").is_none() && !listed.is_null() {
            listed = pipe.hear().await;
        }
        let listed = listed.to_string();
        assert!(listed.contains("other\"") && !listed.contains("write\""), "{scope:?}: {listed}");
    }
}

#[tokio::test]
async fn mode_8_a_session_is_found_again_in_another_mode_and_only_in_one_there_is() {
    let Some(house) = House::build(&given()).await else { unreachable!("the house is built") };
    let session = open_session(&house).await;
    let [mark] = marks(&house).try_into().unwrap_or_default();
    let unknown = house.gateway.switch_mode(&mark, Some("Quiet"));
    assert!(matches!(&unknown, Err(NotSwitched::NoMode { known, .. }) if known.contains(&"quiet".to_owned())));
    assert_eq!(house.gateway.switch_mode("000000000000", Some("quiet")).err(), Some(NotSwitched::NoSession));
    let answer = async |text: &str| {
        let answer = post_in_session(&house, &session, text).await.into_body().collect().await;
        answer.map(|all| String::from_utf8_lossy(&all.to_bytes()).into_owned()).unwrap_or_default()
    };
    assert!(!answer(WRITE).await.contains("Denied"));
    switch(&house, &mark, Some("quiet"));
    let denied = answer(WRITE).await;
    assert!(denied.contains("Denied by Toolwarden") && denied.contains("quiet"), "{denied}");
    assert_eq!(house.recorder.calls().len(), 1);
    let rows = house.records().await;
    let last = rows.iter().rev().find(|row| row.get("kind").is_some_and(|kind| kind == "refusal"));
    let said = last.and_then(|row| row.get("mode")).cloned();
    assert_eq!(said, Some(json!("quiet")), "{rows:?}");
}

#[tokio::test]
async fn mode_8_an_agent_keeps_to_the_modes_of_its_token() {
    let Some(house) = House::build(&given()).await else { unreachable!("the house is built") };
    let mut agent = Caller::agent("pm", Some("ada".to_owned()));
    agent.token.modes = vec!["quiet".to_owned()];
    let push = toolwarden_conversations::sessions::Push::kept();
    let session = house.gateway.open_session(&agent.into(), &Scope::All, push);
    let Ok(session) = session else { unreachable!("it is opened") };
    let refused = house.gateway.switch_mode(&session.mark, Some("away"));
    assert_eq!(refused.err(), Some(NotSwitched::NotIssued { modes: vec!["quiet".to_owned()] }));
    switch(&house, &session.mark, Some("quiet"));
}

/// What was permitted in the mode that was left does not go on in the next.
#[tokio::test]
async fn mode_8_a_call_that_waits_ends_with_its_mode() {
    for wire in [Wire::Modern, Wire::Legacy, Wire::Oldest] {
        for steps in [["Progress", "Hang"].as_slice(), &["HangAtOnce"]] {
            let (house, puppet) = house(wire).await;
            house.judge_by(&given());
            let mut pipe = Pipe::open(&house, Scope::One("notes".into()), Speech::Legacy).await;
            pipe.say(&call(Speech::Legacy, 7, steps)).await;
            assert!(eventually(async || puppet.hanging() == 1).await, "{wire:?} {steps:?}");
            let [mark] = marks(&house).try_into().unwrap_or_default();
            switch(&house, &mark, Some("quiet"));
            let mut last = pipe.hear().await;
            while last.get("id").is_none() && !last.is_null() {
                last = pipe.hear().await;
            }
            assert!(last.to_string().contains("Denied by Toolwarden"), "{wire:?} {steps:?}: {last}");
            assert!(eventually(async || puppet.cancelled() + puppet.hung_up() > 0).await, "{wire:?} {steps:?}");
            assert!(eventually(async || statuses(&house).await == ["unknown"]).await, "{wire:?} {steps:?}");
        }
    }
}

#[tokio::test]
async fn mode_8_the_standing_stream_of_a_server_ends_with_the_mode_that_reached_it() {
    let (house, _puppet) = house(Wire::Legacy).await;
    house.judge_by(&given());
    let session = open_session(&house).await;
    let body = get_in_session(&house, &session).await.into_body();
    let [mark] = marks(&house).try_into().unwrap_or_default();
    switch(&house, &mark, Some("away"));
    let rest = tokio::time::timeout(std::time::Duration::from_secs(10), body.collect()).await;
    assert!(rest.is_ok_and(|rest| rest.is_ok()), "the stream ends");
}
