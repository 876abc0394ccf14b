//! The journal's one thread: writes outcomes that wait, syncs, and signs.
//!
//! Sleeps as long as nothing is due. Writers shorten its sleep only when they need it sooner, so
//! that a busy journal does not wake it for every record.

use std::fs::File;
use std::io;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;

use super::disk::{replace, sync_directory};
use super::segments::head_path;
use super::shared::{Shared, State};
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
    let mut rounds = Rounds { synced_at: now, signed_at: now, failed: false };
    while !rounds.once(shared) {}
}

/// What the thread remembers from round to round.
struct Rounds {
    synced_at: Timestamp,
    signed_at: Timestamp,
    failed: bool,
}

impl Rounds {
    /// Waits for work and does it; says whether it was the last time.
    fn once(&mut self, shared: &Shared) -> bool {
        let mut state = self.wait(shared);
        let stops = state.stops;
        let written = state.chain.write_pending();
        self.failed = written.is_err();
        let now = shared.node.clock.now();
        let signs = state.chain.unsigned > 0
            && (stops
                || state.chain.unsigned >= shared.checkpoint_records
                || is_due(self.signed_at, now, shared.checkpoint_every));
        let waiters = std::mem::take(&mut state.waiters);
        let periodic = matches!(shared.sync, SyncLevel::Every100ms) && is_due(self.synced_at, now, SYNC_AFTER);
        let syncs = stops || !waiters.is_empty() || (periodic && state.chain.is_unsynced);
        let signed = if signs { Some(state.chain.checkpoint()) } else { None };
        // A head is never ahead of the disk, so signing syncs at every level.
        let files = if syncs || signs { take_files(&mut state) } else { Vec::new() };
        drop(state);
        let synced = written.and_then(|()| sync_all(shared, &files));
        if let Err(error) = &synced {
            self.failed = true;
            tracing::error!(%error, node = %shared.node.name, "the journal cannot be written or synced");
        }
        for waiter in waiters {
            // A writer that went away does not need the answer.
            let _ = waiter.send(synced.as_ref().copied().map_err(ToString::to_string));
        }
        if syncs || signs {
            self.synced_at = now;
        }
        if let Some(signed) = signed {
            self.signed_at = now;
            let written = signed.and_then(|place| if synced.is_ok() { write_head(shared, place) } else { Ok(()) });
            if let Err(error) = written {
                self.failed = true;
                tracing::error!(%error, node = %shared.node.name, "the journal cannot sign a checkpoint");
            }
        }
        stops
    }

    fn wait<'s>(&self, shared: &'s Shared) -> MutexGuard<'s, State> {
        let mut state = shared.lock();
        loop {
            if state.stops || (!state.waiters.is_empty() && !self.failed) {
                return state;
            }
            let wait = self.pause(shared, &state);
            state.sleeps_for = wait;
            let woken = shared.wake.wait_timeout(state, wait).unwrap_or_else(std::sync::PoisonError::into_inner);
            state = woken.0;
            state.sleeps_for = Duration::ZERO;
            if woken.1.timed_out() || wait.is_zero() {
                return state;
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
        if self.failed {
            wait = wait.max(RETRY_AFTER);
        }
        wait
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
        let mut state = shared.lock();
        state.chain.is_unsynced = true;
        let retired = files.iter().filter(|file| !Arc::ptr_eq(file, &state.chain.file)).cloned().collect::<Vec<_>>();
        state.chain.retired.extend(retired);
    }
    synced
}

/// Replaces the file `head`.
pub(crate) fn write_head(shared: &Shared, (segment, position): (u64, Position)) -> Result<(), JournalError> {
    let Position { sequence, hash } = position;
    let head = Head::sign(shared.node.keyring.as_ref(), &shared.node.name, segment, sequence, hash)?;
    replace(&head_path(&shared.node.directory), &head.text()).map_err(JournalError::Write)
}
