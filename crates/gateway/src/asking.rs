//! A person is asked in the client whether a held call may be made (REVIEW-6): modern clients by `input_required` and a
//! sealed state. The key of the question is random, and the state is bound to the call, so that nothing but an answer to
//! this question is taken for one.

use std::sync::Arc;

use toolwarden_conversations::request_state::{Asks, Carried};
use toolwarden_core::json::Part;
use toolwarden_core::{ApprovalState, Call, token};
use toolwarden_mcp::Id;
use toolwarden_mcp::compose::{self, object_with, quoted};
use toolwarden_refusals::Refusal;
use toolwarden_review::Asking;
use toolwarden_steps::answer::Answer;
use toolwarden_steps::audit::Trail;
use toolwarden_steps::gateway::Gateway;
use toolwarden_steps::resolve::{Asked, query};
use toolwarden_steps::review::{Elicitation, answer_of, is_denial, may_answer, over, said_in_client};

const KEY_BYTES: usize = 10;

/// Tells the client what its person is asked; the call itself ends here, held.
pub(crate) async fn ask(
    gateway: &Gateway,
    asked: &Asked,
    asking: &Asking,
    question: &Elicitation,
    held: Refusal,
    trail: Option<Trail>,
) -> Result<Answer, Refusal> {
    let mut random = [0; KEY_BYTES];
    gateway.keyring.random(&mut random).map_err(|_| Refusal::NoRecord)?;
    let key = token::letters(&random);
    let carried = Carried::Held { approval: asking.id.clone(), key: key.clone(), by_page: question.by_page };
    let asks = Asks { carried, questions: vec![key.clone()] };
    let state = gateway.states.seal(&*gateway.keyring, asked.bound(), 1, asks).map_err(Refusal::Upstream)?;
    let result = format!(
        r#"{{"resultType":"input_required","inputRequests":{{{}:{{"method":"elicitation/create","params":{}}}}},"requestState":{},"_meta":{{"toolwarden/approval":{}}}}}"#,
        quoted(&key),
        question.params,
        quoted(&state),
        quoted(&asking.id)
    );
    if let Some(trail) = trail {
        trail.refused(&held).await;
    }
    let id = asked.id.clone().unwrap_or_else(|| Id::number(0));
    Ok(Answer::message(compose::result(&id, &result)))
}

/// What its person was asked.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    approval: &'a str,
    key: &'a str,
    by_page: bool,
}

/// The same, where the request comes back from that.
pub(crate) fn asked_before(asked: &Asked) -> Option<Question<'_>> {
    match asked.state.as_ref().map(|state| &state.carried) {
        Some(Carried::Held { approval, key, by_page }) => Some(Question { approval, key, by_page: *by_page }),
        _ => None,
    }
}

/// Keeps the answer, and gives the call as it was before the question: that is judged, and finds what was answered.
pub(crate) async fn answered(
    gateway: &Gateway,
    asked: &Asked,
    Question { approval, key, by_page }: Question<'_>,
) -> Result<Arc<Asked>, Refusal> {
    if let Some(state) = &asked.state {
        gateway.states.consume(state, &asked.arrival.caller)?;
    }
    let params = asked.query.call.params.as_ref();
    let said = params.and_then(|params| params.value().get("inputResponses")?.get(key));
    if let Some(answer) = said.and_then(answer_of).filter(|_| !by_page && may_answer(&asked.arrival.caller)) {
        said_in_client(gateway, asked, approval, answer).await;
        if is_denial(answer) {
            // Whatever others said meanwhile: this person said no, and this request is over.
            if let Some(desk) = gateway.desk() {
                desk.cancel(approval).await;
            }
            return Err(over(gateway, approval, ApprovalState::Rejected));
        }
    }
    let without = object_with(params.map(Part::value), &[("inputResponses", None), ("requestState", None)]);
    let without = Part::composed(without).map_err(|error| Refusal::Params(error.to_string()))?;
    let server = asked.query.call.server.clone();
    let call = match asked.query.call.requested_operation() {
        toolwarden_core::Operation::CallTool => Call::received(server, without),
        operation => Some(Call::asked(server, operation, Some(without))),
    };
    let call = call.ok_or_else(|| Refusal::Params("the call names no tool".to_owned()))?;
    let mut again = asked.again();
    again.query = query(gateway, &asked.arrival.caller, call);
    (again.state, again.was_asked) = (None, true);
    Ok(Arc::new(again))
}
