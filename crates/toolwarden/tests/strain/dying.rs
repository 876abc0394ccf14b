//! A child that dies under its calls: those who wait are told, others notice nothing, and it is started again.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::time::{sleep, timeout};

use crate::caller::{Bystanders, Fault, Session, error_of};
use crate::house::{House, PATIENCE, PERMISSIVE, at_url, by_script};
use crate::journal::Records;
use crate::scripted::SCRIPT;
use crate::upstream::Upstream;

const DEATHS: u32 = 3;
const WAITING: usize = 20;

/// Calls until the server answers again: each new start waits longer than the one before.
pub async fn comes_back(session: &mut Session) -> Result<()> {
    let trying = async {
        loop {
            match session.echo("again").await {
                Ok(()) => return Ok(()),
                // It says when the next try is.
                Err(Fault::Wrong(answer)) if answer.contains("next try") || answer.contains("has ended") => {
                    sleep(Duration::from_millis(100)).await;
                }
                Err(fault) => return Err(fault),
            }
        }
    };
    Ok(timeout(PATIENCE, trying).await??)
}

/// Calls that wait, and one under which the server dies. All of them get an error.
async fn dies(base: &str) -> Result<()> {
    let mut sessions = Vec::new();
    for _ in 0..WAITING {
        sessions.push(Session::open(base, "child").await?);
    }
    let waiting: Vec<_> = sessions
        .into_iter()
        .map(|mut session| tokio::spawn(async move { session.call("silent", &json!({})).await }))
        .collect();
    let mut session = Session::open(base, "child").await?;
    // Only when they wait is there something to die under.
    for number in 0..5 {
        session.echo(&format!("before-{number}")).await?;
    }
    let answer = session.call("dies", &json!({})).await?;
    let is_told = |answer: &serde_json::Value| {
        error_of(answer).is_some_and(|error| error.contains("the server ended") || error.contains("has ended"))
    };
    assert!(is_told(&answer), "{answer}");
    for call in waiting {
        match call.await? {
            Ok(answer) => assert!(is_told(&answer) || answer.to_string().contains("next try"), "{answer}"),
            Err(fault) => return Err(fault.into()),
        }
    }
    // The same session goes on with the next child.
    comes_back(&mut session).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_dies_under_its_calls_is_alone() -> Result<()> {
    let healthy = Upstream::start().await?;
    let (near, child) = (at_url("healthy", &healthy.url), by_script("child", SCRIPT, &[]));
    let house = House::new(&format!("{PERMISSIVE}{near}{child}"));
    let gateway = house.serve().await;
    let bystanders = Bystanders::at(gateway.base(), "healthy");
    for _ in 0..DEATHS {
        bystanders.served(20).await?;
        dies(gateway.base()).await?;
    }
    bystanders.served(20).await?;
    bystanders.leave().await?;
    gateway.stop().await;
    let records = Records::of(&house);
    assert_eq!(records.statuses_of("dies"), ["unknown"; DEATHS as usize]);
    let silent = records.statuses_of("silent");
    let unknown = silent.iter().filter(|status| **status == "unknown").count();
    assert!(unknown > WAITING, "too few calls waited: {silent:?}");
    Ok(())
}

/// A child that says nothing any more has ended, whatever its process does: nobody waits for it. Its end is
/// seen before the process has gone, so every death has such a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_closes_its_output_is_started_again() -> Result<()> {
    let house = House::new(&format!("{PERMISSIVE}{}", by_script("child", SCRIPT, &[])));
    let gateway = house.serve().await;
    let mut session = Session::open(gateway.base(), "child").await?;
    session.echo("before").await?;
    let answer = session.call("leaves", &json!({})).await?;
    assert!(error_of(&answer).is_some_and(|error| error.contains("the server ended")), "{answer}");
    comes_back(&mut session).await?;
    gateway.stop().await;
    Ok(())
}
