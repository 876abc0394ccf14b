//! Calls that may not run, in the hands of real clients: an answer the model can read, and nothing reached the server.

use serde_json::{Value, json};

use crate::house::House;
use crate::pairs_table::{Door, INSPECTOR, PYTHON_LEGACY, PYTHON_MODERN, TS1, TS2_LEGACY, TS2_MODERN};
use crate::peers::{Client, Target, ask, fixture_command, fixture_over_http, server_table};

const CLIENTS: [Client; 5] = [TS1, TS2_LEGACY, TS2_MODERN, PYTHON_LEGACY, PYTHON_MODERN];
const NARROW: &str =
    "[modes.narrow]\nname = \"Narrow\"\ngroups = [\"mcp\"]\ndisallowed_tools = [\"http:test_delay\"]\n";

/// The fixture over HTTP and as a child behind a gateway with this policy; nothing may reach either.
fn with_policy(policy: &str, permissions: &str, test: impl Fn(&House, &dyn Fn(&str) -> Target)) -> Vec<Value> {
    let house = House::new("");
    let fixture = fixture_over_http(&house);
    let (http, child) = (Target::Url(fixture.url.clone()), Target::Command(fixture_command(&house)));
    house.configure(&format!("{policy}{}{}", server_table("http", &http), server_table("child", &child)));
    if !permissions.is_empty() {
        house.write("home/.cursor/permissions.json", permissions);
    }
    let gateway = house.serve();
    test(&house, &|door| Target::Url(gateway.url(door)));
    gateway.stop();
    assert_eq!(house.recorded(), Vec::<String>::new(), "a call reached the server that must not");
    house.audited()
}

/// A call is answered with a result that says whom to ask, and for programs which entry would permit it.
fn is_held(house: &House, client: Client, tool: &str, target: &Target, entry: &str) {
    let seen = ask(house, client, &["--tool", tool, "--args", r#"{"text": "a"}"#], target);
    assert!(seen.at("/error").is_null(), "{client:?} at {target:?}: {}", seen.0);
    assert_eq!(seen.at("/result/isError"), &json!(true), "{client:?} at {target:?}: {}", seen.0);
    let candidates = seen.at("/result/_meta/toolwarden~1decision/candidates").to_string();
    assert!(candidates.contains(entry), "{client:?} at {target:?}: {}", seen.0);
    assert!(seen.text().contains("ask the user to approve call"), "{client:?} at {target:?}: {}", seen.text());
    assert!(!seen.text().contains("toolwarden "), "no command line: {}", seen.text());
}

fn count(records: &[Value], kind: &str) -> usize {
    records.iter().filter(|record| record.get("kind").and_then(Value::as_str) == Some(kind)).count()
}

#[test]
fn with_an_empty_allowlist_no_call_reaches_a_server() {
    let records = with_policy("", "", |house, door| {
        for client in CLIENTS {
            is_held(house, client, "test_echo", &door("/mcp/http"), "http:test_echo");
            is_held(house, client, "child__test_echo", &door("/mcp"), "child:test_echo");
        }
        is_held(house, INSPECTOR, "test_echo", &door("/mcp/child"), "child:test_echo");
        is_held(house, TS1, "http__test_echo", &Door::PipeCommon.target("", "http"), "http:test_echo");
    });
    assert_eq!((count(&records, "intent"), count(&records, "refusal")), (0, 2 * CLIENTS.len() + 2), "{records:#?}");
}

#[test]
fn asking_every_time_holds_what_the_allowlist_permits() {
    let policy = "[auto_run]\nmode = \"ask_every_time\"\n";
    with_policy(policy, r#"{"mcpAllowlist": ["http:*", "child:*"]}"#, |house, door| {
        for client in [TS1, TS2_MODERN, PYTHON_LEGACY] {
            let seen = ask(house, client, &["--tool", "test_echo"], &door("/mcp/http"));
            assert_eq!(seen.at("/result/isError"), &json!(true), "{}", seen.0);
            assert!(seen.text().contains("Held by Toolwarden, nothing was run"), "{}", seen.text());
        }
    });
}

#[test]
fn a_mode_hides_what_it_forbids() {
    let policy = format!("[auto_run]\nmode = \"run_everything\"\n{NARROW}");
    let records = with_policy(&policy, "", |house, door| {
        for client in CLIENTS {
            let options = ["--tool", "test_delay", "--args", r#"{"milliseconds": 1}"#];
            let seen = ask(house, client, &options, &door("/mcp/http?mode=narrow"));
            assert!(seen.tools().iter().any(|tool| tool == "test_echo"), "{client:?}: {}", seen.0);
            assert!(!seen.tools().iter().any(|tool| tool == "test_delay"), "{client:?}: {}", seen.0);
            let refused = !seen.at("/error").is_null() || seen.at("/result/isError") == &json!(true);
            assert!(refused, "{client:?}: {}", seen.0);
        }
        let seen = ask(house, TS2_LEGACY, &[], &door("/mcp?mode=narrow"));
        assert!(seen.tools().iter().any(|tool| tool == "child__test_delay"), "{}", seen.0);
        assert!(!seen.tools().iter().any(|tool| tool == "http__test_delay"), "{}", seen.0);
        let seen = ask(house, TS2_LEGACY, &[], &door("/mcp/http"));
        assert!(seen.tools().iter().any(|tool| tool == "test_delay"), "{}", seen.0);
    });
    assert_eq!(count(&records, "intent"), 0, "{records:#?}");
}
