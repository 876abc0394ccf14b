//! The states of a held call, as a table.

use super::ApprovalState;

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
