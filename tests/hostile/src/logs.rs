//! What the gateway logs in this process, kept as text.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

static WRITTEN: Mutex<String> = Mutex::new(String::new());

fn written() -> MutexGuard<'static, String> {
    WRITTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what is logged from here on; what was kept before is forgotten.
pub fn listen() {
    // The second of several tests of one process finds the listener there.
    let _ = tracing::subscriber::set_global_default(Listener);
    written().clear();
}

/// Everything logged since.
#[must_use]
pub fn said() -> String {
    written().clone()
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Words);
        written().push('\n');
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Words;

impl Visit for Words {
    fn record_str(&mut self, _: &Field, value: &str) {
        written().push_str(value);
        written().push(' ');
    }

    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        let value = format!("{value:?} ");
        written().push_str(&value);
    }
}
