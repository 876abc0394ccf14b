//! `[audit] retention`: old segments and rows go, the chain still verifies, and nothing else may go.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use toolwarden_core::Clock;
use toolwarden_store::index::{Filter, ship};
use toolwarden_store::journal::{Seen, prune};
use toolwarden_store::{Journal, JournalOptions};

use crate::kit::{Outcome, Place, at, intent, on_both, outcome};

/// A clock that stands still until it is set.
#[derive(Debug)]
struct SetClock(AtomicI64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.0.load(Ordering::Relaxed)).unwrap_or_default()
    }
}

const BEGIN: i64 = 1_700_000_000;

/// Calls at seconds 1 to 8, a segment for every two seconds.
async fn written(place: &Place) -> Result<Journal, Box<dyn std::error::Error>> {
    let clock = Arc::new(SetClock(AtomicI64::new(BEGIN)));
    let options =
        JournalOptions { segment_age: Some(Duration::from_secs(2)), checkpoint_records: 1, ..place.options() };
    let (journal, _) = Journal::open(&options, place.keyring.clone(), clock.clone())?;
    for call in 1..=8_u64 {
        clock.0.store(BEGIN + i64::try_from(call)?, Ordering::Relaxed);
        journal.record(&intent(call)).await?;
        journal.note(&outcome(call))?;
        journal.flush().await?;
    }
    Ok(journal)
}

async fn gate_15_old_records_are_removed_and_the_chain_still_verifies(place: Place) -> Outcome {
    let journal = written(&place).await?;
    let index = place.index().await?;
    let all = place.segments("serve-1")?.len();
    assert!(all >= 4, "{all} segments");
    // Nothing goes that is not in the index.
    assert!(prune(&place.journal_root(), place.keyring.as_ref(), "serve-1", &[], at(100))?.is_empty());
    ship(&place.journal_root(), &index).await?;
    // Nor what is not old.
    assert!(prune(&place.journal_root(), place.keyring.as_ref(), "serve-1", &index.seen().await?, at(0))?.is_empty());
    // Nor what somebody else writes.
    assert!(prune(&place.journal_root(), place.keyring.as_ref(), "other", &index.seen().await?, at(100))?.is_empty());
    let removed = prune(&place.journal_root(), place.keyring.as_ref(), "serve-1", &index.seen().await?, at(5))?;
    assert_eq!(removed.len(), 1, "{removed:?}");
    assert!(place.segments("serve-1")?.len() < all);
    assert!(!place.text("serve-1")?.contains("\"call\":1,") && place.text("serve-1")?.contains("\"call\":8,"));
    assert_eq!(place.problem(&index.seen().await?)?, None);
    assert_eq!(index.forget_before(at(5)).await?, 4);
    let rows = index.query(&Filter::default(), 100, None).await?;
    assert_eq!(rows.iter().map(|row| row.call).collect::<Vec<_>>(), [8, 7, 6, 5]);
    journal.close().await?;
    assert_eq!(place.problem(&index.seen().await?)?, None);
    // The next run goes on behind it, and what is delivered still fits.
    let (journal, recovery) = place.open()?;
    assert!(recovery.is_clean(), "{recovery:?}");
    journal.record(&intent(100)).await?;
    journal.close().await?;
    ship(&place.journal_root(), &index).await?;
    assert_eq!(place.problem(&index.seen().await?)?, None);
    // Everything but the last segment can go.
    prune(&place.journal_root(), place.keyring.as_ref(), "none", &index.seen().await?, Timestamp::MAX)?;
    assert_eq!(place.segments("serve-1")?.len(), 1);
    assert_eq!(place.problem(&index.seen().await?)?, None);
    Ok(())
}

on_both!(gate_15_old_records_are_removed_and_the_chain_still_verifies);

/// A closed journal of which the first segments were removed, and how far the index has it.
async fn removed() -> Result<(Place, Vec<Seen>), Box<dyn std::error::Error>> {
    let place = Place::new()?;
    written(&place).await?.close().await?;
    let index = place.index().await?;
    ship(&place.journal_root(), &index).await?;
    let seen = index.seen().await?;
    prune(&place.journal_root(), place.keyring.as_ref(), "none", &seen, at(5))?;
    assert_eq!(place.problem(&seen)?, None);
    Ok((place, seen))
}

#[tokio::test]
async fn gate_15_removing_more_or_claiming_less_is_found() -> Outcome {
    let (place, seen) = removed().await?;
    let pruned = place.journal_root().join("serve-1/pruned");
    let good = fs::read(&pruned)?;
    for position in 0..good.len() {
        let mut bad = good.clone();
        if let Some(byte) = bad.get_mut(position) {
            *byte ^= 1;
        }
        fs::write(&pruned, &bad)?;
        assert!(place.problem(&seen)?.is_some(), "byte {position}");
        // What cannot be believed removes nothing either.
        let count = place.segments("serve-1")?.len();
        assert!(prune(&place.journal_root(), place.keyring.as_ref(), "none", &seen, Timestamp::MAX)?.is_empty());
        assert_eq!(place.segments("serve-1")?.len(), count);
    }
    fs::remove_file(&pruned)?;
    assert!(place.problem(&seen)?.is_some());
    fs::write(&pruned, &good)?;
    assert_eq!(place.problem(&seen)?, None);
    let first = place.segments("serve-1")?.into_iter().next().ok_or("no segment")?;
    let text = fs::read(&first)?;
    fs::remove_file(&first)?;
    assert!(place.problem(&seen)?.is_some(), "a segment more is gone");
    fs::write(&first, text)?;
    // The head of another node's removal, or of this one's end, is no word about what was removed.
    fs::copy(place.journal_root().join("serve-1/head"), &pruned)?;
    assert!(place.problem(&seen)?.is_some());
    Ok(())
}

#[tokio::test]
async fn gate_15_what_does_not_verify_is_kept() -> Outcome {
    let place = Place::new()?;
    written(&place).await?.close().await?;
    let index = place.index().await?;
    ship(&place.journal_root(), &index).await?;
    let first = place.segments("serve-1")?.into_iter().next().ok_or("no segment")?;
    fs::write(&first, fs::read_to_string(&first)?.replace("anna", "anne"))?;
    let seen = index.seen().await?;
    assert!(prune(&place.journal_root(), place.keyring.as_ref(), "none", &seen, Timestamp::MAX)?.is_empty());
    assert!(first.exists() && place.problem(&seen)?.is_some());
    Ok(())
}

#[tokio::test]
async fn gate_15_removal_that_was_interrupted_is_finished() -> Outcome {
    let place = Place::new()?;
    written(&place).await?.close().await?;
    let index = place.index().await?;
    ship(&place.journal_root(), &index).await?;
    let seen = index.seen().await?;
    let first = place.segments("serve-1")?.into_iter().next().ok_or("no segment")?;
    let text = fs::read(&first)?;
    prune(&place.journal_root(), place.keyring.as_ref(), "none", &seen, at(5))?;
    // As if the process had ended between the signed word and the removal.
    fs::write(&first, text)?;
    assert_eq!(place.problem(&seen)?, None);
    let again = prune(&place.journal_root(), place.keyring.as_ref(), "none", &seen, at(5))?;
    assert_eq!(again.len(), 1);
    assert!(!first.exists());
    assert_eq!(place.problem(&seen)?, None);
    Ok(())
}
