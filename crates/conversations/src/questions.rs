//! GATE-18: what a server asks of a client is judged, recorded, and shown under the server's name.
//!
//! The same for a request of the legacy era and for an entry of `inputRequests`. A question that
//! cannot be recorded is not asked.

use std::sync::Arc;

use toolwarden_core::json::{Document, Kind, Limits, Part, Value};
use toolwarden_core::{AuditRecord, Caller, Clock, Decision, RecordKind, weak};
use toolwarden_mcp::compose::object_with;
use toolwarden_mcp::questions::{self as wire, Asks};
use toolwarden_store::journal::Journal;

use crate::audience::Telling;
use crate::failure::Failure;
use crate::upstreams::Upstream;

/// Most questions of one result.
const MOST: usize = 16;

/// Who writes down what servers ask.
#[derive(Clone)]
pub struct Scribe {
    journal: Journal,
    clock: Arc<dyn Clock>,
    /// Names this gateway is called by: no server may send a person there.
    own_hosts: Arc<[String]>,
}

impl std::fmt::Debug for Scribe {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Scribe")
    }
}

impl Scribe {
    pub fn new(journal: Journal, clock: Arc<dyn Clock>, own_hosts: &[String]) -> Self {
        Self { journal, clock, own_hosts: own_hosts.into() }
    }

    async fn note(&self, server: &str, caller: &Caller, method: &str, decision: Decision, detail: &str) -> bool {
        let mut record = AuditRecord::new(RecordKind::Event, self.clock.now(), self.journal.next_call());
        record.describe(caller);
        record.method = Some(method);
        record.server = Some(server);
        record.decision = Some(decision.as_str());
        record.detail = Some(detail);
        let written = self.journal.record(&record).await;
        if let Err(error) = &written {
            tracing::error!(server, "a question is declined because its record cannot be written: {error}");
        }
        written.is_ok()
    }
}

/// Who would be asked.
#[derive(Debug, Clone, Copy)]
pub struct Whom<'a> {
    pub caller: &'a Arc<Caller>,
    /// What the client said it can be asked.
    pub declared: Option<Value<'a>>,
}

/// A question that may be put, as the client is shown it.
#[derive(Debug)]
pub struct Put {
    pub asks: Asks,
    pub params: Option<String>,
}

/// Why a question is not put.
#[derive(Debug)]
pub enum Declined {
    /// Whoever is asked: the policy or the protocol forbids it.
    Forbidden(String),
    /// The client never said that it can be asked this.
    NotOffered(Asks),
}

/// Judges one question, and records it with what became of it.
pub async fn judge(
    upstream: &Upstream,
    whom: Whom<'_>,
    method: &str,
    params: Option<Value<'_>>,
) -> Result<Put, Declined> {
    let judged = judged(upstream, whom, method, params);
    let (decision, detail) = match &judged {
        Ok(Put { asks: Asks::Url(host), .. }) => (Decision::Allow, format!("asks to open {host}")),
        Ok(_) => (Decision::Allow, "asks".to_owned()),
        Err(Declined::Forbidden(why)) => (Decision::Deny, why.clone()),
        Err(Declined::NotOffered(_)) => (Decision::Deny, "the client cannot be asked this".to_owned()),
    };
    let method = if method.len() <= 64 { method } else { "unknown" };
    let is_written = upstream.scribe.note(&upstream.name, whom.caller, method, decision, &detail).await;
    if is_written { judged } else { Err(Declined::Forbidden("it could not be recorded".to_owned())) }
}

fn judged(upstream: &Upstream, whom: Whom<'_>, method: &str, params: Option<Value<'_>>) -> Result<Put, Declined> {
    // The policy may have become narrower since the call began (GATE-19).
    if !upstream.is_open_to(whom.caller) {
        return Err(Declined::Forbidden("the caller may not reach the server any more".to_owned()));
    }
    if !upstream.may_ask.permits_question(whom.caller, method, params) {
        return Err(Declined::Forbidden("the server may not ask this: see `may_ask`".to_owned()));
    }
    let asks = wire::read(method, params, &upstream.scribe.own_hosts);
    let asks = asks.map_err(|why| Declined::Forbidden(why.to_string()))?;
    if !asks.is_offered(whom.declared) {
        return Err(Declined::NotOffered(asks));
    }
    let params = wire::labelled(&asks, params, &upstream.name);
    let params = params.map(|params| screened(upstream, params)).transpose()?;
    Ok(Put { asks, params })
}

/// The words of a question as they may be shown.
fn screened(upstream: &Upstream, params: String) -> Result<String, Declined> {
    let unreadable = |_| Declined::Forbidden("it cannot be read".to_owned());
    match upstream.telling(&Part::composed(params.clone()).map_err(unreadable)?) {
        Telling::AsItIs => Ok(params),
        Telling::Instead(params) => Ok(params.raw().to_owned()),
        Telling::Nothing => Err(Declined::Forbidden("what must not be shown was found in it".to_owned())),
    }
}

/// Records what a client answered, never the words.
pub async fn answered(upstream: &Upstream, caller: &Caller, method: &str, answer: Result<&Part, &Part>) -> bool {
    let action = answer.ok().and_then(|answer| answer.value().get("action")).and_then(Value::as_str);
    let detail = match (answer, action.as_deref()) {
        (Err(_), _) => "answered with an error",
        (Ok(_), Some("decline")) => "answered: decline",
        (Ok(_), Some("cancel")) => "answered: cancel",
        (Ok(_), Some("accept")) => "answered: accept",
        (Ok(_), _) => "answered",
    };
    upstream.scribe.note(&upstream.name, caller, method, Decision::Allow, detail).await
}

/// The `inputRequests` of a result, each judged, as the client is shown them; none where it has none.
pub async fn judge_all(upstream: &Upstream, whom: Whom<'_>, result: Value<'_>) -> Result<Option<String>, Failure> {
    let Some(requests) = result.get("inputRequests") else { return Ok(None) };
    if requests.kind() != Kind::Object || requests.entries().count() > weak::limit(MOST) {
        return Err(Failure::Protocol("its questions cannot be read".to_owned()));
    }
    let mut shown = Vec::new();
    for (key, question) in requests.entries() {
        let method = question.get("method").and_then(Value::as_str).unwrap_or_default();
        let put = judge(upstream, whom, &method, question.get("params")).await.map_err(failure_of)?;
        let question = match &put.params {
            Some(params) => object_with(Some(question), &[("params", Some(params))]),
            None => question.raw().to_owned(),
        };
        shown.push(format!("{key}:{question}"));
    }
    Ok(Some(format!("{{{}}}", shown.join(","))))
}

/// The code by which a server of 2025-11-25 wants addresses opened before it is asked again.
pub const ADDRESSES_FIRST: i32 = -32042;

/// Whether an error asks for addresses to be opened. Compared as a number: clients read -32042.0 alike.
pub fn wants_addresses(error: Value<'_>) -> bool {
    error.get("code").and_then(|code| code.raw().parse().ok()) == Some(f64::from(ADDRESSES_FIRST))
}

/// The addresses of an error that wants them opened first: each is a question like any other.
pub async fn judge_addresses(upstream: &Upstream, whom: Whom<'_>, addresses: Value<'_>) -> Result<String, Failure> {
    if addresses.kind() != Kind::Array || addresses.items().count() > weak::limit(MOST) {
        return Err(Failure::Protocol("its questions cannot be read".to_owned()));
    }
    let mut shown = Vec::new();
    for address in addresses.items() {
        let params = object_with(Some(address), &[("mode", Some("\"url\""))]);
        let limits = Limits::again(params.len());
        let params = Document::parse(params, limits).map_err(|error| Failure::Protocol(error.to_string()))?;
        let put = judge(upstream, whom, "elicitation/create", Some(params.root())).await.map_err(failure_of)?;
        shown.extend(put.params);
    }
    Ok(format!("[{}]", shown.join(",")))
}

#[expect(clippy::needless_pass_by_value, reason = "it is a mapping of errors")]
fn failure_of(declined: Declined) -> Failure {
    Failure::Protocol(match declined {
        Declined::Forbidden(_) => "it asked the client for something it may not ask".to_owned(),
        Declined::NotOffered(_) => "it asked the client for something the client does not offer".to_owned(),
    })
}
