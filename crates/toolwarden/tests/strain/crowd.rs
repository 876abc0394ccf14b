//! Many at once: a thousand open sessions with 256 calls on their way, and one session that lasts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::caller::{Fault, Session};
use crate::house::{Gateway, House, PATIENCE, PERMISSIVE, at_url, by_script, open_many_files, report, soak};
use crate::journal::Records;
use crate::scripted::SCRIPT;
use crate::upstream::{MEET, Upstream};

const SESSIONS: usize = 1000;
const IN_FLIGHT: usize = 256;
/// So many of the sessions have a stream of news open.
const STREAMS: usize = 100;
const HALF: Duration = Duration::from_secs(5);
/// MiB. An unoptimised build takes about a third of it.
const MOST_MEMORY: u64 = 280;
const MOST_GROWTH: u64 = 60;

/// Opens sessions, as many at a time as there will be calls.
async fn open_sessions(base: &str) -> Result<Vec<Vec<Session>>> {
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|worker| {
            let base = base.to_owned();
            tokio::spawn(async move {
                let mut sessions = Vec::new();
                for _ in (worker..SESSIONS).step_by(IN_FLIGHT) {
                    sessions.push(Session::open(&base, "echo").await?);
                }
                Ok::<_, Fault>(sessions)
            })
        })
        .collect();
    let mut workers = Vec::new();
    for task in tasks {
        workers.push(task.await??);
    }
    Ok(workers)
}

/// Each worker has one call on its way, on its sessions in turn, until the time is over.
async fn load(workers: Vec<Vec<Session>>, time: Duration, answers: &Arc<AtomicU64>) -> Result<Vec<Vec<Session>>> {
    let end = Instant::now() + time;
    let tasks: Vec<_> = workers
        .into_iter()
        .enumerate()
        .map(|(worker, mut sessions)| {
            let answers = answers.clone();
            tokio::spawn(async move {
                // All of them are on their way at once: the server answers none before it has all.
                if let Some(session) = sessions.first_mut() {
                    let met = session.call(MEET, &json!({"of": IN_FLIGHT})).await?;
                    if met.pointer("/result/content/0/text").and_then(Value::as_str) != Some("met") {
                        return Err(Fault::Wrong(met.to_string()));
                    }
                    answers.fetch_add(1, Ordering::Relaxed);
                }
                while Instant::now() < end {
                    for (place, session) in sessions.iter_mut().enumerate() {
                        let number = answers.fetch_add(1, Ordering::Relaxed);
                        session.echo(&format!("{worker}-{place}-{number}")).await?;
                    }
                }
                Ok(sessions)
            })
        })
        .collect();
    let mut workers = Vec::new();
    for task in tasks {
        workers.push(task.await??);
    }
    Ok(workers)
}

/// Reads a stream until it says this; comments keep it alive before. False if it ends.
async fn hears(stream: &mut Incoming, words: &str) -> bool {
    while let Some(Ok(frame)) = stream.frame().await {
        let data = frame.into_data().unwrap_or_default();
        if String::from_utf8_lossy(&data).contains(words) {
            return true;
        }
    }
    false
}

fn assert_memory(gateway: &Gateway, first: u64) {
    let (peak, now) = (gateway.peak(), gateway.memory());
    report(&format!("MiB: {first} after one half, {now} after the other, at most {peak}"));
    assert!(peak < MOST_MEMORY, "the gateway took {peak} MiB");
    assert!(now < first + MOST_GROWTH, "the gateway grows: {first} MiB after one half, {now} MiB after the other");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_sessions_and_256_calls_hold_steady() -> Result<()> {
    open_many_files();
    let upstream = Upstream::start().await?;
    let house = House::new(&format!("{PERMISSIVE}{}", at_url("echo", &upstream.url)));
    let gateway = house.serve().await;
    let workers = open_sessions(gateway.base()).await?;
    assert_eq!(upstream.sessions(), SESSIONS as u64);
    let mut streams = Vec::new();
    for session in workers.iter().flatten().take(STREAMS) {
        streams.push(session.news().await?);
    }

    let answers = Arc::new(AtomicU64::new(0));
    let workers = load(workers, HALF * soak(), &answers).await?;
    let first = gateway.memory();
    let workers = load(workers, HALF * soak(), &answers).await?;
    assert_memory(&gateway, first);

    assert_eq!(upstream.tell_all().await, STREAMS, "the gateway holds another number of streams");
    for stream in &mut streams {
        let is_told = timeout(PATIENCE, hears(stream, "list_changed")).await?;
        assert!(is_told, "a stream ended");
    }
    drop((workers, streams));
    gateway.stop().await;
    let verified = house.run(&["audit", "verify"]).await;
    assert!(verified.succeeded, "{verified:?}");
    let outcomes = Records::of(&house).outcomes().values().filter(|status| **status == "ok").count();
    assert_eq!(outcomes as u64, answers.load(Ordering::Relaxed));
    assert!(outcomes > 4 * IN_FLIGHT, "only {outcomes} calls");
    report(&format!("{outcomes} calls"));
    Ok(())
}

/// A stream of a session can be resumed, so the gateway keeps it; it must not keep all of them.
#[tokio::test]
async fn a_session_that_lasts_holds_steady() -> Result<()> {
    let house = House::new(&format!("{PERMISSIVE}{}", by_script("child", SCRIPT, &[])));
    let gateway = house.serve().await;
    let mut session = Session::open(gateway.base(), "child").await?;
    session.echo("first").await?;
    let before = gateway.memory();
    for number in 0..300 {
        let params = json!({"name": "large", "arguments": {}, "_meta": {"progressToken": number}});
        let (answer, headers) = session.request("tools/call", &params).await?;
        let size = answer.pointer("/result/content/0/text").and_then(Value::as_str).map_or(0, str::len);
        assert_eq!(
            (size, headers.get("content-type").is_some_and(|kind| kind == "text/event-stream")),
            (500_000, true)
        );
    }
    let after = gateway.memory();
    report(&format!("MiB: {before} before, {after} after"));
    assert!(after < before + 60, "the gateway grew from {before} to {after} MiB in one session");
    gateway.stop().await;
    Ok(())
}
