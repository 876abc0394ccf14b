//! Streamable HTTP in one era.

use serde_json::{Value, json};

use crate::program::{Place, Server, claimed, code, echo, echoed, initialize, initialized, request};

/// Opens a legacy session and gives its id.
fn open(place: &Place) -> String {
    let mut answer = place.post(&[], &initialize("2026-07-28", &json!({})));
    let version = answer.message().pointer("/result/protocolVersion").cloned();
    assert_eq!(version, Some(json!("2025-11-25")));
    let session = answer.header("mcp-session-id").unwrap_or_default().to_owned();
    assert_eq!(place.post(&[("mcp-session-id", &session)], &initialized()).status, 202);
    session
}

#[test]
fn a_modern_server_refuses_what_makes_no_claim() {
    let mut server = Server::start("http-modern-unclaimed", &["http", "--era", "modern"]);
    let place = server.place();
    for message in [initialize("2025-11-25", &json!({})), request(1, "tools/call", &echo())] {
        for headers in [&[][..], &[("mcp-session-id", "x")], &[("mcp-protocol-version", "2025-11-25")]] {
            let answer = place.post(headers, &message);
            assert_eq!(answer.status, 400);
            let answer = answer.json();
            assert_eq!((code(&answer), answer.get("id")), (Some(-32602), Some(&json!(1))));
        }
    }
    let answer = place.post_modern(&claimed(2, "initialize", &json!({"protocolVersion": "2025-11-25"})));
    assert_eq!((answer.status, code(&answer.json())), (404, Some(-32601)));
    for method in ["GET", "DELETE"] {
        let answer = place.send(method, &[("mcp-session-id", "x")], "");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("post")));
    }
    assert_eq!(place.post(&[], &initialized()).status, 202);
    assert_eq!(place.post(&[], &json!({"jsonrpc": "2.0", "id": 1, "result": {}})).status, 400);
    assert_eq!(server.recorded(), "");
}

#[test]
fn a_modern_server_serves_the_modern_revision_alone() {
    let mut server = Server::start("http-modern", &["http", "--era", "modern"]);
    let place = server.place();
    let found = place.post_modern(&claimed(1, "server/discover", &json!({}))).message();
    assert_eq!(found.pointer("/result/supportedVersions"), Some(&json!(["2026-07-28"])));
    let called = place.post_modern(&claimed(2, "tools/call", &echo())).message();
    assert!(echoed(&called), "{called}");
    let text = claimed(3, "tools/call", &echo()).to_string().replace("2026-07-28", "2025-11-25");
    let headers = [("mcp-protocol-version", "2025-11-25"), ("mcp-method", "tools/call"), ("mcp-name", "test_echo")];
    let older = place.send("POST", &headers, &text);
    assert_eq!(older.status, 400);
    let older = older.json();
    assert_eq!(code(&older), Some(-32022), "{older}");
    assert_eq!(older.pointer("/error/data/supported"), Some(&json!(["2026-07-28"])));
    assert_eq!(server.recorded(), "tools/call test_echo\n");
}

#[test]
fn a_legacy_server_answers_a_probe_as_the_typescript_sdk_does() {
    let mut server = Server::start("http-legacy-probe", &["http", "--era", "legacy"]);
    let place = server.place();
    let expected: Value = json!({
        "jsonrpc": "2.0",
        "error": {"code": -32000, "message": "Bad Request: Server not initialized"},
        "id": null,
    });
    for (method, params) in [("server/discover", json!({})), ("tools/call", echo()), ("initialize", json!({}))] {
        let answer = place.post_modern(&claimed(1, method, &params));
        assert_eq!(answer.status, 400);
        assert_eq!(answer.json(), expected, "{method}");
    }
    assert_eq!(place.post(&[], &request(1, "server/discover", &json!({}))).json(), expected);
    assert_eq!(server.recorded(), "");
}

#[test]
fn a_legacy_session_runs_no_modern_request() {
    let mut server = Server::start("http-legacy", &["http", "--era", "legacy"]);
    let place = server.place();
    let session = open(&place);
    let plain = [("mcp-session-id", session.as_str())];
    let modern = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2026-07-28")];
    let answer = place.post(&plain, &claimed(2, "tools/call", &echo()));
    assert_eq!((answer.status, code(&answer.json())), (400, Some(-32600)));
    for message in [claimed(3, "tools/call", &echo()), request(4, "tools/call", &echo())] {
        let answer = place.post(&modern, &message);
        assert_eq!((answer.status, code(&answer.json())), (400, Some(-32000)));
    }
    for method in ["server/discover", "subscriptions/listen"] {
        let answer = place.post(&plain, &request(5, method, &json!({})));
        assert_eq!((answer.status, code(&answer.json())), (200, Some(-32601)));
    }
    assert_eq!(server.recorded(), "");
    let called = place.post(&plain, &request(6, "tools/call", &echo())).message();
    assert!(echoed(&called), "{called}");
    assert_eq!(server.recorded(), "tools/call test_echo\n");
}

#[test]
fn a_server_of_both_eras_has_no_gate() {
    let mut server = Server::start("http-both", &["http"]);
    let place = server.place();
    let session = open(&place);
    let called = place.post(&[("mcp-session-id", &session)], &request(2, "tools/call", &echo())).message();
    assert!(echoed(&called), "{called}");
    let called = place.post_modern(&claimed(3, "tools/call", &echo())).message();
    assert!(echoed(&called), "{called}");
}
