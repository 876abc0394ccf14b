//! Every change to a closed journal is found: bytes, lines, segments, the head, the whole chain.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toolwarden_store::Journal;
use toolwarden_store::journal::{Problem, verify};
use toolwarden_vault::FileKeyring;

use crate::kit::{Outcome, Place, StepClock, intent, outcome};

/// A closed journal of several segments.
async fn written() -> Result<Place, Box<dyn std::error::Error>> {
    let place = Place::new()?;
    let mut options = place.options();
    options.segment_bytes = 1800;
    options.checkpoint_records = 4;
    let (journal, _) = place.open_with(&options)?;
    for call in 1..=8 {
        journal.record(&intent(call)).await?;
        journal.note(&outcome(call))?;
    }
    journal.close().await?;
    assert_eq!(place.problem(&[])?, None);
    assert!(place.segments("serve-1")?.len() >= 3);
    Ok(place)
}

#[tokio::test]
async fn gate_15_every_changed_byte_is_found() -> Outcome {
    let place = written().await?;
    let mut files = place.segments("serve-1")?;
    files.push(place.journal_root().join("serve-1/head"));
    for path in files {
        let good = fs::read(&path)?;
        for position in 0..good.len() {
            let mut bad = good.clone();
            if let Some(byte) = bad.get_mut(position) {
                *byte ^= 1;
            }
            fs::write(&path, &bad)?;
            let problem = place.problem(&[])?;
            assert!(problem.is_some(), "{path:?} byte {position}");
            assert!(is_at(problem.as_ref(), &path), "{path:?} byte {position}: {problem:?}");
        }
        fs::write(&path, &good)?;
    }
    assert_eq!(place.problem(&[])?, None);
    Ok(())
}

/// Whether a problem is told of the changed file, or of the line after it.
fn is_at(problem: Option<&Problem>, path: &Path) -> bool {
    let Some(problem) = problem else { return false };
    !problem.sentence.is_empty() && (path.ends_with(&problem.file) || problem.line <= 1)
}

#[tokio::test]
async fn gate_15_lines_moved_removed_or_repeated_are_found() -> Outcome {
    let place = written().await?;
    for path in place.segments("serve-1")? {
        let good = fs::read_to_string(&path)?;
        let lines: Vec<&str> = good.split_inclusive('\n').collect();
        for position in 0..lines.len() {
            let mut removed = lines.clone();
            removed.remove(position);
            let mut repeated = lines.clone();
            repeated.insert(position, lines.get(position).copied().unwrap_or_default());
            let mut swapped = lines.clone();
            let other = (position + 1) % lines.len();
            swapped.swap(position, other);
            let cut: Vec<&str> = lines.iter().copied().take(position).collect();
            for (what, changed) in [("removed", removed), ("repeated", repeated), ("swapped", swapped), ("cut", cut)] {
                fs::write(&path, changed.concat())?;
                assert!(place.problem(&[])?.is_some(), "{what} line {} of {path:?}", position + 1);
            }
        }
        fs::write(&path, &good)?;
    }
    Ok(())
}

#[tokio::test]
async fn gate_15_the_first_bad_place_is_named() -> Outcome {
    let place = written().await?;
    let path = place.segments("serve-1")?.get(1).cloned().unwrap_or_default();
    let changed = fs::read_to_string(&path)?.replacen("anna", "bert", 1);
    let line = changed.lines().position(|line| line.contains("bert")).unwrap_or_default() + 1;
    let text = changed.lines().nth(line - 1).unwrap_or_default();
    let sequence = text.split(['{', ',', ':']).nth(2).unwrap_or_default().to_owned();
    fs::write(&path, changed)?;
    let problem = place.problem(&[])?;
    let told = problem.map(|problem| (problem.file, problem.line, problem.sequence.to_string(), problem.sentence));
    let sentence = "the hash does not fit the record and the line before: something was changed, removed or inserted";
    assert_eq!(told, Some(("segment-00000002.log".to_owned(), line as u64, sequence, sentence.to_owned())));
    Ok(())
}

#[tokio::test]
async fn gate_15_missing_segments_heads_and_ends_are_found() -> Outcome {
    let place = written().await?;
    let mut files = place.segments("serve-1")?;
    files.push(place.journal_root().join("serve-1/head"));
    for path in &files {
        let good = fs::read(path)?;
        fs::remove_file(path)?;
        assert!(place.problem(&[])?.is_some(), "{path:?} removed");
        fs::write(path, &good)?;
    }
    let last = files.iter().rev().nth(1).cloned().unwrap_or_default();
    let good = fs::read(&last)?;
    for length in 0..good.len() {
        fs::write(&last, good.get(..length).unwrap_or_default())?;
        assert!(place.problem(&[])?.is_some(), "cut to {length} bytes");
    }
    fs::write(&last, &good)?;
    // All segments but the first, and all of them.
    for keep in [1, 0] {
        for path in place.segments("serve-1")?.iter().skip(keep) {
            fs::remove_file(path)?;
        }
        assert!(place.problem(&[])?.is_some(), "{keep} segments left");
    }
    Ok(())
}

#[tokio::test]
async fn gate_15_a_chain_rebuilt_with_another_key_is_found() -> Outcome {
    let place = written().await?;
    let node = place.journal_root().join("serve-1");
    let foreign_root = place.base().join("foreign");
    let foreign = Arc::new(FileKeyring::open(&place.base().join("foreign-config"))?);
    let mut options = place.options();
    options.directory = foreign_root.clone();
    let (journal, _) = Journal::open(&options, foreign, Arc::new(StepClock::default()))?;
    journal.record(&intent(1)).await?;
    journal.close().await?;
    let good_head = fs::read(node.join("head"))?;
    for path in place.segments("serve-1")? {
        fs::remove_file(path)?;
    }
    copy(&foreign_root.join("serve-1"), &node)?;
    assert!(place.problem(&[])?.is_some_and(|problem| problem.sentence.contains("rebuilt")));
    // With the old head, and with none.
    fs::write(node.join("head"), good_head)?;
    assert!(place.problem(&[])?.is_some());
    fs::remove_file(node.join("head"))?;
    assert!(place.problem(&[])?.is_some());
    // Nothing but a first line, as if the node had only begun.
    let segment = node.join("segment-00000001.log");
    let first: String = fs::read_to_string(&segment)?.split_inclusive('\n').take(1).collect();
    fs::write(&segment, first)?;
    assert!(place.problem(&[])?.is_some_and(|problem| problem.sentence.contains("the header is not signed")));
    Ok(())
}

/// Edits a record, leaves out the checkpoints, and chains everything anew behind the good header.
fn rechained(text: &str) -> String {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    let mut hash = header.split(' ').next().unwrap_or_default().to_owned();
    let mut forged = format!("{header}\n");
    let kept = lines.filter(|line| !line.contains("\"kind\":\"checkpoint\""));
    for (line, sequence) in kept.zip(2..) {
        let members = line.split_once(',').map(|(_, members)| members.replace("anna", "bert")).unwrap_or_default();
        let json = format!("{{\"seq\":{sequence},{members}");
        let mut bytes: Vec<u8> = (0..hash.len() / 2)
            .filter_map(|place| u8::from_str_radix(hash.get(place * 2..place * 2 + 2)?, 16).ok())
            .collect();
        bytes.extend_from_slice(json.as_bytes());
        hash = toolwarden_core::Digest::of_bytes(&bytes).to_string();
        forged.push_str(&format!("{hash} {json}\n"));
    }
    forged
}

#[tokio::test]
async fn gate_15_a_chain_rebuilt_without_a_key_is_found() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    for call in 1..=5 {
        journal.record(&intent(call)).await?;
    }
    journal.close().await?;
    let segment = place.segments("serve-1")?.pop().unwrap_or_default();
    fs::write(&segment, rechained(&fs::read_to_string(&segment)?))?;
    let text = place.text("serve-1")?;
    assert!(text.contains("bert") && !text.contains("anna"));
    let problem = place.problem(&[])?;
    let told = problem.as_ref().is_some_and(|problem| problem.sentence.contains("the signed head names"));
    assert!(told, "{problem:?}");
    fs::remove_file(place.journal_root().join("serve-1/head"))?;
    assert!(place.problem(&[])?.is_some_and(|problem| problem.sentence.contains("head is missing")));
    // Nor is such a chain continued.
    let (_journal, recovery) = place.open()?;
    assert_eq!((recovery.node.as_str(), recovery.damaged.len()), ("serve-2", 1));
    Ok(())
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)?.flatten() {
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

#[tokio::test]
async fn gate_15_another_nodes_journal_does_not_pass_for_this_ones() -> Outcome {
    let place = written().await?;
    let root = place.journal_root();
    fs::create_dir(root.join("serve-7"))?;
    copy(&root.join("serve-1"), &root.join("serve-7"))?;
    let report = verify(&root, place.keyring.as_ref(), &[])?;
    let bad: Vec<&str> =
        report.nodes.iter().filter(|node| node.problem.is_some()).map(|node| node.node.as_str()).collect();
    assert_eq!(bad, ["serve-7"]);
    Ok(())
}

/// Without an anchor an older state of the whole directory passes; the index remembers more.
#[tokio::test]
async fn gate_15_an_older_state_put_back_is_found_by_the_index() -> Outcome {
    let place = Place::new()?;
    let (journal, _) = place.open()?;
    journal.record(&intent(1)).await?;
    journal.close().await?;
    let node = place.journal_root().join("serve-1");
    let old: Vec<(PathBuf, Vec<u8>)> = fs::read_dir(&node)?
        .flatten()
        .map(|entry| fs::read(entry.path()).map(|bytes| (entry.path(), bytes)))
        .collect::<Result<_, _>>()?;
    let (journal, _) = place.open()?;
    journal.record(&intent(journal.next_call())).await?;
    journal.close().await?;
    let index = place.index().await?;
    toolwarden_store::index::ship(&place.journal_root(), &index).await?;
    let seen = index.seen().await?;
    assert_eq!(place.problem(&seen)?, None);
    for (path, bytes) in old {
        fs::write(path, bytes)?;
    }
    assert_eq!(place.problem(&[])?, None, "nothing in the directory tells");
    let problem = place.problem(&seen)?;
    assert!(problem.is_some_and(|problem| problem.sentence.contains("the index has record")));
    // A journal written anew over the same numbers, by the owner of the key.
    fs::remove_dir_all(&node)?;
    let (journal, _) = place.open()?;
    for call in 1..20 {
        journal.record(&intent(call + 50)).await?;
    }
    journal.close().await?;
    assert!(place.problem(&seen)?.is_some_and(|problem| problem.sentence.contains("rebuilt")));
    fs::remove_dir_all(&node)?;
    assert!(place.problem(&seen)?.is_some_and(|problem| problem.sentence.contains("gone")));
    Ok(())
}
