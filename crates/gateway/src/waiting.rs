//! A held call whose caller waits for the answer (REVIEW-8): told that it still waits, and made as soon as somebody
//! permits it, by the same way a caller takes who comes back with the same call.

use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::ready;
use futures_util::stream::{self, StreamExt};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use toolwarden_conversations::sessions::{AnswerTo, ClientSession, Question};
use toolwarden_core::ApprovalState;
use toolwarden_core::json::Part;
use toolwarden_mcp::Id;
use toolwarden_mcp::compose::{self, quoted};
use toolwarden_mcp::sse::Event;
use toolwarden_refusals::Refusal;
use toolwarden_review::{Asking, Desk};
use toolwarden_steps::answer::{self, Answer};
use toolwarden_steps::arrival::shape_of;
use toolwarden_steps::audit::Trail;
use toolwarden_steps::decide::still_permitted;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::resolve::Asked;
use toolwarden_steps::review::{Elicitation, answer_of, may_answer, over, said_in_client};
use toolwarden_steps::settings::Hold;

use crate::pipeline;

/// How often whoever asked for progress is told that the call still waits.
const PROGRESS: Duration = Duration::from_secs(5);
const WAITING: usize = 16;

/// The answer to a call that waits: a stream that says so, and ends with the call's own answer.
pub(crate) fn wait(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    asking: Asking,
    question: Option<Elicitation>,
    trail: Option<Trail>,
) -> Answer {
    let (told, heard) = mpsc::channel(WAITING);
    // From now on, though nobody listens yet: whoever gives up at once gives up all the same.
    let given_up = gateway.desk().map(|desk| GivenUp {
        gateway: gateway.clone(),
        desk: desk.clone(),
        id: Some(asking.id.clone()),
    });
    let waiter = Waiter { gateway: gateway.clone(), asked: asked.clone(), asking, question, trail, told, given_up };
    let waits = stream::once(waiter.run()).filter_map(|()| ready(None));
    let hears = stream::unfold(heard, |mut heard| async move { heard.recv().await.map(|event| (event, heard)) });
    Answer::Events { events: Box::pin(stream::select(waits, hears)), resumable: false }
}

struct Waiter {
    gateway: Arc<Gateway>,
    asked: Arc<Asked>,
    asking: Asking,
    /// What its person is asked in the client.
    question: Option<Elicitation>,
    trail: Option<Trail>,
    told: mpsc::Sender<Event>,
    given_up: Option<GivenUp>,
}

impl Waiter {
    async fn run(mut self) {
        let answered = match self.gateway.desk().cloned() {
            Some(desk) => self.answered(&desk).await,
            None => Err(Refusal::NoRecord),
        };
        let answer = match answered {
            Ok(()) => {
                // As of now: by the policy in force, by whoever the caller is by now.
                let again = Arc::new(self.asked.again());
                Box::pin(pipeline::pass(&self.gateway, &again, &mut self.trail)).await
            }
            Err(refusal) => Err(refusal),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(refusal) => {
                if let Some(trail) = self.trail.take() {
                    trail.refused(&refusal).await;
                }
                answer::refuse(&shape_of(&self.asked.arrival), &refusal)
            }
        };
        self.say(answer).await;
    }

    /// Ends when the call may be made again: somebody answered.
    async fn answered(&mut self, desk: &Arc<Desk>) -> Result<(), Refusal> {
        let mut changes = self.gateway.live.changes();
        // The policy may have changed since the call was held and before this subscription.
        changes.mark_changed();
        let until = Instant::now() + self.gateway.settings.hold_time;
        let mut ticks = interval(PROGRESS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut waited = 0_u64;
        let id = self.asking.id.clone();
        let mut answered = pin!(desk.answered(&id));
        let mut asked_here = pin!(self.ask().await);
        let mut is_asked = true;
        let ended = loop {
            tokio::select! {
                biased;
                // Nothing of it left: a policy that forbids it by now says so in its own words.
                _ = changes.changed() => {
                    if let Err(refusal) = still_permitted(&self.gateway, &self.asked) {
                        break Err(refusal);
                    }
                }
                found = &mut answered => break match found {
                    Ok(Some(approval)) if approval.state == ApprovalState::Held => Err(self.over(ApprovalState::Expired)),
                    Ok(Some(approval)) => match approval.state {
                        state @ (ApprovalState::Expired | ApprovalState::Cancelled) => Err(self.over(state)),
                        _ => Ok(()),
                    },
                    Ok(None) => Err(self.over(ApprovalState::Expired)),
                    Err(error) => {
                        tracing::error!("a held call cannot be waited for: {error}");
                        Err(Refusal::Unverified)
                    }
                },
                said = &mut asked_here, if is_asked => {
                    is_asked = false;
                    match said {
                        // The desk tells of it like of any other answer.
                        Some(answer) => said_in_client(&self.gateway, &self.asked, &id, answer).await,
                        // Nobody said anything, or they went to the page: whoever does not wait anyway is told where the
                        // call lies. Clients that wait for a page to be read give up, and the call with it.
                        None if self.question.is_some() && self.gateway.settings.hold != Hold::Wait => {
                            break Err(self.come_back().await);
                        }
                        None => {}
                    }
                }
                _ = ticks.tick() => {
                    self.progress(waited).await;
                    waited += PROGRESS.as_secs();
                }
                // The judge holds it again, and the caller is told under which id it lies.
                () = sleep_until(until) => break Err(self.come_back().await),
            }
        };
        if let Some(given_up) = &mut self.given_up {
            given_up.id = None;
        }
        ended
    }

    /// Puts the question to the client, where there is one; ends with what its person said.
    async fn ask(&self) -> impl Future<Output = Option<&'static str>> + use<> {
        let session = self.asked.arrival.session.clone();
        let is_form = self.question.as_ref().is_some_and(|question| !question.by_page);
        let counts = is_form && may_answer(&self.asked.arrival.caller);
        let asked = match (&self.question, session) {
            (Some(asks), Some(session)) => {
                let (waiter, answer) = oneshot::channel();
                let number = session.next_number();
                let id = Id::from_raw(&format!("\"tw-{number}\"")).unwrap_or_else(|| Id::number(number));
                let to = AnswerTo::Gateway(Mutex::new(Some(waiter)));
                let method: Arc<str> = "elicitation/create".into();
                let question = Question { server: self.asked.upstream.name.clone(), method: method.clone(), to };
                session.ask(id.clone(), question, None);
                self.tell(compose::to_client(Some(&id), &method, Some(&asks.params))).await;
                Some((Unanswered { session, id }, answer))
            }
            _ => None,
        };
        async move {
            let (_unanswered, answer) = asked?;
            let result = answer.await.ok()?.ok()?;
            answer_of(result.value()).filter(|_| counts)
        }
    }

    fn over(&self, state: ApprovalState) -> Refusal {
        over(&self.gateway, &self.asking.id, state)
    }

    async fn come_back(&self) -> Refusal {
        pipeline::told_to_come_back(&self.gateway, &self.asked, &self.asking.id).await
    }

    /// Says that it still waits, to a caller who wants to hear of progress.
    async fn progress(&self, waited: u64) {
        let params = self.asked.query.call.params.as_ref();
        let token = params.and_then(|params| params.value().get("_meta")?.get("progressToken"));
        let Some(token) = token else { return };
        let message = format!("held for a person: ask the user to approve call {} in Toolwarden", self.asking.id);
        let params =
            format!(r#"{{"progressToken":{},"progress":{waited},"message":{}}}"#, token.raw(), quoted(&message));
        let Ok(params) = Part::composed(params) else { return };
        self.tell(compose::to_client(None, "notifications/progress", Some(params.raw()))).await;
    }

    async fn say(&self, answer: Answer) {
        match answer {
            Answer::Accepted => {}
            Answer::Message(reply) => self.tell(reply.body).await,
            Answer::Body(body) => {
                if let Some(whole) = answer::gathered(body).await {
                    self.tell(whole).await;
                }
            }
            Answer::Events { mut events, .. } => {
                while let Some(event) = events.next().await {
                    drop(self.told.send(event).await);
                }
            }
        }
    }

    /// Whoever does not listen any more is told nothing.
    async fn tell(&self, message: Bytes) {
        drop(self.told.send(Event::of(message)).await);
    }
}

/// A question that is forgotten when nobody waits for its answer any more.
struct Unanswered {
    session: Arc<ClientSession>,
    id: Id,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        drop(self.session.answered(&self.id));
    }
}

/// Takes a held call away whose caller gave it up while it waited. A gateway that stops gives nothing up.
struct GivenUp {
    gateway: Arc<Gateway>,
    desk: Arc<Desk>,
    id: Option<String>,
}

impl Drop for GivenUp {
    fn drop(&mut self) {
        let Some(id) = self.id.take().filter(|id| !self.gateway.closing.has_begun() && !self.desk.is_waited_for(id))
        else {
            return;
        };
        let desk = self.desk.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { desk.cancel(&id).await });
        }
    }
}
