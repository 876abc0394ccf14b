//! Lists that were filtered a moment ago: a client that asks again gets the same bytes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use toolwarden_core::Caller;
use toolwarden_core::json::Part;
use toolwarden_policy::PolicySet;

/// How long a filtered list may be used again: time windows of modes and rules move.
const FRESH: Duration = Duration::from_secs(1);

/// The last list of a server, filtered for one caller under one policy.
#[derive(Debug, Default)]
pub struct ListMemo(Mutex<Vec<Remembered>>);

#[derive(Debug)]
struct Remembered {
    method: Arc<str>,
    raw: Part,
    policy: Arc<PolicySet>,
    caller: Arc<Caller>,
    standing: u64,
    filtered: Arc<str>,
    made: Instant,
}

/// Which list, and who asked for it.
#[derive(Debug, Clone, Copy)]
pub struct ListOf<'a> {
    pub method: &'a Arc<str>,
    pub caller: &'a Arc<Caller>,
    /// Of what is known of definitions: counts up when one stands otherwise than before.
    pub standing: u64,
}

const MOST_REMEMBERED: usize = 32;

impl ListMemo {
    pub fn find(&self, of: ListOf<'_>, policy: &Arc<PolicySet>, is_same: impl Fn(&Part) -> bool) -> Option<Arc<str>> {
        let memo = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = memo.iter().find(|known| {
            known.method == *of.method
                && Arc::ptr_eq(&known.policy, policy)
                && *known.caller == **of.caller
                && known.standing == of.standing
                && known.made.elapsed() < FRESH
                && is_same(&known.raw)
        });
        known.map(|known| known.filtered.clone())
    }

    pub fn keep(&self, of: ListOf<'_>, result: &Part, policy: Arc<PolicySet>, filtered: Arc<str>) {
        let mut memo = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memo.retain(|known| known.made.elapsed() < FRESH);
        if memo.len() >= MOST_REMEMBERED {
            memo.clear();
        }
        let (method, raw) = (of.method.clone(), result.clone());
        let (caller, standing) = (of.caller.clone(), of.standing);
        memo.push(Remembered { method, raw, policy, caller, standing, filtered, made: Instant::now() });
    }
}
