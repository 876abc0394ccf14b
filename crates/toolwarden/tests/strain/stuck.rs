//! Servers that do not answer: their calls end by the limit of time, their callers may leave, others go on.

use std::time::Duration;

use anyhow::Result;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::time::timeout;

use crate::caller::{Bystanders, Fault, Session, error_of};
use crate::house::{House, PATIENCE, PERMISSIVE, at_url};
use crate::journal::Records;
use crate::upstream::{Upstream, bad};

const CALLS: usize = 20;
const LATE: &str = "the server did not answer in time";

/// Calls of one tool, all at once; each must be told that the server did not answer.
async fn time_out(base: &str, server: &'static str, tool: &'static str, padding: usize) -> Result<()> {
    let mut sessions = Vec::new();
    for _ in 0..CALLS {
        sessions.push(Session::open(base, server).await?);
    }
    let calls: Vec<_> = sessions.into_iter().map(|session| tokio::spawn(late(session, tool, padding))).collect();
    for call in calls {
        call.await??;
    }
    Ok(())
}

async fn late(mut session: Session, tool: &'static str, padding: usize) -> Result<(), Fault> {
    let answer = session.call(tool, &json!({"padding": "x".repeat(padding)})).await?;
    match error_of(&answer).is_some_and(|words| words.starts_with(LATE)) {
        true => Ok(()),
        false => Err(Fault::Wrong(answer.to_string())),
    }
}

/// A large answer of which half came: it ends, and not as if it were whole.
async fn break_off(base: &str) -> Result<()> {
    let calls: Vec<_> = (0..CALLS)
        .map(|_| {
            let base = base.to_owned();
            tokio::spawn(async move {
                let mut session = Session::open(&base, "stuck").await?;
                let response = session.begin(bad::STALLED, &json!({})).await?;
                let read = timeout(PATIENCE, response.into_body().collect()).await;
                match read.map_err(|_| Fault::Silence)? {
                    Ok(whole) => Err(Fault::Wrong(format!("{} bytes as if they were whole", whole.to_bytes().len()))),
                    Err(_) => Ok(()),
                }
            })
        })
        .collect();
    for call in calls {
        call.await??;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_answer_is_alone() -> Result<()> {
    let (healthy, stuck) = (Upstream::start().await?, Upstream::start().await?);
    let config = [
        PERMISSIVE.to_owned(),
        at_url("healthy", &healthy.url),
        at_url("stuck", &stuck.url),
        "timeout = \"2s\"\n".to_owned(),
        at_url("patient", &stuck.url),
    ];
    let house = House::new(&config.concat());
    let gateway = house.serve().await;
    let bystanders = Bystanders::at(gateway.base(), "healthy");
    bystanders.served(20).await?;

    // Nobody waits for these: their callers leave, which ends them.
    let mut left = Vec::new();
    for number in 0..CALLS {
        let mut session = Session::open(gateway.base(), "patient").await?;
        let number = format!("left {number}");
        left.push(tokio::spawn(async move { session.call(bad::SILENT, &json!({ "number": number })).await }));
    }
    // They leave once the server has all of them, however long that takes.
    let arrived = async {
        while stuck.calls().len() < CALLS {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, arrived).await?;
    for call in left {
        call.abort();
        assert!(call.await.is_err_and(|ended| ended.is_cancelled()), "a server that never answers answered");
    }
    bystanders.served(20).await?;

    let at_once = tokio::try_join!(
        time_out(gateway.base(), "stuck", bad::SILENT, 0),
        time_out(gateway.base(), "stuck", bad::STALLED_ERROR, 0),
        break_off(gateway.base()),
    );
    at_once?;
    bystanders.served(20).await?;
    bystanders.leave().await?;
    gateway.stop().await;
    let records = Records::of(&house);
    let silent = records.statuses_of(bad::SILENT);
    let count = |status: &str| silent.iter().filter(|ended| **ended == status).count();
    assert_eq!((count("cancelled"), count("timeout")), (CALLS, CALLS), "{silent:?}");
    assert_eq!(records.statuses_of(bad::STALLED), ["timeout"; CALLS]);
    assert_eq!(records.statuses_of(bad::STALLED_ERROR), ["timeout"; CALLS]);
    Ok(())
}

/// A server that does not even read: what does not fit into buffers waits, and ends by the limit of time. A
/// gateway with such servers still ends when it is told to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_read_is_alone() -> Result<()> {
    let (healthy, deaf) = (Upstream::start().await?, Upstream::start().await?);
    let limit = "timeout = \"2s\"\n";
    let config = format!("{PERMISSIVE}{}{}{limit}", at_url("healthy", &healthy.url), at_url("deaf", &deaf.url));
    let house = House::new(&config);
    let gateway = house.serve().await;
    let bystanders = Bystanders::at(gateway.base(), "healthy");
    bystanders.served(20).await?;
    let mut sessions = Vec::new();
    for _ in 0..CALLS {
        let mut session = Session::open(gateway.base(), "deaf").await?;
        session.echo("heard").await?;
        sessions.push(session);
    }
    deaf.stop_reading();
    let large = 3 * 1024 * 1024;
    // A few at a time: only so many bytes of one caller are read at once.
    while !sessions.is_empty() {
        let some: Vec<_> = sessions.drain(..sessions.len().min(4)).collect();
        let calls: Vec<_> =
            some.into_iter().map(|session| tokio::spawn(late(session, crate::caller::ECHO, large))).collect();
        for call in calls {
            call.await??;
        }
    }
    // All but those that went out on connections opened before.
    assert!(deaf.ignored() >= CALLS / 2, "only {} connections were ignored", deaf.ignored());
    let opened = Session::open(gateway.base(), "deaf").await.err().map(|fault| fault.to_string());
    assert!(opened.as_ref().is_some_and(|fault| fault.contains(LATE)), "{opened:?}");
    bystanders.served(20).await?;
    bystanders.leave().await?;
    // It has sessions at that server, which it cannot take leave of.
    gateway.stop().await;
    let records = Records::of(&house);
    let late = records.statuses_of(crate::caller::ECHO).iter().filter(|status| **status == "timeout").count();
    assert_eq!(late, CALLS);
    Ok(())
}

/// Calls that are on their way when the gateway is told to end are given up, and say so in the journal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_cut_off_by_the_end_have_outcomes() -> Result<()> {
    let stuck = Upstream::start().await?;
    let house = House::new(&format!("{PERMISSIVE}{}", at_url("stuck", &stuck.url)));
    let gateway = house.serve().await;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        let mut session = Session::open(gateway.base(), "stuck").await?;
        calls.push(tokio::spawn(async move { session.call(bad::SILENT, &json!({})).await }));
    }
    let sent = || Records::of(&house).count("intent");
    let all_sent = async {
        while sent() < CALLS {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, all_sent).await?;
    gateway.stop().await;
    for call in calls {
        let answer = call.await?;
        assert!(answer.as_ref().map_or(true, |answer| error_of(answer).is_some()), "{answer:?}");
    }
    let records = Records::of(&house);
    let ended = records.statuses_of(bad::SILENT);
    assert_eq!(ended.len(), CALLS);
    assert!(ended.iter().all(|status| ["cancelled", "unknown", "timeout"].contains(status)), "{ended:?}");
    let outcomes = records.outcomes();
    assert_eq!(outcomes.len(), CALLS, "each is closed before the journal is: {outcomes:?}");
    Ok(())
}
