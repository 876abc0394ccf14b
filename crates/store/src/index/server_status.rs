//! The state of upstream servers, written by each gateway for itself and read by the others and by commands.

use jiff::Timestamp;
use sqlx::Row as _;

use super::{Index, IndexError};
use crate::database::DatabaseError;

/// How one server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    pub name: String,
    /// Whose alone it is.
    pub owner: Option<String>,
    /// In the gateway's word: `connected`, `idle`, `error`, `disabled`.
    pub status: String,
    pub tools: u32,
    pub detail: Option<String>,
}

/// One of them, as a gateway told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub node: String,
    pub server: ServerStatus,
    pub updated: Timestamp,
}

impl Index {
    /// Writes the states of a node's servers over the former ones; none = the node has stopped.
    ///
    /// # Errors
    /// The database cannot be written.
    pub async fn tell_servers(
        &self,
        node: &str,
        servers: &[ServerStatus],
        updated: Timestamp,
    ) -> Result<(), IndexError> {
        let (node, updated) = (self.stored_name(node), updated.to_string());
        let mut transaction = self.database.pool.begin().await?;
        sqlx::query("DELETE FROM server_status WHERE node = $1").bind(&node).execute(&mut *transaction).await?;
        for server in servers {
            sqlx::query(
                "INSERT INTO server_status (node, name, owner, status, tools, detail, updated) \
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(&node)
            .bind(&server.name)
            .bind(&server.owner)
            .bind(&server.status)
            .bind(i64::from(server.tools))
            .bind(&server.detail)
            .bind(&updated)
            .execute(&mut *transaction)
            .await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// What other gateways told since then: all of them, or all but one.
    ///
    /// # Errors
    /// The database cannot be read.
    pub async fn servers_elsewhere(&self, here: Option<&str>, since: Timestamp) -> Result<Vec<Told>, IndexError> {
        let here = here.map(|node| self.stored_name(node));
        let query = "SELECT node, name, owner, status, tools, detail, updated FROM server_status ORDER BY node, name";
        let mut told = Vec::new();
        for row in sqlx::query(query).fetch_all(&self.database.pool).await? {
            let (node, updated): (String, String) = (row.try_get("node")?, row.try_get("updated")?);
            let tools: i64 = row.try_get("tools")?;
            let server = ServerStatus {
                name: row.try_get("name")?,
                owner: row.try_get("owner")?,
                status: row.try_get("status")?,
                tools: u32::try_from(tools).unwrap_or_default(),
                detail: row.try_get("detail")?,
            };
            let updated: Timestamp = updated.parse().map_err(|_| DatabaseError::Value(updated))?;
            if here.as_ref() != Some(&node) && updated >= since {
                told.push(Told { node, server, updated });
            }
        }
        Ok(told)
    }
}
