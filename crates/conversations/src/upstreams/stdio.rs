//! A conversation with a child over its pipes, or over the oldest HTTP transport, which is like one: ids
//! and progress tokens of many callers kept apart.
//!
//! Every request gets a number of our own on the wire, so that two callers with the same id cannot
//! meet, and every message of the child is brought back to whom it belongs, or dropped.

mod route;

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_core::{Caller, Outbound, Weakness, name, weak};
use toolwarden_mcp::ladder::META_LOG_LEVEL;
use toolwarden_mcp::upstream::child::Ending as Ended;
use toolwarden_mcp::upstream::event_pipe::Said;
use toolwarden_mcp::{Edit, Era, HopMember, Id, Version, Wire};
use toolwarden_policy::housekeeping;

use super::pipe::{Lines, Pipe};
use super::{Ears, OpenLine, Tenure, Upstream};
use crate::failure::Failure;
use crate::sessions::ClientSession;

/// Most messages that wait for one caller; news beyond that is dropped.
const EVENTS_WAITING: usize = 256;

/// One child and everything on its way to and from it.
#[derive(Debug)]
pub struct StdioLink {
    server: Arc<str>,
    era: Era,
    upstream: Weak<Upstream>,
    tenure: Tenure,
    pipe: Pipe,
    started: Instant,
    /// When it was last asked something, or answered.
    used: Mutex<Instant>,
    /// We ended it, so its end is no failure.
    ending: AtomicBool,
    /// It says nothing any more, whether the process has ended or not. Set while `flights` is held.
    silent: AtomicBool,
    next: AtomicU64,
    flights: Mutex<HashMap<u64, InFlight>>,
    opened: OnceLock<Opened>,
    /// The one session of a child that is not shared.
    owner: OnceLock<Weak<ClientSession>>,
    /// Sessions that hear a shared child's news.
    audience: Mutex<Vec<Weak<ClientSession>>>,
    /// Modern clients that listen to a legacy child.
    pub ears: Ears,
}

/// What the child said when it was greeted.
#[derive(Debug, Clone)]
pub struct Opened {
    pub result: Part,
    pub version: Version,
}

/// A request on its way.
#[derive(Debug)]
struct InFlight {
    /// Who asked; none for the gateway's own questions.
    caller: Option<Arc<Caller>>,
    /// The caller's own id.
    client: Id,
    /// The caller's own progress token, raw.
    token: Option<String>,
    wants_logs: bool,
    questions: TakesQuestions,
    /// There as long as the request is on the list.
    course: Arc<()>,
    events: mpsc::Sender<Bytes>,
    last: oneshot::Sender<Result<Last, Failure>>,
}

/// Whether what a child asks may be asked for this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesQuestions {
    Never,
    /// Where they are its session's, and its stream is one the client reads.
    BySession,
    /// Where nothing else is on its way at the child.
    WhereAlone,
    /// It is the only call the child has: whatever is asked, is asked for it.
    Always,
}

/// The end of a request.
#[derive(Debug)]
pub struct Last {
    /// The caller's own id.
    pub client: Id,
    /// The response under the caller's id.
    pub message: Bytes,
    /// The result, for those who look into it.
    pub outcome: Result<Part, Part>,
}

/// What comes back for a request: messages, then the response.
#[derive(Debug)]
pub struct StdioReply {
    pub events: mpsc::Receiver<Bytes>,
    pub last: Ending,
    /// The response, while messages before it are still to be told.
    pub held: Option<Box<Last>>,
    pub guard: StdioGuard,
}

/// Waits for the response, or for why there is none.
#[derive(Debug)]
pub struct Ending(oneshot::Receiver<Result<Last, Failure>>);

impl Future for Ending {
    type Output = Result<Last, Failure>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|end| end.unwrap_or(Err(Failure::Died)))
    }
}

/// Takes a request back when nobody waits for it any more.
#[derive(Debug)]
pub struct StdioGuard {
    link: Arc<StdioLink>,
    number: u64,
}

impl StdioGuard {
    /// The id the request has on the wire.
    pub fn wire(&self) -> Id {
        Id::number(self.number)
    }

    /// Gives the request up: the server is told to stop.
    pub fn cancel(&self) {
        if self.link.lock().remove(&self.number).is_some() {
            self.link.tell_cancelled(self.number);
        }
    }
}

impl Drop for StdioGuard {
    fn drop(&mut self) {
        // A legacy client that goes away has not cancelled: the server works on, its answer is dropped.
        if self.link.era == Era::Modern {
            self.cancel();
        }
    }
}

/// A request that is on the list and yet to be sent. Where it is not, be it that it was dropped while it waited for
/// the child to read, no answer will ever take it off.
struct Leaving<'a> {
    link: &'a StdioLink,
    number: u64,
    is_sent: bool,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if !self.is_sent {
            self.link.lock().remove(&self.number);
        }
    }
}

impl StdioLink {
    pub(super) fn over(upstream: &Arc<Upstream>, (pipe, lines): (Pipe, Lines), era: Era) -> Arc<Self> {
        let link = Arc::new(Self {
            server: upstream.name.clone(),
            era,
            upstream: Arc::downgrade(upstream),
            tenure: upstream.tenure().clone(),
            pipe,
            started: Instant::now(),
            used: Mutex::new(Instant::now()),
            ending: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            next: AtomicU64::new(1),
            flights: Mutex::default(),
            opened: OnceLock::new(),
            owner: OnceLock::new(),
            audience: Mutex::default(),
            ears: Ears::default(),
        });
        // Not kept alive by its own reader: a child nobody holds any more, as when its opening was given
        // up, ends with this.
        tokio::spawn(Self::listen(Arc::downgrade(&link), lines, OpenLine::count(upstream)));
        link
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, InFlight>> {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn era(&self) -> Era {
        self.era
    }

    pub fn is_alive(&self) -> bool {
        !self.silent.load(Ordering::Relaxed) && !self.pipe.has_ended() && !self.tenure.is_over()
    }

    /// It is about to be used, or just was.
    pub(super) fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub fn opened(&self) -> Option<&Opened> {
        self.opened.get()
    }

    /// Whether the child serves one session alone.
    pub fn is_own(&self) -> bool {
        self.owner.get().is_some()
    }

    pub fn belongs_to(&self, session: &Arc<ClientSession>) {
        let _ = self.owner.set(Arc::downgrade(session));
    }

    /// A session that wants to hear news of a shared child.
    pub fn heard_by(&self, session: &Arc<ClientSession>) {
        let mut audience = self.audience.lock().unwrap_or_else(PoisonError::into_inner);
        audience.retain(|one| one.strong_count() > 0);
        let is_known = audience.iter().any(|one| one.as_ptr() == Arc::as_ptr(session));
        if !is_known {
            audience.push(Arc::downgrade(session));
        }
    }

    /// Greets a legacy child on the gateway's own account, with these client capabilities.
    pub(super) async fn greet(self: &Arc<Self>, capabilities: &str) -> Result<(), Failure> {
        let hello = own_hello(&self.server, capabilities)?;
        self.open(&hello, &Id::number(0), &[]).await?;
        let ready = housekeeping(self.server.clone(), "notifications/initialized", None).map_err(own_fault)?;
        self.notify(&ready, &[]).await
    }

    /// Sends `initialize` and keeps what the child agreed to.
    pub async fn open(self: &Arc<Self>, hello: &Outbound, id: &Id, edits: &[Edit<'_>]) -> Result<Opened, Failure> {
        let reply = self.request(hello, id, edits).await?;
        let last = reply.last.await?;
        match &last.outcome {
            Ok(result) => {
                let opened = Opened { result: result.clone(), version: agreed_version(result)? };
                let _ = self.opened.set(opened.clone());
                Ok(opened)
            }
            Err(error) => Err(Failure::Answered { status: 200, error: error.raw().to_owned() }),
        }
    }

    /// Sends a request of the gateway itself.
    pub async fn request(
        self: &Arc<Self>,
        outbound: &Outbound,
        id: &Id,
        further: &[Edit<'_>],
    ) -> Result<StdioReply, Failure> {
        self.request_for(None, outbound, id, further, TakesQuestions::Never).await
    }

    /// Sends a request under a number of our own.
    pub async fn request_for(
        self: &Arc<Self>,
        caller: Option<&Arc<Caller>>,
        outbound: &Outbound,
        id: &Id,
        further: &[Edit<'_>],
        questions: TakesQuestions,
    ) -> Result<StdioReply, Failure> {
        let given = weak::is(Weakness::Routes).then(|| id.raw().parse().ok()).flatten();
        let number = given.unwrap_or_else(|| self.next.fetch_add(1, Ordering::Relaxed));
        let meta = outbound.params().and_then(|params| params.value().get("_meta"));
        let token = meta.and_then(|meta| meta.get("progressToken")).map(|token| token.raw().to_owned());
        let (events, receiver) = mpsc::channel(EVENTS_WAITING);
        let (last, last_receiver) = oneshot::channel();
        let flight = InFlight {
            caller: caller.cloned(),
            client: id.clone(),
            token,
            wants_logs: wants_logs(outbound, further),
            questions,
            course: Arc::default(),
            events,
            last,
        };
        self.depart(number, flight)?;
        let mut leaving = Leaving { link: self, number, is_sent: false };
        let wire_id = Id::number(number);
        let mut edits = vec![Edit::ProgressToken(wire_id.raw())];
        edits.extend_from_slice(further);
        let wire = Wire::with_id(outbound, &wire_id, &edits);
        self.pipe.send(wire).await?;
        leaving.is_sent = true;
        let guard = StdioGuard { link: self.clone(), number };
        Ok(StdioReply { events: receiver, last: Ending(last_receiver), held: None, guard })
    }

    /// Puts a request on the list of those that wait; none can wait for a child that says nothing any more.
    fn depart(&self, number: u64, flight: InFlight) -> Result<(), Failure> {
        self.tenure.check()?;
        let mut flights = self.lock();
        if self.silent.load(Ordering::Relaxed) {
            return Err(Failure::Unreachable(format!("the server `{}` has ended", self.server)));
        }
        flights.insert(number, flight);
        self.touch();
        Ok(())
    }

    pub async fn notify(&self, outbound: &Outbound, edits: &[Edit<'_>]) -> Result<(), Failure> {
        self.tenure.check()?;
        self.pipe.send(Wire::notification(outbound, edits)).await
    }

    pub async fn answer(&self, outbound: &Outbound, id: &Id) -> Result<(), Failure> {
        self.tenure.check()?;
        self.pipe.send(Wire::with_id(outbound, id, &[])).await
    }

    /// The same from the child's own reader, which must not wait for the child: one that asks and does not
    /// read is ended.
    fn answer_now(self: &Arc<Self>, outbound: &Outbound, id: &Id) {
        if !self.pipe.send_now(Wire::with_id(outbound, id, &[])) && self.is_alive() {
            tracing::warn!(server = %self.server, "the server asks and does not read the answers: it is ended");
            let link = self.clone();
            tokio::spawn(async move { link.pipe.end().await });
        }
    }

    /// Nobody waits for the answer any more; says whether anybody did, and the server is to be told.
    pub fn forget(&self, wire: &Id) -> bool {
        wire.raw().parse().is_ok_and(|number| self.lock().remove(&number).is_some())
    }

    /// Takes it out of use at once; it ends soon after.
    pub fn retire(self: &Arc<Self>) {
        self.retire_with(self.lock());
    }

    /// The same where nobody hears it, waits for it, or used it for so long; says whether.
    pub(super) fn retire_if_idle(self: &Arc<Self>, idle: Duration) -> bool {
        let flights = self.lock();
        let is_heard = {
            let audience = self.audience.lock().unwrap_or_else(PoisonError::into_inner);
            audience.iter().any(|session| session.strong_count() > 0) || !self.ears.are_closed()
        };
        // A legacy client that went away has not cancelled: its request stays on the list.
        let is_awaited = flights.values().any(|flight| !flight.last.is_closed());
        let is_fresh = self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() < idle;
        let is_needed = is_heard || is_awaited || is_fresh;
        if !is_needed {
            self.retire_with(flights);
        }
        !is_needed
    }

    fn retire_with(self: &Arc<Self>, mut flights: MutexGuard<'_, HashMap<u64, InFlight>>) {
        self.ending.store(true, Ordering::Relaxed);
        self.silent.store(true, Ordering::Relaxed);
        flights.clear();
        drop(flights);
        let link = self.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { link.pipe.end().await });
        }
    }

    /// Whether its end would be no failure.
    pub(super) fn may_end(&self, may: bool) {
        self.ending.store(may, Ordering::Relaxed);
    }

    pub async fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
        self.pipe.end().await;
    }

    fn tell_cancelled(self: &Arc<Self>, number: u64) {
        let params = Document::parse(format!(r#"{{"requestId":{number}}}"#), Limits::DEFAULT);
        let params = params.ok().map(|params| Part::whole(Arc::new(params)));
        let Ok(outbound) = housekeeping(self.server.clone(), "notifications/cancelled", params) else { return };
        let link = self.clone();
        tokio::spawn(async move { link.notify(&outbound, &[]).await });
    }

    /// How the child ended, where it did.
    pub(super) async fn ending(&self) -> Option<Ended> {
        self.pipe.ending().await
    }

    /// Reads the child until it ends.
    async fn listen(link: Weak<Self>, mut lines: Lines, _counted: OpenLine) {
        while let Some(said) = lines.next().await {
            let Some(link) = link.upgrade() else { return };
            match said {
                Said::Message(line) => link.route(&line).await,
                Said::Refused { request, status } => link.refuse(&request, status),
            }
        }
        let Some(link) = link.upgrade() else { return };
        if let Some(upstream) = link.upstream.upgrade()
            && !link.ending.load(Ordering::Relaxed)
        {
            tracing::warn!(server = %link.server, "the server ended by itself");
            upstream.ended(link.started.elapsed());
        }
        {
            let mut flights = link.lock();
            link.silent.store(true, Ordering::Relaxed);
            // Those who wait learn it from their closed channels.
            flights.clear();
            link.ears.close();
        }
        // A process that stays is of no use to anybody.
        link.pipe.end().await;
    }
}

/// The revision an `initialize` result agrees to.
pub fn agreed_version(result: &Part) -> Result<Version, Failure> {
    let text = result.value().get("protocolVersion").and_then(|version| version.as_str()).unwrap_or_default();
    Version::parse(&text)
        .filter(|version| version.era() == Era::Legacy)
        .ok_or_else(|| Failure::Protocol(format!("it agreed to the unknown version `{}`", name::shown(&text))))
}

/// `initialize` on the gateway's own account.
pub(super) fn own_hello(server: &Arc<str>, capabilities: &str) -> Result<Outbound, Failure> {
    let params = format!(
        r#"{{"protocolVersion":"{}","capabilities":{capabilities},"clientInfo":{{"name":"toolwarden","version":"{}"}}}}"#,
        Version::LATEST_LEGACY,
        env!("CARGO_PKG_VERSION")
    );
    let params = Document::parse(params, Limits::DEFAULT).ok().map(|params| Part::whole(Arc::new(params)));
    housekeeping(server.clone(), "initialize", params).map_err(own_fault)
}

/// Whether a request, as it is sent, asks for logs.
fn wants_logs(outbound: &Outbound, edits: &[Edit<'_>]) -> bool {
    let replaced = edits.iter().find_map(|edit| match edit {
        Edit::Hop(HopMember::Meta, meta) => Some(meta.is_some_and(|meta| meta.contains(META_LOG_LEVEL))),
        _ => None,
    });
    let given = || outbound.params().and_then(|params| params.value().get("_meta")?.get(META_LOG_LEVEL)).is_some();
    // A legacy server has no word for it; who asked still wants to hear.
    replaced.unwrap_or(false) || given()
}

#[expect(clippy::needless_pass_by_value, reason = "it is a mapping of errors")]
pub(super) fn own_fault(error: toolwarden_policy::NotHousekeeping) -> Failure {
    Failure::Protocol(error.to_string())
}
