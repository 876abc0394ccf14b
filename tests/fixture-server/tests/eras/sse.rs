//! The HTTP transport of 2024-11-05.

use std::process::Command;

use serde_json::json;

use crate::program::{
    Answer, Place, Server, all_capabilities, claimed, code, echo, echoed, initialize, initialized, request,
};

/// Opens a stream; gives it with the address to post to.
fn open(place: &Place) -> (Answer, Place) {
    let mut stream = place.send("GET", &[], "");
    assert_eq!((stream.status, stream.header("content-type")), (200, Some("text/event-stream")));
    let path = stream.event();
    assert!(path.starts_with("/message?sessionId="), "{path}");
    (stream, Place { authority: place.authority.clone(), path })
}

#[test]
fn answers_come_on_the_stream() {
    let mut server = Server::start("sse", &["sse"]);
    let place = server.place();
    assert_eq!(place.path, "/sse");
    let (mut stream, address) = open(&place);
    let (mut other_stream, other_address) = open(&place);
    assert_ne!(address.path, other_address.path);
    let accepted = address.post(&[], &initialize("2024-11-05", &all_capabilities()));
    assert_eq!((accepted.status, accepted.json()), (202, json!("Accepted")));
    assert_eq!(stream.message().pointer("/result/protocolVersion"), Some(&json!("2024-11-05")));
    assert_eq!(address.post(&[], &initialized()).status, 202);
    // A message may have lines; the transport's lines are its own.
    let pretty = format!("{:#}", request(2, "tools/call", &echo()));
    assert_eq!(address.send("POST", &[], &pretty).status, 202);
    assert!(echoed(&stream.message()));
    assert_eq!(other_address.post(&[], &initialize("2025-11-25", &json!({}))).status, 202);
    assert_eq!(other_stream.message().pointer("/result/protocolVersion"), Some(&json!("2025-11-25")));
    assert_eq!(server.recorded(), "tools/call test_echo\n");
}

#[test]
fn a_question_comes_on_the_stream_too() {
    let mut server = Server::start("sse-question", &["sse", "--era", "legacy"]);
    let (mut stream, address) = open(&server.place());
    for message in [initialize("2025-11-25", &all_capabilities()), initialized()] {
        assert_eq!(address.post(&[], &message).status, 202);
    }
    assert!(stream.message().get("result").is_some());
    let call = json!({"name": "test_input_required_result_list_roots", "arguments": {}});
    assert_eq!(address.post(&[], &request(2, "tools/call", &call)).status, 202);
    let question = stream.message();
    assert_eq!(question.get("method"), Some(&json!("roots/list")));
    let reply = json!({"jsonrpc": "2.0", "id": question.get("id"), "result": {"roots": [{"uri": "file:///a"}]}});
    assert_eq!(address.post(&[], &reply).status, 202);
    assert_eq!(stream.message().pointer("/result/content/0/text"), Some(&json!("Roots: file:///a")));
}

#[test]
fn what_is_modern_does_not_run() {
    let mut server = Server::start("sse-modern", &["sse"]);
    let (mut stream, address) = open(&server.place());
    for (method, expected) in [("server/discover", -32601), ("tools/call", -32600)] {
        assert_eq!(address.post(&[], &claimed(1, method, &echo())).status, 202);
        assert_eq!(code(&stream.message()), Some(expected));
    }
    assert_eq!(server.recorded(), "");
    let refused =
        Command::new(env!("CARGO_BIN_EXE_toolwarden-fixture-server")).args(["sse", "--era", "modern"]).output();
    assert!(refused.is_ok_and(|output| !output.status.success()));
}

#[test]
fn a_session_ends_with_its_stream() {
    let mut server = Server::start("sse-end", &["sse"]);
    let place = server.place();
    let (stream, address) = open(&place);
    assert_eq!(address.send("POST", &[], "not json").status, 400);
    let unknown = Place { authority: place.authority.clone(), path: "/message?sessionId=x".to_owned() };
    assert_eq!(unknown.post(&[], &initialized()).status, 404);
    drop(stream);
    let mut status = 202;
    for _ in 0..200 {
        status = address.post(&[], &request(1, "ping", &json!({}))).status;
        if status == 404 {
            break;
        }
    }
    assert_eq!(status, 404);
}
