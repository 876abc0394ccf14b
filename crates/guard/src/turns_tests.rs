//! Places are taken up to the limit, given back on every way out, and handed to callers in turns.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::{MOST_WAITING, MOST_WAITING_OF_ONE, Place, Turn, Turns, Waiter};

fn take(turns: &Arc<Turns>, who: &str) -> Turn {
    turns.take(|| who.to_owned())
}

fn wait(turns: &Arc<Turns>, who: &str) -> Waiter {
    match take(turns, who) {
        Turn::Later(waiter) => waiter,
        other => unreachable!("{other:?}"),
    }
}

fn now(turns: &Arc<Turns>, who: &str) -> Place {
    match take(turns, who) {
        Turn::Now(place) => place,
        other => unreachable!("{other:?}"),
    }
}

fn poll(waiter: &mut Waiter) -> Option<Place> {
    match std::pin::Pin::new(waiter).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(place) => Some(place),
        Poll::Pending => None,
    }
}

#[test]
fn as_many_as_the_limit_and_the_next_waits() {
    let turns = Arc::new(Turns::new(Some(2)));
    let (first, _second) = (now(&turns, "a"), now(&turns, "a"));
    let mut third = wait(&turns, "a");
    assert!(poll(&mut third).is_none());
    drop(first);
    let third = poll(&mut third);
    assert!(third.is_some());
    assert_eq!(turns.taken(), 2);
    drop((third, _second));
    assert_eq!(turns.taken(), 0);
}

/// One caller sends a hundred calls, another three: every second place that gets free is the other's.
#[test]
fn places_go_to_callers_in_turns() {
    let turns = Arc::new(Turns::new(Some(1)));
    let mut place = Some(now(&turns, "greedy"));
    let mut waiting: Vec<(&str, Waiter)> = (0..100).map(|_| ("greedy", wait(&turns, "greedy"))).collect();
    waiting.extend((0..3).map(|_| ("modest", wait(&turns, "modest"))));
    let mut served = Vec::new();
    while let Some(last) = place.take() {
        drop(last);
        let next = waiting.iter_mut().position(|(_, waiter)| {
            place = poll(waiter);
            place.is_some()
        });
        let Some(next) = next else { break };
        served.push(waiting.remove(next).0);
    }
    assert_eq!(served.len(), 103);
    assert_eq!(served.get(..7), Some(&["greedy", "modest", "greedy", "modest", "greedy", "modest", "greedy"][..]));
    assert_eq!((turns.taken(), turns.lock().callers.len()), (0, 0));
}

#[test]
fn nobody_overtakes_those_who_wait() {
    let turns = Arc::new(Turns::new(Some(1)));
    let first = now(&turns, "a");
    let mut second = wait(&turns, "b");
    drop(first);
    // It has its place, though it has not looked yet.
    let mut third = wait(&turns, "a");
    assert!(poll(&mut third).is_none());
    assert!(poll(&mut second).is_some());
    assert!(poll(&mut third).is_some());
}

#[test]
fn whoever_gives_up_leaves_nothing_behind() {
    let turns = Arc::new(Turns::new(Some(1)));
    let first = now(&turns, "a");
    let (second, third) = (wait(&turns, "a"), wait(&turns, "b"));
    drop(second);
    drop(first);
    // Given its place and dropped before it looked.
    drop(third);
    assert_eq!(turns.taken(), 0);
    assert!(turns.lock().callers.is_empty());
    drop(now(&turns, "c"));
}

#[test]
fn the_queue_is_bounded_for_one_and_for_all() {
    let turns = Arc::new(Turns::new(Some(1)));
    let _first = now(&turns, "a");
    let mut waiting: Vec<Waiter> = (0..MOST_WAITING_OF_ONE).map(|_| wait(&turns, "a")).collect();
    assert!(matches!(take(&turns, "a"), Turn::Never));
    for who in 0.. {
        match take(&turns, &format!("other {who}")) {
            Turn::Later(waiter) => waiting.push(waiter),
            Turn::Never => break,
            Turn::Now(_) => unreachable!("there is no place"),
        }
    }
    assert_eq!(waiting.len(), MOST_WAITING);
    drop(waiting);
    assert!(turns.lock().callers.is_empty());
}

#[test]
fn another_limit_counts_at_once() {
    let turns = Arc::new(Turns::new(Some(1)));
    let _first = now(&turns, "a");
    let mut second = wait(&turns, "a");
    turns.set_limit(Some(2));
    let second = poll(&mut second);
    assert!(second.is_some());
    turns.set_limit(Some(1));
    drop(second);
    let mut third = wait(&turns, "a");
    assert!(poll(&mut third).is_none());
    turns.set_limit(None);
    assert!(poll(&mut third).is_some());
    turns.set_limit(Some(0));
    assert!(matches!(take(&turns, "a"), Turn::Never), "there will never be a place");
}

/// Many threads take, wait, give up and give back: nothing is lost, and the limit holds at every moment.
#[test]
fn nothing_is_lost_between_threads() {
    let turns = Arc::new(Turns::new(Some(3)));
    std::thread::scope(|scope| {
        for worker in 0..4_u32 {
            let turns = &turns;
            scope.spawn(move || {
                for round in 0..20_000_u32 {
                    match take(turns, &worker.to_string()) {
                        Turn::Now(place) => {
                            assert!(turns.taken() <= 3);
                            drop(place);
                        }
                        Turn::Later(mut waiter) if round % 3 > 0 => loop {
                            if let Some(place) = poll(&mut waiter) {
                                drop(place);
                                break;
                            }
                            std::thread::yield_now();
                        },
                        Turn::Later(waiter) => drop(waiter),
                        Turn::Never => {}
                    }
                }
            });
        }
    });
    assert_eq!(turns.taken(), 0);
    assert!(turns.lock().callers.is_empty());
}
