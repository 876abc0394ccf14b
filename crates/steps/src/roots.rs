//! A client's roots, on their way to a server: they widen what it does, so each is judged (GATE-18).

use toolwarden_core::Caller;
use toolwarden_core::json::{Part, Value};
use toolwarden_mcp::compose::object_with;
use toolwarden_policy::permits_root;

use crate::gateway::Gateway;

/// An answer as the server gets it: of roots only those the caller may pass on.
pub fn judged(gateway: &Gateway, caller: &Caller, method: &str, answer: &Part) -> Option<Part> {
    if method != "roots/list" {
        return Some(answer.clone());
    }
    let policy = gateway.live.policy();
    let is_permitted = |root: &Value<'_>| {
        let uri = root.get("uri").and_then(Value::as_str);
        uri.is_some_and(|uri| permits_root(&policy, caller, &uri))
    };
    let roots = answer.value().get("roots").into_iter().flat_map(Value::items).filter(is_permitted);
    let kept = format!("[{}]", roots.map(Value::raw).collect::<Vec<_>>().join(","));
    let text = object_with(Some(answer.value()), &[("roots", Some(&kept))]);
    Part::composed(text).ok()
}
