//! An answer given in the client is recorded before it counts, and does not count where it cannot be.

use toolwarden_core::{AnswerScope, ApprovalState, Clock, HeldAnswer};

use crate::kit::{Outcome, Place};

fn said(is_approval: bool, clock: &dyn Clock) -> HeldAnswer {
    HeldAnswer {
        is_approval,
        by: "ada".to_owned(),
        groups: Vec::new(),
        door: "client".to_owned(),
        at: clock.now(),
        scope: AnswerScope::Once,
        note: None,
        token: None,
    }
}

#[tokio::test]
async fn review_6_an_answer_that_cannot_be_recorded_does_not_count() -> Outcome {
    for is_approval in [true, false] {
        let place = Place::new(false)?;
        let node = place.node("one").await?;
        let id = node.held("mine").await?;
        node.journal.clone().close().await?;
        assert!(node.desk.answer(&id, &said(is_approval, &*place.clock)).await.is_err());
        assert_eq!(node.state_of(&id).await?, ApprovalState::Held);
    }
    Ok(())
}

#[tokio::test]
async fn review_6_an_answer_is_recorded_before_it_counts() -> Outcome {
    let place = Place::new(false)?;
    let node = place.node("one").await?;
    let id = node.held("mine").await?;
    assert!(node.desk.answer(&id, &said(true, &*place.clock)).await?);
    assert_eq!(node.state_of(&id).await?, ApprovalState::Approved);
    assert!(!node.desk.answer(&id, &said(false, &*place.clock)).await?, "the first answer counts");
    node.journal.clone().close().await?;
    let methods = node.recorded()?;
    let at = |method: &str| methods.iter().position(|known| known == method);
    assert!(at("approvals_approve").is_some() && at("approvals_approve") < at("approval_approved"), "{methods:?}");
    assert_eq!(at("approvals_deny"), None, "{methods:?}");
    Ok(())
}
