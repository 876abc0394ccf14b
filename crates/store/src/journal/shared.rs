//! What the writers of a journal and its background thread share, and the steps writers take.
//!
//! Takes records from many threads; encodes them outside of any lock and leaves them in the inbox.
//! One writer at a time carries the inbox into the chain; the others do not wait for its lock but
//! for their own answer.

use std::cell::RefCell;
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use toolwarden_core::{AuditRecord, RecordKind, Status};

use super::background::{FLUSH_AFTER, SYNC_AFTER, write_head};
use super::chain::{Chain, Node};
use super::disk::sync_directory;
use super::inbox::{Answer, HandedIn, Inbox, Letter, Letters, is_in_chain};
use super::segments::{LONGEST_LINE, head_path};
use super::walk::Position;
use super::{JournalError, Receipt, Recovery, SyncLevel};

/// Records that wait for the index longer than this are refused.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(10);
/// What the line adds around the members of a record.
const LINE_MARGIN: usize = 256;
/// Outcomes wait in memory while nothing can be written; more than this would be a leak.
const LARGEST_INBOX: usize = 32 * 1024 * 1024;

/// So often one writer writes for the others before it goes on with its own work.
const MOST_ROUNDS: usize = 16;

/// What writers and the background thread share. Where both locks are needed, `state` comes first.
pub(super) struct Shared {
    pub(super) node: Arc<Node>,
    /// Held while records are written.
    pub(super) state: Mutex<State>,
    /// Never held while anything is written.
    pub(super) inbox: Mutex<Inbox>,
    /// Wakes the background thread; goes with `inbox`.
    pub(super) wake: Condvar,
    /// How many calls are on their way, more or less: only to judge by whether waiting pays.
    pub(super) open_calls: AtomicI64,
    pub(super) sync: SyncLevel,
    pub(super) checkpoint_every: Duration,
    pub(super) checkpoint_records: u64,
    /// How far the index has it.
    pub(super) delivered: watch::Sender<u64>,
    /// Somebody waits for the index.
    pub(super) delivery_wanted: Notify,
    pub(super) tally: Tally,
    /// Held for life; nobody else writes to this node.
    pub(super) _lock: File,
}

/// How writing went so far.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) written: AtomicU64,
    pub(super) failed: AtomicU64,
    /// The last record in the chain.
    pub(super) sequence: AtomicU64,
    /// The last attempt failed.
    pub(super) is_failing: AtomicBool,
}

impl Tally {
    fn wrote(&self, sequence: u64) {
        self.written.fetch_add(1, Ordering::Relaxed);
        self.sequence.store(sequence, Ordering::Relaxed);
        self.is_failing.store(false, Ordering::Relaxed);
    }

    pub(super) fn failed(&self, records: usize) {
        self.failed.fetch_add(u64::try_from(records).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.is_failing.store(true, Ordering::Relaxed);
    }
}

pub(super) struct State {
    pub(super) chain: Chain,
    /// Who waits for a sync.
    pub(super) waiters: Vec<Waiter>,
    /// What is being carried into the chain; kept, so that its memory is used again.
    carried: Letters,
    placed: Vec<Result<Position, JournalError>>,
}

/// Somebody who waits for a sync.
pub(super) enum Waiter {
    Record(Letter, Receipt),
    Flush(oneshot::Sender<Result<(), String>>),
}

impl State {
    pub(super) fn new(chain: Chain) -> Self {
        Self { chain, waiters: Vec::new(), carried: Letters::default(), placed: Vec::new() }
    }
}

thread_local! {
    /// Records are encoded outside the lock, into a buffer that is used again.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Encodes a record and hands its members, without the opening brace, to `place`.
fn encoded<T>(
    record: &AuditRecord<'_>,
    place: impl FnOnce(&[u8]) -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        serde_json::to_writer(&mut *buffer, record).map_err(JournalError::Encode)?;
        if buffer.len() + LINE_MARGIN > LONGEST_LINE {
            return Err(JournalError::TooLong);
        }
        place(buffer.strip_prefix(b"{").unwrap_or_default())
    })
}

impl Shared {
    /// Does something with the chain; waits for whoever is writing.
    pub(super) fn with_state<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        let result = work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
        // Whoever came in the meantime did not wait for the lock.
        if self.inbox().awaited > 0 {
            self.serve();
        }
        result
    }

    pub(super) fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands in a record that somebody waits for, and sees to it that it is written.
    pub(super) fn hand_in<'s>(self: &'s Arc<Self>, record: &AuditRecord<'_>) -> Result<HandedIn<'s>, JournalError> {
        let (sender, answer) = oneshot::channel();
        let (kind, call) = (record.kind, record.call);
        self.push(record, Some(sender), false)?;
        Ok(HandedIn::new(self, (kind, call), answer))
    }

    /// Hands in an outcome: written with the next record, or by the timer.
    pub(super) fn queue(&self, record: &AuditRecord<'_>) -> Result<(), JournalError> {
        self.push(record, None, false)
    }

    fn push(
        &self,
        record: &AuditRecord<'_>,
        writer: Option<oneshot::Sender<Answer>>,
        even_when_closing: bool,
    ) -> Result<(), JournalError> {
        encoded(record, |members| {
            let mut inbox = self.inbox();
            if inbox.stops && !even_when_closing {
                return Err(JournalError::Closed);
            }
            if inbox.mail.text.len() > LARGEST_INBOX {
                self.tally.failed(1);
                return Err(JournalError::Write(std::io::ErrorKind::StorageFull.into()));
            }
            if writer.is_none() {
                self.nudge(&mut inbox, FLUSH_AFTER);
            }
            match record.kind {
                RecordKind::Intent => self.open_calls.fetch_add(1, Ordering::Relaxed),
                RecordKind::Outcome => self.open_calls.fetch_sub(1, Ordering::Relaxed),
                RecordKind::Refusal | RecordKind::Event => 0,
            };
            inbox.push(Letter { kind: record.kind, call: record.call, length: members.len(), writer }, members);
            Ok(())
        })
    }

    /// Writes what lies in the inbox, unless somebody else is writing: they look again when they are done.
    pub(super) fn serve(&self) {
        for _ in 0..MOST_ROUNDS {
            let mut state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.carry(&mut state);
            drop(state);
            if self.inbox().awaited == 0 {
                return;
            }
        }
        // Others keep handing in; from here on it is the background thread's work.
        self.nudge(&mut self.inbox(), Duration::ZERO);
    }

    /// Whether other calls are on their way: then their records may come in a moment, and share a write.
    pub(super) fn is_busy(&self) -> bool {
        self.open_calls.load(Ordering::Relaxed) > 1
    }

    /// Carries the inbox into the chain and answers whoever waits for no more than that.
    pub(super) fn carry(&self, state: &mut State) {
        {
            let mut inbox = self.inbox();
            std::mem::swap(&mut inbox.mail, &mut state.carried);
            inbox.awaited = 0;
            state.waiters.extend(inbox.flushes.drain(..).map(Waiter::Flush));
        }
        if state.carried.letters.is_empty() {
            if !state.waiters.is_empty() {
                self.nudge(&mut self.inbox(), Duration::ZERO);
            }
            return;
        }
        let State { chain, waiters, carried, placed } = state;
        chain.take(carried, placed);
        for (letter, place) in carried.letters.drain(..).zip(placed.drain(..)) {
            match &place {
                Ok(position) => self.tally.wrote(position.sequence),
                Err(_) => self.tally.failed(1),
            }
            match place {
                Err(error) if letter.writer.is_none() => tracing::error!(%error, "an outcome is lost"),
                Ok(_) if letter.writer.is_none() => {}
                Ok(position) if matches!(self.sync, SyncLevel::Always | SyncLevel::Store) => {
                    waiters.push(Waiter::Record(letter, self.receipt(position)));
                }
                answer => self.answer(letter, answer.map(|position| self.receipt(position))),
            }
        }
        carried.clear();
        let due = if !waiters.is_empty() || chain.unsigned >= self.checkpoint_records {
            Duration::ZERO
        } else if matches!(self.sync, SyncLevel::Every100ms) {
            self.checkpoint_every.min(SYNC_AFTER)
        } else {
            self.checkpoint_every
        };
        self.nudge(&mut self.inbox(), due);
    }

    /// Tells a writer what became of its record. If it has gone away, its call will never leave.
    pub(super) fn answer(&self, letter: Letter, answer: Answer) {
        let (kind, call, is_written) = (letter.kind, letter.call, is_in_chain(&answer));
        let is_told = letter.writer.is_some_and(|writer| writer.send(answer).is_ok());
        if is_written && !is_told {
            self.take_back(kind, call);
        }
    }

    fn receipt(&self, position: Position) -> Receipt {
        Receipt { node: Arc::clone(&self.node.name), sequence: position.sequence, hash: position.hash }
    }

    /// Wakes the background thread if it means to sleep longer than this.
    pub(super) fn nudge(&self, inbox: &mut Inbox, due: Duration) {
        inbox.due = inbox.due.min(due);
        if inbox.sleeps_for > due {
            inbox.sleeps_for = due;
            self.wake.notify_one();
        }
    }

    /// An intent that is in the chain, and whose call did not leave: say so.
    pub(super) fn take_back(&self, kind: RecordKind, call: u64) {
        if kind != RecordKind::Intent {
            return;
        }
        let mut outcome = AuditRecord::new(RecordKind::Outcome, self.node.clock.now(), call);
        outcome.status = Some(Status::Cancelled);
        outcome.detail = Some("the call did not leave: its record was not durable in time, or its client went away");
        if let Err(error) = self.push(&outcome, None, true) {
            tracing::error!(%error, "an outcome is lost");
        }
        if self.inbox().ended {
            self.serve();
        }
    }

    pub(super) async fn wait_for_delivery(&self, sequence: u64) -> Result<(), JournalError> {
        let mut delivered = self.delivered.subscribe();
        self.delivery_wanted.notify_one();
        let reached = delivered.wait_for(|delivered| *delivered >= sequence);
        match tokio::time::timeout(DELIVERY_PATIENCE, reached).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(JournalError::NotDelivered),
        }
    }

    /// Records what was recovered, before anything else is recorded.
    pub(super) fn tell_recovery(&self, recovery: &Recovery) -> Result<(), JournalError> {
        let now = self.node.clock.now();
        let sentence = recovery.sentence();
        let call = self.node.next_call.fetch_add(1, Ordering::Relaxed);
        let mut event = AuditRecord::new(RecordKind::Event, now, call);
        event.detail = Some(&sentence);
        event.method = Some("recovery");
        self.queue(&event)?;
        for call in &recovery.unknown_calls {
            let mut outcome = AuditRecord::new(RecordKind::Outcome, now, *call);
            outcome.status = Some(Status::Unknown);
            outcome.detail = Some("the gateway stopped before the call ended");
            self.queue(&outcome)?;
        }
        Ok(())
    }

    /// Makes the head of a node that has only its first line, before there is a second one: from
    /// then on a missing head is a head taken away.
    pub(super) fn make_head(&self) -> Result<(), JournalError> {
        if head_path(&self.node.directory).exists() {
            return Ok(());
        }
        self.with_state(|state| self.write_durable_head(state, (state.chain.segment, state.chain.position)))
    }

    /// Writes a checkpoint and the head, on disk when this returns.
    pub(super) fn sign_now(&self) -> Result<(), JournalError> {
        self.with_state(|state| {
            self.carry(state);
            let place = state.chain.checkpoint()?;
            self.write_durable_head(state, place)
        })
    }

    fn write_durable_head(&self, state: &State, place: (u64, Position)) -> Result<(), JournalError> {
        self.node.disk.sync(&state.chain.file).map_err(JournalError::Write)?;
        sync_directory(&self.node.directory).map_err(JournalError::Write)?;
        write_head(self, place)
    }
}
