//! Questions to the client, in the way of each era: the modern client is told to come back with answers,
//! the legacy client is asked over its session while the request waits.

use futures_util::future::join_all;
use rmcp::ErrorData;
use rmcp::model::{ClientCapabilities, InputRequests, InputRequiredResult, InputResponses, ProtocolVersion};
use rmcp::service::{Peer, RequestContext, RoleServer, ServiceError};
use serde_json::{Map, Value, json};

use crate::Fixture;
use crate::asked::{Asked, Reply, capability};
use crate::questions::CARELESS_TOOL;

/// Rounds of questions that one legacy request may take.
const ROUNDS: usize = 8;

/// How a request ended.
#[derive(Debug)]
pub enum Settled {
    Done(Value),
    Open(InputRequiredResult),
}

/// Runs a request until there is something to send back.
pub async fn settle(
    fixture: &Fixture,
    mut asked: Asked,
    context: &RequestContext<RoleServer>,
) -> Result<Settled, ErrorData> {
    for _ in 0..ROUNDS {
        let (questions, state) = match fixture.reply(&asked, context).await? {
            Reply::Done(result) => return Ok(Settled::Done(complete(result, context))),
            Reply::Ask { questions, state } => (questions, state),
        };
        check_capabilities(&asked, &questions, context)?;
        if is_modern(context) {
            let requests: InputRequests = from_json(Value::Object(questions))?;
            return Ok(Settled::Open(InputRequiredResult::new(Some(requests), state)));
        }
        asked.answers = ask_all(&context.peer, questions).await?;
        asked.state = state;
    }
    Err(ErrorData::invalid_request("the client did not answer usefully", None))
}

/// Whether this request is one of the stateless era.
pub fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Marks a result as final and signs it, as the modern era wants it; the legacy era knows neither.
pub fn complete(result: Value, context: &RequestContext<RoleServer>) -> Value {
    if is_modern(context) { signed(result) } else { result }
}

/// The same for a result that is known to be of the modern era.
pub fn signed(mut result: Value) -> Value {
    if let Some(fields) = result.as_object_mut() {
        let server = json!({"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")});
        fields.insert("resultType".to_owned(), json!("complete"));
        fields.insert("_meta".to_owned(), json!({"io.modelcontextprotocol/serverInfo": server}));
    }
    result
}

/// A protocol type from its JSON.
pub fn from_json<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn check_capabilities(
    asked: &Asked,
    questions: &Map<String, Value>,
    context: &RequestContext<RoleServer>,
) -> Result<(), ErrorData> {
    if is_modern(context) {
        return check_answerable(asked, questions);
    }
    let missing = missing(asked, questions);
    // The legacy era has no error for this, and servers that ask all the same.
    if missing.is_empty() || asked.name == CARELESS_TOOL {
        return Ok(());
    }
    let names: Vec<_> = missing.keys().map(String::as_str).collect();
    Err(ErrorData::invalid_request(format!("the client does not offer {}", names.join(", ")), None))
}

/// Refuses questions that a modern client cannot answer.
pub fn check_answerable(asked: &Asked, questions: &Map<String, Value>) -> Result<(), ErrorData> {
    let missing = missing(asked, questions);
    if missing.is_empty() {
        return Ok(());
    }
    let required: ClientCapabilities = from_json(Value::Object(missing))?;
    Err(ErrorData::missing_required_client_capability(required))
}

/// The capabilities that the client would need to answer.
fn missing(asked: &Asked, questions: &Map<String, Value>) -> Map<String, Value> {
    let methods = questions.values().filter_map(|question| question.get("method")?.as_str());
    let unanswered = methods.filter(|method| !asked.answers_method(method));
    unanswered.filter_map(|method| Some((capability(method)?.to_owned(), json!({})))).collect()
}

/// Sends all questions before it waits for the first answer, as a server with several of them would.
async fn ask_all(peer: &Peer<RoleServer>, questions: Map<String, Value>) -> Result<InputResponses, ErrorData> {
    let asking = questions.into_iter().map(|(name, question)| async move { (name, ask(peer, question).await) });
    join_all(asking).await.into_iter().map(|(name, answer)| Ok((name, answer?))).collect()
}

#[expect(deprecated, reason = "sampling and roots are deprecated, and still have to be served")]
async fn ask(peer: &Peer<RoleServer>, question: Value) -> Result<Value, ErrorData> {
    let method = question.get("method").and_then(Value::as_str).unwrap_or_default();
    let params = question.get("params").cloned().unwrap_or_default();
    let answer = match method {
        "elicitation/create" => to_json(peer.create_elicitation(from_json(params)?).await),
        "sampling/createMessage" => to_json(peer.create_message(from_json(params)?).await),
        _ => to_json(peer.list_roots().await),
    };
    answer.map_err(|error| ErrorData::internal_error(format!("the client did not answer {method}: {error}"), None))
}

fn to_json<T: serde::Serialize>(answer: Result<T, ServiceError>) -> Result<Value, String> {
    let answer = answer.map_err(|error| error.to_string())?;
    serde_json::to_value(answer).map_err(|error| error.to_string())
}
