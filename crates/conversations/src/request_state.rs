//! `requestState` of a modern exchange, sealed on its way to the client and opened on its way back.
//!
//! A state is bound to its principal, its server and its call, counts its rounds, expires, and opens
//! once. It proves that an exchange goes on, never that a call is permitted: every round is judged.
//!
//! Answers (`inputResponses`) are no part of the call that a person is shown and permits. They count only with the state
//! of the questions they answer, and only for these questions: `open` is the one way to a state, and checks both.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use toolwarden_core::json::{Kind, Part, Value, unescape};
use toolwarden_core::{Caller, Digest, Keyring, Purpose, Weakness, weak};
use toolwarden_mcp::headers;

use crate::failure::Failure;
use crate::sessions::principal;

/// How long a person may take to answer.
const LIFE: Duration = Duration::from_secs(30 * 60);
/// How often one exchange may ask.
const MOST_ROUNDS: u8 = 16;
/// No real state comes near this.
const LONGEST: usize = 256 * 1024;
/// States that were used within one life, by everybody and by one principal; beyond that none is opened.
const MOST_USED: usize = 100_000;
const MOST_USED_BY_ONE: usize = 10_000;
const TOO_MANY: &str = "100000 of all callers were used in the last 30 minutes, which is the most; try again later";
const TOO_MANY_BY_ONE: &str = "10000 of yours were used in the last 30 minutes, which is the most; try again later";

const ANSWERS: &str = "inputResponses";
const STATE: &str = "requestState";
const UNSOLICITED: &str = "it is missing: `inputResponses` count only together with the `requestState` of the questions \
                           they answer; make the call without them";
const NOT_ASKED: &str = "`inputResponses` must be an object with answers to the questions of this state alone";

/// Why a state cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(pub &'static str);

/// What a state stands for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Carried {
    /// The server's own state, byte for byte.
    Server(String),
    /// The server asks without a state of its own. The answers need one all the same.
    Stateless,
    /// A call that waits at a legacy server.
    Parked(String),
    /// A legacy server wants an address opened first: the call is simply made again.
    Again,
    /// The gateway itself asks whether a held call may be made: under which id it lies, and the key of the question.
    Held {
        approval: String,
        key: String,
        /// By a page that is opened elsewhere: what the client says of it is no answer.
        #[serde(default)]
        by_page: bool,
    },
}

/// What a client is asked, and what it brings back with the answers.
#[derive(Debug, Clone)]
pub struct Asks {
    pub carried: Carried,
    /// The keys of the questions: answers to others are refused.
    pub questions: Vec<String>,
}

/// What a state says, before it is sealed.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Plain {
    /// Which state of which gateway this is: known once it was used.
    run: String,
    number: u64,
    server: String,
    /// Of the server as it was defined then.
    definition: u64,
    call: String,
    round: u8,
    /// Milliseconds since this gateway started.
    expires: u64,
    carried: Carried,
    /// The keys of the questions that were asked.
    #[serde(default)]
    questions: Vec<String>,
    /// The approval its call left under.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval: Option<String>,
}

impl Plain {
    fn opened(self) -> Opened {
        let Self { number, round, carried, approval, .. } = self;
        Opened { number, round, carried, approval }
    }
}

/// A state that was opened.
#[derive(Debug, Clone)]
pub struct Opened {
    number: u64,
    /// How many rounds there were.
    pub round: u8,
    pub carried: Carried,
    /// The approval its call left under: it is judged again, and not held again.
    pub approval: Option<String>,
}

/// What must be the same when a state comes back.
#[derive(Debug, Clone, Copy)]
pub struct Bound<'a> {
    pub caller: &'a Caller,
    pub server: &'a str,
    /// A server that is defined otherwise since is none the state belongs to.
    pub definition: u64,
    pub method: &'a str,
    pub params: Option<&'a Part>,
    /// The approval the call left under, for a state that is sealed.
    pub approval: Option<&'a str>,
}

impl Bound<'_> {
    fn call(&self) -> String {
        let digest = self.params.map(Digest::of_part).map(|digest| digest.to_string()).unwrap_or_default();
        format!("{} {digest}", self.method)
    }
}

/// The states of one gateway.
#[derive(Debug)]
pub struct States {
    run: String,
    started: Instant,
    life: Duration,
    next: std::sync::atomic::AtomicU64,
    used: Mutex<Used>,
}

/// States that were opened.
#[derive(Debug, Default)]
struct Used {
    numbers: HashSet<u64>,
    /// In the order of use, and so in the order in which they can be forgotten.
    order: VecDeque<UsedState>,
    /// How many each principal has.
    counts: HashMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct UsedState {
    /// It has surely expired by then.
    until: u64,
    number: u64,
    owner: Arc<str>,
}

impl Used {
    fn forget_expired(&mut self, now: u64) {
        while let Some(old) = self.order.pop_front_if(|used| used.until < now) {
            self.numbers.remove(&old.number);
            if let Entry::Occupied(mut count) = self.counts.entry(old.owner) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
    }

    fn check_room(&self, owner: &str) -> Result<(), Unusable> {
        if self.counts.get(owner).is_some_and(|count| *count >= MOST_USED_BY_ONE) {
            return Err(Unusable(TOO_MANY_BY_ONE));
        }
        if self.numbers.len() >= MOST_USED { Err(Unusable(TOO_MANY)) } else { Ok(()) }
    }
}

impl States {
    pub fn new(keyring: &dyn Keyring) -> Self {
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
    pub fn seal(&self, keyring: &dyn Keyring, bound: Bound<'_>, round: u8, asks: Asks) -> Result<String, Failure> {
        let Asks { carried, questions } = asks;
        if usize::from(round) > weak::limit(usize::from(MOST_ROUNDS)) {
            return Err(Failure::Protocol(format!("it asked more than {MOST_ROUNDS} times")));
        }
        let plain = Plain {
            run: self.run.clone(),
            number: self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed),
            server: bound.server.to_owned(),
            definition: bound.definition,
            call: bound.call(),
            round,
            expires: self.after(self.life),
            carried,
            questions,
            approval: bound.approval.map(str::to_owned),
        };
        let text = serde_json::to_vec(&plain).map_err(|_| unsealable())?;
        let sealed = keyring.seal(Purpose::RequestState, principal(bound.caller).as_bytes(), &text);
        let sealed = headers::to_base64(&sealed.map_err(|_| unsealable())?);
        if sealed.len() > LONGEST { Err(Failure::TooLarge) } else { Ok(sealed) }
    }

    /// Opens what a client brought back; none where it brought nothing. Refuses answers to what was not asked.
    pub fn open(&self, keyring: &dyn Keyring, bound: Bound<'_>) -> Result<Option<Opened>, Unusable> {
        let member = |name: &str| bound.params.and_then(|params| params.value().get(name));
        let answers = member(ANSWERS).filter(|answers| answers.kind() != Kind::Null);
        let Some(given) = member(STATE).filter(|given| given.kind() != Kind::Null) else {
            return if answers.is_some() && !weak::is(Weakness::Seals) { Err(Unusable(UNSOLICITED)) } else { Ok(None) };
        };
        let text = given.as_str().filter(|text| text.len() <= LONGEST).ok_or_else(foreign)?;
        let sealed = headers::base64(&text).ok_or_else(foreign)?;
        let opened = keyring.open(Purpose::RequestState, principal(bound.caller).as_bytes(), &sealed);
        let plain: Plain = serde_json::from_slice(&opened.map_err(|_| foreign())?).map_err(|_| foreign())?;
        if weak::is(Weakness::Seals) {
            return Ok(Some(plain.opened()));
        }
        if plain.run.is_empty() || plain.run != self.run {
            return Err(Unusable("the gateway was restarted since; make the call again"));
        }
        if plain.server != bound.server || plain.call != bound.call() {
            return Err(Unusable("it belongs to another call"));
        }
        if plain.definition != bound.definition {
            return Err(Unusable("the server is reached otherwise since; make the call again"));
        }
        if self.after(Duration::ZERO) > plain.expires {
            return Err(Unusable("it has expired; make the call again"));
        }
        if self.lock().numbers.contains(&plain.number) {
            return Err(Unusable("it was used before"));
        }
        if answers.is_some_and(|answers| !answers_only(answers, &plain.questions)) {
            return Err(Unusable(NOT_ASKED));
        }
        Ok(Some(plain.opened()))
    }

    /// Uses a state up; only one of two that come at the same time gets it.
    pub fn consume(&self, opened: &Opened, caller: &Caller) -> Result<(), Unusable> {
        let owner: Arc<str> = principal(caller).into();
        let mut used = self.lock();
        used.forget_expired(self.after(Duration::ZERO));
        used.check_room(&owner)?;
        if used.numbers.insert(opened.number) {
            *used.counts.entry(owner.clone()).or_default() += 1;
            used.order.push_back(UsedState { until: self.after(self.life), number: opened.number, owner });
            return Ok(());
        }
        if weak::is(Weakness::Seals) { Ok(()) } else { Err(Unusable("it was used before")) }
    }

    /// So long from now, counted from the start.
    fn after(&self, wait: Duration) -> u64 {
        u64::try_from((self.started.elapsed() + wait).as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a request brings answers or a state, in an era that has neither. They would reach the server without being part
/// of the call that a person is shown.
pub fn is_foreign_to_era(params: Option<&Part>) -> bool {
    let is_given =
        |name: &str| params.and_then(|params| params.value().get(name)).is_some_and(|it| it.kind() != Kind::Null);
    (is_given(ANSWERS) || is_given(STATE)) && !weak::is(Weakness::Seals)
}

/// Whether answers are to these questions alone.
pub fn answers_only(answers: Value<'_>, questions: &[String]) -> bool {
    let is_asked = |key: &str| questions.iter().any(|question| *question == unescape(key));
    answers.kind() == Kind::Object && answers.entries().all(|(key, _)| is_asked(key))
}

/// The keys of the questions that a result asks.
pub fn questions_of(result: Value<'_>) -> Vec<String> {
    let requests = result.get("inputRequests").into_iter().flat_map(Value::entries);
    requests.map(|(key, _)| unescape(key).into_owned()).collect()
}

fn foreign() -> Unusable {
    Unusable("it is not one this gateway gave to you")
}

fn unsealable() -> Failure {
    Failure::Protocol("its state could not be sealed".to_owned())
}

#[cfg(test)]
#[path = "request_state_tests.rs"]
mod tests;
