//! What was judged leaves, on the conversation it belongs to. There is no other way out.

use std::sync::Arc;

use toolwarden_conversations::request_state::Carried;
use toolwarden_conversations::sessions::{AnswerTo, Question, principal};
use toolwarden_conversations::upstreams::{Link, Older, TakesQuestions, Upstream};
use toolwarden_conversations::whole::Reply;
use toolwarden_conversations::{Failure, Scope};
use toolwarden_core::Outbound;
use toolwarden_core::json::{Document, Limits};
use toolwarden_mcp::eras::asks_of_clients;
use toolwarden_mcp::fitting_meta::{fitting_capabilities, fitting_meta};
use toolwarden_mcp::ladder::META_CAPABILITIES;
use toolwarden_mcp::{Edit, Era, HopMember, Id, Message, compose};

use crate::arrival::Arrival;
use crate::exchange::{self, Answers};
use crate::gateway::Gateway;
use crate::resolve::{Asked, What};
use crate::{following, parameters, watching};
use toolwarden_refusals::Refusal;

/// A request on its way.
#[derive(Debug)]
pub struct Forwarded {
    pub reply: Reply,
    pub link: Link,
}

/// The conversation a message travels on; none for answers and cancellations, which know their own.
pub async fn link_of(asked: &Asked) -> Result<Option<Link>, Refusal> {
    match &asked.what {
        What::Answer(..) | What::Cancel(_) => Ok(None),
        _ => link(&asked.arrival, &asked.upstream).await.map(Some),
    }
}

pub async fn forward(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    outbound: &Outbound,
    link: Option<Link>,
) -> Result<Forwarded, Refusal> {
    let link = match (&asked.what, link) {
        (_, Some(link)) => link,
        (What::Answer(Question { to: AnswerTo::Server(link, _), .. }, _), None) => link.clone(),
        (_, None) => return Err(Refusal::Order("there is nobody to tell")),
    };
    let answers = exchange::incoming(gateway, asked).await?;
    let sent = send(gateway, asked, outbound, &link, &answers).await;
    match &sent {
        Ok(_) => asked.upstream.works(),
        Err(failure) => asked.upstream.fails(failure),
    }
    let reply = sent.map_err(Refusal::Upstream)?;
    Ok(Forwarded { reply, link })
}

async fn send(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    outbound: &Outbound,
    link: &Link,
    answers: &Answers,
) -> Result<Reply, Failure> {
    match (&asked.what, &asked.id) {
        (What::Answer(Question { to: AnswerTo::Server(_, id), .. }, _), _) => {
            if asked.arrival.via.is_one_line() {
                // A server that does not take it must not keep the line from the client's other messages.
                let (link, outbound, id) = (link.clone(), outbound.clone(), id.clone());
                tokio::spawn(async move { answer(&link, &outbound, &id).await });
            } else {
                answer(link, outbound, id).await?;
            }
            Ok(Reply::Sent)
        }
        (What::Answer(..) | What::Cancel(_), _) => Ok(Reply::Sent),
        (_, None) => {
            notify(link, outbound).await?;
            let on_a_pipe = asked.arrival.via.is_one_line() && &*asked.method == "notifications/initialized";
            if let (true, Link::Http(http), Some(session)) = (on_a_pipe, link, &asked.arrival.session) {
                crate::news::follow(gateway, session, &asked.upstream, http);
            }
            Ok(Reply::Sent)
        }
        (_, Some(id)) => request(gateway, asked, outbound, link, id, answers).await,
    }
}

async fn request(
    gateway: &Gateway,
    asked: &Asked,
    outbound: &Outbound,
    link: &Link,
    id: &Id,
    answers: &Answers,
) -> Result<Reply, Failure> {
    let waits = |wire: Id| {
        // Outside of a session a request ends with its connection, and that with the server's.
        if asked.arrival.session.is_some() {
            asked.arrival.course.flight().waits_at(&asked.upstream.name, link, wire);
        }
    };
    let cut = cut_capabilities(asked, outbound);
    let mut edits: Vec<Edit<'_>> = cut.as_deref().map(Edit::ClientCapabilities).into_iter().collect();
    let trace = asked.trace();
    edits.extend(trace.as_deref().map(Edit::Trace));
    let meta = outbound.params().and_then(|params| params.value().get("_meta"));
    let meta = meta.and_then(|meta| fitting_meta(meta, asked.answered()));
    if let Some(meta) = &meta {
        edits.push(Edit::Hop(HopMember::Meta, Some(meta)));
    }
    let state = match asked.state.as_ref().map(|state| &state.carried) {
        None => None,
        Some(Carried::Server(own)) => Some(Some(compose::quoted(own))),
        Some(Carried::Stateless) => Some(None),
        // It waits at a server that spoke the other era a moment ago.
        Some(Carried::Parked(_) | Carried::Again | Carried::Held { .. }) => return Err(Failure::Lost),
    };
    if let Answers::Judged(answers) = answers {
        edits.push(Edit::Hop(HopMember::InputResponses, answers.as_deref()));
    }
    let filter = watching::cut_filter(gateway, asked);
    if let Some(filter) = &filter {
        edits.push(Edit::Hop(HopMember::Notifications, Some(filter)));
    }
    if let Some(state) = &state {
        edits.push(Edit::Hop(HopMember::RequestState, state.as_deref()));
    }
    match link {
        Link::Http(http) => {
            waits(id.clone());
            let made = asked.arrival.via.is_one_line().then(|| parameters::mirrors(gateway, asked));
            let mirrors = made.as_ref().unwrap_or(&asked.arrival.headers);
            let mirrors = (asked.arrival.version.era() == Era::Modern).then_some(mirrors);
            let reply = http.request(outbound, id, &edits, mirrors, asked.bounds.silence).await?;
            Ok(Reply::Http(reply))
        }
        Link::Stdio(stdio) => {
            let reply =
                stdio.request_for(Some(&asked.arrival.caller), outbound, id, &edits, questions_of(asked)).await?;
            waits(reply.guard.wire());
            Ok(Reply::Stdio(reply))
        }
    }
}

/// A call's own stream is read by the client; the answers of others are looked at here.
fn questions_of(asked: &Asked) -> TakesQuestions {
    if matches!(asked.what, What::Call) { TakesQuestions::BySession } else { TakesQuestions::Never }
}

/// A modern request declares upstream what its client declared, less what this server may not ask.
fn cut_capabilities(asked: &Asked, outbound: &Outbound) -> Option<String> {
    let declared = outbound.params()?.value().get("_meta")?.get(META_CAPABILITIES)?;
    let mut cut = asked.upstream.may_ask.cut(&asked.arrival.caller, declared);
    if asked.arrival.scope == Scope::All {
        // A task belongs to the server that made it, and behind the common door nobody could ask that for it.
        cut = following::without_tasks(&cut).unwrap_or(cut);
    }
    let bounded = Document::parse(cut.as_str(), Limits::again(cut.len()));
    cut = bounded.map_or("{}".to_owned(), |cut| fitting_capabilities(cut.root(), asked.answered()));
    (cut != declared.raw()).then_some(cut)
}

async fn notify(link: &Link, outbound: &Outbound) -> Result<(), Failure> {
    match link {
        Link::Http(http) => http.notify(outbound).await.map(drop),
        // A shared child was greeted once, by the gateway.
        Link::Stdio(stdio) if !stdio.is_own() => Ok(()),
        Link::Stdio(stdio) => stdio.notify(outbound, &[]).await,
    }
}

async fn answer(link: &Link, outbound: &Outbound, id: &Id) -> Result<(), Failure> {
    match link {
        Link::Http(http) => http.answer(outbound, id).await.map(drop),
        Link::Stdio(stdio) => stdio.answer(outbound, id).await,
    }
}

/// The conversation a modern request travels on: one of its own era where the server has it.
pub async fn for_modern(arrival: &Arrival, upstream: &Arc<Upstream>) -> Result<Link, Failure> {
    match upstream.modern(&principal(&arrival.caller)).await {
        Err(Failure::OtherEra(_)) => older(arrival, upstream).await?.link().await,
        link => link,
    }
}

/// The conversation with a legacy server that is held for this modern client.
pub async fn older(arrival: &Arrival, upstream: &Arc<Upstream>) -> Result<Arc<Older>, Failure> {
    let declared = match &arrival.message {
        Message::Request(request) => request.params.as_ref(),
        Message::Notification(_) | Message::Response(_) => None,
    };
    let declared = declared.and_then(|params| params.value().get("_meta")?.get(META_CAPABILITIES));
    let declared = asks_of_clients(declared);
    let limits = Limits::again(declared.len());
    let cut = Document::parse(declared.as_str(), limits)
        .map_or("{}".to_owned(), |declared| upstream.may_ask.cut(&arrival.caller, declared.root()));
    upstream.older(&principal(&arrival.caller), cut).await
}

/// The conversation a message travels on.
pub async fn link(arrival: &Arrival, upstream: &Arc<Upstream>) -> Result<Link, Refusal> {
    if arrival.version.era() == Era::Modern {
        return for_modern(arrival, upstream).await.map_err(Refusal::Upstream);
    }
    let Some(session) = &arrival.session else { return Err(Refusal::SessionMissing) };
    match session.link(upstream) {
        Some(Link::Stdio(stdio)) if !stdio.is_alive() && stdio.era() == Era::Modern => {
            let link = upstream.modern(&principal(&session.caller())).await.map_err(Refusal::Upstream)?;
            session.keep_link(upstream, link.clone());
            Ok(link)
        }
        Some(Link::Stdio(stdio)) if !stdio.is_alive() && stdio.is_own() => Err(Refusal::SessionGone),
        Some(Link::Stdio(stdio)) if !stdio.is_alive() => {
            // A shared child that ended is started again; nobody's state was in it.
            let opening = upstream.legacy_shared(&principal(&session.caller())).await;
            let again = opening.map_err(|failure| match (failure, &session.scope) {
                (Failure::Forgotten, Scope::One(_)) => Refusal::SessionGone,
                (Failure::Forgotten, Scope::All) => {
                    // Its own conversation is opened anew; those with others go on.
                    session.forget_link(upstream);
                    Refusal::Upstream(Failure::Forgotten)
                }
                (failure, _) => Refusal::Upstream(failure),
            })?;
            again.heard_by(session);
            let link = Link::Stdio(again);
            session.keep_link(upstream, link.clone());
            Ok(link)
        }
        Some(Link::Http(http)) if http.is_over() => Err(match &session.scope {
            Scope::One(_) => Refusal::SessionGone,
            Scope::All => {
                session.forget_link(upstream);
                Refusal::Upstream(Failure::Forgotten)
            }
        }),
        Some(link) => Ok(link),
        // There was one, with the server as it was defined before.
        None if session.agreed().is_some() => Err(match &session.scope {
            Scope::One(_) => Refusal::SessionGone,
            Scope::All => Refusal::Upstream(Failure::Forgotten),
        }),
        None => Err(Refusal::Order("the conversation has not been opened with `initialize`")),
    }
}
