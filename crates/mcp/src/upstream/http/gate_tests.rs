//! Wakes from inside are held back, wakes from outside are not, and none is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::Gate;

#[derive(Default)]
struct Counter(AtomicUsize);

impl Wake for Counter {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn wakes_from_inside_look_again_and_wakes_from_outside_pass() {
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(counter.clone());
    let mut cx = Context::from_waker(&waker);
    let gate = Gate::new();
    let (mut looks, mut kept) = (0, None);
    let polled: Poll<()> = gate.poll(&mut cx, |cx| {
        looks += 1;
        if looks < 4 {
            cx.waker().wake_by_ref();
        }
        kept = Some(cx.waker().clone());
        Poll::Pending
    });
    assert!(polled.is_pending());
    assert_eq!((looks, counter.0.load(Ordering::SeqCst)), (4, 0));
    kept.iter().for_each(Waker::wake_by_ref);
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
}

#[test]
fn a_poll_that_wakes_itself_for_ever_lets_others_run() {
    let counter = Arc::new(Counter::default());
    let waker = Waker::from(counter.clone());
    let polled: Poll<()> = Gate::new().poll(&mut Context::from_waker(&waker), |cx| {
        cx.waker().wake_by_ref();
        Poll::Pending
    });
    assert!(polled.is_pending());
    assert_eq!(counter.0.load(Ordering::SeqCst), 1);
}
