//! One row: a call with its outcome, a refusal or an event. Field names are those of INTERFACES.md.
//!
//! Read from the JSON of a journal line, from a database row, and written as JSON again; all fields
//! are always written, so that scripts find every name.

use serde::{Deserialize, Serialize};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, Row as _};

use super::{IndexError, signed, unsigned};
use crate::database::{DatabaseError, Engine};
use crate::sql::Sql;

/// A row of the record.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Row {
    pub time: String,
    pub kind: String,
    pub decision: Option<String>,
    pub stage: Option<String>,
    pub reason: Option<String>,
    pub status: Option<String>,
    pub server: Option<String>,
    pub tool: Option<String>,
    pub user: Option<String>,
    pub agent_type: Option<String>,
    pub token_id: Option<String>,
    pub task_id: Option<String>,
    pub approval_id: Option<String>,
    pub duration_us: Option<u64>,
    pub door: Option<String>,
    pub method: Option<String>,
    pub groups: Vec<String>,
    pub mode: Option<String>,
    pub project_id: Option<String>,
    pub run_id: Option<String>,
    pub job_id: Option<String>,
    pub session: Option<String>,
    pub rule: Option<String>,
    pub rule_source: Option<String>,
    pub policy_version: Option<u64>,
    pub request_bytes: Option<u64>,
    pub response_bytes: Option<u64>,
    pub arguments_digest: Option<String>,
    pub detail: Option<String>,
    #[serde(skip_deserializing)]
    pub node: String,
    pub call: u64,
    #[serde(rename(deserialize = "seq"))]
    pub sequence: u64,
    /// The hash of the line; with node and sequence it is the receipt.
    #[serde(skip_deserializing)]
    pub hash: String,
    /// The line of the outcome.
    #[serde(skip_deserializing)]
    pub outcome_sequence: Option<u64>,
    /// What the client says of itself.
    pub client: Option<String>,
    pub client_version: Option<String>,
    /// What a record of a held call tells of it.
    pub event: Option<String>,
    /// Without what is hidden; only where `[audit] arguments` was on.
    pub arguments: Option<serde_json::Value>,
}

/// The columns in the order rows are written.
pub(super) const COLUMNS: &str = "node, sequence, hash, kind, call_id, time_text, time_us, decision, stage, reason, \
     status, server, tool, user_name, agent_type, token_id, task_id, approval_id, duration_us, door, method, \
     group_names, mode, project_id, run_id, job_id, session_mark, rule_name, rule_source, policy_version, \
     request_bytes, response_bytes, arguments_digest, detail, client, client_version, event, outcome_sequence, \
     arguments";

impl Row {
    /// Completes a call that left with how it ended.
    pub(super) fn complete(&mut self, outcome: Self) {
        self.status = outcome.status;
        self.duration_us = outcome.duration_us;
        self.request_bytes = outcome.request_bytes.or(self.request_bytes);
        self.response_bytes = outcome.response_bytes;
        self.detail = outcome.detail.or(self.detail.take());
        self.stage = self.stage.take().or(outcome.stage);
        self.reason = self.reason.take().or(outcome.reason);
        self.approval_id = self.approval_id.take().or(outcome.approval_id);
        self.outcome_sequence = Some(outcome.sequence);
    }

    /// The same, for a call that is in the database already.
    pub(super) fn completion(&self) -> Query<'_, Any, AnyArguments> {
        sqlx::query(
            "UPDATE audit_calls SET status = $1, duration_us = $2, request_bytes = COALESCE($3, request_bytes), \
             response_bytes = $4, detail = COALESCE($5, detail), stage = COALESCE(stage, $6), \
             reason = COALESCE(reason, $7), approval_id = COALESCE(approval_id, $8), outcome_sequence = $9 \
             WHERE node = $10 AND call_id = $11 AND kind = 'intent' AND outcome_sequence IS NULL",
        )
        .bind(&self.status)
        .bind(self.duration_us.map(signed))
        .bind(self.request_bytes.map(signed))
        .bind(self.response_bytes.map(signed))
        .bind(&self.detail)
        .bind(&self.stage)
        .bind(&self.reason)
        .bind(&self.approval_id)
        .bind(signed(self.sequence))
        .bind(&self.node)
        .bind(signed(self.call))
    }

    /// One statement that inserts many rows.
    pub(super) fn insertion(engine: Engine, rows: &[Self]) -> Sql {
        let mut sql = Sql::new(engine, "INSERT INTO audit_calls (");
        sql.push(COLUMNS).push(") VALUES ");
        sql.rows(rows, |values, row| {
            values.value(row.node.clone()).value(signed(row.sequence)).value(row.hash.clone());
            values.value(row.kind.clone()).value(signed(row.call));
            values.value(row.time.clone()).value(row.time_us());
            for text in row.first_texts() {
                values.value(text.clone());
            }
            values.value(row.duration_us.map(signed));
            values.value(row.door.clone()).value(row.method.clone()).value(row.group_names());
            for text in row.later_texts() {
                values.value(text.clone());
            }
            for number in [row.policy_version, row.request_bytes, row.response_bytes] {
                values.value(number.map(signed));
            }
            values.value(row.arguments_digest.clone()).value(row.detail.clone());
            values.value(row.client.clone()).value(row.client_version.clone()).value(row.event.clone());
            values.value(row.outcome_sequence.map(signed));
            values.value(row.arguments.as_ref().map(ToString::to_string));
        });
        sql
    }

    /// `decision` to `approval_id`, in the order of the columns.
    fn first_texts(&self) -> [&Option<String>; 11] {
        [
            &self.decision,
            &self.stage,
            &self.reason,
            &self.status,
            &self.server,
            &self.tool,
            &self.user,
            &self.agent_type,
            &self.token_id,
            &self.task_id,
            &self.approval_id,
        ]
    }

    /// `mode` to `rule_source`, in the order of the columns.
    fn later_texts(&self) -> [&Option<String>; 7] {
        [&self.mode, &self.project_id, &self.run_id, &self.job_id, &self.session, &self.rule, &self.rule_source]
    }

    /// Microseconds since 1970; the text keeps the rest.
    pub(super) fn time_us(&self) -> i64 {
        self.time.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_microsecond).unwrap_or_default()
    }

    fn group_names(&self) -> Option<String> {
        if self.groups.is_empty() { None } else { serde_json::to_string(&self.groups).ok() }
    }

    pub(super) fn read(row: &AnyRow) -> Result<Self, IndexError> {
        let text = |name: &str| row.try_get::<Option<String>, _>(name);
        let number = |name: &str| row.try_get::<Option<i64>, _>(name).map(|number| number.map(unsigned));
        let groups = match text("group_names")? {
            Some(json) => serde_json::from_str(&json).map_err(|error| DatabaseError::Value(error.to_string()))?,
            None => Vec::new(),
        };
        let arguments = match text("arguments")? {
            Some(json) => Some(serde_json::from_str(&json).map_err(|error| DatabaseError::Value(error.to_string()))?),
            None => None,
        };
        Ok(Self {
            time: row.try_get("time_text")?,
            kind: row.try_get("kind")?,
            decision: text("decision")?,
            stage: text("stage")?,
            reason: text("reason")?,
            status: text("status")?,
            server: text("server")?,
            tool: text("tool")?,
            user: text("user_name")?,
            agent_type: text("agent_type")?,
            token_id: text("token_id")?,
            task_id: text("task_id")?,
            approval_id: text("approval_id")?,
            duration_us: number("duration_us")?,
            door: text("door")?,
            method: text("method")?,
            groups,
            mode: text("mode")?,
            project_id: text("project_id")?,
            run_id: text("run_id")?,
            job_id: text("job_id")?,
            session: text("session_mark")?,
            rule: text("rule_name")?,
            rule_source: text("rule_source")?,
            policy_version: number("policy_version")?,
            request_bytes: number("request_bytes")?,
            response_bytes: number("response_bytes")?,
            arguments_digest: text("arguments_digest")?,
            detail: text("detail")?,
            client: text("client")?,
            client_version: text("client_version")?,
            event: text("event")?,
            node: row.try_get("node")?,
            call: unsigned(row.try_get("call_id")?),
            sequence: unsigned(row.try_get("sequence")?),
            hash: row.try_get("hash")?,
            outcome_sequence: number("outcome_sequence")?,
            arguments,
        })
    }
}
