//! What can become of one held call at two gateways that may end at any moment: a model, and everything it can do.
//!
//! Slow and obvious: a world is a few small values, a step a few lines, and every world that can be reached is looked at.
//! `following.rs` holds the real desk to it.

use std::collections::{HashSet, VecDeque};

use toolwarden_core::ApprovalState;

/// Where a gateway is with the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gateway {
    Down,
    Idle,
    /// The approval is its own.
    Took,
    /// The intent is in its journal.
    Recorded,
    /// The call left.
    Sent,
    /// The outcome is in its journal.
    Ended,
}

/// Everything that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct World {
    pub row: Option<ApprovalState>,
    pub gateways: [Gateway; 2],
    /// Who took it last.
    pub owner: Option<usize>,
    /// What the journal of each says of the call it took last: an intent, and how it ended.
    pub intent: [bool; 2],
    pub outcome: [bool; 2],
    /// How often a person permitted it, and how often it reached the server.
    pub approvals: u8,
    pub sent: u8,
}

/// What can happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Raise,
    Approve,
    Reject,
    /// A person takes back what was permitted.
    TakeBack,
    Cancel,
    Expire,
    Take(usize),
    /// The gateway lets go before the call left.
    GiveBack(usize),
    Record(usize),
    /// The row says that it left, and it does.
    Leave(usize),
    End(usize),
    /// The row says how it ended.
    Tell(usize),
    Crash(usize),
    /// A gateway starts again and looks what it had taken.
    Restart(usize),
    /// Nothing was heard of the owner for too long.
    GiveUp,
}

pub const START: World = World {
    row: None,
    gateways: [Gateway::Idle; 2],
    owner: None,
    intent: [false; 2],
    outcome: [false; 2],
    approvals: 0,
    sent: 0,
};

/// As often as a person answers in the model: enough for one that is permitted once more.
const MOST_APPROVALS: u8 = 2;

pub fn actions() -> Vec<Action> {
    let of_both = [0, 1].into_iter().flat_map(|at| {
        [
            Action::Take(at),
            Action::GiveBack(at),
            Action::Record(at),
            Action::Leave(at),
            Action::End(at),
            Action::Tell(at),
            Action::Crash(at),
            Action::Restart(at),
        ]
    });
    let others = [
        Action::Raise,
        Action::Approve,
        Action::Reject,
        Action::TakeBack,
        Action::Cancel,
        Action::Expire,
        Action::GiveUp,
    ];
    others.into_iter().chain(of_both).collect()
}

impl World {
    /// The world after an action; none where it cannot happen.
    pub fn after(&self, action: Action) -> Option<Self> {
        use ApprovalState as Row;
        let mut next = *self;
        match action {
            Action::Raise if self.row.is_none() => next.row = Some(Row::Held),
            Action::Approve if matches!(self.row?, Row::Held | Row::Unknown) && self.approvals < MOST_APPROVALS => {
                next.row = Some(Row::Approved);
                next.approvals += 1;
            }
            Action::Reject if self.row? == Row::Held => next.row = Some(Row::Rejected),
            Action::TakeBack if self.row? == Row::Approved => next.row = Some(Row::Rejected),
            Action::Cancel if matches!(self.row?, Row::Held | Row::Approved) => next.row = Some(Row::Cancelled),
            Action::Expire if matches!(self.row?, Row::Held | Row::Approved) => next.row = Some(Row::Expired),
            Action::Take(at) if self.is(at, Gateway::Idle) && self.row? == Row::Approved => {
                next.row = Some(Row::Consumed);
                next.owner = Some(at);
                next.set(at, Gateway::Took);
                next.journal(at, false, false);
            }
            Action::GiveBack(at) if self.is(at, Gateway::Took) => {
                next.set(at, Gateway::Idle);
                next.own(at, &[Row::Consumed], Row::Approved);
            }
            Action::Record(at) if self.is(at, Gateway::Took) => {
                next.set(at, Gateway::Recorded);
                next.journal(at, true, false);
            }
            Action::Leave(at) if self.is(at, Gateway::Recorded) => {
                next.set(at, Gateway::Sent);
                next.own(at, &[Row::Consumed], Row::Dispatched);
                next.sent += 1;
            }
            Action::End(at) if self.is(at, Gateway::Sent) => {
                next.set(at, Gateway::Ended);
                next.journal(at, true, true);
            }
            Action::Tell(at) if self.is(at, Gateway::Ended) => {
                next.set(at, Gateway::Idle);
                next.own(at, &[Row::Dispatched, Row::Unknown], Row::Succeeded);
            }
            Action::Crash(at) if !self.is(at, Gateway::Down) => next.set(at, Gateway::Down),
            Action::Restart(at) if self.is(at, Gateway::Down) => {
                next.set(at, Gateway::Idle);
                let (intent, outcome) = (self.intent.get(at)?, self.outcome.get(at)?);
                match (self.row, intent, outcome) {
                    (Some(Row::Consumed), false, _) => next.own(at, &[Row::Consumed], Row::Approved),
                    (_, _, true) => next.own(at, &[Row::Consumed, Row::Dispatched], Row::Succeeded),
                    _ => next.own(at, &[Row::Consumed, Row::Dispatched], Row::Unknown),
                }
            }
            Action::GiveUp if matches!(self.row?, Row::Consumed | Row::Dispatched) => next.row = Some(Row::Unknown),
            _ => return None,
        }
        Some(next)
    }

    /// Moves the row, where it is this gateway's own and in one of these states.
    fn own(&mut self, at: usize, from: &[ApprovalState], to: ApprovalState) {
        if self.owner == Some(at) && self.row.is_some_and(|row| from.contains(&row)) {
            self.row = Some(to);
        }
    }

    fn is(&self, at: usize, gateway: Gateway) -> bool {
        self.gateways.get(at) == Some(&gateway)
    }

    fn set(&mut self, at: usize, gateway: Gateway) {
        if let Some(place) = self.gateways.get_mut(at) {
            *place = gateway;
        }
    }

    fn journal(&mut self, at: usize, intent: bool, outcome: bool) {
        if let (Some(has), Some(ended)) = (self.intent.get_mut(at), self.outcome.get_mut(at)) {
            (*has, *ended) = (intent, outcome);
        }
    }
}

/// Every world that can be reached.
fn reachable() -> HashSet<World> {
    let mut seen = HashSet::from([START]);
    let mut open = VecDeque::from([START]);
    while let Some(world) = open.pop_front() {
        for next in actions().into_iter().filter_map(|action| world.after(action)) {
            if seen.insert(next) {
                open.push_back(next);
            }
        }
    }
    seen
}

#[test]
fn review_4_nothing_runs_more_often_than_a_person_permitted_it() {
    let worlds = reachable();
    assert!(worlds.len() > 500, "the model does something: {}", worlds.len());
    for world in &worlds {
        assert!(world.sent <= world.approvals, "{world:?}");
        // What waits or was refused before anybody permitted it never ran.
        if world.approvals == 0 {
            assert_eq!(world.sent, 0, "{world:?}");
        }
    }
}

#[test]
fn review_4_an_approval_that_counts_was_not_used() {
    for world in reachable() {
        if world.row == Some(ApprovalState::Approved) {
            // Whoever else has the call in hand has an approval of its own, or has made the call.
            let in_hand =
                [0, 1].into_iter().filter(|at| world.is(*at, Gateway::Took) || world.is(*at, Gateway::Recorded));
            let used = usize::from(world.sent) + in_hand.count();
            assert!(used < usize::from(world.approvals), "{world:?}");
        }
        // A row that says how the call ended is right about it.
        if world.row == Some(ApprovalState::Succeeded) {
            assert!(world.sent > 0, "{world:?}");
        }
    }
}

#[test]
fn review_4_every_move_of_the_model_is_one_of_the_table() {
    for world in reachable() {
        for action in actions() {
            let Some(next) = world.after(action) else { continue };
            if let (Some(from), Some(to)) = (world.row, next.row)
                && from != to
            {
                // After a restart the row may go two steps at once: it left, and it ended.
                let at_once = matches!(action, Action::Restart(_))
                    && from.may_become(ApprovalState::Dispatched)
                    && ApprovalState::Dispatched.may_become(to);
                assert!(from.may_become(to) || at_once, "{action:?}: {from:?} to {to:?}");
            }
        }
    }
}

#[test]
fn review_4_nothing_is_stuck() {
    // From everywhere a state can be reached in which nobody has to do with the call any more.
    for world in reachable() {
        let mut seen = HashSet::from([world]);
        let mut open = VecDeque::from([world]);
        let mut ends = false;
        while let Some(world) = open.pop_front() {
            if world.row.is_some_and(|row| !row.is_open()) {
                ends = true;
                break;
            }
            for next in actions().into_iter().filter_map(|action| world.after(action)) {
                if seen.insert(next) {
                    open.push_back(next);
                }
            }
        }
        assert!(ends, "{world:?}");
    }
}
