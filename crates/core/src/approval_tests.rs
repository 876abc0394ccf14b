//! The states of a held call, as a table.

use super::{ActingToken, ApprovalState, HeldCaller};

#[test]
fn review_4_every_way_a_held_call_can_go() {
    let mut table = String::new();
    for state in ApprovalState::ALL {
        let next: Vec<_> = state.next().iter().map(|state| state.as_str()).collect();
        table.push_str(&format!("{:<11}{}\n", state.as_str(), next.join(" ")));
        assert_eq!(ApprovalState::parse(state.as_str()), Some(state));
    }
    let expected = "held       approved rejected expired cancelled\n\
                    approved   consumed rejected expired cancelled\n\
                    rejected   \n\
                    expired    \n\
                    cancelled  \n\
                    consumed   dispatched approved unknown\n\
                    dispatched succeeded failed unknown\n\
                    succeeded  \n\
                    failed     \n\
                    unknown    succeeded failed approved\n";
    assert_eq!(table, expected);
}

#[test]
fn review_4_nothing_leaves_but_by_way_of_an_approval() {
    // Whatever comes before a call that left was consumed, and whatever is consumed was approved.
    for state in ApprovalState::ALL {
        assert_eq!(state.may_become(ApprovalState::Dispatched), state == ApprovalState::Consumed);
        assert_eq!(state.may_become(ApprovalState::Consumed), state == ApprovalState::Approved);
        assert!(!state.may_become(ApprovalState::Held), "{state:?} is held again");
    }
}

#[test]
fn self_5_tokens_are_related_where_one_token_issued_them() {
    let token = |id: &str, ancestors: &[&str]| ActingToken {
        id: id.to_owned(),
        ancestors: ancestors.iter().map(|&ancestor| ancestor.to_owned()).collect(),
    };
    let root = token("root", &[]);
    let (first, second) = (token("first", &["root"]), token("second", &["root"]));
    let grandchild = token("grandchild", &["root", "first"]);
    let other = token("other", &["another-root"]);
    let family = [root, first, second, grandchild];
    for one in &family {
        for another in &family {
            assert!(one.is_related_to(another), "{one:?} {another:?}");
        }
        assert!(!one.is_related_to(&other) && !other.is_related_to(one), "{one:?}");
        let caller =
            HeldCaller { token: Some(one.id.clone()), ancestors: one.ancestors.clone(), ..HeldCaller::default() };
        assert!(family.iter().all(|another| caller.called_with(another)));
        assert!(!caller.called_with(&other) && !HeldCaller::default().called_with(one));
    }
}
