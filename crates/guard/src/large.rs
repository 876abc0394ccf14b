//! Large calls are checked a few at a time (WORK-1): a tree of a large text takes many times its bytes, and a core for as
//! long as it is looked at. Callers wait in turns, so that whoever sends many waits for their own.

use std::future::Future;
use std::sync::Arc;

use toolwarden_core::{Layer, Origin, Reason, Weakness, weak};
use toolwarden_policy::RuleRef;

use crate::limits::Over;
use crate::turns::{Place, Turn, Turns};

/// So many are checked at the same time.
const AT_ONCE: u64 = 2;

/// The checks of large calls.
#[derive(Debug)]
pub struct LargeChecks(Arc<Turns>);

/// The turn of one check, until this is dropped.
#[derive(Debug)]
pub struct CheckTurn {
    _place: Option<Place>,
}

impl Default for LargeChecks {
    fn default() -> Self {
        Self(Turns::new(Some(AT_ONCE)).into())
    }
}

impl LargeChecks {
    /// Waits for a turn as long as there is patience.
    ///
    /// # Errors
    /// No turn came in time, or too many wait.
    pub async fn turn(
        &self,
        who: impl FnOnce() -> String,
        patience: impl Future<Output = ()>,
    ) -> Result<CheckTurn, Over> {
        if weak::is(Weakness::Limits) {
            return Ok(CheckTurn { _place: None });
        }
        match self.0.take(who) {
            Turn::Now(place) => Ok(CheckTurn { _place: Some(place) }),
            Turn::Never => Err(over()),
            Turn::Later(waiter) => tokio::select! {
                biased;
                place = waiter => Ok(CheckTurn { _place: Some(place) }),
                () = patience => Err(over()),
            },
        }
    }

    /// How many are checked at this moment.
    #[must_use]
    pub fn running(&self) -> u64 {
        self.0.taken()
    }
}

fn over() -> Over {
    Over {
        reason: Reason::CallsInFlight,
        rule: RuleRef::new("large calls".to_owned(), &Origin::record(Layer::Shipped, "large calls")),
        words: format!("{AT_ONCE} large calls are checked at a time, and none ended in time; come back in 1 s"),
        retry_after: 1,
    }
}

#[cfg(test)]
#[path = "large_tests.rs"]
mod tests;
