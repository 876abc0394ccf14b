//! Only persons' tokens in use that were issued without rights lost something.

use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::{Bearer, Claims};
use toolwarden_store::state::{StoredToken, Tokens};

use super::{CHANGES, Here, client_rights, words};

fn tokens(kept: &[(&str, Claims, bool)]) -> Tokens {
    let token = |(id, claims, is_revoked): &(&str, Claims, bool)| {
        let token = StoredToken {
            id: (*id).to_owned(),
            digest: String::new(),
            claims: claims.clone(),
            issued_at: Timestamp::UNIX_EPOCH,
            issued_by: "ada".to_owned(),
            calls: 0,
            revoked_at: is_revoked.then_some(Timestamp::UNIX_EPOCH),
        };
        ((*id).to_owned(), Arc::new(token))
    };
    Tokens { by_id: kept.iter().map(token).collect(), ..Tokens::default() }
}

#[test]
fn self_5_the_notice_names_the_tokens_that_lost_rights_and_those_that_answered_themselves() {
    let (person, agent) = (Claims::of(Bearer::Person), Claims::of(Bearer::Agent));
    let user = Claims { rights: vec!["user".to_owned()], ..person.clone() };
    let said = client_rights(&tokens(&[
        ("lost1", person.clone(), false),
        ("revoked1", person, true),
        ("agent1", agent.clone(), false),
        ("user1", user.clone(), false),
    ]));
    let said = said.unwrap_or_default();
    assert!(said.contains("lost1") && said.contains("--right user"), "{said}");
    let (lost, own) = said.split_once("; no token answers").unwrap_or_default();
    assert!(lost.contains("This concerns lost1.") && own.contains("what user1 had held"), "{said}");
    assert!(!["revoked1", "agent1"].iter().any(|id| said.contains(id)), "{said}");
    let said = client_rights(&tokens(&[("agent1", agent.clone(), false), ("user1", user, false)])).unwrap_or_default();
    assert!(said.starts_with("no token answers the calls it made"), "{said}");
    assert_eq!(client_rights(&tokens(&[("agent1", agent, false)])), None);
}

#[test]
fn a_notice_of_another_version_says_nothing() {
    let here = Here { local_user: "ada", has_permission_files: true };
    assert_eq!(words("of a newer version", here, &Tokens::default()), None);
    assert!(CHANGES.iter().any(|change| change.name == "client_rights"));
}

#[test]
fn perm_1_the_notice_is_for_users_with_tokens_and_files() {
    let of = |user: &str| Claims { user: Some(user.to_owned()), ..Claims::of(Bearer::Person) };
    let tokens = tokens(&[("one", of("ada"), false), ("two", of("ada"), true), ("three", of("bob"), false)]);
    let said = |local_user, has_permission_files| {
        words("permission_files", Here { local_user, has_permission_files }, &tokens).unwrap_or_default()
    };
    assert!(said("ada", true).contains("every token issued to ada: 1 token(s)"), "{}", said("ada", true));
    assert_eq!((said("ada", false), said("carol", true)), (String::new(), String::new()));
}
