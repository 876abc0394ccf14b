//! Nobody but the owner and root is admitted at the socket; rights that are not known make nobody.

use toolwarden_core::{Bearer, Claims};

use super::{Peer, Who};

#[test]
fn only_the_owner_and_root_are_admitted() {
    let owner = |user_id: u32, own: u32| match Peer::admit(user_id, own) {
        Some(Peer(Who::Socket { is_owner, .. })) => Some(is_owner),
        _ => None,
    };
    assert_eq!(owner(1000, 1000), Some(true));
    assert_eq!(owner(0, 1000), Some(false));
    assert_eq!(owner(1001, 1000), None);
    assert_eq!(owner(1000, 0), None);
    assert_eq!(owner(u32::MAX, 0), None);
}

#[test]
fn a_right_that_is_not_known_makes_nobody() {
    let of = |rights: &[&str]| {
        let rights = rights.iter().map(|&right| right.to_owned()).collect();
        Peer::of_person("t1", &Claims { user: Some("ada".to_owned()), rights, ..Claims::of(Bearer::Person) })
    };
    assert!(of(&["auditor"]).is_some());
    assert_eq!(of(&["admin", "emperor"]), None);
    assert_eq!(Peer::of_person("t1", &Claims::of(Bearer::Person)), None);
}

#[test]
fn self_5_a_token_without_rights_has_no_role() {
    let claims = Claims { user: Some("ada".to_owned()), may_answer: true, ..Claims::of(Bearer::Person) };
    let roles = match Peer::of_person("t1", &claims) {
        Some(Peer(Who::Person { roles, .. })) => Some(roles),
        _ => None,
    };
    assert_eq!(roles, Some(Vec::new()));
}
