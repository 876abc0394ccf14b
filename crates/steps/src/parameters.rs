//! Parameters that a tool's schema wants repeated as headers (`x-mcp-header`): compared with the body.
//!
//! The body is what is judged and sent; a header that says otherwise would be acted on by whoever
//! trusts headers, so the call is refused.

use http::{HeaderMap, HeaderValue};
use toolwarden_core::{Weakness, weak};
use toolwarden_mcp::ladder::{self, Rung};
use toolwarden_mcp::{Era, headers, parameters};

use crate::arrival::Via;
use crate::gateway::Gateway;
use crate::resolve::{Asked, What, text_member};
use toolwarden_refusals::Refusal;

/// Checks a modern tool call that came over HTTP.
pub fn check(gateway: &Gateway, asked: &Asked) -> Result<(), Refusal> {
    let is_modern_http = asked.arrival.via == Via::Http && asked.arrival.version.era() == Era::Modern;
    if !is_modern_http || !matches!(asked.what, What::Call) || weak::is(Weakness::Ladder) {
        return Ok(());
    }
    let policy = asked.policy(gateway);
    let tool = policy.servers().get(&asked.upstream.name).and_then(|server| server.tool(&asked.query.call.tool));
    let schema = tool.and_then(|tool| tool.definition.as_ref()?.input_schema.as_ref());
    let schema = schema.unwrap_or(&serde_json::Value::Null);
    let arguments = asked.query.call.arguments.as_ref().map(toolwarden_core::json::Part::value);
    parameters::compare_all(schema, arguments, &asked.arrival.headers).map_err(|what| Refusal::Rung(Rung::Header(what)))
}

/// The headers that mirror a modern request which came without any: over a pipe.
pub fn mirrors(gateway: &Gateway, asked: &Asked) -> HeaderMap {
    let mut made = HeaderMap::new();
    if let Ok(method) = HeaderValue::from_str(&asked.method) {
        made.insert(headers::METHOD, method);
    }
    let params = asked.query.call.params.as_ref();
    let name = ladder::named_by(&asked.method).and_then(|key| text_member(params, key));
    if let Some(name) = name {
        made.insert(headers::NAME, headers::encode(&name));
    }
    let policy = asked.policy(gateway);
    let tool = policy.servers().get(&asked.upstream.name).and_then(|server| server.tool(&asked.query.call.tool));
    let schema = tool.and_then(|tool| tool.definition.as_ref()?.input_schema.as_ref());
    let arguments = asked.query.call.arguments.as_ref().map(toolwarden_core::json::Part::value);
    if let (Some(schema), What::Call) = (schema, &asked.what) {
        parameters::repeat(schema, arguments, &mut made, 0);
    }
    made
}
