//! So many calls in any minute, and no more; and whoever is refused is told when to come back.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::Rate;

#[test]
fn a_minute_holds_its_limit_and_no_more() {
    let rate = Rate::default();
    for second in [0, 0, 30] {
        assert!(rate.count(3, second).is_ok());
    }
    assert_eq!(rate.count(3, 30), Err(31), "the two of the first second leave the window at 61");
    assert_eq!(rate.count(3, 60), Err(1));
    assert!(rate.count(3, 61).is_ok());
    assert!(rate.count(3, 61).is_ok());
    assert_eq!(rate.count(3, 61), Err(30));
}

#[test]
fn what_was_not_made_does_not_count() {
    let rate = Rate::default();
    let first = rate.count(1, 5);
    assert_eq!(rate.count(1, 6), Err(60));
    assert!(first.map(|first| rate.give_back(first)).is_ok());
    assert!(rate.count(1, 6).is_ok());
    assert!(first.map(|first| rate.give_back(first)).is_ok(), "given back twice it takes nothing from others");
    assert_eq!(rate.count(1, 6), Err(61));
}

#[test]
fn a_limit_of_nothing_is_never_met() {
    assert_eq!(Rate::default().count(0, 9), Err(60));
}

proptest! {
    /// Against every call that was made, one by one.
    #[test]
    fn any_sixty_seconds_hold_the_limit_and_the_wait_is_true(limit in 1_u64..6, steps in prop::collection::vec(0_u64..40, 1..80)) {
        let rate = Rate::default();
        let (mut made, mut now) = (VecDeque::new(), 0);
        for step in steps {
            now += step;
            made.retain(|second| second + 60 >= now);
            match rate.count(limit, now) {
                Ok(_) => made.push_back(now),
                Err(wait) => {
                    prop_assert_eq!(made.len() as u64, limit);
                    let first = made.front().copied().unwrap_or_default();
                    prop_assert_eq!(first + 61 - now, wait);
                }
            }
            prop_assert!(made.len() as u64 <= limit);
        }
    }
}
