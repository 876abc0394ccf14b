//! What acts at once when the config changes, servers among it, and what says that it waits for a restart.

use serde_json::json;

use crate::house::House;
use crate::server::{Server, eventually};

const NOTE: &str = "This note is kept by the demo server.";
const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

fn notes(arguments: &str, more: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolwarden");
    format!("[servers.notes]\ncommand = \"{program}\"\nargs = [\"demo-server\"{arguments}]\n{more}\n")
}

#[test]
fn screening_acts_on_the_next_answer_and_less_of_it_is_told() {
    let house = House::new();
    // Put together here, so that nobody takes it for a real one.
    let token = format!("ghp_{}", "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6");
    house.write(CONFIG, &notes("", ""));
    house.run(&["allow", "notes:*"]);
    let server = Server::start(&house);
    server.call("write_note", &json!({ "name": "key", "text": token }));
    let read = || server.call("read_note", &json!({ "name": "key" }));
    assert_eq!(read(), token);
    house.write(CONFIG, &notes("", "screening = \"redact\""));
    assert!(eventually(|| read() == "[redacted: github-token]"), "{}", house.read("server.log"));
    assert!(!house.read("server.log").contains("made the policy wider"));
    house.write(CONFIG, &notes("", "screening = \"mark\""));
    assert!(eventually(|| read() == token));
    let recorded = house.run(&["audit", "query", "--kind", "event", "--json"]).out;
    assert!(recorded.contains("of what `notes` returns, screening lets more through"), "{recorded}");
    server.stop();
}

#[test]
fn what_waits_for_a_restart_is_told_everywhere_and_servers_do_not() {
    let house = House::new();
    house.write(CONFIG, &notes("", ""));
    let server = Server::start(&house);
    let changed = ["[gateway]", "[telemetry]"];
    let other = "[gateway]\nhold = \"deny\"\n[telemetry]\nlog = \"json\"\n[servers.files]\ncommand = \"files\"\n";
    house.write(CONFIG, &notes(", \"--other\"", other));
    let log = || house.read("server.log");
    let line = format!("acts after a restart only: {}", changed.join(", "));
    assert!(eventually(|| log().contains(&line)), "{}", log());
    let page = server.page("/readyz");
    let doctor = house.run(&["doctor"]).out;
    assert!(changed.iter().all(|what| page.contains(what) && doctor.contains(what)), "{page}\n{doctor}");
    assert!(doctor.contains("next: restart the server"), "{doctor}");
    house.write(CONFIG, &notes("", "[gateway.limits]\nper_minute = 5000"));
    let waits = || house.run(&["doctor"]).out.contains("restart the server");
    assert!(eventually(|| !waits()), "{}", log());
    server.stop();
}

/// The children of a process, by number: each of its threads has its own.
fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let told = tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let all = told.collect::<Vec<_>>().join(" ");
    all.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

#[test]
fn mode_7_a_server_that_is_started_otherwise_waits_for_a_person_and_is_started_anew() {
    let house = House::new();
    house.write(CONFIG, &notes("", ""));
    house.run(&["allow", "notes:*"]);
    let server = Server::start(&house);
    let read = || server.read_note();
    assert_eq!(read(), NOTE);
    let former = children(server.pid());
    assert_eq!(former.len(), 1);
    house.write(CONFIG, &notes(", \"--other\"", ""));
    let log = || house.read("server.log");
    assert!(eventually(|| read() != NOTE), "{}", log());
    assert!(eventually(|| children(server.pid()).is_empty()), "the former process is gone");
    assert!(log().contains("notes:server/launch changed and waits for a person"), "{}", log());
    assert!(!log().contains("acts after a restart only"), "{}", log());
    // As it was accepted.
    house.write(CONFIG, &notes("", ""));
    assert!(eventually(|| read() == NOTE), "{}", log());
    assert_eq!(children(server.pid()).len(), 1);
    // Another environment is another start, which nobody has to accept where changes are followed.
    let now = children(server.pid());
    house.write(CONFIG, &notes("", "env = { SOME = \"thing\" }\ndefinitions = \"follow\""));
    assert!(eventually(|| { read() == NOTE && children(server.pid()) != now }), "{}", log());
    // What changes nothing about its start does not disturb it.
    let now = children(server.pid());
    let more =
        "env = { SOME = \"thing\" }\ndefinitions = \"follow\"\nscreening = \"mark\"\n[auto_run]\nask = [\"a:b\"]";
    house.write(CONFIG, &notes("", more));
    let in_force = || log().matches("is in force").count();
    let before = in_force();
    assert!(eventually(|| in_force() > before), "{}", log());
    assert_eq!((read(), children(server.pid())), (NOTE.to_owned(), now));
    server.stop();
}

#[test]
fn allow_12_a_server_is_added_and_removed_while_the_gateway_runs() {
    let house = House::new();
    house.write(CONFIG, &notes("", ""));
    let server = Server::start(&house);
    let names = || {
        let listed = house.json(&["servers", "list"]);
        let name = |one: &serde_json::Value| one.get("name").and_then(serde_json::Value::as_str).map(str::to_owned);
        listed.as_array().into_iter().flatten().filter_map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(), ["notes"]);
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let added = format!("[servers.more]\ncommand = \"{program}\"\nargs = [\"demo-server\"]");
    house.write(CONFIG, &notes("", &added));
    assert!(eventually(|| names() == ["notes", "more"]), "{}", house.read("server.log"));
    let recorded = || house.run(&["audit", "query", "--kind", "event", "--json"]).out;
    assert!(eventually(|| recorded().contains("the server `more` is new")), "it is told as something wider");
    house.run(&["allow", "more:*"]);
    let call = || server.call_at("/mcp/more", "read_note", &json!({ "name": "welcome" }));
    assert!(eventually(|| call() == NOTE), "{}", call());
    assert!(server.page("/readyz").contains("\"more\"") && server.page("/metrics").contains("server=\"more\""));
    assert_eq!(children(server.pid()).len(), 2);
    house.write(CONFIG, &notes("", ""));
    assert!(eventually(|| names() == ["notes"]), "{}", house.read("server.log"));
    assert!(eventually(|| children(server.pid()).len() == 1), "its process is gone");
    assert!(call().contains("no server is called `more`"), "{}", call());
    assert!(!server.page("/readyz").contains("\"more\"") && !server.page("/metrics").contains("server=\"more\""));
    server.stop();
}

#[test]
fn where_nobody_is_asked_what_would_be_held_is_denied() {
    let house = House::new();
    house.write(CONFIG, "[gateway]\nhold = \"deny\"\n");
    let server = Server::start(&house);
    let said = server.read_note();
    assert!(said.contains("Denied by Toolwarden") && !said.contains("ask the user to approve"), "{said}");
    let row = house.json(&["audit", "query", "--tool", "notes:read_note"]);
    assert_eq!(row.pointer("/0/decision"), Some(&json!("deny")), "{row}");
    assert_eq!(row.pointer("/0/status"), Some(&json!("denied")), "{row}");
    server.stop();
}
