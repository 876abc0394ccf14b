//! What a record costs. Run it with `--release --run-ignored only --no-capture`.

use std::io::Write;
use std::sync::Arc;

use toolwarden_store::{Journal, JournalOptions, SyncLevel};

use crate::kit::{Outcome, Place, StepClock, intent, outcome};

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

async fn measure(tasks: u64, calls: u64, sync: SyncLevel) -> Outcome {
    let place = Place::new()?;
    let mut options = JournalOptions::new(place.journal_root(), "serve");
    options.sync = sync;
    let (journal, _) = Journal::open(&options, place.keyring.clone(), Arc::new(StepClock::default()))?;
    let start = now();
    let running: Vec<_> = (0..tasks)
        .map(|_| {
            let journal = journal.clone();
            tokio::spawn(async move {
                for _ in 0..calls {
                    let call = journal.next_call();
                    journal.record(&intent(call)).await?;
                    journal.note(&outcome(call))?;
                }
                Ok::<_, toolwarden_store::JournalError>(())
            })
        })
        .collect();
    for task in running {
        task.await??;
    }
    let passed = start.elapsed();
    journal.close().await?;
    let count = u32::try_from(tasks * calls)?;
    let each = passed / count;
    let rate = f64::from(count) / passed.as_secs_f64();
    let index = place.index().await?;
    let start = now();
    let delivered = toolwarden_store::index::ship(&place.journal_root(), &index).await?;
    let delivery = f64::from(u32::try_from(delivered.lines)?) / start.elapsed().as_secs_f64();
    writeln!(std::io::stdout(), "delivery to the index: {delivery:.0} lines/s")?;
    writeln!(std::io::stdout(), "{sync:?}, {tasks} tasks: {each:?} per call (intent + outcome), {rate:.0} calls/s")?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, not a test"]
async fn cost_of_a_call() -> Outcome {
    for tasks in [1, 2, 16] {
        measure(tasks, 200_000 / tasks, SyncLevel::Os).await?;
        measure(tasks, 200_000 / tasks, SyncLevel::Every100ms).await?;
    }
    measure(64, 50, SyncLevel::Always).await
}
