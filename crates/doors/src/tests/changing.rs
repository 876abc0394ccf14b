//! A policy that changes under load: every call is judged by one version whole, a change that was acknowledged
//! counts for every call after it, and what is replaced is gone.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_gateway::Reading;

use super::doors::{Speech, request, walk};
use super::house::{Given, House, ada};
use super::recorder::{Speaks, tools};

const CONFIG: &str = "[auto_run]\nmode = \"run_everything\"";
/// Under even versions `write` may run, under odd ones `other`.
const POLICIES: [&[&str]; 2] = [&["notes:other"], &["notes:write"]];
const IN_FLIGHT: usize = 256;
const CHANGES: usize = 1_000;

fn policy(version: usize) -> Given {
    let blocks = POLICIES.get(version % 2).copied().unwrap_or_default();
    Given { config: CONFIG, blocks, ..Given::default() }
}

async fn call(house: &House, speech: Speech, tool: &str) -> String {
    let text = request(speech, "tools/call", &format!("\"name\":\"{tool}\",\"arguments\":{{}}"));
    walk(house, ada(), Scope::One("notes".into()), speech, &text).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn allow_12_no_call_is_judged_by_a_mixture_and_an_acknowledged_change_counts_at_once() {
    let Some(house) = House::before(&policy(0), Speaks::Both).await else { unreachable!("the house is built") };
    let house = Arc::new(house);
    assert!(call(&house, Speech::Modern, "write").await.contains("done"));
    let (stop, made) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let callers: Vec<_> = (0..IN_FLIGHT)
        .map(|number| {
            let (house, stop, made) = (house.clone(), stop.clone(), made.clone());
            tokio::spawn(async move {
                let tool = if number % 2 == 0 { "write" } else { "other" };
                let speech = if number % 3 == 0 { Speech::Legacy } else { Speech::Modern };
                while !stop.load(Ordering::Relaxed) {
                    let said = call(&house, speech, tool).await;
                    assert!(said.contains("done") || said.contains("user_blocked"), "{said}");
                    made.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let mut replaced = Vec::new();
    for version in 1..=CHANGES {
        replaced.push(Arc::downgrade(&house.gateway.live.snapshot()));
        house.judge_by(&policy(version));
        // It is in force: whoever calls now meets it.
        let (allowed, denied) = if version % 2 == 0 { ("write", "other") } else { ("other", "write") };
        if version % 10 == 0 {
            let said = call(&house, Speech::Modern, denied).await;
            assert!(said.contains("user_blocked"), "version {version}: {said}");
            let said = call(&house, Speech::Modern, allowed).await;
            assert!(said.contains("done"), "version {version}: {said}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        assert!(caller.await.is_ok());
    }
    assert!(made.load(Ordering::Relaxed) > IN_FLIGHT, "there was load");
    one_version_each(&house.records().await);
    let alive = replaced.iter().filter_map(Weak::upgrade).count();
    // Whoever listens may be up to sixteen changes behind, each with what was before.
    assert!(alive <= 18, "{alive} of {CHANGES} replaced policies are still held");
}

/// A tool that the rules cannot be read with is that tool's trouble, and nobody else's.
#[tokio::test]
async fn allow_12_what_a_server_lists_does_not_stand_in_the_way_of_another_policy() {
    let scoped = Given {
        config: CONFIG,
        server: "tools.\"deploy\" = { task_scoped = [\"task_id\"] }\ndefinitions = \"follow\"",
        ..Given::default()
    };
    let Some(house) = House::before(&scoped, Speaks::Both).await else { unreachable!("the house is built") };
    assert!(call(&house, Speech::Modern, "write").await.contains("done"));
    let mut listed = tools();
    let deploy = json!({"name": "deploy", "inputSchema": {"type": "object", "properties": {}}});
    listed.as_array_mut().into_iter().for_each(|listed| listed.push(deploy.clone()));
    house.recorder.lists("tools/list", vec![json!({ "tools": listed, "resultType": "complete" })]);
    let text = request(Speech::Modern, "tools/list", "");
    assert!(walk(&house, ada(), Scope::One("notes".into()), Speech::Modern, &text).await.contains("write"));
    house.recorder.forget();
    call(&house, Speech::Modern, "deploy").await;
    assert_eq!(house.recorder.calls(), Vec::new(), "what does not fit the rules is not called");
    // Somebody takes `write` away, in a hurry.
    house.judge_by(&Given { blocks: &["notes:write"], ..scoped });
    let said = call(&house, Speech::Modern, "write").await;
    assert!(said.contains("user_blocked"), "{said}");
}

/// Every decision is the one its version gives, and every call that left was permitted.
fn one_version_each(records: &[Value]) {
    let mut judged = 0;
    for record in records {
        let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or_default();
        let Some(version) = record.get("policy_version").and_then(Value::as_u64) else { continue };
        let permitted = if version % 2 == 0 { "write" } else { "other" };
        match (text("kind"), text("reason")) {
            ("intent", _) => assert_eq!(text("tool"), permitted, "{record}"),
            ("refusal", "user_blocked") => assert_ne!(text("tool"), permitted, "{record}"),
            _ => continue,
        }
        judged += 1;
    }
    assert!(judged > IN_FLIGHT, "{judged}");
}

#[tokio::test]
async fn a_server_that_was_off_is_known_when_it_is_back() {
    let Some(house) = House::before(&policy(0), Speaks::Both).await else { unreachable!("the house is built") };
    assert!(call(&house, Speech::Modern, "write").await.contains("done"));
    // As when a file is read half-way: the server is not there at all.
    let Ok(empty) = toolwarden_policy::PolicySet::compile(&toolwarden_policy::PolicyInput::default()) else {
        unreachable!("an empty policy is one")
    };
    let nothing = Reading { policy: &empty, servers: &[], written: &[], definitions: &[] };
    assert!(house.gateway.replace_policy(nothing).is_ok());
    assert!(!call(&house, Speech::Modern, "write").await.contains("done"));
    house.judge_by(&policy(0));
    let said = call(&house, Speech::Modern, "write").await;
    assert!(said.contains("done"), "{said}");
}
