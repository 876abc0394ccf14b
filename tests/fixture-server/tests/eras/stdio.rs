//! Pipes in one era.

use serde_json::json;

use crate::program::{Server, claimed, code, echo, echoed, initialize, initialized, request};

#[test]
fn a_modern_server_refuses_to_be_initialized() {
    let mut server = Server::start("stdio-modern", &["stdio", "--era", "modern"]);
    let refused = server.ask(&initialize("2025-11-25", &json!({})));
    assert_eq!((code(&refused), refused.get("id")), (Some(-32022), Some(&json!(1))));
    let data = refused.pointer("/error/data");
    assert_eq!(data, Some(&json!({"supported": ["2026-07-28"], "requested": "2025-11-25"})));
    // A client that goes on as if nothing had happened.
    server.send(&initialized());
    assert_eq!(code(&server.ask(&request(2, "tools/call", &echo()))), Some(-32602));
    assert_eq!(code(&server.ask(&claimed(3, "initialize", &json!({})))), Some(-32601));
    assert_eq!(server.recorded(), "");
    let found = server.ask(&claimed(4, "server/discover", &json!({})));
    assert_eq!(found.pointer("/result/supportedVersions"), Some(&json!(["2026-07-28"])));
    server.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 4}}));
    assert!(echoed(&server.ask(&claimed(5, "tools/call", &echo()))));
    assert_eq!(code(&server.ask(&request(6, "tools/call", &echo()))), Some(-32602));
    assert_eq!(code(&server.ask(&initialize("2025-11-25", &json!({})))), Some(-32022));
    assert_eq!(code(&server.ask(&claimed(7, "ping", &json!({})))), Some(-32601));
    assert_eq!(server.recorded(), "tools/call test_echo\n");
    assert!(server.leave());
}

#[test]
fn a_legacy_server_does_not_know_the_modern_era() {
    let mut server = Server::start("stdio-legacy", &["stdio", "--era", "legacy"]);
    assert_eq!(code(&server.ask(&claimed(1, "server/discover", &json!({})))), Some(-32601));
    assert_eq!(code(&server.ask(&claimed(2, "tools/call", &echo()))), Some(-32600));
    assert_eq!(code(&server.ask(&request(3, "tools/call", &echo()))), Some(-32602));
    let opened = server.ask(&initialize("2026-07-28", &json!({})));
    assert_eq!(opened.pointer("/result/protocolVersion"), Some(&json!("2025-11-25")));
    server.send(&initialized());
    for method in ["server/discover", "subscriptions/listen"] {
        assert_eq!(code(&server.ask(&request(4, method, &json!({})))), Some(-32601));
        assert_eq!(code(&server.ask(&claimed(5, method, &json!({})))), Some(-32601));
    }
    assert_eq!(code(&server.ask(&claimed(6, "tools/call", &echo()))), Some(-32600));
    assert_eq!(server.recorded(), "");
    assert!(echoed(&server.ask(&request(7, "tools/call", &echo()))));
    assert_eq!(server.recorded(), "tools/call test_echo\n");
    assert!(server.leave());
}

#[test]
fn a_client_that_only_looked_leaves_a_server_that_ends_well() {
    for era in ["both", "modern", "legacy"] {
        let mut server = Server::start(&format!("stdio-look-{era}"), &["stdio", "--era", era]);
        let answer = server.ask(&claimed(1, "server/discover", &json!({})));
        assert_eq!(answer.get("id"), Some(&json!(1)));
        assert!(server.leave(), "{era}");
    }
}
