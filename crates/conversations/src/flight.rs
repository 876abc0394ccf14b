//! A request of a client, from its arrival until nobody waits for its answer: registered before anything is done
//! about it, so that it can be stopped at every moment.

use std::any::Any;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio::sync::Notify;
use toolwarden_mcp::Id;

use crate::sessions::ClientSession;
use crate::upstreams::Link;

/// One request.
#[derive(Debug, Default)]
pub struct Flight {
    is_stopped: AtomicBool,
    stopping: Notify,
    revoked: AtomicBool,
    places: Mutex<Vec<Place>>,
    /// It took longer than it may.
    late: AtomicBool,
    /// What it holds as long as anybody has to do with it.
    held: OnceLock<Arc<dyn Any + Send + Sync>>,
}

/// Where a request waits for an answer, and the id it has there.
#[derive(Debug, Clone)]
pub struct Place {
    pub server: Arc<str>,
    pub link: Link,
    pub wire: Id,
}

impl Flight {
    /// Nobody wants the answer any more.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.stopping.notify_waiters();
    }

    /// Waits until somebody stops it; at once where that was before.
    pub async fn stopped(&self) {
        let mut stopping = pin!(self.stopping.notified());
        // Listening before looking: whoever stops it in between is heard.
        stopping.as_mut().enable();
        if !self.is_stopped.load(Ordering::Acquire) {
            stopping.await;
        }
    }

    /// Whether its client gave it up.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// The policy took it away while it was on its way.
    pub fn mark_revoked(&self) {
        self.revoked.store(true, Ordering::Relaxed);
    }

    pub fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Relaxed)
    }

    /// Its time is over.
    pub fn mark_late(&self) {
        self.late.store(true, Ordering::Relaxed);
    }

    pub fn is_late(&self) -> bool {
        self.late.load(Ordering::Relaxed)
    }

    /// Holds something until the last copy of the request is gone.
    pub fn hold(&self, held: Arc<dyn Any + Send + Sync>) {
        // One request takes its places once.
        let _ = self.held.set(held);
    }

    /// Goes on with what another request held, whose call it carries on.
    pub fn carry_on(&self, other: &Self) {
        if let Some(held) = other.held.get() {
            self.hold(held.clone());
        }
    }

    /// It waits there from now on.
    pub fn waits_at(&self, server: &Arc<str>, link: &Link, wire: Id) {
        let place = Place { server: server.clone(), link: link.clone(), wire };
        self.places.lock().unwrap_or_else(PoisonError::into_inner).push(place);
    }

    /// Everywhere it waits, to be told; each is given once. None of those whom its carrier tells: across eras.
    pub fn take_places(&self) -> Vec<Place> {
        std::mem::take(&mut *self.places.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether somebody carries it on who tells the server in its words.
    pub(crate) fn is_carried(&self) -> bool {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// Keeps a request on its session's list until nobody has anything to do with it any more.
#[derive(Debug)]
pub struct FlightGuard {
    pub(crate) session: Arc<ClientSession>,
    pub(crate) id: Id,
    pub(crate) flight: Arc<Flight>,
}

impl FlightGuard {
    pub fn flight(&self) -> &Arc<Flight> {
        &self.flight
    }

    /// The answer is on its way to the client: its id is free again.
    pub fn release(&self) {
        self.session.arrived(&self.id, &self.flight);
    }
}

impl Drop for FlightGuard {
    fn drop(&mut self) {
        self.release();
    }
}
