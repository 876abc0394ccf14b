//! The SQL index over the journals: what was called, by whom, and how it ended, to be asked for.
//!
//! Takes lines of journals, each once; gives rows, numbers and exports. Everything here but server
//! states can be rebuilt from the journals.

mod export;
mod fate;
mod ocsf;
mod query;
mod row;
mod server_status;
mod ship;
mod shipper;
mod stats;
mod syslog;
mod used;

use std::io;
use std::sync::Arc;

use sqlx::Row as _;

use crate::database::{Database, DatabaseError, Writers};
use crate::journal::{ChainHash, Seen};
use crate::sql::{signed, unsigned};

pub use export::{CSV_HEADER, Export};
pub use fate::Fate;
pub use query::{CursorFault, Filter, PageCursor};
pub use row::Row;
pub use server_status::{ServerStatus, Told};
pub use ship::{Delivered, ship};
pub use shipper::{Shipper, spawn_shipper};
pub use stats::{Count, Durations, Stats};
pub use used::Used;

/// Why the index cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error("the journal {node} cannot be read: {error}")]
    Journal { node: String, error: io::Error },
    #[error("the journal {node} is not delivered beyond record {sequence}: {sentence}; run `toolwarden audit verify`")]
    Broken { node: String, sequence: u64, sentence: String },
}

impl From<sqlx::Error> for IndexError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

/// The audit rows and server states of a database. Clones share it.
#[derive(Debug, Clone)]
pub struct Index {
    database: Database,
    /// Stands before the names of nodes, where journals of several roots are delivered to one database.
    origin: Arc<str>,
}

impl Index {
    #[must_use]
    pub fn over(database: Database) -> Self {
        Self { database, origin: Arc::from("") }
    }

    /// The same for a database that others deliver to as well: nodes are told apart by the name of their root.
    #[must_use]
    pub fn of_origin(self, origin: &str) -> Self {
        Self { origin: Arc::from(format!("{origin}/")), ..self }
    }

    /// What a node of this root is called in the database.
    #[must_use]
    pub fn stored_name(&self, node: &str) -> String {
        format!("{}{node}", self.origin)
    }

    /// Removes rows of this root's journals that are older than a time; says how many.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn forget_before(&self, before: jiff::Timestamp) -> Result<u64, IndexError> {
        let mut count = 0;
        for seen in self.seen().await? {
            let mut writing = self.database.begin_writing(Writers::OfJournals).await?;
            let gone = sqlx::query("DELETE FROM audit_calls WHERE node = $1 AND time_us < $2")
                .bind(self.stored_name(&seen.node))
                .bind(before.as_microsecond())
                .execute(writing.connection())
                .await?;
            writing.commit().await?;
            count += gone.rows_affected();
        }
        Ok(count)
    }

    /// What the index has seen of each node of this root: `verify` compares it with the journals.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn seen(&self) -> Result<Vec<Seen>, IndexError> {
        let rows = sqlx::query("SELECT node, sequence, hash FROM shipped ORDER BY node")
            .fetch_all(&self.database.pool)
            .await?;
        let mut seen = Vec::with_capacity(rows.len());
        for row in rows {
            let node: String = row.try_get("node")?;
            let Some(node) = node.strip_prefix(&*self.origin) else { continue };
            let hash: String = row.try_get("hash")?;
            let hash = ChainHash::parse(hash.as_bytes()).ok_or(DatabaseError::Value(hash))?;
            seen.push(Seen { node: node.to_owned(), sequence: unsigned(row.try_get("sequence")?), hash });
        }
        Ok(seen)
    }
}
