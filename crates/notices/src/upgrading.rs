//! What an upgrade changed for those who used an earlier version: told in the log at the first start, and by `doctor` for
//! a week after that.
//!
//! A change has a row in the store, which its migration makes where there is something it concerns, and an entry in
//! `CHANGES`, which says it.

use jiff::Timestamp;
use toolwarden_core::Bearer;
use toolwarden_store::State;
use toolwarden_store::state::{StateError, StoredToken, Tokens};

/// How long `doctor` repeats it, in seconds.
const REPEATED: i64 = 7 * 24 * 60 * 60;

/// A change that stops or widens something.
struct Change {
    /// Its row in `upgrade_notices`.
    name: &'static str,
    /// What it means here; none where it changes nothing.
    words: fn(&Tokens) -> Option<String>,
}

const CHANGES: &[Change] = &[Change { name: "client_rights", words: client_rights }];

/// Tells in the log what was not told yet. Not being able to is no reason not to start.
pub async fn tell(state: &State, tokens: &Tokens, now: Timestamp) {
    if let Err(error) = told(state, tokens, now).await {
        tracing::warn!("whether an upgrade changed something cannot be looked up: {error}");
    }
}

async fn told(state: &State, tokens: &Tokens, now: Timestamp) -> Result<(), StateError> {
    for notice in state.upgrade_notices().await?.iter().filter(|notice| notice.told_at.is_none()) {
        if let Some(words) = words(&notice.name, tokens) {
            tracing::warn!("this version changes what is permitted: {words}");
        }
        // After it was said: a start that ends in between says it again.
        state.tell_upgrade(&notice.name, now).await?;
    }
    Ok(())
}

/// What is to be repeated; or that it cannot be looked up.
pub async fn recent(state: &State, now: Timestamp) -> Vec<String> {
    repeated(state, now).await.unwrap_or_else(|error| vec![error.to_string()])
}

async fn repeated(state: &State, now: Timestamp) -> Result<Vec<String>, StateError> {
    let mut tokens = Tokens::default();
    state.catch_up_tokens(&mut tokens).await?;
    let notices = state.upgrade_notices().await?;
    let is_recent = |at: Option<Timestamp>| at.is_none_or(|at| now.as_second() - at.as_second() < REPEATED);
    let recent = notices.iter().filter(|notice| is_recent(notice.told_at));
    Ok(recent.filter_map(|notice| words(&notice.name, &tokens)).collect())
}

fn words(name: &str, tokens: &Tokens) -> Option<String> {
    CHANGES.iter().find(|change| change.name == name).and_then(|change| (change.words)(tokens))
}

/// SELF-5: before, a person's token without rights had the right `user`.
fn client_rights(tokens: &Tokens) -> Option<String> {
    let has_lost = |token: &&StoredToken| {
        token.claims.bearer == Bearer::Person && token.claims.rights.is_empty() && token.revoked_at.is_none()
    };
    let mut ids: Vec<_> =
        tokens.by_id.values().map(|token| &**token).filter(has_lost).map(|token| &*token.id).collect();
    ids.sort_unstable();
    (!ids.is_empty()).then(|| {
        format!(
            "persons' tokens that were issued without `--right` may call tools and nothing else; they answered held calls \
             and changed settings, allowlists and grants of their user before. This concerns {}. To go on, issue others \
             with `toolwarden tokens issue --person --right user`. No token answers the calls it made, whatever its rights",
            ids.join(", ")
        )
    })
}

#[cfg(test)]
#[path = "upgrading_tests.rs"]
mod tests;
