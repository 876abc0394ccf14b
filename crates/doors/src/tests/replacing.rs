//! Servers over HTTP that come, go and change while the gateway runs: what is judged is what is reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::{Entrance, META, Reach, SPEECHES, Speech, open_session, post_in_session, request, send, walk};
use super::house::{Given, House, ada};
use super::patience::eventually;
use super::pipe::Pipe;
use super::recorder::{Recorder, Speaks};

const CALL: &str = "\"name\":\"write\",\"arguments\":{}";

/// A config with these servers, whose changes nobody has to accept.
fn config(servers: &[(&str, &Recorder)]) -> String {
    let mut text = Given::OPEN.config.to_owned();
    for (name, recorder) in servers {
        text.push_str(&format!("[servers.{name}]\nurl = \"{}\"\ndefinitions = \"follow\"\n", recorder.url));
    }
    text
}

async fn recorder(speaks: Speaks) -> Recorder {
    let Ok(recorder) = Recorder::start(speaks).await else { unreachable!("it is started") };
    recorder
}

/// A gateway before these servers.
async fn before(servers: &[(&str, &Recorder)]) -> House {
    let first = servers.first().map(|(_, recorder)| (*recorder).clone());
    let Some(first) = first else { unreachable!("there is one") };
    let house = House::configured(&Given::OPEN, &config(servers), first).await;
    let Some(house) = house else { unreachable!("the house is built") };
    house
}

fn turn_to(house: &House, servers: &[(&str, &Recorder)]) {
    house.take_over(&Given::OPEN, &config(servers));
}

async fn call(house: &House, server: &str, speech: Speech) -> String {
    walk(house, ada(), Scope::One(server.into()), speech, &request(speech, "tools/call", CALL)).await
}

fn modern(id: u64, method: &str, mut params: Value) -> Value {
    let meta: Value = serde_json::from_str(&format!("{{{META}}}")).unwrap_or_default();
    if let Some(params) = params.as_object_mut() {
        params.insert("_meta".to_owned(), meta.get("_meta").cloned().unwrap_or_default());
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A client of the common door who has seen the tools, and listens.
async fn listening(house: &House, speech: Speech) -> Pipe {
    let mut pipe = Pipe::open(house, Scope::All, speech).await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {} });
    pipe.say(&if speech == Speech::Modern { modern(1, "tools/list", json!({})) } else { list }).await;
    assert!(pipe.hear_besides(&["tools", "prompts", "resources"]).await.to_string().contains("write"));
    if speech == Speech::Modern {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        pipe.say(&modern(2, "subscriptions/listen", filter)).await;
        let agreed = pipe.hear().await;
        assert!(agreed.to_string().contains("acknowledged"), "{agreed}");
    }
    pipe
}

#[tokio::test]
async fn allow_12_a_server_that_is_added_is_reached_at_once() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let (notes, other) = (recorder(speaks).await, recorder(speaks).await);
        let house = before(&[("notes", &notes)]).await;
        assert!(call(&house, "other", Speech::Modern).await.contains("no server is called"));
        let mut pipes = Vec::new();
        for speech in SPEECHES {
            pipes.push((listening(&house, speech).await, speech));
        }
        turn_to(&house, &[("notes", &notes), ("other", &other)]);
        for (pipe, speech) in &mut pipes {
            let heard = pipe.hear_besides(&["prompts", "resources"]).await;
            assert_eq!(heard.get("method"), Some(&json!("notifications/tools/list_changed")), "{speaks:?} {speech:?}");
        }
        for speech in SPEECHES {
            assert!(call(&house, "other", speech).await.contains("done"), "{speaks:?} {speech:?}");
            let listed = send(&house, Entrance::Http(Reach::All), speech, "tools/list", "").await;
            assert!(listed.contains("other__write") && listed.contains("notes__write"), "{listed}");
            let of_other = "\"name\":\"other__write\",\"arguments\":{}";
            let said = send(&house, Entrance::Http(Reach::All), speech, "tools/call", of_other).await;
            assert!(said.contains("done"), "{speaks:?} {speech:?}: {said}");
        }
        assert_eq!(other.calls().len(), 4);
        let statuses = house.gateway.server_statuses();
        let names: Vec<_> = statuses.iter().map(|one| (one.name.as_str(), one.state.as_str())).collect();
        assert_eq!(names, [("notes", "connected"), ("other", "connected")]);
        let page = toolwarden_telemetry::render(house.gateway.telemetry(), &house.gateway.observed());
        assert!(page.contains("server=\"other\""), "{page}");
    }
}

#[tokio::test]
async fn allow_12_a_server_that_is_removed_is_gone_at_once_and_others_are_not_disturbed() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let (notes, other) = (recorder(speaks).await, recorder(speaks).await);
        let house = before(&[("notes", &notes), ("other", &other)]).await;
        let session = open_session(&house).await;
        let mut pipe = Pipe::open(&house, Scope::One("other".into()), Speech::Legacy).await;
        let mut common = listening(&house, Speech::Legacy).await;
        assert!(call(&house, "other", Speech::Modern).await.contains("done"));
        other.forget();
        turn_to(&house, &[("notes", &notes)]);
        let heard = common.hear_besides(&["prompts", "resources"]).await;
        assert_eq!(heard.get("method"), Some(&json!("notifications/tools/list_changed")), "{heard}");
        for speech in SPEECHES {
            let said = call(&house, "other", speech).await;
            assert!(said.contains("no server is called `other`"), "{said}");
            let listed = send(&house, Entrance::Http(Reach::All), speech, "tools/list", "").await;
            assert!(!listed.contains("other__") && listed.contains("notes__write"), "{listed}");
            let unknown = "\"name\":\"other__write\",\"arguments\":{}";
            let said = send(&house, Entrance::Http(Reach::All), speech, "tools/call", unknown).await;
            assert!(said.contains("Unknown tool: other__write"), "{said}");
        }
        pipe.say(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "write"}})).await;
        let said = pipe.hear_besides(&["tools", "prompts", "resources"]).await.to_string();
        assert!(said.contains("no server is called `other`"), "{said}");
        assert_eq!(other.calls(), Vec::new());
        if speaks == Speaks::Legacy {
            let is_told = async || other.all().iter().any(|(method, _)| method == "GET or DELETE");
            assert!(eventually(is_told).await, "its session is ended: {:?}", other.all());
        }
        // Who talks to another server is not disturbed.
        let text = request(Speech::Legacy, "tools/call", CALL);
        let said = post_in_session(&house, &session, &text).await.into_body().collect().await;
        let said = said.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        assert!(String::from_utf8_lossy(&said).contains("done"));
        let page = toolwarden_telemetry::render(house.gateway.telemetry(), &house.gateway.observed());
        assert!(!page.contains("server=\"other\""), "{page}");
        assert_eq!(house.gateway.server_statuses().len(), 1);
    }
}

#[tokio::test]
async fn gate_19_a_call_on_its_way_ends_with_its_server_and_is_never_made_at_the_next() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        for speech in SPEECHES {
            for stays in [true, false] {
                let (old, new) = (recorder(speaks).await, recorder(speaks).await);
                let house = Arc::new(before(&[("notes", &old)]).await);
                assert!(call(&house, "notes", speech).await.contains("done"));
                old.forget();
                old.goes_silent(true);
                let calling = {
                    let house = house.clone();
                    tokio::spawn(async move { call(&house, "notes", speech).await })
                };
                assert!(eventually(async || !old.calls().is_empty()).await);
                let next: &[(&str, &Recorder)] = if stays { &[("notes", &new)] } else { &[] };
                turn_to(&house, next);
                let said = calling.await.unwrap_or_default();
                let place = format!("{speaks:?} {speech:?} {stays}");
                assert!(said.contains("whether the call had an effect is not known"), "{place}: {said}");
                let made = old.calls().iter().filter(|(method, _)| method == "tools/call").count();
                assert_eq!((made, new.calls()), (1, Vec::new()), "{place}");
                let records = house.records().await;
                let ends = records.iter().filter(|record| record.get("status") == Some(&json!("unknown"))).count();
                assert_eq!(ends, 1, "{place}: {records:?}");
                if stays {
                    assert!(call(&house, "notes", speech).await.contains("done"), "{place}");
                }
            }
        }
    }
}

#[tokio::test]
async fn mode_7_a_server_that_is_reached_otherwise_waits_for_a_person_unless_changes_are_followed() {
    let (old, new) = (recorder(Speaks::Both).await, recorder(Speaks::Both).await);
    let text =
        |one: &Recorder, more: &str| format!("{}[servers.notes]\nurl = \"{}\"\n{more}\n", Given::OPEN.config, one.url);
    let Some(house) = House::configured(&Given::OPEN, &text(&old, ""), old.clone()).await else {
        unreachable!("the house is built")
    };
    assert!(call(&house, "notes", Speech::Modern).await.contains("done"));
    old.forget();
    house.take_over(&Given::OPEN, &text(&new, ""));
    for speech in SPEECHES {
        let said = call(&house, "notes", speech).await;
        assert!(said.contains("definition_changed") || said.contains("what starts it changed"), "{said}");
    }
    assert_eq!((old.calls(), new.all()), (Vec::new(), Vec::new()), "neither is reached");
    // Back as it was accepted, and then followed.
    house.take_over(&Given::OPEN, &text(&old, ""));
    assert!(call(&house, "notes", Speech::Modern).await.contains("done"));
    house.take_over(&Given::OPEN, &text(&new, ""));
    house.take_over(&Given::OPEN, &text(&new, "definitions = \"follow\""));
    assert!(call(&house, "notes", Speech::Modern).await.contains("done"));
    assert_eq!((old.calls().len(), new.calls().len()), (1, 1));
}

#[tokio::test]
async fn a_client_on_a_pipe_goes_on_with_a_server_that_is_reached_otherwise() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        for scope in [Scope::One("notes".into()), Scope::All] {
            let (old, new) = (recorder(speaks).await, recorder(speaks).await);
            let house = before(&[("notes", &old)]).await;
            let mut pipe = Pipe::open(&house, scope.clone(), Speech::Legacy).await;
            let name = if scope == Scope::All { "notes__write" } else { "write" };
            let params = json!({ "name": name, "arguments": {} });
            let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params});
            pipe.say(&call).await;
            let said = pipe.hear_besides(&["tools", "prompts", "resources"]).await.to_string();
            assert!(said.contains("done"), "{said}");
            turn_to(&house, &[("notes", &new)]);
            pipe.say(&call).await;
            let said = pipe.hear_besides(&["tools", "prompts", "resources"]).await.to_string();
            assert!(said.contains("done"), "{speaks:?} {scope:?}: {said}");
            assert_eq!((old.calls().len(), new.calls().len()), (1, 1), "{speaks:?} {scope:?}");
        }
    }
}

/// Under even versions `notes` is the first server and `write` may run, under odd ones it is the second and `other`
/// may. Neither ever sees what was judged for the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gate_19_what_is_judged_is_what_is_reached_while_servers_change() {
    let servers = [recorder(Speaks::Both).await, recorder(Speaks::Both).await];
    let allowed: [&[&str]; 2] = [&["notes:other"], &["notes:write"]];
    let policy =
        |version: usize| Given { blocks: allowed.get(version % 2).copied().unwrap_or_default(), ..Given::OPEN };
    let text = |version: usize| servers.get(version % 2).map(|one| config(&[("notes", one)])).unwrap_or_default();
    let [first, second] = &servers;
    let house = House::configured(&policy(0), &text(0), first.clone()).await;
    let Some(house) = house.map(Arc::new) else { unreachable!("the house is built") };
    let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..64)
        .map(|number| {
            let (house, stop, made) = (house.clone(), stop.clone(), made.clone());
            tokio::spawn(async move {
                let tool = if number % 2 == 0 { "write" } else { "other" };
                let speech = if number % 3 == 0 { Speech::Legacy } else { Speech::Modern };
                let text = request(speech, "tools/call", &format!("\"name\":\"{tool}\",\"arguments\":{{}}"));
                while !stop.load(Ordering::Relaxed) {
                    let said = walk(&house, ada(), Scope::One("notes".into()), speech, &text).await;
                    made.fetch_add(usize::from(said.contains("done")), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for version in 1..=60 {
        let before = made.load(Ordering::Relaxed);
        house.take_over(&policy(version), &text(version));
        assert!(eventually(async || made.load(Ordering::Relaxed) > before).await, "version {version}");
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        assert!(caller.await.is_ok());
    }
    for (server, tool) in [(first, "write"), (second, "other")] {
        let calls: Vec<_> = server.calls().into_iter().filter(|(method, _)| method == "tools/call").collect();
        assert!(!calls.is_empty(), "{tool}: there was load");
        assert!(calls.iter().all(|(_, text)| text.contains(&format!("\"name\":\"{tool}\""))), "{tool}: {calls:?}");
    }
}
