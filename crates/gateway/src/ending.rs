//! What ends a request before its server does: its client gives it up, or a narrower policy takes it away
//! (GATE-19). Nobody waits for the answer any more, the server is told, and the trail says how it ended.

use std::pin::{Pin, pin};
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tokio::sync::{Notify, watch};
use toolwarden_conversations::upstreams::Link;
use toolwarden_core::Caller;
use toolwarden_core::json::Part;
use toolwarden_mcp::sse::Event;
use toolwarden_mcp::{Edit, Era};
use toolwarden_policy::housekeeping;

use crate::answer::{self, Answer, Events};
use crate::decide::{may_reach, still_permitted};
use crate::gateway::Gateway;
use crate::pipeline::shape_of;
use crate::refusal::Refusal;
use crate::resolve::Asked;
use crate::watching::cut_filter;

/// Told once, when the client gives a request up.
pub(crate) type Stop = Arc<Notify>;

/// Why a request ended early.
#[derive(Debug)]
pub(crate) enum Ended {
    GivenUp,
    Revoked(Refusal),
}

/// What can end one request.
#[derive(Debug, Clone)]
pub(crate) struct Endings {
    /// Only a request of a session can be given up by another message; any other ends with its connection.
    pub(crate) stop: Option<Stop>,
    /// Since before it was judged, so that no change is missed.
    changes: watch::Receiver<()>,
}

impl Endings {
    /// To be made before the request is judged.
    pub(crate) fn of(gateway: &Gateway, asked: &Asked) -> Self {
        let has_stop = asked.id.is_some() && asked.arrival.session.is_some();
        Self { stop: has_stop.then(Stop::default), changes: gateway.live.changes() }
    }

    async fn come(mut self, gateway: Arc<Gateway>, asked: Arc<Asked>) -> Ended {
        let watched = cut_filter(&gateway, &asked);
        let stop = self.stop.unwrap_or_default();
        let revoked = async {
            while self.changes.changed().await.is_ok() {
                if let Err(refusal) = still_permitted(&gateway, &asked) {
                    return refusal;
                }
                if cut_filter(&gateway, &asked) != watched {
                    return Refusal::Order("what may be listened to has changed: listen again");
                }
            }
            std::future::pending().await
        };
        tokio::select! {
            () = stop.notified() => Ended::GivenUp,
            refusal = revoked => Ended::Revoked(refusal),
        }
    }
}

/// A large answer that is on its way ends with this.
pub(crate) struct Cut(Pin<Box<dyn Future<Output = Ended> + Send>>);

impl std::fmt::Debug for Cut {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Cut")
    }
}

impl Cut {
    pub(crate) fn is_due(&mut self, context: &mut std::task::Context<'_>) -> bool {
        self.0.as_mut().poll(context).is_ready()
    }
}

/// The answer, unless the request ends before it is there, or while it streams.
pub(crate) async fn unless_ended(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    endings: Endings,
    going: impl Future<Output = Result<Answer, Refusal>>,
) -> Result<Answer, Refusal> {
    if asked.id.is_none() {
        return going.await;
    }
    let ended = endings.clone().come(gateway.clone(), asked.clone());
    // Kept until the server is told: it knows under which id.
    let mut going = pin!(going);
    let answer = tokio::select! {
        biased;
        ended = ended => {
            return match ended {
                Ended::GivenUp => Ok(Answer::Events { events: Box::pin(stream::empty()), resumable: true }),
                Ended::Revoked(refusal) => {
                    tell_server(asked);
                    Err(refusal)
                }
            };
        }
        answer = &mut going => answer?,
    };
    let ended = || endings.come(gateway.clone(), asked.clone());
    Ok(match answer {
        Answer::Events { events, resumable } => {
            Answer::Events { events: until(events, ended(), asked.clone()), resumable }
        }
        Answer::Body(mut body) => {
            body.cut = Some(Cut(Box::pin(ended())));
            Answer::Body(body)
        }
        answer => answer,
    })
}

/// A stream of events; one that was taken away says why.
fn until(events: Events, ended: impl Future<Output = Ended> + Send + 'static, asked: Arc<Asked>) -> Events {
    let open = Some((events, Box::pin(ended), asked));
    Box::pin(stream::unfold(open, |open| async move {
        let (mut events, mut ended, asked) = open?;
        tokio::select! {
            biased;
            ended = &mut ended => match ended {
                Ended::GivenUp => None,
                Ended::Revoked(refusal) => {
                    tell_server(&asked);
                    match answer::refuse(&shape_of(&asked.arrival), &refusal) {
                        Answer::Message(reply) => Some((Event::of(reply.body), None)),
                        _ => None,
                    }
                }
            },
            event = events.next() => event.map(|event| (event, Some((events, ended, asked)))),
        }
    }))
}

/// A stream of news, as long as its hearer may reach the server.
pub(crate) fn while_reachable(gateway: &Arc<Gateway>, caller: Arc<Caller>, server: Arc<str>, events: Events) -> Events {
    let gateway = gateway.clone();
    let mut changes = gateway.live.changes();
    let out_of_reach = async move {
        while may_reach(&gateway, &caller, &server) {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    };
    Box::pin(events.take_until(Box::pin(out_of_reach)))
}

/// Tells a server that nobody waits for its answer any more. A modern one sees that from its stream, and
/// whoever carries a call across eras tells it.
fn tell_server(asked: &Asked) {
    let flight = asked.arrival.session.as_ref().zip(asked.id.as_ref()).and_then(|(session, id)| session.flight(id));
    let Some(flight) = flight else { return };
    let Some((link, wire)) = flight.on else { return flight.stop.notify_one() };
    let params = Part::composed(format!("{{\"requestId\":{}}}", wire.raw())).ok();
    let Ok(words) = housekeeping(flight.server, "notifications/cancelled", params) else { return };
    tokio::spawn(async move {
        match &link {
            Link::Http(http) if http.era() == Era::Modern => {}
            Link::Http(http) => drop(http.notify(&words).await),
            Link::Stdio(stdio) => {
                stdio.forget(&wire);
                drop(stdio.notify(&words, &[] as &[Edit<'_>]).await);
            }
        }
    });
}
