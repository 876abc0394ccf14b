//! Held calls at the clerk's desk: who finds them, what is said twice, what is taken back.

use toolwarden_control::operations::{
    ApprovalsApprove, ApprovalsDeny, ApprovalsList, ApprovalsShow, approvals_approve, approvals_deny, approvals_list,
    approvals_show,
};
use toolwarden_control::{Actor, Role, Via};
use toolwarden_core::{ApprovalNeeds, ApprovalState, Clock, HeldCall, HeldCaller, Payer};
use toolwarden_store::State;
use toolwarden_store::state::NewApproval;

use crate::{Noon, Office, office};

fn state_of(office: &Office) -> &State {
    let Some(state) = office.state.as_ref() else { unreachable!("it has one") };
    state
}

async fn hold(office: &Office, id: &str, user: &str, approvers: &[&str]) {
    let call = HeldCall {
        server: "notes".to_owned(),
        tool: "write".to_owned(),
        method: "tools/call".to_owned(),
        params: format!(r#"{{"name":"write","arguments":{{"id":"{id}"}}}}"#),
        claims: None,
        caller: HeldCaller { user: Some(user.to_owned()), ..HeldCaller::default() },
        reason: "not_in_allowlist".to_owned(),
        message: "no allowlist entry matches".to_owned(),
        rule: None,
        candidates: Vec::new(),
        payers: vec![Payer::Person],
        policy_version: 1,
        anchor: None,
        definition: None,
        opinion: None,
        result: None,
        needs: ApprovalNeeds {
            approvers: approvers.iter().map(|name| (*name).to_owned()).collect(),
            ..ApprovalNeeds::default()
        },
    };
    let expires_at = Noon.now().checked_add(std::time::Duration::from_secs(60)).unwrap_or_default();
    let new = NewApproval { id, call_mark: id, caller_mark: user, call: &call, now: Noon.now(), expires_at };
    assert!(state_of(office).hold_call(&new).await.is_ok());
}

fn person(user: &str, groups: &[&str]) -> Actor {
    let groups = groups.iter().map(|group| (*group).to_owned()).collect();
    Actor { user: user.to_owned(), via: Via::Token, roles: [Role::User].into_iter().collect(), groups, token: None }
}

async fn listed(office: &Office, actor: &Actor, request: approvals_list::Request) -> (Vec<String>, Option<String>) {
    let Ok(found) = office.clerk.perform::<ApprovalsList>(actor, request).await else {
        unreachable!("it may be asked")
    };
    (found.approvals.into_iter().map(|view| view.id).collect(), found.next)
}

#[tokio::test]
async fn review_3_whoever_is_named_to_answer_finds_those_calls_among_many_of_others() {
    let office = office(true).await;
    hold(&office, "zz-named", "eve", &["bob"]).await;
    hold(&office, "zz-group", "eve", &["group:ops"]).await;
    for number in 0..150 {
        hold(&office, &format!("many-{number:03}"), "eve", &[]).await;
    }
    hold(&office, "own", "bob", &[]).await;
    let all = || approvals_list::Request { limit: Some(2), ..approvals_list::Request::default() };
    let (mut found, next) = listed(&office, &person("bob", &["ops"]), all()).await;
    assert_eq!(found.len(), 2);
    let (more, end) = listed(&office, &person("bob", &["ops"]), approvals_list::Request { after: next, ..all() }).await;
    found.extend(more);
    found.sort();
    assert_eq!((found, end), (vec!["own".to_owned(), "zz-group".to_owned(), "zz-named".to_owned()], None));
    assert_eq!(listed(&office, &person("bob", &[]), all()).await.0.len(), 2, "not those of a group he is not in");
    assert!(listed(&office, &person("carol", &[]), all()).await.0.is_empty());
}

#[tokio::test]
async fn review_3_whoever_asks_again_gets_nothing_while_nothing_moved() {
    let office = office(true).await;
    hold(&office, "one", "ada", &[]).await;
    let actor = office.actor.clone();
    let ask = |since| approvals_list::Request { since, ..approvals_list::Request::default() };
    let Ok(first) = office.clerk.perform::<ApprovalsList>(&actor, ask(None)).await else { unreachable!("it may") };
    let Ok(second) = office.clerk.perform::<ApprovalsList>(&actor, ask(Some(first.version))).await else {
        unreachable!("it may")
    };
    assert_eq!((first.approvals.len(), second.approvals.len(), second.version), (1, 0, first.version));
    hold(&office, "two", "ada", &[]).await;
    assert_eq!(listed(&office, &actor, ask(Some(first.version))).await.0.len(), 2);
}

#[tokio::test]
async fn review_4_a_call_that_may_have_run_is_permitted_again_only_by_whoever_says_so() {
    let office = office(true).await;
    hold(&office, "one", "ada", &[]).await;
    let actor = office.actor.clone();
    let approve = |again| {
        let request =
            approvals_approve::Request { id: "one".to_owned(), again, ..approvals_approve::Request::default() };
        office.clerk.perform::<ApprovalsApprove>(&actor, request)
    };
    assert!(approve(false).await.is_ok());
    assert!(state_of(&office).consume_approval("one", "serve-1", Noon.now()).await.is_ok());
    for to in [ApprovalState::Dispatched, ApprovalState::Unknown] {
        assert!(state_of(&office).move_own_approval("one", to, "serve-1", Noon.now()).await.is_ok());
    }
    let refused = approve(false).await.map(|_| ()).map_err(|error| error.to_string());
    assert!(refused.as_ref().is_err_and(|why| why.contains("may run twice") && why.contains("--again")), "{refused:?}");
    let done = approve(true).await;
    assert!(done.as_ref().is_ok_and(|done| done.approval.state == ApprovalState::Approved), "{done:?}");
}

/// An answer that names another digest than the call has changes nothing, whatever it says.
#[tokio::test]
async fn review_4_an_answer_counts_only_for_the_call_that_was_shown() {
    let office = office(true).await;
    hold(&office, "one", "ada", &[]).await;
    hold(&office, "two", "ada", &[]).await;
    let actor = office.actor.clone();
    let show = |id: &str| {
        let request = approvals_show::Request { id: id.to_owned(), narrowed: false };
        office.clerk.perform::<ApprovalsShow>(&actor, request)
    };
    let (Ok(one), Ok(two)) = (show("one").await, show("two").await) else { unreachable!("both wait") };
    assert!(one.digest.len() == 64 && one.digest != two.digest, "{} {}", one.digest, two.digest);
    for named in [two.digest.as_str(), "", "0"] {
        let digest = Some(named.to_owned());
        let request = approvals_approve::Request { id: "one".to_owned(), digest: digest.clone(), ..<_>::default() };
        let approved = office.clerk.perform::<ApprovalsApprove>(&actor, request).await.map_err(|why| why.to_string());
        assert!(approved.as_ref().is_err_and(|why| why.contains("not the one that was shown")), "{approved:?}");
        let request = approvals_deny::Request { id: "one".to_owned(), remember: true, digest, ..<_>::default() };
        let denied = office.clerk.perform::<ApprovalsDeny>(&actor, request).await.map_err(|why| why.to_string());
        assert!(denied.as_ref().is_err_and(|why| why.contains("not the one that was shown")), "{denied:?}");
        assert!(show("one").await.is_ok_and(|view| view == one), "nothing changed");
    }
    let request = approvals_approve::Request { id: "one".to_owned(), digest: Some(one.digest), ..<_>::default() };
    assert!(office.clerk.perform::<ApprovalsApprove>(&actor, request).await.is_ok());
}

#[tokio::test]
async fn review_3_what_was_permitted_is_taken_back_only_by_whoever_says_so() {
    let office = office(true).await;
    hold(&office, "one", "ada", &[]).await;
    let actor = office.actor.clone();
    let request = approvals_approve::Request { id: "one".to_owned(), ..approvals_approve::Request::default() };
    assert!(office.clerk.perform::<ApprovalsApprove>(&actor, request).await.is_ok());
    let deny = |take_back| {
        let request = approvals_deny::Request { id: "one".to_owned(), take_back, ..approvals_deny::Request::default() };
        office.clerk.perform::<ApprovalsDeny>(&actor, request)
    };
    let refused = deny(false).await.map(|_| ()).map_err(|error| error.to_string());
    assert!(refused.as_ref().is_err_and(|why| why.contains("--take-back")), "{refused:?}");
    let done = deny(true).await;
    assert!(done.as_ref().is_ok_and(|done| done.approval.state == ApprovalState::Rejected), "{done:?}");
    let taken = state_of(&office).consume_approval("one", "serve-1", Noon.now()).await;
    assert!(matches!(taken, Ok(toolwarden_store::state::Moved::Not(_))), "{taken:?}");
}
