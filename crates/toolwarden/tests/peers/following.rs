//! A real client of tasks (`ext-tasks`) whose calls are held: it follows them, in both eras, until a person has answered.

use serde_json::{Value, json};

use crate::house::House;
use crate::peers::{Client, Seen, Target, ask, everything_over_http, fixture_over_http, server_table};

const MODERN: Client = Client { name: "tasks", mode: "modern" };
const LEGACY: Client = Client { name: "tasks", mode: "legacy" };
const LOOKS: usize = 1_000;

fn toolwarden(house: &House, words: &[&str]) -> Value {
    let ran = house.command(env!("CARGO_BIN_EXE_toolwarden")).args(words).arg("--json").output();
    serde_json::from_slice(&ran.map(|output| output.stdout).unwrap_or_default()).unwrap_or_default()
}

/// The call that waits, once one does. Each look is a program of its own, which takes its time.
fn held(house: &House) -> String {
    let found = (0..LOOKS).find_map(|_| {
        let found = toolwarden(house, &["approvals", "list"]);
        found.pointer("/0/id").and_then(Value::as_str).map(str::to_owned)
    });
    assert!(found.is_some(), "no call was held");
    found.unwrap_or_default()
}

/// What the client saw of a call that somebody answers while it follows it.
fn followed(house: &House, client: Client, (tool, arguments): (&str, &str), door: &Target, word: &str) -> Seen {
    std::thread::scope(|scope| {
        let seen = scope.spawn(|| ask(house, client, &["--tool", tool, "--args", arguments], door));
        let answered = toolwarden(house, &["approvals", word, &held(house)]);
        assert_eq!(answered.get("followed").is_some(), word == "approve", "{answered}");
        let seen = seen.join();
        assert!(seen.is_ok(), "the client ended");
        seen.unwrap_or_else(|_| Seen(Value::Null))
    })
}

#[test]
fn review_8_a_real_client_follows_a_held_call_as_a_task() {
    let house = House::new("");
    let fixture = fixture_over_http(&house);
    house.configure(&server_table("http", &Target::Url(fixture.url.clone())));
    let gateway = house.serve();
    let calls = || house.recorded().iter().filter(|line| line.contains("test_simple_text")).count();
    for (place, (door, tool)) in
        [("/mcp/http", "test_simple_text"), ("/mcp", "http__test_simple_text")].into_iter().enumerate()
    {
        let door = Target::Url(gateway.url(door));
        // Other arguments each time: a call that was denied stays denied.
        let arguments = |number: usize| json!({ "n": place * 2 + number }).to_string();
        let seen = followed(&house, MODERN, (tool, &arguments(0)), &door, "approve");
        assert_eq!(seen.at("/kind"), &json!("task"), "{}", seen.0);
        assert_eq!(seen.at("/states"), &json!(["working", "completed"]), "{}", seen.0);
        assert_eq!((seen.text(), calls()), ("Just a line of text.", place + 1), "{}", seen.0);
        let seen = followed(&house, MODERN, (tool, &arguments(1)), &door, "deny");
        assert_eq!(seen.at("/result/isError"), &json!(true), "{}", seen.0);
        assert_eq!(calls(), place + 1, "a denial is no call");
    }
    gateway.stop();
    house.audited();
}

/// The reference server makes tasks itself: what the client follows is first ours, then the server's, under one id.
#[test]
fn review_8_a_real_legacy_client_follows_a_held_call_into_its_servers_task() {
    let house = House::new("");
    let server = everything_over_http(&house, "streamableHttp");
    house.configure(&server_table("everything", &Target::Url(server.url.clone())));
    let gateway = house.serve();
    let door = Target::Url(gateway.url("/mcp/everything"));
    let tool = |topic: &str| ("simulate-research-query", json!({ "topic": topic }).to_string());
    let (name, arguments) = tool("doors");
    let seen = followed(&house, LEGACY, (name, &arguments), &door, "approve");
    assert_eq!((seen.at("/kind"), seen.at("/status")), (&json!("task"), &json!("completed")), "{}", seen.0);
    assert!(seen.at("/taskId").as_str().is_some_and(|id| id.starts_with("tw-")), "{}", seen.0);
    assert!(seen.text().starts_with("# Research Report: doors"), "{}", seen.0);
    let (name, arguments) = tool("windows");
    let seen = followed(&house, LEGACY, (name, &arguments), &door, "deny");
    assert!(seen.at("/status") == &json!("failed") && !seen.0.to_string().contains("Research Report"), "{}", seen.0);
    gateway.stop();
    house.audited();
}
