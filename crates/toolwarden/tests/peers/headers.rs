//! Which headers travel: what a tool asked to be mirrored does, what a client sends besides does not.

use serde_json::{Value, json};

use crate::house::{House, PERMISSIVE};
use crate::pairs_table::{Door, PYTHON_LEGACY, PYTHON_MODERN, TS1, TS2_LEGACY, TS2_MODERN};
use crate::peers::{Listening, Target, ask, fixture_over_http, server_table};

fn house_with_fixture() -> (House, Listening) {
    let house = House::new("");
    let fixture = fixture_over_http(&house);
    house.configure(&format!("{PERMISSIVE}{}", server_table("fixture", &Target::Url(fixture.url.clone()))));
    (house, fixture)
}

#[test]
fn parameters_mirrored_in_headers_arrive() {
    let (house, fixture) = house_with_fixture();
    let gateway = house.serve();
    let doors = [("/mcp/fixture", "test_custom_header"), ("/mcp", "fixture__test_custom_header")];
    for client in [TS2_LEGACY, TS2_MODERN, PYTHON_MODERN] {
        let options = |tool| ["--tool", tool, "--args", r#"{"region": "Åland"}"#];
        let record = house.read("record");
        let direct = ask(&house, client, &options("test_custom_header"), &Target::Url(fixture.url.clone()));
        house.write("record", &record);
        assert_eq!(direct.text(), "The region is Åland.", "{}", direct.0);
        for (door, tool) in doors {
            let seen = ask(&house, client, &options(tool), &Target::Url(gateway.url(door)));
            assert_eq!(seen.text(), direct.text(), "{client:?} at {door}: {}", seen.0);
        }
    }
    gateway.stop();
    house.audited();
}

/// On a pipe there are no headers: the gateway makes them from the body when a request leaves over HTTP.
#[test]
fn parameters_are_mirrored_for_clients_over_a_pipe() {
    let (house, _fixture) = house_with_fixture();
    let rows = [(Door::PipeOne, "test_custom_header"), (Door::PipeCommon, "fixture__test_custom_header")];
    for (door, tool) in rows {
        let options = ["--tool", tool, "--args", r#"{"region": "Åland"}"#];
        let seen = ask(&house, TS2_MODERN, &options, &door.target("", "fixture"));
        assert_eq!(seen.text(), "The region is Åland.", "{door:?}: {}", seen.at("/error"));
    }
    house.audited();
}

#[test]
fn what_a_client_sends_besides_stays_here() {
    let (house, _fixture) = house_with_fixture();
    let gateway = house.serve();
    for client in [TS1, TS2_LEGACY, TS2_MODERN, PYTHON_LEGACY, PYTHON_MODERN] {
        let secrets = ["--header", "X-Api-Key: hidden", "--header", "Cookie: a=hidden", "--header", "Via: hidden"];
        for (door, tool) in [("/mcp/fixture", "test_request_headers"), ("/mcp", "fixture__test_request_headers")] {
            let options: Vec<&str> = ["--tool", tool].into_iter().chain(secrets).collect();
            let seen = ask(&house, client, &options, &Target::Url(gateway.url(door)));
            let arrived: Value = serde_json::from_str(seen.text()).unwrap_or_default();
            assert!(arrived.get("host").is_some(), "{client:?} at {door}: {}", seen.0);
            assert!(!arrived.to_string().contains("hidden"), "{client:?} at {door}: {arrived}");
            let agent = arrived.get("user-agent").and_then(Value::as_str).unwrap_or_default();
            assert!(agent.starts_with("toolwarden"), "{client:?} at {door}: {arrived}");
        }
    }
    gateway.stop();
    house.audited();
}

#[test]
fn a_credential_nobody_issued_is_refused() {
    let (house, _fixture) = house_with_fixture();
    let gateway = house.serve();
    for client in [TS1, TS2_LEGACY, TS2_MODERN, PYTHON_LEGACY, PYTHON_MODERN] {
        let options = ["--tool", "test_echo", "--header", "Authorization: Bearer forged"];
        let seen = ask(&house, client, &options, &Target::Url(gateway.url("/mcp/fixture")));
        assert_eq!((seen.at("/tools"), seen.at("/result")), (&json!(null), &json!(null)), "{client:?}: {}", seen.0);
        assert!(!seen.at("/error").is_null(), "{client:?}: {}", seen.0);
    }
    gateway.stop();
    assert_eq!(house.recorded(), Vec::<String>::new());
    house.audited();
}
