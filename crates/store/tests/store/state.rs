//! What people decided: versions, many writers, going back, catching up, and a database in the wrong hands.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_store::state::{Author, Kind, Place as Spot, State, StateError};
use toolwarden_vault::FileKeyring;

use crate::kit::{Outcome, Place, at, on_both};

fn author(user: &str) -> Author {
    Author { user: user.to_owned(), door: "cli".to_owned(), time: at(1) }
}

fn lists(user: &str) -> Spot {
    Spot::of_user(Kind::User, user, "lists")
}

async fn put(state: &State, place: &Spot, content: Value) -> Result<u64, StateError> {
    let mut draft = state.change().await?;
    draft.put(place.clone(), content);
    Ok(draft.commit(&author("ada"), "a change", None).await?.version)
}

fn entries(state: &toolwarden_store::state::Records, place: &Spot) -> BTreeSet<String> {
    let content = state.by_place.get(place).and_then(|record| record.content.as_array());
    content.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

async fn a_change_counts_and_one_that_changes_nothing_makes_no_version(place: Place) -> Outcome {
    let state = place.state().await?;
    assert_eq!(state.records().await?.version, 0);
    let spot = Spot::of_house(Kind::Setting, "a.b");
    assert_eq!(put(&state, &spot, json!(true)).await?, 1);
    assert_eq!(put(&state, &spot, json!(true)).await?, 1, "it was so already");
    let mut draft = state.change().await?;
    draft.put(spot.clone(), json!(false));
    assert_eq!((draft.get(&spot), draft.before().version, draft.after().version), (Some(&json!(false)), 1, 2));
    drop(draft);
    let records = state.records().await?;
    assert_eq!(records.by_place.get(&spot).map(|record| (record.version, &record.content)), Some((1, &json!(true))));
    // Another process sees the same.
    assert_eq!(place.state().await?.records().await?, records);
    Ok(())
}

async fn fifty_writers_at_once_lose_nothing(place: Place) -> Outcome {
    // Two processes with their own connections, as two gateways.
    let states = [place.state().await?, place.state().await?];
    let spot = lists("ada");
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..50 {
        let state = states.get(number % 2).cloned().ok_or("two states")?;
        let spot = spot.clone();
        writers.spawn(async move {
            let mut draft = state.change().await?;
            let mut list = draft.get(&spot).cloned().unwrap_or_else(|| json!([]));
            if let Some(list) = list.as_array_mut() {
                list.push(json!(format!("notes:t{number}")));
            }
            draft.put(spot, list);
            draft.commit(&author("ada"), &format!("allow t{number}"), None).await
        });
    }
    let mut versions = BTreeSet::new();
    while let Some(done) = writers.join_next().await {
        versions.insert(done??.version);
    }
    assert!(versions.iter().copied().eq(1..=50), "{versions:?}");
    let [state, _] = &states;
    assert_eq!(entries(&state.records().await?, &spot).len(), 50);
    assert_eq!(state.history(100, None).await?.len(), 50);
    Ok(())
}

async fn a_change_of_what_is_no_longer_so_is_refused(place: Place) -> Outcome {
    let state = place.state().await?;
    let spot = Spot::of_house(Kind::Mode, "architect");
    let first = put(&state, &spot, json!({"name": "one"})).await?;
    put(&state, &spot, json!({"name": "two"})).await?;
    let draft = state.change().await?;
    let stale = draft.expect(&spot, first);
    assert!(matches!(&stale, Err(StateError::Stale { expected: 1, found: 2, .. })), "{stale:?}");
    assert!(draft.expect(&spot, 2).is_ok());
    assert!(draft.expect(&Spot::of_house(Kind::Mode, "other"), 0).is_ok(), "0 = there was none");
    assert!(draft.expect(&spot, 0).is_err());
    Ok(())
}

async fn gate_16_versions_say_who_when_why_and_what(place: Place) -> Outcome {
    let state = place.state().await?;
    let (spot, other) = (Spot::of_house(Kind::Role, "worker"), Spot::of_house(Kind::Role, "pm"));
    let mut draft = state.change().await?;
    draft.put(spot.clone(), json!(1));
    draft.put(other.clone(), json!(2));
    draft.commit(&author("ada"), "two roles", Some("the audit asked")).await?;
    let mut draft = state.change().await?;
    draft.put(spot.clone(), json!(3));
    draft.remove(other.clone());
    draft.commit(&author("bert"), "one role", None).await?;
    let history = state.history(10, None).await?;
    let told: Vec<_> = history.iter().map(|one| (one.version, one.author.as_str(), one.reason.as_deref())).collect();
    assert_eq!(told, [(2, "bert", None), (1, "ada", Some("the audit asked"))]);
    assert_eq!(history.first().map(|one| (one.time, one.door.as_str())), Some((at(1), "cli")));
    assert_eq!(state.history(10, Some(2)).await?.len(), 1, "older than the second");
    let told = |changes: Vec<toolwarden_store::state::Change>| -> Vec<_> {
        changes.into_iter().map(|change| (change.place.name, change.former, change.latter)).collect()
    };
    let (pm, worker) = ("pm".to_owned(), "worker".to_owned());
    assert_eq!(
        told(state.changes(1, 2).await?),
        [(pm, Some(json!(2)), None), (worker.clone(), Some(json!(1)), Some(json!(3)))]
    );
    assert_eq!(told(state.changes(0, 2).await?), [(worker, None, Some(json!(3)))], "what came and went is not shown");
    assert!(matches!(state.changes(0, 3).await, Err(StateError::NoVersion(3))));
    Ok(())
}

async fn gate_16_going_back_is_the_next_version(place: Place) -> Outcome {
    let state = place.state().await?;
    let (spot, other) = (lists("ada"), lists("bert"));
    put(&state, &spot, json!(["a:b"])).await?;
    let wanted = state.records().await?.by_place;
    put(&state, &spot, json!(["a:b", "*:*"])).await?;
    put(&state, &other, json!(["c:d"])).await?;
    let draft = state.back_to(1).await?;
    let done = draft.commit(&author("ada"), "back to version 1", None).await?;
    assert_eq!(done.version, 4);
    let content = |records: &toolwarden_store::state::Records| -> Vec<_> {
        records.by_place.iter().map(|(place, record)| (place.clone(), record.content.clone())).collect()
    };
    let now = state.records().await?;
    assert!(content(&now).into_iter().eq(wanted.into_iter().map(|(place, record)| (place, record.content))));
    assert!(matches!(state.back_to(9).await, Err(StateError::NoVersion(9))));
    Ok(())
}

async fn catching_up_gives_what_reading_everything_gives(place: Place) -> Outcome {
    let state = place.state().await?;
    let mut known = state.records().await?;
    assert!(state.catch_up(&mut known).await?.is_empty());
    for round in 0..10_u64 {
        put(&state, &lists(&format!("user{}", round % 3)), json!([round])).await?;
        let mut draft = state.change().await?;
        let spot = Spot::of_house(Kind::Tool, format!("s:t{}", round % 2));
        if round % 3 == 0 {
            draft.remove(spot)
        } else {
            draft.put(spot, json!({"enabled": false}))
        }
        draft.commit(&author("ada"), "a tool", None).await?;
        if round % 4 == 0 {
            let changed = state.catch_up(&mut known).await?;
            assert!(!changed.is_empty());
            assert_eq!(known, state.records().await?, "{round}");
        }
    }
    Ok(())
}

async fn rows_swapped_between_users_are_refused(place: Place) -> Outcome {
    let state = place.state().await?;
    put(&state, &lists("ada"), json!(["*:*"])).await?;
    put(&state, &lists("mallory"), json!([])).await?;
    let thefts = [
        "UPDATE records SET sealed = (SELECT sealed FROM records WHERE owner = 'ada') WHERE owner = 'mallory'",
        "UPDATE records SET version = 1 WHERE owner = 'mallory'",
    ];
    for theft in thefts {
        assert_eq!(place.execute(theft).await?, 1);
        let refused = state.records().await;
        assert!(matches!(&refused, Err(StateError::NotAuthentic(spot)) if spot.owner == "mallory"), "{refused:?}");
        assert!(state.change().await.is_err(), "nothing is changed on top of it");
    }
    assert_eq!(place.execute("UPDATE changes SET latter = former WHERE version = 1").await?, 1);
    assert_eq!(place.execute("UPDATE changes SET former = latter WHERE version = 2").await?, 1);
    assert!(matches!(state.changes(1, 2).await, Err(StateError::NotAuthentic(_))));
    Ok(())
}

async fn a_stolen_database_says_nothing_and_another_key_opens_nothing(place: Place) -> Outcome {
    let state = place.state().await?;
    let spot = Spot::of_house(Kind::Server, "github");
    put(&state, &spot, json!({"env": {"GITHUB_TOKEN": "ghp_verysecret"}})).await?;
    for column in ["SELECT sealed FROM records", "SELECT latter FROM changes"] {
        let stolen = place.blobs(column).await?;
        assert!(!stolen.is_empty());
        assert!(!stolen.iter().any(|bytes| String::from_utf8_lossy(bytes).contains("verysecret")));
    }
    let other = Arc::new(FileKeyring::open(&place.base().join("other"))?);
    let foreign = State::over(place.database().await?, other);
    let refused = foreign.records().await.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(refused.contains("server `github`") && refused.contains("the key is another one"), "{refused}");
    assert!(!refused.contains("verysecret"));
    assert!(state.records().await.is_ok(), "nothing was destroyed");
    Ok(())
}

on_both!(
    a_change_counts_and_one_that_changes_nothing_makes_no_version,
    fifty_writers_at_once_lose_nothing,
    a_change_of_what_is_no_longer_so_is_refused,
    gate_16_versions_say_who_when_why_and_what,
    gate_16_going_back_is_the_next_version,
    catching_up_gives_what_reading_everything_gives,
    rows_swapped_between_users_are_refused,
    a_stolen_database_says_nothing_and_another_key_opens_nothing,
);
