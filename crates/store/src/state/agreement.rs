//! How often persons answered held calls as a classifier would have: counted with the answer, for as long as the store lasts.

use sqlx::{AnyConnection, Row as _};
use toolwarden_core::{Agreement, HeldAnswer, HeldCall};

use super::{State, StateError};
use crate::sql::unsigned;

/// How these counters are told from others.
const PREFIX: &str = "agreement.";

impl State {
    /// All answers to calls of which a classifier had an opinion.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn agreement(&self) -> Result<Agreement, StateError> {
        let query = "SELECT name, value FROM counters WHERE name LIKE 'agreement.%'";
        let rows = sqlx::query(query).fetch_all(&self.database.pool).await?;
        let mut agreement = Agreement::default();
        for row in &rows {
            let (name, value): (String, i64) = (row.try_get("name")?, row.try_get("value")?);
            if let Some(count) = name.strip_prefix(PREFIX).and_then(|name| agreement.count_mut(name)) {
                *count = unsigned(value);
            }
        }
        Ok(agreement)
    }
}

/// Counts a person's first answer, where a classifier had a verdict.
pub(super) async fn agreed(
    connection: &mut AnyConnection,
    call: &HeldCall,
    answer: &HeldAnswer,
) -> Result<(), StateError> {
    let Some(verdict) = call.opinion.as_ref().and_then(|opinion| opinion.verdict) else { return Ok(()) };
    let name = format!("{PREFIX}{}", Agreement::name(verdict, answer.is_approval));
    let query = "INSERT INTO counters (name, value) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET value = \
                 counters.value + 1";
    sqlx::query(query).bind(name).execute(connection).await?;
    Ok(())
}
