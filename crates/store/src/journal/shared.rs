//! What the writers of a journal and its background thread share, and the steps writers take.
//!
//! Takes records from many threads; encodes them outside the one lock; puts them into the chain
//! under it; wakes the background thread only when something is due sooner than it sleeps.

use std::cell::RefCell;
use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};
use toolwarden_core::{AuditRecord, RecordKind, Status};

use super::background::{FLUSH_AFTER, SYNC_AFTER, write_head};
use super::chain::{Chain, Node};
use super::disk::sync_directory;
use super::segments::{LONGEST_LINE, head_path};
use super::walk::Position;
use super::{JournalError, Receipt, Recovery, SyncLevel};

/// Records that wait for the index longer than this are refused.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(10);
/// What the line adds around the members of a record.
const LINE_MARGIN: usize = 256;

type Waiter = oneshot::Receiver<Result<(), String>>;

/// What writers and the background thread share.
pub(super) struct Shared {
    pub(super) node: Arc<Node>,
    pub(super) state: Mutex<State>,
    pub(super) wake: Condvar,
    pub(super) sync: SyncLevel,
    pub(super) checkpoint_every: Duration,
    pub(super) checkpoint_records: u64,
    /// How far the index has it.
    pub(super) delivered: watch::Sender<u64>,
    /// Somebody waits for the index.
    pub(super) delivery_wanted: Notify,
    /// Held for life; nobody else writes to this node.
    pub(super) _lock: File,
}

pub(super) struct State {
    pub(super) chain: Chain,
    /// Writers that wait for a sync.
    pub(super) waiters: Vec<oneshot::Sender<Result<(), String>>>,
    /// How long the background thread means to sleep now.
    pub(super) sleeps_for: Duration,
    pub(super) stops: bool,
}

thread_local! {
    /// Records are encoded outside the lock, into a buffer that is used again.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Waits until the background thread has synced, or says why it could not.
pub(super) async fn synced(waiter: Waiter) -> Result<(), JournalError> {
    waiter.await.map_err(|_| JournalError::Closed)?.map_err(JournalError::Sync)
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
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn append(&self, record: &AuditRecord<'_>) -> Result<(Receipt, Option<Waiter>), JournalError> {
        encoded(record, |members| {
            let mut state = self.lock();
            if state.stops {
                return Err(JournalError::Closed);
            }
            let position = state.chain.append(record.kind, record.call, members)?;
            let mut waiter = None;
            let mut due = self.checkpoint_every;
            match self.sync {
                SyncLevel::Os => {}
                SyncLevel::Every100ms => due = due.min(SYNC_AFTER),
                SyncLevel::Always | SyncLevel::Store => {
                    let (sender, receiver) = oneshot::channel();
                    state.waiters.push(sender);
                    waiter = Some(receiver);
                    due = Duration::ZERO;
                }
            }
            if state.chain.unsigned >= self.checkpoint_records {
                due = Duration::ZERO;
            }
            self.nudge(&mut state, due);
            Ok((self.receipt(position), waiter))
        })
    }

    pub(super) fn queue(&self, record: &AuditRecord<'_>) -> Result<Receipt, JournalError> {
        encoded(record, |members| {
            let mut state = self.lock();
            if state.stops {
                return Err(JournalError::Closed);
            }
            let position = state.chain.queue(record.kind, record.call, members)?;
            self.nudge(&mut state, FLUSH_AFTER);
            Ok(self.receipt(position))
        })
    }

    fn receipt(&self, position: Position) -> Receipt {
        Receipt { node: Arc::clone(&self.node.name), sequence: position.sequence, hash: position.hash }
    }

    /// Wakes the background thread if it means to sleep longer than this.
    pub(super) fn nudge(&self, state: &mut State, due: Duration) {
        if state.sleeps_for > due {
            state.sleeps_for = due;
            self.wake.notify_one();
        }
    }

    /// An intent that is in the chain but not where its level wants it did not leave: say so.
    pub(super) fn take_back(&self, record: &AuditRecord<'_>) {
        if record.kind != RecordKind::Intent {
            return;
        }
        let mut outcome = AuditRecord::new(RecordKind::Outcome, self.node.clock.now(), record.call);
        outcome.status = Some(Status::Cancelled);
        outcome.detail = Some("the call did not leave: its record could not be made durable");
        if let Err(error) = self.queue(&outcome) {
            tracing::error!(%error, "an outcome is lost");
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
        let state = self.lock();
        self.write_durable_head(&state, (state.chain.segment, state.chain.position))
    }

    /// Writes a checkpoint and the head, on disk when this returns.
    pub(super) fn sign_now(&self) -> Result<(), JournalError> {
        let mut state = self.lock();
        let place = state.chain.checkpoint()?;
        self.write_durable_head(&state, place)
    }

    fn write_durable_head(&self, state: &State, place: (u64, Position)) -> Result<(), JournalError> {
        self.node.disk.sync(&state.chain.file).map_err(JournalError::Write)?;
        sync_directory(&self.node.directory).map_err(JournalError::Write)?;
        write_head(self, place)
    }
}
