//! A JSON answer over HTTP: whole where it is small, scanned while it streams where it is large.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame};
use tokio::time::Sleep;
use toolwarden_conversations::Failure;
use toolwarden_conversations::questions::ADDRESSES_FIRST;
use toolwarden_conversations::tasks;
use toolwarden_conversations::upstreams::http_failure;
use toolwarden_conversations::whole::{self, DEEPEST};
use toolwarden_core::Status;
use toolwarden_core::json::{Limits, Part};
use toolwarden_mcp::message::read_one;
use toolwarden_mcp::scan::{ScanError, ScanFault, Scanner};
use toolwarden_mcp::upstream::http::Body;
use toolwarden_mcp::{Era, Id, Message, compose};

use super::{Check, composed, judged_facts, receipt_is_wanted, with_receipt};
use crate::answer::Answer;
use crate::audit::Trail;
use crate::ending::{Cuts, tell_servers};
use crate::exchange;
use crate::gateway::Gateway;
use crate::resolve::Asked;
use toolwarden_refusals::Refusal;

/// Up to this size an answer is gathered before it is sent on.
const SMALL: usize = 64 * 1024;
/// The kind of a result that asks the client for something.
const ASKS: &str = "input_required";

pub async fn inspected(
    gateway: &Gateway,
    asked: &Arc<Asked>,
    mut body: Body,
    trail: &mut Option<Trail>,
) -> Result<Answer, Refusal> {
    let wants_receipt = receipt_is_wanted(&asked.query);
    let task_owner = asked.task_maker();
    let may_be_legacy_task = task_owner.is_some() && asked.arrival.version.era() == Era::Legacy;
    let check = Check::of(gateway, asked);
    let gather = if wants_receipt || may_be_legacy_task || check.is_some() {
        usize::try_from(asked.bounds.response_bytes).unwrap_or(SMALL)
    } else {
        SMALL
    };
    // The message itself is one level more than its result.
    let mut scanner = Scanner::new(asked.bounds.depth.saturating_add(1).min(DEEPEST));
    let mut chunks: Vec<Bytes> = Vec::new();
    let mut size = 0;
    let broken = |error: ScanError| Refusal::Upstream(unscanned(error));
    loop {
        let Some(chunk) = next_chunk(&mut body, asked.bounds.silence).await.map_err(Refusal::Upstream)? else {
            break;
        };
        scanner.feed(&chunk).map_err(broken)?;
        size += chunk.len();
        // Nothing was sent yet, so this can still be said.
        if size as u64 > asked.bounds.response_bytes {
            return Err(Refusal::Upstream(Failure::TooLarge));
        }
        chunks.push(chunk);
        if size > gather {
            let id = asked.id.clone().unwrap_or_else(|| Id::number(0));
            return Ok(Answer::Body(Box::new(InspectedBody {
                body,
                waiting: chunks.into(),
                scanner: Some(scanner),
                size: size as u64,
                limit: asked.bounds.response_bytes,
                id,
                trail: trail.take(),
                asked: asked.clone(),
                cuts: Cuts::default(),
                patience: asked.bounds.silence,
                late: None,
            })));
        }
    }
    let facts = scanner.finish().map_err(broken)?;
    let status = judged_facts(asked, &facts).map_err(Refusal::Upstream)?;
    let mut whole = joined(chunks);
    if facts.error_code == Some(i64::from(ADDRESSES_FIRST)) {
        let asks =
            outcome_of(&whole).and_then(Result::err).ok_or_else(|| super::broke("its questions cannot be read"))?;
        let shown = exchange::outgoing_error(asked, asks.value()).await.map_err(Refusal::Upstream)?;
        whole = shown.map_or(whole, |shown| compose::raw_error(asked.id.as_ref(), &shown));
    }
    if facts.has_input_requests || facts.result_type.as_deref() == Some(ASKS) {
        let asks = result_of(&whole).ok_or_else(|| super::broke("its questions cannot be read"))?;
        let shown = exchange::outgoing(gateway, asked, &asks).await.map_err(Refusal::Upstream)?;
        if let (Some(shown), Some(id)) = (shown, &asked.id) {
            whole = compose::result(id, &shown);
        }
    }
    if let Some(check) = check {
        let outcome = outcome_of(&whole).ok_or_else(|| super::broke("its answer cannot be read"))?;
        let shown = check.show((gateway, asked), &outcome, trail.as_mut()).await.map_err(Refusal::Upstream)?;
        whole = shown.and_then(|shown| composed(asked.id.as_ref(), &shown)).unwrap_or(whole);
    }
    if let Some(owner) = task_owner.filter(|_| may_be_legacy_task || tasks::is_task(facts.result_type.as_deref()))
        && let Some(result) = result_of(&whole)
    {
        asked.upstream.tasks.bind(&owner, &result).map_err(Refusal::Upstream)?;
    }
    if let Some(mut trail) = trail.take() {
        trail.outcome(status, size as u64);
        if let Some(receipt) = trail.receipt().filter(|_| wants_receipt) {
            whole = with_receipt(whole, receipt);
        }
    }
    Ok(Answer::message(whole))
}

/// Most chunks are there already, and need no timer.
async fn next_chunk(body: &mut Body, patience: Duration) -> Result<Option<Bytes>, Failure> {
    let mut next = std::pin::pin!(body.chunk());
    let at_once = std::future::poll_fn(|context| Poll::Ready(next.as_mut().poll(context))).await;
    match at_once {
        Poll::Ready(chunk) => chunk.map_err(http_failure),
        Poll::Pending => match tokio::time::timeout(patience, next).await {
            Ok(chunk) => chunk.map_err(http_failure),
            Err(_) => Err(Failure::Timeout),
        },
    }
}

fn unscanned(error: ScanError) -> Failure {
    match error.fault {
        ScanFault::TooDeep => Failure::TooDeep,
        _ => Failure::Protocol(error.to_string()),
    }
}

pub fn joined(mut chunks: Vec<Bytes>) -> Bytes {
    if chunks.len() == 1 {
        return chunks.pop().unwrap_or_default();
    }
    let mut whole = BytesMut::with_capacity(chunks.iter().map(Bytes::len).sum());
    chunks.iter().for_each(|chunk| whole.extend_from_slice(chunk));
    whole.freeze()
}

fn result_of(whole: &[u8]) -> Option<Part> {
    outcome_of(whole)?.ok()
}

pub(super) fn outcome_of(whole: &[u8]) -> Option<Result<Part, Part>> {
    match read_one(whole, Limits { bytes: whole.len(), depth: DEEPEST }).ok()? {
        Message::Response(response) => Some(response.outcome),
        Message::Request(_) | Message::Notification(_) => None,
    }
}

/// A large answer on its way through. Ends the connection rather than finish a text that is wrong.
#[derive(Debug)]
pub struct InspectedBody {
    body: Body,
    /// Scanned and not yet sent: always at least the last chunk.
    waiting: std::collections::VecDeque<Bytes>,
    scanner: Option<Scanner>,
    size: u64,
    limit: u64,
    id: Id,
    trail: Option<Trail>,
    /// On its session's list as long as the answer is on its way.
    asked: Arc<Asked>,
    pub cuts: Cuts,
    /// How long the server may be silent.
    patience: Duration,
    /// Runs while the server is silent.
    late: Option<Pin<Box<Sleep>>>,
}

impl InspectedBody {
    /// Of the request it answers.
    pub fn id(&self) -> &Id {
        &self.id
    }

    /// The server's next bytes, or the news that it sends none for too long.
    fn poll_server(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Failure>>> {
        if let Some(failure) = self.cuts.poll(context) {
            return Poll::Ready(Some(Err(failure)));
        }
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            self.late = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(http_failure)));
        }
        let patience = self.patience;
        let late = self.late.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        late.as_mut().poll(context).map(|()| Some(Err(Failure::Timeout)))
    }

    fn end(&mut self) -> Result<(), Failure> {
        let Some(scanner) = self.scanner.take() else { return Ok(()) };
        let facts = scanner.finish().map_err(unscanned)?;
        let is_own = facts.id.as_deref() == Some(self.id.raw());
        let asks = facts.has_input_requests
            || facts.result_type.as_deref() == Some(ASKS)
            || facts.error_code == Some(i64::from(ADDRESSES_FIRST));
        if facts.imitates {
            return Err(whole::imitation());
        }
        if !is_own || asks || tasks::is_task(facts.result_type.as_deref()) {
            // Questions and tasks this large are neither; and they were not judged.
            return Err(Failure::Protocol("a large answer must answer its own request, and no more".to_owned()));
        }
        let failed = facts.is_error == Some(true) || facts.error_code.is_some();
        self.close(if failed { Status::ToolError } else { Status::Ok });
        Ok(())
    }

    fn close(&mut self, status: Status) {
        if let Some(mut trail) = self.trail.take() {
            trail.outcome(status, self.size);
        }
    }

    fn fail(&mut self, failure: &Failure) -> Failure {
        self.waiting.clear();
        self.scanner = None;
        if let Some(mut trail) = self.trail.take() {
            trail.failed(failure, self.size);
        }
        if failure.over().is_some() {
            tell_servers(self.asked.arrival.course.flight());
        }
        failure.clone()
    }
}

impl http_body::Body for InspectedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        loop {
            if this.waiting.len() > 1 || (this.scanner.is_none() && !this.waiting.is_empty()) {
                return Poll::Ready(this.waiting.pop_front().map(|chunk| Ok(Frame::data(chunk))));
            }
            if this.scanner.is_none() {
                return Poll::Ready(None);
            }
            let chunk = match ready!(this.poll_server(context)) {
                None => {
                    if let Err(failure) = this.end() {
                        return Poll::Ready(Some(Err(BodyError(this.fail(&failure)))));
                    }
                    continue;
                }
                Some(Err(failure)) => return Poll::Ready(Some(Err(BodyError(this.fail(&failure))))),
                Some(Ok(frame)) => frame.into_data().unwrap_or_default(),
            };
            this.size += chunk.len() as u64;
            if this.size > this.limit {
                return Poll::Ready(Some(Err(BodyError(this.fail(&Failure::TooLarge)))));
            }
            if let Some(Err(error)) = this.scanner.as_mut().map(|scanner| scanner.feed(&chunk)) {
                let failure = unscanned(error);
                return Poll::Ready(Some(Err(BodyError(this.fail(&failure)))));
            }
            this.waiting.push_back(chunk);
        }
    }
}

/// Why a large answer was cut off.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BodyError(pub Failure);
