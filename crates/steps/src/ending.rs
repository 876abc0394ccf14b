//! What ends a request before its server does: its client gives it up, or a narrower policy takes it away
//! (GATE-19). Nobody waits for the answer any more, the server is told, and the trail says how it ended.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use toolwarden_conversations::Failure;
use toolwarden_conversations::flight::{Flight, Place};
use toolwarden_conversations::upstreams::Link;
use toolwarden_core::Caller;
use toolwarden_core::json::Part;
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Edit, Era};
use toolwarden_policy::housekeeping;

use crate::answer::{self, Answer, Events};
use crate::arrival::Course;
use crate::arrival::shape_of;
use crate::decide::{may_reach, still_permitted};
use crate::gateway::Gateway;
use crate::over;
use crate::resolve::{Asked, What};
use crate::visible::Viewer;
use crate::watching::cut_filter;
use toolwarden_refusals::Refusal;

type Ending = Pin<Box<dyn Future<Output = Failure> + Send>>;

/// What may cut off a large answer that is on its way.
#[derive(Default)]
pub struct Cuts(Vec<Ending>);

impl std::fmt::Debug for Cuts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Cuts({})", self.0.len())
    }
}

impl Cuts {
    fn add(&mut self, ending: impl Future<Output = Failure> + Send + 'static) {
        self.0.push(Box::pin(ending));
    }

    pub fn poll(&mut self, context: &mut std::task::Context<'_>) -> Option<Failure> {
        self.0.iter_mut().find_map(|ending| match ending.as_mut().poll(context) {
            std::task::Poll::Ready(failure) => Some(failure),
            std::task::Poll::Pending => None,
        })
    }
}

/// The answer, unless the client gives the request up before it is there, or while it streams.
pub async fn unless_given_up(
    course: Course,
    going: Pin<&mut impl Future<Output = Result<Answer, Refusal>>>,
) -> Result<Answer, Refusal> {
    let flight = course.flight();
    let answer = tokio::select! {
        biased;
        () = flight.stopped() => {
            tell_servers(flight);
            return Ok(Answer::Events { events: Box::pin(stream::empty()), resumable: true });
        }
        answer = going => answer?,
    };
    Ok(match answer {
        Answer::Events { events, resumable } => {
            // The request is on its session's list as long as its answer streams.
            let stopped = Box::pin(async move {
                course.flight().stopped().await;
                tell_servers(course.flight());
            });
            Answer::Events { events: Box::pin(events.take_until(stopped)), resumable }
        }
        Answer::Body(mut body) => {
            body.cuts.add(async move {
                course.flight().stopped().await;
                tell_servers(course.flight());
                Failure::GivenUp
            });
            Answer::Body(body)
        }
        answer => answer,
    })
}

/// Looks out for changes of the policy on behalf of one request.
#[derive(Debug)]
pub struct Lookout {
    changes: watch::Receiver<()>,
    /// What it was permitted to listen to.
    watched: Option<String>,
    /// When its time is over, for calls.
    ends: Option<Instant>,
}

impl Lookout {
    /// To be made before the request is judged, so that no change is missed.
    pub fn of(gateway: &Gateway, asked: &Asked) -> Self {
        let ends = matches!(asked.what, What::Call).then(|| Instant::now() + asked.bounds.time);
        Self { changes: gateway.live.changes(), watched: cut_filter(gateway, asked), ends }
    }

    /// Waits until the request would not be permitted any more, or its time is over; gives the reason.
    pub async fn revoked(&mut self, gateway: &Gateway, asked: &Asked) -> Refusal {
        let Some(ends) = self.ends else { return self.forbidden(gateway, asked).await };
        tokio::select! {
            refusal = self.forbidden(gateway, asked) => refusal,
            () = sleep_until(ends) => Refusal::Upstream(over::named(gateway, asked, Failure::Timeout)),
        }
    }

    async fn forbidden(&mut self, gateway: &Gateway, asked: &Asked) -> Refusal {
        while self.changes.changed().await.is_ok() {
            if let Err(mut refusal) = still_permitted(gateway, asked) {
                if let (Refusal::Denied(denial), What::Call) = (&mut refusal, &asked.what) {
                    denial.message.push_str(" (it was on its way already: whether it had an effect is not known)");
                }
                return Refusal::TakenAway(Box::new(refusal));
            }
            if cut_filter(gateway, asked) != self.watched {
                return Refusal::ListenAgain;
            }
        }
        std::future::pending().await
    }
}

/// The answer, unless a narrower policy takes the request away before it is there, or while it streams.
pub async fn unless_revoked(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    mut lookout: Lookout,
    // Borrowed, so that it is dropped after the flight is marked: its trail looks there.
    going: Pin<&mut impl Future<Output = Result<Answer, Refusal>>>,
) -> Result<Answer, Refusal> {
    if asked.id.is_none() {
        return going.await;
    }
    let answer = tokio::select! {
        biased;
        refusal = lookout.revoked(gateway, asked) => {
            take_away(asked, &refusal);
            return Err(refusal);
        }
        answer = going => answer.inspect_err(|refusal| tell_of_limit(asked, refusal))?,
    };
    let (gateway, asked) = (gateway.clone(), asked.clone());
    Ok(match answer {
        Answer::Events { events, resumable } => {
            Answer::Events { events: until_revoked(events, lookout, gateway, asked), resumable }
        }
        Answer::Body(mut body) => {
            body.cuts.add(async move {
                let refusal = lookout.revoked(&gateway, &asked).await;
                take_away(&asked, &refusal);
                if let Refusal::Upstream(failure) = refusal { failure } else { Failure::TakenAway }
            });
            Answer::Body(body)
        }
        answer => answer,
    })
}

/// A stream of events; one that is taken away says why.
fn until_revoked(events: Events, mut lookout: Lookout, gateway: Arc<Gateway>, asked: Arc<Asked>) -> Events {
    let of = asked.clone();
    let revoked = Box::pin(async move { lookout.revoked(&gateway, &of).await });
    let open = Some((events, revoked, asked));
    Box::pin(stream::unfold(open, |open| async move {
        let (mut events, mut revoked, asked) = open?;
        tokio::select! {
            biased;
            refusal = &mut revoked => {
                take_away(&asked, &refusal);
                match answer::refuse(&shape_of(&asked.arrival), &refusal) {
                    Answer::Message(reply) => Some((Event::of(reply.body), None)),
                    _ => None,
                }
            }
            event = events.next() => event.map(|event| (event, Some((events, revoked, asked)))),
        }
    }))
}

/// Marks a request that is taken away, and tells whoever works on it.
pub fn take_away(asked: &Asked, why: &Refusal) {
    let flight = asked.arrival.course.flight();
    match why {
        Refusal::Upstream(_) => flight.mark_late(),
        _ => flight.mark_revoked(),
    }
    tell_servers(flight);
}

/// A call that went over a limit runs no longer than it must.
fn tell_of_limit(asked: &Asked, refusal: &Refusal) {
    if matches!(refusal, Refusal::Upstream(failure) if failure.over().is_some()) {
        tell_servers(asked.arrival.course.flight());
    }
}

/// A stream of news, as long as its hearer may reach the server.
pub fn while_reachable(gateway: &Arc<Gateway>, viewer: Viewer, server: Arc<str>, events: Events) -> Events {
    as_long_as(gateway, events, move |gateway| {
        viewer.caller().is_some_and(|caller| may_reach(gateway, &caller, &server))
    })
}

/// A stream of news of several servers, as long as its hearer's credential counts.
pub fn while_known(gateway: &Arc<Gateway>, caller: Arc<Caller>, events: Events) -> Events {
    as_long_as(gateway, events, move |gateway| !gateway.identities.is_lost(&caller, gateway.clock.now()))
}

/// A stream that ends when something is so no longer, which is asked whenever policy or identities change.
fn as_long_as(gateway: &Arc<Gateway>, events: Events, is_so: impl Fn(&Gateway) -> bool + Send + 'static) -> Events {
    let gateway = gateway.clone();
    let mut changes = gateway.live.changes();
    let ended = async move {
        while is_so(&gateway) {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    Box::pin(events.take_until(Box::pin(ended)))
}

/// Tells servers that nobody waits for their answer any more, in the words of their transport and without
/// waiting for them. What reason the client gave is not passed on: nobody has judged it.
pub fn tell_servers(flight: &Flight) {
    let places = flight.take_places();
    let (false, Ok(runtime)) = (places.is_empty(), tokio::runtime::Handle::try_current()) else { return };
    for Place { server, link, wire } in places {
        let params = Part::composed(format!("{{\"requestId\":{}}}", wire.raw())).ok();
        let Ok(words) = housekeeping(server, "notifications/cancelled", params) else { continue };
        match link {
            // The stream of the answer is closed, which says it.
            Link::Http(http) if http.era() == Era::Modern => {}
            Link::Http(http) => drop(runtime.spawn(async move { drop(http.notify(&words).await) })),
            Link::Stdio(stdio) if stdio.forget(&wire) => {
                drop(runtime.spawn(async move { drop(stdio.notify(&words, &[] as &[Edit<'_>]).await) }));
            }
            // Its own guard has told it.
            Link::Stdio(_) => {}
        }
    }
}
