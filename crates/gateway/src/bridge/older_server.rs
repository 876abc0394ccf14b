//! A modern client at a legacy server: the gateway holds the session, and what the server asks in the
//! middle of a call waits there while the client comes back with the answers.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use toolwarden_conversations::Failure;
use toolwarden_conversations::request_state::Carried;
use toolwarden_conversations::source::Source;
use toolwarden_conversations::upstreams::{Link, Older, TakesQuestions, Turn};
use toolwarden_conversations::whole::Reply;
use toolwarden_core::json::{Document, Kind, Limits, Part, Value};
use toolwarden_core::{Call, Operation, Outbound};
use toolwarden_mcp::compose::{self, quoted};
use toolwarden_mcp::eras::{discover_result, error_to_modern, legacy_meta, result_to_modern};
use toolwarden_mcp::fitting_meta::{fitting_meta_text, is_log_level};
use toolwarden_mcp::ladder::META_LOG_LEVEL;
use toolwarden_mcp::{Edit, HopMember, Id, Message};
use toolwarden_policy::{Message as Admitted, admit};

use super::leg::Leg;
use super::listening;
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::Answer;
use toolwarden_steps::audit::Trail;
use toolwarden_steps::following::with_tasks;
use toolwarden_steps::forward::older;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::inspect::{filtered_list, list_kind, pinned_list};
use toolwarden_steps::pinning;
use toolwarden_steps::resolve::{Asked, What, query, text_member};
use toolwarden_steps::way::{Open, Waiting, Way};

/// How often a call that waits for its turn looks for one that has waited for its client long enough.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn carry(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    outbound: Outbound,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let Some(id) = asked.id.clone() else { return Ok(Answer::Accepted) };
    let held = older(&asked.arrival, &asked.upstream).await.map_err(Refusal::Upstream)?;
    match &*asked.method {
        "server/discover" => {
            let (upstream, caller) = (&asked.upstream, &asked.arrival.caller);
            let said = pinning::opening(gateway, upstream, caller, held.said().clone()).await;
            let said = said.map_err(Refusal::Upstream)?;
            let said = discover_result(said.value());
            Ok(Answer::message(compose::result(&id, &with_tasks(gateway, &said).unwrap_or(said))))
        }
        "subscriptions/listen" => listening::listen(gateway, asked, &held, id).await,
        method if list_kind(method).is_some() => {
            let result = whole(asked, &outbound, &held).await.map_err(|failure| translated(asked, failure))?;
            let link = held.link().await.map_err(Refusal::Upstream)?;
            let shown = pinned_list(gateway, asked, &link, &result).await?;
            let shown = Part::composed(result_to_modern(&asked.method, shown.value(), held.about()));
            let shown = shown.map_err(|error| Refusal::Upstream(error.into()))?;
            filtered_list(gateway, asked, (&result, &shown), &id).map(Answer::message)
        }
        _ if matches!(asked.what, What::Call) => match asked.state.as_ref().map(|state| &state.carried) {
            Some(Carried::Parked(name)) => {
                let waiting = gateway.parks.take(name).ok_or(Refusal::Upstream(Failure::Lost))?;
                go_on(gateway, asked, waiting, id, trail).await
            }
            // It was given by a server that spoke the other era a moment ago: the call is not made twice.
            // What the gateway itself asked is answered before anything leaves.
            Some(Carried::Server(_) | Carried::Stateless | Carried::Held { .. }) => {
                Err(Refusal::Upstream(Failure::Lost))
            }
            Some(Carried::Again) | None => call(gateway, asked, &outbound, &held, id, trail).await,
        },
        // Tasks have no form that both eras know.
        _ => Err(Refusal::Method(asked.method.to_string())),
    }
}

/// A result that comes in one piece, in the server's words.
async fn whole(asked: &Asked, outbound: &Outbound, held: &Older) -> Result<Part, Failure> {
    let link = held.link().await?;
    let (mut source, _) = send(asked, outbound, &link, TakesQuestions::Never).await?;
    loop {
        let Message::Response(response) = source.next().await? else { continue };
        return match response.outcome {
            Ok(result) => Ok(result),
            Err(error) => Err(Failure::Answered { status: 200, error: error_to_modern(error.value(), None) }),
        };
    }
}

/// Sends a request in the legacy envelope; gives its messages and the id it has on the wire.
pub(super) async fn send(
    asked: &Asked,
    outbound: &Outbound,
    link: &Link,
    questions: TakesQuestions,
) -> Result<(Source, Id), Failure> {
    let upstream = &asked.upstream;
    let meta = legacy_meta(outbound.params().map(Part::value));
    let meta = meta.map(|meta| fitting_meta_text(meta, asked.answered())).filter(|meta| meta != "{}");
    let mut edits = vec![
        Edit::Hop(HopMember::Meta, meta.as_deref()),
        Edit::Hop(HopMember::InputResponses, None),
        Edit::Hop(HopMember::RequestState, None),
    ];
    let trace = asked.trace();
    edits.extend(trace.as_deref().map(Edit::Trace));
    let (sent, id, wire) = match link {
        Link::Http(http) => {
            // Several clients may share the session, so neither ids nor tokens can be theirs.
            let id = http.next_id();
            edits.push(Edit::ProgressToken(id.raw()));
            let sent = http.request(outbound, &id, &edits, None, asked.bounds.silence).await.map(Reply::Http);
            (sent, id.clone(), id.clone())
        }
        Link::Stdio(child) => {
            let id = asked.id.clone().unwrap_or_else(|| Id::number(0));
            let caller = Some(&asked.arrival.caller);
            let sent = child.request_for(caller, outbound, &id, &edits, questions).await;
            let wire = sent.as_ref().map_or_else(|_| id.clone(), |reply| reply.guard.wire());
            (sent.map(Reply::Stdio), id, wire)
        }
    };
    let reply = sent.inspect_err(|failure| upstream.fails(failure))?;
    upstream.works();
    Ok((Source::of(upstream, &asked.bounds, link, reply, id).await?, wire))
}

/// A line of the conversation for one call. Where all are taken, a call nobody came back for makes room;
/// without one, this one waits.
async fn turn(gateway: &Gateway, asked: &Asked, held: &Arc<Older>) -> Result<Turn, Failure> {
    let waiting = async {
        let mut seat = pin!(held.seat());
        let mut looking = tokio::time::interval(LOOK_AGAIN);
        loop {
            tokio::select! {
                biased;
                seat = &mut seat => return held.turn(seat).await,
                _ = looking.tick() => gateway.parks.give_up_oldest_of(held, gateway.settings.answer_time),
            }
        }
    };
    timeout(asked.bounds.silence, waiting).await.unwrap_or(Err(Failure::Busy))
}

async fn call(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    outbound: &Outbound,
    held: &Arc<Older>,
    id: Id,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let turn = turn(gateway, asked, held).await.map_err(Refusal::Upstream)?;
    tell_level(gateway, asked, &turn).await;
    let sent = send(asked, outbound, &turn.link, turn.questions).await;
    let (source, wire) = sent.map_err(|failure| translated(asked, failure))?;
    let about = held.about().map(str::to_owned);
    let way = Way { upstream: asked.upstream.clone(), turn, source, wire, about, has_asked: false };
    Leg::new(gateway, asked, id, way, trail.take()).walk().await
}

/// An answer that came with a status of its own.
fn translated(asked: &Asked, failure: Failure) -> Refusal {
    Refusal::Upstream(match failure {
        Failure::Answered { error, .. } => {
            let error = Document::parse(error.as_str(), Limits::DEFAULT)
                .map_or(error.clone(), |document| error_to_modern(document.root(), uri_of(asked).as_deref()));
            Failure::Answered { status: 200, error }
        }
        other => other,
    })
}

pub(super) fn uri_of(asked: &Asked) -> Option<String> {
    text_member(asked.query.call.params.as_ref(), "uri").map(|uri| quoted(&uri))
}

/// A legacy server is told the level this request wants, where nobody else hears its logs.
async fn tell_level(gateway: &Gateway, asked: &Asked, turn: &Turn) {
    let meta = asked.query.call.params.as_ref().and_then(|params| params.value().get("_meta"));
    let level = meta.and_then(|meta| meta.get(META_LOG_LEVEL)).filter(|level| is_log_level(*level));
    let Some(level) = level.filter(|_| turn.is_own()) else { return };
    let Ok(params) = Part::composed(format!("{{\"level\":{}}}", level.raw())) else { return };
    let told = Call::asked(asked.upstream.name.clone(), Operation::ReadResource, Some(params));
    let told = query(gateway, &asked.arrival.caller, told);
    let method = "logging/setLevel".to_owned();
    let Ok(outbound) = admit(&gateway.live.policy(), &told, Admitted::Listed { method }) else { return };
    if let Ok((mut source, _)) = send(asked, &outbound, &turn.link, TakesQuestions::Never).await {
        // Whether it has levels or not, the call goes on.
        while let Ok(message) = source.next().await {
            if matches!(message, Message::Response(_)) {
                return;
            }
        }
    }
}

/// The client came back with answers.
async fn go_on(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    mut waiting: Box<Waiting>,
    id: Id,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    waiting.answered();
    asked.arrival.course.flight().carry_on(waiting.asked.arrival.course.flight());
    let given = asked.query.call.params.as_ref().and_then(|params| params.member("inputResponses"));
    let answer_to = |open: &Open| given.as_ref()?.member(&open.key).filter(|answer| fits(&open.method, answer.value()));
    let answers: Option<Vec<Part>> = waiting.open.iter().map(answer_to).collect();
    let Some(way) = waiting.way.take() else { return Err(Refusal::Upstream(Failure::Lost)) };
    let leg = Leg::new(gateway, asked, id, way, trail.take());
    let open = std::mem::take(&mut waiting.open);
    let Some(answers) = answers else {
        // Something is missing, or is no answer: the same questions once more.
        return leg.ask(open, trail).map_err(Refusal::Upstream);
    };
    for (open, answer) in open.iter().zip(&answers) {
        if let Err(refusal) = leg.answer(open, answer).await {
            *trail = leg.into_trail();
            return Err(refusal);
        }
    }
    leg.walk().await
}

/// Whether an answer has the form its question wants.
fn fits(method: &str, answer: Value<'_>) -> bool {
    let has = |key: &str, kind: Kind| answer.get(key).is_some_and(|member| member.kind() == kind);
    match method {
        "elicitation/create" => {
            let action = answer.get("action").and_then(Value::as_str);
            matches!(action.as_deref(), Some("accept" | "decline" | "cancel"))
        }
        "roots/list" => has("roots", Kind::Array),
        _ => has("role", Kind::String) && answer.get("content").is_some(),
    }
}
