//! Races at two gateways on one PostgreSQL: one of a hundred answers counts and the rest are told whose, and one of a hundred
//! retries of an approved call runs, whichever gateway each came to.

use anyhow::{Context, Result, ensure};
use futures_util::future::join_all;
use serde_json::json;

use crate::caller::{ECHO, post};
use crate::held_place::{Place, call};
use crate::house::{Gateway, report};

const HUNDRED: usize = 100;

/// The gateway whose turn it is.
fn either<'a>(one: &'a Gateway, other: &'a Gateway, number: usize) -> &'a Gateway {
    if number.is_multiple_of(2) { one } else { other }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_3_one_of_a_hundred_answers_at_two_gateways_counts_and_one_of_a_hundred_retries_runs() -> Result<()> {
    let place = Place::new(true).await?;
    let one = place.first.serve().await;
    let other = place.second.as_ref().context("another gateway")?.serve().await;
    let (agent, person) = (place.tokens.agent.clone(), place.tokens.person.clone());
    for round in 0..3 {
        let number = format!("raced {round}");
        let said = place.call(&one, &agent, ECHO, &number).await?;
        let (id, state) = place.row().await?.with_context(|| said)?;
        ensure!(state == "held", "{state}");
        // All of one kind in the last round, so that the call can be made.
        let word = |place: usize| if round < 2 && (place / 2).is_multiple_of(2) { "deny" } else { "approve" };
        let answers = join_all((0..HUNDRED).map(|place| {
            let (base, path) = (either(&one, &other, place).base(), format!("/api/v1/approvals/{}", word(place)));
            let (person, body) = (&person, json!({ "id": id, "note": format!("answer {place}") }));
            async move { post(base, &path, person, &body).await }
        }))
        .await;
        let mut winners = Vec::new();
        for (place, answered) in answers.into_iter().enumerate() {
            let (status, said) = answered?;
            if status == 200 {
                winners.push(place);
            } else {
                ensure!(said.contains("bob"), "it is told whose answer counts: {status} {said}");
            }
        }
        ensure!(winners.len() == 1, "these count: {winners:?}");
        let won = winners.first().map(|place| word(*place)).unwrap_or_default();
        let retries = (0..HUNDRED).map(|place| {
            let base = either(&one, &other, place).base().to_owned();
            call(base, agent.clone(), ECHO.to_owned(), number.clone())
        });
        let ran = join_all(retries).await.into_iter().filter(|said| said.is_ok()).count();
        ensure!(ran == HUNDRED, "{ran} were answered");
        let sent = place.seen(&number);
        ensure!(sent == u32::from(won == "approve"), "{won}: the server saw it {sent} times");
    }
    one.stop().await;
    other.stop().await;
    place.verifies().await?;
    report("three races of a hundred answers and a hundred retries at two gateways");
    Ok(())
}
