//! Children that several callers use: one of the modern era for everybody, one of the legacy era for each
//! principal, greeted with no client capabilities.
//!
//! Whoever wants a child that is being started waits for that one, and for no other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use toolwarden_core::{Weakness, name, weak};
use toolwarden_mcp::Era;
use toolwarden_mcp::upstream::child::Ending;
use toolwarden_sources::Share;

use super::{OLDER, StdioLink, Upstream};
use crate::ask::{SAYS_NOTHING, check_modern};
use crate::failure::Failure;

/// As much of a line of a server as is told of it.
const LONGEST_LINE: usize = 200;

/// Where a child is, or will be. Nothing is kept of an opening that failed.
type Place = Arc<OnceCell<Arc<StdioLink>>>;

/// All of them at one server.
#[derive(Debug, Default)]
pub(super) struct Shared(Mutex<HashMap<Key, Place>>);

/// Who may use the same child: the same era, and for legacy children the same principal.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    era: Era,
    principal: String,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Place>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place(&self, key: &Key) -> Place {
        let mut all = self.lock();
        // Children that ended go, and places of openings that failed, unless somebody waits there.
        all.retain(|_, place| place.get().map_or(Arc::strong_count(place) > 1, |link| link.is_alive()));
        all.entry(key.clone()).or_default().clone()
    }

    fn running(&self, key: &Key) -> Option<Arc<StdioLink>> {
        let all = self.lock();
        let link = all.get(key)?.get().filter(|link| link.is_alive())?;
        // While nobody looks for idle ones: it is not taken away from whoever gets it here.
        link.touch();
        Some(link.clone())
    }
}

impl Upstream {
    /// One child for everybody, unless `share = "principal"` keeps principals apart.
    pub(super) async fn modern_child(self: &Arc<Self>, principal: &str) -> Result<Arc<StdioLink>, Failure> {
        let principal = if self.share == Some(Share::Principal) { principal.to_owned() } else { String::new() };
        self.shared_child(Key { era: Era::Modern, principal }).await
    }

    /// A child with empty client capabilities, one for each principal.
    pub async fn legacy_shared(self: &Arc<Self>, principal: &str) -> Result<Arc<StdioLink>, Failure> {
        let is_shared = self.share == Some(Share::All);
        let principal = if is_shared || weak::is(Weakness::Owners) { String::new() } else { principal.to_owned() };
        self.shared_child(Key { era: Era::Legacy, principal }).await
    }

    async fn shared_child(self: &Arc<Self>, key: Key) -> Result<Arc<StdioLink>, Failure> {
        if let Some(link) = self.shared.running(&key) {
            return Ok(link);
        }
        // Beside whoever asked: others wait for it too, and it may take longer than one of them has.
        let (upstream, place) = (self.clone(), self.shared.place(&key));
        let opening = tokio::spawn(async move {
            let opened = place.get_or_try_init(|| upstream.open_shared(key.era)).await;
            opened.cloned()
        });
        opening.await.unwrap_or(Err(Failure::Died))
    }

    async fn open_shared(self: &Arc<Self>, era: Era) -> Result<Arc<StdioLink>, Failure> {
        // Whoever waited may have been told so meanwhile.
        if era == Era::Modern && self.known_modern() == Some(false) {
            return Err(Failure::OtherEra(OLDER));
        }
        let link = self.spawn(era).await?;
        let greeting = async {
            match era {
                Era::Legacy => link.greet("{}").await,
                Era::Modern => {
                    // Some older servers end when they are asked this: no reason to rest.
                    link.may_end(true);
                    let checked = check_modern(self, &link).await;
                    link.may_end(false);
                    checked
                }
            }
        };
        let greeted = tokio::time::timeout(self.open_time, greeting).await.unwrap_or(Err(Failure::Timeout));
        match &greeted {
            Ok(()) if era == Era::Modern => self.found_modern(true),
            Ok(()) => {}
            Err(Failure::OtherEra(SAYS_NOTHING)) => {
                self.seems_not_modern();
                link.end().await;
            }
            Err(Failure::OtherEra(_)) => {
                self.found_modern(false);
                link.end().await;
            }
            // It works, and does not want to be greeted like this.
            Err(Failure::Answered { .. }) => link.end().await,
            Err(Failure::Died) => {
                let ending = link.ending().await;
                let how = ending.as_ref().map(|ending| format!(" ({})", ending.exit)).unwrap_or_default();
                let why = format!("it ended while it was being started{how}; what it said is in the log");
                let failure = Failure::Unreachable(why);
                // Clients need not know where things are here, nor read what it said.
                match ending {
                    Some(ending) => self.fails_because(&failure, &told(&ending)),
                    None => self.fails(&failure),
                }
                return Err(failure);
            }
            Err(failure) => {
                link.end().await;
                self.fails(failure);
                self.ended(Duration::ZERO);
            }
        }
        greeted.map(|()| link)
    }

    /// Ends the children of principals who did not use them for so long and do not listen. The one of the
    /// modern era stays: it is everybody's.
    pub fn end_idle_children(&self, idle: Duration) {
        self.shared.lock().retain(|key, place| {
            let is_over =
                key.era == Era::Legacy && place.get().is_some_and(|link| !link.is_alive() || link.retire_if_idle(idle));
            !is_over
        });
    }

    /// Ends every conversation that is no session's own.
    pub async fn end(&self) {
        self.end_olders(false).await;
        // What is still being opened ends when nobody takes it.
        let places: Vec<Place> = self.shared.lock().drain().map(|(_, place)| place).collect();
        for link in places.iter().filter_map(|place| place.get()) {
            link.end().await;
        }
    }
}

/// How a server ended that was to be started, for whoever looks after it.
fn told(ending: &Ending) -> String {
    let place = match &ending.directory {
        Some(path) => name::shown(&path.to_string_lossy()).into_owned(),
        None => "the directory this gateway was started in".to_owned(),
    };
    let last = match &ending.last_line {
        Some(line) => {
            let end = line.floor_char_boundary(LONGEST_LINE);
            format!("; its last line on stderr: {}", line.get(..end).unwrap_or_default())
        }
        None => "; it wrote nothing to stderr".to_owned(),
    };
    format!("it was started in {place}{last}")
}
