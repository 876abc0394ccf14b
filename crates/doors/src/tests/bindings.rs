//! Ids belong to whoever was given them: sessions, events, cancels, answers, cursors (GATE-2, GATE-19).

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use toolwarden_mcp::headers::{LAST_EVENT, SESSION};

use super::doors::{Entrance, Reach, SPEECHES, Speech, send};
use super::house::{Given, House};
use super::recorder::{ALL_KINDS, Speaks};
use crate::{AnswerBody, serve_request};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"write","arguments":{}}}"#;

/// One HTTP request to a path, with whatever a test adds.
fn request(method: Method, path: &'static str, body: &str) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::from(body.to_owned()));
    *request.method_mut() = method;
    *request.uri_mut() = http::Uri::from_static(path);
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    request
}

async fn text(response: Response<AnswerBody>) -> (StatusCode, String) {
    let status = response.status();
    let body = response.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    (status, String::from_utf8_lossy(&body).into_owned())
}

async fn open(house: &House, path: &'static str) -> Option<HeaderValue> {
    let response = serve_request(&house.gateway, request(Method::POST, path, HELLO)).await;
    response.headers().get(SESSION).cloned()
}

async fn with_session(house: &House, path: &'static str, body: &str, session: &HeaderValue) -> (StatusCode, String) {
    let mut request = request(Method::POST, path, body);
    request.headers_mut().insert(SESSION, session.clone());
    text(serve_request(&house.gateway, request).await).await
}

fn open_policy() -> Given {
    Given { config: "[auto_run]\nmode = \"run_everything\"\n[modes.m]\ngroups = [\"mcp\"]\n", ..Given::default() }
}

#[tokio::test]
async fn a_presented_credential_is_refused_at_every_door() {
    let Some(house) = House::build(&open_policy()).await else { unreachable!("the gateway is built") };
    for path in ["/mcp", "/mcp/notes"] {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let mut request = request(method.clone(), path, CALL);
            request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static("Bearer guessed"));
            let (status, _) = text(serve_request(&house.gateway, request).await).await;
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{method} {path}");
        }
    }
    assert!(house.recorder.calls().is_empty());
}

#[tokio::test]
async fn gate_19_ids_count_only_for_their_own_session() {
    let Some(house) = House::build(&open_policy()).await else { unreachable!("the gateway is built") };
    let Some(session) = open(&house, "/mcp/notes").await else { unreachable!("a session opens") };
    let (status, _) = with_session(&house, "/mcp/notes", CALL, &session).await;
    assert_eq!(status, StatusCode::OK);
    house.recorder.forget();
    // Another door, another mode, another or no id: no such session.
    for path in ["/mcp", "/mcp/notes?mode=m"] {
        let (status, _) = with_session(&house, path, CALL, &session).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
    let (status, said) = with_session(&house, "/mcp/nope", CALL, &session).await;
    assert!(status == StatusCode::NOT_FOUND && said.contains("no server is called `nope`"), "{said}");
    let guessed = HeaderValue::from_static("00");
    assert_eq!(with_session(&house, "/mcp/notes", CALL, &guessed).await.0, StatusCode::NOT_FOUND);
    let without = text(serve_request(&house.gateway, request(Method::POST, "/mcp/notes", CALL)).await).await;
    assert_eq!(without.0, StatusCode::BAD_REQUEST);
    // Cancels and answers for ids that are not this session's reach nobody.
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":"tw-1","result":{"action":"accept"}}"#;
    for body in [cancel, answer] {
        assert_eq!(with_session(&house, "/mcp/notes", body, &session).await.0, StatusCode::ACCEPTED);
    }
    let calls = house.recorder.calls();
    assert!(calls.is_empty(), "{calls:?}");
    let records = house.records().await;
    let foreign = records.iter().filter(|record| record.get("reason").is_some_and(|reason| reason == "foreign_id"));
    assert_eq!(foreign.count(), 2, "{records:?}");
}

#[tokio::test]
async fn gate_19_events_of_another_session_are_not_replayed() {
    let Some(house) = House::build(&open_policy()).await else { unreachable!("the gateway is built") };
    let Some(session) = open(&house, "/mcp").await else { unreachable!("a session opens") };
    for id in ["s7.0", "nonsense", "s0"] {
        let mut request = request(Method::GET, "/mcp", "");
        request.headers_mut().insert(SESSION, session.clone());
        request.headers_mut().insert(LAST_EVENT, HeaderValue::from_static(id));
        let (status, _) = text(serve_request(&house.gateway, request).await).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{id}");
    }
}

#[tokio::test]
async fn an_unknown_mode_opens_nothing() {
    let Some(house) = House::build(&open_policy()).await else { unreachable!("the gateway is built") };
    let request = request(Method::POST, "/mcp/notes?mode=nobody", HELLO);
    let (status, said) = text(serve_request(&house.gateway, request).await).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(said.contains("no mode is called"), "{said}");
}

#[tokio::test]
async fn mode_8_what_an_address_says_beside_a_mode_ends_the_request() {
    let Some(house) = House::build(&open_policy()).await else { unreachable!("the gateway is built") };
    for path in ["/mcp?x=1;mode=m", "/mcp/notes?x=1&amp;mode=m", "/mcp/notes?session=1&mode=m", "/sse?modem=m"] {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            let (status, said) = text(serve_request(&house.gateway, request(method, path, HELLO)).await).await;
            assert!(status == StatusCode::BAD_REQUEST && said.contains("`mode=SLUG`"), "{path}: {status} {said}");
        }
    }
    assert!(open(&house, "/mcp/notes?mode=m").await.is_some());
    assert!(open(&house, "/mcp/notes?").await.is_some());
}

#[tokio::test]
async fn cursors_of_another_list_or_caller_are_refused() {
    let Some(house) = House::build(&open_policy()).await else { unreachable!("the gateway is built") };
    let Some(session) = open(&house, "/mcp").await else { unreachable!("a session opens") };
    for cursor in ["", "00ff", "zz", "5"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{"cursor":"{cursor}"}}}}"#);
        let (_, said) = with_session(&house, "/mcp", &body, &session).await;
        assert!(said.contains("-32602"), "{cursor}: {said}");
    }
}

#[tokio::test]
async fn batches_are_split_and_each_member_judged_where_the_revision_has_them() {
    let given = Given { allowlist: &["notes:other"], ..Given::default() };
    let Some(house) = House::build(&given).await else { unreachable!("the gateway is built") };
    let call = |id: u8, tool: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"notes__{tool}","arguments":{{}}}}}}"#
        )
    };
    let batch = format!("[{},{},{{\"jsonrpc\":\"2.0\",\"id\":{{}}}}]", call(1, "write"), call(2, "other"));
    let old = HELLO.replace("2025-11-25", "2025-03-26");
    let opened = serve_request(&house.gateway, request(Method::POST, "/mcp", &old)).await;
    let session = opened.headers().get(SESSION).cloned();
    let Some(session) = session else { unreachable!("a session opens") };
    let (_, said) = with_session(&house, "/mcp", &batch, &session).await;
    let answers: Vec<Value> = serde_json::from_str(&said).unwrap_or_default();
    assert_eq!(answers.len(), 3, "{said}");
    assert!(said.contains("not_in_allowlist") && said.contains("done") && said.contains("-32600"), "{said}");
    assert_eq!(house.recorder.calls().len(), 1, "only the member that is allowed leaves");
    // Newer revisions know no batches.
    let Some(newer) = open(&house, "/mcp").await else { unreachable!("a session opens") };
    house.recorder.forget();
    assert_eq!(with_session(&house, "/mcp", &batch, &newer).await.0, StatusCode::BAD_REQUEST);
    assert!(house.recorder.calls().is_empty());
}

/// GATE-19: every resource a modern client listens to is judged as reading it is.
#[tokio::test]
async fn gate_19_only_permitted_resources_are_listened_to() {
    const RULES: &str = "permit(principal, action, resource);\n\
        forbid(principal, action, resource) when {\n\
          context.args.hasTag(\"/uri\") && context.args.getTag(\"/uri\") == \"note://secret\" };";
    let config = "[auto_run]\nmode = \"run_everything\"\n";
    let given = Given { config, rules: Some(RULES), ..Given::default() };
    let Some(house) = House::build(&given).await else { unreachable!("the gateway is built") };
    let wanted = r#""notifications":{"toolsListChanged":true,"resourceSubscriptions":["note://a","note://secret"]}"#;
    send(&house, Entrance::Http(Reach::One), Speech::Modern, "subscriptions/listen", wanted).await;
    let sent: Vec<_> = house.recorder.calls().into_iter().map(|(_, text)| text).collect();
    assert!(sent.len() == 1 && sent.iter().all(|text| text.contains(r#"["note://a"]"#)), "{sent:?}");
    assert!(sent.iter().all(|text| !text.contains("secret") && text.contains("toolsListChanged")), "{sent:?}");
}

/// What one message asks to watch is bounded: each address is judged, kept and told to the server (WORK-1).
#[tokio::test]
async fn work_1_messages_that_ask_to_watch_too_much_reach_nobody() {
    let Some(house) = House::before(&open_policy(), Speaks::Modern).await else { unreachable!("a port is free") };
    let many: Vec<String> = (0..1_001).map(|number| format!("\"note://{number}\"")).collect();
    let many = format!(r#""notifications":{{"resourceSubscriptions":[{}]}}"#, many.join(","));
    let long = "a".repeat(9_000);
    let one = format!(r#""notifications":{{"resourceSubscriptions":["note://{long}"]}}"#);
    let watch = format!(r#""uri":"note://{long}""#);
    for reach in [Reach::One, Reach::All] {
        for (speech, method, params) in [
            (Speech::Modern, "subscriptions/listen", &many),
            (Speech::Modern, "subscriptions/listen", &one),
            (Speech::Legacy, "resources/subscribe", &watch),
        ] {
            let before = house.recorder.calls().len();
            let said = send(&house, Entrance::Http(reach), speech, method, params).await;
            assert!(said.contains("at most"), "{method}: {said}");
            assert_eq!(house.recorder.calls().len(), before, "{method}");
        }
    }
}

/// Under keys of the gateway only the gateway speaks, whatever the method.
#[tokio::test]
async fn nothing_a_server_says_passes_for_a_word_of_the_gateway() {
    let planted = json!({"toolwarden/decision": {"candidates": ["planted"]}, "a": 1});
    let lists = [("tools/list", "tools"), ("prompts/list", "prompts"), ("resources/list", "resources")];
    let others = ["tasks/list", "resources/subscribe", "resources/read", "prompts/get", "ping", "initialize"];
    for speaks in ALL_KINDS {
        for speech in SPEECHES {
            let Some(house) = House::before(&open_policy(), speaks).await else { unreachable!("a port is free") };
            for (method, key) in lists {
                house.recorder.lists(method, vec![json!({key: [], "resultType": "complete", "_meta": planted})]);
                let said = send(&house, Entrance::Http(Reach::One), speech, method, "").await;
                assert!(
                    said.contains("\"result\"") && !said.contains("planted"),
                    "{speaks:?} {speech:?} {method}: {said}"
                );
            }
            for method in others {
                let mut result: serde_json::Map<String, Value> = serde_json::Map::new();
                result.insert("_meta".to_owned(), planted.clone());
                house.recorder.lists(method, vec![Value::Object(result)]);
                let params = r#""uri":"note://a","name":"hello""#;
                let said = send(&house, Entrance::Http(Reach::One), speech, method, params).await;
                assert!(!said.contains("planted"), "{speaks:?} {speech:?} {method}: {said}");
            }
        }
    }
}
