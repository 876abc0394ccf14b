//! Budgets, places, the breaker and the cache, as the machine at the other end sees them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use toolwarden_classifier::{Judged, Money, Question, Settings};
use toolwarden_core::MachineVerdict;

use crate::standin::{Outcome, StandIn, completion, http, ok, openai, question, room, verdict};

fn code(judged: &Judged) -> Option<&'static str> {
    judged.failure.map(|failure| failure.code())
}

async fn allowing() -> std::io::Result<StandIn> {
    StandIn::answering(|seen| ok(&completion(&verdict(seen, "allow")).to_string())).await
}

#[tokio::test]
async fn review_2_no_more_is_asked_than_the_budget_says() -> Outcome {
    let standin = allowing().await?;
    let room = room(Settings { per_hour: 2, ..openai(&standin.url) })?;
    for number in 0..2 {
        assert_eq!(code(&room.classifier.judge(&question(number)).await), None);
    }
    let over = room.classifier.judge(&question(2)).await;
    assert_eq!((over.opinion.verdict, code(&over)), (None, Some("over_budget")));
    assert_eq!(standin.seen().len(), 2);
    room.clock.put(3_600);
    assert_eq!(code(&room.classifier.judge(&question(3)).await), None, "an hour later");
    Ok(())
}

/// One unit for a million tokens in; what comes back is free.
fn money(per_day: u64) -> Option<Money> {
    Some(Money { per_day, input: 1_000_000_000, output: 0 })
}

#[tokio::test]
async fn review_2_questions_at_the_same_time_do_not_spend_money_twice() -> Outcome {
    let standin = allowing().await?;
    // A question has some thousands of bytes, and a token costs a thousand: enough for one, not for two.
    let room = room(Settings { money: money(4_000_000), at_once: 20, ..openai(&standin.url) })?;
    let questions: Vec<_> = (0..10).map(question).collect();
    let asked = questions.iter().map(|question| room.classifier.judge(question));
    let mut codes = Vec::new();
    for judged in join_all(asked).await {
        codes.push(code(&judged));
    }
    assert_eq!(standin.seen().len(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == Some("over_cost")).count(), 9, "{codes:?}");
    // It cost ten tokens, as it says, so that others can be asked now.
    assert_eq!(code(&room.classifier.judge(&question(20)).await), None);
    Ok(())
}

#[tokio::test]
async fn review_2_what_nobody_says_the_price_of_costs_the_most_it_can() -> Outcome {
    let standin = StandIn::answering(|seen| {
        let mut answer = completion(&verdict(seen, "allow"));
        answer.as_object_mut().map(|answer| answer.remove("usage"));
        ok(&answer.to_string())
    })
    .await?;
    let room = room(Settings { money: money(4_000_000), ..openai(&standin.url) })?;
    assert_eq!(code(&room.classifier.judge(&question(1)).await), None);
    assert_eq!(code(&room.classifier.judge(&question(2)).await), Some("over_cost"));
    assert_eq!(standin.seen().len(), 1);
    room.clock.put(24 * 60 * 60);
    assert_eq!(code(&room.classifier.judge(&question(3)).await), None, "the next day");
    Ok(())
}

/// Polls futures together.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut waiting: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut is_done = true;
        for (future, output) in &mut waiting {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(ready) => *output = Some(ready),
                    std::task::Poll::Pending => is_done = false,
                }
            }
        }
        if is_done { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    waiting.into_iter().filter_map(|(_, output)| output).collect()
}

#[tokio::test]
async fn review_2_a_machine_that_keeps_failing_is_left_alone_and_tried_again() -> Outcome {
    let is_well = Arc::new(AtomicBool::new(false));
    let well = is_well.clone();
    let standin = StandIn::answering(move |seen| {
        let text = completion(&verdict(seen, "allow")).to_string();
        if well.load(Ordering::Relaxed) { ok(&text) } else { http("503 Unavailable", "application/json", &text) }
    })
    .await?;
    let room = room(openai(&standin.url))?;
    for number in 0..5 {
        assert_eq!(code(&room.classifier.judge(&question(number)).await), Some("status"));
    }
    assert_eq!(code(&room.classifier.judge(&question(5)).await), Some("breaker_open"));
    assert_eq!(standin.seen().len(), 5, "nobody asks it");
    room.clock.put(60);
    assert_eq!(code(&room.classifier.judge(&question(6)).await), Some("status"), "one tries");
    assert_eq!(code(&room.classifier.judge(&question(7)).await), Some("breaker_open"));
    assert_eq!(standin.seen().len(), 6);
    is_well.store(true, Ordering::Relaxed);
    room.clock.put(120);
    assert_eq!(code(&room.classifier.judge(&question(8)).await), None);
    assert_eq!(code(&room.classifier.judge(&question(9)).await), None);
    Ok(())
}

#[tokio::test]
async fn review_2_those_beyond_the_places_hold() -> Outcome {
    let standin = StandIn::answering(|_| String::new()).await?;
    let room = room(Settings { at_once: 1, ..openai(&standin.url) })?;
    let first = question(1);
    let waiting = room.classifier.judge(&first);
    let second = async {
        while standin.seen().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        room.classifier.judge(&question(2)).await
    };
    let judged = tokio::select! {
        judged = waiting => judged,
        judged = second => judged,
    };
    assert_eq!((judged.opinion.verdict, code(&judged)), (None, Some("busy")));
    assert_eq!(standin.seen().len(), 1);
    Ok(())
}

#[tokio::test]
async fn review_2_the_same_question_is_asked_once_also_at_the_same_time() -> Outcome {
    let standin = allowing().await?;
    let room = room(Settings { at_once: 20, ..openai(&standin.url) })?;
    let same = question(1);
    let all = join_all((0..10).map(|_| room.classifier.judge(&same))).await;
    assert_eq!(standin.seen().len(), 1);
    assert_eq!(all.iter().filter(|judged| !judged.is_cached).count(), 1);
    let ids: std::collections::HashSet<_> = all.iter().map(|judged| judged.opinion.id.clone()).collect();
    assert!(ids.len() == 1 && all.iter().all(|judged| judged.opinion.verdict == Some(MachineVerdict::Allow)));
    room.classifier.judge(&Question { policy_version: 2, ..question(1) }).await;
    room.classifier.judge(&Question { digest: vec![9], ..question(1) }).await;
    assert_eq!(standin.seen().len(), 3, "another policy, another call");
    room.clock.put(600);
    assert!(!room.classifier.judge(&same).await.is_cached);
    assert_eq!(standin.seen().len(), 4, "ten minutes later");
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_shown_whole_is_not_sent() -> Outcome {
    let standin = allowing().await?;
    let room = room(openai(&standin.url))?;
    let long = Question { arguments: "x".repeat(64 * 1024), ..question(1) };
    let judged = room.classifier.judge(&long).await;
    assert_eq!((judged.opinion.verdict, code(&judged)), (None, Some("too_long")));
    assert!(standin.seen().is_empty());
    Ok(())
}
