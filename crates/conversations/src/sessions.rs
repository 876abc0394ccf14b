//! Legacy conversations with clients: who opened them, what was agreed, what is in flight.
//!
//! Ids are sealed by the keyring, so none can be guessed, and every lookup names the principal again
//! (GATE-19): somebody else's session does not exist. A stdio connection is one session.

mod all;
mod parked;

use std::any::Any;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use toolwarden_core::json::Part;
use toolwarden_core::{Caller, Digest, weak};
use toolwarden_mcp::{Id, Version};

use crate::flight::{Flight, FlightGuard};
use crate::scope::Scope;
use crate::stream_log::StreamLog;
use crate::upstreams::{Link, Upstream, is_at_or_under};

pub use self::all::{SessionError, Sessions, identity, principal};
pub use self::parked::{Parked, Shown};

/// What `initialize` agreed on.
#[derive(Debug, Clone)]
pub struct Agreed {
    pub version: Version,
    /// The client's capabilities as it declared them.
    pub capabilities: Option<Part>,
    /// The name and version the client gave itself.
    pub client: Option<Part>,
}

/// Where news for the client goes.
#[derive(Debug, Clone)]
pub enum Push {
    /// Kept for the client's GET stream.
    Log(Arc<StreamLog>),
    /// Written to its pipe.
    Lines(mpsc::Sender<Bytes>),
}

/// Something a server asked and the client has not answered.
#[derive(Debug)]
pub struct Question {
    pub server: Arc<str>,
    pub method: Arc<str>,
    pub to: AnswerTo,
}

/// Something that is there as long as the call in whose course a question was asked.
pub type AskedDuring = Weak<dyn Any + Send + Sync>;

/// A question, and what it was asked for, where that is known.
#[derive(Debug)]
struct Unanswered {
    question: Question,
    course: Option<AskedDuring>,
}

impl Unanswered {
    /// Whether anybody still waits for the answer.
    fn is_awaited(&self) -> bool {
        let is_there = match &self.question.to {
            AnswerTo::Server(link, _) => link.is_open(),
            AnswerTo::Waiter(_) | AnswerTo::Gateway(_) => true,
        };
        is_there && self.course.as_ref().is_none_or(|course| course.strong_count() > 0)
    }
}

/// Where an answer goes.
#[derive(Debug)]
pub enum AnswerTo {
    /// To the server, under the id it gave its question.
    Server(Link, Id),
    /// To whoever asks on a modern server's behalf.
    Waiter(Mutex<Option<oneshot::Sender<Result<Part, Part>>>>),
    /// To the gateway itself, which asks whether a held call may be made.
    Gateway(Mutex<Option<oneshot::Sender<Result<Part, Part>>>>),
}

/// The session watches something else now; what the server agreed to comes back.
pub type Refresh = oneshot::Sender<Vec<String>>;

/// One conversation.
#[derive(Debug)]
pub struct ClientSession {
    pub id: String,
    /// Stands for the id in records.
    pub mark: String,
    /// Whoever comes as the same again has come back to it.
    opened_by: Arc<Caller>,
    /// The same one, in the mode the session is in now (MODE-8).
    caller: ArcSwap<Caller>,
    pub scope: Scope,
    pub push: Push,
    agreed: OnceLock<Agreed>,
    /// By the number of the server: one that is defined otherwise is another one.
    links: Mutex<HashMap<u64, (Arc<str>, Link)>>,
    flights: Mutex<HashMap<Id, Arc<Flight>>>,
    /// Told when the session is over.
    gone: Notify,
    /// Ids of the last requests that ended.
    ended: Mutex<VecDeque<Id>>,
    questions: Mutex<HashMap<Id, Unanswered>>,
    watched: Mutex<Vec<(Arc<str>, String)>>,
    streams: Mutex<BTreeMap<u64, Arc<StreamLog>>>,
    /// None once the session has ended.
    parked: Mutex<Option<HashMap<Id, Box<dyn Parked>>>>,
    /// Tasks that follow servers' streams for this session.
    followers: Mutex<Vec<AbortHandle>>,
    /// The log level the client set, raw: told to modern servers with each request.
    level: Mutex<Option<String>>,
    /// Who listens to modern servers for this session, to be told when it watches something else.
    listening: Mutex<HashMap<u64, mpsc::Sender<Refresh>>>,
    numbers: AtomicU64,
    used: Mutex<Instant>,
    /// Messages of one line that are handled at the same time.
    room: Arc<Semaphore>,
}

const MOST_AT_ONCE: usize = 256;
const MOST_ENDED: usize = 64;
/// Resources that one session watches, and bytes of their addresses.
const MOST_WATCHED: usize = 10_000;
const MOST_WATCHED_BYTES: usize = 1024 * 1024;
/// Questions of one server that wait for an answer at the same time: nobody answers more, and each is remembered.
const MOST_QUESTIONS: usize = 64;

/// Ended streams a client can come back to: the last ones, as long as they are small together.
const ENDED_STREAMS: usize = 16;
const ENDED_BYTES: usize = 4 * 1024 * 1024;

/// Drops ended streams beyond those a client may still come back to, the oldest first.
fn forget_old(streams: &mut BTreeMap<u64, Arc<StreamLog>>) {
    let (mut count, mut bytes) = (0, 0);
    let old: Vec<u64> = streams
        .iter()
        .rev()
        .filter_map(|(number, log)| {
            bytes += log.ended_size()?;
            count += 1;
            (count > ENDED_STREAMS || bytes > ENDED_BYTES).then_some(*number)
        })
        .collect();
    for number in old {
        streams.remove(&number);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Push {
    /// Kept for a stream the client may open.
    pub fn kept() -> Self {
        Self::Log(Arc::new(StreamLog::new(0)))
    }
}

impl ClientSession {
    pub fn new(id: String, caller: Arc<Caller>, scope: Scope, push: Push) -> Self {
        let mark: String = Digest::of_bytes(id.as_bytes()).to_string().chars().take(12).collect();
        Self {
            id,
            mark,
            caller: ArcSwap::new(caller.clone()),
            opened_by: caller,
            scope,
            push,
            agreed: OnceLock::new(),
            links: Mutex::default(),
            flights: Mutex::default(),
            gone: Notify::new(),
            ended: Mutex::default(),
            questions: Mutex::default(),
            watched: Mutex::default(),
            streams: Mutex::default(),
            parked: Mutex::new(Some(HashMap::new())),
            followers: Mutex::default(),
            level: Mutex::default(),
            listening: Mutex::default(),
            numbers: AtomicU64::new(1),
            used: Mutex::new(Instant::now()),
            room: Arc::new(Semaphore::new(MOST_AT_ONCE)),
        }
    }

    /// Who speaks, as things stand: a person may have put the session in another mode.
    pub fn caller(&self) -> Arc<Caller> {
        self.caller.load_full()
    }

    /// Puts the session in another mode, or in none, whatever the client asks for; gives who spoke before.
    pub fn switch(&self, mode: Option<String>) -> Arc<Caller> {
        let next = Arc::new(Caller { mode, ..(*self.opened_by).clone() });
        self.caller.swap(next)
    }

    pub fn agree(&self, agreed: Agreed) -> bool {
        self.agreed.set(agreed).is_ok()
    }

    pub fn agreed(&self) -> Option<&Agreed> {
        self.agreed.get()
    }

    pub fn version(&self) -> Version {
        self.agreed().map_or(Version::LATEST_LEGACY, |agreed| agreed.version)
    }

    pub fn link(&self, upstream: &Upstream) -> Option<Link> {
        lock(&self.links).get(&upstream.number).map(|(_, link)| link.clone())
    }

    pub fn keep_link(&self, upstream: &Upstream, link: Link) {
        lock(&self.links).insert(upstream.number, (upstream.name.clone(), link.clone()));
        // Opened for a session that ended meanwhile, or with a server that did: whoever ended it did not see it.
        let is_late = self.is_over() || upstream.is_over();
        if let (true, Ok(runtime)) = (is_late, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { link.close().await });
        }
    }

    pub fn forget_link(&self, upstream: &Upstream) {
        lock(&self.links).remove(&upstream.number);
    }

    /// Lets go of a server that was taken away, or is defined otherwise; gives what is to be closed.
    pub fn leaves(&self, upstream: &Upstream) -> Option<Link> {
        lock(&self.listening).remove(&upstream.number);
        let (_, link) = lock(&self.links).remove(&upstream.number)?;
        if let Link::Http(http) = &link {
            // Whoever follows its stream ends.
            http.forget();
        }
        Some(link)
    }

    pub fn links(&self) -> Vec<(Arc<str>, Link)> {
        lock(&self.links).values().cloned().collect()
    }

    /// Puts a request on the list; none where one of that id is still on its way.
    pub fn depart(self: &Arc<Self>, id: &Id) -> Option<FlightGuard> {
        match lock(&self.flights).entry(id.clone()) {
            Entry::Occupied(_) => None,
            Entry::Vacant(place) => {
                let flight = place.insert(Arc::default()).clone();
                Some(FlightGuard { session: self.clone(), id: id.clone(), flight })
            }
        }
    }

    /// Takes a request off the list; another of the same id stays.
    pub(crate) fn arrived(&self, id: &Id, flight: &Arc<Flight>) {
        let mut flights = lock(&self.flights);
        if flights.get(id).is_some_and(|known| Arc::ptr_eq(known, flight)) {
            flights.remove(id);
            drop(flights);
            let mut ended = lock(&self.ended);
            if ended.len() >= MOST_ENDED {
                ended.pop_front();
            }
            ended.push_back(id.clone());
        }
    }

    /// Whether a request of this id ended a moment ago: its cancellation may have crossed its answer.
    pub fn has_ended(&self, id: &Id) -> bool {
        lock(&self.ended).contains(id)
    }

    /// The client's own request of this id; none for ids that are not its own, or are done.
    pub fn flight(&self, id: &Id) -> Option<Arc<Flight>> {
        lock(&self.flights).get(id).cloned()
    }

    /// Whether there is room for another question of this server. Those whose call has ended make room: before
    /// that they are kept, for a child does not say for which call it asks.
    pub fn may_be_asked(&self, server: &str) -> bool {
        let mut questions = lock(&self.questions);
        let own = |open: &&Unanswered| *open.question.server == *server;
        if questions.values().filter(own).count() < weak::limit(MOST_QUESTIONS) {
            return true;
        }
        questions.retain(|_, open| open.is_awaited());
        questions.values().filter(own).count() < weak::limit(MOST_QUESTIONS)
    }

    /// Remembers a question that was asked in the course of a call, or of none that is known.
    pub fn ask(&self, id: Id, question: Question, course: Option<AskedDuring>) {
        lock(&self.questions).insert(id, Unanswered { question, course });
    }

    /// The course of a request that is on its way.
    pub fn asked_during(&self, id: &Id) -> Option<AskedDuring> {
        let flight: Weak<Flight> = Arc::downgrade(lock(&self.flights).get(id)?);
        Some(flight)
    }

    /// The server that asked a question that is still open.
    pub fn asked_by(&self, id: &Id) -> Option<Arc<str>> {
        lock(&self.questions).get(id).map(|open| open.question.server.clone())
    }

    /// The id under which the client was asked what this server asked under that one.
    fn asked_as(&self, server: &str, asked: &Id) -> Option<Id> {
        let is_it = |question: &Question| {
            *question.server == *server && matches!(&question.to, AnswerTo::Server(_, id) if id == asked)
        };
        lock(&self.questions).iter().find(|(_, open)| is_it(&open.question)).map(|(id, _)| id.clone())
    }

    /// The question an answer belongs to; each is answered once.
    pub fn answered(&self, id: &Id) -> Option<Question> {
        lock(&self.questions).remove(id).map(|open| open.question)
    }

    /// What this server asked under that id is not to be answered any more; gives the id the client knows it by.
    pub fn taken_back(&self, server: &str, asked: &Id) -> Option<Id> {
        let shown = self.asked_as(server, asked)?;
        self.answered(&shown);
        Some(shown)
    }

    /// A fresh id for a question of ours or of a shared link.
    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Remembers a watched resource; says whether there was room for it.
    pub fn watch(&self, server: Arc<str>, uri: String) -> bool {
        let mut watched = lock(&self.watched);
        if watched.iter().any(|(of, known)| *of == server && *known == uri) {
            return true;
        }
        let bytes: usize = watched.iter().map(|(_, known)| known.len()).sum();
        let has_room = watched.len() < MOST_WATCHED && bytes.saturating_add(uri.len()) <= MOST_WATCHED_BYTES;
        if has_room {
            watched.push((server, uri));
        }
        has_room
    }

    pub fn unwatch(&self, server: &str, uri: &str) {
        lock(&self.watched).retain(|(of, watched)| &**of != server || watched != uri);
    }

    /// Whether the client watches this resource, or one it lies under.
    pub fn watches(&self, server: &str, uri: &str) -> bool {
        lock(&self.watched).iter().any(|(of, watched)| &**of == server && is_at_or_under(uri, watched))
    }

    /// Everything the client watches at one server.
    pub fn watched(&self, server: &str) -> Vec<String> {
        lock(&self.watched).iter().filter(|(of, _)| &**of == server).map(|(_, uri)| uri.clone()).collect()
    }

    pub fn level(&self) -> Option<String> {
        lock(&self.level).clone()
    }

    pub fn set_level(&self, level: String) {
        *lock(&self.level) = Some(level);
    }

    /// Who listens to a modern server for this session; `start` makes one where there is none.
    pub fn listener(
        &self,
        upstream: &Upstream,
        start: impl FnOnce() -> mpsc::Sender<Refresh>,
    ) -> mpsc::Sender<Refresh> {
        lock(&self.listening).entry(upstream.number).or_insert_with(start).clone()
    }

    /// Whether the session has ended.
    fn is_over(&self) -> bool {
        lock(&self.parked).is_none()
    }

    /// Waits until the session is over.
    pub async fn over(&self) {
        loop {
            let told = self.gone.notified();
            if self.is_over() {
                return;
            }
            told.await;
        }
    }

    /// A task ends with the session. While it listens it holds the session, so one that came too late would keep
    /// both for ever.
    pub fn followed_by(&self, follower: AbortHandle) {
        let mut followers = lock(&self.followers);
        followers.retain(|follower| !follower.is_finished());
        followers.push(follower);
        drop(followers);
        if self.is_over() {
            self.end_followers();
        }
    }

    fn end_followers(&self) {
        lock(&self.followers).drain(..).for_each(|follower| follower.abort());
    }

    /// Ends everything that was opened for this session alone.
    pub async fn leave(&self) {
        self.forsake();
        self.end_followers();
        lock(&self.listening).clear();
        // Calls that cross eras run apart from their connection: they end here, and say so.
        let carried: Vec<_> = lock(&self.flights).values().filter(|flight| flight.is_carried()).cloned().collect();
        for flight in &carried {
            flight.stop();
        }
        if !carried.is_empty() {
            tokio::task::yield_now().await;
        }
        for (_, link) in self.links() {
            link.close().await;
        }
    }

    /// A new stream of events that the client can resume.
    pub fn open_stream(&self) -> Arc<StreamLog> {
        let number = self.next_number();
        let log = Arc::new(StreamLog::new(number));
        let mut streams = lock(&self.streams);
        forget_old(&mut streams);
        streams.insert(number, log.clone());
        log
    }

    pub fn stream(&self, number: u64) -> Option<Arc<StreamLog>> {
        match &self.push {
            Push::Log(log) if number == 0 => Some(log.clone()),
            Push::Log(_) | Push::Lines(_) => lock(&self.streams).get(&number).cloned(),
        }
    }

    /// Tells the client something outside any request.
    pub fn tell(&self, message: Bytes) {
        match &self.push {
            Push::Log(log) => log.put(message),
            // A client that does not read its pipe misses news, it does not stop others.
            Push::Lines(lines) => drop(lines.try_send(message)),
        }
    }

    /// Whether the client listens outside of its requests.
    pub fn is_heard(&self) -> bool {
        match &self.push {
            Push::Log(log) => log.has_reader(),
            Push::Lines(lines) => !lines.is_closed(),
        }
    }

    /// Waits until none of its messages is handled any more.
    pub async fn at_rest(&self) {
        let all = u32::try_from(MOST_AT_ONCE).unwrap_or(u32::MAX);
        drop(self.room.acquire_many(all).await);
    }

    pub fn room(&self) -> Arc<Semaphore> {
        self.room.clone()
    }

    fn touch(&self) {
        *lock(&self.used) = Instant::now();
    }

    fn idle(&self) -> Duration {
        // An open line is in use, whatever it carries.
        if matches!(&self.push, Push::Lines(lines) if !lines.is_closed()) {
            return Duration::ZERO;
        }
        // A request whose stream broke off may never be answered.
        let parked = lock(&self.parked).as_ref().map_or(0, HashMap::len);
        if lock(&self.flights).len() <= parked { lock(&self.used).elapsed() } else { Duration::ZERO }
    }
}
