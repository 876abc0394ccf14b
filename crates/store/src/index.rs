//! The SQL index over the journals: what was called, by whom, and how it ended, to be asked for.
//!
//! Takes lines of journals, each once; gives rows, numbers and exports. Refuses a database file
//! that others could read, or that a newer version made. Everything here but server states can be
//! rebuilt from the journals.

mod export;
mod ocsf;
mod query;
mod row;
mod server_status;
mod ship;
mod shipper;
mod stats;
mod syslog;

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Row as _, SqlitePool};

use crate::journal::{ChainHash, Seen, check_private};

pub use export::{CSV_HEADER, Export};
pub use query::{CursorFault, Filter, PageCursor};
pub use row::Row;
pub use server_status::ServerStatus;
pub use ship::{Delivered, ship};
pub use shipper::{Shipper, spawn_shipper};
pub use stats::{Count, Durations, Stats};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

/// How long a writer waits for another one.
const BUSY_PATIENCE: Duration = Duration::from_secs(10);
const CONNECTIONS: u32 = 4;

/// Why the index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("the database {path} {error}")]
    File { path: String, error: io::Error },
    #[error("the database {path} was made by a newer toolwarden (schema {version}); update this one")]
    Newer { path: String, version: i64 },
    #[error("the database {path} cannot be brought up to date: {error}")]
    Migration { path: String, error: MigrateError },
    #[error("the database cannot be used: {0}")]
    Sql(#[from] sqlx::Error),
    #[error("the journal {node} cannot be read: {error}")]
    Journal { node: String, error: io::Error },
    #[error("the journal {node} is not delivered beyond record {sequence}: {sentence}; run `toolwarden audit verify`")]
    Broken { node: String, sequence: u64, sentence: String },
    #[error("the database holds a value that cannot be read: {0}")]
    Value(String),
}

/// A database of audit rows and server states. Clones share it.
#[derive(Debug, Clone)]
pub struct Index {
    pool: SqlitePool,
}

impl Index {
    /// Opens a database file; makes it, owner-only, where there is none.
    ///
    /// # Errors
    /// The file is open to others, made by a newer version, or cannot be used.
    pub async fn open(path: &Path) -> Result<Self, IndexError> {
        let shown = toolwarden_core::name::shown(&path.to_string_lossy()).into_owned();
        let file_error = |error| IndexError::File { path: shown.clone(), error };
        make_private(path).map_err(file_error)?;
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(false)
            .journal_mode(SqliteJournalMode::Wal)
            // The journal is the truth; a row lost in a power cut is delivered again.
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_PATIENCE);
        let pool = SqlitePoolOptions::new().max_connections(CONNECTIONS);
        // Two processes that start at once must not both make the tables.
        let lock = lock_beside(path).await.map_err(file_error)?;
        let pool = pool.connect_with(options).await?;
        let migrated = MIGRATIONS.run(&pool).await;
        drop(lock);
        match migrated {
            Ok(()) => Ok(Self { pool }),
            Err(MigrateError::VersionMissing(version)) => Err(IndexError::Newer { path: shown, version }),
            Err(error) => Err(IndexError::Migration { path: shown, error }),
        }
    }

    /// What the index has seen of each node: `verify` compares it with the journals.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn seen(&self) -> Result<Vec<Seen>, IndexError> {
        let rows = sqlx::query("SELECT node, sequence, hash FROM shipped ORDER BY node").fetch_all(&self.pool).await?;
        let mut seen = Vec::with_capacity(rows.len());
        for row in rows {
            let hash: String = row.try_get("hash")?;
            let hash = ChainHash::parse(hash.as_bytes()).ok_or(IndexError::Value(hash))?;
            seen.push(Seen { node: row.try_get("node")?, sequence: unsigned(row.try_get("sequence")?), hash });
        }
        Ok(seen)
    }

    /// Waits for what is under way and closes the database.
    pub async fn close(self) {
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

async fn lock_beside(path: &Path) -> io::Result<fs::File> {
    let path = path.with_added_extension("lock");
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
    locked.map_err(io::Error::other)?
}

/// SQL integers are signed. Counters never get that far; a value that does is shown as the largest.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or_default()
}
