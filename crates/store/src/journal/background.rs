//! The journal's one thread: writes outcomes that wait, syncs, and signs.
//!
//! Sleeps as long as nothing is due. Writers shorten its sleep only when they need it sooner, so
//! that a busy journal does not wake it for every record.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::disk::{replace, sync_directory};
use super::segments::head_path;
use super::shared::{Shared, State, Waiter};
use super::statement::Head;
use super::walk::Position;
use super::{JournalError, SyncLevel};

/// How long an outcome may wait in memory.
pub(crate) const FLUSH_AFTER: Duration = Duration::from_millis(5);
/// How often `Every100ms` syncs.
pub(crate) const SYNC_AFTER: Duration = Duration::from_millis(100);
/// How long to wait before trying again what failed.
const RETRY_AFTER: Duration = Duration::from_millis(200);
/// Nothing is due: somebody will wake us.
pub(crate) const IDLE: Duration = Duration::from_secs(3600);

/// Runs until the journal is closed.
pub(crate) fn run(shared: &Shared) {
    let now = shared.node.clock.now();
    let mut rounds = Rounds { synced_at: now, signed_at: now, failed_at: None };
    loop {
        let is_last = rounds.once(shared);
        let mut inbox = shared.inbox();
        // The last round may itself take records back.
        if is_last && inbox.mail.letters.is_empty() {
            inbox.ended = true;
            return;
        }
    }
}

/// What the thread remembers from round to round.
struct Rounds {
    synced_at: Timestamp,
    signed_at: Timestamp,
    /// When something failed that is to be tried again.
    failed_at: Option<Timestamp>,
}

/// What one round has to do outside of the lock.
struct Work {
    written: io::Result<()>,
    waiters: Vec<Waiter>,
    syncs: bool,
    signed: Option<Result<(u64, Position), JournalError>>,
    files: Vec<Arc<File>>,
}

impl Rounds {
    /// Waits for work and does it; says whether it was the last time.
    fn once(&mut self, shared: &Shared) -> bool {
        let stops = self.wait(shared);
        let now = shared.node.clock.now();
        let Work { written, waiters, syncs, signed, files } =
            shared.with_state(|state| self.take_work(shared, state, stops, now));
        self.failed_at = None;
        // Also when the last lines could not be written: those before are to be on disk all the same.
        let synced = sync_all(shared, &files);
        let synced = written.and(synced);
        if let Err(error) = &synced {
            self.failed_at = Some(now);
            let records = waiters.iter().filter(|waiter| matches!(waiter, Waiter::Record(..))).count();
            shared.tally.failed(records);
            tracing::error!(%error, node = %shared.node.name, "the journal cannot be written or synced");
        }
        for waiter in waiters {
            let synced = synced.as_ref().copied().map_err(ToString::to_string);
            match waiter {
                Waiter::Record(letter, receipt) => {
                    shared.answer(letter, synced.map(|()| receipt).map_err(JournalError::Sync));
                }
                // Who went away does not need the answer.
                Waiter::Flush(sender) => drop(sender.send(synced)),
            }
        }
        if syncs {
            self.synced_at = now;
        }
        if let Some(signed) = signed {
            self.signed_at = now;
            let written = signed.and_then(|place| if synced.is_ok() { write_head(shared, place) } else { Ok(()) });
            if let Err(error) = written {
                self.failed_at = Some(now);
                tracing::error!(%error, node = %shared.node.name, "the journal cannot sign a checkpoint");
            }
        }
        stops
    }

    /// Writes what waits, signs if that is due, and takes along what is to be synced.
    fn take_work(&self, shared: &Shared, state: &mut State, stops: bool, now: Timestamp) -> Work {
        shared.carry(state);
        state.chain.end_old_segment(now);
        let written = state.chain.write_pending();
        let signs = state.chain.unsigned > 0
            && (stops
                || state.chain.unsigned >= shared.checkpoint_records
                || is_due(self.signed_at, now, shared.checkpoint_every));
        let waiters = std::mem::take(&mut state.waiters);
        let periodic = matches!(shared.sync, SyncLevel::Every100ms) && is_due(self.synced_at, now, SYNC_AFTER);
        // A head is never ahead of the disk, so signing syncs at every level.
        let syncs = signs || stops || !waiters.is_empty() || (periodic && state.chain.is_unsynced);
        let signed = signs.then(|| state.chain.checkpoint());
        let files = if syncs { take_files(state) } else { Vec::new() };
        Work { written, waiters, syncs, signed, files }
    }

    /// Waits until something is due; says whether the journal is being closed.
    fn wait(&self, shared: &Shared) -> bool {
        loop {
            // What is due from here on is told to the inbox, also while we look at the chain.
            shared.inbox().due = IDLE;
            let pause = shared.with_state(|state| self.pause(shared, state));
            let mut inbox = shared.inbox();
            let is_wanted = self.failed_at.is_none() && (inbox.awaited > 0 || !inbox.flushes.is_empty());
            if inbox.stops || pause.is_zero() || is_wanted {
                return inbox.stops;
            }
            let mail = if inbox.mail.letters.is_empty() { IDLE } else { FLUSH_AFTER };
            let wait = if self.failed_at.is_some() { pause } else { pause.min(inbox.due).min(mail) };
            inbox.sleeps_for = wait;
            let woken = shared.wake.wait_timeout(inbox, wait).unwrap_or_else(std::sync::PoisonError::into_inner);
            let (mut inbox, timed_out) = (woken.0, woken.1.timed_out());
            inbox.sleeps_for = Duration::ZERO;
            if timed_out {
                return inbox.stops;
            }
            // Something is due sooner than we meant to sleep: how soon, is looked at again. An outcome
            // waits its few milliseconds, in which the next intent usually takes it along.
        }
    }

    /// How long nothing is due.
    fn pause(&self, shared: &Shared, state: &State) -> Duration {
        let now = shared.node.clock.now();
        let mut wait = IDLE;
        if state.chain.unsigned > 0 {
            wait = wait.min(remaining(self.signed_at, now, shared.checkpoint_every));
        }
        wait = wait.min(state.chain.age_left(now));
        if state.chain.is_unsynced && matches!(shared.sync, SyncLevel::Every100ms) {
            wait = wait.min(remaining(self.synced_at, now, SYNC_AFTER));
        }
        if state.chain.unsigned >= shared.checkpoint_records {
            wait = Duration::ZERO;
        }
        if !state.chain.pending.is_empty() {
            wait = wait.min(FLUSH_AFTER);
        }
        if !state.waiters.is_empty() {
            wait = Duration::ZERO;
        }
        match self.failed_at {
            // Not sooner, however many records come; and not later.
            Some(failed_at) => remaining(failed_at, now, RETRY_AFTER),
            None => wait,
        }
    }
}

/// A clock that was set back makes things due, never late.
fn is_due(since: Timestamp, now: Timestamp, every: Duration) -> bool {
    remaining(since, now, every).is_zero()
}

fn remaining(since: Timestamp, now: Timestamp, every: Duration) -> Duration {
    match Duration::try_from(now.duration_since(since)) {
        Ok(passed) => every.saturating_sub(passed),
        Err(_) => Duration::ZERO,
    }
}

fn take_files(state: &mut State) -> Vec<Arc<File>> {
    let mut files = std::mem::take(&mut state.chain.retired);
    files.push(Arc::clone(&state.chain.file));
    state.chain.is_unsynced = false;
    files
}

/// Syncs the files; a failure leaves them to be synced again.
fn sync_all(shared: &Shared, files: &[Arc<File>]) -> io::Result<()> {
    let synced = files.iter().try_for_each(|file| shared.node.disk.sync(file));
    // A new segment is only there once its name is.
    let synced = if files.len() > 1 { synced.and_then(|()| sync_directory(&shared.node.directory)) } else { synced };
    if synced.is_err() {
        shared.with_state(|State { chain, .. }| {
            chain.is_unsynced = true;
            chain.retired.extend(files.iter().filter(|file| !Arc::ptr_eq(file, &chain.file)).cloned());
        });
    }
    synced
}

/// Replaces the file `head`.
pub(crate) fn write_head(shared: &Shared, (segment, position): (u64, Position)) -> Result<(), JournalError> {
    let Position { sequence, hash } = position;
    let head = Head::sign(shared.node.keyring.as_ref(), &shared.node.name, segment, sequence, hash)?;
    replace(&head_path(&shared.node.directory), &head.text()).map_err(JournalError::Write)
}
