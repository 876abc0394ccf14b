//! Everything the corridor shares: the policy in force, the servers, the sessions, the journal.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::stream::{self, StreamExt};
use tokio::sync::broadcast;
use tokio::time::{Instant, timeout};
use toolwarden_classifier::Classifier;
use toolwarden_conversations::Audience;
use toolwarden_conversations::questions::Scribe;
use toolwarden_conversations::request_state::States;
use toolwarden_conversations::sessions::{ClientSession, Sessions};
use toolwarden_conversations::upstreams::{ServerState, ServerStatus, Set, Upstream, Upstreams};
use toolwarden_core::{AuditRecord, Caller, Clock, Door, Keyring, RecordKind, name};
use toolwarden_policy::input::{ServerInput, ToolDefinition};
use toolwarden_policy::{PolicySet, Transport};
use toolwarden_sources::ServerDefinition;
use toolwarden_store::journal::Journal;
use toolwarden_telemetry::{JournalObserved, Observed, ServerObserved, Telemetry};

use crate::decide::still_permitted;
use crate::identities::Identities;
use crate::parks::Parks;
use crate::protection::Protection;
use crate::runs::Runs;
use crate::settings::Settings;
use crate::visible::{Change, announce};
use crate::watching::Hearing;
use toolwarden_guard::{Bodies, Closing, Flows, Heads, LargeChecks, Limiter, Live, Screens};
pub use toolwarden_guard::{Full, Room};
use toolwarden_pins::Book;
use toolwarden_review::Desk;

/// How often idle sessions are looked for.
const HOUSEKEEPING: Duration = Duration::from_secs(60);

/// How long one session, and all of them together, may take to say goodbye to their servers.
const LEAVE: Duration = Duration::from_secs(8);
const LEAVE_ALL: Duration = Duration::from_secs(15);
const LEAVING_AT_ONCE: usize = 256;

/// Changes of what is visible that wait for whoever listens.
const CHANGES_WAITING: usize = 16;

/// What a gateway is made of.
#[derive(Debug)]
pub struct Parts {
    pub policy: PolicySet,
    /// The workspace its callers work in, unless their token names another (PERM-4).
    pub workspace: Option<PathBuf>,
    pub servers: Vec<ServerInput>,
    pub definitions: Vec<ServerDefinition>,
    /// What was accepted of the servers' definitions.
    pub pins: Book,
    pub settings: Settings,
    pub journal: Journal,
    pub keyring: Arc<dyn Keyring>,
    pub clock: Arc<dyn Clock>,
    /// The operating-system user who runs it.
    pub local_user: String,
    pub identities: Identities,
    /// Where held calls lie; without one they go back to their callers at once.
    pub desk: Option<Arc<Desk>>,
    /// The machine that may pay for some holds.
    pub classifier: Option<Arc<Classifier>>,
    /// What other processes share of the protection; without it this one is alone.
    pub protection: Option<Protection>,
}

/// One gateway.
#[derive(Debug)]
pub struct Gateway {
    pub live: Arc<Live>,
    /// Builds every question to the policy.
    pub transport: Transport,
    pub pins: Arc<Book>,
    /// What kinds of data callers have met, as far as this process knows.
    pub flows: Flows,
    pub(crate) protection: Option<Protection>,
    pub upstreams: Upstreams,
    /// Held by whoever puts other servers or another policy in the place of those there are.
    pub(crate) changing: Mutex<()>,
    /// How the results of servers are looked through, where they are.
    pub screens: Arc<Screens>,
    pub sessions: Sessions,
    /// Clients so far that came on a line of their own.
    pub lines: AtomicU64,
    /// Tells of everything that may change what somebody sees.
    pub visible: broadcast::Sender<Arc<Change>>,
    /// Exchanges with modern clients that go on in another request.
    pub states: States,
    /// Calls of modern clients that wait at legacy servers for an answer.
    pub parks: Parks,
    pub journal: Journal,
    pub keyring: Arc<dyn Keyring>,
    pub clock: Arc<dyn Clock>,
    pub settings: Settings,
    pub local: Arc<Caller>,
    /// The same, from somewhere on this machine, as long as that is enough.
    pub anonymous: Arc<Caller>,
    /// Who else may come.
    pub identities: Arc<Identities>,
    pub telemetry: Arc<Telemetry>,
    pub limiter: Limiter,
    /// Streams of news by whose they are.
    pub streams: Arc<Heads>,
    /// Requests that are being read or on their way, by what they hold of memory.
    pub bodies: Arc<Bodies>,
    /// Large calls that are being checked, and large results: neither waits for the other.
    pub large: LargeChecks,
    pub large_results: LargeChecks,
    pub started: Instant,
    pub closing: Closing,
    pub(crate) desk: Option<Arc<Desk>>,
    /// Where persons find the pages of held calls, once that is known.
    pub(crate) page: OnceLock<String>,
    pub(crate) classifier: Option<Arc<Classifier>>,
    /// Calls that are made for tasks.
    pub runs: Arc<Runs>,
}

impl Gateway {
    #[must_use]
    pub fn new(parts: Parts) -> Arc<Self> {
        let scribe = Scribe::new(parts.journal.clone(), parts.clock.clone(), &parts.settings.allowed_hosts);
        let limiter = Limiter::new(parts.settings.limits, &parts.policy.base().limits, &parts.servers);
        let transport = Transport::new(Door::Mcp, parts.workspace);
        let live = Arc::new(Live::new(parts.policy, parts.servers));
        let mut pins = parts.pins;
        let noted = pins.take_noted();
        let pins = Arc::new(pins);
        let screens = Arc::new(Screens::of(&parts.definitions));
        let identities = Arc::new(parts.identities);
        let mut anonymous = Caller::local_person(parts.local_user.clone());
        anonymous.token.is_anonymous = true;
        let audience: Arc<dyn Audience> = Arc::new(Hearing::new(
            (live.clone(), transport.clone()),
            pins.clone(),
            screens.clone(),
            identities.clone(),
            parts.clock.clone(),
        ));
        let upstreams = Upstreams::new(&parts.definitions, &parts.settings.bounds(), &scribe, &audience);
        let names = counted(&upstreams.now());
        let gateway = Arc::new(Self {
            telemetry: Telemetry::new(names, parts.settings.tracer.clone(), parts.clock.now()),
            upstreams,
            changing: Mutex::default(),
            screens,
            limiter,
            streams: Heads::new(parts.settings.most_streams_of_one),
            bodies: Bodies::new(),
            large: LargeChecks::default(),
            large_results: LargeChecks::default(),
            started: Instant::now(),
            closing: Closing::default(),
            states: States::new(&*parts.keyring),
            parks: Parks::default(),
            live,
            transport,
            pins,
            flows: Flows::default(),
            protection: parts.protection,
            lines: AtomicU64::new(0),
            sessions: Sessions::default(),
            visible: broadcast::Sender::new(CHANGES_WAITING),
            journal: parts.journal,
            keyring: parts.keyring,
            clock: parts.clock,
            settings: parts.settings,
            anonymous: Arc::new(anonymous),
            local: Arc::new(Caller::local_person(parts.local_user)),
            identities,
            desk: parts.desk,
            page: OnceLock::new(),
            classifier: parts.classifier,
            runs: Arc::default(),
        });
        gateway.hold_servers();
        for (server, noted) in noted {
            gateway.tell_pinned(&server, &[noted]);
        }
        for upstream in gateway.upstreams.now().all() {
            let known = gateway.pins.definitions(&upstream.name);
            if !known.is_empty() {
                gateway.live.learn(&upstream.name, &known, || true);
            }
        }
        gateway
    }

    /// Takes over what others accepted meanwhile. Blocks.
    pub fn refresh_pins(&self) {
        let accepted = self.pins.refresh();
        if accepted.is_empty() {
            return;
        }
        let before = self.shown();
        for server in &accepted {
            self.live.renew(server, &self.pins.definitions(server));
        }
        announce(self, before, accepted, Vec::new());
    }

    /// Holds every server to the limits of the moment.
    fn hold_servers(&self) {
        for upstream in self.upstreams.now().all() {
            upstream.hold_to(self.limiter.of_server(&upstream.name));
        }
    }
}

impl Gateway {
    /// How every server is doing, in the order they are configured.
    #[must_use]
    pub fn server_statuses(&self) -> Vec<ServerStatus> {
        let policy = self.live.policy();
        let is_on = |name: &str| policy.servers().get(name).is_some_and(|server| server.is_enabled());
        let status = |upstream: &Arc<Upstream>| {
            let status = upstream.status();
            if is_on(&status.name) { status } else { ServerStatus { state: ServerState::Disabled, ..status } }
        };
        self.upstreams.now().all().iter().map(status).collect()
    }

    /// Why the tools of a server are refused, whatever it lists; none where they are not.
    #[must_use]
    pub fn refused_tools(&self, server: &str) -> Option<String> {
        self.live.refused_tools(server)
    }

    #[must_use]
    pub fn telemetry(&self) -> &Arc<Telemetry> {
        &self.telemetry
    }

    /// How it is at this moment, as far as it is not counted as it happens.
    #[must_use]
    pub fn observed(&self) -> Observed {
        let journal = self.journal.health();
        // Whoever may look at counts need not know whose servers there are (GATE-8).
        let counted = counted(&self.upstreams.now());
        let servers = self.server_statuses().into_iter().filter(|one| counted.iter().any(|name| **name == *one.name));
        Observed {
            sessions: self.sessions.count(),
            policy_version: self.live.policy().version(),
            servers: servers
                .map(|server| ServerObserved { name: server.name, state: server.state.as_str(), lines: server.lines })
                .collect(),
            journal: JournalObserved {
                written: journal.written,
                failed: journal.failed,
                behind: journal.behind,
                is_writable: journal.is_writable,
            },
            agreement: self.desk.as_ref().map(|desk| desk.agreement()).unwrap_or_default(),
            ..Observed::default()
        }
    }

    /// Whether records can be written, as far as that can be said without writing one; if not, why. May wait for
    /// a disk.
    #[must_use]
    pub fn journal_fault(&self) -> Option<String> {
        self.journal.try_again().err().map(|error| error.to_string())
    }

    /// The tools a server listed so far, by name.
    #[must_use]
    pub fn listed_tools(&self, server: &str) -> Vec<ToolDefinition> {
        let policy = self.live.policy();
        let listed = policy.servers().get(server).map(|server| server.listed_tools()).unwrap_or_default();
        listed.into_iter().cloned().collect()
    }

    /// Looks again at everything that goes on, because somebody may have lost what they had: sessions of a
    /// credential that counts no more end, with their streams and with what they hold at servers.
    pub fn identities_changed(&self) {
        self.live.look_again();
        self.parks.give_up_forbidden(|asked| still_permitted(self, asked).is_ok());
        let now = self.clock.now();
        let is_lost = |session: &Arc<ClientSession>| self.identities.is_lost(&session.caller(), now);
        let lost: Vec<_> = self.sessions.all().into_iter().filter(is_lost).collect();
        lost.iter().for_each(|session| self.close_session(session));
        // Apart: a server that does not answer must not keep the next one who loses something.
        tokio::spawn(take_leave(lost));
    }

    /// Records, and says, what a change of files newly allows (SELF-2): nobody asked a person for it.
    pub fn tell_widening(&self, wider: &[String]) {
        for words in wider {
            let words = name::shown(words).into_owned();
            tracing::warn!("a change of files made the policy wider: {words}");
            let version = self.live.policy().version();
            self.note_event("policy_widened", &words, |record| record.policy_version = Some(version));
        }
    }

    /// Records something that is no call.
    pub(crate) fn note_event<'a>(&self, method: &'a str, detail: &'a str, fill: impl FnOnce(&mut AuditRecord<'a>)) {
        let mut record = AuditRecord::new(RecordKind::Event, self.clock.now(), self.journal.next_call());
        (record.method, record.detail) = (Some(method), Some(detail));
        fill(&mut record);
        if let Err(error) = self.journal.note(&record) {
            tracing::error!("an event could not be recorded ({method}): {error}");
        }
    }

    /// Closes sessions, and children of principals, nobody used for a while, now and then, until the gateway is gone.
    pub async fn keep_house(self: Arc<Self>) {
        let mut clock = tokio::time::interval(HOUSEKEEPING);
        let weak = Arc::downgrade(&self);
        drop(self);
        loop {
            clock.tick().await;
            let Some(gateway) = weak.upgrade() else { return };
            let idle = gateway.sessions.close_idle(gateway.settings.session_idle);
            take_leave(idle).await;
            gateway.parks.give_up_old();
            for upstream in gateway.upstreams.snapshot().all() {
                upstream.end_olders(true).await;
                upstream.end_idle_children(gateway.settings.session_idle);
            }
        }
    }

    /// Ends every session and every child.
    pub async fn close(&self) {
        // What was approved and is on its way is not cut off: nobody would know how it ended.
        let _ = timeout(self.settings.grace, self.runs.all_ended()).await;
        let sessions = self.sessions.all();
        for session in &sessions {
            self.sessions.close(&session.id);
        }
        self.parks.give_up_all();
        take_leave(sessions).await;
        let servers = self.upstreams.snapshot();
        stream::iter(servers.all()).for_each_concurrent(None, |upstream| upstream.end()).await;
    }
}

/// The servers that are counted one by one: not those of one user, whose names are nobody else's to know.
pub(crate) fn counted(servers: &Set) -> Vec<Arc<str>> {
    let shown = servers.all().iter().filter(|upstream| upstream.definition.input.owner.is_none());
    shown.map(|upstream| upstream.name.clone()).collect()
}

/// Ends what sessions have at their servers. One that does not answer keeps nobody waiting for long.
pub(crate) async fn take_leave(sessions: Vec<Arc<ClientSession>>) {
    let leaving = stream::iter(sessions).for_each_concurrent(LEAVING_AT_ONCE, |session| async move {
        if timeout(LEAVE, session.leave()).await.is_err() {
            tracing::debug!(session = session.mark, "a server did not say goodbye");
        }
    });
    let _ = timeout(LEAVE_ALL, leaving).await;
}
