//! Hours of modes around the nights when clocks change: an answer is the same until its `valid_until`.

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use toolwarden_core::{Call, Caller, Decision, Door};
use toolwarden_policy::input::{ModeInput, Window};
use toolwarden_policy::{Transport, decide};

use crate::ask::{cases, compile};
use crate::generate_rules::{permit_all, print};
use crate::naive::{World, naive};
use crate::tape::{Tape, here};

/// Nights on which clocks go back or forward, and where.
const NIGHTS: [(i64, &str); 6] = [
    (1_761_440_400, "Europe/Berlin"),
    (1_774_746_000, "Europe/Berlin"),
    (1_762_063_200, "America/New_York"),
    (1_772_953_200, "America/New_York"),
    (1_762_059_600, "America/Havana"),
    (1_776_981_600, "Africa/Cairo"),
];

fn window(tape: &mut Tape<'_>, zone: &str) -> Window {
    let hours =
        ["02:15-02:45", "01:10-02:20", "23:30-02:30", "00:15-00:45", "00:00-24:00", "02:00-03:00", "01:30-00:30"];
    Window {
        origin: here(),
        days: tape.texts(20, &["fri", "sat", "sun", "mon"]),
        hours: tape.texts(35, &hours),
        time_zone: zone.to_owned(),
    }
}

fn minutes_after(time: Timestamp, minutes: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_mins(minutes)).unwrap_or(time)
}

fn world_with(window: Window) -> World {
    let mut world = World { rules: vec![permit_all()], ..World::default() };
    world.input.base.rules = print(&world.rules);
    let mode = ModeInput { window: Some(window), ..ModeInput::unrestricted("m1", "m1", here()) };
    world.input.base.modes.push(mode);
    world
}

proptest! {
    #![proptest_config(cases(1_500))]

    #[test]
    fn mode_11_answers_last_until_their_edge(night in 0_usize..6, tape in any::<[u8; 16]>(), start in 0_i64..960, stride in 1_i64..9) {
        let (moment, zone) = NIGHTS.get(night).copied().unwrap_or_default();
        let mut tape = Tape::new(&tape);
        let world = world_with(window(&mut tape, zone));
        let policy = compile(&world)?;
        let begin = Timestamp::from_second(moment).map(|moment| minutes_after(moment, start - 480));
        prop_assert!(begin.is_ok());
        let begin = begin.unwrap_or(Timestamp::UNIX_EPOCH);
        let mut caller = Caller::local_person("ann");
        caller.mode = Some("m1".to_owned());
        let query = Transport::new(Door::Explain, None).query(caller.into(), Call::mcp("db", "get", None), begin);
        let verdict = decide(&policy, &query);
        let end = verdict.explanation().valid_until.unwrap_or_else(|| minutes_after(begin, 1_200)).min(minutes_after(begin, 1_200));
        let mut time = begin;
        while time < end {
            let then = query.clone().at(time);
            prop_assert_eq!(decide(&policy, &then).decision(), verdict.decision(), "asked at {}, valid until {:?}, differs at {}", begin, verdict.explanation().valid_until, time);
            prop_assert_eq!(naive(&world, &then).decision == Decision::Deny, verdict.decision() == Decision::Deny);
            time = minutes_after(time, stride);
        }
    }
}
