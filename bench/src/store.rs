//! What the store costs: finding out who bears a token among ten thousand, judging their call among a thousand users,
//! how soon a change acts elsewhere, and how fast the record reaches the index; on a file and on PostgreSQL, in one run.

mod effect;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use jiff::Timestamp;
use tokio::time::Instant;
use toolwarden_bench::{compile, question, with_role};
use toolwarden_core::records::{Kind, Place};
use toolwarden_core::{AuditRecord, Bearer, Claims, Clock, Keyring, NewToken, RecordKind, TOKEN_BYTES};
use toolwarden_policy::decide;
use toolwarden_policy::input::UserInput;
use toolwarden_steps::identities::Identities;
use toolwarden_store::index::ship;
use toolwarden_store::state::{Author, Feed};
use toolwarden_store::{Database, Index, Journal, JournalOptions, Location, State};
use toolwarden_test_postgres::Cluster;
use toolwarden_vault::FileKeyring;

const TOKENS: usize = 10_000;
const USERS: usize = 1_000;
const LOOKUPS: usize = 200_000;
const CHANGES: usize = 100;
const LINES: u64 = 40_000;

/// Nothing here depends on the time.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::constant(1_800_000_000, 0)
    }
}

fn main() -> Result<()> {
    let program = std::env::args().nth(1).context("usage: toolwarden-bench-store TOOLWARDEN")?;
    let cluster = Cluster::start().context("PostgreSQL does not start")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let root = tempfile::tempdir()?;
        let file = Location::File(root.path().join("bench.sqlite"));
        let server = Location::parse(&cluster.url(), Path::new("/"))?;
        for (name, location) in [("a file", file), ("PostgreSQL", server)] {
            let place = root.path().join(name.replace(' ', "-"));
            let keyring: Arc<dyn Keyring> = Arc::new(FileKeyring::open(&place.join("keys"))?);
            let database = Database::open(&location).await?;
            let state = State::over(database.clone(), keyring.clone());
            if name == "a file" {
                identities(&state, &keyring).await?;
            }
            changes(name, &state, &State::over(Database::open(&location).await?, keyring.clone())).await?;
            delivery(name, &place, &keyring, &Index::over(database)).await?;
        }
        anyhow::Ok(())
    })?;
    let root = tempfile::tempdir()?;
    let second = Cluster::start().context("PostgreSQL does not start")?;
    let [here, there] = effect::measure(&PathBuf::from(program), root.path(), &second.url())?;
    for (name, spans) in [("where it was decided", here), ("at another gateway", there)] {
        say(&format!("a switched tool acts {name} after {} ms (p50), {} ms (p99)", at(&spans, 50), at(&spans, 99)));
    }
    Ok(())
}

/// In milliseconds, with one digit.
fn at(spans: &[Duration], share: usize) -> String {
    let span = spans.get(spans.len() * share / 100).copied().unwrap_or_default();
    format!("{:.1}", span.as_secs_f64() * 1000.0)
}

fn say(words: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{words}");
}

fn author() -> Author {
    Author { user: "bench".to_owned(), door: "bench".to_owned(), time: Still.now() }
}

async fn identities(state: &State, keyring: &Arc<dyn Keyring>) -> Result<()> {
    let mut shown = Vec::with_capacity(TOKENS);
    for number in 0..TOKENS {
        let mut bytes = [0; TOKEN_BYTES];
        keyring.random(&mut bytes)?;
        let token = NewToken::of_random(&bytes);
        let user = format!("user_{}", number % USERS);
        let claims = Claims { role: Some("bench".to_owned()), user: Some(user), ..Claims::of(Bearer::Agent) };
        state.issue_token(&author(), &token.id, token.digest, &claims).await?;
        shown.push(token.text.reveal_to_upstream().to_owned());
    }
    let feed = Arc::new(Feed::start(state.clone()).await?);
    let identities = Identities::of(feed, state.clone(), "owner".to_owned(), None);
    let mut input = with_role(100);
    let users = (0..USERS).map(|number| (format!("user_{number}"), UserInput::default()));
    input.users.extend(users);
    let policy = compile(&input);
    let mut found = 0;
    let begun = Instant::now();
    for text in shown.iter().cycle().take(LOOKUPS) {
        found += usize::from(identities.bearer(text, Still.now()).is_ok());
    }
    let lookups = begun.elapsed();
    anyhow::ensure!(found == LOOKUPS, "every token is known");
    let begun = Instant::now();
    for text in shown.iter().cycle().take(LOOKUPS) {
        let Ok(caller) = identities.bearer(text, Still.now()) else { continue };
        let query = question(toolwarden_core::Caller::local_person("nobody")).asked_by(caller);
        std::hint::black_box(decide(&policy, &query).decision());
    }
    let whole = begun.elapsed();
    let each = |span: Duration| span.as_nanos() / LOOKUPS as u128;
    say(&format!(
        "{TOKENS} tokens, {USERS} users: {} ns to know the bearer, {} ns with the decision",
        each(lookups),
        each(whole)
    ));
    Ok(())
}

/// From the commit at one gateway to the moment another knows.
async fn changes(name: &str, here: &State, there: &State) -> Result<()> {
    let feed = Feed::start(there.clone()).await?;
    let mut versions = feed.versions();
    let mut spans = Vec::with_capacity(CHANGES);
    for number in 0..CHANGES {
        let mut draft = here.change().await?;
        draft.put(Place::of_house(Kind::Setting, "bench"), number.into());
        let committed = draft.commit(&author(), "bench", None).await?;
        let begun = Instant::now();
        versions.wait_for(|version| *version >= committed.version).await?;
        spans.push(begun.elapsed());
    }
    spans.sort_unstable();
    say(&format!("{name}: a change is known elsewhere after {} ms (p50), {} ms (p99)", at(&spans, 50), at(&spans, 99)));
    Ok(())
}

async fn delivery(name: &str, place: &Path, keyring: &Arc<dyn Keyring>, index: &Index) -> Result<()> {
    let root = place.join("journal");
    let (journal, _) = Journal::open(&JournalOptions::new(root.clone(), "bench"), keyring.clone(), Arc::new(Still))?;
    for number in 0..LINES {
        let mut record = AuditRecord::new(RecordKind::Refusal, Still.now(), number);
        (record.server, record.tool, record.user) = (Some("files"), Some("db.tool_7"), Some("ada"));
        journal.note(&record)?;
    }
    journal.close().await?;
    let begun = Instant::now();
    ship(&root, index).await?;
    let span = begun.elapsed();
    say(&format!(
        "{name}: {LINES} lines reach the index in {} ms, {} in a second",
        span.as_millis(),
        (u128::from(LINES) * 1000) / span.as_millis().max(1)
    ));
    Ok(())
}
