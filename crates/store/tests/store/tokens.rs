//! Tokens and the feed: counted exactly, revoked everywhere, not to be widened by whoever can write rows.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolwarden_core::{Bearer, Claims, NewToken, TOKEN_BYTES};
use toolwarden_store::KeyRow;
use toolwarden_store::state::{Author, Counted, Feed, Kind, Place as Spot, State, Tokens};

use crate::kit::{Outcome, Place, at, on_both};

/// How long a change may take to be seen. Much longer than it does: this machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

fn author() -> Author {
    Author { user: "ada".to_owned(), door: "cli".to_owned(), time: at(1) }
}

fn worker() -> Claims {
    Claims {
        role: Some("worker".to_owned()),
        task: Some("t1".to_owned()),
        job: Some("j1".to_owned()),
        max_calls: Some(20),
        ..Claims::of(Bearer::Agent)
    }
}

async fn issue(state: &State, number: u8, claims: &Claims) -> Result<NewToken, Box<dyn std::error::Error>> {
    let token = NewToken::of_random(&[number; TOKEN_BYTES]);
    state.issue_token(&author(), &token.id, token.digest, claims).await?;
    Ok(token)
}

async fn all(state: &State) -> Result<Tokens, Box<dyn std::error::Error>> {
    let mut tokens = Tokens::default();
    state.catch_up_tokens(&mut tokens).await?;
    Ok(tokens)
}

/// Waits for an effect, with a cap.
async fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.is_ok()
}

async fn gate_3_a_token_is_kept_rotated_and_revoked(place: Place) -> Outcome {
    let state = place.state().await?;
    assert!(!all(&state).await?.any_was_issued());
    let token = issue(&state, 1, &worker()).await?;
    let tokens = all(&state).await?;
    let kept = tokens.by_id.get(&token.id).ok_or("it is kept")?;
    assert_eq!((&kept.claims, kept.digest.clone()), (&worker(), token.digest.to_string()));
    assert_eq!((kept.issued_at, kept.issued_by.as_str(), kept.revoked_at), (at(1), "ada", None));
    let other = NewToken::of_random(&[9; TOKEN_BYTES]);
    assert!(state.rotate_token(&token.id, other.digest, &[]).await?);
    let rotated = all(&state).await?.by_id.get(&token.id).cloned().ok_or("it is kept")?;
    assert_eq!((&rotated.claims, rotated.digest.clone()), (&worker(), other.digest.to_string()));
    assert!(state.revoke_token(&token.id, at(5)).await?);
    assert!(!state.revoke_token(&token.id, at(6)).await? && !state.revoke_token("nobody", at(6)).await?);
    assert!(!state.rotate_token(&token.id, token.digest, &[]).await?, "what is revoked does not come back");
    let revoked = all(&state).await?;
    assert_eq!(revoked.by_id.get(&token.id).and_then(|token| token.revoked_at), Some(at(5)));
    assert!(revoked.any_was_issued());
    assert!(state.issue_token(&author(), &token.id, token.digest, &worker()).await.is_err(), "ids are used once");
    Ok(())
}

async fn gate_3_so_many_calls_and_no_more_whoever_counts(place: Place) -> Outcome {
    let states = [place.state().await?, place.state().await?];
    let [here, there] = &states;
    let token = issue(here, 1, &worker()).await?;
    let mut calls = tokio::task::JoinSet::new();
    for number in 0..60 {
        let state = states.get(number % 2).cloned().ok_or("two states")?;
        let id = token.id.clone();
        calls.spawn(async move { state.count_call(&id, 20).await });
    }
    let mut taken = Vec::new();
    while let Some(counted) = calls.join_next().await {
        if let Counted::Taken(number) = counted?? {
            taken.push(number);
        }
    }
    taken.sort_unstable();
    assert!(taken.iter().copied().eq(1..=20), "{taken:?}");
    let other = issue(here, 2, &worker()).await?;
    assert_eq!(here.count_call(&other.id, 20).await?, Counted::Taken(1));
    there.revoke_token(&other.id, at(2)).await?;
    assert_eq!(here.count_call(&other.id, 20).await?, Counted::NoneLeft);
    Ok(())
}

async fn gate_4_rows_that_were_changed_are_nobodys(place: Place) -> Outcome {
    let state = place.state().await?;
    let (worker_token, pm) = (issue(&state, 1, &worker()).await?, Claims::of(Bearer::Person));
    let pm = issue(&state, 2, &pm).await?;
    // The worker's row gets the claims of the other, and the other's row the secret of the worker.
    let thefts = [
        "UPDATE tokens SET sealed = (SELECT sealed FROM tokens ORDER BY id DESC LIMIT 1) \
         WHERE id = (SELECT id FROM tokens ORDER BY id LIMIT 1)",
        "UPDATE tokens SET digest = 'aa' WHERE id = (SELECT id FROM tokens ORDER BY id DESC LIMIT 1)",
    ];
    for theft in thefts {
        assert_eq!(place.execute(theft).await?, 1);
    }
    let tokens = all(&state).await?;
    assert!(tokens.by_id.is_empty() && tokens.any_was_issued(), "{tokens:?}");
    let mut named = tokens.not_authentic.clone();
    named.sort();
    let mut ids = vec![worker_token.id, pm.id];
    ids.sort();
    assert_eq!(named, ids);
    Ok(())
}

async fn a_stolen_database_holds_no_token(place: Place) -> Outcome {
    let state = place.state().await?;
    let token = issue(&state, 1, &worker()).await?;
    let text = token.text.reveal_to_upstream().to_owned();
    let secret = text.rsplit('_').next().unwrap_or_default();
    let stolen = place.blobs("SELECT sealed FROM tokens").await?;
    let told = stolen.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect::<String>();
    assert!(!told.is_empty() && !told.contains(secret) && !told.contains("worker"));
    let tokens = all(&state).await?;
    assert!(!format!("{tokens:?}").contains(secret));
    Ok(())
}

async fn allow_12_what_one_gateway_changes_the_other_knows(place: Place) -> Outcome {
    let (here, there) = (place.state().await?, place.state().await?);
    let feed = Feed::start(there).await?;
    let mut versions = feed.versions();
    assert_eq!(*versions.borrow_and_update(), 0);
    let spot = Spot::of_house(Kind::Setting, "a.b");
    let mut draft = here.change().await?;
    draft.put(spot.clone(), json!(true));
    draft.commit(&author(), "a setting", None).await?;
    let token = issue(&here, 1, &worker()).await?;
    assert!(tokio::time::timeout(PATIENCE, versions.changed()).await.is_ok());
    assert_eq!(*versions.borrow_and_update(), 1);
    assert!(feed.known().records.by_place.contains_key(&spot));
    assert!(eventually(|| feed.known().tokens.by_id.contains_key(&token.id)).await);
    here.revoke_token(&token.id, at(3)).await?;
    let is_revoked = || feed.known().tokens.by_id.get(&token.id).is_some_and(|token| token.revoked_at.is_some());
    assert!(eventually(is_revoked).await);
    // Whoever changed something here need not wait.
    let other = issue(&here, 2, &worker()).await?;
    feed.catch_up().await?;
    assert!(feed.known().tokens.by_id.contains_key(&other.id));
    assert!(eventually(|| feed.age() < Duration::from_secs(1)).await);
    Ok(())
}

async fn a_record_that_is_not_authentic_does_not_keep_a_token_valid(place: Place) -> Outcome {
    let state = place.state().await?;
    let token = issue(&state, 1, &worker()).await?;
    let feed = Feed::start(place.state().await?).await?;
    let mut draft = state.change().await?;
    draft.put(Spot::of_user(Kind::User, "ada", "lists"), json!([]));
    draft.commit(&author(), "lists", None).await?;
    feed.catch_up().await?;
    place.execute("UPDATE records SET owner = 'mallory'").await?;
    place.execute("UPDATE changes SET owner = 'mallory', version = 2").await?;
    place.execute("UPDATE counters SET value = 2 WHERE name = 'policy'").await?;
    state.revoke_token(&token.id, at(3)).await?;
    assert!(feed.catch_up().await.is_err());
    assert!(feed.known().tokens.by_id.get(&token.id).is_some_and(|token| token.revoked_at.is_some()));
    assert_eq!(feed.known().records.version, 1, "the last good one stays");
    Ok(())
}

async fn roots_are_replaced_as_a_whole_by_whoever_saw_the_last(place: Place) -> Outcome {
    let (one, other) = (place.database().await?, place.database().await?);
    assert!(one.keys().await?.is_empty());
    let key = |id, state: &str| KeyRow { id, state: state.to_owned(), master: "file".to_owned(), sealed: vec![0, 255] };
    let (first, second) = (vec![key(1, "current")], vec![key(1, "former"), key(2, "current")]);
    // Two processes that start at once: one of them makes the first root, the other takes it.
    let (a, b) = tokio::join!(one.replace_keys(&[], &first), other.replace_keys(&[], &second));
    assert!(a? != b?);
    let now = one.keys().await?;
    assert!(now == first || now == second);
    assert!(one.replace_keys(&now, &second).await?);
    assert_eq!(other.keys().await?, second);
    assert!(!other.replace_keys(&[], &first).await?);
    assert_eq!(one.keys().await?, second);
    Ok(())
}

on_both!(
    gate_3_a_token_is_kept_rotated_and_revoked,
    gate_3_so_many_calls_and_no_more_whoever_counts,
    gate_4_rows_that_were_changed_are_nobodys,
    a_stolen_database_holds_no_token,
    allow_12_what_one_gateway_changes_the_other_knows,
    a_record_that_is_not_authentic_does_not_keep_a_token_valid,
    roots_are_replaced_as_a_whole_by_whoever_saw_the_last,
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_cut_off_from_its_database_knows_how_old_its_knowledge_is() -> Outcome {
    let mut place = Place::on_postgres()?;
    let feed = Arc::new(Feed::start(place.state().await?).await?);
    assert!(eventually(|| feed.age() < Duration::from_millis(900)).await);
    place.stop_database()?;
    assert!(eventually(|| feed.age() > Duration::from_secs(2)).await);
    assert!(feed.catch_up().await.is_err());
    place.restart_database()?;
    assert!(eventually(|| feed.age() < Duration::from_secs(1)).await);
    // It hears again, too.
    let state = place.state().await?;
    let token = issue(&state, 1, &worker()).await?;
    assert!(eventually(|| feed.known().tokens.by_id.contains_key(&token.id)).await);
    Ok(())
}
