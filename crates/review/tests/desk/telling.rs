//! Ends that the store could not be told: they are told again, and the same call is made meanwhile by nobody.

use toolwarden_core::{ApprovalState, Status};

use crate::kit::{Outcome, Place};

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
