//! Whether the record is whole, can be asked, and was not written in the future.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::Keyring;
use toolwarden_notices::upgrading;
use toolwarden_sources::{Locations, StoreChoice};
use toolwarden_store::index::{Filter, ship};
use toolwarden_store::journal::verify;
use toolwarden_store::{Database, Index, Location, State};

use super::Check;
use crate::{environment, keys, store};

/// A larger record is left to `audit verify`: doctor should answer within seconds.
const LARGEST_RECORD: u64 = 256 * 1024 * 1024;
/// Clocks of processes on one machine agree better than this.
const TOLERANCE: std::time::Duration = std::time::Duration::from_secs(5);
/// No machine that runs this was built before.
const EARLIEST: &str = "2025-01-01T00:00:00Z";

pub(super) fn check(locations: &Locations) -> Vec<Check> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    // Why it cannot be read is said of the config; it need not be said again of everything that depends on it.
    if store::here(locations).is_err() {
        let message = "store, key and journal were not checked: the config, which says where they are, cannot be used";
        let next = "correct the config first, then run doctor again";
        let clock = runtime.block_on(clock(&locations.data_dir.join("journal"), None));
        return vec![Check::warning("record", message, next), clock];
    }
    runtime.block_on(async {
        let (opened, store_check) = open(locations).await;
        let (keyring, key_check) = key(locations, opened.as_ref()).await;
        let root = locations.data_dir.join("journal");
        let index = opened.as_ref().map(|opened| &opened.index);
        let journal = journal(&root, keyring.as_deref(), index).await;
        let clock = clock(&root, index).await;
        let upgrade = match (opened.as_ref(), keyring) {
            (Some(opened), Some(keyring)) => upgrade(State::over(opened.database.clone(), keyring), locations).await,
            _ => None,
        };
        if let Some(opened) = opened {
            opened.database.close().await;
        }
        [store_check, key_check, journal, clock].into_iter().chain(upgrade).collect()
    })
}

/// What the last upgrade changed for those who were here before.
async fn upgrade(state: State, locations: &Locations) -> Option<Check> {
    let of_workspace = locations.workspace_root().map(|root| root.join(".cursor/permissions.json"));
    let has_permission_files =
        locations.user_permissions().exists() || of_workspace.is_some_and(|permissions| permissions.exists());
    let here = upgrading::Here { local_user: &locations.user, has_permission_files };
    let words = upgrading::recent(&state, here, environment::now()).await;
    let next = "see CHANGELOG.md; this is said for a week after the first start";
    (!words.is_empty()).then(|| Check::warning("upgrade", words.join("\n  "), next))
}

/// The store, where there is one.
struct Opened {
    choice: StoreChoice,
    database: Database,
    index: Index,
}

async fn open(locations: &Locations) -> (Option<Opened>, Check) {
    let failed = |error: String, next: &str| (None, Check::problem("store", error, next));
    let choice = match store::here(locations) {
        Ok(choice) => choice,
        Err(error) => return failed(error.to_string(), "repair the config"),
    };
    let place = match store::location(locations, &choice) {
        Ok(place) => place,
        Err(error) => return failed(error.to_string(), "repair `[store] url`"),
    };
    if let Location::File(path) = &place
        && !path.exists()
    {
        return (None, Check::ok("store", "is made when first needed"));
    }
    match store::open(locations, &choice).await {
        Ok((database, index)) => {
            let check = Check::ok("store", format!("can be asked, at {place}"));
            (Some(Opened { choice, database, index }), check)
        }
        Err(error) => failed(format!("{error:#}"), "restore it from a backup; what was called is in the journals, too"),
    }
}

/// The keys of the store; where it has none yet, the key file that would become the first.
async fn key(locations: &Locations, opened: Option<&Opened>) -> (Option<Arc<dyn Keyring>>, Check) {
    let Some(opened) = opened else { return super::files::key(locations) };
    match opened.database.keys().await {
        Ok(rows) if rows.is_empty() => return super::files::key(locations),
        _ => {}
    }
    match keys::open(locations, &opened.choice, &opened.database).await {
        Ok(keys) => {
            let message = format!(
                "can be used: {} {}; keep a backup of it",
                keys.master.now().backend(),
                keys.master.now().mark()
            );
            let check = if keys.master.now().is_protected() {
                Check::ok("key", message)
            } else {
                let next = "choose another `[vault] key`: whoever can read the database can read everything in it";
                Check::warning("key", message, next)
            };
            (Some(keys.ring), check)
        }
        Err(error) => {
            let next = "do what the message says, then run doctor again";
            (None, Check::problem("key", format!("{error:#}"), next))
        }
    }
}

async fn journal(root: &Path, keyring: Option<&dyn Keyring>, index: Option<&Index>) -> Check {
    if !root.is_dir() {
        return Check::ok("journal", "nothing was recorded yet");
    }
    let size = size_below(root);
    if size > LARGEST_RECORD {
        let message = format!("not checked here, because it has {} MiB", size / 1024 / 1024);
        return Check::warning("journal", message, "run `toolwarden audit verify`");
    }
    let Some(keyring) = keyring else {
        return Check::problem("journal", "cannot be checked without its key", "restore the key from a backup");
    };
    let seen = match index {
        Some(index) => index.seen().await.unwrap_or_default(),
        None => Vec::new(),
    };
    let report = match verify(root, keyring, &seen) {
        Ok(report) => report,
        Err(error) => return Check::problem("journal", error.to_string(), "make it readable for you alone"),
    };
    let broken = report.nodes.iter().find_map(|node| Some((node, node.problem.as_ref()?)));
    match broken {
        None => Check::ok("journal", format!("every chain is whole ({} of them)", report.nodes.len())),
        Some((node, problem)) => {
            let message = format!("{}/{}:{}: {}", node.node, problem.file, problem.line, problem.sentence);
            let next = "run `toolwarden audit verify`, keep a copy of the directory, and find out who changed it";
            Check::problem("journal", message, next)
        }
    }
}

fn size_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

async fn clock(root: &Path, index: Option<&Index>) -> Check {
    let now = environment::now();
    let next = "set the clock, for instance with `timedatectl set-ntp true`";
    if EARLIEST.parse::<Timestamp>().is_ok_and(|earliest| now < earliest) {
        return Check::problem("clock", format!("says {now}, which cannot be"), next);
    }
    let last = match index {
        Some(index) => last_record(root, index).await,
        None => None,
    };
    match last {
        Some(last) if now.checked_add(TOLERANCE).is_ok_and(|now| last > now) => {
            let message = format!("says {now}, but something was recorded at {last} already");
            Check::problem("clock", message, next)
        }
        _ => Check::ok("clock", format!("says {}", now.strftime("%Y-%m-%dT%H:%M:%SZ"))),
    }
}

async fn last_record(root: &Path, index: &Index) -> Option<Timestamp> {
    if root.is_dir() {
        // What cannot be delivered is the journal check's matter.
        let _ = ship(root, index).await;
    }
    let rows = index.query(&Filter::default(), 1, None).await.ok()?;
    rows.first()?.time.parse().ok()
}
