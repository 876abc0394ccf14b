//! `[audit] retention`: records that are too old are removed, again and again while the process runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use toolwarden_core::{AuditRecord, Keyring, RecordKind};
use toolwarden_store::journal::{Removed, prune};
use toolwarden_store::{Index, Journal};

use crate::environment;

/// Segments are the unit of removal: they are ended often enough that nothing stays much longer than asked for.
const PARTS: u32 = 10;
const LONGEST_SEGMENT: Duration = Duration::from_secs(24 * 60 * 60);
const LONGEST_PAUSE: Duration = Duration::from_secs(60 * 60);
const SHORTEST: Duration = Duration::from_secs(1);

/// How old a segment may become.
pub fn segment_age(retention: Duration) -> Duration {
    (retention / PARTS).clamp(SHORTEST, LONGEST_SEGMENT)
}

/// What is kept, and for how long.
pub struct Kept {
    pub root: PathBuf,
    pub index: Index,
    pub retention: Duration,
}

impl Kept {
    /// Removes what is too old until the process ends.
    pub async fn keep_up(self, journal: Journal, keyring: Arc<dyn Keyring>) {
        let pause = (self.retention / PARTS).clamp(SHORTEST, LONGEST_PAUSE);
        loop {
            tokio::time::sleep(pause).await;
            if let Err(error) = self.once(&journal, &keyring).await {
                tracing::warn!("old records are not removed: {error:#}");
            }
        }
    }

    async fn once(&self, journal: &Journal, keyring: &Arc<dyn Keyring>) -> anyhow::Result<()> {
        let Some(before) = before(environment::now(), self.retention) else { return Ok(()) };
        let seen = self.index.seen().await?;
        let (root, own, keyring) = (self.root.clone(), journal.node().clone(), keyring.clone());
        let work = move || prune(&root, &*keyring, &own, &seen, before);
        for removed in tokio::task::spawn_blocking(work).await?? {
            tell(journal, &removed);
        }
        self.index.forget_before(before).await?;
        Ok(())
    }
}

fn before(now: Timestamp, retention: Duration) -> Option<Timestamp> {
    now.checked_sub(SignedDuration::try_from(retention).ok()?).ok()
}

/// That records are gone is on the record itself.
fn tell(journal: &Journal, removed: &Removed) {
    let Removed { node, segments, through } = removed;
    let words = format!("[audit] retention removed {segments} segment(s) of {node}, through record {through}");
    tracing::info!("{words}");
    let mut record = AuditRecord::new(RecordKind::Event, environment::now(), journal.next_call());
    record.detail = Some(&words);
    if let Err(error) = journal.note(&record) {
        tracing::error!("that old records were removed could not be recorded: {error}");
    }
}
