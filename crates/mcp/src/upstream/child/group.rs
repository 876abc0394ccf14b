//! The process group of a child, so that what the child started ends with it.

use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;
use toolwarden_core::{Weakness, weak};

/// A group that may be signalled until it is given up.
#[derive(Debug)]
pub(super) struct Group(Mutex<Option<Pid>>);

impl Group {
    /// The child was started as the leader of its own group, so its number is the group's.
    pub(super) fn of(child: &Child) -> Self {
        let number = child.id().and_then(|id| i32::try_from(id).ok());
        Self(Mutex::new(number.and_then(Pid::from_raw)))
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Kills what is left after the leader ended, and forgets the number: the system may give it to others later.
    pub(super) fn kill_rest(&self) {
        self.kill();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn signal(&self, signal: Signal) {
        let group = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pid) = group.filter(|_| !weak::is(Weakness::Children)) {
            // The only failure is that nobody is left to signal.
            let _ = kill_process_group(pid, signal);
        }
    }
}
