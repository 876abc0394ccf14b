//! Held calls and the answers to them, as data: how far one is, what a person is shown, what a person said.
//!
//! A held call is *proposed* while the judge and the other payers look at it; what is stored begins as *held*.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::acting_token::ActingToken;
use crate::caller::{Caller, CallerKind};
use crate::opinion::Opinion;
use crate::payment::Payer;
use crate::weak::{self, Weakness};

/// How far a held call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalState {
    /// Waits for an answer.
    Held,
    /// A person permitted it, and nobody has made the call yet.
    Approved,
    Rejected,
    /// Nobody answered, or nobody made the call, in time.
    Expired,
    /// Its caller gave it up while it waited.
    Cancelled,
    /// A gateway took it, to make the call: nobody else can.
    Consumed,
    /// The call is in the journal and on its way.
    Dispatched,
    Succeeded,
    Failed,
    /// It left, or may have, and nobody knows how it ended.
    Unknown,
}

impl ApprovalState {
    pub const ALL: [Self; 10] = [
        Self::Held,
        Self::Approved,
        Self::Rejected,
        Self::Expired,
        Self::Cancelled,
        Self::Consumed,
        Self::Dispatched,
        Self::Succeeded,
        Self::Failed,
        Self::Unknown,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
            Self::Consumed => "consumed",
            Self::Dispatched => "dispatched",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// The states this one can be followed by. Everything else is refused by the store.
    #[must_use]
    pub fn next(self) -> &'static [Self] {
        match self {
            Self::Held => &[Self::Approved, Self::Rejected, Self::Expired, Self::Cancelled],
            // A person can take it back until somebody used it.
            Self::Approved => &[Self::Consumed, Self::Rejected, Self::Expired, Self::Cancelled],
            // Back, where it is certain that nothing left.
            Self::Consumed => &[Self::Dispatched, Self::Approved, Self::Unknown],
            Self::Dispatched => &[Self::Succeeded, Self::Failed, Self::Unknown],
            // A gateway that was taken for lost tells in the end; or a person permits to run it once more.
            Self::Unknown => &[Self::Succeeded, Self::Failed, Self::Approved],
            Self::Rejected | Self::Expired | Self::Cancelled | Self::Succeeded | Self::Failed => &[],
        }
    }

    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        self.next().contains(&next)
    }

    /// Whether somebody has to do with it still.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Held | Self::Approved | Self::Consumed | Self::Dispatched)
    }
}

/// Who made a held call, as the person who answers is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeldCaller {
    pub is_agent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The tokens that token was issued or rotated with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Name and version of the client program, as it reports them itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
}

impl From<&Caller> for HeldCaller {
    fn from(caller: &Caller) -> Self {
        let context = &caller.context;
        Self {
            is_agent: caller.kind == CallerKind::Agent,
            user: caller.user.clone(),
            groups: caller.groups.clone(),
            role: caller.role.clone(),
            token: caller.token.id.clone(),
            ancestors: caller.token.ancestors.clone(),
            mode: caller.mode.clone(),
            task: context.task.clone(),
            project: context.project.clone(),
            run: context.run.clone(),
            job: context.job.clone(),
            client: None,
        }
    }
}

impl HeldCaller {
    /// Whether the call was made with this token, or with one of the same credential (SELF-5).
    #[must_use]
    pub fn called_with(&self, token: &ActingToken) -> bool {
        let made = |id: &String| ActingToken { id: id.clone(), ancestors: self.ancestors.clone() };
        self.token.as_ref().map(made).is_some_and(|made| token.is_related_to(&made))
    }
}

/// Who may answer a held call, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApprovalNeeds {
    /// Users, and groups as `group:NAME`; empty = whoever has the right, and the caller's own user.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// Somebody other than the caller's own user.
    pub second_person: bool,
    /// With a word on why.
    pub reason: bool,
}

impl ApprovalNeeds {
    /// Whether this person is among those who are named; true where nobody is.
    #[must_use]
    pub fn names(&self, user: &str, groups: &[String]) -> bool {
        let is_one = |named: &String| match named.strip_prefix(GROUP) {
            Some(group) => groups.iter().any(|own| own == group),
            None => named == user,
        };
        self.approvers.is_empty() || self.approvers.iter().any(is_one)
    }

    /// What an approval lacks to count; none where it lacks nothing.
    #[must_use]
    pub fn lacks(&self, caller: &HeldCaller, answer: &HeldAnswer) -> Option<&'static str> {
        if answer.is_by_credential_of(caller) && !weak::is(Weakness::Approvals) {
            return Some(
                "the token that made a call does not answer it, whatever its rights, nor does a token that issued it or \
                 was issued by the same token: answer by command, or with a token that was issued by command and has \
                 the right `user` or `approver`",
            );
        }
        if !self.names(&answer.by, &answer.groups) {
            return Some("others are named to answer calls of this tool");
        }
        // `ROOT` and ` root` are no second person.
        let is_same = |user: &String| user.trim().eq_ignore_ascii_case(answer.by.trim());
        if self.second_person && caller.user.as_ref().is_some_and(is_same) {
            return Some("calls of this tool need the answer of another person than the caller");
        }
        if self.reason && answer.note.as_deref().is_none_or(|note| note.trim().is_empty()) {
            return Some("an answer to calls of this tool needs a note that says why");
        }
        None
    }
}

/// How the anchor of "this session" begins: the id of a token, or the mark of a conversation.
pub const TOKEN_ANCHOR: &str = "token:";
pub const SESSION_ANCHOR: &str = "session:";

/// How groups are told from users among approvers.
const GROUP: &str = "group:";

/// A call as a person is shown it. Sealed where it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldCall {
    pub server: String,
    pub tool: String,
    /// The JSON-RPC method.
    pub method: String,
    /// Everything that would be sent, as it came.
    pub params: String,
    /// What the tool says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claims: Option<String>,
    pub caller: HeldCaller,
    /// The stable code of why it is held.
    pub reason: String,
    /// The same in words.
    pub message: String,
    /// What decided, and where that is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Entries of an allowlist that would let such calls through from now on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<String>,
    pub payers: Vec<Payer>,
    pub policy_version: u64,
    /// The conversation that "this session" would mean; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<String>,
    /// A mark of the tool as it is defined now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    #[serde(default)]
    pub needs: ApprovalNeeds,
    /// What the tool answered, where that waits, and not the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// What a classifier said of it, where one was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opinion: Option<Opinion>,
}

/// How much an answer permits besides this one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerScope {
    Once,
    /// The same tool in the same conversation, for a while.
    Session,
    /// The tool, from now on.
    Tool,
    /// Every tool of the server, from now on.
    Server,
    /// The tool with such arguments, from now on.
    Narrowed,
}

impl AnswerScope {
    pub const ALL: [Self; 5] = [Self::Once, Self::Session, Self::Tool, Self::Server, Self::Narrowed];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Session => "session",
            Self::Tool => "tool",
            Self::Server => "server",
            Self::Narrowed => "narrowed",
        }
    }
}

/// What a person said to a held call. Sealed where it is kept, with the call it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldAnswer {
    pub is_approval: bool,
    /// Who said it, and the groups they proved to be in.
    pub by: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Where: as in the record of calls.
    pub door: String,
    pub at: Timestamp,
    pub scope: AnswerScope,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The token it was given with. None at the machine itself, by an integration, and in the form of a client whose
    /// token says `may_answer` (REVIEW-6).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<ActingToken>,
}

impl HeldAnswer {
    /// Whether the credential that made the call gave the answer (SELF-5).
    #[must_use]
    pub fn is_by_credential_of(&self, caller: &HeldCaller) -> bool {
        self.token.as_ref().is_some_and(|token| caller.called_with(token))
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
