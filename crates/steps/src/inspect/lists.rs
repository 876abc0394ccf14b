//! Lists, entry by entry through the same judge as calls: what is shown is what may be used (MODE-5).

use std::sync::Arc;

use bytes::Bytes;
use toolwarden_conversations::memo::ListOf;
use toolwarden_conversations::upstreams::Link;
use toolwarden_conversations::whole::{self, Reply};
use toolwarden_core::json::{Kind, Part, Value, unescape};
use toolwarden_core::{Call, Caller, Operation};
use toolwarden_mcp::Id;
use toolwarden_mcp::compose::{self, push_spliced, quoted};
use toolwarden_mcp::scan::OWN_WORDS;
use toolwarden_mcp::upstream::http::{Reply as HttpReply, ReplyBody};
use toolwarden_policy::{PolicySet, is_visible};

use super::body::joined;
use super::broke;
use super::whole_result;
use crate::answer::Answer;
use crate::gateway::Gateway;
use crate::pinning;
use crate::resolve::{Asked, query};
use crate::visible::{NO_TOOLS, NOTICE};
use toolwarden_refusals::Refusal;

fn list_of<'a>(gateway: &Gateway, asked: &'a Asked, speaker: &'a Arc<Caller>) -> ListOf<'a> {
    ListOf { method: &asked.method, caller: speaker, standing: gateway.pins.moves() }
}

/// The answer to a list: what the caller may see of it.
pub async fn answer(gateway: &Arc<Gateway>, asked: &Asked, link: &Link, reply: Reply) -> Result<Answer, Refusal> {
    let id = asked.answer_id();
    match reply {
        Reply::Http(HttpReply { status, body: ReplyBody::Json(body), .. }) => {
            let pieces = whole::pieces(&asked.upstream, body).await.map_err(Refusal::Upstream)?;
            let (policy, speaker) = (gateway.live.snapshot(), asked.arrival.speaker());
            // A list that did not change is known by its bytes, and need not be read.
            let of = list_of(gateway, asked, &speaker);
            let known = asked.upstream.lists.find(of, &policy, |raw| is_same_message(raw, &pieces, &id));
            if let Some(known) = known {
                return Ok(Answer::message(compose::result(&id, &known)));
            }
            let result = whole::outcome(&joined(pieces), &id, status.as_u16()).map_err(Refusal::Upstream)?;
            let shown = pinned(gateway, asked, link, &result).await?;
            filtered(gateway, asked, (&result, &shown), &id).map(Answer::message)
        }
        reply => {
            // In the form the server chose: clients may count on streams where it streams.
            let as_events = matches!(&reply, Reply::Http(reply) if matches!(reply.body, ReplyBody::Events(_)));
            let result = whole_result(asked, reply).await?;
            let (policy, speaker) = (gateway.live.snapshot(), asked.arrival.speaker());
            let of = list_of(gateway, asked, &speaker);
            let known = asked.upstream.lists.find(of, &policy, |raw| raw.raw() == result.raw());
            let body = match known {
                Some(known) => compose::result(&id, &known),
                None => {
                    let shown = pinned(gateway, asked, link, &result).await?;
                    filtered(gateway, asked, (&result, &shown), &id)?
                }
            };
            Ok(if as_events { Answer::one_event(body) } else { Answer::message(body) })
        }
    }
}

/// Whether a message is the one a known result came in, but for the id of its own request.
fn is_same_message(known: &Part, pieces: &[Bytes], id: &Id) -> bool {
    let document = known.document();
    let Some(id_span) = document.root().get("id").map(|id| id.span()) else { return false };
    let text = document.text().as_bytes();
    let (Some(before), Some(after)) = (text.get(..id_span.start), text.get(id_span.end..)) else { return false };
    let mut expected = [before, id.raw().as_bytes(), after].into_iter();
    let mut part = expected.next().unwrap_or_default();
    for piece in pieces {
        let mut piece = &**piece;
        while !piece.is_empty() {
            if part.is_empty() {
                match expected.next() {
                    Some(next) => part = next,
                    None => return false,
                }
                continue;
            }
            let length = part.len().min(piece.len());
            let ((head, tail), (same, rest)) = (piece.split_at(length), part.split_at(length));
            if head != same {
                return false;
            }
            (piece, part) = (tail, rest);
        }
    }
    part.is_empty() && expected.all(<[u8]>::is_empty)
}

/// A list with the definitions that are accepted, in its server's own words.
pub async fn pinned(gateway: &Arc<Gateway>, asked: &Asked, link: &Link, result: &Part) -> Result<Part, Refusal> {
    let Some(list) = pinning::list_of(&asked.method) else { return Ok(result.clone()) };
    let from = asked.query.call.params.as_ref().and_then(|params| params.value().get("cursor"));
    let after = asked.after.get().copied().unwrap_or(u64::MAX);
    let reached = (&asked.upstream, link);
    pinning::page(gateway, reached, &asked.arrival.caller, list, (from, after), result).await.map_err(Refusal::Upstream)
}

/// What the caller may see of a list: `given` as the server gave it, `result` of it what is accepted.
pub fn filtered(gateway: &Gateway, asked: &Asked, (given, result): (&Part, &Part), id: &Id) -> Result<Bytes, Refusal> {
    let kind = result.value().get("resultType").and_then(Value::as_str);
    if kind.is_some_and(|kind| kind != "complete") || result.value().get("inputRequests").is_some() {
        return Err(broke("it asked for something where nothing may be asked"));
    }
    // As it is now: what was asked for in a mode that was left meanwhile is not shown in it.
    let (policy, speaker) = (gateway.live.snapshot(), asked.arrival.speaker());
    let text: Arc<str> = with_notice(&asked.method, visible(gateway, (asked, &speaker), result, &policy)).into();
    asked.upstream.lists.keep(list_of(gateway, asked, &speaker), given, policy, text.clone());
    Ok(compose::result(id, &text))
}

/// The key of a list's entries, and what using an entry would be.
pub fn kind_of(method: &str) -> Option<(&'static str, Operation)> {
    match method {
        "tools/list" => Some(("tools", Operation::CallTool)),
        "prompts/list" => Some(("prompts", Operation::GetPrompt)),
        "resources/list" => Some(("resources", Operation::ReadResource)),
        "resources/templates/list" => Some(("resourceTemplates", Operation::ReadResource)),
        _ => None,
    }
}

fn visible(gateway: &Gateway, (asked, speaker): (&Asked, &Arc<Caller>), result: &Part, policy: &PolicySet) -> String {
    let Some((key, operation)) = kind_of(&asked.method) else { return "{}".to_owned() };
    let mut splices = Vec::new();
    let kept: String;
    if let Some(entries) = result.value().get(key).filter(|entries| entries.kind() == Kind::Array) {
        let shown =
            entries.items().filter(|entry| shows(gateway, speaker, &asked.upstream.name, policy, operation, *entry));
        kept = format!("[{}]", shown.map(Value::raw).collect::<Vec<_>>().join(","));
        splices.push((result.span_of(entries), kept.as_str()));
    }
    // Filtered for one caller: no shared cache may keep it.
    if let Some(scope) = result.value().get("cacheScope") {
        splices.push((result.span_of(scope), "\"private\""));
    }
    // What only the gateway says is left out: a list is put together anew in any case.
    let said = result.value().get("_meta").filter(|meta| meta.kind() == Kind::Object);
    let own: Vec<String> =
        said.into_iter().flat_map(Value::entries).map(|(key, _)| unescape(key).into_owned()).collect();
    let own: Vec<_> = own.iter().filter(|key| key.starts_with(OWN_WORDS)).map(|key| (key.as_str(), None)).collect();
    let meta: String;
    if let (false, Some(said)) = (own.is_empty(), said) {
        meta = compose::object_with(Some(said), &own);
        splices.push((result.span_of(said), &meta));
    }
    splices.sort_unstable_by_key(|(range, _)| range.start);
    let mut text = String::with_capacity(result.raw().len());
    push_spliced(&mut text, result.raw(), &splices);
    text
}

/// A list of tools with nothing left in it says so (MODE-5): an empty list reads like a fault.
fn with_notice(method: &str, text: String) -> String {
    if method != "tools/list" {
        return text;
    }
    let Ok(list) = Part::composed(text.clone()) else { return text };
    let has_none = list.value().get("tools").is_some_and(|tools| tools.items().next().is_none());
    if !has_none || list.value().get("nextCursor").is_some() {
        return text;
    }
    let said = list.value().get("_meta").filter(|meta| meta.kind() == Kind::Object);
    let notice = quoted(NO_TOOLS);
    let meta = compose::object_with(said, &[(NOTICE, Some(notice.as_str()))]);
    compose::object_with(Some(list.value()), &[("_meta", Some(meta.as_str()))])
}

pub fn shows(
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

#[cfg(test)]
#[path = "lists_tests.rs"]
mod tests;
