//! Questions in any hour, money on one day, and nothing spent twice.

use jiff::Timestamp;

use super::{Budget, DAY};
use crate::Failure;
use crate::answer::Usage;
use crate::settings::Money;

/// One unit for a million tokens in, two for as many out.
const MONEY: Money = Money { per_day: 10_000, input: 1_000_000_000, output: 2_000_000_000 };
const NOON: i64 = 1_700_481_600;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(NOON + second).unwrap_or_default()
}

fn tokens(input: u64, output: u64) -> Usage {
    Usage { input, output }
}

#[test]
fn review_2_questions_are_counted_in_any_hour() {
    let budget = Budget::new(2, None);
    let ask = |second| budget.reserve(tokens(1, 1), at(second)).map(drop);
    assert_eq!((ask(0), ask(1800)), (Ok(()), Ok(())));
    assert_eq!(ask(3599), Err(Failure::OverBudget), "whatever the clock on the wall says");
    assert_eq!(ask(3600), Ok(()), "the first one is an hour ago");
    assert_eq!(ask(3601), Err(Failure::OverBudget));
    assert_eq!(ask(-7200), Err(Failure::OverBudget), "a clock that goes back gives nothing back");
    assert_eq!(Budget::new(0, None).reserve(tokens(1, 1), at(0)).map(drop), Err(Failure::OverBudget));
}

#[test]
fn review_2_money_is_set_aside_before_a_question_is_asked() {
    let budget = Budget::new(100, Some(MONEY));
    // 2 * 1000 + 2 * 2 * 1000 of 10000.
    let first = budget.reserve(tokens(2, 1), at(0));
    let second = budget.reserve(tokens(2, 1), at(0));
    assert!(first.is_ok() && second.is_ok());
    assert_eq!(budget.reserve(tokens(2, 1), at(0)).map(drop), Err(Failure::OverCost), "both may cost that much");
    let Ok(first) = first else { unreachable!("asserted") };
    budget.settle(&first, Some(tokens(1, 0)), at(1));
    let third = budget.reserve(tokens(2, 1), at(1));
    assert!(third.is_ok(), "the first one was cheaper");
    assert_eq!(budget.reserve(tokens(2, 0), at(1)).map(drop), Err(Failure::OverCost));
    let Ok(second) = second else { unreachable!("asserted") };
    budget.settle(&second, None, at(2));
    assert_eq!(budget.reserve(tokens(2, 0), at(2)).map(drop), Err(Failure::OverCost), "what nobody says stays spent");
}

#[test]
fn review_2_what_costs_more_than_was_thought_is_counted_and_the_next_day_begins_anew() {
    let budget = Budget::new(100, Some(MONEY));
    let Ok(reserved) = budget.reserve(tokens(1, 0), at(0)) else { unreachable!("there is money") };
    budget.settle(&reserved, Some(tokens(9, 1)), at(0));
    assert_eq!(budget.reserve(tokens(1, 0), at(1)).map(drop), Err(Failure::OverCost));
    let next = DAY / 2;
    let Ok(kept) = budget.reserve(tokens(1, 0), at(next)) else { unreachable!("another day") };
    // What was set aside on the day before is no money of this one.
    budget.settle(&reserved, Some(tokens(0, 0)), at(next));
    assert!(budget.reserve(tokens(9, 0), at(next)).is_ok());
    assert_eq!(budget.reserve(tokens(1, 0), at(next)).map(drop), Err(Failure::OverCost));
    budget.settle(&kept, Some(tokens(u64::MAX, u64::MAX)), at(next));
    assert_eq!(budget.reserve(tokens(0, 1), at(0)).map(drop), Err(Failure::OverCost), "a clock that goes back");
}
