//! Servers that die: whoever waits is told, the next caller gets a new one, and none outlives the gateway.

use std::thread;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::house::{House, PERMISSIVE};
use crate::pairs_table::{Door, PYTHON_LEGACY, TS1, TS2_MODERN};
use crate::peers::{Client, Target, ask, fixture_command, server_table};

const TEXT: &str = "Just a line of text.";

/// The fixture as a child that leaves its process id in a file.
fn with_ids(house: &House) -> Target {
    let script = format!("echo $$ >> '{}'; exec \"$@\"", house.shown("ids"));
    let words = ["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
    Target::Command(words.into_iter().chain(fixture_command(house)).collect())
}

fn ids(house: &House) -> Vec<Pid> {
    house.read("ids").lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect()
}

/// A call during which the server dies ends with an error, and soon.
fn dies_under(house: &House, client: Client, target: &Target) {
    house.write("record", "");
    thread::scope(|scope| {
        let call = scope.spawn(|| {
            let options = ["--tool", "test_delay", "--args", r#"{"milliseconds": 60000}"#];
            ask(house, client, &options, target)
        });
        house.await_record("tools/call test_delay");
        for id in ids(house) {
            // Some of them have ended before.
            let _ = kill_process(id, Signal::KILL);
        }
        let seen = call.join().map(|seen| seen.0).unwrap_or_default();
        assert!(seen.get("error").is_some() && seen.get("result").is_none(), "{client:?} at {target:?}: {seen}");
    });
    house.write("ids", "");
}

#[test]
fn a_server_that_dies_is_told_of_and_started_again() {
    let house = House::new("");
    house.configure(&format!("{PERMISSIVE}{}", server_table("fixture", &with_ids(&house))));
    let gateway = house.serve();
    let door = Door::One.target(&gateway.url(""), "fixture");
    for client in [TS1, TS2_MODERN, PYTHON_LEGACY] {
        dies_under(&house, client, &door);
        // Each new start waits longer than the one before.
        let works = (0..8).any(|_| ask(&house, client, &["--tool", "test_simple_text"], &door).text() == TEXT);
        assert!(works, "{client:?}: the server did not come back");
    }
    let alive = ids(&house).into_iter().filter(|id| test_kill_process(*id).is_ok()).count();
    assert!(alive > 0, "no child is running");
    gateway.stop();
    let left: Vec<Pid> = ids(&house).into_iter().filter(|id| test_kill_process(*id).is_ok()).collect();
    assert!(left.is_empty(), "the gateway left children behind: {left:?}");
    house.audited();
}
