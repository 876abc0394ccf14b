//! Each message in the words of the other era.

use toolwarden_core::json::{Document, Limits};

use super::{
    Introduction, asks_of_clients, discover_result, error_to_legacy, error_to_modern, initialize_result, legacy_meta,
    modern_meta, result_to_legacy, result_to_modern,
};
use crate::versions::Version;

fn with(text: &str, act: impl FnOnce(toolwarden_core::json::Value<'_>) -> String) -> String {
    match Document::parse(text, Limits::DEFAULT) {
        Ok(document) => act(document.root()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_legacy_request_introduces_its_client() {
    let introduction = Introduction {
        capabilities: r#"{"elicitation":{}}"#,
        client: Some(r#"{"name":"c"}"#),
        log_level: Some("\"info\""),
    };
    let params = r#"{"_meta":{"progressToken":1,"io.modelcontextprotocol/logLevel":"debug","traceparent":"t","io.modelcontextprotocol/related-task":{"taskId":"x"}}}"#;
    assert_eq!(
        with(params, |params| modern_meta(Some(params), introduction)),
        r#"{"progressToken":1,"traceparent":"t","io.modelcontextprotocol/related-task":{"taskId":"x"},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}},"io.modelcontextprotocol/clientInfo":{"name":"c"},"io.modelcontextprotocol/logLevel":"info"}"#
    );
    let bare = Introduction { capabilities: "{}", client: None, log_level: None };
    assert_eq!(
        modern_meta(None, bare),
        r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#
    );
}

#[test]
fn a_modern_introduction_does_not_reach_a_legacy_server() {
    let params = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"vendor/x":1}}"#;
    assert_eq!(with(params, |params| legacy_meta(Some(params)).unwrap_or_default()), r#"{"vendor/x":1}"#);
    let params = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    assert_eq!(with(params, |params| legacy_meta(Some(params)).unwrap_or_default()), "");
}

#[test]
fn of_capabilities_only_what_can_be_asked_crosses() {
    let declared = r#"{"roots":{"listChanged":true},"tasks":{},"elicitation":{"form":{}},"experimental":{"x":1}}"#;
    assert_eq!(
        with(declared, |declared| asks_of_clients(Some(declared))),
        r#"{"elicitation":{"form":{}},"roots":{"listChanged":true}}"#
    );
    let odd = r#"{"elicitation":{"n":1, "url":{"x":2}},"sampling":true}"#;
    assert_eq!(with(odd, |declared| asks_of_clients(Some(declared))), r#"{"elicitation":{"url":{}}}"#);
    assert_eq!(asks_of_clients(None), "{}");
}

#[test]
fn results_for_legacy_clients_lose_what_they_do_not_know() {
    let result = r#"{"resultType":"complete","ttlMs":5,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}},"prompts":[{"name":"p"}]}"#;
    assert_eq!(with(result, |result| result_to_legacy("prompts/list", result)), r#"{"prompts":[{"name":"p"}]}"#);
    let result = r#"{"tools":[{"name":"a","inputSchema":{},"outputSchema":{"type":"array"}},{"name":"b","inputSchema":{},"outputSchema":{"type":"object"}},{"name":"c","inputSchema":{"properties":{"x":{"type":"number","x-mcp-header":"X"}}}}]}"#;
    assert_eq!(
        with(result, |result| result_to_legacy("tools/list", result)),
        r#"{"tools":[{"name":"a","inputSchema":{}},{"name":"b","inputSchema":{},"outputSchema":{"type":"object"}}]}"#
    );
}

#[test]
fn structured_content_that_is_no_object_becomes_text() {
    let result = r#"{"content":[],"structuredContent":[1,2],"resultType":"complete"}"#;
    assert_eq!(
        with(result, |result| result_to_legacy("tools/call", result)),
        r#"{"content":[{"type":"text","text":"[1,2]"}]}"#
    );
    let result = r#"{"content":[{"type":"text","text":"x"}],"structuredContent":null}"#;
    assert_eq!(
        with(result, |result| result_to_legacy("tools/call", result)),
        r#"{"content":[{"type":"text","text":"x"}]}"#
    );
    let result = r#"{"content":[],"structuredContent":{"a":1e5}}"#;
    assert_eq!(with(result, |result| result_to_legacy("tools/call", result)), result);
}

#[test]
fn results_for_modern_clients_say_what_they_are() {
    let result = r#"{"tools":[{"name":"a","execution":{"taskSupport":"optional"}},{"name":"b","execution":{"taskSupport":"required"}}],"nextCursor":""}"#;
    assert_eq!(
        with(result, |result| result_to_modern("tools/list", result, Some(r#"{"name":"s"}"#))),
        r#"{"tools":[{"name":"a"}],"nextCursor":"","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}},"ttlMs":0,"cacheScope":"private"}"#
    );
    assert_eq!(
        with(r#"{"content":[],"_meta":{"x":1}}"#, |result| result_to_modern("tools/call", result, None)),
        r#"{"content":[],"_meta":{"x":1},"resultType":"complete"}"#
    );
}

#[test]
fn openings_say_the_same_in_both_eras() {
    let discovered = r#"{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true},"extensions":{"io.modelcontextprotocol/tasks":{}}},"instructions":"be \"kind\"","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}}}"#;
    assert_eq!(
        with(discovered, |said| initialize_result(said, Version::V2025_06_18, "alias")),
        r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"s","version":"2"},"instructions":"be \"kind\""}"#
    );
    assert!(with("{}", |said| initialize_result(said, Version::LATEST_LEGACY, "alias")).contains(r#""name":"alias""#));
    let initialized = r#"{"protocolVersion":"2025-11-25","capabilities":{"logging":{},"tasks":{},"experimental":{}},"serverInfo":{"name":"s","version":"2"}}"#;
    assert_eq!(
        with(initialized, discover_result),
        r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"logging":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"2"}}}"#
    );
}

#[test]
fn codes_of_one_era_do_not_reach_the_other() {
    let missing = r#"{"code":-32002,"message":"gone","data":{"why":1}}"#;
    assert_eq!(
        with(missing, |error| error_to_modern(error, Some("\"a://b\""))),
        r#"{"code":-32602,"message":"gone","data":{"why":1,"uri":"a://b"}}"#
    );
    let reserved = r#"{"code":-32042,"message":"look","data":{"secret":1}}"#;
    let internal = r#"{"code":-32603,"message":"look","data":{"upstreamCode":-32042}}"#;
    assert_eq!(with(reserved, |error| error_to_modern(error, None)), internal);
    assert_eq!(with(reserved, error_to_legacy), internal);
    for spelled in ["-32042.0", "-3.2042e4"] {
        let other = reserved.replace("-32042", spelled);
        assert_eq!(with(&other, |error| error_to_modern(error, None)), internal, "{spelled}");
    }
    let own = r#"{"code":-32000,"message":"mine"}"#;
    assert_eq!(with(own, |error| error_to_modern(error, None)), own);
    assert_eq!(with(own, error_to_legacy), own);
}

#[test]
fn headers_that_cannot_be_sent_are_noticed() {
    let usable = [
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"object","properties":{"c":{"type":"integer","x-mcp-header":"C"}}}}}"#,
        r#"{"properties":{"x-mcp-header":{"type":"string"}}}"#,
        r#"{"properties":{"a":{"type":"string","default":{"x-mcp-header":"A"}}}}"#,
    ];
    let useless = [
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}"#,
        r#"{"properties":{"a":{"type":"string","x-mcp-header":""}}}"#,
        r#"{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}"#,
        r#"{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}"#,
        r#"{"anyOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}"#,
    ];
    let shown = |schema: &str| {
        let list = format!(r#"{{"tools":[{{"name":"t","inputSchema":{schema}}}]}}"#);
        with(&list, |list| result_to_legacy("tools/list", list)).contains("\"t\"")
    };
    for schema in usable {
        assert!(shown(schema), "{schema}");
    }
    for schema in useless {
        assert!(!shown(schema), "{schema}");
    }
}
