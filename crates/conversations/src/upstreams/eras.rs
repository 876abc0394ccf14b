//! Which eras a server speaks: found out by asking once, remembered as long as that is safe.
//!
//! A server that once spoke the modern revision is taken at its word until it fails. One that did not
//! is asked again after a day: it may have been replaced, and nothing else would ever tell.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use toolwarden_mcp::upstream::event_pipe::{EventPipeLimits, is_event_pipe};

use super::{HttpLink, Link, Reach, Upstream};
use crate::ask;
use crate::failure::Failure;

/// How long a server counts as not speaking an era, if it said so, and if it only said nothing: a slow
/// start looks the same.
const VERDICT: Duration = Duration::from_secs(24 * 60 * 60);
const DOUBTFUL: Duration = Duration::from_secs(2 * 60);
/// For whom a server is asked which eras it speaks.
const NOBODY: &str = "";

/// What is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Eras {
    modern: Known,
    legacy: Known,
    /// Its legacy form is the oldest HTTP transport: one stream, and an address to post to.
    by_events: bool,
}

impl Eras {
    pub(super) fn of(by_events: bool) -> Self {
        Self { by_events, ..Self::default() }
    }
}

#[derive(Debug, Clone, Copy, Default)]
enum Known {
    #[default]
    Nothing,
    Yes,
    NotUntil(Instant),
}

impl Known {
    fn verdict(self) -> Option<bool> {
        match self {
            Self::Nothing => None,
            Self::Yes => Some(true),
            Self::NotUntil(time) => (Instant::now() < time).then_some(false),
        }
    }

    fn found(speaks: bool) -> Self {
        if speaks { Self::Yes } else { Self::NotUntil(Instant::now() + VERDICT) }
    }
}

impl Upstream {
    pub fn known_modern(&self) -> Option<bool> {
        self.health().eras.modern.verdict()
    }

    pub(super) fn found_modern(&self, speaks: bool) {
        self.health().eras.modern = Known::found(speaks);
    }

    /// It said nothing, or ended: most likely an older one.
    pub(super) fn seems_not_modern(&self) {
        self.health().eras.modern = Known::NotUntil(Instant::now() + DOUBTFUL);
    }

    /// What is known of the modern era is asked again.
    pub fn doubt_modern(&self) {
        self.health().eras.modern = Known::Nothing;
    }

    pub fn known_legacy(&self) -> Option<bool> {
        self.health().eras.legacy.verdict()
    }

    pub fn found_legacy(&self, speaks: bool) {
        self.health().eras.legacy = Known::found(speaks);
    }

    /// It answered as no server of its era or transport would: the next request finds out anew.
    pub fn doubt(&self) {
        tracing::info!(server = %self.name, "the server answered as one of another era or transport: it is asked again");
        self.health().eras = Eras::of(self.says_sse);
    }

    /// Whether its legacy form is the oldest HTTP transport.
    pub fn is_by_events(&self) -> bool {
        self.health().eras.by_events
    }

    /// Whether legacy conversations with it are lines on which everything travels.
    pub(super) fn has_lines(&self) -> bool {
        matches!(self.reach(), Reach::Command(_)) || self.is_by_events()
    }

    /// A server refused to be greeted with these words: whether it speaks the oldest HTTP transport. Asked
    /// only after that, for a stream that is opened may stay open.
    pub async fn turns_out_by_events(&self, refused: &Failure) -> bool {
        let (Failure::Wordless { status } | Failure::Answered { status, .. }) = refused else { return false };
        let Reach::Http(http) = self.reach() else { return false };
        if !matches!(status, 400 | 404 | 405 | 406 | 415) {
            return false;
        }
        let Ok(reply) = http.get_stream(http::HeaderMap::new()).await else { return false };
        let speaks = is_event_pipe(reply, EventPipeLimits::DEFAULT.endpoint).await;
        if speaks {
            self.health().eras.by_events = true;
        }
        speaks
    }

    /// Whether the server speaks the modern revision; asks it where nobody knows.
    pub async fn speaks_modern(self: &Arc<Self>) -> Result<bool, Failure> {
        if self.says_sse {
            return Ok(false);
        }
        if let Some(verdict) = self.known_modern() {
            return Ok(verdict);
        }
        match self.reach() {
            Reach::Nothing(why) => Err(Failure::Unreachable(why.clone())),
            Reach::Command(_) => match self.modern_child(NOBODY).await {
                Ok(_) => Ok(true),
                Err(Failure::OtherEra(_)) => Ok(false),
                Err(failure) => Err(failure),
            },
            Reach::Http(http) => {
                // Held while asking: whoever comes meanwhile waits for the same answer.
                let _asking = self.probing.lock().await;
                if let Some(verdict) = self.known_modern() {
                    return Ok(verdict);
                }
                let link = Link::Http(Arc::new(HttpLink::modern(self, http)));
                let asking = ask::probe(self, &link);
                let speaks = tokio::time::timeout(self.open_time, asking).await.unwrap_or(Err(Failure::Timeout));
                let speaks = speaks.inspect_err(|failure| self.fails(failure))?;
                self.found_modern(speaks);
                Ok(speaks)
            }
        }
    }
}
