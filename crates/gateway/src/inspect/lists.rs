//! Lists, entry by entry through the same judge as calls: what is shown is what may be used (MODE-5).

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use toolwarden_core::json::{Kind, Part, Value};
use toolwarden_core::{Call, Caller, Operation};
use toolwarden_mcp::Id;
use toolwarden_mcp::compose::{self, push_spliced};
use toolwarden_policy::{PolicySet, is_visible};

use crate::gateway::Gateway;
use crate::live;
use crate::resolve::{Asked, query};
use crate::sessions::principal;

/// How long a filtered list may be used again: time windows of modes and rules move.
const FRESH: Duration = Duration::from_secs(1);

/// The last list of a server, filtered for one caller under one policy.
#[derive(Debug, Default)]
pub(crate) struct ListMemo(Mutex<Vec<Remembered>>);

#[derive(Debug)]
struct Remembered {
    method: Arc<str>,
    raw: Part,
    policy: Arc<PolicySet>,
    principal: String,
    filtered: Arc<str>,
    made: Instant,
}

const MOST_REMEMBERED: usize = 32;

impl ListMemo {
    fn find(&self, asked: &Asked, result: &Part, policy: &Arc<PolicySet>) -> Option<Arc<str>> {
        let memo = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let principal = principal(&asked.arrival.caller);
        let known = memo.iter().find(|known| {
            known.method == asked.method
                && Arc::ptr_eq(&known.policy, policy)
                && known.principal == principal
                && known.made.elapsed() < FRESH
                && known.raw.raw() == result.raw()
        });
        known.map(|known| known.filtered.clone())
    }

    fn keep(&self, asked: &Asked, result: &Part, policy: Arc<PolicySet>, filtered: Arc<str>) {
        let mut memo = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memo.retain(|known| known.made.elapsed() < FRESH);
        if memo.len() >= MOST_REMEMBERED {
            memo.clear();
        }
        let (method, raw) = (asked.method.clone(), result.clone());
        let principal = principal(&asked.arrival.caller);
        memo.push(Remembered { method, raw, policy, principal, filtered, made: Instant::now() });
    }
}

pub(super) fn filtered(gateway: &Gateway, asked: &Asked, result: &Part) -> Bytes {
    let id = asked.id.clone().unwrap_or_else(|| Id::number(0));
    let memo = &asked.upstream.lists;
    if let Some(known) = memo.find(asked, result, &gateway.live.snapshot()) {
        return compose::result(&id, &known);
    }
    if &*asked.method == "tools/list"
        && let Some(tools) = result.value().get("tools")
    {
        gateway.live.learn(&asked.upstream.name, &live::definitions(tools));
    }
    let policy = gateway.live.snapshot();
    let text: Arc<str> = visible(gateway, asked, result, &policy).into();
    memo.keep(asked, result, policy, text.clone());
    compose::result(&id, &text)
}

/// The key of a list's entries, and what using an entry would be.
pub(crate) fn kind_of(method: &str) -> Option<(&'static str, Operation)> {
    match method {
        "tools/list" => Some(("tools", Operation::CallTool)),
        "prompts/list" => Some(("prompts", Operation::GetPrompt)),
        "resources/list" => Some(("resources", Operation::ReadResource)),
        "resources/templates/list" => Some(("resourceTemplates", Operation::ReadResource)),
        _ => None,
    }
}

fn visible(gateway: &Gateway, asked: &Asked, result: &Part, policy: &PolicySet) -> String {
    let Some((key, operation)) = kind_of(&asked.method) else { return "{}".to_owned() };
    let mut splices = Vec::new();
    let kept: String;
    if let Some(entries) = result.value().get(key).filter(|entries| entries.kind() == Kind::Array) {
        let shown = entries
            .items()
            .filter(|entry| shows(gateway, &asked.arrival.caller, &asked.upstream.name, policy, operation, *entry));
        kept = format!("[{}]", shown.map(Value::raw).collect::<Vec<_>>().join(","));
        splices.push((result.span_of(entries), kept.as_str()));
    }
    // Filtered for one caller: no shared cache may keep it.
    if let Some(scope) = result.value().get("cacheScope") {
        splices.push((result.span_of(scope), "\"private\""));
    }
    splices.sort_unstable_by_key(|(range, _)| range.start);
    let mut text = String::with_capacity(result.raw().len());
    push_spliced(&mut text, result.raw(), &splices);
    text
}

pub(crate) fn shows(
    gateway: &Gateway,
    caller: &Arc<Caller>,
    server: &Arc<str>,
    policy: &PolicySet,
    operation: Operation,
    entry: Value<'_>,
) -> bool {
    let server = server.clone();
    let call = match operation {
        Operation::CallTool => match entry.get("name").and_then(|name| name.as_str()) {
            Some(name) => Call::mcp(server, &*name, None),
            None => return false,
        },
        other => Call::asked(server, other, None),
    };
    is_visible(policy, &query(gateway, caller, call))
}
