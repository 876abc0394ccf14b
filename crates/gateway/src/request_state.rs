//! `requestState` of a modern exchange, sealed on its way to the client and opened on its way back.
//!
//! A state is bound to its principal, its server and its call, counts its rounds, expires, and opens
//! once. It proves that an exchange goes on, never that a call is permitted: every round is judged.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use toolwarden_conversations::Failure;
use toolwarden_conversations::sessions::principal;
use toolwarden_core::json::{Kind, Part};
use toolwarden_core::{Caller, Digest, Keyring, Purpose, Weakness, weak};
use toolwarden_mcp::headers;

use crate::refusal::Refusal;

/// How long a person may take to answer.
const LIFE: Duration = Duration::from_secs(30 * 60);
/// How often one exchange may ask.
const MOST_ROUNDS: u8 = 16;
/// No real state comes near this.
const LONGEST: usize = 256 * 1024;
/// States that were opened and have not expired, of everybody and of one principal; beyond that none is opened.
const MOST_USED: usize = 100_000;
const MOST_USED_BY_ONE: usize = 10_000;

/// What a state stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Carried {
    /// The server's own state, byte for byte.
    Server(String),
    /// A call that waits at a legacy server.
    Parked(String),
    /// A legacy server wants an address opened first: the call is simply made again.
    Again,
}

/// What a state says, before it is sealed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Plain {
    /// Which state of which gateway this is: known once it was used.
    run: String,
    number: u64,
    server: String,
    call: String,
    round: u8,
    /// Milliseconds since this gateway started.
    expires: u64,
    carried: Carried,
}

/// A state that was opened.
#[derive(Debug, Clone)]
pub(crate) struct Opened {
    number: u64,
    expires: u64,
    /// How many rounds there were.
    pub(crate) round: u8,
    pub(crate) carried: Carried,
}

/// What must be the same when a state comes back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) server: &'a str,
    pub(crate) method: &'a str,
    pub(crate) params: Option<&'a Part>,
}

impl Bound<'_> {
    fn call(&self) -> String {
        let digest = self.params.map(Digest::of_part).map(|digest| digest.to_string()).unwrap_or_default();
        format!("{} {digest}", self.method)
    }
}

/// The states of one gateway.
#[derive(Debug)]
pub(crate) struct States {
    run: String,
    started: Instant,
    life: Duration,
    next: std::sync::atomic::AtomicU64,
    used: Mutex<Used>,
}

/// States that were opened.
#[derive(Debug, Default)]
struct Used {
    /// Number and expiry, and whose it was.
    states: HashMap<u64, (u64, String)>,
    /// How many each principal has.
    counts: HashMap<String, usize>,
}

impl Used {
    fn forget_expired(&mut self, now: u64) {
        let Self { states, counts } = self;
        for (_, owner) in states.extract_if(|_, (expires, _)| *expires < now).map(|(_, used)| used) {
            if let Some(count) = counts.get_mut(&owner) {
                *count -= 1;
            }
        }
        counts.retain(|_, count| *count > 0);
    }

    fn is_full(&self, owner: &str) -> bool {
        self.states.len() >= MOST_USED || self.counts.get(owner).is_some_and(|count| *count >= MOST_USED_BY_ONE)
    }
}

impl States {
    pub(crate) fn new(keyring: &dyn Keyring) -> Self {
        let mut run = [0; 16];
        // Without random bytes no state could be told from an older run's; then none opens.
        let is_random = keyring.random(&mut run).is_ok();
        Self {
            run: if is_random { toolwarden_core::digest::hex(&run) } else { String::new() },
            started: Instant::now(),
            life: LIFE,
            next: std::sync::atomic::AtomicU64::new(1),
            used: Mutex::default(),
        }
    }

    /// Seals what a client is to bring back; `round` is how often this exchange has asked, this time included.
    pub(crate) fn seal(
        &self,
        keyring: &dyn Keyring,
        bound: Bound<'_>,
        round: u8,
        carried: Carried,
    ) -> Result<String, Failure> {
        if usize::from(round) > weak::limit(usize::from(MOST_ROUNDS)) {
            return Err(Failure::Protocol(format!("it asked more than {MOST_ROUNDS} times")));
        }
        let plain = Plain {
            run: self.run.clone(),
            number: self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            server: bound.server.to_owned(),
            call: bound.call(),
            round,
            expires: self.after(self.life),
            carried,
        };
        let text = serde_json::to_vec(&plain).map_err(|_| unsealable())?;
        let sealed = keyring.seal(Purpose::RequestState, principal(bound.caller).as_bytes(), &text);
        let sealed = headers::to_base64(&sealed.map_err(|_| unsealable())?);
        if sealed.len() > LONGEST { Err(Failure::TooLarge) } else { Ok(sealed) }
    }

    /// Opens what a client brought back; none where it brought nothing.
    pub(crate) fn open(&self, keyring: &dyn Keyring, bound: Bound<'_>) -> Result<Option<Opened>, Refusal> {
        let Some(given) = bound.params.and_then(|params| params.value().get("requestState")) else { return Ok(None) };
        if given.kind() == Kind::Null {
            return Ok(None);
        }
        let text = given.as_str().filter(|text| text.len() <= LONGEST).ok_or_else(foreign)?;
        let sealed = headers::base64(&text).ok_or_else(foreign)?;
        let opened = keyring.open(Purpose::RequestState, principal(bound.caller).as_bytes(), &sealed);
        let plain: Plain = serde_json::from_slice(&opened.map_err(|_| foreign())?).map_err(|_| foreign())?;
        let Plain { number, expires, round, ref carried, .. } = plain;
        if weak::is(Weakness::Seals) {
            return Ok(Some(Opened { number, expires, round, carried: carried.clone() }));
        }
        if plain.run.is_empty() || plain.run != self.run {
            return Err(Refusal::State("the gateway was restarted since; make the call again"));
        }
        if plain.server != bound.server || plain.call != bound.call() {
            return Err(Refusal::State("it belongs to another call"));
        }
        if self.after(Duration::ZERO) > plain.expires {
            return Err(Refusal::State("it has expired; make the call again"));
        }
        if self.lock().states.contains_key(&plain.number) {
            return Err(Refusal::State("it was used before"));
        }
        let Plain { number, expires, round, carried, .. } = plain;
        Ok(Some(Opened { number, expires, round, carried }))
    }

    /// Uses a state up; only one of two that come at the same time gets it.
    pub(crate) fn consume(&self, opened: &Opened, caller: &Caller) -> Result<(), Refusal> {
        let now = self.after(Duration::ZERO);
        let owner = principal(caller);
        let mut used = self.lock();
        if used.is_full(&owner) {
            used.forget_expired(now);
        }
        if used.is_full(&owner) {
            return Err(Refusal::State("too many exchanges are open"));
        }
        match used.states.insert(opened.number, (opened.expires, owner.clone())) {
            None => {
                *used.counts.entry(owner).or_default() += 1;
                Ok(())
            }
            Some(_) if weak::is(Weakness::Seals) => Ok(()),
            Some(_) => Err(Refusal::State("it was used before")),
        }
    }

    /// So long from now, counted from the start.
    fn after(&self, wait: Duration) -> u64 {
        u64::try_from((self.started.elapsed() + wait).as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn foreign() -> Refusal {
    Refusal::State("it is not one this gateway gave to you")
}

fn unsealable() -> Failure {
    Failure::Protocol("its state could not be sealed".to_owned())
}

#[cfg(test)]
#[path = "request_state_tests.rs"]
mod tests;
