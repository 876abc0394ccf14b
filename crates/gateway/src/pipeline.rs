//! The corridor: the one function every message walks through, whichever door it came in by.
//!
//! open audit → resolve → decide → take a place → keep labels → record intent → forward → inspect → answer. Reading, identifying
//! and finding the session happen at the door; nothing leaves but through `decide`.

use std::pin::pin;
use std::sync::Arc;

use toolwarden_conversations::Scope;
use toolwarden_conversations::flight::Flight;
use toolwarden_conversations::questions;
use toolwarden_conversations::sessions::AnswerTo;
use toolwarden_conversations::upstreams::Wanted;
use toolwarden_core::json::Part;
use toolwarden_core::{ApprovalState, Weakness, weak};
use toolwarden_mcp::{Era, Id, Message};

use crate::{aggregate, asking, bridge, opening, shared, tasks, waiting};
use toolwarden_refusals::Refusal;
use toolwarden_steps::answer::{self, Answer};
use toolwarden_steps::arrival::{Arrival, Course, Via, shape_of};
use toolwarden_steps::audit::Trail;
use toolwarden_steps::decide::{Decided, Judged, decide, may_reach};
use toolwarden_steps::ending::{Lookout, tell_servers, unless_given_up, unless_revoked};
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::inspect::{inspect, told_refusal};
use toolwarden_steps::resolve::{Asked, Resolved, What, cancelled_id, refuse_oversized, resolve};
use toolwarden_steps::review::{self, Reviewed};
use toolwarden_steps::{catalog, flow, forward, identities, parameters, places, results, visible};

/// Walks one message through. Every exit closes the trail.
pub async fn handle(gateway: &Arc<Gateway>, mut arrival: Arrival) -> Answer {
    let shape = shape_of(&arrival);
    let (id, method) = match &arrival.message {
        Message::Request(request) => (Some(&request.id), request.method.clone()),
        Message::Notification(notification) => (None, notification.method.clone()),
        Message::Response(_) => (None, "".into()),
    };
    let listed = id.zip(arrival.session.as_ref()).map(|(id, session)| session.depart(id));
    let is_repeated = matches!(listed, Some(None)) && !weak::is(Weakness::Routes);
    if let Some(Some(guard)) = listed {
        arrival.course = Course::listed(guard);
    }
    let listens = listening(&arrival);
    let opened = Trail::open(gateway, &arrival, method);
    arrival.course.trace = opened.trace();
    let mut trail = Some(opened);
    let can_be_given_up = arrival.session.is_some() && shape.wants_answer;
    let walked = if is_repeated {
        Err(Refusal::RepeatedId)
    } else if can_be_given_up {
        let course = arrival.course.clone();
        unless_given_up(course, pin!(walk(gateway, arrival, &mut trail))).await
    } else {
        walk(gateway, arrival, &mut trail).await
    };
    match (walked, listens) {
        (Ok(answer), Some((arrival, wanted, id))) => visible::with_changes(gateway, &arrival, wanted, id, answer),
        (Ok(answer), None) => answer,
        (Err(refusal), _) => {
            if let Some(trail) = trail {
                trail.refused(&refusal).await;
            }
            answer::refuse(&shape, &refusal)
        }
    }
}

/// What somebody wants to hear who listens from now on.
fn listening(arrival: &Arrival) -> Option<(Arrival, Wanted, Id)> {
    let Message::Request(request) = &arrival.message else { return None };
    if &*request.method != "subscriptions/listen" {
        return None;
    }
    let wanted = request.params.as_ref()?.value().get("notifications").map(Wanted::of)?;
    // The request is on its session's list by its own course.
    Some((Arrival { course: Course::default(), ..arrival.clone() }, wanted, request.id.clone()))
}

async fn walk(gateway: &Arc<Gateway>, arrival: Arrival, trail: &mut Option<Trail>) -> Result<Answer, Refusal> {
    if let Some(answer) = tasks::of_gateway(gateway, &arrival, trail).await? {
        return Ok(answer);
    }
    refuse_oversized(&arrival.message)?;
    let server = match &arrival.scope {
        Scope::One(server) => server.clone(),
        Scope::All => return Box::pin(aggregate::handle(gateway, arrival, trail)).await,
    };
    let asked = match resolve(gateway, arrival, &server)? {
        Resolved::Asked(asked) => asked,
        Resolved::Dropped(what) => {
            tracing::debug!("dropped: {what}");
            return Ok(Answer::Accepted);
        }
        Resolved::Foreign(what) => return Ok(drop_foreign(what, trail).await),
    };
    open_again(gateway, &asked).await?;
    let answer = pass(gateway, &asked, trail).await?;
    if matches!(asked.what, What::Task(None)) {
        return Ok(Box::pin(tasks::listed(gateway, &asked.arrival, answer)).await);
    }
    Ok(answer)
}

/// A client on a pipe says `initialize` once: where its server is defined otherwise since, it is greeted with what
/// was agreed then. Every other client opens a session anew.
async fn open_again(gateway: &Arc<Gateway>, asked: &Asked) -> Result<(), Refusal> {
    let Some(session) = asked.arrival.session.as_ref().filter(|_| asked.arrival.via == Via::Stdio) else {
        return Ok(());
    };
    let is_open = session.agreed().is_none() || session.link(&asked.upstream).is_some();
    if is_open || asked.id.is_none() || asked.arrival.version.era() == Era::Modern {
        return Ok(());
    }
    let server = &asked.upstream.name;
    // Whoever may not reach it, or not yet, is told so by the judge.
    if !may_reach(gateway, &asked.arrival.caller, server) || !gateway.pins.may_start(server) {
        return Ok(());
    }
    let opening = Box::pin(aggregate::conversation(gateway, session, &asked.upstream));
    opening.await.map(drop).map_err(Refusal::Upstream)
}

/// A message that speaks of what is not its caller's own reaches nobody, and is recorded (GATE-19).
pub(crate) async fn drop_foreign(what: &'static str, trail: &mut Option<Trail>) -> Answer {
    if let Some(trail) = trail.take() {
        trail.dropped(what).await;
    }
    Answer::Accepted
}

/// The steps for a message whose server is known. An error of the server is looked through like a result.
pub(crate) async fn pass(
    gateway: &Arc<Gateway>,
    asked: &Arc<Asked>,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let passed = steps(gateway, asked, trail).await;
    passed.map_err(|refusal| told_refusal(gateway, asked, refusal, trail.as_mut()))
}

async fn steps(gateway: &Arc<Gateway>, asked: &Arc<Asked>, trail: &mut Option<Trail>) -> Result<Answer, Refusal> {
    if let Some(trail) = trail.as_mut() {
        trail.asks(asked);
    }
    if let What::Cancel(flight) = &asked.what {
        return Ok(stop(&asked.arrival, asked.query.call.params.as_ref(), flight));
    }
    if let Some(question) = asking::asked_before(asked) {
        // With what a person said there, it is the same call without it.
        let again = asking::answered(gateway, asked, question).await?;
        return Box::pin(steps(gateway, &again, trail)).await;
    }
    catalog::know(gateway, asked).await?;
    let lookout = Lookout::of(gateway, asked);
    let number = trail.as_ref().map_or(0, Trail::number);
    if let Some(trail) = trail.as_mut() {
        trail.spoken_by(asked.arrival.speaker());
    }
    let decided = decide(gateway, asked).await?;
    if let Some(answer) = results::waiting(gateway, asked, trail).await? {
        return Ok(answer);
    }
    let judged = match decided {
        Decided::May(judged) => judged,
        Decided::Held(pending) => match review::review(gateway, asked, pending, number).await? {
            Reviewed::Paid(permit) => Judged::Call(permit),
            Reviewed::Waits { asking, question } => {
                return Ok(waiting::wait(gateway, asked, asking, question, trail.take()));
            }
            Reviewed::Follows { asking, held } => {
                return Box::pin(tasks::make(gateway, asked, &asking, held, trail)).await;
            }
            Reviewed::Asks { asking, question, held } => {
                return asking::ask(gateway, asked, &asking, &question, held, trail.take()).await;
            }
        },
    };
    parameters::check(gateway, asked)?;
    places::take(gateway, asked).await?;
    let met = flow::meets(gateway, asked).await?;
    if let Some(state) = &asked.state {
        gateway.states.consume(state, &asked.arrival.caller)?;
    }
    let taken = review::take(gateway, asked).await?;
    identities::count(gateway, asked).await?;
    if let Judged::Call(permit) = &judged {
        let trail = trail.as_mut().ok_or(Refusal::NoRecord)?;
        trail.goes_under(asked);
        trail.intent(permit.explanation(), permit.call().params.as_ref(), &met).await?;
    }
    review::leaves(asked, taken).await;
    if let (What::Task(Some(_)), Some(trail)) = (&asked.what, trail.as_mut()) {
        trail.intent_of_task().await?;
    }
    let outbound = judged.into_outbound();
    if matches!(asked.what, What::Opening) && asked.arrival.version.era() == Era::Legacy {
        return Box::pin(opening::open(gateway, asked, &outbound)).await;
    }
    if let What::Answer(question, outcome) = &asked.what
        && !matches!(question.to, AnswerTo::Gateway(_))
    {
        let (caller, outcome) = (&asked.arrival.caller, outcome.as_ref());
        if !questions::answered(&asked.upstream, caller, &question.method, outcome).await {
            return Err(Refusal::NoRecord);
        }
    }
    if let Some(answer) = bridge::delivered(asked) {
        return Ok(answer);
    }
    let link = forward::link_of(asked).await?;
    asked.after.get_or_init(|| gateway.pins.changes_heard(&asked.upstream.name));
    if link.as_ref().is_some_and(|link| link.era() != asked.arrival.version.era()) {
        // Apart, like every way that is not the usual one: room for it in each call would cost all of them.
        let mut going = Box::pin(bridge::carry(gateway, asked, outbound, trail));
        return unless_revoked(gateway, asked, lookout, going.as_mut()).await;
    }
    if let Some(answer) = shared::answered(asked) {
        return Ok(answer);
    }
    let going = pin!(async {
        let forwarded = forward::forward(gateway, asked, &outbound, link).await?;
        inspect(gateway, asked, forwarded, trail).await
    });
    unless_revoked(gateway, asked, lookout, going).await
}

/// A held call whose caller has waited long enough: judged as of now, and told where it lies.
pub(crate) async fn told_to_come_back(gateway: &Gateway, asked: &Asked, id: &str) -> Refusal {
    match decide(gateway, &asked.again()).await {
        Ok(Decided::Held(pending)) => review::held(gateway.settings.hold, &pending, Some(id)),
        // It would run by now: whoever makes the call again finds out.
        Ok(Decided::May(_)) => review::over(gateway, id, ApprovalState::Expired),
        Err(refusal) => refusal,
    }
}

/// Stops a request of the client's own, which is always permitted. Whoever waits for its answer tells the server.
pub(crate) fn stop(arrival: &Arrival, params: Option<&Part>, flight: &Flight) -> Answer {
    flight.stop();
    let id = cancelled_id(params);
    let is_parked = arrival.session.as_ref().zip(id).is_some_and(|(session, id)| session.give_up_parked(&id));
    // Where its stream broke off nobody waits; and a weak gateway stops what is not there.
    if is_parked || weak::is(Weakness::Owners) {
        tell_servers(flight);
    }
    Answer::Accepted
}
