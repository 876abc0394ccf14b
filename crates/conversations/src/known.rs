//! What a server listed last, for a while: a server that is down does not take its tools from everybody at
//! once. And whose a web address is, which carries no server in its name.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolwarden_core::json::Part;

/// How long a list is shown after its server stopped answering.
const LIFE: Duration = Duration::from_secs(10 * 60);
/// Lists of one server that are remembered: of so many callers and kinds, and so large together.
const MOST: usize = 256;
const MOST_BYTES: usize = 16 * 1024 * 1024;
const MOST_ADDRESSES: usize = 10_000;

/// The last lists of one server. Each was given to one principal, and is shown to no other.
#[derive(Debug, Default)]
pub struct KnownLists {
    lists: Mutex<HashMap<(String, String), Known>>,
    addresses: Mutex<Addresses>,
}

#[derive(Debug)]
struct Known {
    since: Instant,
    pages: Vec<Part>,
}

#[derive(Debug, Default)]
struct Addresses {
    exact: HashSet<String>,
    /// What templates begin with.
    beginnings: HashSet<String>,
}

fn names_host(beginning: &str) -> bool {
    beginning.split_once("://").and_then(|(_, rest)| rest.find('/')).is_some_and(|host| host > 0)
}

fn size(pages: &[Part]) -> usize {
    pages.iter().map(|page| page.raw().len()).sum()
}

impl KnownLists {
    fn lists(&self) -> MutexGuard<'_, HashMap<(String, String), Known>> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn addresses(&self) -> MutexGuard<'_, Addresses> {
        self.addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn keep(&self, method: &str, principal: &str, pages: &[Part]) {
        let mut lists = self.lists();
        lists.retain(|_, known| known.since.elapsed() < LIFE);
        let others: usize = lists.values().map(|known| size(&known.pages)).sum();
        if lists.len() < MOST && others + size(pages) <= MOST_BYTES {
            let known = Known { since: Instant::now(), pages: pages.to_vec() };
            lists.insert((method.to_owned(), principal.to_owned()), known);
        }
    }

    pub fn last(&self, method: &str, principal: &str) -> Option<Vec<Part>> {
        let lists = self.lists();
        let known = lists.get(&(method.to_owned(), principal.to_owned()))?;
        (known.since.elapsed() < LIFE).then(|| known.pages.clone())
    }

    /// Remembers a web address, or the beginning of a template of them.
    pub fn lists_address(&self, address: &str) {
        let mut addresses = self.addresses();
        if addresses.exact.len() + addresses.beginnings.len() >= MOST_ADDRESSES {
            return;
        }
        match address.split_once('{') {
            None => drop(addresses.exact.insert(address.to_owned())),
            // A template must name its host: none may speak for the whole web.
            Some((beginning, _)) if names_host(beginning) => drop(addresses.beginnings.insert(beginning.to_owned())),
            Some(_) => {}
        }
    }

    /// Whether it listed this very address.
    pub fn has_address(&self, address: &str) -> bool {
        self.addresses().exact.contains(address)
    }

    /// Whether a template it listed may stand for this address.
    pub fn may_have_address(&self, address: &str) -> bool {
        self.addresses().beginnings.iter().any(|beginning| address.starts_with(beginning))
    }
}
