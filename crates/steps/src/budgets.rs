//! What all classifiers of a store asked, spent and held, in the store (WORK-3).

use std::pin::Pin;
use std::time::Duration;

use jiff::Timestamp;
use toolwarden_classifier::{Failure, Ledger, Spending, Unknown};
use toolwarden_core::Digest;
use toolwarden_store::State;
use toolwarden_store::state::{Claim, Claimed, StateError, Tally};

/// How long the store may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Counts of the store.
#[derive(Debug)]
pub struct Budgets {
    state: State,
}

type Asked<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Budgets {
    #[must_use]
    pub fn new(state: State) -> Self {
        Self { state }
    }
}

/// Questions by the minute, so that no hour holds more than the limit.
fn questions() -> Tally {
    Tally { name: "classifier:questions".to_owned(), unit: 60, slots: 61 }
}

fn money() -> Tally {
    Tally { name: "classifier:money".to_owned(), unit: 24 * 60 * 60, slots: 1 }
}

/// Ten minutes, by slots of ten seconds.
fn held(subject: Digest) -> Tally {
    Tally { name: format!("classifier:held:{subject}"), unit: 10, slots: 61 }
}

impl Ledger for Budgets {
    fn reserve<'a>(&'a self, spending: &'a Spending) -> Asked<'a, Result<(), Failure>> {
        Box::pin(async move {
            let mut claims = vec![Claim { tally: questions(), amount: 1, most: spending.per_hour }];
            let of_money = |most| Claim { tally: money(), amount: spending.money, most };
            claims.extend(spending.per_day.map(of_money));
            match within(self.state.claim(&claims, spending.at)).await {
                Some(Claimed::Taken) => Ok(()),
                Some(Claimed::Full { claim: 0, .. }) => Err(Failure::OverBudget),
                Some(Claimed::Full { .. }) => Err(Failure::OverCost),
                None => Err(Failure::Uncounted),
            }
        })
    }

    fn settle(&self, spending: Spending, cost: u64) -> Asked<'_, ()> {
        Box::pin(async move {
            let less = i64::try_from(i128::from(cost) - i128::from(spending.money)).unwrap_or(i64::MAX);
            // What cannot be given back stays spent.
            within(self.state.add_to_tally(&money(), money().slot(spending.at), less)).await;
        })
    }

    fn held(&self, subject: Digest, now: Timestamp) -> Asked<'_, Result<u64, Unknown>> {
        Box::pin(async move { within(self.state.tally(&held(subject), now)).await.ok_or(Unknown) })
    }

    fn note_held(&self, subject: Digest, now: Timestamp) -> Asked<'_, ()> {
        Box::pin(async move {
            let tally = held(subject);
            within(self.state.add_to_tally(&tally, tally.slot(now), 1)).await;
        })
    }
}

async fn within<T>(asked: impl Future<Output = Result<T, StateError>> + Send) -> Option<T> {
    let answered = tokio::time::timeout(PATIENCE, asked).await;
    let error = match answered {
        Ok(Ok(answer)) => return Some(answer),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "the store does not answer".to_owned(),
    };
    tracing::error!("what classifiers asked and spent cannot be counted: {error}");
    None
}
