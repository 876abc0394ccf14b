//! REVIEW-5: which sendings are the same call.

use super::Digest;
use crate::json::{Document, Limits};

fn digest(text: &str) -> String {
    Document::parse(text, Limits::DEFAULT).map(|document| Digest::of_params(&document).to_string()).unwrap_or_default()
}

const CALL: &str = r#"{"name":"t","arguments":{"a":1,"b":["x",{"c":null}]}}"#;

#[test]
fn review_5_the_same_call() {
    for same in [
        r#"{"arguments":{"b":["x",{"c":null}],"a":1},"name":"t"}"#,
        r#"{ "name" : "t", "arguments" : { "a" : 1, "b" : [ "x", { "c" : null } ] } }"#,
        r#"{"name":"t","arguments":{"a":1,"b":["x",{"c":null}]},"requestState":"s","inputResponses":{"q":{}}}"#,
    ] {
        assert_eq!(digest(same), digest(CALL), "{same}");
    }
    let with_meta = r#"{"name":"t","_meta":{"own":1}}"#;
    for same in [
        r#"{"name":"t","_meta":{"progressToken":7,"own":1}}"#,
        r#"{"name":"t","_meta":{"traceparent":"a","tracestate":"b","baggage":"c","own":1}}"#,
        r#"{"name":"t","_meta":{"own":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{},"io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}}"#,
    ] {
        assert_eq!(digest(same), digest(with_meta), "{same}");
    }
}

#[test]
fn review_5_another_call() {
    for other in [
        r#"{"name":"t","arguments":{"a":1.0,"b":["x",{"c":null}]}}"#,
        r#"{"name":"t","arguments":{"a":1,"b":[{"c":null},"x"]}}"#,
        r#"{"name":"t","arguments":{"a":1,"b":["x",{"c":null}],"d":0}}"#,
        r#"{"name":"t","arguments":{"a":1,"b":["x",{"c":null}],"requestState":"s"}}"#,
        r#"{"name":"t","arguments":{"a":1,"b":["x",{"c":null}]},"_meta":{"x":1}}"#,
        r#"{"name":"T","arguments":{"a":1,"b":["x",{"c":null}]}}"#,
    ] {
        assert_ne!(digest(other), digest(CALL), "{other}");
    }
    // The Unicode form counts, and so does how a character was written.
    assert_ne!(digest("{\"a\":\"\u{e9}\"}"), digest("{\"a\":\"e\u{301}\"}"));
    assert_ne!(digest("{\"a\":\"A\"}"), digest("{\"a\":\"\\u0041\"}"));
    // Only the `_meta` of params is the transport's.
    assert_ne!(digest(r#"{"arguments":{"_meta":{"progressToken":1}}}"#), digest(r#"{"arguments":{"_meta":{}}}"#));
}

#[test]
fn review_5_known_value() {
    // sha256 of `{"arguments":{"a":1},"name":"t"}`, computed with another program.
    assert_eq!(
        digest(r#"{"name":"t","arguments":{"a":1}}"#),
        "bfd711ab44c309ddcad70456cb3aaa0487d210926206e670eec79c8c0d28486b"
    );
}
