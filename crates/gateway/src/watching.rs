//! What a modern client may listen to: every resource it names is judged as reading it is (GATE-19).

use std::sync::Arc;

use toolwarden_conversations::upstreams::Upstream;
use toolwarden_core::json::{Part, Value};
use toolwarden_core::{Call, Caller, Operation};
use toolwarden_mcp::compose::{object_with, quoted};
use toolwarden_policy::{Message, admit};

use crate::gateway::Gateway;
use crate::resolve::{Asked, query};

const URIS: &str = "resourceSubscriptions";

/// The filter of `subscriptions/listen` without the resources the caller may not watch; none where it
/// may watch all it asks for.
pub(crate) fn cut_filter(gateway: &Gateway, asked: &Asked) -> Option<String> {
    if &*asked.method != "subscriptions/listen" {
        return None;
    }
    let filter = asked.query.call.params.as_ref()?.value().get("notifications")?;
    let wanted: Vec<Value<'_>> = filter.get(URIS)?.items().collect();
    let may_watch = |uri: &&Value<'_>| {
        uri.as_str().is_some_and(|uri| may_watch(gateway, &asked.arrival.caller, &asked.upstream, &uri))
    };
    let kept: Vec<&str> = wanted.iter().filter(may_watch).map(|uri| uri.raw()).collect();
    if kept.len() == wanted.len() {
        return None;
    }
    let uris = format!("[{}]", kept.join(","));
    Some(object_with(Some(filter), &[(URIS, (!kept.is_empty()).then_some(uris.as_str()))]))
}

pub(crate) fn may_watch(gateway: &Gateway, caller: &Arc<Caller>, upstream: &Upstream, uri: &str) -> bool {
    let Ok(params) = Part::composed(format!("{{\"uri\":{}}}", quoted(uri))) else { return false };
    let call = Call::asked(upstream.name.clone(), Operation::ReadResource, Some(params));
    let watches = Message::Listed { method: "resources/subscribe".to_owned() };
    admit(&gateway.live.policy(), &query(gateway, caller, call), watches).is_ok()
}
