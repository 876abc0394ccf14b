//! A waker that stays quiet while its task is already at work.
//!
//! The two halves of a connection wake each other while one task polls both. Passed on, each such wake would
//! schedule the task once more and rouse another thread; here it only makes the task look again.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::task::AtomicWaker;

const RESTING: u8 = 0;
const POLLING: u8 = 1;
const WOKEN_WHILE_POLLING: u8 = 2;
/// After so many looks others get their turn.
const LOOKS: usize = 16;

#[derive(Debug)]
pub(super) struct Gate {
    shared: Arc<Shared>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Shared {
    state: AtomicU8,
    task: AtomicWaker,
}

impl Gate {
    pub(super) fn new() -> Self {
        let shared = Arc::new(Shared::default());
        Self { waker: Waker::from(shared.clone()), shared }
    }

    /// Polls until it is ready, or pending with nothing that woke it meanwhile.
    pub(super) fn poll<T>(&self, cx: &mut Context<'_>, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let state = &self.shared.state;
        self.shared.task.register(cx.waker());
        let mut inner = Context::from_waker(&self.waker);
        for _ in 0..LOOKS {
            state.store(POLLING, Ordering::SeqCst);
            let polled = poll(&mut inner);
            if polled.is_ready() {
                // Whatever woke it meanwhile is found again by the poll that comes next.
                state.store(RESTING, Ordering::SeqCst);
                return polled;
            }
            if state.compare_exchange(POLLING, RESTING, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
                return Poll::Pending;
            }
        }
        state.store(RESTING, Ordering::SeqCst);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let held = self.state.compare_exchange(POLLING, WOKEN_WHILE_POLLING, Ordering::SeqCst, Ordering::SeqCst);
        if held == Err(RESTING) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
