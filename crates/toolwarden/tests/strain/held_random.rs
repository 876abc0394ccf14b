//! `kill -9` at random moments while agents have calls held, approved and made: between the steps that `held_killed.rs`
//! can stop at. What the store says of each approval afterwards must be true of what the server saw.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use crate::caller::{ECHO, Fault, post};
use crate::held_place::{Place, Tokens, call};
use crate::house::{report, soak};
use crate::randomness::Random;

const TIME: Duration = Duration::from_secs(20);
const CALLERS: usize = 6;
/// Every so many calls nobody permits one.
const UNPERMITTED: u64 = 5;
const NO_PLACE: &str = "127.0.0.1:9";

/// What the agents got to know.
#[derive(Default)]
struct Known {
    /// The approvals under which each call was held.
    held: Mutex<BTreeMap<String, String>>,
    /// Calls that nobody permitted.
    unpermitted: Mutex<Vec<String>>,
    answered: Mutex<Vec<String>>,
    faults: Mutex<Vec<String>>,
    stop: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Known {
    async fn agent(self: Arc<Self>, me: usize, tokens: Arc<Tokens>, mut place: watch::Receiver<String>) {
        let mut number = 0;
        while !self.stop.load(Ordering::Relaxed) {
            number += 1;
            let name = format!("{me}-{number}");
            let is_permitted = number % UNPERMITTED != 0;
            if !is_permitted {
                lock(&self.unpermitted).push(name.clone());
            }
            if let Err(fault) = self.one(&name, is_permitted, &tokens, &mut place).await {
                lock(&self.faults).push(format!("{name}: {fault}"));
            }
        }
    }

    /// One call, made again until it was answered, whatever happens to its gateway meanwhile.
    async fn one(
        &self,
        number: &str,
        is_permitted: bool,
        tokens: &Tokens,
        place: &mut watch::Receiver<String>,
    ) -> Result<(), Fault> {
        while !self.stop.load(Ordering::Relaxed) {
            let base = place.borrow_and_update().clone();
            let called = call(base.clone(), tokens.agent.clone(), ECHO.to_owned(), number.to_owned()).await;
            let done = match called {
                Ok(said) => self.answered(&base, number, &said, is_permitted, tokens).await,
                Err(fault) => Err(fault),
            };
            match done {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // It was killed: the next one has another place.
                Err(Fault::Broken(_)) => drop(timeout(Duration::from_millis(50), place.changed()).await),
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    /// Whether that was the end of it.
    async fn answered(
        &self,
        base: &str,
        number: &str,
        said: &str,
        is_permitted: bool,
        tokens: &Tokens,
    ) -> Result<bool, Fault> {
        if let Some((_, rest)) = said.split_once("ask the user to approve call ") {
            let id = rest.split(' ').next().unwrap_or_default().to_owned();
            lock(&self.held).insert(id.clone(), number.to_owned());
            if !is_permitted {
                return Ok(true);
            }
            let body = serde_json::json!({ "id": id });
            let (status, told) = post(base, "/api/v1/approvals/approve", &tokens.person, &body).await?;
            // A killed gateway may have kept the answer and not said so; then it is answered already.
            return if matches!(status, 200 | 409) { Ok(false) } else { Err(Fault::Wrong(format!("{status} {told}"))) };
        }
        if said.contains("already_running") || said.contains("approval_used") {
            sleep(Duration::from_millis(20)).await;
            return Ok(false);
        }
        if said.contains("outcome_unknown") {
            return Ok(true);
        }
        // The answer names the call: it is one's own.
        if !said.contains(&format!("{{\\\"number\\\":\\\"{number}\\\"}}")) {
            return Err(Fault::Wrong(said.to_owned()));
        }
        lock(&self.answered).push(number.to_owned());
        Ok(true)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_4_what_the_store_says_after_kills_at_random_is_true() -> Result<()> {
    let mut place = Place::new(false).await?;
    let mut random = Random::new();
    report(&format!("seed {}", random.seed));
    let (known, tokens) = (Arc::new(Known::default()), Arc::new(std::mem::take(&mut place.tokens)));
    let (at, seen) = watch::channel(NO_PLACE.to_owned());
    let tasks: Vec<_> =
        (0..CALLERS).map(|me| tokio::spawn(known.clone().agent(me, tokens.clone(), seen.clone()))).collect();
    let end = Instant::now() + TIME * soak();
    let mut kills = 0;
    while Instant::now() < end {
        let gateway = place.first.serve().await;
        let _ = at.send_replace(gateway.base().to_owned());
        sleep(random.between(50, 900)).await;
        gateway.kill().await;
        kills += 1;
    }
    known.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await?;
    }
    let gateway = place.first.serve().await;
    let states = place.states().await?;
    let told = is_true(&place, &known, &states)?;
    place.verifies().await?;
    gateway.stop().await;
    place.verifies().await?;
    report(&format!("{kills} kills (seed {}): {told}", random.seed));
    Ok(())
}

/// Compares what the store says with what the server saw.
fn is_true(place: &Place, known: &Known, states: &HashMap<String, String>) -> Result<String> {
    let faults = lock(&known.faults).clone();
    ensure!(faults.is_empty(), "wrong answers: {faults:#?}");
    // By call: approvals that say it was made, and those that do not know.
    let mut told: HashMap<&str, (u32, u32)> = HashMap::new();
    let held = lock(&known.held);
    for (id, number) in &*held {
        let told = told.entry(number).or_default();
        match states.get(id).map(String::as_str) {
            Some("succeeded") => told.0 += 1,
            Some("unknown") => told.1 += 1,
            Some("held" | "approved") => {}
            other => anyhow::bail!("{id} of {number} is {other:?}, which nothing that was left may be"),
        }
    }
    for (number, times) in place.upstream.calls() {
        let (made, unknown) = told.get(&*number).copied().unwrap_or_default();
        ensure!(times <= made + unknown, "{number} was made {times} times; the store says {made}, or {unknown} more");
    }
    for (number, (made, _)) in &told {
        ensure!(place.seen(number) >= *made, "the store says that {number} was made {made} times");
    }
    for number in &*lock(&known.unpermitted) {
        ensure!(place.seen(number) == 0, "{number} was made, and nobody permitted it");
    }
    for number in &*lock(&known.answered) {
        ensure!(place.seen(number) > 0, "{number} was answered, and the server never saw it");
    }
    // All of this would be true of a gateway that did nothing, or was never killed at work.
    let sum = |of: fn(&(u32, u32)) -> u32| told.values().map(of).sum::<u32>();
    let (made, unknown) = (sum(|told| told.0), sum(|told| told.1));
    let said = format!("{} held, {made} made, {unknown} unknown", held.len());
    ensure!(made > 30 && unknown > 0, "too little happened: {said}");
    Ok(said)
}
