//! Nobody but the owner and root is admitted.

use super::Peer;

#[test]
fn only_the_owner_and_root_are_admitted() {
    assert!(Peer::admit(1000, 1000).is_some_and(|peer| peer.is_owner));
    assert!(Peer::admit(0, 1000).is_some_and(|peer| !peer.is_owner));
    assert_eq!(Peer::admit(1001, 1000), None);
    assert_eq!(Peer::admit(1000, 0), None);
    assert_eq!(Peer::admit(u32::MAX, 0), None);
}
