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
    words: fn(Here<'_>, &Tokens) -> Option<String>,
}

/// What is here besides tokens that a change may concern.
#[derive(Debug, Clone, Copy)]
pub struct Here<'a> {
    /// The operating-system user who runs this.
    pub local_user: &'a str,
    /// Whether there is a permissions.json that counts.
    pub has_permission_files: bool,
}

const CHANGES: &[Change] = &[
    Change { name: "client_rights", words: |_, tokens| client_rights(tokens) },
    Change { name: "permission_files", words: permission_files },
];

/// Tells in the log what was not told yet. Not being able to is no reason not to start.
pub async fn tell(state: &State, here: Here<'_>, tokens: &Tokens, now: Timestamp) {
    if let Err(error) = told(state, here, tokens, now).await {
        tracing::warn!("whether an upgrade changed something cannot be looked up: {error}");
    }
}

async fn told(state: &State, here: Here<'_>, tokens: &Tokens, now: Timestamp) -> Result<(), StateError> {
    for notice in state.upgrade_notices().await?.iter().filter(|notice| notice.told_at.is_none()) {
        if let Some(words) = words(&notice.name, here, tokens) {
            tracing::warn!("this version changes what is permitted: {words}");
        }
        // After it was said: a start that ends in between says it again.
        state.tell_upgrade(&notice.name, now).await?;
    }
    Ok(())
}

/// What is to be repeated; or that it cannot be looked up.
pub async fn recent(state: &State, here: Here<'_>, now: Timestamp) -> Vec<String> {
    repeated(state, here, now).await.unwrap_or_else(|error| vec![error.to_string()])
}

async fn repeated(state: &State, here: Here<'_>, now: Timestamp) -> Result<Vec<String>, StateError> {
    let mut tokens = Tokens::default();
    state.catch_up_tokens(&mut tokens).await?;
    let notices = state.upgrade_notices().await?;
    let is_recent = |at: Option<Timestamp>| at.is_none_or(|at| now.as_second() - at.as_second() < REPEATED);
    let recent = notices.iter().filter(|notice| is_recent(notice.told_at));
    Ok(recent.filter_map(|notice| words(&notice.name, here, &tokens)).collect())
}

fn words(name: &str, here: Here<'_>, tokens: &Tokens) -> Option<String> {
    CHANGES.iter().find(|change| change.name == name).and_then(|change| (change.words)(here, tokens))
}

/// PERM-1: before, permissions.json counted for the local person alone.
fn permission_files(here: Here<'_>, tokens: &Tokens) -> Option<String> {
    let count = tokens.of_user(here.local_user);
    (count > 0 && here.has_permission_files).then(|| {
        let user = toolwarden_core::name::shown(here.local_user);
        format!(
            "permissions.json now counts for every token issued to {user}: {count} token(s). Their calls run unasked where \
             an entry of these files, or of an `alwaysAllow` that counts for {user}, matches (wider), entries stored for {user} no longer count where a file defines the \
             list (narrower), and the workspace file is that of the token's workspace, else of this server's. See \
             `toolwarden explain SERVER:TOOL --as TOKEN_ID`"
        )
    })
}

/// SELF-5: before, a person's token without rights had the right `user`, and one with rights answered its own calls.
fn client_rights(tokens: &Tokens) -> Option<String> {
    let of_persons = |has_rights: bool| {
        let is_meant = move |token: &&StoredToken| {
            let claims = &token.claims;
            claims.bearer == Bearer::Person && claims.rights.is_empty() != has_rights && token.revoked_at.is_none()
        };
        let mut ids: Vec<_> =
            tokens.by_id.values().map(|token| &**token).filter(is_meant).map(|token| &*token.id).collect();
        ids.sort_unstable();
        ids.join(", ")
    };
    let (without, with) = (of_persons(false), of_persons(true));
    let mut said = Vec::new();
    if !without.is_empty() {
        said.push(format!(
            "persons' tokens that were issued without `--right` may call tools and nothing else; they answered held calls \
             and changed settings, allowlists and grants of their user before. This concerns {without}. To go on, issue \
             others with `toolwarden tokens issue --person --right user`"
        ));
    }
    if !with.is_empty() {
        said.push(format!(
            "no token answers the calls it made any more, whatever its rights: what {with} had held waits for another \
             token, the command line or the page"
        ));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

#[cfg(test)]
#[path = "upgrading_tests.rs"]
mod tests;
