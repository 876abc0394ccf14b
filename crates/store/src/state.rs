//! What people decided, and every version of it: settings, users, modes, roles, rules, servers, tools, admin controls.
//!
//! Takes records by place, and changes by somebody; gives what counts now, what changed since, and the history.
//! Refuses a record that was not sealed for its place, and a change made on a version that is no longer the last.

mod agreement;
mod approvals;
mod attendance;
mod bells;
mod draft;
mod feed;
mod grants;
mod held_tasks;
mod history;
mod labels;
mod outbox;
mod roots;
mod seals;
mod standing;
mod tallies;
mod tokens;
mod upgrades;

use std::collections::BTreeMap;
use std::sync::Arc;

use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};
use toolwarden_core::Keyring;
pub use toolwarden_core::records::{Kind, Place, Record, Records};

use crate::database::{Database, DatabaseError, Engine, Writing};
use crate::keys::RootsError;
use crate::sql::{signed, unsigned};

pub use approvals::{
    Approval, ApprovalFilter, ApprovalNews, Holding, Listed, MOST_HELD_BYTES_OF_ONE, MOST_HELD_OF_ONE, Moved,
    NewApproval, REJECTED_WITHIN, REJECTIONS, Whose,
};
pub use attendance::{Attendance, Attending};
pub use bells::{Bell, Bells};
pub use draft::{Author, Committed, Draft};
pub use feed::{EVERYBODY_KNOWS, Feed, Known};
pub use held_tasks::{HeldTask, NewHeldTask};
pub use history::{Change, Version};
pub use labels::{Anchor, AnchorKind, IDLE_LIFE, NOTED_WITHIN};
pub use outbox::{Notice, Subscription};
pub use roots::{Inventory, Sealed, SealedAgain};
use seals::Seals;
pub use standing::Standing;
pub use tallies::{Claim, Claimed, Tally};
pub use tokens::{Counted, StoredToken, Tokens};
pub use upgrades::UpgradeNotice;

/// Where PostgreSQL tells of changes. Only a hint: the counters are the truth.
const CHANNEL: &str = "toolwarden";

/// Why state cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error(transparent)]
    Database(#[from] DatabaseError),
    #[error(
        "the stored {0} was not sealed for this place by this key: somebody changed the database, or the key is \
         another one; nothing of it is used"
    )]
    NotAuthentic(Place),
    #[error("the stored token {0} cannot be read: it was changed, or a newer version made it; it counts as nobody's")]
    Token(String),
    #[error("the held call {0} was changed in the database by somebody without the key; nothing of it is used")]
    Approval(String),
    #[error("the task {0} was changed in the database by somebody without the key; nothing of it is used")]
    Task(String),
    #[error("the key cannot be used")]
    Key,
    #[error(transparent)]
    Roots(#[from] RootsError),
    #[error("the stored {place} was changed meanwhile: it was read at version {expected} and is at version {found}")]
    Stale { place: Place, expected: u64, found: u64 },
    #[error("there is no version {0}")]
    NoVersion(u64),
}

impl From<sqlx::Error> for StateError {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error.into())
    }
}

/// How far state is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counters {
    policy: u64,
    tokens: u64,
    keys: u64,
    approvals: u64,
}

/// The state in a database. Clones share it.
#[derive(Debug, Clone)]
pub struct State {
    database: Database,
    seals: Seals,
    /// Without these, the keyring is what it is.
    known: Option<Arc<roots::Known>>,
    /// Who is told elsewhere of held calls.
    subscriptions: Arc<[Subscription]>,
}

impl State {
    #[must_use]
    pub fn over(database: Database, keyring: Arc<dyn Keyring>) -> Self {
        Self { database, seals: Seals::new(keyring), known: None, subscriptions: Arc::default() }
    }

    /// How far the state is. Cheap: this is asked again and again.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn version(&self) -> Result<u64, StateError> {
        let mut connection = self.database.pool.acquire().await?;
        version(&mut connection).await
    }

    /// How far every kind of state is.
    async fn counters(&self) -> Result<Counters, StateError> {
        let rows = sqlx::query("SELECT name, value FROM counters").fetch_all(&self.database.pool).await?;
        let mut counters = Counters::default();
        for row in &rows {
            let (name, value): (String, i64) = (row.try_get("name")?, row.try_get("value")?);
            match name.as_str() {
                "policy" => counters.policy = unsigned(value),
                "tokens" => counters.tokens = unsigned(value),
                "keys" => counters.keys = unsigned(value),
                "approvals" => counters.approvals = unsigned(value),
                _ => {}
            }
        }
        Ok(counters)
    }

    /// Everything that counts now.
    ///
    /// # Errors
    /// The database cannot be read, or a record was not sealed for its place.
    pub async fn records(&self) -> Result<Records, StateError> {
        // One transaction, so that the records belong to the version.
        let mut transaction = self.begin_reading().await?;
        let records = read_all(&mut transaction, &self.seals).await?;
        transaction.commit().await?;
        Ok(records)
    }

    /// Brings records up to date; says which places changed.
    ///
    /// # Errors
    /// As `records`; what is known stays as it was.
    pub async fn catch_up(&self, known: &mut Records) -> Result<Vec<Place>, StateError> {
        let mut transaction = self.begin_reading().await?;
        let query = "SELECT DISTINCT changes.kind, changes.owner, changes.name, records.version, records.sealed \
                     FROM changes LEFT JOIN records ON records.kind = changes.kind AND records.owner = changes.owner \
                     AND records.name = changes.name WHERE changes.version > $1";
        let now = version(&mut transaction).await?;
        let rows = sqlx::query(query).bind(signed(known.version)).fetch_all(&mut *transaction).await?;
        transaction.commit().await?;
        let mut changed = Vec::with_capacity(rows.len());
        for row in &rows {
            let place = place(row)?;
            let record = match row.try_get::<Option<i64>, _>("version")? {
                Some(_) => Some(self.seals.record(&place, row)?),
                None => None,
            };
            changed.push((place, record));
        }
        known.version = now;
        let places = changed.iter().map(|(place, _)| place.clone()).collect();
        for (place, record) in changed {
            match record {
                Some(record) => known.by_place.insert(place, record),
                None => known.by_place.remove(&place),
            };
        }
        Ok(places)
    }

    /// Tells other gateways, where the database can, that something is new once this is committed.
    async fn announce(&self, writing: &mut Writing) -> Result<(), StateError> {
        Ok(announce(self.database.engine(), writing.connection()).await?)
    }

    /// Begins a change. Nobody else changes anything until it is committed or dropped.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn change(&self) -> Result<Draft<'_>, StateError> {
        Draft::begin(self.begin_writing().await?, self.database.engine(), &self.seals).await
    }
}

async fn version(connection: &mut AnyConnection) -> Result<u64, StateError> {
    counter(connection, "policy").await
}

async fn counter(connection: &mut AnyConnection, name: &str) -> Result<u64, StateError> {
    let row = sqlx::query("SELECT value FROM counters WHERE name = $1").bind(name).fetch_one(connection).await?;
    Ok(unsigned(row.try_get(0)?))
}

pub(crate) async fn announce(engine: Engine, connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    if engine == Engine::Postgres {
        sqlx::query("SELECT pg_notify($1, '')").bind(CHANNEL).execute(connection).await?;
    }
    Ok(())
}

async fn read_all(connection: &mut AnyConnection, seals: &Seals) -> Result<Records, StateError> {
    let version = version(connection).await?;
    let rows = sqlx::query("SELECT kind, owner, name, version, sealed FROM records").fetch_all(connection).await?;
    let mut by_place = BTreeMap::new();
    for row in &rows {
        let place = place(row)?;
        let record = seals.record(&place, row)?;
        by_place.insert(place, record);
    }
    Ok(Records { version, by_place })
}

/// The place of a row. A kind that is not known here would be left out, and with it what it forbids: so it is refused.
fn place(row: &AnyRow) -> Result<Place, StateError> {
    let kind: String = row.try_get("kind")?;
    let Some(kind) = Kind::parse(&kind) else {
        return Err(DatabaseError::Value(format!("a record of the unknown kind `{kind}`")).into());
    };
    Ok(Place { kind, owner: row.try_get("owner")?, name: row.try_get("name")? })
}
