//! All servers under one roof: the door `/mcp`, and `toolwarden stdio`.
//!
//! Names and URIs carry their server, so that two servers never collide. Calls are brought back to the
//! names their server knows and then walk the same corridor; lists are gathered and filtered by it.

mod cursors;
mod listen;
mod lists;
mod opening;
mod results;
mod routes;

use std::sync::Arc;

use bytes::Bytes;
use toolwarden_conversations::Scope;
use toolwarden_conversations::alias::Alias;
use toolwarden_conversations::upstreams::Upstream;
use toolwarden_core::json::Part;
use toolwarden_mcp::{Direction, Era, Form, Message, Method, Treatment, Version, compose};

pub(crate) use self::opening::conversation;
pub(crate) use self::routes::mirror;
use crate::pipeline::{drop_foreign, pass, stop};
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::Answer;
use toolwarden_steps::arrival::Arrival;
use toolwarden_steps::audit::Trail;
use toolwarden_steps::decide::may_reach;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::places;
use toolwarden_steps::resolve::{FOREIGN_ANSWER, FOREIGN_CANCEL, Resolved, cancelled_id, has_ended, resolve};

/// Walks a message of the common door.
pub(crate) async fn handle(
    gateway: &Arc<Gateway>,
    arrival: Arrival,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let (id, method, params) = match &arrival.message {
        Message::Request(request) => (Some(request.id.clone()), request.method.clone(), request.params.clone()),
        Message::Notification(news) => (None, news.method.clone(), news.params.clone()),
        Message::Response(response) => {
            let asked = response.id.as_ref().zip(arrival.session.as_ref());
            let server = asked.and_then(|(id, session)| session.asked_by(id));
            let Some(server) = server else { return Ok(drop_foreign(FOREIGN_ANSWER, trail).await) };
            return onward(gateway, arrival, server, trail).await;
        }
    };
    let form = if id.is_some() { Form::Request } else { Form::Notification };
    let row = Method::find(&method, Direction::ToServer, form, arrival.version);
    if id.is_some() && matches!(row.map(|row| row.treatment), Some(Treatment::Opening | Treatment::List)) {
        places::enter(gateway, &arrival, None).await?;
    }
    match (row.map(|row| row.treatment), id) {
        (None, Some(_)) => Err(Refusal::Method(method.to_string())),
        (Some(Treatment::Cancel), _) => {
            let cancelled = cancelled_id(params.as_ref());
            let flight = cancelled.zip(arrival.session.as_ref()).and_then(|(id, session)| session.flight(&id));
            match flight {
                Some(flight) => Ok(stop(&arrival, params.as_ref(), &flight)),
                None if has_ended(&arrival, params.as_ref()) => Ok(Answer::Accepted),
                None => Ok(drop_foreign(FOREIGN_CANCEL, trail).await),
            }
        }
        // What a client tells everybody concerns conversations that the gateway opened itself.
        (_, None) => Ok(Answer::Accepted),
        (Some(Treatment::Opening), Some(id)) => opening::open(gateway, &arrival, &id, params.as_ref()).await,
        (Some(Treatment::List), Some(id)) => lists::list(gateway, &arrival, &id, &method, params.as_ref()).await,
        (Some(Treatment::Call), Some(_)) => routes::call(gateway, arrival, &method, params, trail).await,
        (Some(Treatment::Watch), Some(id)) if &*method == "subscriptions/listen" => {
            listen::listen(gateway, arrival, &id, params.as_ref()).await
        }
        (Some(Treatment::Watch | Treatment::Plain), Some(_)) if method.starts_with("resources/") => {
            routes::call(gateway, arrival, &method, params, trail).await
        }
        (Some(Treatment::Plain), Some(id)) => {
            if &*method == "logging/setLevel" {
                crate::bridge::set_level(&arrival, params.as_ref())?;
                opening::tell_all(gateway, &arrival, &method, params).await;
            }
            Ok(Answer::message(compose::result(&id, empty(arrival.version))))
        }
        // Tasks belong to the server that made them, and behind the common door none makes any; those of the gateway itself
        // were looked for before.
        (Some(Treatment::Task), Some(_)) if arrival.version.era() == Era::Modern => Err(Refusal::ForeignTask),
        (Some(_), Some(_)) => Err(Refusal::Method(method.to_string())),
    }
}

fn empty(version: Version) -> &'static str {
    match version.era() {
        Era::Legacy => "{}",
        Era::Modern => r#"{"resultType":"complete"}"#,
    }
}

/// Hands a message on to the one server it concerns.
async fn onward(
    gateway: &Arc<Gateway>,
    arrival: Arrival,
    server: Arc<str>,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    match resolve(gateway, arrival, &server)? {
        Resolved::Asked(asked) => pass(gateway, &asked, trail).await,
        Resolved::Dropped(_) => Ok(Answer::Accepted),
        Resolved::Foreign(what) => Ok(drop_foreign(what, trail).await),
    }
}

/// What a server answered, as whoever came by this door is shown it.
pub(crate) fn shown_to(arrival: &Arrival, upstream: &Upstream, message: Bytes) -> Bytes {
    match arrival.scope {
        Scope::One(_) => message,
        Scope::All => results::rewritten(message, &upstream.alias),
    }
}

/// The servers this caller may reach, in the order they are configured.
fn reachable(gateway: &Gateway, arrival: &Arrival) -> Vec<Arc<Upstream>> {
    let is_open = |upstream: &&Arc<Upstream>| may_reach(gateway, &arrival.caller, &upstream.name);
    gateway.upstreams.now().all().iter().filter(is_open).cloned().collect()
}

/// The same with their aliases.
fn named(gateway: &Gateway, arrival: &Arrival) -> Vec<(Alias, Arc<Upstream>)> {
    reachable(gateway, arrival).into_iter().map(|upstream| (upstream.alias.clone(), upstream)).collect()
}

/// The same message with other params.
pub(crate) fn with_params(arrival: &Arrival, params: Part) -> Arrival {
    let mut changed = arrival.clone();
    match &mut changed.message {
        Message::Request(request) => request.params = Some(params),
        Message::Notification(news) => news.params = Some(params),
        Message::Response(_) => {}
    }
    changed
}
