//! Requests whose stream broke off: they wait, as long as they may, for a response that comes another way.

use std::pin::Pin;

use bytes::Bytes;
use tokio::time::Instant;
use toolwarden_core::json::Part;
use toolwarden_core::weak;
use toolwarden_mcp::Id;

use super::{ClientSession, Push, lock};
use crate::failure::Failure;

/// What is shown of an answer that came another way, once somebody has looked into it.
pub type Shown<'a> = Pin<Box<dyn Future<Output = Result<Option<Bytes>, Failure>> + Send + 'a>>;

const MOST_PARKED: usize = 256;

/// A request whose stream broke off before its response came.
pub trait Parked: std::fmt::Debug + Send {
    /// Whose response it waits for.
    fn server(&self) -> &str;

    /// The response came another way. Gives what is shown of it; none where it stays as it is.
    fn answered(self: Box<Self>, outcome: &Result<Part, Part>, size: u64) -> Shown<'_>;

    /// How long it may wait for that.
    fn ends(&self) -> Instant;

    /// It waited in vain.
    fn is_late(self: Box<Self>);
}

impl ClientSession {
    /// Keeps a request whose stream broke off until its response comes another way.
    pub fn park(&self, id: Id, parked: Box<dyn Parked>) {
        // Dropped outside of the lock: what is parked holds the session.
        let refused = match &mut *lock(&self.parked) {
            Some(open) if open.len() < weak::limit(MOST_PARKED) => open.insert(id, parked),
            Some(_) | None => Some(parked),
        };
        drop(refused);
    }

    /// Ends what is parked and has no time left.
    pub fn end_late(&self) {
        let late: Vec<_> = match &mut *lock(&self.parked) {
            Some(open) => open.extract_if(|_, parked| parked.ends() <= Instant::now()).collect(),
            None => return,
        };
        late.into_iter().for_each(|(_, parked)| parked.is_late());
    }

    /// Gives up what is parked; nothing is parked from here on.
    pub(super) fn forsake(&self) {
        let parked = lock(&self.parked).take();
        drop(parked);
        self.gone.notify_waiters();
        if let Push::Log(news) = &self.push {
            // Nothing follows: whoever hears it need not wait.
            news.close();
        }
    }

    /// Gives up the parked request of this id; says whether there was one.
    pub fn give_up_parked(&self, id: &Id) -> bool {
        // Dropped outside of the lock: what is parked holds the session.
        let parked = lock(&self.parked).as_mut().and_then(|parked| parked.remove(id));
        parked.is_some()
    }

    /// The parked request of this id, if it is this server's to answer.
    pub fn unpark(&self, id: &Id, server: &str) -> Option<Box<dyn Parked>> {
        let mut open = lock(&self.parked);
        let parked = open.as_mut()?;
        parked.get(id).filter(|parked| parked.server() == server)?;
        parked.remove(id)
    }
}
