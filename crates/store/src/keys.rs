//! The rows of sealed roots. What they mean is the vault's matter; here they are kept, all or none.

use std::fmt;

use sqlx::{AnyConnection, Row as _};

use crate::database::{Database, DatabaseError, Writers};

/// One root as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    pub id: u32,
    pub state: String,
    /// Which master key sealed it.
    pub master: String,
    pub sealed: Vec<u8>,
}

/// Where a rotation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// There is none, or the last one is over.
    Settled,
    /// Its root waits until every gateway knows it.
    Waiting,
    /// Its root seals; what former roots sealed is sealed again.
    Sealing,
}

/// Where the roots stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub phase: Phase,
    /// The root of the rotation; the one that seals where there is none.
    pub root: u32,
}

/// From where the master key comes, as people are told it. Nothing of the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MasterKey {
    /// The stable word of the place.
    pub backend: &'static str,
    /// What the config says.
    pub source: String,
    /// In words, with a path or a name where there is one.
    pub place: String,
    /// Tells the key from others.
    pub mark: String,
    /// Not where whoever has the data has the key, too.
    pub is_protected: bool,
}

/// Why rows of roots cannot be used, or no next ones made. Says nothing of a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RootsError(pub String);

/// What the rows mean, for whoever holds the master key: brought by the porch, because the store knows no keys.
pub trait Roots: fmt::Debug + Send + Sync {
    /// Uses what is kept now from here on. Older rows than those in use change nothing.
    ///
    /// # Errors
    /// Another master key sealed them, or they are not whole; what was in use stays so.
    fn take(&self, kept: &[KeyRow]) -> Result<(), RootsError>;

    /// Where these rows stand.
    ///
    /// # Errors
    /// They are not whole.
    fn standing(&self, kept: &[KeyRow]) -> Result<Standing, RootsError>;

    /// The rows one step on: settled ones get a root that waits, a waiting root becomes the one that seals,
    /// and former ones are retired.
    ///
    /// # Errors
    /// They are not whole, or not this master key's.
    fn advanced(&self, kept: &[KeyRow]) -> Result<Vec<KeyRow>, RootsError>;

    /// The same rows, sealed by a new master key that was made and kept for that. `settled` says that they are stored.
    ///
    /// # Errors
    /// They are not whole, or no other master key can be had here.
    fn rewrapped(&self, kept: &[KeyRow]) -> Result<Vec<KeyRow>, RootsError> {
        let _ = kept;
        Err(RootsError("the master key cannot be replaced here".to_owned()))
    }

    /// The rows of `rewrapped` are stored: their master key is the one from now on.
    ///
    /// # Errors
    /// It cannot be put in its place; the next start does that.
    fn settled(&self) -> Result<(), RootsError> {
        Ok(())
    }

    /// How everything begins that is sealed now.
    fn head(&self) -> Vec<u8>;

    /// The root that sealed a value, by its beginning; none where no root can have.
    fn root_of(&self, head: &[u8]) -> Option<u32>;

    fn master_key(&self) -> MasterKey;
}

impl Database {
    /// All roots, in order.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn keys(&self) -> Result<Vec<KeyRow>, DatabaseError> {
        let mut connection = self.pool.acquire().await?;
        read(&mut connection).await
    }

    /// Puts other roots in the place of those that were read; false where these are no longer the ones that are kept.
    ///
    /// # Errors
    /// The database cannot be written; then nothing happened.
    pub async fn replace_keys(&self, former: &[KeyRow], latter: &[KeyRow]) -> Result<bool, DatabaseError> {
        let mut writing = self.begin_writing(Writers::OfState).await?;
        if read(writing.connection()).await? != former {
            writing.rollback().await?;
            return Ok(false);
        }
        write(writing.connection(), latter).await?;
        crate::state::announce(self.engine(), writing.connection()).await?;
        writing.commit().await?;
        Ok(true)
    }
}

pub(crate) async fn read(connection: &mut AnyConnection) -> Result<Vec<KeyRow>, DatabaseError> {
    let query = sqlx::query("SELECT id, state, master, sealed FROM keys ORDER BY id");
    let rows = query.fetch_all(connection).await?;
    let mut keys = Vec::with_capacity(rows.len());
    for row in rows {
        let id: i64 = row.try_get("id")?;
        let id = u32::try_from(id).map_err(|_| DatabaseError::Value(format!("the number {id} of a key")))?;
        let (state, master) = (row.try_get("state")?, row.try_get("master")?);
        keys.push(KeyRow { id, state, master, sealed: row.try_get("sealed")? });
    }
    Ok(keys)
}

/// Puts these rows in the place of all others.
pub(crate) async fn write(connection: &mut AnyConnection, keys: &[KeyRow]) -> Result<(), sqlx::Error> {
    sqlx::query("DELETE FROM keys").execute(&mut *connection).await?;
    for key in keys {
        sqlx::query("INSERT INTO keys (id, state, master, sealed) VALUES ($1, $2, $3, $4)")
            .bind(i64::from(key.id))
            .bind(&key.state)
            .bind(&key.master)
            .bind(key.sealed.clone())
            .execute(&mut *connection)
            .await?;
    }
    sqlx::query("UPDATE counters SET value = value + 1 WHERE name = 'keys'").execute(connection).await?;
    Ok(())
}
