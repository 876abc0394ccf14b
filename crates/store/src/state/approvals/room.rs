//! How much one caller may leave here: calls that wait, and what is kept of those that do not any more.

use sqlx::{AnyConnection, Row as _};

use super::{NewApproval, REJECTED_WITHIN};
use crate::state::StateError;

/// Calls of one caller that can wait at a time, and the bytes of what they would send.
pub const MOST_HELD_OF_ONE: i64 = 2_000;
pub const MOST_HELD_BYTES_OF_ONE: i64 = 32 * 1024 * 1024;
/// The same for all that is kept of one, however it ended.
const MOST_KEPT_OF_ONE: i64 = 2 * MOST_HELD_OF_ONE;
const MOST_KEPT_BYTES_OF_ONE: i64 = 2 * MOST_HELD_BYTES_OF_ONE;

/// So many go at a time: not more than needed, and not at every call.
const FORGOTTEN: i64 = 100;

/// Makes room for one more call of a caller, where there can be: the oldest that count for nothing any more go first.
pub(super) async fn is_for(
    connection: &mut AnyConnection,
    new: &NewApproval<'_>,
    bytes: i64,
) -> Result<bool, StateError> {
    loop {
        let kept = kept(connection, new.caller_mark).await?;
        if kept.held >= MOST_HELD_OF_ONE || kept.held_bytes + bytes > MOST_HELD_BYTES_OF_ONE {
            return Ok(false);
        }
        if kept.all < MOST_KEPT_OF_ONE && kept.all_bytes + bytes <= MOST_KEPT_BYTES_OF_ONE {
            return Ok(true);
        }
        if !forget_some(connection, new).await? {
            return Ok(false);
        }
    }
}

/// What is kept of one caller.
#[derive(Debug, Clone, Copy)]
struct Kept {
    all: i64,
    all_bytes: i64,
    held: i64,
    held_bytes: i64,
}

async fn kept(connection: &mut AnyConnection, caller: &str) -> Result<Kept, StateError> {
    // PostgreSQL sums whole numbers to one of any size.
    let query = "SELECT COUNT(*), CAST(COALESCE(SUM(bytes), 0) AS BIGINT), \
                 COUNT(CASE WHEN state = 'held' THEN 1 END), \
                 CAST(COALESCE(SUM(CASE WHEN state = 'held' THEN bytes END), 0) AS BIGINT) \
                 FROM approvals WHERE caller_mark = $1";
    let row = sqlx::query(query).bind(caller).fetch_one(connection).await?;
    Ok(Kept { all: row.try_get(0)?, all_bytes: row.try_get(1)?, held: row.try_get(2)?, held_bytes: row.try_get(3)? })
}

/// The record keeps what happened; a rejection and an end that nobody knows stay as long as they count.
async fn forget_some(connection: &mut AnyConnection, new: &NewApproval<'_>) -> Result<bool, StateError> {
    let query = "DELETE FROM approvals WHERE id IN (SELECT id FROM approvals WHERE caller_mark = $1 AND (state IN \
                 ('expired', 'cancelled', 'succeeded', 'failed') OR state = 'unknown' AND expires_us <= $2 OR state = \
                 'rejected' AND expires_us <= $2 AND changed_us <= $3) ORDER BY changed_us LIMIT $4)";
    let counted = new.now.checked_sub(REJECTED_WITHIN).unwrap_or(new.now);
    let gone = sqlx::query(query)
        .bind(new.caller_mark)
        .bind(new.now.as_microsecond())
        .bind(counted.as_microsecond())
        .bind(FORGOTTEN)
        .execute(connection);
    Ok(gone.await?.rows_affected() > 0)
}
