//! Rotation of roots over real rows: stopped anywhere it goes on, late ones seal by the new root, nothing is lost.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolwarden_core::{Bearer, Claims, Grant, GrantClaims, Keyring, NewToken, Secret, TOKEN_BYTES, TaskStage};
use toolwarden_store::state::{
    Author, Counted, Feed, Kind, NewApproval, NewHeldTask, Place as Spot, Sealed, State, Tokens,
};
use toolwarden_store::{Database, KeyRow, MasterKey, Phase, Roots, RootsError, Standing, StateError};
use toolwarden_vault::{
    Asking, KeySource, KeyState, Master, Ring, RingError, Step, StoredKey, Supplies, add_waiting, head_of,
    make_current, next_step, retire, root_of,
};

use crate::kit::{Outcome, Place, at, on_both};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// How long a change may take to be seen. Much longer than it does: this machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);
/// More than two transactions of each kind.
const MANY: u8 = 210;

/// A process that supplies nothing: the published key needs nothing, and is the same in all of them.
struct Process;

impl Supplies for Process {
    fn variable(&self, _: &str) -> Option<Secret> {
        None
    }

    fn passphrase(&self, _: Asking) -> std::result::Result<Secret, String> {
        Err("nobody is here".to_owned())
    }

    fn directory(&self) -> &Path {
        Path::new("/nowhere")
    }
}

#[derive(Debug)]
struct Keys {
    ring: Arc<Ring>,
    master: Master,
}

fn told(error: &RingError) -> RootsError {
    RootsError(error.to_string())
}

fn stored(rows: &[KeyRow]) -> std::result::Result<Vec<StoredKey>, RootsError> {
    let stored = |row: &KeyRow| {
        let state = KeyState::from_word(&row.state).ok_or(RootsError("unknown state".to_owned()))?;
        Ok(StoredKey { id: row.id, state, master: row.master.clone(), sealed: row.sealed.clone() })
    };
    rows.iter().map(stored).collect()
}

fn row(key: &StoredKey) -> KeyRow {
    KeyRow { id: key.id, state: key.state.as_str().to_owned(), master: key.master.clone(), sealed: key.sealed.clone() }
}

impl Roots for Keys {
    fn take(&self, kept: &[KeyRow]) -> std::result::Result<(), RootsError> {
        self.ring.take(&self.master, &stored(kept)?).map(drop).map_err(|error| told(&error))
    }

    fn standing(&self, kept: &[KeyRow]) -> std::result::Result<Standing, RootsError> {
        let (phase, root) = match next_step(&stored(kept)?).map_err(|error| told(&error))? {
            Step::MakeCurrent { id } => (Phase::Waiting, id),
            Step::SealAgain { current } => (Phase::Sealing, current),
            Step::Nothing => (Phase::Settled, kept.iter().map(|key| key.id).max().unwrap_or_default()),
        };
        Ok(Standing { phase, root })
    }

    fn advanced(&self, kept: &[KeyRow]) -> std::result::Result<Vec<KeyRow>, RootsError> {
        let stored = stored(kept)?;
        let next = match next_step(&stored).map_err(|error| told(&error))? {
            Step::Nothing => add_waiting(&self.master, &stored),
            Step::MakeCurrent { id } => make_current(&stored, id),
            Step::SealAgain { .. } => retire(&stored),
        };
        Ok(next.map_err(|error| told(&error))?.iter().map(row).collect())
    }

    fn head(&self) -> Vec<u8> {
        head_of(self.ring.current()).to_vec()
    }

    fn root_of(&self, head: &[u8]) -> Option<u32> {
        root_of(head)
    }

    fn master_key(&self) -> MasterKey {
        MasterKey {
            backend: self.master.backend().as_str(),
            source: "plaintext".to_owned(),
            place: "nowhere".to_owned(),
            mark: self.master.mark().to_owned(),
            is_protected: false,
        }
    }
}

/// A gateway that starts now; its ring is handed out beside it.
async fn gateway(place: &Place) -> Result<(State, Arc<Ring>)> {
    let database = place.database().await?;
    let keys = open(&database, KeySource::Plaintext).await?;
    let ring = keys.ring.clone();
    Ok((State::over(database, ring.clone()).with_roots(Arc::new(keys)), ring))
}

async fn open(database: &Database, source: KeySource) -> Result<Keys> {
    let master = source.obtain(&Process, &[])?;
    let (_, first) = Ring::first(&master)?;
    database.replace_keys(&[], &[row(&first)]).await?;
    let ring = Arc::new(Ring::open(&master, &stored(&database.keys().await?)?)?);
    Ok(Keys { ring, master })
}

fn author() -> Author {
    Author { user: "ada".to_owned(), door: "cli".to_owned(), time: at(1) }
}

fn claims(number: u8) -> Claims {
    Claims { role: Some(format!("role{number}")), max_calls: Some(1000), ..Claims::of(Bearer::Agent) }
}

async fn issue(state: &State, number: u8) -> Result<String> {
    let token = NewToken::of_random(&[number; TOKEN_BYTES]);
    state.issue_token(&author(), &token.id, token.digest, &claims(number)).await?;
    Ok(token.id)
}

async fn put(state: &State, name: &str, content: serde_json::Value) -> Result<()> {
    let mut draft = state.change().await?;
    draft.put(Spot::of_user(Kind::User, "ada", name), content);
    draft.commit(&author(), "a change", None).await?;
    Ok(())
}

/// Many records, each changed once more, and many tokens.
async fn fill(state: &State) -> Result<()> {
    for round in ["one", "two"] {
        let mut draft = state.change().await?;
        for number in 0..MANY {
            let spot = Spot::of_user(Kind::User, format!("user{number}"), "lists");
            draft.put(spot, json!({ "round": round, "number": number }));
        }
        draft.commit(&author(), "many", None).await?;
    }
    for number in 0..MANY {
        issue(state, number).await?;
    }
    Ok(())
}

/// Everything can be read, and says what it said.
async fn check(state: &State) -> Outcome {
    let records = state.records().await?;
    assert_eq!(records.by_place.len(), usize::from(MANY));
    assert!(records.by_place.values().all(|record| record.content.get("round") == Some(&json!("two"))));
    let changes = state.changes(1, 2).await?;
    assert_eq!(changes.len(), usize::from(MANY));
    let told = |value: &Option<serde_json::Value>| value.as_ref().and_then(|value| value.get("round").cloned());
    assert!(changes.iter().all(|change| told(&change.former) == Some(json!("one"))));
    let mut tokens = Tokens::default();
    state.catch_up_tokens(&mut tokens).await?;
    assert!(tokens.by_id.len() == usize::from(MANY) && tokens.not_authentic.is_empty(), "{:?}", tokens.not_authentic);
    Ok(())
}

/// Rotates to the end, as one who is not interrupted.
async fn rotate(state: &State) -> Result<Standing> {
    let mut standing = state.advance(state.standing().await?, 0).await?;
    while standing.phase != Phase::Settled {
        let sealed = if standing.phase == Phase::Sealing { state.seal_again(u64::MAX).await? } else { <_>::default() };
        standing = state.advance(standing, sealed.unreadable).await?;
    }
    Ok(standing)
}

async fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.is_ok()
}

async fn vault_4_a_rotation_that_stops_anywhere_goes_on(place: Place) -> Outcome {
    let (state, _) = gateway(&place).await?;
    fill(&state).await?;
    let everything = Sealed { records: MANY.into(), changes: 3 * u64::from(MANY), tokens: MANY.into(), approvals: 0 };
    let mut steps = Vec::new();
    for root in 2..4 {
        loop {
            // Nothing but the store is left of the process that did the last step.
            let (process, _) = gateway(&place).await?;
            let standing = process.standing().await?;
            steps.push(standing.phase);
            let next = match standing.phase {
                // One transaction, and it is gone.
                Phase::Sealing => {
                    let sealed = process.seal_again(1).await?;
                    if sealed.is_through { process.advance(standing, 0).await? } else { standing }
                }
                Phase::Settled | Phase::Waiting => process.advance(standing, 0).await?,
            };
            check(&process).await?;
            check(&state).await?;
            assert_eq!(next.root, root, "one rotation, not two");
            if next.phase == Phase::Settled {
                break;
            }
        }
        let inventory = state.inventory().await?;
        let found: Vec<_> = inventory.roots.iter().map(|(row, sealed)| (row.state.as_str(), *sealed)).collect();
        let (last, former) = found.split_last().ok_or("there are roots")?;
        assert_eq!(*last, ("current", everything));
        assert!(former.iter().all(|root| *root == ("retired", Sealed::default())), "{former:?}");
        assert_eq!(inventory.unknown, Sealed::default());
    }
    assert!(steps.iter().filter(|phase| **phase == Phase::Sealing).count() > 12, "{steps:?}");
    Ok(())
}

async fn vault_4_whoever_hears_late_reads_and_seals_by_the_new_root(place: Place) -> Outcome {
    let ((one, _), (late, ring)) = (gateway(&place).await?, gateway(&place).await?);
    let token = issue(&one, 1).await?;
    let waiting = one.advance(one.standing().await?, 0).await?;
    let sealing = one.advance(waiting, 0).await?;
    assert_eq!((sealing.phase, ring.latest()), (Phase::Sealing, 1), "nobody told it");
    // Sealed after the change of roots, so by the new one, whoever does it.
    issue(&late, 2).await?;
    assert_eq!((ring.current(), ring.latest()), (2, 2));
    put(&late, "lists", json!([1])).await?;
    let sealed = place.blobs("SELECT sealed FROM records").await?;
    assert!(sealed.iter().all(|value| root_of(value) == Some(2)));
    // One that only reads meets nothing it cannot open.
    let (reader, ring) = gateway(&place).await?;
    let third = one.advance(sealing, 0).await?;
    assert_eq!(third, sealing, "nothing is retired while a value is left");
    assert_eq!(one.seal_again(u64::MAX).await?.values, 1);
    let settled = one.advance(sealing, 0).await?;
    rotate(&one).await?;
    issue(&one, 3).await?;
    assert_eq!((settled.phase, ring.latest()), (Phase::Settled, 2));
    let mut tokens = Tokens::default();
    reader.catch_up_tokens(&mut tokens).await?;
    assert!(tokens.by_id.contains_key(&token) && tokens.by_id.len() == 3 && tokens.not_authentic.is_empty());
    assert_eq!(reader.records().await?.by_place.len(), 1);
    assert_eq!(reader.changes(0, 1).await?.len(), 1);
    Ok(())
}

async fn vault_4_running_gateways_take_roots_by_themselves(place: Place) -> Outcome {
    let ((one, _), (other, ring)) = (gateway(&place).await?, gateway(&place).await?);
    let token = issue(&one, 1).await?;
    let feed = Feed::start(other).await?;
    let waiting = one.advance(one.standing().await?, 0).await?;
    assert!(eventually(|| ring.latest() == 2).await);
    assert_eq!(ring.current(), 1, "it opens, and does not seal yet");
    let sealing = one.advance(waiting, 0).await?;
    assert!(eventually(|| ring.current() == 2).await);
    one.seal_again(u64::MAX).await?;
    assert_eq!(one.advance(sealing, 0).await?.phase, Phase::Settled);
    // What was sealed again is no news, and stays known.
    feed.catch_up().await?;
    assert!(feed.known().tokens.by_id.contains_key(&token));
    one.revoke_token(&token, at(3)).await?;
    let is_revoked = || feed.known().tokens.by_id.get(&token).is_some_and(|token| token.revoked_at.is_some());
    assert!(eventually(is_revoked).await);
    Ok(())
}

async fn vault_4_two_who_rotate_at_once_do_one_rotation(place: Place) -> Outcome {
    let ((one, _), (other, _)) = (gateway(&place).await?, gateway(&place).await?);
    fill(&one).await?;
    let from = one.standing().await?;
    let (a, b) = tokio::join!(one.advance(from, 0), other.advance(from, 0));
    let (a, b) = (a?, b?);
    assert_eq!((a, b), (Standing { phase: Phase::Waiting, root: 2 }, a));
    let (a, b) = tokio::join!(one.advance(a, 0), other.advance(b, 0));
    let (a, b) = (a?, b?);
    assert_eq!((a.phase, b), (Phase::Sealing, a));
    let (c, d) = tokio::join!(one.seal_again(u64::MAX), other.seal_again(u64::MAX));
    assert_eq!(c?.values + d?.values, 5 * u64::from(MANY), "each value once");
    let (a, b) = tokio::join!(one.advance(a, 0), other.advance(b, 0));
    assert_eq!((a?, b?.root), (Standing { phase: Phase::Settled, root: 2 }, 2));
    check(&one).await?;
    check(&other).await
}

async fn vault_4_changes_meanwhile_are_kept(place: Place) -> Outcome {
    let ((one, _), (other, _)) = (gateway(&place).await?, gateway(&place).await?);
    fill(&one).await?;
    let busy = tokio::spawn(async move {
        let mut last = Vec::new();
        for number in 0..MANY {
            let id = NewToken::of_random(&[number; TOKEN_BYTES]).id;
            // Another secret, whose digest is part of the seal; and a call, which is counted beside it.
            let fresh = NewToken::of_random(&[number.wrapping_add(20); TOKEN_BYTES]).digest;
            let rotated = other.rotate_token(&id, fresh, &[]).await.unwrap_or_default();
            let counted = other.count_call(&id, 1000).await.ok();
            last.push((id, fresh.to_string(), rotated && counted == Some(Counted::Taken(1))));
        }
        last
    });
    for root in 2..5 {
        assert_eq!(rotate(&one).await?, Standing { phase: Phase::Settled, root });
    }
    let mut tokens = Tokens::default();
    let last = busy.await?;
    one.catch_up_tokens(&mut tokens).await?;
    for (id, digest, is_done) in last {
        let token = tokens.by_id.get(&id).ok_or("it opens")?;
        assert!(is_done && token.digest == digest && token.calls == 1, "{token:?}");
    }
    check(&one).await
}

async fn vault_4_what_does_not_open_stays_and_stops_nothing(place: Place) -> Outcome {
    let (state, _) = gateway(&place).await?;
    for number in 1..4 {
        issue(&state, number).await?;
    }
    let theft = "UPDATE tokens SET digest = 'aa' WHERE id = (SELECT id FROM tokens ORDER BY id LIMIT 1)";
    assert_eq!(place.execute(theft).await?, 1);
    let changed = place.blobs("SELECT sealed FROM tokens WHERE digest = 'aa'").await?;
    for root in 2..4 {
        assert_eq!(rotate(&state).await?, Standing { phase: Phase::Settled, root });
        let inventory = state.inventory().await?;
        let sealed: Vec<u64> = inventory.roots.iter().map(|(_, sealed)| sealed.tokens).collect();
        assert!(sealed.first() == Some(&1) && sealed.last() == Some(&2), "{sealed:?}");
    }
    assert_eq!(place.blobs("SELECT sealed FROM tokens WHERE digest = 'aa'").await?, changed);
    Ok(())
}

async fn vault_4_roots_of_another_master_are_refused_and_nothing_changes(place: Place) -> Outcome {
    let (state, ring) = gateway(&place).await?;
    issue(&state, 1).await?;
    let wrong = KeySource::Memory.obtain(&Process, &[])?;
    let database = place.database().await?;
    let foreign = Keys { ring: ring.clone(), master: wrong };
    let stranger = State::over(database.clone(), ring.clone() as Arc<dyn Keyring>).with_roots(Arc::new(foreign));
    let before = database.keys().await?;
    let refused = stranger.advance(stranger.standing().await?, 0).await;
    assert!(matches!(&refused, Err(StateError::Roots(error)) if error.0.contains("sealed by the master key")));
    assert_eq!(database.keys().await?, before);
    // Rows that somebody changed are not taken; the last good ones go on.
    place.execute("UPDATE keys SET state = 'former'").await?;
    place.execute("UPDATE counters SET value = value + 1 WHERE name = 'keys'").await?;
    assert!(matches!(state.records().await, Err(StateError::Roots(_))));
    assert!(state.advance(Standing { phase: Phase::Settled, root: 1 }, 0).await.is_err());
    place.execute("UPDATE keys SET state = 'current'").await?;
    assert_eq!((state.records().await?.version, ring.current()), (0, 1));
    Ok(())
}

/// What is kept of held calls is sealed again, too: the calls, the answers, grants and tasks.
async fn vault_4_held_calls_and_what_belongs_to_them_are_sealed_again(place: Place) -> Outcome {
    let (state, _) = gateway(&place).await?;
    let call = crate::approvals::call("one");
    let (now, expires_at) = (at(1), at(1000));
    let new = NewApproval { id: "one", call_mark: "m", caller_mark: "ada", call: &call, now, expires_at };
    state.hold_call(&new).await?;
    state.answer_approval("one", &crate::approvals::answer(true, "bob", 2), expires_at).await?;
    let claims = GrantClaims { server: "notes".to_owned(), user: Some("ada".to_owned()), ..GrantClaims::default() };
    let grant =
        Grant { id: "grant".to_owned(), claims, issued_at: now, expires_at, calls_left: None, revoked_at: None };
    state.issue_grant(&grant).await?;
    let task = NewHeldTask { id: "tw-one", approval: "one", caller_mark: "ada", now, expires_at };
    let made = state.make_task(task).await?.ok_or("a task")?;
    let mut given = made.clone();
    given.stage = TaskStage::Result("{\"content\":[]}".to_owned());
    assert!(state.move_task(&made, &given).await?);
    for _ in 0..2 {
        rotate(&state).await?;
        let approval = state.approval("one").await?.ok_or("it is kept")?;
        assert_eq!((approval.call, approval.answer.map(|answer| answer.by)), (call.clone(), Some("bob".to_owned())));
        assert_eq!(state.grants_for("notes", at(3)).await?, std::slice::from_ref(&grant));
        let task = state.held_task("tw-one", "ada", at(3)).await?.ok_or("it is kept")?;
        assert_eq!(task.stage, given.stage);
        let inventory = state.inventory().await?;
        let current = inventory.roots.last().ok_or("there are roots")?;
        assert_eq!((current.0.state.as_str(), current.1.approvals), ("current", 4));
    }
    Ok(())
}

on_both!(
    vault_4_held_calls_and_what_belongs_to_them_are_sealed_again,
    vault_4_a_rotation_that_stops_anywhere_goes_on,
    vault_4_whoever_hears_late_reads_and_seals_by_the_new_root,
    vault_4_running_gateways_take_roots_by_themselves,
    vault_4_two_who_rotate_at_once_do_one_rotation,
    vault_4_changes_meanwhile_are_kept,
    vault_4_what_does_not_open_stays_and_stops_nothing,
    vault_4_roots_of_another_master_are_refused_and_nothing_changes,
);
