//! What a running gateway knows of the state, kept up to date: what was changed anywhere is known here soon after.
//!
//! PostgreSQL tells that something is new, a file is looked at; either way the counters say what, and are read at
//! every interval, too. How long ago that last worked is known: a gateway that hears nothing must not go on for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{Mutex, Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::bells::Bells;
use super::{CHANNEL, Records, State, StateError, Tokens};
use crate::database::DatabaseError;

/// How often the counters are read in any case.
const INTERVAL: Duration = Duration::from_millis(250);
/// After this long every gateway has read what is new: twelve intervals, because some of them may be busy. Sealed rows
/// wait for nobody, whoever reads them learns their root before; but what gateways seal for clients comes back to
/// another gateway without a look at the store.
pub const EVERYBODY_KNOWS: Duration = Duration::from_secs(3);
/// How long a reading may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait before hearing is tried again.
const DEAF: Duration = Duration::from_secs(5);

/// The state as it is known.
#[derive(Debug, Clone, Default)]
pub struct Known {
    pub records: Arc<Records>,
    pub tokens: Arc<Tokens>,
}

/// Known state, kept up to date as long as this is held.
#[derive(Debug)]
pub struct Feed {
    shared: Arc<Shared>,
    tasks: [JoinHandle<()>; 2],
}

#[derive(Debug)]
struct Shared {
    state: State,
    known: ArcSwap<Known>,
    versions: watch::Sender<u64>,
    token_versions: watch::Sender<u64>,
    /// Held calls whose moves were told, up to this version.
    approvals: AtomicU64,
    bells: Arc<Bells>,
    /// Something may be new.
    hint: Notify,
    /// One at a time: what was read first must not be kept last.
    catching_up: Mutex<()>,
    begun: Instant,
    /// Milliseconds after `begun`.
    heard: AtomicU64,
}

impl Feed {
    pub(super) fn state(&self) -> &State {
        &self.shared.state
    }

    /// Reads everything and keeps it up to date.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn start(state: State) -> Result<Self, StateError> {
        let records = state.records().await?;
        let versions = watch::Sender::new(records.version);
        let mut tokens = Tokens::default();
        state.catch_up_tokens(&mut tokens).await?;
        let token_versions = watch::Sender::new(tokens.version);
        let approvals = state.counters().await?.approvals;
        let known = Known { records: Arc::new(records), tokens: Arc::new(tokens) };
        let shared = Arc::new(Shared {
            state,
            known: ArcSwap::from_pointee(known),
            versions,
            token_versions,
            approvals: AtomicU64::new(approvals),
            bells: Arc::default(),
            hint: Notify::new(),
            catching_up: Mutex::new(()),
            begun: Instant::now(),
            heard: AtomicU64::new(0),
        });
        let tasks = [tokio::spawn(follow(Arc::clone(&shared))), tokio::spawn(hear(Arc::clone(&shared)))];
        Ok(Self { shared, tasks })
    }

    /// What is known now. Cheap: this is asked for every call.
    pub fn known(&self) -> arc_swap::Guard<Arc<Known>> {
        self.shared.known.load()
    }

    /// Tells of every version of the records that takes the place of another.
    #[must_use]
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.shared.versions.subscribe()
    }

    /// The same for tokens.
    #[must_use]
    pub fn token_versions(&self) -> watch::Receiver<u64> {
        self.shared.token_versions.subscribe()
    }

    /// Who waits for held calls to move.
    #[must_use]
    pub fn bells(&self) -> &Arc<Bells> {
        &self.shared.bells
    }

    /// Reads what is new, now: whoever changed something here wants it to count at once.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn catch_up(&self) -> Result<(), StateError> {
        self.shared.catch_up().await
    }

    /// How long ago it was certain that nothing newer exists.
    #[must_use]
    pub fn age(&self) -> Duration {
        let heard = Duration::from_millis(self.shared.heard.load(Ordering::Relaxed));
        self.shared.begun.elapsed().saturating_sub(heard)
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl Shared {
    /// Bounded in time: a database that hangs is as good as gone, and comes back some day.
    async fn catch_up(&self) -> Result<(), StateError> {
        let reading = tokio::time::timeout(PATIENCE, self.read());
        reading.await.map_err(|_| StateError::from(sqlx::Error::PoolTimedOut))?
    }

    async fn read(&self) -> Result<(), StateError> {
        let _turn = self.catching_up.lock().await;
        // Before asking: what is answered was so then, or later.
        let asked = self.begun.elapsed();
        let counters = self.state.counters().await?;
        let known = self.known.load_full();
        // Before what they sealed is read, and also if nothing else is new.
        self.state.learn_roots_at(counters.keys).await?;
        if (counters.policy, counters.tokens) != (known.records.version, known.tokens.version) {
            let mut next = (*known).clone();
            self.state.catch_up_tokens(Arc::make_mut(&mut next.tokens)).await?;
            // Tokens first, and for themselves: a record that cannot be read must not keep one valid.
            self.known.store(Arc::new(next.clone()));
            tell(&self.token_versions, next.tokens.version);
            self.state.catch_up(Arc::make_mut(&mut next.records)).await?;
            let version = next.records.version;
            self.known.store(Arc::new(next));
            tell(&self.versions, version);
        }
        let told = self.approvals.load(Ordering::Relaxed);
        if counters.approvals != told {
            let (news, version) = self.state.approval_news(told).await?;
            self.approvals.store(version, Ordering::Relaxed);
            self.bells.ring(news);
        }
        self.heard.fetch_max(u64::try_from(asked.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(())
    }
}

fn tell(versions: &watch::Sender<u64>, version: u64) {
    versions.send_if_modified(|known| std::mem::replace(known, version) != version);
}

async fn follow(shared: Arc<Shared>) {
    let mut last_error = String::new();
    loop {
        tokio::select! {
            () = shared.hint.notified() => {}
            () = tokio::time::sleep(INTERVAL) => {}
        }
        match shared.catch_up().await {
            Ok(()) => {
                if !last_error.is_empty() {
                    tracing::info!("the store can be read again");
                    last_error.clear();
                }
            }
            // The process ends.
            Err(StateError::Database(DatabaseError::Sql(sqlx::Error::PoolClosed))) => return,
            Err(error) => {
                let error = error.to_string();
                if error != last_error {
                    tracing::error!("changes in the store are not seen: {error}");
                    last_error = error;
                }
            }
        }
    }
}

/// Tells as soon as a server does. Apart from the reading, which must not wait for a connection that hangs.
async fn hear(shared: Arc<Shared>) {
    loop {
        match shared.state.database.listen(CHANNEL).await {
            // A file tells nothing.
            Ok(None) => return,
            Ok(Some(mut listener)) => {
                while listener.recv().await.is_ok() {
                    shared.hint.notify_one();
                }
            }
            Err(error) => tracing::debug!(%error, "the store cannot tell of changes; it is asked for them"),
        }
        tokio::time::sleep(DEAF).await;
    }
}
