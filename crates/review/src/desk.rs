//! The desk where held calls lie until somebody answers.
//!
//! Takes a held call with the marks that tell it from every other; gives what is to become of it. The same call lies
//! here once; an answer counts for it alone, and once.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::Notify;
use toolwarden_core::digest::hex;
use toolwarden_core::{
    Agreement, ApprovalState, AuditRecord, Clock, HeldAnswer, HeldCall, Keyring, Purpose, Reason, RecordKind, Weakness,
    token, weak,
};
use toolwarden_store::state::{Approval, Bells, Feed, Holding, Moved, NewApproval, StateError};
use toolwarden_store::{Journal, JournalError, State};

use crate::taken::{NotTaken, Taken};

/// Arguments that nobody reads: what cannot be shown cannot be approved.
const LONGEST: usize = 256 * 1024;
/// Where nothing rings, the store is looked at all the same.
const LOOK: Duration = Duration::from_secs(20);
/// How long the store may take to be told how a call ended.
const TELLING: Duration = Duration::from_secs(5);
const ID_BYTES: usize = 10;

/// How long things count.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// For an answer; and a rejection counts as long.
    pub held: Duration,
    /// Between an approval and its call.
    pub approved: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { held: Duration::from_secs(24 * 60 * 60), approved: Duration::from_secs(60 * 60) }
    }
}

/// What a desk is made of.
#[derive(Debug)]
pub struct Parts {
    pub state: State,
    pub feed: Arc<Feed>,
    pub journal: Journal,
    pub keyring: Arc<dyn Keyring>,
    pub clock: Arc<dyn Clock>,
    /// The name of the journal, as the index knows it.
    pub node: String,
    pub times: Times,
}

/// The desk of one gateway.
#[derive(Debug)]
pub struct Desk {
    pub(crate) parts: Parts,
    /// What this gateway has on its way.
    outstanding: Mutex<HashSet<String>>,
    /// What ended here, and is being told to the store.
    ending: Mutex<HashSet<String>>,
    /// What the store could not be told yet.
    untold: Mutex<Vec<(String, ApprovalState)>>,
    /// Something of that was told.
    pub(crate) told: Notify,
    /// It was said that nobody hears of held calls.
    is_unheard: AtomicBool,
    /// How persons and a classifier agree, as it was last looked up.
    pub(crate) agreement: Mutex<Agreement>,
}

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    #[error("it cannot be recorded: {0}")]
    Record(#[from] JournalError),
    #[error(transparent)]
    Store(#[from] StateError),
}

/// What tells one call from every other (REVIEW-4).
#[derive(Debug, Clone, Copy)]
pub struct Marks<'a> {
    /// Who calls, whatever mode they are in.
    pub caller: &'a str,
    /// Of the tool as it is defined now.
    pub definition: &'a str,
    /// Of the exact call (REVIEW-5).
    pub digest: &'a [u8],
}

/// A call that waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asking {
    pub id: String,
    pub expires_at: Timestamp,
}

/// What is to become of a held call.
#[derive(Debug)]
pub enum Raised {
    /// A person permitted exactly this call.
    Approved(Box<Approval>),
    Waits(Asking),
    Turned(Turned),
}

/// Why nobody is asked, or asked again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turned {
    pub reason: Reason,
    pub approval: Option<String>,
    /// What the person said, or what else there is to know.
    pub words: Option<String>,
    /// When that ends.
    pub until: Option<Timestamp>,
}

impl Turned {
    fn because(reason: Reason) -> Self {
        Self { reason, approval: None, words: None, until: None }
    }
}

impl Desk {
    #[must_use]
    pub fn new(parts: Parts) -> Arc<Self> {
        Arc::new(Self {
            parts,
            outstanding: Mutex::default(),
            ending: Mutex::default(),
            untold: Mutex::default(),
            told: Notify::new(),
            is_unheard: AtomicBool::new(false),
            agreement: Mutex::default(),
        })
    }

    /// Lays a held call on the desk, unless the same one is there.
    ///
    /// # Errors
    /// The store cannot be written, so nobody can be asked.
    pub async fn raise(self: &Arc<Self>, marks: Marks<'_>, call: &HeldCall) -> Result<Raised, StateError> {
        if call.params.len() > weak::limit(LONGEST) {
            return Ok(Raised::Turned(Turned::because(Reason::TooLargeToShow)));
        }
        let now = self.parts.clock.now();
        let mut random = [0; ID_BYTES];
        self.parts.keyring.random(&mut random).map_err(|_| StateError::Key)?;
        let id = token::letters(&random);
        let expires_at = later(now, self.parts.times.held);
        let (call_mark, caller_mark) = self.both_marks(marks, call);
        let new = NewApproval { id: &id, call_mark: &call_mark, caller_mark: &caller_mark, call, now, expires_at };
        let mut laying = Laying { desk: self.clone(), id: Some(id.clone()) };
        let held = self.parts.state.hold_call(&new).await;
        let mut holding = held.inspect_err(|_| laying.id = None)?;
        if let Holding::There(there) = &holding
            && self.has_moved_on(there).await
        {
            // It ended a moment ago: the same call, made again, is another one.
            holding = self.parts.state.hold_call(&new).await?;
        }
        laying.id = None;
        Ok(match holding {
            Holding::Made => {
                self.tell("approval_held", &id, Some(call), &format!("held for a person: {}", call.reason));
                self.say_if_unheard(now);
                Raised::Waits(Asking { id, expires_at })
            }
            Holding::There(approval) => {
                self.keep_opinion(&approval, call).await;
                standing(approval)
            }
            Holding::Rejected { until } => {
                Raised::Turned(Turned { until: Some(until), ..Turned::because(Reason::RejectedOften) })
            }
            Holding::TooMany => Raised::Turned(Turned::because(Reason::TooManyHeld)),
        })
    }

    /// Whether anybody would hear of a held call now.
    #[must_use]
    pub fn is_attended(&self) -> bool {
        self.parts.feed.is_attended(self.parts.clock.now())
    }

    /// Says once that a call waits and nobody hears of it; again only after somebody did.
    fn say_if_unheard(&self, now: Timestamp) {
        let is_unheard = !self.parts.feed.is_attended(now);
        if is_unheard && !self.is_unheard.swap(is_unheard, Ordering::Relaxed) {
            tracing::warn!(
                "a call is held for a person, and nobody hears of it: no webhook is told, nobody watches, no client may be \
                 asked; `toolwarden approvals watch` shows what waits"
            );
        } else if !is_unheard {
            self.is_unheard.store(false, Ordering::Relaxed);
        }
    }

    /// Whether what was read of a call may be older than how it ended here: then it is worth reading again.
    pub(crate) async fn has_moved_on(&self, there: &Approval) -> bool {
        let is_on_its_way = matches!(there.state, ApprovalState::Consumed | ApprovalState::Dispatched);
        let is_own = there.node.as_ref() == Some(&self.parts.node);
        // One that is not on its way any more ended between the reading and now.
        self.was_told_of(&there.id).await || (is_own && is_on_its_way && !self.outstanding().contains(&there.id))
    }

    /// Waits until the store knows how a call ended here; false where none is just ending.
    pub(crate) async fn was_told_of(&self, id: &str) -> bool {
        if !self.ending().contains(id) {
            return false;
        }
        let telling = async {
            loop {
                let mut told = pin!(self.told.notified());
                // Listening before looking: what is told in between is heard.
                told.as_mut().enable();
                if !self.ending().contains(id) {
                    return;
                }
                told.await;
            }
        };
        tokio::time::timeout(TELLING, telling).await.is_ok()
    }

    /// Ends when a held call is answered, or ends otherwise.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn answered(&self, id: &str) -> Result<Option<Approval>, StateError> {
        // Before looking: what happens in between rings.
        let mut bell = self.bells().hang(id);
        loop {
            let found = self.parts.state.approval(id).await?;
            let Some(approval) = found else { return Ok(None) };
            let is_late = approval.expires_at <= self.parts.clock.now();
            if approval.state != ApprovalState::Held || is_late {
                return Ok(Some(approval));
            }
            // Whichever comes first: a bell, or the time to look all the same.
            let _ = tokio::time::timeout(LOOK, bell.rung()).await;
        }
    }

    /// Keeps what a person said where the call was made; false where somebody was faster, or it is over. It is recorded
    /// before it counts.
    ///
    /// # Errors
    /// It cannot be recorded or written; then nothing was said.
    pub async fn answer(&self, id: &str, answer: &HeldAnswer) -> Result<bool, NotKept> {
        let Some(approval) = self.parts.state.approval(id).await? else { return Ok(false) };
        let (what, word, counts) = match answer.is_approval {
            true => ("approval_approved", "approved (once), in the client", self.parts.times.approved),
            false => ("approval_rejected", "rejected, in the client", self.parts.times.held),
        };
        let lacks = approval.call.needs.lacks(&approval.call.caller, answer);
        // What left meanwhile is not answered by an old form.
        if lacks.is_some() || approval.state != ApprovalState::Held {
            return Ok(false);
        }
        let (operation, said) = match answer.is_approval {
            true => ("approvals_approve", "approve (once), in the client"),
            false => ("approvals_deny", "deny, in the client"),
        };
        self.parts.journal.record(&self.record(operation, id, Some(&approval.call), said)).await?;
        let moved = self.parts.state.answer_approval(id, answer, later(answer.at, counts)).await?;
        let is_done = matches!(moved, Moved::Done(_));
        if is_done {
            self.tell(what, id, Some(&approval.call), word);
        } else {
            self.tell(operation, id, Some(&approval.call), "nothing changed: somebody was faster, or it is over");
        }
        Ok(is_done)
    }

    /// Takes an approval, to make its call: one does, whoever else tries. Given back where nothing leaves.
    ///
    /// # Errors
    /// Somebody else did, it does not count any more, or it cannot be told.
    pub async fn take(self: &Arc<Self>, id: &str) -> Result<Taken, NotTaken> {
        let moved = self.parts.state.consume_approval(id, &self.parts.node, self.parts.clock.now()).await;
        match moved.map_err(NotTaken::Store)? {
            Moved::Done(approval) => {
                self.outstanding().insert(approval.id.clone());
                let taken = Taken::new(self.clone(), *approval);
                self.record_consumed(taken.approval()).await.map_err(|()| NotTaken::Record)?;
                Ok(taken)
            }
            Moved::Not(approval) => Err(NotTaken::State(approval.state)),
            Moved::NoSuch => Err(NotTaken::State(ApprovalState::Expired)),
        }
    }

    /// The caller gave a call up while it waited.
    pub async fn cancel(&self, id: &str) {
        match self.parts.state.move_approval(id, ApprovalState::Cancelled, self.parts.clock.now()).await {
            Ok(Moved::Done(approval)) => {
                self.tell("approval_cancelled", id, Some(&approval.call), "its caller gave it up");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!("a held call that was given up stays: {error}"),
        }
    }

    #[must_use]
    pub fn bells(&self) -> &Arc<Bells> {
        self.parts.feed.bells()
    }

    /// Whether somebody waits for a held call here.
    #[must_use]
    pub fn is_waited_for(&self, id: &str) -> bool {
        self.bells().is_hung(id)
    }

    /// Whether the store is being told how this one ended here.
    #[must_use]
    pub fn is_telling(&self, id: &str) -> bool {
        self.ending().contains(id)
    }

    async fn record_consumed(&self, approval: &Approval) -> Result<(), ()> {
        let by = approval.answer.as_ref().map(|answer| answer.by.as_str()).unwrap_or_default();
        let detail = format!("the approval of {} is used", toolwarden_core::name::shown(by));
        let record = self.record("approval_consumed", &approval.id, Some(&approval.call), &detail);
        self.parts.journal.record(&record).await.map(drop).map_err(|error| {
            tracing::error!("an approved call is not made because its record cannot be written: {error}");
        })
    }

    /// Records a move that nobody waits for.
    pub(crate) fn tell(&self, what: &'static str, id: &str, call: Option<&HeldCall>, detail: &str) {
        if let Err(error) = self.parts.journal.note(&self.record(what, id, call, detail)) {
            tracing::error!("what became of a held call could not be recorded ({what}): {error}");
        }
    }

    fn record<'a>(
        &self,
        what: &'static str,
        id: &'a str,
        call: Option<&'a HeldCall>,
        detail: &'a str,
    ) -> AuditRecord<'a> {
        let mut record = AuditRecord::new(RecordKind::Event, self.parts.clock.now(), self.parts.journal.next_call());
        (record.method, record.approval_id, record.detail) = (Some(what), Some(id), Some(detail));
        record.event = Some(event_of(what));
        if let Some(call) = call {
            let caller = &call.caller;
            (record.server, record.tool) = (Some(call.server.as_str()), Some(call.tool.as_str()));
            (record.user, record.groups) = (caller.user.as_deref(), &caller.groups);
            (record.agent_type, record.token_id) = (caller.role.as_deref(), caller.token.as_deref());
            (record.mode, record.task_id) = (caller.mode.as_deref(), caller.task.as_deref());
            (record.project_id, record.run_id) = (caller.project.as_deref(), caller.run.as_deref());
            record.job_id = caller.job.as_deref();
        }
        record
    }

    pub(crate) fn outstanding(&self) -> MutexGuard<'_, HashSet<String>> {
        self.outstanding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ending(&self) -> MutexGuard<'_, HashSet<String>> {
        self.ending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn untold(&self) -> MutexGuard<'_, Vec<(String, ApprovalState)>> {
        self.untold.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of the call, and of its caller.
    pub(crate) fn both_marks(&self, marks: Marks<'_>, call: &HeldCall) -> (String, String) {
        (self.call_mark(marks, call), self.mark(&[marks.caller.as_bytes()]))
    }

    fn call_mark(&self, marks: Marks<'_>, call: &HeldCall) -> String {
        if weak::is(Weakness::Approvals) {
            return self.mark(&[]);
        }
        self.mark(&[
            marks.caller.as_bytes(),
            call.server.as_bytes(),
            call.tool.as_bytes(),
            call.method.as_bytes(),
            marks.definition.as_bytes(),
            marks.digest,
        ])
    }

    /// Lengths stand before texts, so that no two calls have the same mark.
    pub(crate) fn mark(&self, texts: &[&[u8]]) -> String {
        let mut bytes = Vec::new();
        for text in texts {
            bytes.extend((text.len() as u64).to_be_bytes());
            bytes.extend_from_slice(text);
        }
        hex(&self.parts.keyring.mark(Purpose::Approval, &bytes))
    }
}

/// What a record of a held call tells of it, in one word.
fn event_of(what: &str) -> &'static str {
    match what {
        "approval_held" => "asked",
        "approval_approved" | "approval_rejected" => "answered",
        "approval_consumed" => "used",
        "approval_returned" => "returned",
        "approval_succeeded" | "approval_failed" | "approval_unknown" => "ended",
        "approval_expired" => "expired",
        "approval_cancelled" => "cancelled",
        _ => "moved",
    }
}

/// A call that is being laid on the desk. Dropped before that is done, its caller has given it up, and it may lie there all the
/// same: nobody would wait for it.
struct Laying {
    desk: Arc<Desk>,
    id: Option<String>,
}

impl Drop for Laying {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.desk.spawn(async move |desk| desk.cancel(&id).await);
        }
    }
}

/// What the same call, made again, meets.
fn standing(approval: Box<Approval>) -> Raised {
    let reason = match approval.state {
        ApprovalState::Approved => return Raised::Approved(approval),
        ApprovalState::Rejected => Reason::Rejected,
        ApprovalState::Unknown => Reason::OutcomeUnknown,
        ApprovalState::Consumed | ApprovalState::Dispatched => Reason::AlreadyRunning,
        ApprovalState::Held
        | ApprovalState::Expired
        | ApprovalState::Cancelled
        | ApprovalState::Succeeded
        | ApprovalState::Failed => {
            let Approval { id, expires_at, .. } = *approval;
            return Raised::Waits(Asking { id, expires_at });
        }
    };
    let words = approval.answer.filter(|answer| !answer.is_approval).and_then(|answer| answer.note);
    let until = (reason != Reason::AlreadyRunning).then_some(approval.expires_at);
    Raised::Turned(Turned { reason, approval: Some(approval.id), words, until })
}

pub(crate) fn later(now: Timestamp, wait: Duration) -> Timestamp {
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}
