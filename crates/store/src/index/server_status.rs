//! The state of upstream servers, written by gateways and read by the command line and the console.

use jiff::Timestamp;
use serde::Serialize;
use sqlx::Row as _;

use super::{Index, IndexError};
use crate::database::DatabaseError;

/// How one server is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerStatus {
    pub name: String,
    /// `connected`, `connecting`, `needs_auth`, `error`, `disabled`.
    pub status: String,
    pub tools: u32,
    pub detail: Option<String>,
    pub updated: Timestamp,
}

impl Index {
    /// Writes the state of a server over the former one.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn set_server_status(&self, state: &ServerStatus) -> Result<(), IndexError> {
        sqlx::query(
            "INSERT INTO server_status (name, status, tools, detail, updated) VALUES ($1, $2, $3, $4, $5) \
             ON CONFLICT (name) DO UPDATE SET status = excluded.status, tools = excluded.tools, \
             detail = excluded.detail, updated = excluded.updated",
        )
        .bind(&state.name)
        .bind(&state.status)
        .bind(i64::from(state.tools))
        .bind(&state.detail)
        .bind(state.updated.to_string())
        .execute(&self.database.pool)
        .await?;
        Ok(())
    }

    /// Forgets a server that is no longer configured.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn remove_server_status(&self, name: &str) -> Result<(), IndexError> {
        sqlx::query("DELETE FROM server_status WHERE name = $1").bind(name).execute(&self.database.pool).await?;
        Ok(())
    }

    /// The states of all servers, by name.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn server_statuses(&self) -> Result<Vec<ServerStatus>, IndexError> {
        let query = "SELECT name, status, tools, detail, updated FROM server_status ORDER BY name";
        let rows = sqlx::query(query).fetch_all(&self.database.pool).await?;
        let mut states = Vec::with_capacity(rows.len());
        for row in rows {
            let updated: String = row.try_get("updated")?;
            let tools: i64 = row.try_get("tools")?;
            states.push(ServerStatus {
                name: row.try_get("name")?,
                status: row.try_get("status")?,
                tools: u32::try_from(tools).unwrap_or_default(),
                detail: row.try_get("detail")?,
                updated: updated.parse().map_err(|_| DatabaseError::Value(updated))?,
            });
        }
        Ok(states)
    }
}
