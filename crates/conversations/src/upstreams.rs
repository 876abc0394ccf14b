//! The servers behind the gateway: how each is reached, and the conversations held with it.
//!
//! Started when first needed, never before. One slow or dead server never delays another: each has its
//! own connections, children and back-off.

mod ears;
mod eras;
mod http;
mod may_ask;
mod older;
mod pipe;
mod set;
mod shared;
mod stdio;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use toolwarden_core::json::Part;
use toolwarden_core::{Caller, name};
use toolwarden_mcp::upstream::UpstreamError;
use toolwarden_mcp::upstream::child::{Child, ChildLimits, ChildSpec};
use toolwarden_mcp::upstream::event_pipe::{EventPipe, EventPipeLimits};
use toolwarden_mcp::upstream::http::{HttpTarget, HttpUpstream};
use toolwarden_mcp::{Backoff, Era, Notification};
use toolwarden_policy::input::{Launch, LimitsInput};
use toolwarden_sources::{ServerDefinition, Share, Transport};

pub use ears::{Ears, Wanted, acknowledged, ended, is_at_or_under, tagged};
pub use http::{HttpLink, News, failure as http_failure};
pub use may_ask::MayAsk;
pub use older::{Older, Seat, Turn};
pub use set::{Next, Set, Tenure, Upstreams};
pub use stdio::{Ending, Last, Opened, StdioLink, StdioReply, TakesQuestions, agreed_version};

use self::pipe::{Lines, Pipe};
use crate::alias::Alias;
use crate::audience::{Audience, Telling};
use crate::bounds::{Bounds, CallBounds};
use crate::failure::Failure;
use crate::known::KnownLists;
use crate::listing::LastListing;
use crate::memo::ListMemo;
use crate::questions::Scribe;
use crate::tasks::Tasks;

const OLDER: &str = "revisions before 2026-07-28";

/// A conversation with a server.
#[derive(Debug, Clone)]
pub enum Link {
    Http(Arc<HttpLink>),
    Stdio(Arc<StdioLink>),
}

/// How a server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerState {
    /// Not needed yet.
    Idle,
    Connected,
    Error,
    Disabled,
}

impl ServerState {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Connected => "connected",
            Self::Error => "error",
            Self::Disabled => "disabled",
        }
    }
}

/// What is known of a server's health.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    pub name: String,
    pub state: ServerState,
    pub detail: Option<String>,
    /// Children, and lines of the oldest HTTP transport, that are open.
    pub lines: usize,
}

/// How a server is reached.
#[derive(Debug)]
pub enum Reach {
    Http(HttpUpstream),
    Command(ChildSpec),
    /// Nothing is launched, or what is written cannot be used.
    Nothing(String),
}

/// One server.
#[derive(Debug)]
pub struct Upstream {
    pub name: Arc<str>,
    /// No other has it, be it one of the same name.
    pub number: u64,
    /// How it is called behind the common door.
    pub alias: Alias,
    reach: Reach,
    /// Instead of it, as long as nobody accepted what starts it.
    barred: Reach,
    /// And once it is defined otherwise.
    replaced: Reach,
    /// As it is written.
    pub definition: ServerDefinition,
    tenure: Tenure,
    /// Every line to it, whoever uses it.
    open: Mutex<Vec<Weak<StdioLink>>>,
    pub may_ask: MayAsk,
    pub scribe: Scribe,
    audience: Arc<dyn Audience>,
    /// What its calls are held to now, and where no file says anything.
    bounds: ArcSwap<CallBounds>,
    default_bounds: CallBounds,
    /// How long it may be silent, as its own file says.
    timeout: Option<Duration>,
    pub open_time: Duration,
    /// Who may use the same child; none = one for each principal of the legacy era, one for all of the modern one.
    share: Option<Share>,
    /// What its file says: the oldest HTTP transport, and nothing else.
    says_sse: bool,
    /// Lines to it that are open: children, and streams of the oldest HTTP transport.
    lines: Arc<AtomicUsize>,
    /// Children that several callers use.
    shared: shared::Shared,
    /// Conversations held for modern clients, where it speaks the legacy era only.
    olders: older::Olders,
    /// Held while it is asked which era it speaks.
    probing: tokio::sync::Mutex<()>,
    health: Mutex<Health>,
    pub lists: ListMemo,
    /// What it listed last, for the common door.
    pub known: KnownLists,
    pub tasks: Tasks,
    /// Held while it is asked for a whole list on a caller's behalf.
    pub listing: tokio::sync::Mutex<Option<LastListing>>,
}

#[derive(Debug)]
struct Health {
    state: ServerState,
    detail: Option<String>,
    last_failure: Option<Failure>,
    backoff: Backoff,
    /// No new child before this.
    not_before: Option<tokio::time::Instant>,
    eras: eras::Eras,
}

/// One line to a server, as long as it is read.
#[derive(Debug)]
struct OpenLine(Arc<AtomicUsize>);

impl OpenLine {
    fn count(upstream: &Upstream) -> Self {
        upstream.lines.fetch_add(1, Ordering::Relaxed);
        Self(upstream.lines.clone())
    }
}

impl Drop for OpenLine {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Upstream {
    fn new(
        definition: &ServerDefinition,
        bounds: &Bounds<'_>,
        (number, alias): (u64, Alias),
        told: (&Scribe, &Arc<dyn Audience>),
    ) -> Self {
        let (scribe, audience) = told;
        let connection = &definition.connection;
        let name: Arc<str> = definition.input.name.as_str().into();
        Self {
            reach: reach(&name, definition, bounds),
            barred: Reach::Nothing(format!(
                "what starts it changed since it was accepted; compare with `toolwarden tools diff {0}`, accept with \
                 `toolwarden tools accept {0}:server/launch`",
                name::shown(&name)
            )),
            replaced: Reach::Nothing("it was taken away, or is reached otherwise since; try again".to_owned()),
            name,
            number,
            alias,
            definition: definition.clone(),
            tenure: Tenure::default(),
            open: Mutex::default(),
            may_ask: MayAsk::from_config(connection.may_ask.as_deref()),
            scribe: scribe.clone(),
            audience: audience.clone(),
            bounds: ArcSwap::from_pointee(bounds.call),
            default_bounds: bounds.call,
            timeout: connection.timeout,
            open_time: bounds.open_time,
            share: connection.share,
            says_sse: connection.transport == Some(Transport::Sse),
            lines: Arc::default(),
            shared: shared::Shared::default(),
            olders: older::Olders::default(),
            probing: tokio::sync::Mutex::default(),
            health: Mutex::new(Health {
                // Whether it is switched on, the policy says.
                state: ServerState::Idle,
                detail: None,
                last_failure: None,
                backoff: Backoff::new(),
                not_before: None,
                eras: eras::Eras::of(connection.transport == Some(Transport::Sse)),
            }),
            lists: ListMemo::default(),
            known: KnownLists::default(),
            tasks: Tasks::default(),
            listing: tokio::sync::Mutex::default(),
        }
    }

    /// How it is reached, if it may be.
    pub fn reach(&self) -> &Reach {
        if self.is_over() {
            &self.replaced
        } else if self.audience.may_start(&self.name) {
            &self.reach
        } else {
            &self.barred
        }
    }

    /// What a call is held to that nothing narrower is said of.
    pub fn bounds(&self) -> CallBounds {
        **self.bounds.load()
    }

    /// Holds it to what files say of every server, and of this one.
    pub fn hold_to(&self, [everywhere, own]: [LimitsInput; 2]) {
        let mut bounds = self.default_bounds.narrowed(&everywhere);
        if let Some(timeout) = self.timeout {
            (bounds.silence, bounds.time) = (timeout, bounds.time.max(timeout));
        }
        self.bounds.store(Arc::new(bounds.narrowed(&own)));
    }

    fn health(&self) -> std::sync::MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn status(&self) -> ServerStatus {
        let lines = self.lines.load(Ordering::Relaxed);
        let health = self.health();
        ServerStatus { name: self.name.to_string(), state: health.state, detail: health.detail.clone(), lines }
    }

    pub fn works(&self) {
        let mut health = self.health();
        if health.state != ServerState::Connected {
            (health.state, health.detail) = (ServerState::Connected, None);
            health.last_failure = None;
        }
    }

    pub fn fails(&self, failure: &Failure) {
        if matches!(failure, Failure::Resting { .. }) {
            return;
        }
        let mut health = self.health();
        // More may have been said of the same one.
        if health.state == ServerState::Error && health.last_failure.as_ref() == Some(failure) {
            return;
        }
        (health.state, health.detail) = (ServerState::Error, Some(failure.to_string()));
        health.last_failure = Some(failure.clone());
    }

    /// The same, with what is said besides where the server's state is shown.
    pub(crate) fn fails_because(&self, failure: &Failure, why: &str) {
        let mut health = self.health();
        (health.state, health.detail) = (ServerState::Error, Some(format!("{failure}; {why}")));
        health.last_failure = Some(failure.clone());
    }

    /// Takes note of news where they are read, whether anybody hears them or not: what the server lists from
    /// now on may be something else (GATE-12).
    pub fn take_note(&self, news: &Notification) {
        if news.method.ends_with("/list_changed") {
            self.audience.may_have_changed(&self.name);
        }
    }

    /// Whether a caller may hear this news of the server: of tasks only its own, and of anything only what
    /// the policy permits now (GATE-19).
    pub fn may_tell(&self, news: &Notification, caller: &Arc<Caller>) -> bool {
        if self.is_over() {
            return false;
        }
        // Progress belongs to a call, which is judged itself.
        if &*news.method == "notifications/progress" {
            return true;
        }
        let uri = news.params.as_ref().and_then(|params| params.value().get("uri")).and_then(|uri| uri.as_str());
        self.tasks.may_hear(news, caller) && self.audience.may_hear(caller, &self.name, uri.as_deref())
    }

    /// News as they may be told, whoever hears them; none where they may not.
    pub fn screened<'n>(&self, news: &'n Notification) -> Option<Cow<'n, Notification>> {
        let has_words = ["notifications/message", "notifications/progress", "notifications/tasks"]
            .iter()
            .any(|method| news.method.starts_with(method));
        let Some(params) = news.params.as_ref().filter(|_| has_words) else { return Some(Cow::Borrowed(news)) };
        match self.telling(params) {
            Telling::AsItIs => Some(Cow::Borrowed(news)),
            Telling::Instead(params) => {
                Some(Cow::Owned(Notification { method: news.method.clone(), params: Some(params) }))
            }
            Telling::Nothing => None,
        }
    }

    /// What may be told of words of the server.
    pub fn telling(&self, words: &Part) -> Telling {
        self.audience.screened(&self.name, words)
    }

    /// Whether a caller may have to do with the server at all, as of now.
    pub fn is_open_to(&self, caller: &Arc<Caller>) -> bool {
        !self.is_over() && self.audience.may_hear(caller, &self.name, None)
    }

    /// The conversation modern requests travel on, if the server speaks that era: connections are pooled,
    /// a child is shared.
    pub async fn modern(self: &Arc<Self>, principal: &str) -> Result<Link, Failure> {
        match self.reach() {
            Reach::Http(http) if self.speaks_modern().await? => Ok(Link::Http(Arc::new(HttpLink::modern(self, http)))),
            Reach::Http(_) => Err(Failure::OtherEra(OLDER)),
            Reach::Command(_) if self.known_modern() == Some(false) => Err(Failure::OtherEra(OLDER)),
            Reach::Command(_) => self.modern_child(principal).await.map(Link::Stdio),
            Reach::Nothing(why) => Err(Failure::Unreachable(why.clone())),
        }
    }

    /// A child of one session alone, which has not been greeted yet.
    pub async fn legacy_own(self: &Arc<Self>) -> Result<Arc<StdioLink>, Failure> {
        self.spawn(Era::Legacy).await
    }

    /// Whether a legacy session needs a child of its own.
    pub fn wants_own_child(&self, capabilities: &str) -> bool {
        self.share != Some(Share::All) && capabilities != "{}"
    }

    /// A new line to the server: a child, or a stream of the oldest HTTP transport.
    async fn spawn(self: &Arc<Self>, era: Era) -> Result<Arc<StdioLink>, Failure> {
        if matches!(self.reach(), Reach::Http(_)) && !self.is_by_events() {
            // It was replaced since: whoever had a line to it opens a conversation anew.
            return Err(Failure::Forgotten);
        }
        let now = tokio::time::Instant::now();
        let (not_before, last_failure) = {
            let health = self.health();
            (health.not_before, health.last_failure.clone())
        };
        if let Some(wait) = not_before.and_then(|time| time.checked_duration_since(now)) {
            let why = match last_failure {
                Some(Failure::Unreachable(why)) => why,
                Some(failure) => failure.to_string(),
                None => "it ended".to_owned(),
            };
            return Err(Failure::Resting { why, seconds: wait.as_secs() + 1 });
        }
        let opened = match self.reach() {
            Reach::Command(spec) => Child::spawn(spec)
                .map(|(child, lines)| (Pipe::Child(child), Lines::Child(lines)))
                .map_err(|error| Failure::Unreachable(error.to_string())),
            Reach::Http(http) => {
                let opened = EventPipe::open(http, EventPipeLimits::DEFAULT).await;
                if let (Err(UpstreamError::OtherTransport { .. }), false) = (&opened, self.says_sse) {
                    self.doubt();
                    return Err(Failure::Forgotten);
                }
                opened.map(|(pipe, said)| (Pipe::Events(pipe), Lines::Events(said))).map_err(http_failure)
            }
            Reach::Nothing(why) => Err(Failure::Unreachable(why.clone())),
        };
        let opened = opened.inspect_err(|failure| {
            self.fails(failure);
            self.ended(Duration::ZERO);
        })?;
        self.works();
        self.audience.may_have_changed(&self.name);
        let link = StdioLink::over(self, opened, era);
        self.register(&link)?;
        Ok(link)
    }

    /// A child ended after this long; the next one waits.
    pub fn ended(&self, lived: Duration) {
        let now = tokio::time::Instant::now();
        let mut health = self.health();
        // Children that fail together are one failure: each of them would double the time to wait.
        if health.not_before.is_none_or(|time| time <= now) {
            let delay = health.backoff.delay_after(lived);
            health.not_before = Some(now + delay);
        }
        if health.state == ServerState::Connected {
            health.state = ServerState::Idle;
        }
    }
}

fn reach(name: &Arc<str>, definition: &ServerDefinition, bounds: &Bounds<'_>) -> Reach {
    let connection = &definition.connection;
    if definition.faulty {
        return Reach::Nothing("its definition has faults; see `toolwarden lint`".to_owned());
    }
    if let Some(missing) = &definition.unresolved {
        return Reach::Nothing(format!(
            "`{}` has no value here: set it before the gateway starts",
            name::shown(missing)
        ));
    }
    match &definition.input.launch {
        Launch::Url(url) => {
            let mut target = HttpTarget::new(url.clone());
            target.public_only = definition.input.owner.is_some() && !connection.private_network;
            target.headers = connection.headers.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            match HttpUpstream::new(&target) {
                Ok(http) => Reach::Http(http),
                Err(error) => Reach::Nothing(format!("its URL cannot be used: {error}")),
            }
        }
        Launch::Command { command, arguments } => Reach::Command(ChildSpec {
            server: name.clone(),
            command: command.clone(),
            arguments: arguments.clone(),
            environment: connection.env.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            inherited: bounds.inherited.iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
            directory: connection.working_directory.as_ref().map(PathBuf::from),
            limits: ChildLimits::DEFAULT,
        }),
        Launch::Nothing => Reach::Nothing(format!("`{}` is not launched by the gateway", name::shown(name))),
    }
}

impl Link {
    pub fn era(&self) -> Era {
        match self {
            Self::Http(http) => http.era(),
            Self::Stdio(child) => child.era(),
        }
    }

    /// Whether anything can still be said on it: a child may have ended, a server forgotten its session.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Http(http) => !http.is_over(),
            Self::Stdio(child) => child.is_alive(),
        }
    }

    /// Ends what belongs to one session alone.
    pub async fn close(&self) {
        match self {
            Self::Http(http) if http.era() == Era::Modern => {}
            Self::Http(http) => drop(http.end().await),
            Self::Stdio(child) if child.is_own() => child.end().await,
            Self::Stdio(_) => {}
        }
    }
}
