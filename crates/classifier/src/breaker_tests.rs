//! Open after failures in a row, one try after a while, and closed or open again by what it finds.

use jiff::Timestamp;

use super::{Breaker, FAILURES};
use crate::Failure;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_481_600 + second).unwrap_or_default()
}

fn fails(breaker: &Breaker, times: u32, second: i64) {
    for _ in 0..times {
        if let Ok(pass) = breaker.enter(at(second)) {
            pass.failed(at(second));
        }
    }
}

#[test]
fn review_2_failures_in_a_row_open_it_and_an_answer_between_them_does_not() {
    let breaker = Breaker::default();
    fails(&breaker, FAILURES - 1, 0);
    if let Ok(pass) = breaker.enter(at(0)) {
        pass.answered();
    }
    fails(&breaker, FAILURES - 1, 0);
    assert!(breaker.enter(at(0)).is_ok());
    fails(&breaker, 1, 0);
    assert_eq!(breaker.enter(at(59)).map(drop).err(), Some(Failure::BreakerOpen));
}

#[test]
fn review_2_after_a_while_one_question_tries() {
    let breaker = Breaker::default();
    fails(&breaker, FAILURES, 0);
    let trying = breaker.enter(at(60));
    assert!(trying.is_ok());
    assert_eq!(breaker.enter(at(61)).map(drop).err(), Some(Failure::BreakerOpen), "one tries, and no other");
    drop(trying);
    let trying = breaker.enter(at(62));
    assert!(trying.is_ok(), "whoever gave up found nothing out");
    if let Ok(pass) = trying {
        pass.failed(at(62));
    }
    assert_eq!(breaker.enter(at(121)).map(drop).err(), Some(Failure::BreakerOpen), "it is as ill as before");
    if let Ok(pass) = breaker.enter(at(122)) {
        pass.answered();
    }
    assert!(breaker.enter(at(122)).is_ok() && breaker.enter(at(122)).is_ok());
    fails(&breaker, FAILURES - 1, 123);
    assert!(breaker.enter(at(123)).is_ok(), "and it begins to count anew");
}
