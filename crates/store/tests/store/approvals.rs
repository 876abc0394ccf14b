//! Held calls in both databases: kept once, answered once, used once, and not to be forged by whoever can write rows.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use toolwarden_core::{
    Agreement, AnswerScope, ApprovalNeeds, ApprovalState, HeldAnswer, HeldCall, HeldCaller, MachineVerdict, Opinion,
    Payer,
};
use toolwarden_store::state::{
    Approval, ApprovalFilter, Feed, Holding, MOST_HELD_BYTES_OF_ONE, MOST_HELD_OF_ONE, Moved, NewApproval, Standing,
    State, Whose,
};

use crate::kit::{Outcome, Place, at, on_both};

const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn call(text: &str) -> HeldCall {
    HeldCall {
        server: "notes".to_owned(),
        tool: "write_note".to_owned(),
        method: "tools/call".to_owned(),
        params: format!(r#"{{"name":"write_note","arguments":{{"text":"{text}"}}}}"#),
        claims: Some("writes a note".to_owned()),
        caller: HeldCaller { user: Some("ada".to_owned()), ..HeldCaller::default() },
        reason: "not_in_allowlist".to_owned(),
        message: "no allowlist entry matches".to_owned(),
        rule: None,
        candidates: vec!["notes:write_note".to_owned()],
        payers: vec![Payer::Person],
        policy_version: 1,
        anchor: None,
        definition: None,
        needs: ApprovalNeeds::default(),
        opinion: None,
        result: None,
    }
}

pub(crate) fn answer(is_approval: bool, by: &str, seconds: u64) -> HeldAnswer {
    HeldAnswer {
        is_approval,
        by: by.to_owned(),
        groups: Vec::new(),
        door: "cli".to_owned(),
        at: at(seconds),
        scope: AnswerScope::Once,
        note: Some("because".to_owned()),
        token: None,
    }
}

async fn hold(state: &State, id: &str, mark: &str, seconds: u64) -> Result<Holding, Box<dyn std::error::Error>> {
    hold_call(state, id, mark, seconds, call(mark)).await
}

async fn hold_call(
    state: &State,
    id: &str,
    mark: &str,
    seconds: u64,
    call: HeldCall,
) -> Result<Holding, Box<dyn std::error::Error>> {
    let new = NewApproval {
        id,
        call_mark: mark,
        caller_mark: "ada",
        call: &call,
        now: at(seconds),
        expires_at: at(seconds + 100),
    };
    Ok(state.hold_call(&new).await?)
}

async fn state_of(state: &State, id: &str) -> Result<ApprovalState, Box<dyn std::error::Error>> {
    Ok(state.approval(id).await?.ok_or("it is kept")?.state)
}

fn is_done(moved: &Moved) -> bool {
    matches!(moved, Moved::Done(_))
}

async fn review_3_a_call_is_held_once_and_kept_as_it_was(place: Place) -> Outcome {
    let state = place.state().await?;
    assert_eq!(hold(&state, "one", "a", 1).await?, Holding::Made);
    let Holding::There(there) = hold(&state, "two", "a", 2).await? else { return Err("it is there".into()) };
    assert_eq!((there.id.as_str(), there.state, &there.call), ("one", ApprovalState::Held, &call("a")));
    assert_eq!((there.held_at, there.expires_at), (at(1), at(101)));
    assert_eq!(hold(&state, "three", "b", 3).await?, Holding::Made);
    let all = state.approvals(&ApprovalFilter { limit: 10, ..ApprovalFilter::default() }).await?;
    let unreadable = all.unreadable;
    let ids: Vec<_> = all.approvals.iter().map(|approval| approval.id.as_str()).collect();
    assert_eq!((ids, unreadable), (vec!["three", "one"], 0));
    // Nobody looked, and it expired: the same call is held anew.
    assert_eq!(hold(&state, "four", "a", 200).await?, Holding::Made);
    assert_eq!(state_of(&state, "one").await?, ApprovalState::Expired);
    Ok(())
}

async fn review_4_an_approval_is_used_once(place: Place) -> Outcome {
    let state = place.state().await?;
    hold(&state, "one", "a", 1).await?;
    assert!(!is_done(&state.consume_approval("one", "serve-1", at(2)).await?), "nobody approved it");
    assert!(is_done(&state.answer_approval("one", &answer(true, "bob", 3), at(50)).await?));
    let tries = (0..100).map(|number| {
        let state = state.clone();
        tokio::spawn(async move { state.consume_approval("one", &format!("serve-{number}"), at(4)).await })
    });
    let mut taken = 0;
    for one in tries.collect::<Vec<_>>() {
        taken += usize::from(is_done(&one.await??));
    }
    assert_eq!(taken, 1);
    let again = state.answer_approval("one", &answer(true, "eve", 4), at(50)).await?;
    assert!(!is_done(&again), "whoever approves what is on its way permits nothing more");
    assert!(is_done(&state.move_approval("one", ApprovalState::Dispatched, at(5)).await?));
    assert!(!is_done(&state.move_approval("one", ApprovalState::Approved, at(5)).await?), "it left");
    assert!(is_done(&state.move_approval("one", ApprovalState::Succeeded, at(6)).await?));
    assert_eq!(hold(&state, "two", "a", 7).await?, Holding::Made, "the next one needs an answer of its own");
    Ok(())
}

async fn review_3_one_of_a_hundred_answers_counts_and_the_rest_learn_whose(place: Place) -> Outcome {
    let (one, other) = (place.state().await?, place.state().await?);
    hold(&one, "one", "a", 1).await?;
    let answers = (0..100).map(|number: u64| {
        let state = if number.is_multiple_of(2) { one.clone() } else { other.clone() };
        let given = answer(number.is_multiple_of(3), &format!("person {number}"), 2);
        tokio::spawn(async move { state.answer_approval("one", &given, at(50)).await })
    });
    let (mut done, mut told) = (Vec::new(), Vec::new());
    for one in answers.collect::<Vec<_>>() {
        match one.await?? {
            Moved::Done(approval) => done.push(*approval),
            Moved::Not(approval) => told.push(*approval),
            Moved::NoSuch => return Err("it is there".into()),
        }
    }
    let [winner] = done.as_slice() else { return Err(format!("{} answers counted", done.len()).into()) };
    let who = |approval: &Approval| approval.answer.as_ref().map(|answer| answer.by.clone());
    assert_eq!(told.len(), 99);
    assert!(told.iter().all(|approval| who(approval) == who(winner)));
    Ok(())
}

async fn review_4_what_expired_cannot_be_answered_or_used(place: Place) -> Outcome {
    let state = place.state().await?;
    hold(&state, "one", "a", 1).await?;
    assert!(!is_done(&state.answer_approval("one", &answer(true, "bob", 101), at(500)).await?));
    hold(&state, "two", "b", 1).await?;
    assert!(is_done(&state.answer_approval("two", &answer(true, "bob", 2), at(20)).await?));
    assert!(!is_done(&state.consume_approval("two", "serve-1", at(20)).await?));
    let ended: Vec<_> = state.expire_approvals(at(150)).await?.into_iter().map(|approval| approval.id).collect();
    assert_eq!(ended.len(), 2);
    assert!(state.expire_approvals(at(150)).await?.is_empty(), "each is ended by one");
    assert_eq!(state_of(&state, "two").await?, ApprovalState::Expired);
    Ok(())
}

async fn review_3_a_rejection_counts_and_three_of_them_end_the_asking(place: Place) -> Outcome {
    let state = place.state().await?;
    for (number, mark) in ["a", "b", "c"].into_iter().enumerate() {
        let seconds = u64::try_from(number)? * 10;
        assert_eq!(hold(&state, mark, mark, seconds).await?, Holding::Made);
        assert!(is_done(&state.answer_approval(mark, &answer(false, "bob", seconds + 1), at(10_000)).await?));
    }
    let Holding::There(there) = hold(&state, "again", "a", 30).await? else { return Err("it was rejected".into()) };
    let words = there.answer.and_then(|answer| answer.note);
    assert_eq!((there.state, words.as_deref()), (ApprovalState::Rejected, Some("because")));
    assert_eq!(hold(&state, "d", "d", 30).await?, Holding::Rejected { until: at(601) });
    assert_eq!(hold(&state, "d", "d", 602).await?, Holding::Made, "ten minutes after the first");
    Ok(())
}

async fn review_4_calls_of_a_gateway_that_is_gone_become_unknown(place: Place) -> Outcome {
    let state = place.state().await?;
    for (id, node) in [("one", "gone"), ("two", "here")] {
        hold(&state, id, id, 1).await?;
        state.answer_approval(id, &answer(true, "bob", 2), at(10_000)).await?;
        assert!(is_done(&state.consume_approval(id, node, at(3)).await?));
    }
    assert!(state.give_up_approvals(at(2), at(60)).await?.is_empty());
    state.approvals_are_on_their_way("here", &["two".to_owned()], at(50)).await?;
    let lost: Vec<_> = state.give_up_approvals(at(10), at(70)).await?.into_iter().map(|one| one.id).collect();
    assert_eq!(lost, ["one"]);
    let Holding::There(there) = hold(&state, "again", "one", 80).await? else { return Err("it counts".into()) };
    assert_eq!(there.state, ApprovalState::Unknown, "nobody makes it again without a person");
    assert!(is_done(&state.answer_approval("one", &answer(true, "bob", 81), at(10_000)).await?), "who can permit that");
    assert_eq!(state.approvals_at("here").await?.len(), 1);
    Ok(())
}

async fn so_many_calls_of_one_caller_wait_and_no_more(place: Place) -> Outcome {
    let state = place.state().await?;
    for number in 0..MOST_HELD_OF_ONE {
        let id = number.to_string();
        assert_eq!(hold(&state, &id, &id, 1).await?, Holding::Made);
    }
    assert_eq!(hold(&state, "more", "more", 1).await?, Holding::TooMany);
    state.move_approval("0", ApprovalState::Cancelled, at(2)).await?;
    assert_eq!(hold(&state, "more", "more", 3).await?, Holding::Made);
    Ok(())
}

async fn what_is_kept_of_one_caller_is_bounded_and_the_oldest_that_is_over_goes_first(place: Place) -> Outcome {
    let state = place.state().await?;
    let large = |mark: &str| HeldCall { params: format!("{{\"a\":\"{}\"}}", "x".repeat(250_000)), ..call(mark) };
    let mut made = 0;
    loop {
        let id = format!("large-{made}");
        if hold_call(&state, &id, &id, 1, large(&id)).await? == Holding::TooMany {
            break;
        }
        made += 1;
        assert!(made < 200, "nothing bounds the bytes of one caller");
    }
    assert!(made > 100 && made * 250_000 <= MOST_HELD_BYTES_OF_ONE, "{made}");
    // Others are not kept from theirs by that, and what was given up makes room for what comes.
    let round = |number: i64, which: &str| format!("{which}-{number}");
    for number in 0..made {
        state.move_approval(&round(number, "large"), ApprovalState::Cancelled, at(2)).await?;
    }
    for number in 0..made {
        let id = round(number, "second");
        assert_eq!(hold_call(&state, &id, &id, 3, large(&id)).await?, Holding::Made, "{number}");
        state.move_approval(&id, ApprovalState::Cancelled, at(4)).await?;
    }
    assert_eq!(hold_call(&state, "third", "third", 5, large("third")).await?, Holding::Made);
    let listed = state.approvals(&ApprovalFilter { limit: 1_000, ..ApprovalFilter::default() }).await?;
    assert!(listed.next.is_some(), "a page ends before it is too large");
    let (mut first, mut second) = (0, 0);
    for number in 0..made {
        first += i64::from(state.approval(&round(number, "large")).await?.is_some());
        second += i64::from(state.approval(&round(number, "second")).await?.is_some());
    }
    assert!(first < made && second == made, "the oldest go first: {first} and {second} of {made}");
    assert!(state.approval("third").await?.is_some());
    Ok(())
}

async fn pages_follow_each_other_and_whoever_is_named_finds_theirs_among_many(place: Place) -> Outcome {
    let state = place.state().await?;
    for number in 0..25_u64 {
        let mut call = call(&number.to_string());
        call.caller.user = Some(if number % 5 == 0 { "ada" } else { "eve" }.to_owned());
        call.needs.approvers = match number {
            7 => vec!["bob_".to_owned(), "group:ops".to_owned()],
            9 => vec!["bobx".to_owned()],
            _ => Vec::new(),
        };
        // Two at each moment: the id decides between them.
        assert_eq!(
            hold_call(&state, &format!("{number:02}"), &number.to_string(), 1 + number / 2, call).await?,
            Holding::Made
        );
    }
    let (mut ids, mut after) = (Vec::new(), None);
    loop {
        let page = state.approvals(&ApprovalFilter { limit: 4, after, ..ApprovalFilter::default() }).await?;
        ids.extend(page.approvals.iter().map(|approval| approval.id.clone()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    let expected: Vec<_> = (0..25).rev().map(|number| format!("{number:02}")).collect();
    assert_eq!(ids, expected, "each once, the newest first");
    for (user, named, found) in [
        ("ada", &["ada"][..], &["20", "15", "10", "05", "00"][..]),
        ("bob_", &["bob_"], &["07"]),
        ("carol", &["carol", "group:ops"], &["07"]),
        ("carol", &["carol", "group:op%"], &[]),
    ] {
        let whose = Whose { user: user.to_owned(), named: named.iter().map(|name| (*name).to_owned()).collect() };
        let filter = ApprovalFilter { whose: Some(whose), limit: 10, ..ApprovalFilter::default() };
        let page = state.approvals(&filter).await?;
        let ids: Vec<_> = page.approvals.iter().map(|approval| approval.id.as_str()).collect();
        assert_eq!(ids, found, "{user} {named:?}");
    }
    let version = state.approvals_version().await?;
    assert_eq!(state.approvals_version().await?, version);
    state.move_approval("00", ApprovalState::Cancelled, at(30)).await?;
    assert_ne!(state.approvals_version().await?, version);
    Ok(())
}

async fn an_approval_can_be_taken_back_until_it_is_used(place: Place) -> Outcome {
    let state = place.state().await?;
    hold(&state, "one", "a", 1).await?;
    assert!(is_done(&state.answer_approval("one", &answer(true, "bob", 2), at(50)).await?));
    assert!(!is_done(&state.move_approval("one", ApprovalState::Rejected, at(3)).await?), "nobody said so");
    assert!(!is_done(&state.answer_approval("one", &answer(false, "eve", 3), at(50)).await?), "the first one counts");
    assert!(!is_done(&state.take_back_approval("one", &answer(true, "bob", 3), at(50)).await?), "that is no no");
    assert!(is_done(&state.take_back_approval("one", &answer(false, "bob", 3), at(50)).await?));
    assert!(!is_done(&state.consume_approval("one", "serve-1", at(4)).await?));
    hold(&state, "two", "b", 5).await?;
    assert!(is_done(&state.answer_approval("two", &answer(true, "bob", 6), at(50)).await?));
    assert!(is_done(&state.consume_approval("two", "serve-1", at(7)).await?));
    assert!(!is_done(&state.take_back_approval("two", &answer(false, "bob", 8), at(50)).await?), "it is on its way");
    Ok(())
}

async fn an_approval_cannot_be_made_by_whoever_can_write_rows(place: Place) -> Outcome {
    let state = place.state().await?;
    hold(&state, "one", "a", 1).await?;
    hold(&state, "two", "b", 1).await?;
    place.execute("UPDATE approvals SET state = 'approved' WHERE id = 'one'").await?;
    assert!(state.consume_approval("one", "serve-1", at(2)).await.is_err(), "nobody answered it");
    state.answer_approval("two", &answer(true, "bob", 2), at(50)).await?;
    place.execute("UPDATE approvals SET answer = (SELECT answer FROM approvals WHERE id = 'two')").await?;
    assert!(state.consume_approval("one", "serve-1", at(3)).await.is_err(), "the answer is another call's");
    place.execute("UPDATE approvals SET call_mark = 'c' WHERE id = 'two'").await?;
    assert!(state.consume_approval("two", "serve-1", at(3)).await.is_err(), "the call is another one");
    let all = state.approvals(&ApprovalFilter { limit: 10, ..ApprovalFilter::default() }).await?;
    assert_eq!((all.approvals.len(), all.unreadable), (0, 2));
    Ok(())
}

async fn a_stolen_database_holds_no_argument_and_no_note(place: Place) -> Outcome {
    let state = place.state().await?;
    hold(&state, "one", "hidden-argument", 1).await?;
    let mut given = answer(true, "bob", 2);
    given.note = Some("hidden-note".to_owned());
    state.answer_approval("one", &given, at(50)).await?;
    let columns = ["SELECT sealed FROM approvals", "SELECT answer FROM approvals"];
    for column in columns {
        let blobs = place.blobs(column).await?;
        assert_eq!(blobs.len(), 1);
        let text = String::from_utf8_lossy(blobs.first().map(Vec::as_slice).unwrap_or_default()).into_owned();
        assert!(!text.contains("hidden") && !text.contains("writes a note") && !text.contains("bob"), "{text}");
    }
    Ok(())
}

async fn review_3_whoever_waits_hears_of_an_answer_given_elsewhere(place: Place) -> Outcome {
    let (here, elsewhere) = (place.state().await?, place.state().await?);
    hold(&here, "one", "a", 1).await?;
    hold(&here, "two", "b", 1).await?;
    let feed = Arc::new(Feed::start(here.clone()).await?);
    let (mut bell, mut other) = (feed.bells().hang("one"), feed.bells().hang("two"));
    let mut news = feed.bells().listen();
    elsewhere.answer_approval("one", &answer(true, "bob", 2), at(50)).await?;
    tokio::time::timeout(PATIENCE, bell.rung()).await?;
    let told = tokio::time::timeout(PATIENCE, news.recv()).await??;
    assert_eq!((told.id.as_str(), told.state), ("one", ApprovalState::Approved));
    assert!(tokio::time::timeout(Duration::from_millis(50), other.rung()).await.is_err(), "nothing happened to it");
    assert!(feed.bells().is_hung("one"));
    drop((bell, other));
    assert_eq!(feed.bells().waited_for(), 0);
    Ok(())
}

async fn what_ended_is_forgotten_after_a_while(place: Place) -> Outcome {
    let state = place.state().await?;
    hold(&state, "open", "a", 1).await?;
    hold(&state, "ended", "b", 1).await?;
    state.answer_approval("ended", &answer(false, "bob", 2), at(50)).await?;
    assert_eq!(state.forget_approvals(at(20)).await?, 0, "the rejection counts");
    assert_eq!(state.forget_approvals(at(1_000)).await?, 1);
    assert!(state.approval("open").await?.is_some() && state.approval("ended").await?.is_none());
    Ok(())
}

fn opinion(verdict: Option<MachineVerdict>) -> Opinion {
    Opinion {
        id: "classifier:x".to_owned(),
        verdict,
        words: "so it seems".to_owned(),
        model: "m".to_owned(),
        prompt_version: 1,
        at: at(1),
        question: "q".to_owned(),
        is_shadow: verdict == Some(MachineVerdict::Allow),
    }
}

async fn review_2_answers_are_counted_against_what_a_machine_said(place: Place) -> Outcome {
    let state = place.state().await?;
    assert_eq!(state.agreement().await?, Agreement::default());
    let cases = [
        ("a", Some(MachineVerdict::Allow), true),
        ("b", Some(MachineVerdict::Allow), false),
        ("c", Some(MachineVerdict::Hold), true),
        ("d", Some(MachineVerdict::Hold), true),
        ("e", Some(MachineVerdict::Hold), false),
        ("f", None, true),
    ];
    for (id, verdict, is_approval) in cases {
        let call = HeldCall { opinion: Some(opinion(verdict)), tool: id.to_owned(), ..call(id) };
        assert_eq!(hold_call(&state, id, id, 1, call.clone()).await?, Holding::Made);
        assert_eq!(state.approval(id).await?.map(|kept| kept.call), Some(call), "it is kept with the call");
        assert!(is_done(&state.answer_approval(id, &answer(is_approval, "bob", 2), at(90)).await?));
        assert!(!is_done(&state.answer_approval(id, &answer(!is_approval, "eve", 3), at(90)).await?));
    }
    hold(&state, "g", "g", 1).await?;
    state.answer_approval("g", &answer(true, "bob", 2), at(90)).await?;
    let counted = Agreement { allow_approved: 1, allow_rejected: 1, hold_approved: 2, hold_rejected: 1 };
    assert_eq!(state.agreement().await?, counted);
    // A verdict that comes later is kept; not with what was answered.
    hold_call(&state, "h", "h", 1, HeldCall { opinion: Some(opinion(None)), ..call("h") }).await?;
    let verdict = opinion(Some(MachineVerdict::Hold));
    for id in ["h", "f", "nobody"] {
        state.keep_opinion(id, &verdict).await?;
    }
    let kept = async |id| state.approval(id).await.map(|kept| kept.and_then(|kept| kept.call.opinion));
    assert_eq!((kept("h").await?, kept("f").await?), (Some(verdict), Some(opinion(None))));
    // A call that ended in doubt and is permitted once more is not answered anew.
    assert!(is_done(&state.consume_approval("a", "serve-1", at(4)).await?));
    assert!(is_done(&state.move_approval("a", ApprovalState::Unknown, at(5)).await?));
    assert!(is_done(&state.answer_approval("a", &answer(true, "bob", 6), at(90)).await?));
    assert_eq!(state.agreement().await?, counted);
    Ok(())
}

async fn review_2_looking_holds_nothing_and_what_was_answered_is_not_withdrawn(place: Place) -> Outcome {
    let state = place.state().await?;
    let look = async |mark: &str, seconds| {
        let call = call(mark);
        let (now, expires_at) = (at(seconds), at(seconds));
        let new = NewApproval { id: "", call_mark: mark, caller_mark: "ada", call: &call, now, expires_at };
        state.call_standing(&new).await
    };
    assert_eq!(look("a", 1).await?, Standing::Nothing);
    assert!(state.approvals(&ApprovalFilter { limit: 10, ..ApprovalFilter::default() }).await?.approvals.is_empty());
    hold(&state, "one", "a", 1).await?;
    assert!(matches!(look("a", 2).await?, Standing::There(there) if there.state == ApprovalState::Held));
    assert_eq!(look("b", 2).await?, Standing::Nothing);
    assert_eq!(look("a", 200).await?, Standing::Nothing, "it expired");
    assert!(is_done(&state.answer_approval("one", &answer(true, "bob", 3), at(90)).await?));
    assert!(!is_done(&state.withdraw_approval("one", at(4)).await?));
    assert_eq!(state_of(&state, "one").await?, ApprovalState::Approved);
    hold(&state, "two", "b", 5).await?;
    assert!(is_done(&state.withdraw_approval("two", at(6)).await?));
    assert_eq!(look("b", 7).await?, Standing::Nothing);
    for (id, mark) in [("three", "c"), ("four", "d"), ("five", "e")] {
        hold(&state, id, mark, 8).await?;
        state.answer_approval(id, &answer(false, "bob", 9), at(90)).await?;
        assert!(matches!(look(mark, 10).await?, Standing::There(there) if there.state == ApprovalState::Rejected));
    }
    assert_eq!(look("f", 10).await?, Standing::Rejected);
    assert!(matches!(look("a", 10).await?, Standing::There(there) if there.state == ApprovalState::Approved));
    Ok(())
}

on_both!(
    review_2_answers_are_counted_against_what_a_machine_said,
    review_2_looking_holds_nothing_and_what_was_answered_is_not_withdrawn,
    review_3_a_call_is_held_once_and_kept_as_it_was,
    review_4_an_approval_is_used_once,
    review_3_one_of_a_hundred_answers_counts_and_the_rest_learn_whose,
    review_4_what_expired_cannot_be_answered_or_used,
    review_3_a_rejection_counts_and_three_of_them_end_the_asking,
    review_4_calls_of_a_gateway_that_is_gone_become_unknown,
    so_many_calls_of_one_caller_wait_and_no_more,
    what_is_kept_of_one_caller_is_bounded_and_the_oldest_that_is_over_goes_first,
    pages_follow_each_other_and_whoever_is_named_finds_theirs_among_many,
    an_approval_can_be_taken_back_until_it_is_used,
    an_approval_cannot_be_made_by_whoever_can_write_rows,
    a_stolen_database_holds_no_argument_and_no_note,
    review_3_whoever_waits_hears_of_an_answer_given_elsewhere,
    what_ended_is_forgotten_after_a_while,
);

/// The table of states is what the store does: every move, from every state.
#[tokio::test]
async fn review_4_no_other_move_than_the_tables() -> Outcome {
    let place = Place::new()?;
    let state = place.state().await?;
    let ways: &[(ApprovalState, &[ApprovalState])] = &[
        (ApprovalState::Held, &[]),
        (ApprovalState::Approved, &[ApprovalState::Approved]),
        (ApprovalState::Rejected, &[ApprovalState::Rejected]),
        (ApprovalState::Expired, &[ApprovalState::Expired]),
        (ApprovalState::Cancelled, &[ApprovalState::Cancelled]),
        (ApprovalState::Consumed, &[ApprovalState::Approved, ApprovalState::Consumed]),
        (ApprovalState::Dispatched, &[ApprovalState::Approved, ApprovalState::Consumed, ApprovalState::Dispatched]),
        (
            ApprovalState::Succeeded,
            &[ApprovalState::Approved, ApprovalState::Consumed, ApprovalState::Dispatched, ApprovalState::Succeeded],
        ),
        (
            ApprovalState::Failed,
            &[ApprovalState::Approved, ApprovalState::Consumed, ApprovalState::Dispatched, ApprovalState::Failed],
        ),
        (ApprovalState::Unknown, &[ApprovalState::Approved, ApprovalState::Consumed, ApprovalState::Unknown]),
    ];
    let go = async |id: &str, to: ApprovalState, now: Timestamp| match to {
        ApprovalState::Approved | ApprovalState::Rejected => {
            let mut given = answer(to == ApprovalState::Approved, "bob", 2);
            given.at = now;
            state.answer_approval(id, &given, at(5_000)).await
        }
        ApprovalState::Consumed => state.consume_approval(id, "serve-1", now).await,
        to => state.move_approval(id, to, now).await,
    };
    for (from, way) in ways {
        for to in ApprovalState::ALL {
            let id = format!("{from:?}-{to:?}");
            // Of a tool of its own: rejections of one tool add up.
            hold_call(&state, &id, &id, 1, HeldCall { tool: id.clone(), ..call("a") }).await?;
            for step in *way {
                assert!(is_done(&go(&id, *step, at(2)).await?), "{id}: the way to {from:?}");
            }
            // Given back, it needs no answer: the one it has counts.
            let moved = match (from, to) {
                (ApprovalState::Consumed, ApprovalState::Approved) => {
                    state.move_own_approval(&id, to, "serve-1", at(3)).await?
                }
                (ApprovalState::Approved, ApprovalState::Rejected) => {
                    state.take_back_approval(&id, &answer(false, "bob", 3), at(5_000)).await?
                }
                _ => go(&id, to, at(3)).await?,
            };
            assert_eq!(is_done(&moved), from.may_become(to), "{id}");
        }
    }
    Ok(())
}
