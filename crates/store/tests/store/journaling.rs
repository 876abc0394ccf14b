//! Writing and opening again: slots, segments, call ids, levels, recovery, signing.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use toolwarden_store::journal::verify;
use toolwarden_store::{Journal, JournalError, SyncLevel};

use crate::kit::{Outcome, Place, intent, outcome, refusal};

/// Ends the process's part without the last signature, as a kill would.
fn abandon(journal: Journal) {
    std::mem::forget(journal);
}

#[tokio::test]
async fn gate_15_records_are_there_when_they_are_acknowledged() -> Outcome {
    for sync in [SyncLevel::Os, SyncLevel::Every100ms, SyncLevel::Always] {
        let place = Place::new()?;
        let mut options = place.options();
        options.sync = sync;
        let (journal, recovery) = place.open_with(&options)?;
        assert!(recovery.is_clean());
        for _ in 0..10 {
            let call = journal.next_call();
            let receipt = journal.record(&intent(call)).await?;
            let text = place.text("serve-1")?;
            assert!(text.contains(&format!("{} {{\"seq\":{},\"kind\":\"intent\"", receipt.hash, receipt.sequence)));
            journal.note(&outcome(call))?;
        }
        journal.record(&refusal(journal.next_call())).await?;
        journal.close().await?;
        assert_eq!(place.problem(&[])?, None);
        assert_eq!(place.text("serve-1")?.matches("\"kind\":\"outcome\"").count(), 10);
    }
    Ok(())
}

#[tokio::test]
async fn an_outcome_is_written_soon_without_another_record() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    journal.record(&intent(1)).await?;
    journal.note(&outcome(1))?;
    for _ in 0..400 {
        if place.text("serve-1")?.contains("\"kind\":\"outcome\"") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(place.text("serve-1")?.contains("\"kind\":\"outcome\""));
    Ok(())
}

#[tokio::test]
async fn receipts_name_the_line() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    let receipt = journal.record(&intent(1)).await?;
    let json = serde_json::to_value(&receipt)?;
    assert_eq!(json.get("node").and_then(|node| node.as_str()), Some("serve-1"));
    assert_eq!(json.get("sequence").and_then(serde_json::Value::as_u64), Some(receipt.sequence));
    assert_eq!(receipt.to_string(), format!("serve-1/{}/{}", receipt.sequence, receipt.hash));
    Ok(())
}

#[tokio::test]
async fn each_process_has_a_slot_of_its_own_and_gives_it_back() -> Outcome {
    let place = Place::new()?;
    let (first, _) = place.open()?;
    let (second, _) = place.open()?;
    assert_eq!((first.node().as_ref(), second.node().as_ref()), ("serve-1", "serve-2"));
    first.record(&intent(1)).await?;
    second.record(&intent(1)).await?;
    first.close().await?;
    let (third, recovery) = place.open()?;
    assert_eq!(third.node().as_ref(), "serve-1");
    assert_eq!(recovery.unknown_calls, [1]);
    let mut options = place.options();
    for name in ["", "a/b", "..", "a--b", "-a", "a_b", "ä"] {
        options.base_name = name.to_owned();
        assert!(matches!(place.open_with(&options), Err(JournalError::Name(_))), "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn self_3_files_are_owner_only_and_others_are_refused() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    journal.record(&intent(1)).await?;
    journal.close().await?;
    let node = place.journal_root().join("serve-1");
    for entry in fs::read_dir(&node)?.flatten() {
        assert_eq!(entry.metadata()?.permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
    }
    assert_eq!(fs::metadata(&node)?.permissions().mode() & 0o777, 0o700);
    fs::set_permissions(&node, fs::Permissions::from_mode(0o750))?;
    let error = place.open().err().map(|error| error.to_string()).unwrap_or_default();
    assert!(error.contains("chmod 700"), "{error}");
    Ok(())
}

#[tokio::test]
async fn call_ids_are_never_given_out_twice() -> Outcome {
    let place = Place::new()?;
    let mut options = place.options();
    options.segment_bytes = 2000;
    let mut seen = HashSet::new();
    for _ in 0..5 {
        let (journal, _) = place.open_with(&options)?;
        for _ in 0..7 {
            let call = journal.next_call();
            assert!(seen.insert(call), "{call}");
            journal.record(&intent(call)).await?;
            journal.note(&outcome(call))?;
        }
        journal.close().await?;
    }
    assert!(place.segments("serve-1")?.len() > 3);
    assert_eq!(place.problem(&[])?, None);
    Ok(())
}

#[tokio::test]
async fn segments_stay_below_their_size() -> Outcome {
    let place = Place::new()?;
    let mut options = place.options();
    options.segment_bytes = 4000;
    options.checkpoint_records = 3;
    let (journal, _) = place.open_with(&options)?;
    for call in 1..=200 {
        journal.record(&intent(call)).await?;
        journal.note(&outcome(call))?;
    }
    journal.close().await?;
    let segments = place.segments("serve-1")?;
    assert!(segments.len() > 10);
    for path in segments {
        // A checkpoint may still go behind the last record.
        assert!(fs::metadata(&path)?.len() < 4800, "{path:?}: {}", fs::metadata(&path)?.len());
    }
    assert_eq!(place.problem(&[])?, None);
    Ok(())
}

#[tokio::test]
async fn a_torn_line_is_put_aside_and_told() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    journal.record(&intent(1)).await?;
    journal.note(&outcome(1))?;
    journal.close().await?;
    let segment = place.segments("serve-1")?.pop().unwrap_or_default();
    OpenOptions::new().append(true).open(&segment)?.write_all(b"0123 {\"seq\"")?;
    let problem = place.problem(&[])?;
    assert!(problem.is_some_and(|problem| problem.sentence.contains("unfinished")));
    let (journal, recovery) = place.open()?;
    let torn = recovery.torn.clone().unwrap_or_default();
    assert_eq!(fs::read(&torn)?, b"0123 {\"seq\"");
    assert!(recovery.unknown_calls.is_empty() && recovery.damaged.is_empty());
    journal.record(&intent(journal.next_call())).await?;
    journal.close().await?;
    assert_eq!(place.problem(&[])?, None);
    assert!(place.text("serve-1")?.contains("put aside as torn-1"));
    Ok(())
}

#[tokio::test]
async fn calls_that_were_under_way_end_as_unknown() -> Outcome {
    let place = Place::new()?;
    let mut options = place.options();
    options.segment_bytes = 2000;
    let (journal, _) = place.open_with(&options)?;
    // The first call is still open three segments later.
    let open = journal.next_call();
    journal.record(&intent(open)).await?;
    for _ in 0..20 {
        let call = journal.next_call();
        journal.record(&intent(call)).await?;
        journal.note(&outcome(call))?;
    }
    let last = journal.next_call();
    journal.record(&intent(last)).await?;
    journal.close().await?;
    assert!(place.segments("serve-1")?.len() > 3);
    let (journal, recovery) = place.open_with(&options)?;
    assert_eq!(recovery.unknown_calls, [open, last]);
    journal.close().await?;
    assert_eq!(place.text("serve-1")?.matches("\"status\":\"unknown\"").count(), 2);
    let (_journal, recovery) = place.open_with(&options)?;
    assert!(recovery.is_clean(), "told once: {recovery:?}");
    Ok(())
}

#[tokio::test]
async fn a_damaged_chain_is_left_as_it_is_and_told_in_the_next_slot() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    for call in 1..=5 {
        journal.record(&intent(call)).await?;
    }
    journal.close().await?;
    let segment = place.segments("serve-1")?.pop().unwrap_or_default();
    let cut: String = fs::read_to_string(&segment)?.split_inclusive('\n').take(3).collect();
    fs::write(&segment, &cut)?;
    let (journal, recovery) = place.open()?;
    assert_eq!(recovery.node, "serve-2");
    assert!(recovery.damaged.iter().any(|(node, why)| node == "serve-1" && why.contains("records are missing")));
    journal.close().await?;
    assert_eq!(fs::read_to_string(&segment)?, cut, "evidence stays");
    assert!(place.text("serve-2")?.contains("the journal of serve-1 was left as it is"));
    assert!(place.problem(&[])?.is_some());
    Ok(())
}

#[tokio::test]
async fn an_empty_last_segment_is_no_damage() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    journal.record(&intent(1)).await?;
    journal.close().await?;
    for content in ["", "0123"] {
        fs::write(place.journal_root().join("serve-1/segment-00000002.log"), content)?;
        let (journal, recovery) = place.open()?;
        assert_eq!((journal.node().as_ref(), recovery.torn.is_some()), ("serve-1", !content.is_empty()));
        journal.record(&refusal(journal.next_call())).await?;
        journal.close().await?;
        assert_eq!(place.problem(&[])?, None);
    }
    Ok(())
}

/// Killed in the very first moment of a node: one line, and no head yet.
#[tokio::test]
async fn a_node_that_has_only_begun_is_no_damage() -> Outcome {
    let place = Place::new()?;
    place.open()?.0.close().await?;
    let segment = place.segments("serve-1")?.pop().unwrap_or_default();
    assert_eq!(fs::read_to_string(&segment)?.lines().count(), 1, "a start alone writes nothing more");
    fs::remove_file(place.journal_root().join("serve-1/head"))?;
    assert_eq!(place.problem(&[])?, None);
    let (journal, recovery) = place.open()?;
    assert!(recovery.is_clean() && journal.node().as_ref() == "serve-1");
    journal.record(&intent(1)).await?;
    abandon(journal);
    assert_eq!(place.problem(&[])?, None);
    assert!(place.journal_root().join("serve-1/head").exists());
    Ok(())
}

#[tokio::test]
async fn checkpoints_follow_the_number_of_records_and_the_end() -> Outcome {
    let place = Place::new()?;
    let mut options = place.options();
    options.checkpoint_records = 10;
    let (journal, _) = place.open_with(&options)?;
    for call in 1..=100 {
        journal.record(&refusal(call)).await?;
    }
    journal.flush().await?;
    for _ in 0..400 {
        let report = verify(&place.journal_root(), place.keyring.as_ref(), &[])?;
        if report.nodes.iter().all(|node| node.in_use && node.signed_through > 90) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    journal.record(&refusal(101)).await?;
    journal.close().await?;
    let report = verify(&place.journal_root(), place.keyring.as_ref(), &[])?;
    assert!(report.is_whole());
    for node in &report.nodes {
        assert_eq!((node.signed_through, node.in_use), (node.last_sequence, false), "the end is signed");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_writers_and_a_verifier_at_once() -> Outcome {
    let place = Place::new()?;
    let mut options = place.options();
    options.segment_bytes = 100_000;
    options.checkpoint_records = 50;
    let (journal, _) = place.open_with(&options)?;
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let journal = journal.clone();
            tokio::spawn(async move {
                for _ in 0..1500 {
                    let call = journal.next_call();
                    journal.record(&intent(call)).await?;
                    journal.note(&outcome(call))?;
                }
                Ok::<_, JournalError>(())
            })
        })
        .collect();
    while writers.iter().any(|writer| !writer.is_finished()) {
        let (root, keyring) = (place.journal_root(), place.keyring.clone());
        let report = tokio::task::spawn_blocking(move || verify(&root, keyring.as_ref(), &[])).await??;
        assert!(report.is_whole(), "{report:?}");
    }
    for writer in writers {
        writer.await??;
    }
    journal.close().await?;
    assert_eq!(place.problem(&[])?, None);
    let text = place.text("serve-1")?;
    assert_eq!(text.matches("\"kind\":\"intent\"").count(), 6000);
    assert_eq!(text.matches("\"kind\":\"outcome\"").count(), 6000);
    Ok(())
}

#[tokio::test]
async fn a_closed_journal_takes_nothing_from_any_clone() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    let other = journal.clone();
    journal.close().await?;
    assert!(matches!(other.record(&intent(1)).await, Err(JournalError::Closed)));
    assert!(matches!(other.note(&outcome(1)), Err(JournalError::Closed)));
    assert!(matches!(other.flush().await, Err(JournalError::Closed)));
    Ok(())
}

#[tokio::test]
async fn a_record_longer_than_a_line_is_refused() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    let detail = "x".repeat(1024 * 1024);
    let mut record = intent(1);
    record.detail = Some(&detail);
    assert!(matches!(journal.record(&record).await, Err(JournalError::TooLong)));
    journal.record(&refusal(2)).await?;
    journal.close().await?;
    assert_eq!(place.problem(&[])?, None);
    Ok(())
}

#[tokio::test]
async fn a_journal_that_was_abandoned_is_whole_for_a_verifier() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    journal.record(&intent(1)).await?;
    abandon(journal);
    assert_eq!(place.problem(&[])?, None);
    Ok(())
}
