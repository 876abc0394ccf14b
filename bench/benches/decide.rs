//! Nanoseconds per decision, and the time to build a policy, by size. `make bench`.

use divan::Bencher;
use toolwarden_bench::{USER, compile, person, question, with_entries, with_mode, with_role, with_rules};
use toolwarden_core::{Caller, Decision};
use toolwarden_policy::input::UserInput;
use toolwarden_policy::{PolicyInput, Query, decide};

fn main() {
    divan::main();
}

fn run(bencher: Bencher<'_, '_>, input: &PolicyInput, query: &Query, expected: Decision) {
    let policy = compile(input);
    assert_eq!(decide(&policy, query).decision(), expected);
    bencher.bench_local(|| decide(divan::black_box(&policy), divan::black_box(query)).decision());
}

/// ALLOW-7: an allowlist of this many entries, the last of which matches.
#[divan::bench(args = [10, 1_000, 10_000])]
fn decide_allowlist(bencher: Bencher<'_, '_>, entries: usize) {
    run(bencher, &with_entries(entries), &question(person(None)), Decision::Allow);
}

/// A mode with lists of this many names.
#[divan::bench(args = [10, 1_000, 10_000])]
fn decide_mode(bencher: Bencher<'_, '_>, entries: usize) {
    run(bencher, &with_mode(entries), &question(person(Some("bench"))), Decision::Allow);
}

/// An agent of a role with this many patterns on each side.
#[divan::bench(args = [10, 1_000, 10_000])]
fn decide_role(bencher: Bencher<'_, '_>, entries: usize) {
    let caller = Caller::agent("bench", Some(USER.to_owned()));
    run(bencher, &with_role(entries), &question(caller), Decision::Hold);
}

/// This many Cedar rules with conditions, three of which apply.
#[divan::bench(args = [10, 100, 1_000])]
fn decide_rules(bencher: Bencher<'_, '_>, rules: usize) {
    run(bencher, &with_rules(rules), &question(person(None)), Decision::Allow);
}

#[divan::bench(args = [10, 1_000, 10_000], max_time = 5)]
fn build_snapshot_entries(bencher: Bencher<'_, '_>, entries: usize) {
    let input = with_entries(entries);
    bencher.bench_local(|| compile(divan::black_box(&input)));
}

#[divan::bench(args = [10, 100, 1_000], max_time = 5)]
fn build_snapshot_rules(bencher: Bencher<'_, '_>, rules: usize) {
    let input = with_rules(rules);
    bencher.bench_local(|| compile(divan::black_box(&input)));
}

/// One user's layer, in a policy with 1,000 rules: an edit rebuilds its layer only.
#[divan::bench(args = [10, 1_000, 10_000])]
fn build_user_layer(bencher: Bencher<'_, '_>, entries: usize) {
    let policy = compile(&with_rules(1_000));
    let list =
        with_entries(entries).local.files.into_iter().next().and_then(|file| file.mcp_allowlist).unwrap_or_default();
    let user = UserInput { mcp_allowlist: list, ..UserInput::default() };
    bencher.bench_local(|| policy.with_user(2, USER, divan::black_box(&user)));
}
