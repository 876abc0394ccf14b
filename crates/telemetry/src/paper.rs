//! A log on paper, at noon: for tests that read what was logged.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use toolwarden_core::Clock;

use crate::{LogFormat, LogLines};

#[derive(Debug)]
struct Noon;

impl Clock for Noon {
    fn now(&self) -> Timestamp {
        Timestamp::constant(1_800_000_000, 0)
    }
}

/// Keeps what is logged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Paper {
    /// Logs onto it until the guard is dropped.
    pub(crate) fn take_log(&self, format: LogFormat) -> tracing::subscriber::DefaultGuard {
        let to = self.clone();
        let lines = LogLines::new(format, Arc::new(Noon));
        let subscriber = tracing_subscriber::fmt().event_format(lines).with_writer(move || to.clone()).finish();
        tracing::subscriber::set_default(subscriber)
    }

    pub(crate) fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}
