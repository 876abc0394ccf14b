//! Asked once at a time and once for a while; failures, old ones and too many are not kept.

use std::sync::atomic::{AtomicUsize, Ordering};

use jiff::Timestamp;
use toolwarden_core::{Digest, MachineVerdict, Opinion};

use super::{Asked, Cache, Found, MOST};
use crate::Failure;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_481_600 + second).unwrap_or_default()
}

fn found(failure: Option<Failure>) -> Found {
    let opinion = Opinion {
        id: "classifier:x".to_owned(),
        verdict: failure.is_none().then_some(MachineVerdict::Hold),
        words: String::new(),
        model: "m".to_owned(),
        prompt_version: 1,
        at: at(0),
        question: String::new(),
        is_shadow: false,
    };
    (opinion, failure)
}

fn key(number: usize) -> Digest {
    Digest::of_bytes(&number.to_be_bytes())
}

async fn ask(cache: &Cache, number: usize, second: i64) -> Asked {
    cache.found(key(number), at(second), async || found(None)).await.1
}

#[tokio::test]
async fn review_2_the_same_question_is_asked_once_for_a_while() {
    let cache = Cache::default();
    assert_eq!(ask(&cache, 1, 0).await, Asked::Now);
    assert_eq!(ask(&cache, 1, 599).await, Asked::Before);
    assert_eq!(ask(&cache, 2, 0).await, Asked::Now);
    assert_eq!(ask(&cache, 1, 600).await, Asked::Now, "it is too old");
    assert_eq!(ask(&cache, 1, 599).await, Asked::Now, "it is from the future");
}

#[tokio::test]
async fn review_2_failures_are_not_kept_and_whoever_waited_shares_them() {
    let cache = Cache::default();
    let asked = AtomicUsize::new(0);
    let failing = async || {
        asked.fetch_add(1, Ordering::Relaxed);
        tokio::task::yield_now().await;
        found(Some(Failure::Late))
    };
    let (first, second) =
        tokio::join!(cache.found(key(1), at(0), failing), cache.found(key(1), at(0), async || found(None)));
    assert_eq!((first.0.1, first.1), (Some(Failure::Late), Asked::Now));
    assert_eq!((second.0.1, second.1), (Some(Failure::Late), Asked::Before));
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(ask(&cache, 1, 0).await, Asked::Now);
}

#[tokio::test]
async fn whoever_gives_up_leaves_the_question_to_the_next() {
    let cache = Cache::default();
    let never = cache.found(key(1), at(0), async || std::future::pending().await);
    assert!(tokio::time::timeout(std::time::Duration::from_millis(5), never).await.is_err());
    assert_eq!(ask(&cache, 1, 0).await, Asked::Now);
}

#[tokio::test]
async fn no_more_are_kept_than_there_is_room_for() {
    let cache = Cache::default();
    for number in 0..=MOST {
        let second = i64::try_from(number / 10).unwrap_or_default();
        assert_eq!(ask(&cache, number, second).await, Asked::Now);
    }
    assert!(cache.lock().len() <= MOST);
    let last = i64::try_from(MOST / 10).unwrap_or_default();
    assert_eq!(ask(&cache, MOST, last).await, Asked::Before, "the oldest goes first");
}
