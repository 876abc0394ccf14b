//! The audit journal (GATE-15): every record is in a hash chain on disk before its call leaves.
//!
//! Takes audit records from many threads; gives receipts; refuses, so that the call is refused, when
//! a record cannot be written. What the chain proves, and what it cannot, is said in `verify`.

mod background;
mod chain;
mod disk;
mod inbox;
mod line;
mod origin;
mod prune;
mod recover;
mod segments;
mod shared;
mod statement;
mod verify;
mod walk;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::{Notify, oneshot, watch};
use toolwarden_core::{AuditRecord, Clock, Keyring, KeyringError};

use chain::{Chain, Node};
pub(crate) use disk::check_private;
use inbox::Inbox;
pub(crate) use line::check_line;
pub use line::{ChainHash, LineFault};
pub use origin::origin;
pub use prune::{Removed, prune};
pub use recover::Recovery;
pub(crate) use segments::{Found, SegmentReader, nodes, segment_path};
use shared::{Shared, State, Tally};
pub use verify::{NodeReport, Problem, Report, Seen, verify};
pub(crate) use walk::Position;

/// Why a record was not taken, or a journal not opened.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("the journal {path} {error}")]
    Directory { path: String, error: io::Error },
    #[error("all {slots} journals called {base_name} are in use or damaged; run `toolwarden audit verify`")]
    NoSlot { base_name: String, slots: u32 },
    #[error("`{0}` cannot name a journal: use letters, digits and single dashes")]
    Name(String),
    #[error("the record cannot be written: {0}")]
    Write(io::Error),
    #[error("the record cannot be made durable: {0}")]
    Sync(String),
    #[error("the record was not delivered to the index in time")]
    NotDelivered,
    #[error("the record is too long")]
    TooLong,
    #[error("the record cannot be encoded: {0}")]
    Encode(serde_json::Error),
    #[error("the journal is closed")]
    Closed,
    #[error(transparent)]
    Key(#[from] KeyringError),
}

/// When a record counts as written (`[audit] sync`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncLevel {
    /// Handed to the operating system: survives the end of the process, not a power cut.
    #[default]
    Os,
    /// As `Os`, and on disk within about 100 ms.
    Every100ms,
    /// On disk; records that come together share one sync.
    Always,
    /// On disk and in the index.
    Store,
}

/// How to write a journal.
#[derive(Debug, Clone)]
pub struct JournalOptions {
    /// The journal root, `<data>/journal`; the nodes are directories in it.
    pub directory: PathBuf,
    /// What kind of process writes: `serve`, `stdio`. The node is `<base_name>-<slot>`.
    pub base_name: String,
    pub sync: SyncLevel,
    pub segment_bytes: u64,
    /// A segment with records is ended when it is this old; none = only when it is full.
    pub segment_age: Option<Duration>,
    pub checkpoint_every: Duration,
    pub checkpoint_records: u64,
}

impl JournalOptions {
    #[must_use]
    pub fn new(directory: PathBuf, base_name: &str) -> Self {
        Self {
            directory,
            base_name: base_name.to_owned(),
            sync: SyncLevel::Os,
            segment_bytes: 64 * 1024 * 1024,
            segment_age: None,
            checkpoint_every: Duration::from_secs(10),
            checkpoint_records: 100_000,
        }
    }
}

/// Where a record stands in the chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    pub node: Arc<str>,
    pub sequence: u64,
    pub hash: ChainHash,
}

impl fmt::Display for Receipt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}/{}", self.node, self.sequence, self.hash)
    }
}

/// How a journal is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Health {
    /// Records written since it was opened, and such as could not be.
    pub written: u64,
    pub failed: u64,
    /// Records that are not in the index yet; none before the first delivery.
    pub behind: Option<u64>,
    /// Whether the last record could be written.
    pub is_writable: bool,
}

/// A node's journal. Clones write to the same chain; the last one dropped closes it.
#[derive(Clone)]
pub struct Journal {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Journal {
    /// Opens the first free journal of a base name, recovers what a former run left, and starts the
    /// thread that flushes, syncs and signs.
    ///
    /// # Errors
    /// The directory cannot be used or is open to others, or no slot is free.
    pub fn open(
        options: &JournalOptions,
        keyring: Arc<dyn Keyring>,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Recovery), JournalError> {
        Self::open_on(options, keyring, clock, Arc::new(disk::RealDisk))
    }

    fn open_on(
        options: &JournalOptions,
        keyring: Arc<dyn Keyring>,
        clock: Arc<dyn Clock>,
        disk: Arc<dyn disk::Disk>,
    ) -> Result<(Self, Recovery), JournalError> {
        check_name(&options.base_name)?;
        let (slot, recovery) = recover::take_slot(&options.directory, &options.base_name, keyring.as_ref())?;
        let node = Arc::new(Node {
            name: slot.node.as_str().into(),
            directory: slot.directory,
            disk,
            keyring,
            clock,
            next_call: slot.tail.as_ref().map_or(1, |tail| tail.next_call).into(),
            segment_bytes: options.segment_bytes,
            segment_age: options.segment_age,
        });
        let chain = match slot.tail {
            Some(tail) => Chain::resume(Arc::clone(&node), tail)?,
            None => Chain::begin(Arc::clone(&node))?,
        };
        let shared = Arc::new(Shared {
            node,
            state: Mutex::new(State::new(chain)),
            inbox: Mutex::new(Inbox::new()),
            wake: Condvar::new(),
            open_calls: AtomicI64::new(0),
            sync: options.sync,
            checkpoint_every: options.checkpoint_every,
            checkpoint_records: options.checkpoint_records.max(1),
            delivered: watch::Sender::new(0),
            delivery_wanted: Notify::new(),
            tally: Tally::default(),
            _lock: slot.lock,
        });
        shared.make_head()?;
        if !recovery.is_clean() {
            shared.tell_recovery(&recovery)?;
            shared.sign_now()?;
        }
        let thread = start(&shared)?;
        Ok((Self { handle: Arc::new(Handle { shared, thread: Mutex::new(Some(thread)) }) }, recovery))
    }

    /// The name of this node.
    #[must_use]
    pub fn node(&self) -> &Arc<str> {
        &self.shared().node.name
    }

    /// A call id: unique within the node, also across restarts.
    #[must_use]
    pub fn next_call(&self) -> u64 {
        self.shared().node.next_call.fetch_add(1, Ordering::Relaxed)
    }

    /// Writes a record that must be there before anything happens: intents, refusals, events.
    ///
    /// # Errors
    /// It is not written as the sync level asks; the call must not run.
    pub async fn record(&self, record: &AuditRecord<'_>) -> Result<Receipt, JournalError> {
        let shared = self.shared();
        let mut handed_in = shared.hand_in(record)?;
        if shared.is_busy() {
            // Whoever is ready to hand in as well does so now, and the first to come back writes for all.
            tokio::task::yield_now().await;
        }
        if shared.inbox().awaited > 0 {
            shared.serve();
        }
        let receipt = handed_in.answer().await?;
        if shared.sync == SyncLevel::Store {
            shared.wait_for_delivery(receipt.sequence).await?;
        }
        handed_in.keep();
        Ok(receipt)
    }

    /// Takes an outcome: written with the next record or within about 5 ms. An outcome lost with the process in between is recovered as `unknown`.
    ///
    /// # Errors
    /// The journal is closed, the record too long, or nothing could be written for a long time.
    pub fn note(&self, record: &AuditRecord<'_>) -> Result<(), JournalError> {
        self.shared().queue(record)
    }

    /// Writes and syncs everything taken so far.
    ///
    /// # Errors
    /// It cannot be written or synced.
    pub async fn flush(&self) -> Result<(), JournalError> {
        let (sender, waiter) = oneshot::channel();
        {
            let mut inbox = self.shared().inbox();
            if inbox.stops {
                return Err(JournalError::Closed);
            }
            inbox.flushes.push(sender);
            self.shared().nudge(&mut inbox, Duration::ZERO);
        }
        waiter.await.map_err(|_| JournalError::Closed)?.map_err(JournalError::Sync)
    }

    /// Writes, signs and syncs what is there, and takes no more records from any clone.
    ///
    /// # Errors
    /// The end could not be written.
    pub async fn close(self) -> Result<(), JournalError> {
        let handle = Arc::clone(&self.handle);
        let ended = tokio::task::spawn_blocking(move || handle.stop()).await;
        ended.map_err(|error| JournalError::Sync(error.to_string()))?;
        let is_whole = self
            .shared()
            .with_state(|State { chain, .. }| chain.pending.is_empty() && chain.unsigned == 0 && !chain.is_unsynced);
        if is_whole { Ok(()) } else { Err(JournalError::Sync("see the log".to_owned())) }
    }

    /// How it is doing; waits for nobody.
    #[must_use]
    pub fn health(&self) -> Health {
        let shared = self.shared();
        let sequence = shared.tally.sequence.load(Ordering::Relaxed);
        let delivered = *shared.delivered.borrow();
        Health {
            written: shared.tally.written.load(Ordering::Relaxed),
            failed: shared.tally.failed.load(Ordering::Relaxed),
            behind: (delivered > 0).then(|| sequence.saturating_sub(delivered)),
            is_writable: !shared.tally.is_failing.load(Ordering::Relaxed) && !shared.inbox().stops,
        }
    }

    /// Where the last record could not be written: whether the disk takes something now. Without this nobody
    /// would learn that it is well again while no calls come.
    ///
    /// # Errors
    /// It does not.
    pub fn try_again(&self) -> Result<(), JournalError> {
        let shared = self.shared();
        if shared.inbox().stops {
            return Err(JournalError::Closed);
        }
        if shared.tally.is_failing.load(Ordering::Relaxed) {
            disk::try_out(&*shared.node.disk, &shared.node.directory).map_err(JournalError::Write)?;
            shared.tally.is_failing.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Tells how far the index has this node (`SyncLevel::Store` waits for it).
    pub(crate) fn delivered_through(&self, sequence: u64) {
        self.shared().delivered.send_if_modified(|delivered| {
            let is_more = sequence > *delivered;
            *delivered = sequence.max(*delivered);
            is_more
        });
    }

    /// Ends when a writer waits for the index.
    pub(crate) async fn delivery_wanted(&self) {
        self.shared().delivery_wanted.notified().await;
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }
}

impl fmt::Debug for Journal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Journal").field("node", self.node()).finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Handle {
    /// Lets the thread do its last round and waits for it.
    fn stop(&self) {
        self.shared.inbox().stops = true;
        self.shared.wake.notify_all();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The thread does not panic; if it did, there is nothing left to do here.
        let _ = thread.map(JoinHandle::join);
    }
}

fn start(shared: &Arc<Shared>) -> Result<JoinHandle<()>, JournalError> {
    let shared = Arc::clone(shared);
    let builder = std::thread::Builder::new().name("journal".to_owned());
    builder.spawn(move || background::run(&shared)).map_err(JournalError::Write)
}

fn check_name(name: &str) -> Result<(), JournalError> {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let is_good = name.len() <= 64 && name.split('-').all(is_word);
    if is_good { Ok(()) } else { Err(JournalError::Name(name.to_owned())) }
}

fn shown(path: &Path) -> String {
    toolwarden_core::name::shown(&path.to_string_lossy()).into_owned()
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
