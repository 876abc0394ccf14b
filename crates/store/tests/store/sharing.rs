//! Protection that processes and replicas share (WORK-3): labels nobody sheds, amounts nobody exceeds together.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use toolwarden_store::State;
use toolwarden_store::state::{Anchor, AnchorKind, Claim, Claimed, IDLE_LIFE, NOTED_WITHIN, StateError, Tally};

use crate::kit::{Outcome, Place, at, on_both};

fn anchor(kind: AnchorKind, mark: &str) -> Anchor {
    Anchor { kind, mark: mark.to_owned() }
}

fn texts(labels: &[&str]) -> Vec<String> {
    labels.iter().map(|label| (*label).to_owned()).collect()
}

fn minute(name: &str, most: u64) -> Claim {
    Claim { tally: Tally { name: name.to_owned(), unit: 1, slots: 61 }, amount: 1, most }
}

/// The labels under any of these anchors.
async fn met(state: &State, anchors: &[Anchor], now: Timestamp) -> Result<Vec<String>, StateError> {
    let labels = state.labels(anchors, now).await?.into_iter().map(|(_, label)| label);
    Ok(labels.collect::<BTreeSet<_>>().into_iter().collect())
}

async fn work_3_labels_of_one_process_are_seen_by_the_next(place: Place) -> Outcome {
    let (one, other) = (place.state().await?, place.state().await?);
    let token = [anchor(AnchorKind::Token, "t"), anchor(AnchorKind::Run, "r")];
    assert!(met(&one, &token, at(0)).await?.is_empty());
    one.add_labels(&token, &texts(&["reads_private"]), at(0)).await?;
    other.add_labels(&token[..1], &texts(&["reads_private", "reads_untrusted"]), at(1)).await?;
    for state in [&one, &other] {
        assert_eq!(met(state, &token, at(1)).await?, ["reads_private", "reads_untrusted"]);
        assert_eq!(met(state, &token[1..], at(1)).await?, ["reads_private"], "another token of the run");
        assert!(met(state, &[anchor(AnchorKind::Token, "u")], at(1)).await?.is_empty());
    }
    Ok(())
}

async fn work_3_labels_of_persons_end_after_eight_idle_hours_and_those_of_tokens_do_not(place: Place) -> Outcome {
    let state = place.state().await?;
    let (person, token) = (anchor(AnchorKind::Person, "p"), anchor(AnchorKind::Token, "t"));
    let both = [person.clone(), token.clone()];
    state.add_labels(&both, &texts(&["reads_private"]), at(0)).await?;
    let (life, slack) = (IDLE_LIFE.as_secs(), NOTED_WITHIN.as_secs());
    let persons = std::slice::from_ref(&person);
    assert_eq!(met(&state, persons, at(life)).await?.len(), 1);
    // Used, they live on; another label met later does not bring back what had ended.
    state.note_use(&both, at(life)).await?;
    assert_eq!(met(&state, persons, at(2 * life)).await?.len(), 1);
    let idle = at(2 * life + slack);
    assert!(met(&state, persons, idle).await?.is_empty());
    state.note_use(&both, idle).await?;
    assert!(met(&state, persons, idle).await?.is_empty(), "what had ended stays ended");
    state.add_labels(persons, &texts(&["reads_untrusted"]), idle).await?;
    assert_eq!(met(&state, persons, idle).await?, ["reads_untrusted"]);
    // A clock that was set back ends nothing.
    state.add_labels(persons, &texts(&["reads_untrusted"]), at(0)).await?;
    assert_eq!(met(&state, persons, idle).await?, ["reads_untrusted"]);
    assert_eq!(met(&state, std::slice::from_ref(&token), at(1000 * life)).await?, ["reads_private"]);
    // Only what has ended is deleted.
    state.forget_labels(at(1000 * life), |mark| mark == "t").await?;
    assert_eq!(met(&state, &both, at(0)).await?, ["reads_private"]);
    state.forget_labels(at(1000 * life), |_| false).await?;
    assert!(met(&state, &both, at(0)).await?.is_empty());
    Ok(())
}

async fn work_3_processes_that_claim_at_the_same_time_take_exactly_what_there_is(place: Place) -> Outcome {
    let mut claiming = Vec::new();
    for number in 0..4 {
        let state = place.state().await?;
        claiming.push(tokio::spawn(async move {
            let mut taken = 0;
            for _ in 0..10 {
                let claims = [minute("server", 25), minute(if number % 2 == 0 { "a" } else { "b" }, 1000)];
                if state.claim(&claims, at(5)).await? == Claimed::Taken {
                    taken += 1;
                }
            }
            Ok::<_, StateError>(taken)
        }));
    }
    let mut taken = 0;
    for one in claiming {
        taken += one.await??;
    }
    assert_eq!(taken, 25);
    let state = place.state().await?;
    let mut each = 0;
    for name in ["a", "b"] {
        each += state.tally(&minute(name, 0).tally, at(5)).await?;
    }
    assert_eq!(each, 25, "what was refused at one level counts at none");
    Ok(())
}

async fn work_3_no_minute_holds_more_than_the_limit_and_the_wait_is_told(place: Place) -> Outcome {
    let state = place.state().await?;
    let limit = 5;
    let mut made: Vec<u64> = Vec::new();
    for second in 0..400_u64 {
        // Bursts, pauses, and a clock that is set back.
        let second = if second % 50 == 49 { second - 20 } else { second };
        match state.claim(&[minute("s", limit)], at(second)).await? {
            Claimed::Taken => made.push(second),
            Claimed::Full { claim, wait } => {
                assert_eq!(claim, 0);
                assert!((1..=81).contains(&wait), "{wait}");
            }
        }
    }
    for start in 0..400 {
        let within = made.iter().filter(|second| (start..start + 61).contains(*second)).count();
        assert!(within as u64 <= limit, "{within} calls from second {start} on: {made:?}");
    }
    assert!(made.len() > 20, "{made:?}");
    assert_eq!(state.claim(&[minute("none", 0)], at(0)).await?, Claimed::Full { claim: 0, wait: 61 });
    state.forget_tallies(at(0) + Duration::from_secs(10_000)).await?;
    assert_eq!(state.claim(&[minute("s", 1)], at(10)).await?, Claimed::Taken);
    Ok(())
}

async fn work_3_money_is_set_aside_as_a_whole_and_given_back_in_part(place: Place) -> Outcome {
    let state = place.state().await?;
    let day = Tally { name: "money".to_owned(), unit: 24 * 60 * 60, slots: 1 };
    let claim = |amount| Claim { tally: day.clone(), amount, most: 100 };
    assert_eq!(state.claim(&[claim(60)], at(0)).await?, Claimed::Taken);
    assert!(matches!(state.claim(&[claim(60)], at(1)).await?, Claimed::Full { claim: 0, .. }));
    state.add_to_tally(&day, day.slot(at(0)), -50).await?;
    assert_eq!(state.claim(&[claim(60)], at(2)).await?, Claimed::Taken);
    assert_eq!(state.tally(&day, at(2)).await?, 70);
    assert_eq!(state.tally(&day, at(24 * 60 * 60)).await?, 0, "another day");
    Ok(())
}

on_both!(
    work_3_labels_of_one_process_are_seen_by_the_next,
    work_3_labels_of_persons_end_after_eight_idle_hours_and_those_of_tokens_do_not,
    work_3_processes_that_claim_at_the_same_time_take_exactly_what_there_is,
    work_3_no_minute_holds_more_than_the_limit_and_the_wait_is_told,
    work_3_money_is_set_aside_as_a_whole_and_given_back_in_part,
);
