//! The database: one file of SQLite, or a PostgreSQL that several gateways share; the same SQL in both.
//!
//! Takes where it is; gives connections and writing transactions that come one after the other. Refuses a
//! file that others could read, and a database that a newer version made. Brings an older one up to date.

mod location;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Arc, Once};
use std::time::Duration;

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::PgListener;
use sqlx::{Any, AnyConnection, AnyPool, Connection as _, Executor as _, Transaction};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::journal::check_private;

pub use location::{Location, LocationError, Server};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");
static DRIVERS: Once = Once::new();

/// Every connection to SQLite begins with these. Waiting comes first: the rest may have to.
const PRAGMAS: &str = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; \
                       PRAGMA foreign_keys = ON";
/// Tables are made without waiting for the disk at each step: the first thing that is written into them waits for all of
/// it, and where the power fails before, they are made again.
const UNSYNCED: &str = "PRAGMA synchronous = NORMAL";
const SYNCED: &str = "PRAGMA synchronous = FULL";
/// The one connection that counts: a crash of the program loses nothing, a power failure the last moments.
const COUNTING: &str = "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL";
/// Every connection to PostgreSQL begins with these: nobody waits for ever for somebody who holds a lock and is gone.
const BOUNDS: &str = "SET statement_timeout = '60s'; SET lock_timeout = '10s'; \
                      SET idle_in_transaction_session_timeout = '60s'";
const CONNECTIONS_TO_FILE: u32 = 4;
const CONNECTIONS_TO_SERVER: u32 = 8;
/// How long to wait for a connection: to a server that is gone, nobody should wait long.
const CONNECTION_PATIENCE: Duration = Duration::from_secs(5);

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    #[error("the database {place} {error}")]
    File { place: String, error: io::Error },
    #[error("the database {place} was made by a newer toolwarden (schema {version}); update this one")]
    Newer { place: String, version: i64 },
    #[error("the database {place} cannot be brought up to date: {error}")]
    Migration { place: String, error: MigrateError },
    #[error("the database {place} cannot be reached: {error}; see that it runs and that [store] url is right")]
    Unreachable { place: String, error: sqlx::Error },
    #[error("the database cannot be used: {0}")]
    Sql(#[from] sqlx::Error),
    #[error("the database holds a value that cannot be read: {0}")]
    Value(String),
}

/// Which database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Sqlite,
    Postgres,
}

/// Who write one after the other. Others need not wait for them where the database can tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Writers {
    OfJournals,
    OfState,
}

/// The lock of those who count what need not survive a power failure.
const COUNTING_LOCK: i64 = 8_665_003;

impl Writers {
    /// The number of their lock in PostgreSQL: any, as long as nobody else in this database has it.
    fn lock(self) -> i64 {
        match self {
            Self::OfJournals => 8_665_001,
            Self::OfState => 8_665_002,
        }
    }
}

/// An open database. Clones share it.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) pool: AnyPool,
    /// Connections that do not wait for the disk; of SQLite, which decides that by connection.
    counting: Option<AnyPool>,
    engine: Engine,
    turns: Turns,
    /// Where a listener can hear of changes.
    server: Option<Server>,
}

/// Writers of this process queue here, not in the database: there each would hold a connection meanwhile.
#[derive(Debug, Clone, Default)]
struct Turns {
    of_journals: Arc<Mutex<()>>,
    of_state: Arc<Mutex<()>>,
    of_counts: Arc<Mutex<()>>,
}

/// A transaction in which nobody else of its writers is. Dropped without commit, nothing happened.
#[derive(Debug)]
pub(crate) struct Writing {
    transaction: Transaction<'static, Any>,
    _turn: OwnedMutexGuard<()>,
}

impl Writing {
    pub(crate) fn connection(&mut self) -> &mut AnyConnection {
        &mut self.transaction
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        self.transaction.commit().await
    }

    pub(crate) async fn rollback(self) -> Result<(), sqlx::Error> {
        self.transaction.rollback().await
    }
}

impl Database {
    /// Opens a database; makes a file, owner-only, where there is none.
    ///
    /// # Errors
    /// The file is open to others, the server does not answer, a newer version made it, or it cannot be used.
    pub async fn open(location: &Location) -> Result<Self, DatabaseError> {
        match location {
            Location::File(path) => Self::open_file(path).await,
            Location::Server(server) => Self::open_server(server).await,
        }
    }

    async fn open_file(path: &Path) -> Result<Self, DatabaseError> {
        let place = toolwarden_core::name::shown(&path.to_string_lossy()).into_owned();
        let file_error = |error| DatabaseError::File { place: place.clone(), error: with_remedy(error) };
        make_private(path).map_err(file_error)?;
        // Two processes that start at once must not both make the tables.
        let lock = lock_beside(path).await.map_err(file_error)?;
        let options = AnyPoolOptions::new()
            .max_connections(CONNECTIONS_TO_FILE)
            .after_connect(|connection, _| Box::pin(async move { connection.execute(PRAGMAS).await.map(drop) }));
        let database = Self::connect(options, &location::file_url(path), Engine::Sqlite).await?;
        let migrated = database.migrate(&place).await;
        drop(lock);
        migrated.map(|()| database)
    }

    async fn open_server(server: &Server) -> Result<Self, DatabaseError> {
        let place = server.to_string();
        let options = AnyPoolOptions::new()
            .max_connections(CONNECTIONS_TO_SERVER)
            .after_connect(|connection, _| Box::pin(async move { connection.execute(BOUNDS).await.map(drop) }));
        let unreachable = |error| match error {
            DatabaseError::Sql(error) => DatabaseError::Unreachable { place: place.clone(), error },
            other => other,
        };
        let database = Self::connect(options, server.url(), Engine::Postgres).await.map_err(unreachable)?;
        database.migrate(&place).await?;
        Ok(Self { server: Some(server.clone()), ..database })
    }

    async fn connect(options: sqlx::pool::PoolOptions<Any>, url: &str, engine: Engine) -> Result<Self, DatabaseError> {
        DRIVERS.call_once(sqlx::any::install_default_drivers);
        let url: AnyConnectOptions = url.parse()?;
        // The pool would try again and again; who starts a program wants to know at once.
        if engine == Engine::Postgres {
            let first = tokio::time::timeout(CONNECTION_PATIENCE, AnyConnection::connect_with(&url)).await;
            first.map_err(|_| sqlx::Error::PoolTimedOut)??.close().await?;
        }
        let counting = (engine == Engine::Sqlite).then(|| {
            let options = AnyPoolOptions::new()
                .max_connections(1)
                .acquire_timeout(CONNECTION_PATIENCE)
                .after_connect(|connection, _| Box::pin(async move { connection.execute(COUNTING).await.map(drop) }));
            options.connect_lazy_with(url.clone())
        });
        let pool = options.acquire_timeout(CONNECTION_PATIENCE).connect_with(url).await?;
        Ok(Self { pool, counting, engine, turns: Turns::default(), server: None })
    }

    async fn migrate(&self, place: &str) -> Result<(), DatabaseError> {
        let place = || place.to_owned();
        let mut connection = self.pool.acquire().await?;
        if self.engine == Engine::Sqlite {
            connection.execute(UNSYNCED).await?;
        }
        let migrated = MIGRATIONS.run(&mut *connection).await.map_err(|error| match error {
            MigrateError::VersionMissing(version) => DatabaseError::Newer { place: place(), version },
            error => DatabaseError::Migration { place: place(), error },
        });
        if self.engine == Engine::Sqlite {
            connection.execute(SYNCED).await?;
        }
        migrated
    }

    #[must_use]
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// Begins to write. SQLite has one writer, and it is taken at once: a reader that becomes a writer later could
    /// be refused.
    pub(crate) async fn begin_writing(&self, writers: Writers) -> Result<Writing, sqlx::Error> {
        let turn = match writers {
            Writers::OfJournals => &self.turns.of_journals,
            Writers::OfState => &self.turns.of_state,
        };
        let turn = turn.clone().lock_owned().await;
        let transaction = match self.engine {
            Engine::Sqlite => self.pool.begin_with("BEGIN IMMEDIATE").await?,
            Engine::Postgres => {
                let mut transaction = self.pool.begin().await?;
                let locked = sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(writers.lock());
                locked.execute(&mut *transaction).await?;
                transaction
            }
        };
        Ok(Writing { transaction, _turn: turn })
    }

    /// Begins to write what need not survive a power failure: nobody waits for the disk.
    pub(crate) async fn begin_counting(&self) -> Result<Writing, sqlx::Error> {
        let turn = self.turns.of_counts.clone().lock_owned().await;
        let transaction = match &self.counting {
            Some(counting) => counting.begin_with("BEGIN IMMEDIATE").await?,
            None => {
                let mut transaction = self.pool.begin().await?;
                let locked = "SELECT set_config('synchronous_commit', 'off', true), pg_advisory_xact_lock($1)::text";
                sqlx::query(locked).bind(COUNTING_LOCK).execute(&mut *transaction).await?;
                transaction
            }
        };
        Ok(Writing { transaction, _turn: turn })
    }

    /// Hears what others announce on a channel; none where there is no server to tell it.
    pub(crate) async fn listen(&self, channel: &str) -> Result<Option<PgListener>, sqlx::Error> {
        let Some(server) = &self.server else { return Ok(None) };
        let mut listener = PgListener::connect(server.url()).await?;
        listener.listen(channel).await?;
        Ok(Some(listener))
    }

    /// A transaction that sees one moment.
    pub(crate) async fn begin_reading(&self) -> Result<Transaction<'static, Any>, sqlx::Error> {
        match self.engine {
            Engine::Sqlite => self.pool.begin().await,
            Engine::Postgres => self.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await,
        }
    }

    /// Waits for what is under way and closes the database.
    pub async fn close(self) {
        if let Some(counting) = &self.counting {
            counting.close().await;
        }
        self.pool.close().await;
    }
}

/// SQLite gives its other files the mode of this one. It is not opened where it exists: closing a
/// second descriptor would drop SQLite's locks of this process.
fn make_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    check_private(&fs::metadata(path)?, path, "600")
}

/// What the system refuses is said with what to do; our own refusals say it already.
fn with_remedy(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::Other {
        return error;
    }
    let user = rustix::process::geteuid().as_raw();
    let told = format!("cannot be opened: {error}; see that user {user} may write it and the directory it is in");
    io::Error::new(error.kind(), told)
}

async fn lock_beside(path: &Path) -> io::Result<fs::File> {
    let path = path.with_added_extension("lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
    locked.map_err(io::Error::other)?
}
