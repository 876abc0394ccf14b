//! Engine and naive evaluator agree on command lines: each policy is asked about lines alone, so that every kind of
//! line meets many allowlists. All lines that differ are shown, shortest first.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::any;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use toolwarden_core::{Call, Door};
use toolwarden_policy::shell::FileFacts;
use toolwarden_policy::{PolicySet, Query, Transport};

use crate::ask::{cases, engine};
use crate::generate::world;
use crate::generate_callers::{caller, caller_time};
use crate::generate_calls::surrounded;
use crate::generate_lines::line;
use crate::naive::naive;
use crate::tape::Tape;

const LINES_EACH: usize = 100;
const MOST_SHOWN: usize = 40;

fn query(bytes: &[u8]) -> (String, Query) {
    let mut tape = Tape::new(bytes);
    let mut who = tape.section(32);
    let time = caller_time(&mut who);
    let caller = caller(&mut who, time);
    let mut what = tape.section(24);
    let text = line(&mut what);
    let directory = what.chance(30).then(|| what.pick("/w/sub", &["/w", "/"]).into());
    let call = Call::shell(text.as_str(), directory);
    let ask = |transport: Transport| transport.query(caller.into(), call, time).with_files(FileFacts::as_written());
    (text, surrounded(&mut tape, Door::Decide, ask))
}

#[test]
fn shell_3_the_second_reader_agrees_on_lines() {
    let mut runner = TestRunner::deterministic();
    let mut different: BTreeMap<String, String> = BTreeMap::new();
    let queries = vec(vec(any::<u8>(), 72).prop_map(|bytes| query(&bytes)), LINES_EACH);
    for _ in 0..cases(1_000).cases {
        let made = (world(), &queries).new_tree(&mut runner).map(|tree| tree.current());
        assert!(made.is_ok());
        let Ok((world, queries)) = made else { continue };
        let policy = PolicySet::compile(&world.input);
        assert!(policy.is_ok(), "refused: {:?}", policy.err());
        let Ok(policy) = policy else { continue };
        for (line, query) in queries {
            let (engine, naive) = (engine(&policy, &query), naive(&world, &query));
            if engine != naive {
                different.entry(line).or_insert_with(|| format!("\n  engine {engine:?}\n  naive  {naive:?}"));
            }
        }
    }
    let mut shown: Vec<String> = different.iter().map(|(line, answers)| format!("{line:?}{answers}")).collect();
    shown.sort_by_key(String::len);
    shown.truncate(MOST_SHOWN);
    assert!(different.is_empty(), "{} lines differ:\n{}", different.len(), shown.join("\n"));
}
