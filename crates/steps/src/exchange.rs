//! Answers that ask the client for something first: a modern result with questions, a legacy error with
//! addresses to open. Questions are judged and labelled, a state is sealed.

use toolwarden_conversations::Failure;
use toolwarden_conversations::questions::{self, wants_addresses};
use toolwarden_conversations::request_state::{Asks, Carried, questions_of};
use toolwarden_conversations::whole::check_words;
use toolwarden_core::json::{Part, Value, unescape};
use toolwarden_core::{Weakness, weak};
use toolwarden_mcp::Era;
use toolwarden_mcp::compose::{object_with, quoted};

use crate::gateway::Gateway;
use crate::resolve::{Asked, What, text_member};
use crate::roots;
use toolwarden_refusals::Refusal;

const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// The result as the client is shown it; none where it asks for nothing and stays as it is.
pub async fn outgoing(gateway: &Gateway, asked: &Asked, result: &Part) -> Result<Option<String>, Failure> {
    let value = result.value();
    check_words(Ok(value))?;
    let kind = value.get("resultType").and_then(Value::as_str);
    let asks = kind.as_deref() == Some("input_required");
    if asks && !ASKING.contains(&&*asked.method) && !weak::is(Weakness::Answers) {
        return Err(Failure::Protocol("it asked for something where nothing may be asked".to_owned()));
    }
    if let Some(under) = asked.under.get().filter(|_| asks) {
        under.set_pause(true);
    }
    let shown = questions::judge_all(&asked.upstream, asked.whom(), value).await?;
    let state = value.get("requestState").filter(|_| matches!(asked.what, What::Call));
    if asks && shown.is_none() && state.is_none() {
        return Err(Failure::Protocol("it asked for nothing".to_owned()));
    }
    let carried = match state {
        Some(state) => {
            let own = state.as_str().ok_or_else(|| Failure::Protocol("its state is no text".to_owned()))?;
            Some(Carried::Server(own.into_owned()))
        }
        // Without one nobody could tell its answers from what was never asked.
        None => (asks && matches!(asked.what, What::Call)).then_some(Carried::Stateless),
    };
    let sealed = match carried {
        None => None,
        Some(carried) => {
            let round = asked.state.as_ref().map_or(0, |state| state.round) + 1;
            let asks = Asks { carried, questions: questions_of(value) };
            let sealed = gateway.states.seal(&*gateway.keyring, asked.bound(), round, asks)?;
            Some(quoted(&sealed))
        }
    };
    if let (What::Task(Some(_)), Some(task)) = (&asked.what, task_of(asked)) {
        asked.upstream.tasks.asks(&task, questions_of(value));
    }
    let mut changed = Vec::new();
    changed.extend(shown.as_deref().map(|shown| ("inputRequests", Some(shown))));
    changed.extend(sealed.as_deref().map(|sealed| ("requestState", Some(sealed))));
    Ok((!changed.is_empty()).then(|| object_with(Some(value), &changed)))
}

/// The task that a message speaks of.
fn task_of(asked: &Asked) -> Option<String> {
    text_member(asked.query.call.params.as_ref(), "taskId")
}

/// What becomes of the answers a modern request brings.
#[derive(Debug)]
pub enum Answers {
    /// It brings none.
    None,
    /// Each judged and recorded; raw, where any are left.
    Judged(Option<String>),
}

/// The answers of a request as its server gets them: each recorded, roots judged. What an answer is shows
/// in its form, whatever was asked: a server takes roots for roots.
pub async fn incoming(gateway: &Gateway, asked: &Asked) -> Result<Answers, Refusal> {
    let is_modern_call = matches!(asked.what, What::Call) && asked.arrival.version.era() == Era::Modern;
    let brings = is_modern_call || &*asked.method == "tasks/update";
    let given = asked.query.call.params.as_ref().and_then(|params| params.member("inputResponses"));
    let Some(given) = given.filter(|_| brings) else { return Ok(Answers::None) };
    if let (What::Task(_), Some(task)) = (&asked.what, task_of(asked))
        && !asked.upstream.tasks.take_answers(&task, given.value())
    {
        return Err(Refusal::Params("`inputResponses` must be answers to open questions of the task alone".to_owned()));
    }
    let caller = &asked.arrival.caller;
    let mut kept = Vec::new();
    for (key, answer) in given.value().entries() {
        let method = match answer {
            answer if answer.get("roots").is_some() => "roots/list",
            answer if answer.get("action").is_some() => "elicitation/create",
            _ => "sampling/createMessage",
        };
        let is_kept = method != "roots/list" || asked.upstream.may_ask.permits_question(caller, method, None);
        let answer = given.member(&unescape(key)).filter(|_| is_kept || weak::is(Weakness::Questions));
        let Some(answer) = answer.and_then(|answer| roots::judged(gateway, caller, method, &answer)) else { continue };
        if !questions::answered(&asked.upstream, caller, method, Ok(&answer)).await {
            return Err(Refusal::NoRecord);
        }
        kept.push(format!("{key}:{}", answer.raw()));
    }
    Ok(Answers::Judged((!kept.is_empty()).then(|| format!("{{{}}}", kept.join(",")))))
}

/// The error as the client is shown it; none where it asks for nothing and stays as it is.
pub async fn outgoing_error(asked: &Asked, error: Value<'_>) -> Result<Option<String>, Failure> {
    check_words(Err(error))?;
    if !wants_addresses(error) {
        return Ok(None);
    }
    let data = error.get("data");
    let wanted = data.and_then(|data| data.get("elicitations"));
    let wanted = wanted.ok_or_else(|| Failure::Protocol("it asked for nothing".to_owned()))?;
    let shown = questions::judge_addresses(&asked.upstream, asked.whom(), wanted).await?;
    let data = object_with(data, &[("elicitations", Some(&shown))]);
    Ok(Some(object_with(Some(error), &[("data", Some(&data))])))
}
