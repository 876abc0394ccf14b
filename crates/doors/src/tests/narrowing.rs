//! A narrower policy closes what is open: streams of calls, subscriptions, standing streams, and news (GATE-19).

use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::json::Limits;
use toolwarden_mcp::Message;
use toolwarden_mcp::message::read_one;

use super::doors::{META, Speech, get_in_session, open_session, post_in_session};
use super::eras::puppet::Wire;
use super::giving_up::{CONFIG, call};
use super::house::{Given, House, ada};
use super::parking::{self, house, statuses};
use super::patience::eventually;
use super::pipe::Pipe;
use super::recorder::Speaks;

/// Lists that change with the policy.
const LISTS: [&str; 3] = ["tools", "prompts", "resources"];

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// The tool is blocked, and everything else stays.
fn without_the_tool() -> Given {
    Given { config: CONFIG, server: "may_ask = [\"elicitation\", \"url\"]", blocks: &["notes:act"], ..Given::default() }
}

/// The server is switched off.
fn without_the_server() -> Given {
    Given { config: CONFIG, server: "enabled = false", ..Given::default() }
}

/// Wider than before, in a way.
fn the_same() -> Given {
    Given {
        config: CONFIG,
        server: "may_ask = [\"elicitation\", \"url\"]",
        blocks: &["notes:other"],
        ..Given::default()
    }
}

pub(super) const EVERYWHERE: [(Wire, Speech); 6] = [
    (Wire::Modern, Speech::Modern),
    (Wire::Modern, Speech::Legacy),
    (Wire::Legacy, Speech::Modern),
    (Wire::Legacy, Speech::Legacy),
    (Wire::Oldest, Speech::Modern),
    (Wire::Oldest, Speech::Legacy),
];

#[tokio::test]
async fn gate_19_a_narrower_policy_closes_the_stream_of_a_call() {
    for (wire, speech) in EVERYWHERE {
        let (house, puppet) = house(wire).await;
        let mut pipe = Pipe::open(&house, Scope::One("notes".into()), speech).await;
        pipe.say(&call(speech, 7, &["Progress", "Hang"])).await;
        let progress = pipe.hear_besides(&LISTS).await;
        assert!(progress.to_string().contains("progress"), "{wire:?} {speech:?}: {progress}");
        house.judge_by(&the_same());
        pipe.say(&call(speech, 8, &[])).await;
        let other = pipe.hear_besides(&LISTS).await;
        assert_eq!(other.get("id"), Some(&json!(8)), "{wire:?} {speech:?}: {other}");
        house.judge_by(&without_the_tool());
        let last = pipe.hear_besides(&LISTS).await;
        assert_eq!(last.get("id"), Some(&json!(7)), "{wire:?} {speech:?}: {last}");
        assert!(last.to_string().contains("Denied by Toolwarden"), "{wire:?} {speech:?}: {last}");
        let told = eventually(async || puppet.cancelled() + puppet.hung_up() > 0).await;
        assert!(told, "{wire:?} {speech:?}: the server was not told");
        // What it did before is not known.
        let closed = eventually(async || statuses(&house).await == ["ok", "unknown"]).await;
        assert!(closed, "{wire:?} {speech:?}: {:?}", statuses(&house).await);
    }
}

/// Before the first byte of an answer there is no stream yet; it is a refusal then.
#[tokio::test]
async fn gate_19_a_narrower_policy_ends_a_call_that_waits() {
    for (wire, speech) in EVERYWHERE {
        let (house, puppet) = house(wire).await;
        let mut pipe = Pipe::open(&house, Scope::One("notes".into()), speech).await;
        pipe.say(&call(speech, 7, &["HangAtOnce"])).await;
        assert!(eventually(async || puppet.hanging() == 1).await, "{wire:?}");
        house.judge_by(&without_the_tool());
        let last = pipe.hear_besides(&LISTS).await;
        assert!(last.to_string().contains("Denied by Toolwarden"), "{wire:?} {speech:?}: {last}");
        let told = eventually(async || puppet.cancelled() + puppet.hung_up() > 0).await;
        assert!(told, "{wire:?} {speech:?}: the server was not told");
        assert_eq!(statuses(&house).await, ["unknown"], "{wire:?} {speech:?}");
    }
}

/// A call that waits for its client's answer does not wait under another policy.
#[tokio::test]
async fn gate_19_a_narrower_policy_ends_a_call_that_asked() {
    let (house, puppet) = house(Wire::Legacy).await;
    let said = parking::call(&house, ada(), &["Ask"], parking::EVERYTHING, &json!({})).await;
    assert!(said.to_string().contains("input_required"), "{said}");
    house.judge_by(&the_same());
    assert_eq!(puppet.cancelled(), 0);
    house.judge_by(&without_the_tool());
    assert!(eventually(async || puppet.cancelled() == 1).await);
    assert_eq!(statuses(&house).await, ["unknown"]);
}

/// A legacy client that went away can come back, and its call goes on across eras: not under another policy.
#[tokio::test]
async fn gate_19_a_narrower_policy_ends_a_call_whose_client_is_gone() {
    let (house, puppet) = house(Wire::Modern).await;
    let session = open_session(&house).await;
    let text = call(Speech::Legacy, 7, &["Progress", "Hang"]).to_string();
    drop(post_in_session(&house, &session, &text).await);
    assert!(eventually(async || puppet.hanging() == 1).await);
    assert_eq!(puppet.hung_up(), 0, "it goes on");
    house.judge_by(&without_the_tool());
    assert!(eventually(async || puppet.hung_up() == 1).await);
    assert!(eventually(async || statuses(&house).await == ["unknown"]).await);
}

/// The answer of a call whose stream broke off comes on the standing stream, and is looked at like any other.
#[tokio::test]
async fn gate_19_an_answer_that_comes_late_is_judged_again() {
    let content = json!([{"type": "text", "text": "late"}]);
    let forged = json!({"content": content, "_meta": {"toolwarden/decision": {"candidates": ["notes:*"]}}});
    for (given, result, passes, status) in [
        (the_same(), json!({"content": content}), true, "ok"),
        (without_the_tool(), json!({"content": content}), false, "unknown"),
        (the_same(), forged, false, "upstream_error"),
    ] {
        let (house, puppet) = house(Wire::Legacy).await;
        let session = open_session(&house).await;
        let text = call(Speech::Legacy, 7, &["BreakOff"]).to_string();
        let first = post_in_session(&house, &session, &text).await.into_body().collect().await;
        assert!(first.is_ok_and(|first| String::from_utf8_lossy(&first.to_bytes()).contains("progress")));
        let mut standing = get_in_session(&house, &session).await.into_body();
        house.judge_by(&given);
        puppet.answer_late(&result);
        let mut said = "list_changed".to_owned();
        while said.contains("list_changed") {
            let frame = standing.frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
            said = String::from_utf8_lossy(&frame.unwrap_or_default()).into_owned();
        }
        assert_eq!(said.contains("late"), passes, "{said}");
        assert!(said.contains("\"id\":7"), "{said}");
        assert_eq!(statuses(&house).await, [status], "{said}");
    }
}

fn listen() -> Value {
    let meta: Value = serde_json::from_str(&format!("{{{META}}}")).unwrap_or_default();
    json!({"jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen", "params": {
        "notifications": {"toolsListChanged": true}, "_meta": meta.get("_meta")}})
}

#[tokio::test]
async fn gate_19_a_narrower_policy_closes_subscriptions() {
    for wire in [Wire::Modern, Wire::Legacy, Wire::Oldest] {
        let (house, _puppet) = house(wire).await;
        let mut pipe = Pipe::open(&house, Scope::One("notes".into()), Speech::Modern).await;
        pipe.say(&listen()).await;
        let first = pipe.hear_besides(&LISTS).await;
        assert!(first.to_string().contains("acknowledged"), "{wire:?}: {first}");
        house.judge_by(&without_the_server());
        let last = pipe.hear_besides(&LISTS).await;
        assert_eq!(last.get("id"), Some(&json!(3)), "{wire:?}: {last}");
        assert!(last.get("error").is_some(), "{wire:?}: {last}");
    }
}

#[tokio::test]
async fn gate_19_a_narrower_policy_closes_the_standing_stream() {
    let (house, puppet) = house(Wire::Legacy).await;
    let session = open_session(&house).await;
    let response = get_in_session(&house, &session).await;
    assert_eq!(response.status(), http::StatusCode::OK);
    let mut body = response.into_body();
    puppet.announce();
    let news = body.frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok()).unwrap_or_default();
    assert!(String::from_utf8_lossy(&news).contains("list_changed"), "{news:?}");
    house.judge_by(&without_the_server());
    puppet.announce();
    let rest = tokio::time::timeout(PATIENCE, body.collect()).await;
    let rest = rest.ok().and_then(Result::ok).map(http_body_util::Collected::to_bytes);
    assert_eq!(rest.as_deref(), Some(&b""[..]), "it ends, and says no more");
    assert_eq!(get_in_session(&house, &session).await.status(), http::StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn gate_19_news_reach_only_whom_the_policy_of_the_moment_permits() {
    let (house, _puppet) = house(Wire::Legacy).await;
    let hears = |method: &str, params: &str| {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#);
        match (read_one(text.as_bytes(), Limits::DEFAULT), house.gateway.upstream("notes")) {
            (Ok(Message::Notification(news)), Some(upstream)) => upstream.may_tell(&news, &ada().into()),
            other => unreachable!("{other:?}"),
        }
    };
    let all = [
        ("notifications/tools/list_changed", "{}"),
        ("notifications/resources/updated", r#"{"uri":"note://a"}"#),
        ("notifications/message", r#"{"level":"info","data":"a"}"#),
    ];
    for (method, params) in all {
        assert!(hears(method, params), "{method}");
    }
    house.judge_by(&without_the_server());
    for (method, params) in all {
        assert!(!hears(method, params), "{method}");
    }
}

/// Whoever may not watch a resource any more may still let go of it: else its server tells of it for ever.
#[tokio::test]
async fn gate_19_what_was_watched_is_let_go_of_under_any_policy() {
    let unsubscribed = |house: &House| {
        let received = house.recorder.all();
        received.iter().filter(|(method, _)| method == "resources/unsubscribe").count()
    };
    for speech in [Speech::Modern, Speech::Legacy] {
        let house = House::before(&Given { config: CONFIG, ..Given::default() }, Speaks::Legacy).await;
        assert!(house.is_some());
        let Some(house) = house else { unreachable!("the gateway is built") };
        let mut pipe = Pipe::open(&house, Scope::One("notes".into()), speech).await;
        let watch =
            |method: &str| json!({"jsonrpc": "2.0", "id": method, "method": method, "params": {"uri": "note://a"}});
        if speech == Speech::Modern {
            let mut listen = listen();
            if let Some(filter) = listen.pointer_mut("/params/notifications") {
                *filter = json!({"resourceSubscriptions": ["note://a"]});
            }
            pipe.say(&listen).await;
        } else {
            pipe.say(&watch("resources/subscribe")).await;
        }
        let begun = pipe.hear_besides(&LISTS).await;
        assert!(begun.get("error").is_none() && !begun.is_null(), "{speech:?}: {begun}");
        house.judge_by(&without_the_server());
        if speech == Speech::Legacy {
            pipe.say(&watch("resources/unsubscribe")).await;
            let ended = pipe.hear_besides(&LISTS).await;
            assert!(ended.get("result").is_some(), "{ended}");
            // What it does not watch is judged.
            pipe.say(&watch("resources/unsubscribe")).await;
            let refused = pipe.hear_besides(&LISTS).await;
            assert!(refused.get("error").is_some(), "{refused}");
        }
        assert!(eventually(async || unsubscribed(&house) == 1).await, "{speech:?}: {:?}", house.recorder.all());
    }
}
