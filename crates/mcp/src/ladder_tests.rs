//! Every rung refuses what it must, and the earlier rung speaks first.

use http::{HeaderMap, HeaderName, HeaderValue};
use toolwarden_core::json::Limits;

use super::{Rung, check, era_of};
use crate::message::{Message, Request, read_one};
use crate::versions::Era;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn request(method: &str, params: &str) -> Option<Request> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#);
    match read_one(text.as_bytes(), Limits::DEFAULT) {
        Ok(Message::Request(request)) => Some(request),
        _ => None,
    }
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers
}

fn outcome(method: &str, params: &str, pairs: &[(&'static str, &'static str)]) -> &'static str {
    let Some(request) = request(method, params) else { return "no request" };
    match check(&headers(pairs), &request) {
        Ok(_) => "fine",
        Err(Rung::Meta(_)) => "meta",
        Err(Rung::Header(_)) => "header",
        Err(Rung::Version(_)) => "version",
    }
}

const VERSION: (&str, &str) = ("mcp-protocol-version", "2026-07-28");

#[test]
fn rungs_refuse_in_order() {
    let list = ("mcp-method", "tools/list");
    assert_eq!(outcome("tools/list", META, &[VERSION, list]), "fine");
    assert_eq!(outcome("tools/list", META, &[VERSION, list, list]), "header");
    assert_eq!(outcome("tools/list", "", &[VERSION, list]), "meta");
    assert_eq!(outcome("tools/list", "", &[]), "meta");
    assert_eq!(outcome("tools/list", META, &[list]), "header");
    assert_eq!(outcome("tools/list", META, &[("mcp-protocol-version", "2025-11-25"), list]), "header");
    assert_eq!(outcome("tools/list", META, &[VERSION]), "header");
    assert_eq!(outcome("tools/list", META, &[VERSION, ("mcp-method", "Tools/List")]), "header");
    let future = META.replace("2026-07-28", "2030-01-01");
    assert_eq!(outcome("tools/list", &future, &[VERSION, list]), "header");
    assert_eq!(outcome("tools/list", &future, &[("mcp-protocol-version", "2030-01-01"), list]), "version");
    let no_capabilities = META.replace("clientCapabilities\":{}", "clientCapabilities\":1");
    assert_eq!(outcome("tools/list", &no_capabilities, &[]), "meta");
}

#[test]
fn names_are_mirrored() {
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let (params, called) = (format!(r#""taskId":"t1",{META}"#), ("mcp-method", method));
        assert_eq!(outcome(method, &params, &[VERSION, called, ("mcp-name", "t1")]), "fine", "{method}");
        assert_eq!(outcome(method, &params, &[VERSION, called, ("mcp-name", "t2")]), "header", "{method}");
        assert_eq!(outcome(method, &params, &[VERSION, called]), "header", "{method}");
    }
    let params = format!("\"name\":\"über\",{META}");
    let call = ("mcp-method", "tools/call");
    assert_eq!(outcome("tools/call", &params, &[VERSION, call, ("mcp-name", "=?base64?w7xiZXI=?=")]), "fine");
    assert_eq!(outcome("tools/call", &params, &[VERSION, call, ("mcp-name", "other")]), "header");
    assert_eq!(outcome("tools/call", &params, &[VERSION, call]), "header");
}

#[test]
fn the_body_tells_the_era() {
    let modern = request("tools/list", META);
    let legacy = request("tools/list", r#""_meta":{"io.modelcontextprotocol/clientInfo":{}}"#);
    let of = |request: &Option<Request>, pairs: &[(&'static str, &'static str)]| {
        era_of(&headers(pairs), request.as_ref().and_then(|request| request.params.as_ref()))
    };
    assert_eq!(of(&modern, &[("mcp-protocol-version", "2025-11-25")]), Era::Modern);
    assert_eq!(of(&legacy, &[("mcp-protocol-version", "2025-11-25")]), Era::Legacy);
    assert_eq!(of(&legacy, &[]), Era::Legacy);
    assert_eq!(of(&legacy, &[VERSION]), Era::Modern);
}
