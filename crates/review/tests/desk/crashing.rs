//! A gateway that is gone at each step of an approval: nothing runs twice, nothing unapproved, and what is left says so.

use toolwarden_core::{ApprovalState, Reason, Status};
use toolwarden_review::Raised;

use crate::engines::on_both;
use crate::kit::{Outcome, Place, gone};

/// Longer than a gateway may be silent.
const SILENCE: i64 = 120;

async fn review_4_a_gateway_that_ends_before_the_answer_changes_nothing(place: Place) -> Outcome {
    let node = place.node("one").await?;
    let id = node.held("a").await?;
    node.dies().await?;
    let node = place.node("one").await?;
    assert_eq!(node.recovers().await?, 0);
    assert_eq!(node.state_of(&id).await?, ApprovalState::Held);
    assert_eq!(node.held("a").await?, id, "the same call lies there still");
    assert!(node.approve(&id, &place.clock).await?);
    node.dies().await?;
    let node = place.node("one").await?;
    assert_eq!((node.recovers().await?, node.state_of(&id).await?), (0, ApprovalState::Approved));
    assert!(matches!(node.raise("a").await?, Raised::Approved(_)));
    Ok(())
}

async fn review_4_taken_and_not_left_is_given_back(place: Place) -> Outcome {
    let node = place.node("one").await?;
    let id = node.held("a").await?;
    node.approve(&id, &place.clock).await?;
    let taken = node.desk.take(&id).await.map_err(|why| format!("{why:?}"))?;
    // The process is gone before it can give anything back.
    gone(taken);
    assert_eq!(node.state_of(&id).await?, ApprovalState::Consumed);
    node.dies().await?;
    let node = place.node("one").await?;
    assert_eq!((node.recovers().await?, node.state_of(&id).await?), (1, ApprovalState::Approved));
    assert!(node.told(&id).await?.contains(&"approval_returned".to_owned()));
    let taken = node.desk.take(&id).await.map_err(|why| format!("{why:?}"))?;
    assert!(node.desk.take(&id).await.is_err(), "once");
    drop(taken);
    Ok(())
}

async fn review_4_recorded_and_not_told_is_unknown(place: Place) -> Outcome {
    let node = place.node("one").await?;
    let id = node.held("a").await?;
    node.approve(&id, &place.clock).await?;
    let taken = node.desk.take(&id).await.map_err(|why| format!("{why:?}"))?;
    node.intends(&id, &place.clock).await?;
    gone(taken);
    node.dies().await?;
    let node = place.node("one").await?;
    assert_eq!((node.recovers().await?, node.state_of(&id).await?), (1, ApprovalState::Unknown));
    assert!(matches!(node.raise("a").await?, Raised::Turned(turned) if turned.reason == Reason::OutcomeUnknown));
    assert!(node.desk.take(&id).await.is_err(), "nobody makes it again blindly");
    assert!(node.approve(&id, &place.clock).await?, "a person can permit it once more");
    assert!(node.desk.take(&id).await.is_ok());
    Ok(())
}

async fn review_4_left_and_not_ended_is_unknown(place: Place) -> Outcome {
    let node = place.node("one").await?;
    let id = node.held("a").await?;
    node.approve(&id, &place.clock).await?;
    let mut taken = node.desk.take(&id).await.map_err(|why| format!("{why:?}"))?;
    node.intends(&id, &place.clock).await?;
    taken.leaves().await;
    assert_eq!(node.state_of(&id).await?, ApprovalState::Dispatched);
    gone(taken);
    node.dies().await?;
    let node = place.node("one").await?;
    assert_eq!((node.recovers().await?, node.state_of(&id).await?), (1, ApprovalState::Unknown));
    Ok(())
}

async fn review_4_an_end_that_only_the_journal_knows_is_found(place: Place) -> Outcome {
    for (status, state, leaves) in [
        (Status::Ok, ApprovalState::Succeeded, true),
        (Status::ToolError, ApprovalState::Failed, true),
        (Status::Timeout, ApprovalState::Unknown, true),
        (Status::Ok, ApprovalState::Succeeded, false),
    ] {
        let text = format!("{status:?} {leaves}");
        let node = place.node("one").await?;
        let id = node.held(&text).await?;
        node.approve(&id, &place.clock).await?;
        let mut taken = node.desk.take(&id).await.map_err(|why| format!("{why:?}"))?;
        let number = node.intends(&id, &place.clock).await?;
        if leaves {
            taken.leaves().await;
        }
        gone(taken);
        node.ends(&id, number, status, &place.clock)?;
        node.dies().await?;
        let node = place.node("one").await?;
        assert_eq!((node.recovers().await?, node.state_of(&id).await?), (1, state), "{text}");
        node.dies().await?;
    }
    Ok(())
}

async fn review_4_what_a_lost_gateway_had_on_its_way_becomes_unknown_elsewhere(place: Place) -> Outcome {
    let (lost, other) = (place.node("one").await?, place.node("two").await?);
    let id = lost.held("a").await?;
    lost.approve(&id, &place.clock).await?;
    let taken = lost.desk.take(&id).await.map_err(|why| format!("{why:?}"))?;
    other.desk.tidy().await?;
    assert_eq!(other.state_of(&id).await?, ApprovalState::Consumed, "it may be busy");
    place.clock.go_on(SILENCE);
    // One that is there says so before others give it up.
    lost.desk.tidy().await?;
    other.desk.tidy().await?;
    assert_eq!(other.state_of(&id).await?, ApprovalState::Consumed);
    gone(taken);
    place.clock.go_on(SILENCE);
    other.desk.tidy().await?;
    assert_eq!(other.state_of(&id).await?, ApprovalState::Unknown);
    assert!(other.told(&id).await?.contains(&"approval_unknown".to_owned()));
    // It comes back, and what is known meanwhile stays.
    lost.dies().await?;
    let back = place.node("one").await?;
    assert_eq!((back.recovers().await?, back.state_of(&id).await?), (0, ApprovalState::Unknown));
    Ok(())
}

async fn review_4_what_is_not_used_is_given_back_while_the_gateway_lives(place: Place) -> Outcome {
    let node = place.node("one").await?;
    let id = node.held("a").await?;
    node.approve(&id, &place.clock).await?;
    let taken = node.desk.take(&id).await.map_err(|why| format!("{why:?}"))?;
    drop(taken);
    // Whoever comes at the same moment waits for that, and finds it.
    assert!(matches!(node.raise("a").await?, Raised::Approved(_)));
    assert_eq!(node.state_of(&id).await?, ApprovalState::Approved);
    Ok(())
}

async fn review_4_nobody_answers_in_time(place: Place) -> Outcome {
    let node = place.node("one").await?;
    let id = node.held("a").await?;
    place.clock.go_on(25 * 60 * 60);
    node.desk.tidy().await?;
    assert_eq!(node.state_of(&id).await?, ApprovalState::Expired);
    assert!(!node.approve(&id, &place.clock).await?);
    assert!(node.told(&id).await?.contains(&"approval_expired".to_owned()));
    assert_ne!(node.held("a").await?, id, "whoever makes the call again asks again");
    Ok(())
}

on_both!(
    review_4_a_gateway_that_ends_before_the_answer_changes_nothing,
    review_4_taken_and_not_left_is_given_back,
    review_4_recorded_and_not_told_is_unknown,
    review_4_left_and_not_ended_is_unknown,
    review_4_an_end_that_only_the_journal_knows_is_found,
    review_4_what_a_lost_gateway_had_on_its_way_becomes_unknown_elsewhere,
    review_4_what_is_not_used_is_given_back_while_the_gateway_lives,
    review_4_nobody_answers_in_time,
);
