//! Flow labels (GATE-20): a conversation that has read untrusted and private data sends nothing out unasked.

use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::Caller;

use super::doors::{ENTRANCES, Entrance, META, Reach, Speech, open_session, post_in_session, request, send, walk};
use super::house::{Given, House, ada};
use super::pipe::Pipe;
use super::recorder::Speaks;

/// `write` sends out, `other` reads what is private, resources are read from anywhere.
const SERVER: &str = "labels = [\"reads_untrusted\"]\ntools.write = { labels = [\"sends_out\"] }\n\
    tools.other = { labels = [\"reads_private\"] }";

async fn house(speaks: Speaks) -> House {
    let given = Given { config: "[auto_run]\nmode = \"run_everything\"", server: SERVER, ..Given::default() };
    let Some(house) = House::before(&given, speaks).await else { unreachable!("the house is built") };
    house
}

fn call(speech: Speech, id: u64, tool: &str) -> Value {
    let mut params = json!({ "name": tool, "arguments": {} });
    if let (Speech::Modern, Some(params)) = (speech, params.as_object_mut()) {
        let meta: Value = serde_json::from_str(&format!("{{{META}}}")).unwrap_or_default();
        params.insert("_meta".to_owned(), meta.get("_meta").cloned().unwrap_or_default());
    }
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

async fn says(pipe: &mut Pipe, message: &Value) -> String {
    pipe.say(message).await;
    pipe.hear().await.to_string()
}

#[tokio::test]
async fn gate_20_labels_add_up_and_hold_what_sends_out_on_every_connection() {
    for (speech, scope, prefix) in [
        (Speech::Legacy, Scope::One("notes".into()), ""),
        (Speech::Modern, Scope::One("notes".into()), ""),
        (Speech::Legacy, Scope::All, "notes__"),
        (Speech::Modern, Scope::All, "notes__"),
    ] {
        for speaks in [Speaks::Legacy, Speaks::Modern] {
            let place = format!("{speech:?} {scope:?} to {speaks:?}");
            let house = house(speaks).await;
            let mut pipe = Pipe::open(&house, scope.clone(), speech).await;
            let (write, other) = (format!("{prefix}write"), format!("{prefix}other"));
            let sent = says(&mut pipe, &call(speech, 1, &write)).await;
            assert!(sent.contains("done"), "{place}: nothing was read yet: {sent}");
            assert!(says(&mut pipe, &call(speech, 2, &other)).await.contains("done"), "{place}");
            let held = says(&mut pipe, &call(speech, 3, &write)).await;
            assert!(held.contains("rule_hold") && held.contains("shipped-flow"), "{place}: {held}");
            assert_eq!(house.recorder.calls().len(), 2, "{place}");
            // Another connection of the same person gives nobody a fresh start.
            let mut fresh = Pipe::open(&house, scope.clone(), speech).await;
            let held = says(&mut fresh, &call(speech, 4, &write)).await;
            assert!(held.contains("rule_hold"), "{place}: {held}");
            assert_eq!(house.recorder.calls().len(), 2, "{place}");
        }
    }
}

#[tokio::test]
async fn gate_20_another_session_is_no_fresh_start() {
    let house = house(Speaks::Legacy).await;
    let session = open_session(&house).await;
    for (tool, words) in [("other", "done"), ("write", "rule_hold")] {
        let text = call(Speech::Legacy, 1, tool).to_string();
        let answer = post_in_session(&house, &session, &text).await;
        let body = http_body_util::BodyExt::collect(answer.into_body()).await;
        let said = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned()).unwrap_or_default();
        assert!(said.contains(words), "{tool}: {said}");
    }
    let entrance = Entrance::Http(Reach::One);
    let sent = send(&house, entrance, Speech::Legacy, "tools/call", "\"name\":\"write\",\"arguments\":{}").await;
    assert!(sent.contains("rule_hold"), "another session: {sent}");
    assert_eq!(house.recorder.calls().len(), 1);
}

#[tokio::test]
async fn gate_20_without_sessions_a_person_is_one_caller() {
    let house = house(Speaks::Modern).await;
    for entrance in ENTRANCES.into_iter().filter(|entrance| matches!(entrance, Entrance::Http(_))) {
        let params = |tool: &str| format!("\"name\":\"{}\",\"arguments\":{{}}", entrance.name(tool));
        let read = send(&house, entrance, Speech::Modern, "tools/call", &params("other")).await;
        assert!(read.contains("done"), "{read}");
        let held = send(&house, entrance, Speech::Modern, "tools/call", &params("write")).await;
        assert!(held.contains("rule_hold"), "{entrance:?}: {held}");
    }
    let text = request(Speech::Modern, "tools/call", "\"name\":\"write\",\"arguments\":{}");
    let eve = walk(&house, Caller::person("eve"), Scope::One("notes".into()), Speech::Modern, &text).await;
    assert!(eve.contains("done"), "another person: {eve}");
}

#[tokio::test]
async fn gate_20_a_held_or_denied_call_has_read_nothing_and_an_agent_cannot_begin_anew() {
    let given = Given {
        config: "[auto_run]\nmode = \"use_allowlist\"\n[roles.reader]\nscope = \"pm\"\nallow = [\"notes:write\", \"notes:other\"]",
        server: "labels = [\"reads_untrusted\"]\ntools.write = { labels = [\"sends_out\"], scope = \"pm\" }\n\
            tools.other = { labels = [\"reads_private\"], scope = \"pm\" }",
        allowlist: &["notes:write"],
        ..Given::default()
    };
    let Some(house) = House::before(&given, Speaks::Both).await else { unreachable!("the house is built") };
    let (scope, text) = (Scope::One("notes".into()), |tool: &str| {
        request(Speech::Legacy, "tools/call", &format!("\"name\":\"{tool}\",\"arguments\":{{}}"))
    });
    let held = walk(&house, ada(), scope.clone(), Speech::Legacy, &text("other")).await;
    assert!(held.contains("not_in_allowlist"), "{held}");
    let sent = walk(&house, ada(), scope.clone(), Speech::Legacy, &text("write")).await;
    assert!(sent.contains("done"), "nothing was read: {sent}");
    let given = Given { allowlist: &["notes:*"], ..given };
    house.judge_by(&given);
    // Each walk is a session of its own.
    let agent = |mode: &str| {
        let mut agent = Caller::agent("reader", Some("ada".to_owned()));
        agent.token.modes = vec!["code".to_owned(), "ask".to_owned()];
        Caller { mode: Some(mode.to_owned()), ..agent }
    };
    for (tool, mode, words) in
        [("other", "code", "done"), ("write", "code", "rule_hold"), ("write", "ask", "rule_hold")]
    {
        let said = walk(&house, agent(mode), scope.clone(), Speech::Legacy, &text(tool)).await;
        assert!(said.contains(words), "{tool} {mode}: {said}");
    }
}
