//! Held calls by state and user, the newest first, page by page. A page is bounded in bytes too: arguments can be long.

use futures_util::TryStreamExt;
use sqlx::Row as _;
use sqlx::any::AnyRow;
use toolwarden_core::ApprovalState;

use super::Approval;
use crate::sql::Sql;
use crate::state::{State, StateError};

/// Where a page ends though it could have more rows.
const LARGEST_PAGE: usize = 16 * 1024 * 1024;

/// Which held calls are asked for.
#[derive(Debug, Clone, Default)]
pub struct ApprovalFilter {
    /// None = in any state.
    pub states: Vec<ApprovalState>,
    /// Those that concern one person alone.
    pub whose: Option<Whose>,
    /// Those that come after this one: where the last page ended.
    pub after: Option<(i64, String)>,
    pub limit: u32,
}

/// Whom a held call concerns: its caller's own user, or somebody who is named to answer.
#[derive(Debug, Clone, Default)]
pub struct Whose {
    pub user: String,
    /// As approvers are written: a user, or `group:NAME`.
    pub named: Vec<String>,
}

/// A page of them.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    pub approvals: Vec<Approval>,
    /// Rows that were changed by somebody without the key, and are left out.
    pub unreadable: usize,
    /// Where the next page begins; none where this was the last.
    pub next: Option<(i64, String)>,
}

impl State {
    /// Held calls, the newest first.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn approvals(&self, filter: &ApprovalFilter) -> Result<Listed, StateError> {
        let mut sql = Sql::new(self.database.engine(), "SELECT * FROM approvals WHERE 1 = 1");
        for (place, state) in filter.states.iter().enumerate() {
            sql.push(if place == 0 { " AND state IN (" } else { ", " }).bind(state.as_str());
        }
        if !filter.states.is_empty() {
            sql.push(")");
        }
        if let Some(whose) = &filter.whose {
            sql.push(" AND (user_name = ").bind(whose.user.clone());
            for name in &whose.named {
                sql.push(" OR approvers LIKE ").bind(pattern(name)).push(" ESCAPE '!'");
            }
            sql.push(")");
        }
        if let Some((held, id)) = &filter.after {
            sql.push(" AND (held_us < ").bind(*held).push(" OR held_us = ").bind(*held);
            sql.push(" AND id < ").bind(id.clone()).push(")");
        }
        sql.push(" ORDER BY held_us DESC, id DESC LIMIT ").bind(i64::from(filter.limit) + 1);
        let mut listed = Listed::default();
        let (mut count, mut bytes, mut last) = (0, 0, None);
        let mut transaction = self.begin_reading().await?;
        {
            let mut rows = sql.query().fetch(&mut *transaction);
            while let Some(row) = rows.try_next().await? {
                if count == filter.limit || bytes > LARGEST_PAGE {
                    listed.next = last;
                    break;
                }
                (count, last) = (count + 1, Some(place_of(&row)?));
                bytes += usize::try_from(row.try_get::<i64, _>("bytes")?).unwrap_or_default();
                match self.approval_of(&row) {
                    Ok(approval) => listed.approvals.push(approval),
                    Err(_) => listed.unreadable += 1,
                }
            }
        }
        transaction.commit().await?;
        Ok(listed)
    }
}

fn place_of(row: &AnyRow) -> Result<(i64, String), StateError> {
    Ok((row.try_get("held_us")?, row.try_get("id")?))
}

/// The column that calls are found by whose approvers are named; none where nobody is.
pub(super) fn column(approvers: &[String]) -> Option<String> {
    (!approvers.is_empty()).then(|| format!("|{}|", approvers.join("|")))
}

/// Finds a name in that column. One with a bar in it finds too much, which whoever opens the call sees.
fn pattern(name: &str) -> String {
    let mut pattern = "%|".to_owned();
    for letter in name.chars() {
        if matches!(letter, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(letter);
    }
    pattern.push_str("|%");
    pattern
}
