//! The tokens that were issued: what they are good for, never their secrets.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolwarden_core::Claims;
use toolwarden_store::state::{StoredToken, Tokens};

use super::Nothing;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct TokensList;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub tokens: Vec<TokenView>,
    /// Rows that somebody changed in the database: they count as nobody's.
    pub not_authentic: Vec<String>,
}

/// One token.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TokenView {
    pub id: String,
    /// `active`, `revoked`, `expired` or `used_up`.
    pub state: String,
    #[serde(flatten)]
    pub claims: Claims,
    pub issued_at: Timestamp,
    pub issued_by: String,
    /// Counted only where there is a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    pub revoked_at: Option<Timestamp>,
}

impl TokenView {
    fn of(token: &StoredToken, now: Timestamp) -> Self {
        let claims = &token.claims;
        let state = if token.revoked_at.is_some() {
            "revoked"
        } else if claims.expires_at.is_some_and(|end| end <= now) {
            "expired"
        } else if claims.max_calls.is_some_and(|most| token.calls >= most) {
            "used_up"
        } else {
            "active"
        };
        Self {
            id: token.id.clone(),
            state: state.to_owned(),
            claims: claims.clone(),
            issued_at: token.issued_at,
            issued_by: token.issued_by.clone(),
            calls: claims.max_calls.map(|_| token.calls),
            revoked_at: token.revoked_at,
        }
    }
}

impl Operation for TokensList {
    const PATH: &'static str = "/api/v1/tokens/list";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::State;
    const FOR: Role = Role::Admin;
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        // Read anew: how many calls were made is not told by the feed.
        let mut tokens = Tokens::default();
        clerk.state()?.catch_up_tokens(&mut tokens).await?;
        let now = clerk.parts.clock.now();
        let mut views: Vec<TokenView> = tokens.by_id.values().map(|token| TokenView::of(token, now)).collect();
        views.sort_by(|one, other| other.issued_at.cmp(&one.issued_at).then(one.id.cmp(&other.id)));
        Ok(Outcome { tokens: views, not_authentic: tokens.not_authentic })
    }
}
