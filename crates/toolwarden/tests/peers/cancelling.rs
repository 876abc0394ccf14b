//! A client that gives up a call: the server learns of it, whatever stands between them.

use crate::house::{House, PERMISSIVE};
use crate::pairs_table::{Door, PYTHON_LEGACY, PYTHON_MODERN, TS1, TS2_LEGACY, TS2_MODERN};
use crate::peers::{Client, Target, ask, fixture_command, fixture_over_http, server_table};

const GIVE_UP: [&str; 4] = ["--args", r#"{"milliseconds": 30000}"#, "--cancel-after", "700"];

/// Gives up a call of `test_delay`; only this call's lines are in the record.
fn give_up(house: &House, client: Client, tool: &str, target: &Target) {
    let before = house.read("record");
    house.write("record", "");
    let mut options = vec!["--tool", tool];
    options.extend(GIVE_UP);
    let seen = ask(house, client, &options, target);
    assert_eq!(seen.at("/cancelled"), &serde_json::json!(true), "{client:?} {target:?}: {}", seen.0);
    house.await_record("cancelled test_delay");
    assert_eq!(house.recorded(), ["tools/call test_delay", "cancelled test_delay"], "{client:?} {target:?}");
    house.write("record", &format!("{before}{}", house.read("record")));
}

#[test]
fn giving_up_reaches_a_server_over_http() {
    let house = House::new("");
    let fixture = fixture_over_http(&house);
    house.configure(&format!("{PERMISSIVE}{}", server_table("fixture", &Target::Url(fixture.url.clone()))));
    let gateway = house.serve();
    let (one, common) = (Target::Url(gateway.url("/mcp/fixture")), Target::Url(gateway.url("/mcp")));
    for client in [TS1, TS2_LEGACY, TS2_MODERN, PYTHON_LEGACY, PYTHON_MODERN] {
        give_up(&house, client, "test_delay", &one);
    }
    for client in [TS2_LEGACY, PYTHON_MODERN] {
        give_up(&house, client, "fixture__test_delay", &common);
    }
    gateway.stop();
    house.audited();
}

#[test]
fn giving_up_reaches_a_child() {
    let house = House::new("");
    house.configure(&format!("{PERMISSIVE}{}", server_table("fixture", &Target::Command(fixture_command(&house)))));
    let gateway = house.serve();
    let one = Target::Url(gateway.url("/mcp/fixture"));
    for client in [TS1, TS2_MODERN, PYTHON_LEGACY, PYTHON_MODERN] {
        give_up(&house, client, "test_delay", &one);
    }
    give_up(&house, TS2_LEGACY, "fixture__test_delay", &Door::PipeCommon.target("", "fixture"));
    give_up(&house, TS2_MODERN, "test_delay", &Door::PipeOne.target("", "fixture"));
    gateway.stop();
    house.audited();
}
