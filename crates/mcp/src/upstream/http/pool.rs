//! Connections that wait for the next request.
//!
//! The newest is used first, so that the others can grow old and be closed. A connection the server has closed is
//! noticed before it is used. Each is used only by the runtime that opened it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::connect::Tls;
use super::connection::Live;
use super::target::HttpTarget;

#[derive(Debug)]
pub(super) struct Pool {
    waiting: Mutex<Waiting>,
    idle: Duration,
    max_idle: usize,
    max_event_bytes: usize,
    tls: Option<Tls>,
    public_only: bool,
    itself: Weak<Self>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The oldest first.
    connections: VecDeque<(Box<Live>, Instant)>,
    is_swept: bool,
}

impl Pool {
    pub(super) fn new(target: &HttpTarget) -> Arc<Self> {
        Arc::new_cyclic(|itself| Self {
            waiting: Mutex::default(),
            idle: target.timeouts.idle,
            max_idle: target.max_idle,
            max_event_bytes: target.max_event_bytes,
            tls: target.tls.clone(),
            public_only: target.public_only,
            itself: itself.clone(),
        })
    }

    pub(super) fn max_event_bytes(&self) -> usize {
        self.max_event_bytes
    }

    pub(super) fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    pub(super) fn is_public_only(&self) -> bool {
        self.public_only
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing panics while it is held, and a list of connections is never half changed.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection that can carry a request, if one waits.
    pub(super) async fn take(&self) -> Option<Box<Live>> {
        let here = Handle::current().id();
        loop {
            let (mut live, until) = {
                let mut waiting = self.lock();
                let place = waiting.connections.iter().rposition(|(live, _)| live.home == here)?;
                waiting.connections.remove(place)?
            };
            let reusable = poll_fn(|cx| Poll::Ready(live.is_reusable(cx))).await;
            if reusable && until > Instant::now() {
                return Some(live);
            }
        }
    }

    /// Keeps a connection whose answer was read to the end.
    pub(super) fn put(&self, mut live: Box<Live>, cx: &mut Context<'_>) {
        if self.max_idle == 0 || !live.is_waiting(cx) {
            return;
        }
        let until = Instant::now() + live.keep_alive.map_or(self.idle, |offered| offered.min(self.idle));
        let mut waiting = self.lock();
        if waiting.connections.len() >= self.max_idle {
            // Dropped outside the lock: closing a socket is a system call.
            let oldest = waiting.connections.pop_front();
            waiting.connections.push_back((live, until));
            drop(waiting);
            drop(oldest);
            return;
        }
        waiting.connections.push_back((live, until));
        if !std::mem::replace(&mut waiting.is_swept, true) {
            tokio::spawn(sweep(self.itself.clone(), self.idle));
        }
    }

    #[cfg(test)]
    pub(super) fn waiting_count(&self) -> usize {
        self.lock().connections.len()
    }

    /// Closes what waited too long. False once nothing is left to look after.
    fn close_old(&self, now: Instant) -> bool {
        let mut old = Vec::new();
        let mut waiting = self.lock();
        let (kept, expired) = waiting.connections.drain(..).partition(|(_, until)| *until > now);
        waiting.connections = kept;
        old.extend::<VecDeque<_>>(expired);
        waiting.is_swept = !waiting.connections.is_empty();
        let goes_on = waiting.is_swept;
        drop(waiting);
        drop(old);
        goes_on
    }
}

/// Runs only while connections wait, so that an unused server costs nothing.
async fn sweep(pool: Weak<Pool>, every: Duration) {
    loop {
        tokio::time::sleep(every).await;
        let goes_on = pool.upgrade().is_some_and(|pool| pool.close_old(Instant::now()));
        if !goes_on {
            return;
        }
    }
}
