//! Tasks of held calls in both databases: one for each call, its caller's alone, moved on by one at a time, bounded, and not
//! to be moved by whoever can write rows.

use toolwarden_core::TaskStage;
use toolwarden_store::state::{HeldTask, NewHeldTask, State};

use crate::kit::{Outcome, Place, at, on_both};

async fn make(state: &State, id: &str, approval: &str, caller: &str) -> Result<HeldTask, Box<dyn std::error::Error>> {
    let new = NewHeldTask { id, approval, caller_mark: caller, now: at(1), expires_at: at(100) };
    Ok(state.make_task(new).await?.ok_or("there is room")?)
}

fn given(task: &HeldTask, text: &str) -> HeldTask {
    let mut given = task.clone();
    given.stage = TaskStage::Result(text.to_owned());
    given
}

async fn review_8_a_held_call_has_one_task_and_that_is_its_callers(place: Place) -> Outcome {
    let state = place.state().await?;
    let first = make(&state, "tw-1", "one", "ada").await?;
    assert_eq!(make(&state, "tw-2", "one", "ada").await?, first, "the same call is the same task");
    assert_eq!(make(&state, "tw-3", "two", "ada").await?.id, "tw-3");
    assert_eq!(state.held_task("tw-1", "ada", at(2)).await?, Some(first));
    for (id, caller, seconds) in [("tw-1", "bob", 2), ("tw-2", "ada", 2), ("tw-1", "ada", 100)] {
        assert_eq!(state.held_task(id, caller, at(seconds)).await?, None, "{id} {caller} {seconds}");
    }
    let listed = state.tasks_of("ada", at(2), 10).await?;
    assert_eq!(listed.len(), 2);
    assert!(state.tasks_of("bob", at(2), 10).await?.is_empty());
    assert_eq!((state.forget_tasks(at(99)).await?, state.forget_tasks(at(100)).await?), (0, 2));
    Ok(())
}

async fn review_8_one_moves_a_task_on_and_everybody_else_is_late(place: Place) -> Outcome {
    let state = place.state().await?;
    let task = make(&state, "tw-1", "one", "ada").await?;
    let moves = (0..20).map(|number| {
        let (state, task) = (state.clone(), task.clone());
        async move { state.move_task(&task, &given(&task, &number.to_string())).await.unwrap_or_default() }
    });
    let moved = futures_util::future::join_all(moves).await;
    assert_eq!(moved.iter().filter(|done| **done).count(), 1, "{moved:?}");
    let winner = moved.iter().position(|done| *done).unwrap_or_default();
    let kept = state.held_task("tw-1", "ada", at(2)).await?.ok_or("it is kept")?;
    assert_eq!(kept.stage, TaskStage::Result(winner.to_string()));
    Ok(())
}

async fn review_8_what_tasks_of_one_caller_gave_is_bounded(place: Place) -> Outcome {
    let state = place.state().await?;
    let large = "x".repeat(8 * 1024 * 1024);
    let mut kept = 0;
    for number in 0..10 {
        let task = make(&state, &format!("tw-{number}"), &number.to_string(), "ada").await?;
        kept += u32::from(state.move_task(&task, &given(&task, &large)).await?);
    }
    assert_eq!(kept, 7, "the seals count, too");
    let other = make(&state, "tw-other", "other", "bob").await?;
    assert!(state.move_task(&other, &given(&other, &large)).await?, "others have their own room");
    Ok(())
}

async fn review_8_a_task_cannot_be_moved_by_whoever_can_write_rows(place: Place) -> Outcome {
    let state = place.state().await?;
    for (id, approval, caller) in [("tw-1", "one", "ada"), ("tw-2", "two", "bob")] {
        make(&state, id, approval, caller).await?;
    }
    for (change, back) in [
        (
            "UPDATE held_tasks SET caller_mark = 'bob' WHERE id = 'tw-1'",
            "UPDATE held_tasks SET caller_mark = 'ada' WHERE id = 'tw-1'",
        ),
        (
            "UPDATE held_tasks SET approval = 'two' WHERE id = 'tw-1'",
            "UPDATE held_tasks SET approval = 'one' WHERE id = 'tw-1'",
        ),
    ] {
        assert_eq!(place.execute(change).await?, 1);
        for caller in ["ada", "bob"] {
            assert!(state.held_task("tw-1", caller, at(2)).await.is_err(), "{change}");
        }
        assert_eq!(place.execute(back).await?, 1);
    }
    assert!(state.held_task("tw-1", "ada", at(2)).await?.is_some());
    Ok(())
}

on_both!(
    review_8_a_held_call_has_one_task_and_that_is_its_callers,
    review_8_one_moves_a_task_on_and_everybody_else_is_late,
    review_8_what_tasks_of_one_caller_gave_is_bounded,
    review_8_a_task_cannot_be_moved_by_whoever_can_write_rows,
);
