//! Turns of large checks.

use std::future::{Future, pending, ready};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::{AT_ONCE, CheckTurn, LargeChecks};
use crate::limits::Over;

type Waits<'a> = Pin<Box<dyn Future<Output = Result<CheckTurn, Over>> + 'a>>;

fn poll(turn: &mut Waits<'_>) -> Option<Result<CheckTurn, Over>> {
    match turn.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(turn) => Some(turn),
        Poll::Pending => None,
    }
}

#[test]
fn work_1_large_calls_are_checked_a_few_at_a_time_and_callers_take_turns() {
    let checks = LargeChecks::default();
    let turn = |who: &'static str| -> Waits<'_> { Box::pin(checks.turn(move || who.to_owned(), pending())) };
    let mut running: Vec<CheckTurn> = (0..AT_ONCE).filter_map(|_| poll(&mut turn("many"))?.ok()).collect();
    assert_eq!((running.len() as u64, checks.running()), (AT_ONCE, AT_ONCE));
    let mut many: Vec<Waits<'_>> = (0..40).map(|_| turn("many")).collect();
    assert!(many.iter_mut().all(|turn| poll(turn).is_none()), "they wait");
    let mut one = turn("one");
    assert!(poll(&mut one).is_none(), "so does another");
    // One of the many was there first; then it is the other's turn, however many stand before it.
    running.pop();
    let first = many.first_mut().and_then(poll);
    assert!(first.as_ref().is_some_and(Result::is_ok) && poll(&mut one).is_none());
    drop(first);
    assert!(poll(&mut one).is_some_and(|turn| turn.is_ok()) && checks.running() <= AT_ONCE);
    // Whoever has no patience is told so.
    let mut late: Waits<'_> = Box::pin(checks.turn(|| "late".to_owned(), ready(())));
    assert!(poll(&mut late).is_none_or(|turn| turn.is_err_and(|over| over.retry_after == 1)));
    drop((running, many, one, late));
    assert_eq!(checks.running(), 0);
}
