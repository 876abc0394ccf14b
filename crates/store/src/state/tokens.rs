//! Tokens: issued, rotated, revoked, and counted where they are good for so many calls.
//!
//! What a token is good for is sealed together with its id and the digest of its secret, so that whoever can write
//! to the database can neither widen a token nor give it another secret.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row as _};
use toolwarden_core::{Claims, Digest};

use super::draft::Author;
use super::{State, StateError, counter};
use crate::database::DatabaseError;
use crate::sql::{signed, unsigned};

/// A token as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    pub id: String,
    /// Of its secret, in hexadecimal digits.
    pub digest: String,
    pub claims: Claims,
    pub issued_at: Timestamp,
    pub issued_by: String,
    /// Calls made so far, counted only where there is a limit.
    pub calls: u64,
    pub revoked_at: Option<Timestamp>,
}

/// All tokens, and how far they are.
#[derive(Debug, Clone, Default)]
pub struct Tokens {
    pub version: u64,
    pub by_id: HashMap<String, Arc<StoredToken>>,
    /// Rows that were not sealed for their place. They count as nobody's, and that there are some is told.
    pub not_authentic: Vec<String>,
}

impl Tokens {
    /// Whether a token was ever issued. One that was revoked counts, and one whose row is gone: its bearer is still
    /// there.
    #[must_use]
    pub fn any_was_issued(&self) -> bool {
        self.version > 0 || !self.by_id.is_empty() || !self.not_authentic.is_empty()
    }

    /// How many tokens of a user count.
    #[must_use]
    pub fn of_user(&self, user: &str) -> usize {
        let counting = self.by_id.values().filter(|token| token.revoked_at.is_none());
        counting.filter(|token| token.claims.user.as_deref() == Some(user)).count()
    }

    fn take(&mut self, id: String, token: Option<StoredToken>) {
        self.not_authentic.retain(|known| *known != id);
        match token {
            Some(token) => {
                self.by_id.insert(id, Arc::new(token));
            }
            None => {
                self.by_id.remove(&id);
                self.not_authentic.push(id);
            }
        }
    }
}

/// What became of a call that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// It is the call of this number.
    Taken(u64),
    /// All calls were made, or the token is gone.
    NoneLeft,
}

impl State {
    /// Keeps a new token.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn issue_token(
        &self,
        author: &Author,
        id: &str,
        digest: Digest,
        claims: &Claims,
    ) -> Result<(), StateError> {
        let mut writing = self.begin_writing().await?;
        let sealed = self.seals.seal_token(id, &digest.to_string(), claims)?;
        let version = next(writing.connection()).await?;
        sqlx::query(
            "INSERT INTO tokens (id, digest, sealed, issued_us, issued_by, calls, version) \
             VALUES ($1, $2, $3, $4, $5, 0, $6)",
        )
        .bind(id)
        .bind(digest.to_string())
        .bind(sealed)
        .bind(author.time.as_microsecond())
        .bind(&author.user)
        .bind(signed(version))
        .execute(writing.connection())
        .await?;
        self.announce(&mut writing).await?;
        Ok(writing.commit().await?)
    }

    /// Takes a token back; false where there is none, or it was taken back already.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn revoke_token(&self, id: &str, at: Timestamp) -> Result<bool, StateError> {
        let mut writing = self.begin_writing().await?;
        let version = next(writing.connection()).await?;
        let query = "UPDATE tokens SET revoked_us = $1, version = $2 WHERE id = $3 AND revoked_us IS NULL";
        let query = sqlx::query(query).bind(at.as_microsecond()).bind(signed(version)).bind(id);
        if query.execute(writing.connection()).await?.rows_affected() == 0 {
            writing.rollback().await?;
            return Ok(false);
        }
        self.announce(&mut writing).await?;
        writing.commit().await?;
        Ok(true)
    }

    /// A token as it is now; none where there is none of that id.
    ///
    /// # Errors
    /// The database cannot be read, or the token was changed there.
    pub async fn token_of(&self, id: &str) -> Result<Option<StoredToken>, StateError> {
        let mut transaction = self.begin_reading().await?;
        let found =
            sqlx::query("SELECT * FROM tokens WHERE id = $1").bind(id).fetch_optional(&mut *transaction).await?;
        transaction.commit().await?;
        found.map(|row| self.token(&row)).transpose()
    }

    /// Gives a token another secret; the former one counts no more. False where there is no such token in use. The new
    /// secret is `shown_to` these tokens: from now on it comes from them.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn rotate_token(&self, id: &str, digest: Digest, shown_to: &[String]) -> Result<bool, StateError> {
        let mut writing = self.begin_writing().await?;
        let found = sqlx::query("SELECT * FROM tokens WHERE id = $1 AND revoked_us IS NULL").bind(id);
        let Some(row) = found.fetch_optional(writing.connection()).await? else { return Ok(false) };
        let StoredToken { mut claims, .. } = self.token(&row)?;
        for ancestor in shown_to {
            if ancestor != id && !claims.ancestors.contains(ancestor) {
                claims.ancestors.push(ancestor.clone());
            }
        }
        let sealed = self.seals.seal_token(id, &digest.to_string(), &claims)?;
        let version = next(writing.connection()).await?;
        sqlx::query("UPDATE tokens SET digest = $1, sealed = $2, version = $3 WHERE id = $4")
            .bind(digest.to_string())
            .bind(sealed)
            .bind(signed(version))
            .bind(id)
            .execute(writing.connection())
            .await?;
        self.announce(&mut writing).await?;
        writing.commit().await?;
        Ok(true)
    }

    /// Counts a call of a token that is good for so many: one conditional write, whoever else counts at the same time.
    ///
    /// # Errors
    /// The database cannot be written; then the call must not be made.
    pub async fn count_call(&self, id: &str, most: u64) -> Result<Counted, StateError> {
        let query = "UPDATE tokens SET calls = calls + 1 WHERE id = $1 AND calls < $2 AND revoked_us IS NULL \
                     RETURNING calls";
        let query = sqlx::query(query).bind(id).bind(signed(most));
        // To the end: only then is it certain that it was written.
        let counted = query.fetch_all(&self.database.pool).await?;
        Ok(match counted.first() {
            Some(row) => Counted::Taken(unsigned(row.try_get(0)?)),
            None => Counted::NoneLeft,
        })
    }

    /// Brings what is known of tokens up to date; says whether anything changed. Start with an empty one.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn catch_up_tokens(&self, known: &mut Tokens) -> Result<bool, StateError> {
        let mut transaction = self.begin_reading().await?;
        let version = counter(&mut transaction, "tokens").await?;
        let query = sqlx::query("SELECT * FROM tokens WHERE version > $1").bind(signed(known.version));
        let rows = query.fetch_all(&mut *transaction).await?;
        transaction.commit().await?;
        for row in &rows {
            let id: String = row.try_get("id")?;
            let token = match self.token(row) {
                Ok(token) => Some(token),
                Err(StateError::Token(_)) => None,
                Err(error) => return Err(error),
            };
            known.take(id, token);
        }
        known.version = version;
        Ok(!rows.is_empty())
    }

    fn token(&self, row: &AnyRow) -> Result<StoredToken, StateError> {
        let (id, digest): (String, String) = (row.try_get("id")?, row.try_get("digest")?);
        let sealed: Vec<u8> = row.try_get("sealed")?;
        let time = |microseconds| {
            Timestamp::from_microsecond(microseconds).map_err(|error| DatabaseError::Value(error.to_string()))
        };
        let revoked: Option<i64> = row.try_get("revoked_us")?;
        Ok(StoredToken {
            claims: self.seals.open_token(&id, &digest, &sealed)?,
            issued_at: time(row.try_get("issued_us")?)?,
            issued_by: row.try_get("issued_by")?,
            calls: unsigned(row.try_get("calls")?),
            revoked_at: revoked.map(time).transpose()?,
            id,
            digest,
        })
    }
}

/// The next version of tokens.
async fn next(connection: &mut AnyConnection) -> Result<u64, StateError> {
    sqlx::query("UPDATE counters SET value = value + 1 WHERE name = 'tokens'").execute(&mut *connection).await?;
    counter(connection, "tokens").await
}
