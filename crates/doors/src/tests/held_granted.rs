//! Answers that count for more than one call: for a conversation, a run, or so many calls.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;
use toolwarden_conversations::Scope;
use toolwarden_core::{Caller, Clock, Grant, GrantClaims, SESSION_ANCHOR};
use toolwarden_policy::input::AdminInput;

use super::doors::{Entrance, Reach, Speech, send, walk};
use super::held::{ASKING, all, house, reason, text};
use super::house::{Given, House, Noon, ada};
use super::recorder::Speaks;

async fn call(house: &House, caller: Caller, arguments: &str) -> String {
    let text = text(Speech::Modern, arguments, "");
    let said = walk(house, caller, Scope::One("notes".into()), Speech::Modern, &text).await;
    let said: Value = serde_json::from_str(&said).unwrap_or(Value::String(said));
    let reason = reason(&said);
    if reason.starts_with("ran") { "ran".to_owned() } else { reason }
}

async fn grant(house: &House, claims: GrantClaims, calls_left: Option<u64>) -> String {
    let claims = GrantClaims { server: "notes".to_owned(), by: "bob".to_owned(), ..claims };
    let expires_at = Noon.now().checked_add(Duration::from_secs(60)).unwrap_or_default();
    let id = format!("grant-{calls_left:?}-{claims:?}");
    let grant = Grant { id: id.clone(), claims, issued_at: Noon.now(), expires_at, calls_left, revoked_at: None };
    let Some(state) = &house.state else { unreachable!("there is a desk") };
    assert!(state.issue_grant(&grant).await.is_ok());
    id
}

fn text_of(words: &str) -> Option<String> {
    Some(words.to_owned())
}

fn for_ada() -> GrantClaims {
    GrantClaims { user: text_of("ada"), tool: text_of("write"), ..GrantClaims::default() }
}

/// A pipe is a conversation: the next one is another, though the same person is at its end.
#[tokio::test]
async fn review_7_this_session_on_a_pipe_ends_with_the_pipe() {
    let house = house(&ASKING, Speaks::Both).await;
    let call = |number: u8| format!(r#""name":"write","arguments":{{"n":{number}}}"#);
    for number in 0..2 {
        let params = call(number);
        send(&house, Entrance::Stdio(Reach::One), Speech::Legacy, "tools/call", &params).await;
    }
    let anchors: Vec<String> = all(&house).await.into_iter().filter_map(|one| one.call.anchor).collect();
    let [first, second] = anchors.as_slice() else { unreachable!("{anchors:?}") };
    let marks = [first, second].map(|anchor| anchor.strip_prefix(SESSION_ANCHOR).unwrap_or_default().to_owned());
    assert!(first != second && marks.iter().all(|mark| mark.len() >= 8), "{anchors:?}");
    for mark in marks {
        grant(&house, GrantClaims { session: Some(mark), ..for_ada() }, None).await;
    }
    let said = send(&house, Entrance::Stdio(Reach::One), Speech::Legacy, "tools/call", &call(3)).await;
    assert!(said.contains("not_in_allowlist") && house.recorder.calls().is_empty(), "{said}");
}

#[tokio::test]
async fn review_9_so_many_calls_and_no_more() {
    let house = house(&ASKING, Speaks::Both).await;
    let id = grant(&house, for_ada(), Some(3)).await;
    let all_of_them = join_all((0..20).map(|number| {
        let house = &house;
        async move { call(house, ada(), &format!("{{\"n\":{number}}}")).await }
    }));
    let ran = all_of_them.await.iter().filter(|said| *said == "ran").count();
    assert_eq!((ran, house.recorder.calls().len()), (3, 3));
    assert_eq!(call(&house, ada(), "{}").await, "not_in_allowlist", "it is used up");
    let records = house.records().await;
    let under = records.iter().filter(|record| record.get("approval_id").and_then(Value::as_str) == Some(&id));
    assert!(under.count() >= 6, "three intents and three outcomes name it");
}

#[tokio::test]
async fn review_9_a_grant_is_for_whom_it_names_and_for_nobody_else() {
    let house = house(&ASKING, Speaks::Both).await;
    grant(&house, GrantClaims { tool: text_of("other"), ..for_ada() }, None).await;
    grant(&house, GrantClaims { run: text_of("r1"), ..for_ada() }, None).await;
    grant(&house, GrantClaims { token: text_of("t1"), ..for_ada() }, None).await;
    grant(&house, GrantClaims { definition: text_of("as it was once"), ..for_ada() }, None).await;
    grant(&house, GrantClaims { user: None, tool: text_of("write"), ..GrantClaims::default() }, None).await;
    assert_eq!(call(&house, ada(), "{}").await, "not_in_allowlist");
    assert_eq!(call(&house, Caller::person("bob"), "{}").await, "not_in_allowlist");
    assert!(house.recorder.calls().is_empty());
    let mut in_run = ada();
    in_run.context.run = text_of("r1");
    assert_eq!(call(&house, in_run, "{}").await, "ran");
    let mut with_token = ada();
    with_token.token.id = text_of("t1");
    assert_eq!(call(&house, with_token, "{}").await, "ran");
    assert_eq!(house.recorder.calls().len(), 2);
}

#[tokio::test]
async fn review_9_what_always_asks_is_not_paid_by_a_grant() {
    for (config, wanted) in [
        ("[auto_run]\nask = [\"notes:write\"]\n", "mandatory_ask"),
        ("[auto_run]\nmode = \"ask_every_time\"\nprotections = { mcp = true }\n", "protected"),
    ] {
        let house = house(&Given { config, ..ASKING }, Speaks::Both).await;
        grant(&house, for_ada(), None).await;
        assert_eq!(call(&house, ada(), "{}").await, wanted);
        assert!(house.recorder.calls().is_empty());
    }
    // And what a rule says of answers it says of grants.
    let given = Given { config: "[control.approve.\"notes:write\"]\napprovers = [\"carla\"]\n", ..ASKING };
    let house = house(&given, Speaks::Both).await;
    grant(&house, for_ada(), None).await;
    assert_eq!(call(&house, ada(), "{}").await, "not_in_allowlist");
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn review_9_a_grant_that_is_taken_back_pays_nothing() {
    let house = house(&ASKING, Speaks::Both).await;
    let id = grant(&house, for_ada(), None).await;
    assert_eq!(call(&house, ada(), "{}").await, "ran");
    let Some(state) = &house.state else { unreachable!("there is a desk") };
    assert!(state.revoke_grant(&id, Noon.now()).await.is_ok_and(|revoked| revoked));
    assert_eq!(call(&house, ada(), "{}").await, "not_in_allowlist");
    assert_eq!(house.recorder.calls().len(), 1);
}

#[tokio::test]
async fn review_7_this_session_is_offered_where_there_is_one() {
    let house = house(&ASKING, Speaks::Both).await;
    let anchor = async |arguments: &str| {
        let held = all(&house).await.into_iter().find(|held| held.call.params.contains(arguments));
        held.and_then(|held| held.call.anchor).unwrap_or_default()
    };
    call(&house, ada(), "{\"n\":1}").await;
    assert_eq!(anchor("\"n\":1").await, "", "a modern call of nobody's");
    let mut with_token = ada();
    with_token.token.id = text_of("t1");
    call(&house, with_token, "{\"n\":2}").await;
    assert_eq!(anchor("\"n\":2").await, "token:t1");
    let legacy = text(Speech::Legacy, "{\"n\":3}", "");
    walk(&house, ada(), Scope::One("notes".into()), Speech::Legacy, &legacy).await;
    assert!(anchor("\"n\":3").await.starts_with("session:"));
}

/// Where an administrator says what runs unasked, answers for more than one call do not count (ALLOW-10).
#[tokio::test]
async fn review_9_a_grant_counts_for_nothing_under_an_admins_record() {
    let house = house(&ASKING, Speaks::Both).await;
    grant(&house, for_ada(), None).await;
    assert_eq!(call(&house, ada(), "{\"n\":1}").await, "ran");
    let admin = AdminInput { enabled: true, enable_run_everything: true, ..AdminInput::default() };
    house.judge_by(&Given { admin: Some(admin), ..ASKING });
    let said = call(&house, ada(), "{\"n\":2}").await;
    assert!(said != "ran" && house.recorder.calls().len() == 1, "{said}");
    // Nor is "this session" offered there.
    let kept = all(&house).await;
    assert!(kept.iter().all(|approval| approval.call.anchor.is_none()) && kept.len() == 1, "{kept:?}");
}
