//! A day in a minute: sessions come and go, calls are answered, refused and given up, children are started and
//! end, and the policy changes all the while. Memory and open files hold steady, and no record is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::caller::{Fault, Session};
use crate::house::{Gateway, House, PERMISSIVE, at_url, by_script, report, soak};
use crate::scripted::SCRIPT;
use crate::tally::Tally;
use crate::upstream::{Upstream, bad};

const MINUTE: Duration = Duration::from_secs(60);
const CALLERS: usize = 12;
/// How often it is looked at, and after how many looks everything has been used once.
const LOOKS: u32 = 24;
const WARM: usize = 8;
/// What may come and go between two looks: MiB, and files.
const MOST_GROWTH: u64 = 24;
const MOST_FILES: usize = 48;

/// Everything that guards a call is on; `blocked` changes what may run.
fn config(upstream: &str, blocked: bool) -> String {
    let switch = if blocked { "tools.meet = { enabled = false }\n" } else { "" };
    let limits = "limits = { in_flight = 200, per_minute = 1000000, time = \"30s\" }\nlabels = [\"reads_untrusted\"]\n";
    format!("{PERMISSIVE}{}{limits}{switch}{}{limits}", at_url("echo", upstream), by_script("child", SCRIPT, &[]))
}

#[derive(Default)]
struct Counts {
    answered: AtomicU64,
    refused: AtomicU64,
    given_up: AtomicU64,
    sessions: AtomicU64,
}

/// One client: a session at one server, a few calls, another session.
async fn caller(base: String, me: usize, end: Instant, counts: Arc<Counts>) -> Result<(), Fault> {
    let mut number = 0;
    while Instant::now() < end {
        let server = if (me + number).is_multiple_of(3) { "child" } else { "echo" };
        let mut session = Session::open(&base, server).await?;
        counts.sessions.fetch_add(1, Ordering::Relaxed);
        session.request("tools/list", &json!({})).await?;
        for _ in 0..20 {
            number += 1;
            session.echo(&format!("{me}-{number}")).await?;
            counts.answered.fetch_add(1, Ordering::Relaxed);
        }
        let refused = session.call("nothing", &json!({})).await?;
        if refused.get("result").is_some() {
            return Err(Fault::Wrong(refused.to_string()));
        }
        counts.refused.fetch_add(1, Ordering::Relaxed);
        if server == "echo" && number.is_multiple_of(60) {
            // Nobody waits for it any more.
            let arguments = json!({});
            drop(tokio::time::timeout(Duration::from_millis(20), session.call(bad::SILENT, &arguments)).await);
            counts.given_up.fetch_add(1, Ordering::Relaxed);
        }
        session.leave().await?;
    }
    Ok(())
}

/// Changes the policy again and again.
async fn changes(house: Arc<House>, upstream: String, end: Instant) -> u64 {
    let mut number = 0;
    while Instant::now() < end {
        number += 1;
        house.replace("home/.config/toolwarden/toolwarden.toml", &config(&upstream, number % 2 == 1));
        sleep(Duration::from_millis(700)).await;
    }
    number
}

/// Looks at memory and files from time to time.
async fn watch(gateway: &Gateway, time: Duration) -> Vec<(u64, usize)> {
    let mut seen = Vec::new();
    for _ in 0..LOOKS {
        sleep(time / LOOKS).await;
        seen.push((gateway.memory(), gateway.open_files()));
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_in_a_minute_leaves_nothing_behind() -> Result<()> {
    let upstream = Upstream::start().await?;
    let house = Arc::new(House::new(&config(&upstream.url, false)));
    let gateway = house.serve().await;
    let time = MINUTE * soak();
    let (end, counts) = (Instant::now() + time, Arc::new(Counts::default()));
    let callers: Vec<_> =
        (0..CALLERS).map(|me| tokio::spawn(caller(gateway.base().to_owned(), me, end, counts.clone()))).collect();
    let changing = tokio::spawn(changes(house.clone(), upstream.url.clone(), end));
    let seen = watch(&gateway, time).await;
    for caller in callers {
        caller.await??;
    }
    let changed = changing.await?;
    let log = gateway.log();
    gateway.stop().await;

    let early = seen.iter().take(WARM).fold((0, 0), |most, now| (most.0.max(now.0), most.1.max(now.1)));
    let late = seen.iter().skip(LOOKS as usize - WARM).fold((0, 0), |most, now| (most.0.max(now.0), most.1.max(now.1)));
    let count = |number: &AtomicU64| number.load(Ordering::Relaxed);
    report(&format!(
        "{} calls answered, {} refused, {} given up, {} sessions, {changed} policies; MiB and files at most {early:?} \
         in the first third, {late:?} in the last",
        count(&counts.answered),
        count(&counts.refused),
        count(&counts.given_up),
        count(&counts.sessions),
    ));
    assert!(late.0 <= early.0 + MOST_GROWTH, "memory grows: {seen:?}");
    assert!(late.1 <= early.1 + MOST_FILES, "open files grow: {seen:?}");
    assert!(log.matches("the policy was read again").count() > 10, "{log}");

    let verified = house.run(&["audit", "verify"]).await;
    assert!(verified.succeeded, "{verified:?}");
    let tally = Tally::of(&house);
    assert_eq!(tally.answered, count(&counts.answered), "every answer has its record, and every record its answer");
    assert_eq!(tally.refused, count(&counts.refused));
    tally.is_indexed(&house).await;
    Ok(())
}
