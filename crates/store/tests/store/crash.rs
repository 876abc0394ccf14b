//! Killed at random moments, again and again: what was acknowledged is there, and the chain is whole.
//!
//! The test starts its own binary with one ignored test, which writes until it is killed and says on
//! its output what was acknowledged.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use toolwarden_store::index::{Filter, ship};
use toolwarden_store::{Journal, JournalOptions};
use toolwarden_vault::FileKeyring;

use crate::kit::{Outcome, Place, StepClock, intent, outcome};

const KILLS: u64 = 40;

fn start(place: &Place) -> Result<Child, Box<dyn std::error::Error>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["--exact", "crash::writes_until_it_is_killed", "--ignored", "--nocapture", "--test-threads=1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    if let Some(mut input) = child.stdin.take() {
        writeln!(input, "{}", place.base().display())?;
    }
    Ok(child)
}

/// Lets the child write for a while and kills it; gives what it acknowledged, by sequence.
fn kill_after(mut child: Child, acknowledged: u64) -> Result<HashMap<u64, String>, Box<dyn std::error::Error>> {
    let mut seen = HashMap::new();
    let Some(output) = child.stdout.take() else { return Ok(seen) };
    let mut output = BufReader::new(output);
    let mut line = String::new();
    if acknowledged == 0 {
        // While it starts or recovers.
        std::thread::park_timeout(Duration::from_millis(15));
    }
    while (seen.len() as u64) < acknowledged {
        line.clear();
        if output.read_line(&mut line)? == 0 {
            break;
        }
        seen.extend(parse(&line));
    }
    child.kill()?;
    child.wait()?;
    // What it had said before it died counts too; the last line may be half.
    loop {
        line.clear();
        if output.read_line(&mut line)? == 0 {
            return Ok(seen);
        }
        seen.extend(parse(&line));
    }
}

fn parse(line: &str) -> Option<(u64, String)> {
    let (sequence, hash) = line.strip_prefix("acknowledged ")?.strip_suffix('\n')?.split_once(' ')?;
    Some((sequence.parse().ok()?, hash.to_owned()))
}

#[tokio::test]
async fn gate_15_nothing_acknowledged_is_lost_to_a_kill() -> Outcome {
    let place = Place::new()?;
    let index = place.index().await?;
    let mut acknowledged: HashMap<u64, String> = HashMap::new();
    for round in 0..KILLS {
        let wanted = if round % 5 == 4 { 0 } else { (round * 7919) % 900 + 1 };
        let seen = kill_after(start(&place)?, wanted)?;
        assert!(wanted == 0 || !seen.is_empty(), "round {round}: the child wrote nothing");
        acknowledged.extend(seen);
        // Opening recovers what the kill left.
        let (journal, recovery) = open(&place.base())?;
        assert_eq!((recovery.node.as_str(), recovery.damaged.len()), ("serve-1", 0), "{recovery:?}");
        journal.close().await?;
        assert_eq!(place.problem(&[])?, None, "round {round}");
        if round % 4 == 0 {
            ship(&place.journal_root(), &index).await?;
        }
    }
    assert!(ship(&place.journal_root(), &index).await?.problems.is_empty());
    assert_eq!(place.problem(&index.seen().await?)?, None);
    let text = place.text("serve-1")?;
    let lines: HashSet<&str> = text.lines().collect();
    let hashes: HashMap<u64, &str> = lines.iter().filter_map(|line| sequence_and_hash(line)).collect();
    assert!(acknowledged.len() > 5000, "{}", acknowledged.len());
    for (sequence, hash) in &acknowledged {
        assert_eq!(hashes.get(sequence).copied(), Some(hash.as_str()), "record {sequence}");
    }
    let rows = index.query(&Filter::default(), 1_000_000, None).await?;
    let places: HashSet<u64> = rows.iter().map(|row| row.sequence).collect();
    assert_eq!(places.len(), rows.len(), "each once");
    assert!(acknowledged.keys().all(|sequence| places.contains(sequence)));
    assert!(rows.iter().all(|row| row.kind != "intent" || row.status.is_some()), "every call has an end");
    assert!(rows.iter().any(|row| row.status.as_deref() == Some("unknown")));
    Ok(())
}

fn sequence_and_hash(line: &str) -> Option<(u64, &str)> {
    let (hash, json) = line.split_once(" {\"seq\":")?;
    Some((json.split_once(',')?.0.parse().ok()?, hash))
}

fn open(base: &Path) -> Result<(Journal, toolwarden_store::Recovery), Box<dyn std::error::Error>> {
    let keyring = Arc::new(FileKeyring::open(&base.join("config"))?);
    let mut options = JournalOptions::new(base.join("journal"), "serve");
    options.segment_bytes = 200_000;
    options.checkpoint_records = 100;
    Ok(Journal::open(&options, keyring, Arc::new(StepClock::default()))?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
#[ignore = "the child of the test above: it writes until it is killed"]
async fn writes_until_it_is_killed() -> Outcome {
    let mut base = String::new();
    std::io::stdin().lock().read_line(&mut base)?;
    if base.is_empty() {
        return Ok(());
    }
    let (journal, _) = open(Path::new(base.trim_end()))?;
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            let journal = journal.clone();
            tokio::spawn(async move {
                loop {
                    let call = journal.next_call();
                    let receipt = journal.record(&intent(call)).await.map_err(std::io::Error::other)?;
                    let said = format!("acknowledged {} {}\n", receipt.sequence, receipt.hash);
                    std::io::stdout().lock().write_all(said.as_bytes())?;
                    journal.note(&outcome(call)).map_err(std::io::Error::other)?;
                }
            })
        })
        .collect();
    for task in tasks {
        let ended: Result<(), std::io::Error> = task.await?;
        ended?;
    }
    Ok(())
}
