//! Grants: what runs without asking for a while, and who said so.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_core::{Grant, GrantClaims};

use super::Nothing;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Remark, Role};

/// The operation.
#[derive(Debug)]
pub struct GrantsList;

/// A grant as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantView {
    pub id: String,
    #[serde(flatten)]
    pub claims: GrantClaims,
    pub issued_at: String,
    pub expires_at: String,
    pub calls_left: Option<u64>,
    pub revoked: bool,
    /// What is odd about it, said as it is issued.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Remark>,
}

impl From<Grant> for GrantView {
    fn from(grant: Grant) -> Self {
        Self {
            id: grant.id,
            claims: grant.claims,
            issued_at: grant.issued_at.to_string(),
            expires_at: grant.expires_at.to_string(),
            calls_left: grant.calls_left,
            revoked: grant.revoked_at.is_some(),
            findings: Vec::new(),
        }
    }
}

impl GrantView {
    /// `server:tool`.
    #[must_use]
    pub fn entry(&self) -> String {
        format!("{}:{}", shown(&self.claims.server), self.claims.tool.as_deref().map_or("*".into(), shown))
    }

    /// Whose calls it is for.
    #[must_use]
    pub fn whose(&self) -> String {
        let claims = &self.claims;
        let named =
            [("token", &claims.token), ("session", &claims.session), ("user", &claims.user), ("run", &claims.run)];
        let said = named.iter().filter_map(|(name, value)| Some(format!("{name} {}", shown(value.as_deref()?))));
        said.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn words(&self) -> String {
        let calls = self.calls_left.map_or("as many calls as are made".to_owned(), |calls| format!("{calls} calls"));
        format!("grant {}: {} for {}, {calls}, until {}", self.id, self.entry(), self.whose(), self.expires_at)
    }

    /// Whether somebody may see it: approvers all, others what is theirs.
    pub(super) fn is_for(&self, actor: &Actor) -> bool {
        let is_own = |user: &Option<String>| user.as_ref() == Some(&actor.user);
        actor.is(Role::Approver) || is_own(&self.claims.user) || self.claims.by == actor.user
    }
}

impl Operation for GrantsList {
    const PATH: &'static str = "/api/v1/grants";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::State;
    const FOR: Role = Role::User;
    const ALSO_FOR: Option<Role> = Some(Role::Approver);
    type Request = Nothing;
    type Outcome = Vec<GrantView>;

    async fn run(clerk: &Clerk, actor: &Actor, _request: Nothing) -> Result<Vec<GrantView>, ControlError> {
        let grants = clerk.state()?.grants().await?;
        Ok(grants.into_iter().map(GrantView::from).filter(|grant| grant.is_for(actor)).collect())
    }
}
