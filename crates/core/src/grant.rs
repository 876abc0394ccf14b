//! Grants: a person's answer that counts for more than one call (REVIEW-7, REVIEW-9), as data.
//!
//! A grant names what may be called and whose calls these are; everything it names must be so.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::acting_token::ActingToken;
use crate::caller::Caller;

/// What a grant permits. Fixed when it is issued.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GrantClaims {
    pub server: String,
    /// None = every tool of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The tool as it was defined then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub definition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// The mark of a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Who gave it, and the groups they proved to be in.
    pub by: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// The token it was given with: it does not count for calls of that token (SELF-5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_token: Option<ActingToken>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A call that a grant may be for.
#[derive(Debug, Clone, Copy)]
pub struct GrantedCall<'a> {
    pub caller: &'a Caller,
    /// The mark of the conversation it is made in.
    pub session: Option<&'a str>,
    pub server: &'a str,
    pub tool: &'a str,
    pub definition: &'a str,
}

impl GrantClaims {
    /// Whether it says whose calls it is for: one that does not would be for everybody's.
    #[must_use]
    pub fn is_somebodys(&self) -> bool {
        self.token.is_some() || self.session.is_some() || self.user.is_some() || self.run.is_some()
    }

    /// Whether it is for this call. Names are compared exactly: this side opens.
    #[must_use]
    pub fn covers(&self, call: &GrantedCall<'_>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| wanted.as_deref().is_none_or(|it| Some(it) == found);
        self.is_somebodys()
            && self.server == call.server
            && is(&self.tool, Some(call.tool))
            && is(&self.definition, Some(call.definition))
            && is(&self.token, call.caller.token.id.as_deref())
            && is(&self.session, call.session)
            && is(&self.user, call.caller.user.as_deref())
            && is(&self.run, call.caller.context.run.as_deref())
    }
}

/// A grant as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub id: String,
    pub claims: GrantClaims,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    /// None = as many as may be.
    pub calls_left: Option<u64>,
    pub revoked_at: Option<Timestamp>,
}

impl Grant {
    #[must_use]
    pub fn counts(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at > now && self.calls_left != Some(0)
    }
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;
