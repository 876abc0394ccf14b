//! Several servers under one roof: paging, names that never meet, freshness, and one that is down.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use toolwarden_conversations::Scope;

use super::doors::{Entrance, META, Reach, Speech, request, send, walk};
use super::eras::puppet::{Puppet, Wire};
use super::house::{Given, House, ada};
use super::patience::eventually;
use super::pipe::Pipe;
use super::recorder::{ALL_KINDS, Recorder, Speaks};

const DOOR: Entrance = Entrance::Http(Reach::All);

async fn two(kinds: [Speaks; 2]) -> (House, Recorder) {
    let built = House::with_two(&Given::OPEN, kinds).await;
    assert!(built.is_some());
    let Some(built) = built else { unreachable!("asserted") };
    built
}

/// The result of a list, from a cursor on.
async fn list(house: &House, speech: Speech, method: &str, cursor: Option<&str>) -> Value {
    let params = cursor.map(|cursor| format!("\"cursor\":{}", json!(cursor))).unwrap_or_default();
    let said = send(house, DOOR, speech, method, &params).await;
    let message: Value = serde_json::from_str(&said).unwrap_or_default();
    message.get("result").cloned().unwrap_or(message)
}

fn names(result: &Value, key: &str, member: &str) -> Vec<String> {
    let entries = result.get(key).and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| entry.get(member)?.as_str().map(str::to_owned)).collect()
}

/// All pages of a list.
async fn all(house: &House, speech: Speech, method: &str, key: &str, member: &str) -> Vec<Vec<String>> {
    let (mut pages, mut cursor) = (Vec::new(), None::<String>);
    for _ in 0..50 {
        let page = list(house, speech, method, cursor.as_deref()).await;
        pages.push(names(&page, key, member));
        cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    pages
}

fn tools(range: std::ops::Range<usize>) -> Value {
    let tools: Vec<Value> =
        range.map(|number| json!({"name": format!("t{number}"), "inputSchema": {"type": "object"}})).collect();
    json!({"tools": tools, "resultType": "complete", "ttlMs": 5_000, "cacheScope": "public"})
}

#[tokio::test]
async fn long_lists_are_paged_without_loss_or_repetition() {
    for kinds in [[Speaks::Both, Speaks::Both], [Speaks::Legacy, Speaks::Modern]] {
        let (house, other) = two(kinds).await;
        house.recorder.lists("tools/list", vec![tools(0..400), tools(400..450)]);
        other.lists("tools/list", vec![tools(0..300), tools(300..600)]);
        for speech in [Speech::Legacy, Speech::Modern] {
            let pages = all(&house, speech, "tools/list", "tools", "name").await;
            assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [500, 500, 50], "{kinds:?} {speech:?}");
            let distinct: BTreeSet<&String> = pages.iter().flatten().collect();
            assert_eq!(distinct.len(), 1050, "{kinds:?} {speech:?}");
            let first = pages.first().and_then(|page| page.first());
            assert_eq!(first.map(String::as_str), Some("notes__t0"), "in the order of the config");
        }
    }
}

#[tokio::test]
async fn resources_are_paged_with_the_cursors_of_their_servers() {
    let resources = |from: usize| {
        let entries: Vec<Value> =
            (from..from + 3).map(|n| json!({"uri": format!("note://{n}"), "name": "n"})).collect();
        json!({"resources": entries, "resultType": "complete"})
    };
    for kinds in [[Speaks::Both, Speaks::Both], [Speaks::Modern, Speaks::Legacy]] {
        let (house, other) = two(kinds).await;
        house.recorder.lists("resources/list", vec![resources(0), resources(3), resources(6)]);
        other.lists("resources/list", vec![resources(0), resources(3)]);
        for speech in [Speech::Legacy, Speech::Modern] {
            let pages = all(&house, speech, "resources/list", "resources", "uri").await;
            assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [6, 3, 3, 3], "{kinds:?} {speech:?}: {pages:?}");
            let distinct: BTreeSet<&String> = pages.iter().flatten().collect();
            assert_eq!(distinct.len(), 15, "the same address at two servers is two resources: {pages:?}");
            assert!(distinct.contains(&"toolwarden://notes/note://0".to_owned()), "{pages:?}");
        }
    }
}

#[tokio::test]
async fn cursors_count_for_their_list_and_caller_only() {
    let (house, _other) = two([Speaks::Both, Speaks::Both]).await;
    house.recorder.lists("tools/list", vec![tools(0..600)]);
    let page = list(&house, Speech::Modern, "tools/list", None).await;
    let cursor = page.get("nextCursor").and_then(Value::as_str).unwrap_or_default().to_owned();
    assert!(!cursor.is_empty(), "{page}");
    let changed: String = cursor.chars().rev().collect();
    let long = "A".repeat(10_000);
    for (method, cursor) in [
        ("prompts/list", cursor.as_str()),
        ("resources/list", cursor.as_str()),
        ("tools/list", changed.as_str()),
        ("tools/list", "1"),
        ("tools/list", ""),
        ("tools/list", long.as_str()),
    ] {
        let said = list(&house, Speech::Modern, method, Some(cursor)).await;
        assert_eq!(said.pointer("/error/code"), Some(&json!(-32602)), "{method} {cursor}: {said}");
    }
    let mut bob = ada();
    bob.user = Some("bob".to_owned());
    let text = request(Speech::Modern, "tools/list", &format!("\"cursor\":{}", json!(cursor)));
    let said = walk(&house, bob, Scope::All, Speech::Modern, &text).await;
    assert!(said.contains("-32602"), "{said}");
    // The entry it stands for is gone.
    house.recorder.lists("tools/list", vec![tools(1000..1600)]);
    let said = list(&house, Speech::Modern, "tools/list", Some(&cursor)).await;
    assert_eq!(said.pointer("/error/code"), Some(&json!(-32602)), "{said}");
}

#[tokio::test]
async fn a_list_is_as_fresh_as_its_stalest_part_and_never_shared() {
    let (house, other) = two([Speaks::Both, Speaks::Both]).await;
    house.recorder.lists("tools/list", vec![tools(0..3)]);
    let mut long = tools(0..1);
    if let Some(long) = long.as_object_mut() {
        long.insert("ttlMs".to_owned(), json!(9_000_000));
    }
    other.lists("tools/list", vec![long]);
    let page = list(&house, Speech::Modern, "tools/list", None).await;
    assert_eq!((page.get("ttlMs"), page.get("cacheScope")), (Some(&json!(5_000)), Some(&json!("private"))));
    house.recorder.lists("tools/list", vec![tools(0..1).as_object().map_or(json!({}), |_| json!({"tools": []}))]);
    let page = list(&house, Speech::Modern, "tools/list", None).await;
    assert_eq!(page.get("ttlMs"), Some(&json!(0)), "a part that says nothing is stale: {page}");

    let (house, _other) = two([Speaks::Modern, Speaks::Legacy]).await;
    let page = list(&house, Speech::Modern, "tools/list", None).await;
    assert_eq!(page.get("ttlMs"), Some(&json!(0)), "a legacy server says nothing of it: {page}");
}

#[tokio::test]
async fn a_server_that_is_down_is_named_and_takes_nothing_from_the_others() {
    for kind in ALL_KINDS {
        let (house, other) = two([kind, Speaks::Both]).await;
        for speech in [Speech::Legacy, Speech::Modern] {
            other.goes_down(false);
            let before = names(&list(&house, speech, "tools/list", None).await, "tools", "name");
            assert!(before.iter().any(|name| name == "other__write"), "{before:?}");
            other.goes_down(true);
            let page = list(&house, speech, "tools/list", None).await;
            assert_eq!(page.pointer("/_meta/toolwarden~1unavailable"), Some(&json!(["other"])), "{kind:?} {page}");
            if speech == Speech::Modern {
                assert_eq!(names(&page, "tools", "name"), before, "what it listed last is still shown");
                assert_eq!(page.get("ttlMs"), Some(&json!(0)));
            }
            let params = r#""name":"notes__write","arguments":{}"#;
            let said = send(&house, DOOR, speech, "tools/call", params).await;
            assert!(said.contains("done"), "{said}");
            let said = send(&house, DOOR, speech, "tools/call", r#""name":"other__write","arguments":{}"#).await;
            assert!(!said.contains("done"), "{said}");
        }
    }
}

#[tokio::test]
async fn addresses_lead_to_the_server_that_listed_them() {
    let (house, other) = two([Speaks::Both, Speaks::Both]).await;
    let web = json!({"resources": [{"uri": "https://example.com/a", "name": "a"}, {"uri": "ui://page", "name": "p"}]});
    other.lists("resources/list", vec![web]);
    let templates = json!({"resourceTemplates": [
        {"uriTemplate": "https://docs.example.com/{page}", "name": "d"},
        {"uriTemplate": "h{anything}", "name": "greedy"},
        {"uriTemplate": "note://{id}", "name": "n"},
    ]});
    other.lists("resources/templates/list", vec![templates]);
    let listed = names(&list(&house, Speech::Modern, "resources/list", None).await, "resources", "uri");
    assert_eq!(listed, ["toolwarden://notes/note://a", "https://example.com/a", "ui://other/page"]);
    let shown = list(&house, Speech::Modern, "resources/templates/list", None).await;
    let shown = names(&shown, "resourceTemplates", "uriTemplate");
    assert!(shown.contains(&"toolwarden://other/note://{id}".to_owned()), "{shown:?}");
    for (uri, own) in [
        ("https://example.com/a", Some("https://example.com/a")),
        ("https://docs.example.com/x", Some("https://docs.example.com/x")),
        ("ui://other/page", Some("ui://page")),
        ("toolwarden://other/note://7", Some("note://7")),
        ("https://elsewhere.example.com/", None),
        ("ui://page", None),
        ("note://7", None),
        ("toolwarden://nobody/note://7", None),
    ] {
        house.recorder.forget();
        other.forget();
        let said = send(&house, DOOR, Speech::Modern, "resources/read", &format!("\"uri\":{}", json!(uri))).await;
        let read: Vec<_> = other.calls().into_iter().filter(|(method, _)| method == "resources/read").collect();
        assert!(house.recorder.calls().is_empty(), "{uri} went to the other server: {said}");
        match own {
            Some(own) => assert!(read.iter().any(|(_, text)| text.contains(own)), "{uri}: {read:?} {said}"),
            None => assert!(read.is_empty() && said.contains("Unknown resource"), "{uri}: {read:?} {said}"),
        }
    }
}

#[tokio::test]
async fn a_page_that_a_tool_shows_keeps_its_server() {
    let (house, other) = two([Speaks::Both, Speaks::Both]).await;
    let tool =
        json!({"name": "t", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://page", "x": 1}}});
    other.lists("tools/list", vec![json!({"tools": [tool]})]);
    let page = list(&house, Speech::Modern, "tools/list", None).await;
    let shown = page.get("tools").and_then(Value::as_array).and_then(|tools| tools.last());
    let meta = shown.and_then(|tool| tool.get("_meta"));
    assert_eq!(meta, Some(&json!({"ui": {"resourceUri": "ui://other/page", "x": 1}})), "{page}");
}

/// A server that forgets a session ends its own part of the conversation, not that with the others.
#[tokio::test]
async fn a_server_that_forgets_does_not_end_the_session_with_all() {
    let (house, other) = two([Speaks::Both, Speaks::Both]).await;
    other.forgets_sessions(true);
    let mut pipe = Pipe::open(&house, Scope::All, Speech::Legacy).await;
    let call = |id: u64, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    let mut said = Vec::new();
    for message in [call(1, "other__write"), call(2, "notes__write"), call(3, "other__write")] {
        if message.get("id") == Some(&json!(3)) {
            other.forgets_sessions(false);
        }
        pipe.say(&message).await;
        said.push(pipe.hear().await.to_string());
    }
    let has = |place: usize, words: &str| said.get(place).is_some_and(|line| line.contains(words));
    assert!(has(0, "has forgotten the conversation"), "{said:?}");
    assert!(has(1, "done") && has(2, "done"), "{said:?}");
}

/// A server that was started anew knows no session: its conversation is opened anew, too.
#[tokio::test]
async fn a_server_that_starts_anew_lists_at_once() {
    let (house, other) = two([Speaks::Both, Speaks::Legacy]).await;
    let mut pipe = Pipe::open(&house, Scope::All, Speech::Legacy).await;
    for number in 1..4 {
        pipe.say(&json!({"jsonrpc": "2.0", "id": number, "method": "tools/list"})).await;
        let said = pipe.hear().await;
        let result = said.get("result").cloned().unwrap_or_default();
        assert_eq!(result.pointer("/_meta/toolwarden~1unavailable"), None, "{number}: {said}");
        assert!(names(&result, "tools", "name").contains(&"other__write".to_owned()), "{number}: {said}");
        other.starts_anew();
    }
}

/// Where one server is the session, the client opens another.
#[tokio::test]
async fn a_session_that_is_over_carries_nothing_any_more() {
    let (house, _other) = two([Speaks::Legacy, Speaks::Legacy]).await;
    let mut pipe = Pipe::open(&house, Scope::One("notes".into()), Speech::Legacy).await;
    let call = |id: u64, tool: &str| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}});
    pipe.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert!(pipe.hear().await.to_string().contains("write"));
    house.recorder.starts_anew();
    // A tool nobody knows is looked for in the server's list, and the server does not know who asks.
    pipe.say(&call(2, "unheard_of")).await;
    pipe.hear().await;
    house.recorder.forget();
    pipe.say(&call(3, "write")).await;
    let said = pipe.hear().await;
    assert!(said.get("error").is_some(), "{said}");
    assert_eq!(house.recorder.all(), Vec::new());
}

/// The cursor of one server does not use up the room of the others'.
#[tokio::test]
async fn a_cursor_without_measure_costs_only_its_own_server() {
    let (house, other) = two([Speaks::Both, Speaks::Both]).await;
    let endless = json!({"resources": [{"uri": "note://a", "name": "a"}], "nextCursor": "x".repeat(20_000)});
    house.recorder.lists("resources/list", vec![endless]);
    let page = |name: &str| json!({"resources": [{"uri": format!("note://{name}"), "name": name}]});
    other.lists("resources/list", vec![page("b"), page("c")]);
    let first = list(&house, Speech::Modern, "resources/list", None).await;
    assert_eq!(first.pointer("/_meta/toolwarden~1unavailable"), Some(&json!(["notes"])), "{first}");
    let pages = all(&house, Speech::Modern, "resources/list", "resources", "uri").await;
    let expected: [&[&str]; 2] =
        [&["toolwarden://notes/note://a", "toolwarden://other/note://b"], &["toolwarden://other/note://c"]];
    assert_eq!(pages, expected);
}

/// Where the cursors of all servers do not fit into one, those that do count, and the others are named.
#[tokio::test]
async fn many_long_cursors_cost_only_some_servers() {
    let recorder = Recorder::start(Speaks::Modern).await;
    assert!(recorder.is_ok());
    let Ok(recorder) = recorder else { unreachable!("the server starts") };
    let server = |number: usize| format!("[servers.s{number}]\nurl = \"{}\"\n", recorder.url);
    let servers: String = (0..40).map(server).collect();
    let config = format!("{}\n{servers}", Given::OPEN.config);
    let house = House::configured(&Given::OPEN, &config, recorder).await;
    assert!(house.is_some());
    let Some(house) = house else { unreachable!("the gateway is built") };
    let page = json!({"resources": [{"uri": "note://a", "name": "a"}], "nextCursor": "\\x".repeat(2_000)});
    house.recorder.lists("resources/list", vec![page]);
    let first = list(&house, Speech::Modern, "resources/list", None).await;
    let missing = first.pointer("/_meta/toolwarden~1unavailable").and_then(Value::as_array).map_or(0, Vec::len);
    assert!((1..39).contains(&missing), "{missing}");
    let pages = all(&house, Speech::Modern, "resources/list", "resources", "uri").await;
    assert_eq!(pages.iter().map(Vec::len).sum::<usize>(), 40 + 40 - missing, "{pages:?}");
}

/// Whoever lists the address of another server does not get to hear who reads it.
#[tokio::test]
async fn an_address_that_two_servers_list_is_read_at_neither() {
    let (house, other) = two([Speaks::Both, Speaks::Both]).await;
    let web = json!({"resources": [{"uri": "https://example.com/a", "name": "a"}]});
    house.recorder.lists("resources/list", vec![web.clone()]);
    other.lists("resources/list", vec![web]);
    list(&house, Speech::Modern, "resources/list", None).await;
    let read = r#""uri":"https://example.com/a""#;
    let said = send(&house, DOOR, Speech::Modern, "resources/read", read).await;
    assert!(said.contains("is listed by `notes` and `other`"), "{said}");
    assert!(house.recorder.calls().is_empty() && other.calls().is_empty());
    let said = send(&house, Entrance::Http(Reach::One), Speech::Modern, "resources/read", read).await;
    assert!(said.contains("contents"), "{said}");
}

async fn two_puppets(kinds: [Wire; 2]) -> (House, [Puppet; 2]) {
    let [first, second] = kinds;
    let (Ok(first), Ok(second)) = (Puppet::start(first).await, Puppet::start(second).await) else {
        unreachable!("a port is free")
    };
    let config = format!(
        "{}\n[servers.first]\nurl = \"{}\"\n[servers.second]\nurl = \"{}\"\n",
        Given::OPEN.config,
        first.url,
        second.url
    );
    let house = House::configured(&Given::OPEN, &config, Recorder::absent(String::new(), Speaks::Both)).await;
    assert!(house.is_some());
    let Some(house) = house else { unreachable!("asserted") };
    (house, [first, second])
}

fn listen(wanted: &Value) -> Value {
    let meta: Value = serde_json::from_str(&format!("{{{META}}}")).unwrap_or_default();
    json!({"jsonrpc": "2.0", "id": 3, "method": "subscriptions/listen",
        "params": {"notifications": wanted, "_meta": meta.get("_meta")}})
}

#[tokio::test]
async fn every_server_is_listened_to_until_the_client_has_enough() {
    for kinds in [[Wire::Modern, Wire::Modern], [Wire::Modern, Wire::Legacy], [Wire::Oldest, Wire::Legacy]] {
        let (house, puppets) = two_puppets(kinds).await;
        let mut pipe = Pipe::open(&house, Scope::All, Speech::Modern).await;
        let wanted = json!({"toolsListChanged": true, "promptsListChanged": true, "nonsense": true});
        for _ in 0..2 {
            pipe.say(&listen(&wanted)).await;
            let first = pipe.hear().await;
            // The puppets of the legacy era offer news of tools only, and those of the modern one agree to all.
            let mut agreed = json!({"toolsListChanged": true});
            if kinds.contains(&Wire::Modern) {
                agreed = json!({"toolsListChanged": true, "promptsListChanged": true});
            }
            assert_eq!(first.pointer("/params/notifications"), Some(&agreed), "{kinds:?}: {first}");
            pipe.say(&listen(&wanted)).await;
            let twice = pipe.hear().await;
            assert!(twice.to_string().contains("still on its way"), "{kinds:?}: {twice}");
            for puppet in &puppets {
                assert!(eventually(async || puppet.is_heard()).await, "{kinds:?}");
                puppet.announce();
                let news = pipe.hear().await;
                assert!(news.to_string().contains("tools/list_changed"), "{kinds:?}: {news}");
            }
            pipe.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}})).await;
            // Of a legacy server the session's stream stays; that the id is free again shows in the next round.
            if kinds == [Wire::Modern; 2] {
                let nobody_listens = async || puppets.iter().all(|one| !one.is_heard());
                assert!(eventually(nobody_listens).await, "{kinds:?}: it listens on");
            }
        }
    }
}

/// A server that starts anew is listened to anew.
#[tokio::test]
async fn a_stream_that_ends_is_opened_again() {
    let (house, [first, second]) = two_puppets([Wire::Modern, Wire::Legacy]).await;
    let mut pipe = Pipe::open(&house, Scope::All, Speech::Modern).await;
    pipe.say(&listen(&json!({"toolsListChanged": true}))).await;
    pipe.hear().await;
    first.hang_up();
    assert!(eventually(async || first.is_heard()).await);
    // What changed while nobody listened was told to nobody.
    let missed = pipe.hear().await;
    assert_eq!(missed.get("method"), Some(&json!("notifications/tools/list_changed")), "{missed}");
    assert_eq!(missed.pointer("/params/_meta/io.modelcontextprotocol~1subscriptionId"), Some(&json!(3)), "{missed}");
    for puppet in [&first, &second] {
        puppet.announce();
        let news = pipe.hear().await;
        assert!(news.to_string().contains("tools/list_changed"), "{news}");
    }
}

/// A server that hangs keeps nobody waiting who listens to the others, and joins them when it can.
#[tokio::test]
async fn a_slow_server_joins_later() {
    let (house, [first, second]) = two_puppets([Wire::Modern, Wire::Modern]).await;
    second.holds_back(true);
    let mut pipe = Pipe::open(&house, Scope::All, Speech::Modern).await;
    let since = Instant::now();
    pipe.say(&listen(&json!({"toolsListChanged": true}))).await;
    let agreed = pipe.hear().await;
    assert_eq!(agreed.pointer("/params/notifications"), Some(&json!({"toolsListChanged": true})), "{agreed}");
    assert!(since.elapsed() < Duration::from_secs(6), "{:?}", since.elapsed());
    first.announce();
    let news = pipe.hear().await;
    assert!(news.to_string().contains("tools/list_changed"), "{news}");
    second.holds_back(false);
    let joined = pipe.hear().await;
    assert!(joined.to_string().contains("tools/list_changed"), "{joined}");
    second.announce();
    let news = pipe.hear().await;
    assert!(news.to_string().contains("tools/list_changed"), "{news}");
}
