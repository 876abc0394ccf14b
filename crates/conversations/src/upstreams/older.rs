//! Conversations with a legacy server that the gateway holds for modern clients.
//!
//! One for each principal and each set of client capabilities, for what a server lists depends on
//! both. A server behind pipes cannot say whose question it asks, so a call of a client that may be
//! asked something has its child to itself until it ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OnceCell, OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use toolwarden_core::json::Part;
use toolwarden_mcp::Era;

use super::{HttpLink, Link, Opened, Reach, StdioLink, TakesQuestions, Upstream};
use crate::failure::Failure;

/// Conversations nobody used for so long are closed.
const IDLE: Duration = Duration::from_secs(5 * 60);
/// Children of one conversation, for calls at the same time.
const MOST_CHILDREN: usize = 8;
/// All of them at one server.
#[derive(Debug, Default)]
pub struct Olders(Mutex<HashMap<Key, Arc<OnceCell<Arc<Older>>>>>);

/// Who may use the same conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    principal: String,
    capabilities: String,
}

/// One of them.
#[derive(Debug)]
pub struct Older {
    upstream: Weak<Upstream>,
    principal: String,
    /// What the server was told that the client can be asked, raw.
    capabilities: String,
    opened: Opened,
    line: Line,
    /// One for each child it may have; who comes first, is first.
    seats: Arc<Semaphore>,
    used: Mutex<Instant>,
}

#[derive(Debug)]
enum Line {
    Http(Arc<HttpLink>),
    /// The child of its principal, which is never told of any capability.
    Shared,
    /// Children of its own, the first of which hears everything that is no call.
    Own(tokio::sync::Mutex<Vec<Own>>),
}

#[derive(Debug, Clone)]
struct Own {
    link: Arc<StdioLink>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

/// A conversation for one call. A child asks only whoever holds it.
#[derive(Debug)]
pub struct Turn {
    pub link: Link,
    pub questions: TakesQuestions,
    // Let go in this order: whoever gets the seat finds the child free.
    _held: Option<OwnedMutexGuard<()>>,
    _seat: Seat,
    older: Arc<Older>,
}

/// The right to one child of a conversation; nothing where it has none of its own.
#[derive(Debug)]
pub struct Seat {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Turn {
    /// Whether nobody else hears what the server says meanwhile.
    pub fn is_own(&self) -> bool {
        self.questions == TakesQuestions::Always
    }

    pub fn is_of(&self, older: &Arc<Older>) -> bool {
        Arc::ptr_eq(&self.older, older)
    }
}

impl Upstream {
    /// The conversation for a modern client, opened if there is none.
    pub async fn older(self: &Arc<Self>, principal: &str, capabilities: String) -> Result<Arc<Older>, Failure> {
        let key = Key { principal: principal.to_owned(), capabilities };
        // Whoever comes while it is being opened waits for the same one.
        let place = self.olders.place(&key);
        let opening = place.get_or_try_init(|| async {
            let opening = async {
                match Older::open(self, &key).await {
                    // It was replaced by one of another transport, and nothing is known of it any more.
                    Err(Failure::Forgotten) => Older::open(self, &key).await,
                    opened => opened,
                }
            };
            timeout(self.open_time, opening).await.unwrap_or(Err(Failure::Timeout)).map(Arc::new)
        });
        let older = opening.await.inspect_err(|failure| self.fails(failure))?.clone();
        if let Err(over) = self.tenure().check() {
            // Whoever ended the others may not have seen it.
            older.end().await;
            return Err(over);
        }
        self.works();
        older.touch();
        Ok(older)
    }

    /// Ends conversations nobody uses; all of them at the end.
    pub async fn end_olders(&self, only_idle: bool) {
        for older in self.olders.take(only_idle) {
            older.end().await;
        }
    }
}

impl Olders {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Arc<OnceCell<Arc<Older>>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the conversation is, or will be: what has ended is opened again.
    fn place(&self, key: &Key) -> Arc<OnceCell<Arc<Older>>> {
        let mut all = self.lock();
        let is_over = all.get(key).and_then(|place| place.get()).is_some_and(|older| !older.is_open());
        if is_over {
            all.remove(key);
        }
        all.entry(key.clone()).or_default().clone()
    }

    fn take(&self, only_idle: bool) -> Vec<Arc<Older>> {
        let mut all = self.lock();
        let is_old = |older: &Arc<Older>| {
            !only_idle || !older.is_open() || (older.is_idle() && !older.is_heard() && Arc::strong_count(older) == 1)
        };
        let old: Vec<Arc<Older>> =
            all.values().filter_map(|place| place.get()).filter(|it| is_old(it)).cloned().collect();
        all.retain(|_, place| place.get().is_none_or(|older| !old.iter().any(|gone| Arc::ptr_eq(gone, older))));
        old
    }
}

impl Older {
    async fn open(upstream: &Arc<Upstream>, key: &Key) -> Result<Self, Failure> {
        let capabilities = &key.capabilities;
        let (line, opened) = match upstream.reach() {
            Reach::Http(_) if !upstream.is_by_events() => match HttpLink::greeted(upstream, capabilities).await {
                Ok((link, opened)) => (Line::Http(link), opened),
                Err(refused) if upstream.turns_out_by_events(&refused).await => {
                    return Box::pin(Self::open(upstream, key)).await;
                }
                Err(refused) => return Err(refused),
            },
            Reach::Http(_) | Reach::Command(_) if capabilities == "{}" => {
                let child = upstream.legacy_shared(&key.principal).await?;
                (Line::Shared, child.opened().cloned().ok_or(Failure::Died)?)
            }
            Reach::Http(_) | Reach::Command(_) => {
                let own = Own::start(upstream, capabilities).await?;
                let opened = own.link.opened().cloned().ok_or(Failure::Died)?;
                (Line::Own(tokio::sync::Mutex::new(vec![own])), opened)
            }
            Reach::Nothing(why) => return Err(Failure::Unreachable(why.clone())),
        };
        Ok(Self {
            upstream: Arc::downgrade(upstream),
            principal: key.principal.clone(),
            capabilities: key.capabilities.clone(),
            opened,
            line,
            seats: Arc::new(Semaphore::new(MOST_CHILDREN)),
            used: Mutex::new(Instant::now()),
        })
    }

    /// What the server said when it was greeted.
    pub fn said(&self) -> &Part {
        &self.opened.result
    }

    /// The name and version the server gives itself, raw.
    pub fn about(&self) -> Option<&str> {
        self.opened.result.value().get("serverInfo").map(|about| about.raw())
    }

    fn upstream(&self) -> Result<Arc<Upstream>, Failure> {
        self.upstream.upgrade().ok_or(Failure::Died)
    }

    fn touch(&self) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn is_idle(&self) -> bool {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).elapsed() > IDLE
    }

    fn is_open(&self) -> bool {
        match &self.line {
            Line::Http(http) => !http.is_over(),
            Line::Shared => self.upstream().is_ok_and(|upstream| upstream.has_lines()),
            Line::Own(children) => match children.try_lock() {
                Ok(children) => children.iter().any(|own| own.link.is_alive()),
                Err(_) => true,
            },
        }
    }

    /// Whether somebody listens to it.
    fn is_heard(&self) -> bool {
        match &self.line {
            Line::Http(http) => !http.ears.are_closed(),
            Line::Shared => false,
            Line::Own(children) => {
                children.try_lock().is_ok_and(|all| all.iter().any(|own| !own.link.ears.are_closed()))
            }
        }
    }

    /// For everything that is no call of a client that can be asked.
    pub async fn link(&self) -> Result<Link, Failure> {
        self.touch();
        match &self.line {
            Line::Http(http) => Ok(Link::Http(http.clone())),
            Line::Shared => self.upstream()?.legacy_shared(&self.principal).await.map(Link::Stdio),
            Line::Own(children) => {
                let mut children = children.lock().await;
                children.retain(|own| own.link.is_alive());
                if let Some(first) = children.first() {
                    return Ok(Link::Stdio(first.link.clone()));
                }
                let own = Own::start(&self.upstream()?, &self.capabilities).await?;
                children.push(own.clone());
                Ok(Link::Stdio(own.link))
            }
        }
    }

    /// Waits until a child is free, or may be started.
    pub async fn seat(&self) -> Seat {
        match &self.line {
            // Never closed, so there is always a place to wait for.
            Line::Own(_) => Seat { _permit: self.seats.clone().acquire_owned().await.ok() },
            Line::Http(_) | Line::Shared => Seat { _permit: None },
        }
    }

    /// For one call that has its place.
    pub async fn turn(self: &Arc<Self>, seat: Seat) -> Result<Turn, Failure> {
        self.touch();
        let Line::Own(children) = &self.line else {
            let link = self.link().await?;
            let questions = match link {
                Link::Http(_) => TakesQuestions::Always,
                Link::Stdio(_) => TakesQuestions::WhereAlone,
            };
            return Ok(Turn { link, questions, _held: None, _seat: seat, older: self.clone() });
        };
        let mut all = children.lock().await;
        all.retain(|own| own.link.is_alive());
        for own in all.iter() {
            if let Ok(held) = own.turn.clone().try_lock_owned() {
                return Ok(self.taken(own, held, seat));
            }
        }
        let own = Own::start(&self.upstream()?, &self.capabilities).await?;
        all.push(own.clone());
        let held = own.turn.clone().lock_owned().await;
        Ok(self.taken(&own, held, seat))
    }

    fn taken(self: &Arc<Self>, own: &Own, held: OwnedMutexGuard<()>, seat: Seat) -> Turn {
        let link = Link::Stdio(own.link.clone());
        Turn { link, questions: TakesQuestions::Always, _held: Some(held), _seat: seat, older: self.clone() }
    }

    async fn end(&self) {
        match &self.line {
            Line::Http(http) => {
                http.forget();
                drop(timeout(Duration::from_secs(5), http.end()).await);
            }
            Line::Shared => {}
            Line::Own(children) => {
                let children: Vec<Own> = children.lock().await.drain(..).collect();
                for own in children {
                    own.link.end().await;
                }
            }
        }
    }
}

impl Own {
    async fn start(upstream: &Arc<Upstream>, capabilities: &str) -> Result<Self, Failure> {
        let link = upstream.spawn(Era::Legacy).await?;
        timeout(upstream.open_time, link.greet(capabilities)).await.unwrap_or(Err(Failure::Timeout))?;
        Ok(Self { link, turn: Arc::default() })
    }
}
