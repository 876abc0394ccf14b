//! Grants: kept, found by server, counted, taken back. What they permit is sealed with their id.

use jiff::Timestamp;
use sqlx::Row as _;
use sqlx::any::AnyRow;
use toolwarden_core::{Grant, GrantClaims};

use super::{State, StateError};
use crate::database::DatabaseError;
use crate::sql::{signed, unsigned};

/// As many as anybody looks through.
const MOST: i64 = 10_000;

impl State {
    /// Keeps a new grant.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn issue_grant(&self, grant: &Grant) -> Result<(), StateError> {
        let mut writing = self.begin_writing().await?;
        let sealed = self.seals.seal_grant(&grant.id, &grant.claims)?;
        sqlx::query(
            "INSERT INTO grants (id, server, sealed, issued_us, expires_us, calls_left) VALUES ($1, $2, $3, $4, $5, $6)",
        )
        .bind(&grant.id)
        .bind(&grant.claims.server)
        .bind(sealed)
        .bind(grant.issued_at.as_microsecond())
        .bind(grant.expires_at.as_microsecond())
        .bind(grant.calls_left.map(signed))
        .execute(writing.connection())
        .await?;
        Ok(writing.commit().await?)
    }

    /// The grants for a server that count now. Rows that somebody changed are none.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn grants_for(&self, server: &str, now: Timestamp) -> Result<Vec<Grant>, StateError> {
        let query = "SELECT * FROM grants WHERE server = $1 AND expires_us > $2 AND revoked_us IS NULL AND \
                     (calls_left IS NULL OR calls_left > 0) ORDER BY issued_us LIMIT $3";
        let mut transaction = self.begin_reading().await?;
        let query = sqlx::query(query).bind(server).bind(now.as_microsecond()).bind(MOST);
        let rows = query.fetch_all(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(rows.iter().filter_map(|row| self.grant(row).ok()).filter(|grant| grant.claims.server == server).collect())
    }

    /// All grants, the newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn grants(&self) -> Result<Vec<Grant>, StateError> {
        let mut transaction = self.begin_reading().await?;
        let query = sqlx::query("SELECT * FROM grants ORDER BY issued_us DESC, id LIMIT $1").bind(MOST);
        let rows = query.fetch_all(&mut *transaction).await?;
        transaction.commit().await?;
        Ok(rows.iter().filter_map(|row| self.grant(row).ok()).collect())
    }

    /// Uses a grant for one call: one conditional write, whoever else does at the same time. False where it counts no
    /// more.
    ///
    /// # Errors
    /// The database cannot be written; then the call must not be made.
    pub async fn use_grant(&self, id: &str, now: Timestamp) -> Result<bool, StateError> {
        let query = "UPDATE grants SET calls_left = calls_left - 1 WHERE id = $1 AND expires_us > $2 AND revoked_us IS \
                     NULL AND (calls_left IS NULL OR calls_left > 0)";
        let used = sqlx::query(query).bind(id).bind(now.as_microsecond()).execute(&self.database.pool).await?;
        Ok(used.rows_affected() == 1)
    }

    /// Takes a grant back; false where there is none that counts.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn revoke_grant(&self, id: &str, now: Timestamp) -> Result<bool, StateError> {
        let query = "UPDATE grants SET revoked_us = $1 WHERE id = $2 AND revoked_us IS NULL";
        let revoked = sqlx::query(query).bind(now.as_microsecond()).bind(id).execute(&self.database.pool).await?;
        Ok(revoked.rows_affected() == 1)
    }

    /// Forgets what counts no more since a time.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn forget_grants(&self, before: Timestamp) -> Result<u64, StateError> {
        let query = sqlx::query("DELETE FROM grants WHERE expires_us < $1").bind(before.as_microsecond());
        Ok(query.execute(&self.database.pool).await?.rows_affected())
    }

    fn grant(&self, row: &AnyRow) -> Result<Grant, StateError> {
        let id: String = row.try_get("id")?;
        let sealed: Vec<u8> = row.try_get("sealed")?;
        let time = |microseconds: i64| {
            Timestamp::from_microsecond(microseconds).map_err(|error| DatabaseError::Value(error.to_string()))
        };
        let (left, revoked): (Option<i64>, Option<i64>) = (row.try_get("calls_left")?, row.try_get("revoked_us")?);
        let claims: GrantClaims = self.seals.open_grant(&id, &sealed)?;
        Ok(Grant {
            claims,
            issued_at: time(row.try_get("issued_us")?)?,
            expires_at: time(row.try_get("expires_us")?)?,
            calls_left: left.map(unsigned),
            revoked_at: revoked.map(time).transpose()?,
            id,
        })
    }
}
