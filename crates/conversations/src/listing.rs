//! A whole list of a server, gathered page by page: all of it within one measure of pages, bytes and time.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use toolwarden_core::json::Part;
use toolwarden_core::{Caller, weak};

use crate::failure::Failure;

pub const MOST_PAGES: usize = 100;
/// Of all pages together: as much as one answer may be that is gathered whole.
const LARGEST: usize = 16 * 1024 * 1024;
/// For all pages together, however long the server may be silent.
pub const LONGEST: Duration = Duration::from_secs(60);

/// The pages that are there so far.
#[derive(Debug, Default)]
pub struct Pages {
    given: Vec<Part>,
    size: usize,
}

impl Pages {
    /// Adds a page; gives the cursor of the next one, raw, where there is one.
    pub fn add(&mut self, page: Part) -> Result<Option<String>, Failure> {
        self.size += page.document().text().len();
        if self.size > weak::limit(LARGEST) {
            return Err(Failure::TooLarge);
        }
        let next = page.value().get("nextCursor").map(|next| next.raw().to_owned());
        self.given.push(page);
        Ok(next)
    }

    pub fn count(&self) -> usize {
        self.given.len()
    }

    pub fn into_parts(self) -> Vec<Part> {
        self.given
    }
}

/// How it ended when a server was last asked for a whole list on a caller's behalf.
#[derive(Debug, Clone)]
pub struct LastListing {
    pub ended: Instant,
    failed: Option<(&'static str, Arc<Caller>, Failure)>,
}

impl LastListing {
    pub fn new(method: &'static str, caller: &Arc<Caller>, outcome: &Result<(), Failure>) -> Self {
        let failed = outcome.as_ref().err().map(|failure| (method, caller.clone(), failure.clone()));
        Self { ended: Instant::now(), failed }
    }

    /// The failure that somebody shares who waited for the same list since `began`. That a server is slow, or
    /// lists too much, says as much to everybody; what else went wrong may be its asker's own.
    pub fn shared(&self, method: &str, caller: &Caller, began: Instant) -> Option<Failure> {
        let (failed, by, failure) = self.failed.as_ref().filter(|_| self.ended >= began)?;
        let is_everybodys = **by == *caller || matches!(failure, Failure::Timeout | Failure::TooLarge);
        (*failed == method && is_everybodys).then(|| failure.clone())
    }
}
