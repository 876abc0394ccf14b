//! `kill -9` at random moments under load, again and again on the same home: nothing that left is unrecorded.

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::caller::{Fault, Session};
use crate::house::{House, PERMISSIVE, at_url, by_script, fixture_program, report, soak};
use crate::journal::{Digests, Records};
use crate::randomness::Random;
use crate::upstream::Upstream;

const TIME: Duration = Duration::from_secs(60);
/// Callers of each of the two servers, each with one call on its way.
const CALLERS: usize = 8;
/// The journal is checked while the gateway runs after so many kills.
const CHECK_EVERY: u32 = 8;

/// The fixture server as a child. Whatever reaches it is first in a file of its own, which ends with the last
/// byte that a killed gateway wrote.
const RECORDED_CHILD: &str = "exec tee -a \"$1/$$\" | exec \"$2\" stdio";

/// What the callers got.
#[derive(Default)]
struct Callers {
    answered: Mutex<Vec<String>>,
    faults: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl Callers {
    /// Calls under ever new numbers, on ever new sessions where the gateway ended.
    async fn call(self: Arc<Self>, server: &'static str, me: usize, mut place: watch::Receiver<String>) {
        let mut number = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let base = place.borrow_and_update().clone();
            let fault = match Session::open(&base, server).await {
                Ok(mut session) => self.call_on(&mut session, &format!("{server}-{me}"), &mut number).await,
                Err(fault) => Some(fault),
            };
            match fault {
                // It was killed: the next one has another place.
                Some(Fault::Broken(_)) => drop(timeout(Duration::from_millis(50), place.changed()).await),
                Some(fault) => self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(fault.to_string()),
                None => {}
            }
        }
    }

    async fn call_on(&self, session: &mut Session, name: &str, number: &mut u64) -> Option<Fault> {
        while !self.stop.load(Ordering::Relaxed) {
            *number += 1;
            let call = format!("{name}-{number}");
            if let Err(fault) = session.echo(&call).await {
                return Some(fault);
            }
            self.answered.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        }
        None
    }
}

/// Kills gateways until the time is over; gives how many.
async fn kill_again_and_again(house: &House, place: &watch::Sender<String>, random: &mut Random) -> u32 {
    let end = Instant::now() + TIME;
    let mut kills = 0;
    while Instant::now() < end {
        let starting = house.start();
        kills += 1;
        match random.below(8) {
            // In the midst of starting, or of putting right what the last one left.
            0 | 1 => {
                sleep(random.between(0, 50)).await;
                starting.kill().await;
                continue;
            }
            2 => {
                sleep(random.between(0, 400)).await;
                starting.kill().await;
                continue;
            }
            _ => {}
        }
        let gateway = starting.listening().await;
        let _ = place.send_replace(gateway.base().to_owned());
        if kills % CHECK_EVERY == 0 {
            verifies(house, random).await;
        }
        sleep(random.between(50, 1500)).await;
        gateway.kill().await;
    }
    kills
}

async fn verifies(house: &House, random: &Random) {
    let said = house.run(&["audit", "verify"]).await;
    let whole = said.succeeded && said.out.contains("whole") && !said.out.contains("BROKEN");
    assert!(whole, "the journal does not verify (seed {}): {said:?}", random.seed);
}

/// The calls that reached the child, by their numbers.
fn seen_by_child(house: &House) -> HashMap<String, u32> {
    let mut seen = HashMap::new();
    for file in fs::read_dir(house.path("seen")).into_iter().flatten().flatten() {
        let text = fs::read(file.path()).unwrap_or_default();
        // The last line may be half a message: then the server never understood it.
        let messages = text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Value>(line).ok());
        for message in messages {
            if let Some(number) = message.pointer("/params/arguments/number").and_then(Value::as_str) {
                *seen.entry(number.to_owned()).or_default() += 1;
            }
        }
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gate_15_nothing_is_lost_when_the_gateway_is_killed() -> Result<()> {
    for _ in 0..soak() {
        a_home_with_killed_gateways().await?;
    }
    Ok(())
}

async fn a_home_with_killed_gateways() -> Result<()> {
    let upstream = Upstream::start().await?;
    let house = House::new("");
    house.write("seen/README", "");
    let seen = house.path("seen").to_string_lossy().into_owned();
    let child = by_script("child", RECORDED_CHILD, &[&seen, &fixture_program()]);
    let config = format!("{PERMISSIVE}{}{child}", at_url("http", &upstream.url));
    house.write("home/.config/toolwarden/toolwarden.toml", &config);
    let mut random = Random::new();
    report(&format!("seed {}", random.seed));
    let callers = Arc::new(Callers::default());
    let (place, place_seen) = watch::channel("127.0.0.1:9".to_owned());
    let tasks: Vec<_> = (0..2 * CALLERS)
        .map(|me| {
            let server = if me % 2 == 0 { "http" } else { "child" };
            tokio::spawn(callers.clone().call(server, me, place_seen.clone()))
        })
        .collect();

    let kills = kill_again_and_again(&house, &place, &mut random).await;
    callers.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await?;
    }

    let gateway = house.serve().await;
    verifies(&house, &random).await;
    for server in ["http", "child"] {
        let number = format!("{server}-last");
        Session::open(gateway.base(), server).await?.echo(&number).await?;
        callers.answered.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }
    gateway.stop().await;
    verifies(&house, &random).await;

    let faults = callers.faults.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(faults.is_empty(), "wrong answers (seed {}): {faults:#?}", random.seed);
    let answered = callers.answered.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let calls = upstream.calls().into_iter().chain(seen_by_child(&house)).collect();
    nothing_is_lost(&house, &calls, &answered, &format!("seed {}, {kills} kills", random.seed)).await;
    Ok(())
}

async fn nothing_is_lost(house: &House, seen: &HashMap<String, u32>, answered: &[String], told: &str) {
    let records = Records::of(house);
    let (digests, intents, outcomes) = (Digests::of(house), records.intents(), records.outcomes());
    for (number, times) in seen {
        assert_eq!(*times, 1, "the server saw the call {number} more than once ({told})");
        let is_recorded = intents.contains_key(&*digests.echo(number));
        assert!(is_recorded, "the server saw the call {number}, which has no intent ({told})");
    }
    for number in answered {
        assert!(seen.contains_key(number), "the call {number} was answered, and no server saw it ({told})");
        let ended = intents.get(&*digests.echo(number)).and_then(|call| outcomes.get(call)).copied();
        // An outcome is written a little later than the answer leaves.
        assert!(matches!(ended, Some("ok" | "unknown")), "the call {number} ended as {ended:?} ({told})");
    }
    records.are_indexed(house).await;

    // All of this would be true of a gateway that did nothing, or was never killed at work.
    let unknown = outcomes.values().filter(|status| **status == "unknown").count();
    let (intents, events) = (intents.len(), records.count("event"));
    let told = format!(
        "{told}: {intents} intents, {} seen, {} answered, {unknown} unknown, {events} events",
        seen.len(),
        answered.len()
    );
    assert!(answered.len() > 200 && unknown > 10 && events > 5, "too little happened: {told}");
    for server in ["http-", "child-"] {
        let count = answered.iter().filter(|number| number.starts_with(server)).count();
        assert!(count > 50, "too little happened at {server}: {told}");
    }
    report(&told);
}
