//! A client is told when what it may see changed, and only then (ALLOW-12).

use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::{META, Speech, get_in_session, open_session};
use super::eras::puppet::Wire;
use super::house::{Given, House};
use super::parking::house;
use super::pinned::accept;
use super::pipe::Pipe;
use super::recorder::{Recorder, Speaks};

const CONFIG: &str = "[auto_run]\nmode = \"run_everything\"";

fn blocking(blocks: &'static [&'static str]) -> Given {
    Given { config: CONFIG, blocks, ..Given::default() }
}

async fn plain(speaks: Speaks) -> House {
    let Ok(recorder) = Recorder::start(speaks).await else { unreachable!("it is started") };
    let Some(house) = House::around(&blocking(&[]), recorder).await else { unreachable!("the house is built") };
    house
}

fn request(speech: Speech, id: u64, method: &str, mut params: Value) -> Value {
    if let (Speech::Modern, Some(params)) = (speech, params.as_object_mut()) {
        let meta: Value = serde_json::from_str(&format!("{{{META}}}")).unwrap_or_default();
        params.insert("_meta".to_owned(), meta.get("_meta").cloned().unwrap_or_default());
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// The method of the next message; nothing for an answer.
async fn next_news(pipe: &mut Pipe) -> String {
    let news = pipe.hear().await;
    news.get("method").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// A client that has seen the tools, and listens.
async fn listening(house: &House, scope: &Scope, speech: Speech) -> Pipe {
    let mut pipe = Pipe::open(house, scope.clone(), speech).await;
    pipe.say(&request(speech, 1, "tools/list", json!({}))).await;
    assert!(pipe.hear().await.to_string().contains("write"));
    if speech == Speech::Modern {
        let filter = json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true } });
        pipe.say(&request(speech, 2, "subscriptions/listen", filter)).await;
        let agreed = pipe.hear().await;
        assert!(agreed.to_string().contains("acknowledged"), "{agreed}");
    }
    pipe
}

#[tokio::test]
async fn allow_12_clients_are_told_when_what_they_may_see_changed() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        for scope in [Scope::One("notes".into()), Scope::All] {
            for speech in [Speech::Legacy, Speech::Modern] {
                // The recorder has no stream that a modern client could be given; the next test has.
                if speech == Speech::Modern && speaks == Speaks::Modern {
                    continue;
                }
                let house = plain(speaks).await;
                let place = format!("{speaks:?} {scope:?} {speech:?}");
                let mut pipe = listening(&house, &scope, speech).await;
                // A change of what is not shown in lists is no news.
                house.judge_by(&Given { allowlist: &["notes:write"], ..blocking(&[]) });
                house.judge_by(&blocking(&["notes:write"]));
                let news = next_news(&mut pipe).await;
                assert_eq!(news, "notifications/tools/list_changed", "{place}");
                pipe.say(&request(speech, 3, "tools/list", json!({}))).await;
                let listed = pipe.hear().await;
                assert_eq!(listed.get("id"), Some(&json!(3)), "{place}: one change, one notice: {listed}");
                assert!(!listed.to_string().contains("write\"") || listed.to_string().contains("db.write"), "{place}");
                house.judge_by(&blocking(&[]));
                assert_eq!(next_news(&mut pipe).await, "notifications/tools/list_changed", "{place}");
            }
        }
    }
}

/// Modern client, modern server: the gateway's own notices come on the stream of the server.
#[tokio::test]
async fn allow_12_modern_clients_of_modern_servers_are_told_too() {
    let judged = |blocks| Given {
        config: super::giving_up::CONFIG,
        server: "may_ask = [\"elicitation\", \"url\"]",
        blocks,
        ..Given::default()
    };
    for scope in [Scope::One("notes".into()), Scope::All] {
        let (house, puppet) = house(Wire::Modern).await;
        let mut pipe = Pipe::open(&house, scope.clone(), Speech::Modern).await;
        pipe.say(&request(Speech::Modern, 1, "tools/list", json!({}))).await;
        assert!(pipe.hear().await.to_string().contains("act\""), "{scope:?}");
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        pipe.say(&request(Speech::Modern, 2, "subscriptions/listen", filter)).await;
        let agreed = pipe.hear().await;
        assert!(agreed.to_string().contains("acknowledged"), "{scope:?}: {agreed}");
        // What is not shown in lists is no news.
        house.judge_by(&Given { allowlist: &["notes:act"], ..judged(&[]) });
        house.judge_by(&judged(&["notes:act"]));
        assert_eq!(next_news(&mut pipe).await, "notifications/tools/list_changed", "{scope:?}");
        pipe.say(&request(Speech::Modern, 3, "tools/list", json!({}))).await;
        let listed = pipe.hear().await;
        assert_eq!(listed.get("id"), Some(&json!(3)), "{scope:?}: one change, one notice: {listed}");
        assert!(!listed.to_string().contains("act\""), "{scope:?}: {listed}");
        house.judge_by(&judged(&[]));
        assert_eq!(next_news(&mut pipe).await, "notifications/tools/list_changed", "{scope:?}");
        // And the server's own notices are still heard.
        puppet.announce();
        assert_eq!(next_news(&mut pipe).await, "notifications/tools/list_changed", "{scope:?}");
    }
}

#[tokio::test]
async fn allow_12_an_accepted_definition_is_news() {
    for scope in [Scope::One("notes".into()), Scope::All] {
        for speech in [Speech::Legacy, Speech::Modern] {
            let house = plain(Speaks::Legacy).await;
            let mut pipe = listening(&house, &scope, speech).await;
            let tools = json!([{ "name": "write", "description": "other", "inputSchema": { "type": "object" } }]);
            house.recorder.lists("tools/list", vec![json!({ "tools": tools })]);
            pipe.say(&request(speech, 3, "tools/list", json!({}))).await;
            assert!(!pipe.hear().await.to_string().contains("other\""));
            accept(&house, "notes");
            let mut news = [next_news(&mut pipe).await, next_news(&mut pipe).await];
            news.sort();
            assert_eq!(news, ["notifications/prompts/list_changed", "notifications/tools/list_changed"]);
        }
    }
}

#[tokio::test]
async fn allow_12_a_standing_stream_of_a_server_carries_the_gateways_news_too() {
    let (house, _puppet) = house(Wire::Legacy).await;
    let session = open_session(&house).await;
    let mut body = get_in_session(&house, &session).await.into_body();
    house.judge_by(&Given {
        config: super::giving_up::CONFIG,
        server: "may_ask = [\"elicitation\", \"url\"]",
        blocks: &["notes:act"],
        ..Given::default()
    });
    // Nobody listed its tools yet, so the gateway knows of none: the change of one is none.
    super::doors::post_in_session(&house, &session, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    house.judge_by(&Given {
        config: super::giving_up::CONFIG,
        server: "may_ask = [\"elicitation\", \"url\"]",
        ..Given::default()
    });
    let news = body.frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok()).unwrap_or_default();
    assert!(String::from_utf8_lossy(&news).contains("tools/list_changed"), "{news:?}");
}
