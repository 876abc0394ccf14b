//! The rows of sealed roots. What they mean is the vault's matter; here they are kept, all or none.

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
        sqlx::query("DELETE FROM keys").execute(writing.connection()).await?;
        for key in latter {
            sqlx::query("INSERT INTO keys (id, state, master, sealed) VALUES ($1, $2, $3, $4)")
                .bind(i64::from(key.id))
                .bind(&key.state)
                .bind(&key.master)
                .bind(key.sealed.clone())
                .execute(writing.connection())
                .await?;
        }
        sqlx::query("UPDATE counters SET value = value + 1 WHERE name = 'keys'").execute(writing.connection()).await?;
        writing.commit().await?;
        Ok(true)
    }
}

async fn read(connection: &mut AnyConnection) -> Result<Vec<KeyRow>, DatabaseError> {
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
