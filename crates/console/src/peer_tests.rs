//! Nobody but the owner and root is admitted at the socket; rights that are not known make nobody.

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
    assert!(Peer::of_person("ada", &[], &[]).is_some());
    assert!(Peer::of_person("ada", &["auditor".to_owned()], &[]).is_some());
    assert_eq!(Peer::of_person("ada", &["admin".to_owned(), "emperor".to_owned()], &[]), None);
}
