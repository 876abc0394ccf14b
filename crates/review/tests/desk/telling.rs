//! Ends that the store could not be told, and calls that were given up while they were laid on the desk.

use std::time::Duration;

use toolwarden_core::{ApprovalState, Status};
use toolwarden_review::Raised;
use toolwarden_store::state::ApprovalFilter;

use crate::engines::on_both;
use crate::kit::{Outcome, Place};

/// Whoever gives up in the midst of it, also while the database commits, leaves nothing that waits.
async fn review_8_a_call_given_up_while_it_is_laid_on_the_desk_does_not_wait(place: Place) -> Outcome {
    let node = place.node("one").await?;
    let mut kept = Vec::new();
    for number in 0..120_u64 {
        let text = format!("call {number}");
        let patience = Duration::from_micros(number * 25);
        if let Ok(raised) = tokio::time::timeout(patience, node.raise(&text)).await {
            let Raised::Waits(asking) = raised? else { return Err("it waits".into()) };
            kept.push(asking.id);
        }
    }
    let mut left = Vec::new();
    for _ in 0..200 {
        let held = vec![ApprovalState::Held];
        let filter = ApprovalFilter { states: held, limit: 500, ..ApprovalFilter::default() };
        let found = node.state.approvals(&filter).await?.approvals;
        left = found.into_iter().map(|approval| approval.id).filter(|id| !kept.contains(id)).collect();
        if left.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(format!("these wait for nobody: {left:?}").into())
}

on_both!(review_8_a_call_given_up_while_it_is_laid_on_the_desk_does_not_wait);

#[tokio::test]
async fn review_4_an_end_that_the_store_could_not_be_told_is_told_again() -> Outcome {
    let mut place = Place::new(true)?;
    let node = place.node("one").await?;
    let mut ids = Vec::new();
    for text in ["ends", "is given back"] {
        let id = node.held(text).await?;
        node.approve(&id, &place.clock).await?;
        ids.push((node.desk.take(&id).await.map_err(|why| format!("{why:?}"))?, id));
    }
    let (returned, back) = ids.pop().ok_or("two")?;
    let (mut taken, ended) = ids.pop().ok_or("two")?;
    node.intends(&ended, &place.clock).await?;
    taken.leaves().await;
    place.stop_database()?;
    node.desk.ended(&ended, Status::Ok);
    drop(returned);
    node.settled(&ended).await?;
    node.settled(&back).await?;
    assert!(node.desk.tidy().await.is_err(), "the store is away");
    place.restart_database()?;
    assert_eq!(node.state_of(&ended).await?, ApprovalState::Dispatched, "nobody told it");
    node.desk.tidy().await?;
    assert_eq!(node.state_of(&ended).await?, ApprovalState::Succeeded);
    assert_eq!(node.state_of(&back).await?, ApprovalState::Approved);
    Ok(())
}
