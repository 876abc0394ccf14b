//! What is found in results, errors and news of a server: marked, redacted or withheld, at every entrance, in both
//! eras, however it travels. What has no findings passes as it came.

use http::StatusCode;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolwarden_conversations::Scope;

use super::doors::{
    ENTRANCES, Entrance, Reach, SPEECHES, Speech, answer_whole, get_in_session, open_session, post_in_session, request,
    send, walk,
};
use super::eras::puppet::{Puppet, Wire};
use super::giving_up::meta;
use super::house::{Given, House, ada};
use super::pipe::Pipe;
use super::recorder::{ALL_KINDS, Recorder, Speaks};

const CONFIG: &str = "[auto_run]\nmode = \"run_everything\"\n";
const MODES: [&str; 4] = ["off", "mark", "redact", "withhold"];

/// Put together here, so that nobody takes it for a real one.
fn token() -> String {
    format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6")
}

fn keys(mode: &str) -> &'static str {
    match mode {
        "off" => "",
        "mark" => "screening = \"mark\"",
        "redact" => "screening = \"redact\"",
        _ => "screening = \"withhold\"",
    }
}

async fn house(speaks: Speaks, server: &'static str) -> House {
    let given = Given { config: CONFIG, server, ..Given::default() };
    let Some(house) = House::before(&given, speaks).await else { unreachable!("the house is built") };
    house
}

async fn with_puppet(wire: Wire, server: &'static str) -> (House, Puppet) {
    let Ok(puppet) = Puppet::start(wire).await else { unreachable!("it is started") };
    let given = Given { config: CONFIG, server, ..Given::default() };
    let recorder = Recorder::absent(puppet.url.clone(), Speaks::Both);
    let Some(house) = House::around(&given, recorder).await else { unreachable!("the house is built") };
    (house, puppet)
}

/// What a mode makes of an answer with the token in it.
fn check(mode: &str, said: &str, place: &str) {
    let has_token = said.contains(&token());
    let is_marked = said.contains("toolwarden/screened") && said.contains("github-token");
    let is_redacted = said.contains("[redacted: github-token]");
    let is_withheld = said.contains("the call was made, and its result is withheld") && said.contains("github-token (");
    let wanted = match mode {
        "off" => (true, false, false, false),
        "mark" => (true, true, false, false),
        "redact" => (false, false, true, false),
        _ => (false, false, false, true),
    };
    assert_eq!((has_token, is_marked, is_redacted, is_withheld), wanted, "{mode} {place}: {said}");
}

/// No record has the value; where something was found, each call says what.
async fn check_records(house: &House, mode: &str, calls: usize) {
    let records = house.all_records().await;
    let text = format!("{records:?}");
    assert!(!text.contains(&token()), "{text}");
    let says = |record: &&Value| {
        let detail = record.get("detail").and_then(Value::as_str).unwrap_or_default();
        record.get("kind") == Some(&json!("outcome")) && detail.starts_with("found in the answer: github-token (")
    };
    let expected = if mode == "off" { 0 } else { calls };
    assert_eq!(records.iter().filter(says).count(), expected, "{mode}: {text}");
}

fn asks(entrance: Entrance) -> [(&'static str, String); 4] {
    let (tool, uri, prompt) = (entrance.name("write"), entrance.uri("note://a"), entrance.name("hello"));
    [
        ("tools/call", format!(r#""name":"{tool}","arguments":{{}}"#)),
        ("resources/read", format!(r#""uri":"{uri}""#)),
        ("prompts/get", format!(r#""name":"{prompt}""#)),
        (
            "completion/complete",
            format!(r#""ref":{{"type":"ref/prompt","name":"{prompt}"}},"argument":{{"name":"a","value":"b"}}"#),
        ),
    ]
}

#[tokio::test]
async fn a_secret_in_any_result_is_marked_redacted_or_withheld_at_every_entrance() {
    let token = token();
    let text = format!("see {token} there");
    for speaks in ALL_KINDS {
        for mode in MODES {
            let house = house(speaks, keys(mode)).await;
            let content = json!({ "type": "text", "text": text });
            let result = json!({ "content": [content], "structuredContent": { "k": text }, "resultType": "complete" });
            house.recorder.answers(&result.to_string());
            let contents = json!({ "contents": [{ "uri": "note://a", "text": text }], "resultType": "complete" });
            house.recorder.lists("resources/read", vec![contents]);
            let messages = json!([{ "role": "user", "content": content }]);
            house.recorder.lists("prompts/get", vec![json!({ "messages": messages, "resultType": "complete" })]);
            let completion = json!({ "completion": { "values": [text] }, "resultType": "complete" });
            house.recorder.lists("completion/complete", vec![completion]);
            let mut calls = 0;
            for entrance in ENTRANCES {
                for speech in SPEECHES {
                    for (method, params) in asks(entrance) {
                        let said = send(&house, entrance, speech, method, &params).await;
                        check(mode, &said, &format!("{method} {entrance:?} {speech:?} to {speaks:?}"));
                        calls += 1;
                    }
                }
            }
            check_records(&house, mode, calls).await;
        }
    }
}

#[tokio::test]
async fn a_secret_in_an_error_is_no_better() {
    let error = json!({ "code": -32050, "message": format!("cannot use {}", token()), "data": { "tried": token() } });
    for speaks in ALL_KINDS {
        for mode in MODES {
            let house = house(speaks, keys(mode)).await;
            for status in [StatusCode::OK, StatusCode::INTERNAL_SERVER_ERROR] {
                house.recorder.fails_with(Some((status, &error.to_string())));
                for entrance in ENTRANCES {
                    for speech in SPEECHES {
                        let params = format!(r#""name":"{}","arguments":{{}}"#, entrance.name("write"));
                        let said = send(&house, entrance, speech, "tools/call", &params).await;
                        check(mode, &said, &format!("{status} {entrance:?} {speech:?} to {speaks:?}"));
                    }
                }
            }
            check_records(&house, mode, 16).await;
        }
    }
}

#[tokio::test]
async fn what_has_no_findings_passes_byte_for_byte_and_of_what_has_only_its_texts_change() {
    let server = "screening = \"redact\"\nhidden_text = \"neutralise\"\npatterns = [{ name = \"ticket\", pattern = \"T-[0-9]{4}\" }]";
    let house = house(Speaks::Both, server).await;
    let clean = r#"{ "content" : [], "structuredContent":{"a":1E5 ,"b":"\u0041\/é👨‍👩‍👧", "c":[ 10.50 ]},"z":-0 }"#;
    let dirty =
        r#"{ "content" : [], "structuredContent":{"a":1E5 ,"b":"\u0054-1234\u001b[2J", "c":[ 10.50 ]},"z":-0 }"#;
    let shown = r#"{ "content" : [], "structuredContent":{"a":1E5 ,"b":"[redacted: ticket]\\u{1b}[2J", "c":[ 10.50 ]},"z":-0 }"#;
    for (result, wanted) in [(clean, clean), (dirty, shown)] {
        house.recorder.answers(result);
        for entrance in ENTRANCES {
            for speech in SPEECHES {
                let params = format!(r#""name":"{}","arguments":{{}}"#, entrance.name("write"));
                let said = send(&house, entrance, speech, "tools/call", &params).await;
                assert!(said.contains(wanted), "{entrance:?} {speech:?}: {said}");
            }
        }
    }
}

#[tokio::test]
async fn hidden_characters_are_marked_where_they_pass() {
    let hidden = "pay\u{202e}lap\u{e0041}";
    for (server, passes, marks) in
        [("", true, false), ("hidden_text = \"mark\"", true, true), ("hidden_text = \"neutralise\"", false, false)]
    {
        let house = house(Speaks::Both, server).await;
        house.recorder.answers(&json!({ "content": [{ "type": "text", "text": hidden }] }).to_string());
        let params = r#""name":"write","arguments":{}"#;
        let said = send(&house, Entrance::Http(Reach::One), Speech::Modern, "tools/call", params).await;
        assert_eq!((said.contains(hidden), said.contains("toolwarden/screened")), (passes, marks), "{said}");
        assert_eq!(said.contains(r"pay\\u{202e}lap\\u{e0041}"), !passes, "{said}");
    }
}

#[tokio::test]
async fn a_redacted_result_that_no_longer_fits_its_schema_is_withheld() {
    let schema = json!({ "type": "object", "properties": { "k": { "type": "string", "pattern": "^ghp_" } } });
    let tool = json!({ "name": "give", "inputSchema": { "type": "object" }, "outputSchema": schema });
    for speaks in ALL_KINDS {
        let Ok(recorder) = Recorder::start(speaks).await else { unreachable!("it is started") };
        recorder.lists("tools/list", vec![json!({ "tools": [tool] })]);
        let given = Given { config: CONFIG, server: keys("redact"), ..Given::default() };
        let Some(house) = House::around(&given, recorder).await else { unreachable!("the house is built") };
        house.recorder.answers(&json!({ "content": [], "structuredContent": { "k": token() } }).to_string());
        for speech in SPEECHES {
            let params = r#""name":"give","arguments":{}"#;
            let said = send(&house, Entrance::Http(Reach::One), speech, "tools/call", params).await;
            assert!(said.contains("output schema") && !said.contains(&token()), "{speech:?} to {speaks:?}: {said}");
        }
    }
}

#[tokio::test]
async fn what_came_of_a_task_is_looked_at_and_the_task_stays_its_own() {
    for mode in MODES {
        let house = house(Speaks::Both, keys(mode)).await;
        // An id that looks drawn by lot is the protocol's, and passes.
        let task = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6";
        house.recorder.answers(&json!({ "task": { "taskId": task, "status": "working" } }).to_string());
        let content = json!([{ "type": "text", "text": token() }]);
        house.recorder.lists("tasks/result", vec![json!({ "content": content })]);
        let told = json!({ "tasks": [{ "taskId": task, "status": "working", "statusMessage": token() }] });
        house.recorder.lists("tasks/list", vec![told]);
        let ask = async |method: &str, params: &str| {
            let text = request(Speech::Legacy, method, params);
            walk(&house, ada(), Scope::One("notes".into()), Speech::Legacy, &text).await
        };
        let made = ask("tools/call", r#""name":"write","arguments":{},"task":{"ttl":1000}"#).await;
        assert!(made.contains(task) && !made.contains("toolwarden/screened"), "{mode}: {made}");
        check(mode, &ask("tasks/result", &format!(r#""taskId":"{task}""#)).await, "the result of a task");
        check(mode, &ask("tasks/list", "").await, "the list of tasks");
    }
}

fn call(speech: Speech, steps: &[&str]) -> Value {
    let mut meta = meta(speech);
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("progressToken".to_owned(), 7.into());
    }
    let params = json!({ "name": "act", "arguments": { "tag": token(), "steps": steps }, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })
}

/// Progress with the token in it: dropped, redacted, or as it came.
fn check_news(mode: &str, said: &[String], place: &str) {
    let news: Vec<&String> = said.iter().filter(|said| said.contains("notifications/progress")).collect();
    match mode {
        "withhold" => assert!(news.is_empty(), "{place}: {news:?}"),
        "redact" => {
            let is_redacted = |news: &&String| news.contains("[redacted: github-token]") && !news.contains(&token());
            assert!(news.len() == 1 && news.iter().all(is_redacted), "{place}: {news:?}");
        }
        _ => assert!(news.len() == 1 && news.iter().all(|news| news.contains(&token())), "{place}: {news:?}"),
    }
}

#[tokio::test]
async fn news_and_answers_on_streams_are_looked_at_like_any_other() {
    for wire in [Wire::Modern, Wire::Legacy, Wire::Oldest] {
        for mode in MODES {
            let (house, _puppet) = with_puppet(wire, keys(mode)).await;
            for speech in SPEECHES {
                let place = format!("{mode} {speech:?} to {wire:?}");
                let mut pipe = Pipe::open(&house, Scope::One("notes".into()), speech).await;
                pipe.say(&call(speech, &["Progress"])).await;
                let mut said = Vec::new();
                loop {
                    let message = pipe.hear_besides(&["tools"]).await;
                    assert!(!message.is_null(), "{place}: {said:?}");
                    said.push(message.to_string());
                    if message.get("id") == Some(&json!(7)) {
                        break;
                    }
                }
                check_news(mode, &said, &place);
                check(mode, said.last().map_or("", String::as_str), &place);
            }
            check_records(&house, mode, 2).await;
            if wire == Wire::Modern {
                let said = answer_whole(&house, &call(Speech::Modern, &["Progress"]).to_string()).await;
                let said: Vec<String> = said.split("\n\n").map(str::to_owned).collect();
                check_news(mode, &said, "over HTTP");
            }
        }
    }
}

/// Whoever asks, of whom, and however it travels.
#[tokio::test]
async fn questions_are_looked_at_like_any_other_words() {
    for wire in [Wire::Modern, Wire::Legacy, Wire::Oldest] {
        for mode in MODES {
            let (house, puppet) = with_puppet(wire, keys(mode)).await;
            for speech in SPEECHES {
                let place = format!("{mode} {speech:?} to {wire:?}");
                let mut pipe =
                    Pipe::open_as(&house, Scope::One("notes".into()), speech, &json!({"elicitation": {}})).await;
                let mut call = call(speech, &["Ask"]);
                if let Some(declared) = call.pointer_mut("/params/_meta/io.modelcontextprotocol~1clientCapabilities") {
                    *declared = json!({"elicitation": {}});
                }
                pipe.say(&call).await;
                let mut said = pipe.hear_besides(&["tools"]).await;
                // The puppet's ids have its tag in them.
                said.as_object_mut().and_then(|said| said.remove("id"));
                let said = said.to_string();
                let (has_token, is_redacted) = (said.contains(&token()), said.contains("[redacted: github-token]"));
                let is_asked = said.contains("elicitation/create");
                let wanted = match mode {
                    "withhold" => (false, false, false),
                    "redact" => (true, false, true),
                    _ => (true, true, false),
                };
                assert_eq!((is_asked, has_token, is_redacted), wanted, "{place}: {said}");
            }
            assert!(!format!("{:?}", house.all_records().await).contains(&token()));
            drop(puppet);
        }
    }
}

#[tokio::test]
async fn an_answer_that_comes_late_is_looked_at() {
    for mode in MODES {
        let (house, puppet) = with_puppet(Wire::Legacy, keys(mode)).await;
        let session = open_session(&house).await;
        let text = super::giving_up::call(Speech::Legacy, 7, &["BreakOff"]).to_string();
        let first = post_in_session(&house, &session, &text).await.into_body().collect().await;
        assert!(first.is_ok_and(|first| String::from_utf8_lossy(&first.to_bytes()).contains("progress")));
        let mut standing = get_in_session(&house, &session).await.into_body();
        puppet.answer_late(&json!({ "content": [{ "type": "text", "text": token() }] }));
        let mut said = "list_changed".to_owned();
        while said.contains("list_changed") {
            let frame = standing.frame().await.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
            said = String::from_utf8_lossy(&frame.unwrap_or_default()).into_owned();
        }
        check(mode, &said, "late");
        check_records(&house, mode, 1).await;
    }
}

/// A legacy server that logs and answers with the token.
fn child(mode: &str) -> String {
    let token = token();
    format!(
        r#"{CONFIG}
[servers.notes]
{keys}
command = "sh"
args = ["-c", '''
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},"logging":{{}}}},"serverInfo":{{"name":"c","version":"1"}}}}' ;;
    *'"tools/list"'*) result='{{"tools":[{{"name":"act","inputSchema":{{"type":"object"}}}}]}}' ;;
    *'"tools/call"'*)
      printf '{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"error","data":"log {token}"}}}}\n'
      result='{{"content":[{{"type":"text","text":"{token}"}}]}}' ;;
    *'"server/discover"'*)
      printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"unknown"}}}}\n' "$id"
      continue ;;
    *) continue ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$result"
done
''']
"#,
        keys = keys(mode)
    )
}

#[tokio::test]
async fn what_a_child_logs_and_answers_is_looked_at() {
    for mode in MODES {
        let recorder = Recorder::absent("http://127.0.0.1:9/".to_owned(), Speaks::Both);
        let Some(house) = House::configured(&Given::default(), &child(mode), recorder).await else {
            unreachable!("the house is built")
        };
        for speech in SPEECHES {
            let mut pipe = Pipe::open(&house, Scope::One("notes".into()), speech).await;
            let mut request = call(speech, &[]);
            if let Some(meta) = request.pointer_mut("/params/_meta").and_then(Value::as_object_mut) {
                meta.insert("io.modelcontextprotocol/logLevel".to_owned(), "debug".into());
            }
            pipe.say(&request).await;
            let mut said = Vec::new();
            while said.last().is_none_or(|last: &Value| last.get("id") != Some(&json!(7))) {
                let message = pipe.hear_besides(&["tools"]).await;
                assert!(!message.is_null(), "{mode} {speech:?}: {said:?}");
                said.push(message);
            }
            let last = said.pop().unwrap_or_default().to_string();
            check(mode, &last, &format!("{speech:?} to a child"));
            let logs: Vec<String> = said.iter().map(Value::to_string).collect();
            let is_redacted = |log: &String| log.contains("log [redacted: github-token]") && !log.contains(&token());
            match mode {
                "withhold" => assert!(logs.is_empty(), "{speech:?}: {logs:?}"),
                "redact" => assert!(logs.len() == 1 && logs.iter().all(is_redacted), "{speech:?}: {logs:?}"),
                _ => assert!(logs.len() == 1 && logs.iter().all(|log| log.contains(&token())), "{speech:?}: {logs:?}"),
            }
        }
        check_records(&house, mode, 2).await;
        house.gateway.close().await;
    }
}
