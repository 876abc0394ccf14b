//! What is recorded of a call (GATE-15): one record before it leaves, one after, one where it never left.
//!
//! Borrowed fields, so that a record is written straight from what the corridor already holds. The
//! journal stores the JSON of a record as it is; names of fields are stable.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Caller;

/// What a record tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordKind {
    /// A call that is about to leave; an `outcome` with the same call id follows.
    Intent,
    /// How a call ended.
    Outcome,
    /// A call that did not leave: denied or held.
    Refusal,
    /// Something else worth keeping: a session, a recovery, an operation of a person.
    Event,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The server answered with a result.
    Ok,
    /// The server answered with an error, or with a result marked as one.
    ToolError,
    /// The server could not be reached, or broke the protocol.
    UpstreamError,
    /// It took longer than allowed.
    Timeout,
    /// The answer was larger than allowed.
    TooLarge,
    /// The client cancelled or went away.
    Cancelled,
    /// It never left: denied.
    Denied,
    /// It never left: held for somebody's answer.
    Held,
    /// It left, and nobody knows how it ended: the gateway stopped in between.
    Unknown,
}

impl Status {
    pub const ALL: [Self; 9] = [
        Self::Ok,
        Self::ToolError,
        Self::UpstreamError,
        Self::Timeout,
        Self::TooLarge,
        Self::Cancelled,
        Self::Denied,
        Self::Held,
        Self::Unknown,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool_error",
            Self::UpstreamError => "upstream_error",
            Self::Timeout => "timeout",
            Self::TooLarge => "too_large",
            Self::Cancelled => "cancelled",
            Self::Denied => "denied",
            Self::Held => "held",
            Self::Unknown => "unknown",
        }
    }
}

/// One record. Empty fields are left out.
#[derive(Debug, Clone, Serialize)]
pub struct AuditRecord<'a> {
    pub kind: RecordKind,
    pub time: Timestamp,
    /// Ties an outcome to its intent; unique within the node.
    pub call: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub door: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub groups: &'a [String],
    /// The role of an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_id: Option<&'a str>,
    /// A short mark of the client's session, never its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<&'a str>,
    /// The name the client gives itself, and its version: nobody checked either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_version: Option<&'a str>,
    /// What a record of a held call tells of it: `asked`, `requested`, `answered`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The rule that decided, and where it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule_source: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy_version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_bytes: Option<u64>,
    /// Keyed digest of the call (REVIEW-5 under the keyring), in hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments_digest: Option<&'a str>,
    /// The arguments of the call without what is hidden, where `[audit] arguments` asks for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<&'a serde_json::Value>,
    /// What a classifier said, and how.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classifier: Option<VerdictRecord<'a>>,
    /// Free words for events and errors; never holds arguments or secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<&'a str>,
}

/// What is recorded of a classifier's verdict, besides the call, its latency and its words.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct VerdictRecord<'a> {
    /// `allow`, `hold` or `none`.
    pub verdict: &'static str,
    pub model: &'a str,
    pub prompt_version: u32,
    pub cached: bool,
    /// It was only listened to.
    pub shadow: bool,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<&'static str>,
}

impl<'a> AuditRecord<'a> {
    /// Who it is about.
    pub fn describe(&mut self, caller: &'a Caller) {
        self.user = caller.user.as_deref();
        self.groups = &caller.groups;
        self.agent_type = caller.role.as_deref();
        self.token_id = caller.token.id.as_deref();
        self.mode = caller.mode.as_deref();
        self.task_id = caller.context.task.as_deref();
        self.project_id = caller.context.project.as_deref();
        self.run_id = caller.context.run.as_deref();
        self.job_id = caller.context.job.as_deref();
    }
}

impl AuditRecord<'_> {
    /// A record with nothing but its kind, time and call.
    #[must_use]
    pub fn new(kind: RecordKind, time: Timestamp, call: u64) -> Self {
        Self {
            kind,
            time,
            call,
            door: None,
            method: None,
            server: None,
            tool: None,
            user: None,
            groups: &[],
            agent_type: None,
            token_id: None,
            mode: None,
            task_id: None,
            project_id: None,
            run_id: None,
            job_id: None,
            session: None,
            client: None,
            client_version: None,
            event: None,
            decision: None,
            stage: None,
            reason: None,
            rule: None,
            rule_source: None,
            policy_version: None,
            approval_id: None,
            status: None,
            duration_us: None,
            request_bytes: None,
            response_bytes: None,
            arguments_digest: None,
            arguments: None,
            classifier: None,
            detail: None,
        }
    }
}
