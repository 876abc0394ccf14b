//! Reads the policy again when a file changes that counts, or would if it were there: what a person takes back by hand
//! must not go on acting.
//!
//! `look` is called at an interval. `catch_up` is called before a message of a pipe is handled: no other process tells
//! this one of its changes, and they count for the next call (ALLOW-12).

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::Mutex;

use super::control::Reload;
use super::taking::{Came, Look, Taking, looks};

/// The files a policy was read from, as they looked then.
pub struct FileWatch<R> {
    taking: Arc<Taking<R>>,
    /// Records of the data directory, and the person's own permissions.
    records: Vec<PathBuf>,
    seen: Mutex<Seen>,
}

struct Seen {
    files: Vec<PathBuf>,
    looks: Vec<Look>,
    /// Why the last reading could not be used, and the store's version it was of.
    refused: Option<(String, u64)>,
}

impl<R: Reload> FileWatch<R> {
    /// Watches the records and the files of the start, which looked like this when they were read.
    pub fn new(taking: Arc<Taking<R>>, records: Vec<PathBuf>, files: &[PathBuf], at_start: &[Look]) -> Self {
        let looks = [looks(&records), at_start.to_vec()].concat();
        let files = [records.clone(), files.to_vec()].concat();
        Self { taking, records, seen: Mutex::new(Seen { files, looks, refused: None }) }
    }

    /// Reads the policy again where a file is another. One that could not be used is tried again at every look, also
    /// where what is missing lies elsewhere; the reason is said once.
    pub async fn look(&self) {
        let mut seen = self.seen.lock().await;
        let found = looks(&seen.files);
        if found == seen.looks {
            return;
        }
        match self.taking.take_over(Came::ByFile).await {
            Ok(sources) => {
                let counting = [self.records.clone(), sources].concat();
                // As they were before they were read, so that a change meanwhile is seen. Of files that count anew
                // that is not known: they are read once more.
                let looks = if counting == seen.files { found } else { Vec::new() };
                *seen = Seen { files: counting, looks, refused: None };
            }
            Err(error) => {
                let error = format!("{error:#}");
                if seen.refused.as_ref().is_none_or(|(known, _)| *known != error) {
                    super::control::tell_refusal(&error);
                }
                (seen.looks, seen.refused) = (Vec::new(), Some((error, self.taking.store_version())));
            }
        }
    }

    /// What changed in the store or in files counts from now on. A policy that was refused is left to the next look:
    /// it must not be read again for every message.
    pub async fn catch_up(&self) {
        let version = self.taking.caught_up().await;
        let refused = self.seen.lock().await.refused.as_ref().map(|(_, version)| *version);
        if refused.is_some_and(|refused| refused >= version) {
            return;
        }
        if let Err(error) = self.taking.follow(version).await {
            self.seen.lock().await.refused = Some((format!("{error:#}"), version));
        }
        self.look().await;
    }
}
