//! Who may come: tokens that were issued, and whether anybody may come without one (GATE-2, GATE-3).
//!
//! Takes what the store's feed knows; gives callers made once for each token, and their standing at this moment.
//! Revocation is looked up every time; what a token says is not read again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use jiff::Timestamp;
use toolwarden_conversations::request_state::Carried;
use toolwarden_core::{Caller, Decision, Reason, ShownToken, Stage, Standing, Weakness, weak};
use toolwarden_policy::Explanation;
use toolwarden_refusals::{Denial, Refusal};
use toolwarden_sources::Locations;
use toolwarden_store::State;
use toolwarden_store::state::{Counted, Feed, StoredToken, Tokens};

use crate::gateway::Gateway;
use crate::guesses::Guesses;
use crate::protection::Kept;
use crate::resolve::{Asked, What};
use crate::seldom::Seldom;

/// How long a gateway serves agents without having heard of its store.
pub const MAX_STALE: Duration = Duration::from_secs(30);

/// How long counting a call may take: a database that hangs must not keep the call's place.
const COUNTING: Duration = Duration::from_secs(5);

/// The identities a gateway knows.
#[derive(Debug, Default)]
pub struct Identities {
    /// None = nobody but the local person.
    known: Option<Known>,
    /// `[gateway] anonymous_loopback`.
    anonymous: Option<bool>,
    guesses: Guesses,
    /// That somebody was refused, in the log.
    refused: Seldom,
}

#[derive(Debug)]
struct Known {
    feed: Arc<Feed>,
    state: State,
    max_stale: Duration,
    local_user: String,
    callers: ArcSwap<Callers>,
}

/// The callers of tokens, each made once.
#[derive(Debug, Default)]
struct Callers {
    of: Arc<Tokens>,
    by_id: HashMap<String, (Arc<StoredToken>, Arc<Caller>)>,
}

impl Identities {
    /// The identities of a store.
    #[must_use]
    pub fn of(feed: Arc<Feed>, state: State, local_user: String, max_stale: Option<Duration>) -> Self {
        let max_stale = max_stale.unwrap_or(MAX_STALE);
        let known = Known { feed, state, max_stale, local_user, callers: ArcSwap::default() };
        Self { known: Some(known), anonymous: None, guesses: Guesses::default(), refused: Seldom::default() }
    }

    /// With `[gateway] anonymous_loopback` as it is written.
    #[must_use]
    pub fn with_anonymous(self, anonymous: Option<bool>) -> Self {
        Self { anonymous, ..self }
    }

    /// Whether whoever shows nothing, on this machine, is the local person.
    pub(crate) fn admits_anonymous(&self) -> bool {
        let any_was_issued = || {
            let known = self.known.as_ref();
            // A store that cannot be heard may hold some.
            known.is_some_and(|known| known.feed.known().tokens.any_was_issued() || known.is_stale())
        };
        self.anonymous.unwrap_or_else(|| !any_was_issued()) || weak::is(Weakness::Credentials)
    }

    /// Whether nobody knows if a token was issued: none was as far as is known, and nothing was heard since.
    pub(crate) fn cannot_tell(&self) -> bool {
        let known = self.known.as_ref();
        known.is_some_and(|known| known.is_stale() && !known.feed.known().tokens.any_was_issued())
    }

    /// The caller who bears a token.
    ///
    /// # Errors
    /// Nobody issued it, it counts no more, or nobody knows.
    pub fn bearer(&self, text: &str, now: Timestamp) -> Result<Arc<Caller>, Refusal> {
        let unknown = || match self.guesses.count(now) {
            false => Refusal::Unauthorized("the credential is not known here"),
            true => Refusal::TooManyGuesses,
        };
        let (Some(known), Some(shown)) = (&self.known, ShownToken::parse(text)) else { return Err(unknown()) };
        let found = known.callers().by_id.get(shown.id).cloned();
        let Some((token, caller)) = found.filter(|(token, _)| token.digest == shown.digest().to_string()) else {
            return Err(unknown());
        };
        if token.revoked_at.is_some() {
            return Err(Refusal::Unauthorized("the credential was revoked; issue a new token"));
        }
        if token.claims.expires_at.is_some_and(|end| end <= now) {
            return Err(Refusal::Unauthorized("the credential has expired; issue a new token"));
        }
        if known.is_stale() {
            return Err(Refusal::Unverified);
        }
        Ok(caller)
    }

    /// Says in the log that a client was refused, and what to do: whoever looks for the reason looks there. Nothing of
    /// what the client showed is said.
    pub(crate) fn say_refused(&self, why: &str, now: Timestamp) {
        let Some(left_out) = self.refused.may_say(now) else { return };
        let more =
            if left_out > 0 { format!(" ({left_out} more since the last line like this)") } else { String::new() };
        tracing::warn!(
            "a client was refused: {why}{more}. Give each client a token of its own (`toolwarden tokens issue`), or let \
             clients on this machine in without one (`[gateway] anonymous_loopback = true`)"
        );
    }

    /// The caller as they stand now.
    pub(crate) fn as_of_now(&self, caller: &Arc<Caller>) -> Arc<Caller> {
        let standing = self.standing(caller);
        if standing == caller.token.standing {
            return caller.clone();
        }
        let mut changed = (**caller).clone();
        changed.token.standing = standing;
        Arc::new(changed)
    }

    /// Whether the credential a caller came with was taken back, or has expired.
    #[must_use]
    pub fn is_lost(&self, caller: &Caller, now: Timestamp) -> bool {
        caller.token.expires_at.is_some_and(|end| end <= now) || self.standing(caller) == Standing::Revoked
    }

    /// The tokens, and the runs of tokens, that have not ended; none where nobody knows.
    pub(crate) fn live(&self, now: Timestamp) -> Option<Vec<Kept>> {
        let known = self.known.as_ref().filter(|known| !known.is_stale())?;
        let tokens = known.feed.known().tokens.clone();
        let counts = |token: &&Arc<StoredToken>| {
            token.revoked_at.is_none() && token.claims.expires_at.is_none_or(|end| end > now)
        };
        let kept = |token: &Arc<StoredToken>| {
            std::iter::once(Kept::of_token(&token.id)).chain(token.claims.run.as_deref().map(Kept::of_run)).collect()
        };
        let live: Vec<Vec<Kept>> = tokens.by_id.values().filter(counts).map(kept).collect();
        Some(live.into_iter().flatten().collect())
    }

    fn standing(&self, caller: &Caller) -> Standing {
        if caller.token.is_anonymous && !self.admits_anonymous() {
            return Standing::Revoked;
        }
        let (Some(id), Some(known)) = (&caller.token.id, &self.known) else { return caller.token.standing };
        let tokens = &known.feed.known().tokens;
        match tokens.by_id.get(id) {
            Some(token) if token.revoked_at.is_none() && caller.token.digest.as_ref() == Some(&token.digest) => {}
            _ => return Standing::Revoked,
        }
        if known.is_stale() { Standing::Unknown } else { Standing::Good }
    }
}

impl Known {
    fn is_stale(&self) -> bool {
        self.feed.age() > self.max_stale
    }

    fn callers(&self) -> Arc<Callers> {
        let callers = self.callers.load();
        let known = self.feed.known();
        if Arc::ptr_eq(&callers.of, &known.tokens) {
            return Arc::clone(&callers);
        }
        let entry = |(id, token): (&String, &Arc<StoredToken>)| {
            let same = callers.by_id.get(id).filter(|(made_of, _)| Arc::ptr_eq(made_of, token));
            let entry = same.cloned().unwrap_or_else(|| (token.clone(), Arc::new(self.caller(token))));
            (id.clone(), entry)
        };
        let by_id = known.tokens.by_id.iter().map(entry).collect();
        let next = Arc::new(Callers { of: known.tokens.clone(), by_id });
        self.callers.store(next.clone());
        next
    }

    fn caller(&self, token: &StoredToken) -> Caller {
        let mut caller = Caller::of_token(&token.id, &token.claims, &self.local_user);
        caller.token.digest = Some(token.digest.clone());
        caller.token.workspace = caller.token.workspace.as_deref().map(Locations::bound_workspace);
        caller
    }
}

/// Counts a call of a token that is good for so many, right before it is recorded and leaves. It counts each time it is
/// sent to its server: the first time, and with the answers of each further round, in whichever era. What goes on at the
/// server without being sent again is not counted: a call that waits there, and messages about tasks.
///
/// # Errors
/// None is left, or it cannot be counted.
pub async fn count(gateway: &Gateway, asked: &Asked) -> Result<(), Refusal> {
    let token = &asked.arrival.caller.token;
    let (Some(id), Some(most)) = (&token.id, token.calls_left) else { return Ok(()) };
    if matches!(asked.state.as_ref().map(|state| &state.carried), Some(Carried::Parked(_))) {
        return Ok(());
    }
    let Some(known) = gateway.identities.known.as_ref().filter(|_| matches!(asked.what, What::Call)) else {
        return Ok(());
    };
    let counted = tokio::time::timeout(COUNTING, known.state.count_call(id, most)).await;
    match counted {
        Ok(Ok(Counted::Taken(_))) => Ok(()),
        Ok(Ok(Counted::NoneLeft)) => Err(exhausted(gateway)),
        Ok(Err(error)) => {
            tracing::error!("a call of token {id} cannot be counted, so it is not made: {error}");
            Err(Refusal::Unverified)
        }
        Err(_) => {
            tracing::error!("a call of token {id} is not counted in time, so it is not made");
            Err(Refusal::Unverified)
        }
    }
}

fn exhausted(gateway: &Gateway) -> Refusal {
    let reason = Reason::CredentialExhausted;
    let explanation = Explanation {
        decision: Decision::Deny,
        stage: Stage::Context,
        reason,
        rule: None,
        detail: None,
        candidates: Vec::new(),
        payers: Vec::new(),
        trace: Vec::new(),
        policy_version: gateway.live.policy().version(),
        valid_until: None,
    };
    let message = format!("{}; {}", reason.sentence(), reason.remedy());
    Refusal::Denied(Box::new(Denial::new(explanation, message)))
}
