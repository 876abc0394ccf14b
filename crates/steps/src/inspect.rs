//! What a server answered, looked at before anybody gets it.
//!
//! Small answers are scanned whole; large ones are scanned while they stream, their last bytes held
//! back until the scan is done. Nothing is rewritten but what the corridor itself put in.

mod body;
mod check;
mod events;
mod lists;

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use tokio::time::timeout;
use toolwarden_conversations::whole::{self, Reply, error_of, result_of};
use toolwarden_conversations::{Failure, Scope};
use toolwarden_core::json::{Document, Limits, Part, unescape};
use toolwarden_core::{Status, Weakness, weak};
use toolwarden_mcp::scan::{Facts, Outcome};
use toolwarden_mcp::upstream::http::{Reply as HttpReply, ReplyBody};
use toolwarden_mcp::{Era, Id, compose};

pub use body::BodyError;
pub use body::InspectedBody;
pub use check::{Check, told_refusal};
pub use events::{Heard, stream_events};
pub use lists::{filtered as filtered_list, kind_of as list_kind, pinned as pinned_list, shows};
pub use toolwarden_conversations::receipt::{is_wanted as receipt_is_wanted, with_receipt};

use crate::answer::Answer;
use crate::audit::Trail;
use crate::exchange;
use crate::following;
use crate::forward::Forwarded;
use crate::gateway::Gateway;
use crate::pinning;
use crate::resolve::{Asked, What, text_member};
use toolwarden_refusals::Refusal;

/// The whole result of a request, where somebody must look into it.
async fn whole_result(asked: &Asked, reply: Reply) -> Result<Part, Refusal> {
    result_of(&asked.upstream, reply, &asked.answer_id()).await.map_err(Refusal::Upstream)
}

/// Looks at an answer and shapes it for the door. Takes the trail along where the answer streams.
pub async fn inspect(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    forwarded: Forwarded,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    match (&asked.what, forwarded.reply) {
        (_, Reply::Sent) => Ok(Answer::Accepted),
        (What::List, reply) => lists::answer(gateway, asked, &forwarded.link, reply).await,
        (What::Opening, reply) => {
            let said = whole_result(asked, reply).await?;
            whole::check_words(Ok(said.value())).map_err(Refusal::Upstream)?;
            let (upstream, caller) = (&asked.upstream, &asked.arrival.caller);
            let said = pinning::opening(gateway, upstream, caller, said).await.map_err(Refusal::Upstream)?;
            // Only modern ones come here: the others are opened by the corridor.
            let shown = following::with_tasks(gateway, said.raw());
            Ok(Answer::message(compose::result(&asked.answer_id(), shown.as_deref().unwrap_or(said.raw()))))
        }
        (What::Task(None), reply) => {
            let result = whole_result(asked, reply).await?;
            whole::check_words(Ok(result.value())).map_err(Refusal::Upstream)?;
            let own = asked.upstream.tasks.own(&asked.answer_id(), &asked.arrival.caller, &result);
            // What is said of the tasks of others is nobody's concern here.
            let Some(check) = Check::of(gateway, asked) else { return Ok(Answer::message(own)) };
            let outcome = body::outcome_of(&own).ok_or_else(|| broke("its list cannot be read"))?;
            let shown = check.judge((gateway, asked), &outcome, trail.as_mut()).await.map_err(Refusal::Upstream)?;
            Ok(Answer::message(shown.and_then(|shown| composed(asked.id.as_ref(), &shown)).unwrap_or(own)))
        }
        (What::Watch, reply) if &*asked.method == "resources/subscribe" => {
            let result = whole_result(asked, reply).await?;
            whole::check_words(Ok(result.value())).map_err(Refusal::Upstream)?;
            let uri = text_member(asked.query.call.params.as_ref(), "uri");
            // Remembered only once the server agreed: a failed subscription must not starve a later one.
            if let (Some(session), Some(uri)) = (&asked.arrival.session, uri) {
                session.watch(asked.upstream.name.clone(), uri);
            }
            let shown = match Check::of(gateway, asked) {
                Some(check) => check.judge((gateway, asked), &Ok(result.clone()), trail.as_mut()).await,
                None => Ok(None),
            };
            let shown = shown.map_err(Refusal::Upstream)?.and_then(Result::ok);
            Ok(Answer::message(compose::result(&asked.answer_id(), shown.unwrap_or(result).raw())))
        }
        (_, Reply::Http(reply)) => {
            let reply = status_checked(gateway, asked, reply).await?;
            match reply.body {
                ReplyBody::Json(json) => body::inspected(gateway, asked, json, trail).await,
                ReplyBody::Events(sse) => {
                    let heard = Heard::new(gateway, asked, forwarded.link, trail.take());
                    Ok(Answer::Events { events: stream_events(sse, heard), resumable: true })
                }
                ReplyBody::Empty if asked.id.is_none() => Ok(Answer::Accepted),
                ReplyBody::Empty | ReplyBody::Other(_) => {
                    Err(broke("it answered a request with neither JSON nor events"))
                }
            }
        }
        (_, Reply::Stdio(reply)) => {
            let heard = Heard::new(gateway, asked, forwarded.link, trail.take());
            events::from_child(asked, reply, heard, trail).await
        }
    }
}

/// What an HTTP status means before the body counts.
async fn status_checked(gateway: &Gateway, asked: &Asked, reply: HttpReply) -> Result<HttpReply, Refusal> {
    let is_legacy = asked.arrival.version.era() == Era::Legacy;
    match reply.status {
        status if status.is_success() || weak::is(Weakness::Answers) => Ok(reply),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Refusal::Upstream(Failure::NeedsAuth)),
        StatusCode::NOT_FOUND if is_legacy => {
            let Some(session) = &asked.arrival.session else { return Err(Refusal::SessionGone) };
            if session.scope == Scope::All {
                // One server's word does not end the conversation with all; its own is opened anew.
                session.forget_link(&asked.upstream);
                return Err(Refusal::Upstream(Failure::Forgotten));
            }
            // The server forgot the session, so ours is over, too; the client opens another.
            gateway.close_session(session);
            let session = session.clone();
            tokio::spawn(async move { session.leave().await });
            Err(Refusal::SessionGone)
        }
        status => {
            let reading = timeout(asked.bounds.silence, error_of(reply.body));
            let error = reading.await.map_err(|_| Refusal::Upstream(Failure::Timeout))?;
            if !is_legacy && !speaks_modern(error.as_deref()) {
                asked.upstream.doubt();
            }
            Err(Refusal::Upstream(match error {
                Some(error) => Failure::Answered { status: status.as_u16(), error: shown_error(asked, error).await? },
                None => Failure::Wordless { status: status.as_u16() },
            }))
        }
    }
}

/// An error as the client is shown it.
async fn shown_error(asked: &Asked, error: String) -> Result<String, Refusal> {
    let Ok(read) = Document::parse(error.as_str(), Limits::again(error.len())) else { return Ok(error) };
    let shown = exchange::outgoing_error(asked, read.root()).await.map_err(Refusal::Upstream)?;
    Ok(shown.unwrap_or(error))
}

/// An answer in wire form; none where a result has nobody to go to.
fn composed(id: Option<&Id>, outcome: &Result<Part, Part>) -> Option<Bytes> {
    match outcome {
        Ok(result) => id.map(|id| compose::result(id, result.raw())),
        Err(error) => Some(compose::raw_error(id, error.raw())),
    }
}

pub fn broke(what: &str) -> Refusal {
    Refusal::Upstream(Failure::Protocol(what.to_owned()))
}

/// Checks what a scan found; gives how the call ended.
pub fn judged_facts(asked: &Asked, facts: &Facts) -> Result<Status, Failure> {
    let own = asked.id.as_ref().map(Id::raw);
    let same = match (facts.id.as_deref(), own) {
        _ if weak::is(Weakness::Answers) => true,
        (Some(given), Some(own)) => given == own || (given.starts_with('"') && unescape(given) == unescape(own)),
        _ => false,
    };
    if facts.imitates && !weak::is(Weakness::Answers) {
        return Err(whole::imitation());
    }
    match facts.outcome {
        // A server that could not read the request answers without its id.
        Some(Outcome::Error) if same || facts.id.as_deref().is_none_or(|id| id == "null") => Ok(Status::ToolError),
        _ if !same => Err(Failure::Protocol("it answered another request than was asked".to_owned())),
        _ => {
            result_type(facts.result_type.as_deref())?;
            Ok(if facts.is_error == Some(true) { Status::ToolError } else { Status::Ok })
        }
    }
}

fn result_type(kind: Option<&str>) -> Result<(), Failure> {
    match kind {
        _ if weak::is(Weakness::Answers) => Ok(()),
        None | Some("complete" | "input_required" | "task") => Ok(()),
        Some(_) => Err(Failure::Protocol("its result is of a kind nobody knows".to_owned())),
    }
}

/// Whether a refusal with a status of its own is one a modern server gives.
fn speaks_modern(error: Option<&str>) -> bool {
    let code = error.and_then(|error| {
        let error = Document::parse(error, Limits::DEFAULT).ok()?;
        error.root().get("code")?.raw().parse::<i64>().ok()
    });
    // What older servers say to a request before `initialize` is none of these.
    code.is_some_and(|code| (-32099..=-32020).contains(&code) || [-32700, -32603, -32602, -32601].contains(&code))
}
