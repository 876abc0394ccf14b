//! What the record says of a call that was made under an approval.

use jiff::Timestamp;
use sqlx::Row as _;

use super::{Index, IndexError};

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The journal has no intent: nothing left.
    NeverLeft,
    /// It left, and nobody knows how it ended.
    Unknown,
    Ended {
        is_ok: bool,
    },
}

impl Index {
    /// What became of the call that a node made under an approval since a moment. The node's journal must have been
    /// delivered.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn fate_of(&self, node: &str, approval: &str, since: Timestamp) -> Result<Fate, IndexError> {
        let query = "SELECT status FROM audit_calls WHERE approval_id = $1 AND node = $2 AND kind = 'intent' AND \
                     time_us >= $3 ORDER BY sequence DESC LIMIT 1";
        let query = sqlx::query(query).bind(approval).bind(self.stored_name(node)).bind(since.as_microsecond());
        let Some(row) = query.fetch_optional(&self.database.pool).await? else { return Ok(Fate::NeverLeft) };
        let status: Option<String> = row.try_get("status")?;
        Ok(match status.as_deref() {
            Some("ok") => Fate::Ended { is_ok: true },
            Some("tool_error" | "too_large") => Fate::Ended { is_ok: false },
            _ => Fate::Unknown,
        })
    }
}
