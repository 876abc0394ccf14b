//! Several clients at once on the same servers: each gets its own answer and its own progress.

use std::thread;

use serde_json::{Value, json};

use crate::house::{House, PERMISSIVE};
use crate::pairs_table::{Door, PYTHON_LEGACY, PYTHON_MODERN, TS1, TS2_LEGACY, TS2_MODERN};
use crate::peers::{Client, Target, ask, fixture_command, fixture_over_http, server_table};

const CLIENTS: [Client; 6] = [TS1, TS2_LEGACY, TS2_MODERN, TS2_MODERN, PYTHON_LEGACY, PYTHON_MODERN];

/// Waits its own time, so that every answer and every report of progress can be told apart.
fn waits(house: &House, client: Client, milliseconds: usize, target: &Target) {
    let arguments = json!({"milliseconds": milliseconds}).to_string();
    let seen = ask(house, client, &["--tool", "test_delay", "--args", &arguments, "--progress"], target);
    assert_eq!(seen.text(), format!("Waited {milliseconds} ms."), "{client:?} at {target:?}: {}", seen.0);
    let progress = seen.at("/progress").as_array().cloned().unwrap_or_default();
    let foreign = progress.iter().find(|one| one.get("total").and_then(Value::as_f64) != Some(as_float(milliseconds)));
    assert!(foreign.is_none() && !progress.is_empty(), "{client:?} at {target:?}: {}", seen.0);
}

fn as_float(milliseconds: usize) -> f64 {
    u32::try_from(milliseconds).map(f64::from).unwrap_or_default()
}

#[test]
fn clients_on_one_server_do_not_see_each_other() {
    let house = House::new("");
    let fixture = fixture_over_http(&house);
    let (http, child) = (Target::Url(fixture.url.clone()), Target::Command(fixture_command(&house)));
    house.configure(&format!("{PERMISSIVE}{}{}", server_table("http", &http), server_table("child", &child)));
    let gateway = house.serve();
    for server in ["child", "http"] {
        let target = Door::One.target(&gateway.url(""), server);
        thread::scope(|scope| {
            let (house, target) = (&house, &target);
            for (number, client) in CLIENTS.into_iter().enumerate() {
                scope.spawn(move || waits(house, client, 1000 + number * 10, target));
            }
        });
    }
    gateway.stop();
    assert_eq!(house.recorded().len(), 2 * CLIENTS.len(), "{:?}", house.recorded());
    house.audited();
}

#[test]
fn large_arguments_and_results_pass() {
    let house = House::new("");
    let fixture = fixture_over_http(&house);
    let (http, child) = (Target::Url(fixture.url.clone()), Target::Command(fixture_command(&house)));
    house.configure(&format!("{PERMISSIVE}{}{}", server_table("http", &http), server_table("child", &child)));
    let gateway = house.serve();
    // As long as one word of a command line may be.
    let arguments = json!({"text": "ä\\\"\n".repeat(15_000)});
    let rows = [(TS1, "child"), (TS2_MODERN, "child"), (PYTHON_LEGACY, "http"), (TS2_MODERN, "http")];
    for (client, server) in rows {
        let options = ["--tool", "test_echo", "--args", &arguments.to_string()];
        let seen = ask(&house, client, &options, &Door::One.target(&gateway.url(""), server));
        assert!(*seen.at("/result/structuredContent") == arguments, "{client:?}, {server}: {}", seen.at("/error"));
    }
    gateway.stop();
    house.audited();
}
