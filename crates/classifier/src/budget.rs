//! What may be asked and spent: so many questions in any hour, so much money on one day.
//!
//! Money is reserved before a question is asked, at the most it can cost, so that questions at the same time cannot spend it
//! twice; what is not known to have been cheaper stays spent. This is one process's count: others are asked by `ledger.rs`.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::Failure;
use crate::answer::Usage;
use crate::settings::Money;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: i64 = 24 * 60 * 60;
const MILLION: u128 = 1_000_000;

#[derive(Debug)]
pub(crate) struct Budget {
    per_hour: u64,
    money: Option<Money>,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    asked: VecDeque<Timestamp>,
    day: i64,
    money: u128,
}

/// Money that is set aside for one question.
#[derive(Debug)]
pub(crate) struct Reserved {
    day: i64,
    money: u128,
}

impl Reserved {
    pub(crate) fn money(&self) -> u64 {
        u64::try_from(self.money).unwrap_or(u64::MAX)
    }
}

impl Budget {
    pub(crate) fn new(per_hour: u64, money: Option<Money>) -> Self {
        Self { per_hour, money, spent: Mutex::default() }
    }

    /// Counts a question of at most these tokens, unless that would be too much.
    pub(crate) fn reserve(&self, most: Usage, now: Timestamp) -> Result<Reserved, Failure> {
        let mut spent = self.lock();
        let since = now.checked_sub(HOUR).unwrap_or(Timestamp::MIN);
        while spent.asked.front().is_some_and(|asked| *asked <= since) {
            spent.asked.pop_front();
        }
        if spent.asked.len() as u64 >= self.per_hour {
            return Err(Failure::OverBudget);
        }
        spent.turn_to(now);
        let money = self.money.map_or(0, |money| cost(money, most));
        if self.money.is_some_and(|own| spent.money.saturating_add(money) > u128::from(own.per_day)) {
            return Err(Failure::OverCost);
        }
        spent.money = spent.money.saturating_add(money);
        spent.asked.push_back(now);
        Ok(Reserved { day: spent.day, money })
    }

    /// A question cost this much; where nobody says, as much as was set aside.
    pub(crate) fn settle(&self, reserved: &Reserved, usage: Option<Usage>, now: Timestamp) {
        let (Some(money), Some(usage)) = (self.money, usage) else { return };
        let mut spent = self.lock();
        spent.turn_to(now);
        // What was set aside yesterday is yesterday's.
        if spent.day == reserved.day {
            spent.money = spent.money.saturating_sub(reserved.money).saturating_add(cost(money, usage));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spent {
    /// A clock that goes back gives nothing back.
    fn turn_to(&mut self, now: Timestamp) {
        let today = now.as_second().div_euclid(DAY);
        if today > self.day {
            (self.day, self.money) = (today, 0);
        }
    }
}

/// The same, as the store keeps it.
pub(crate) fn cost_of(money: Money, usage: Usage) -> u64 {
    u64::try_from(cost(money, usage)).unwrap_or(u64::MAX)
}

/// Rounded up.
fn cost(money: Money, usage: Usage) -> u128 {
    let of = |tokens: u64, price: u64| u128::from(tokens).saturating_mul(u128::from(price));
    of(usage.input, money.input).saturating_add(of(usage.output, money.output)).div_ceil(MILLION)
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
