//! What acts at once when the config changes, and what says that it waits for a restart.

use serde_json::json;

use crate::house::House;
use crate::server::{Server, eventually};

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
fn what_waits_for_a_restart_is_told_everywhere() {
    let house = House::new();
    house.write(CONFIG, &notes("", ""));
    let server = Server::start(&house);
    let states = || house.json(&["servers", "list"]).pointer("/0/status").cloned();
    assert_eq!(states(), Some(json!("connected")));
    let changed = ["[gateway]", "[telemetry]", "server `files`", "server `notes`"];
    let other = "[gateway]\nhold = \"deny\"\n[telemetry]\nlog = \"json\"\n[servers.files]\ncommand = \"files\"\n";
    house.write(CONFIG, &notes(", \"--other\"", other));
    let log = || house.read("server.log");
    let line = format!("acts after a restart only: {}", changed.join(", "));
    assert!(eventually(|| log().contains(&line)), "{}", log());
    let page = server.page("/readyz");
    let doctor = house.run(&["doctor"]).out;
    assert!(changed.iter().all(|what| page.contains(what) && doctor.contains(what)), "{page}\n{doctor}");
    assert!(doctor.contains("next: restart the server"), "{doctor}");
    // What is judged must be what is reached, so it is off, and is seen to be.
    assert_eq!(states(), Some(json!("disabled")));
    assert!(server.page("/readyz").contains("\"state\":\"disabled\""));
    house.write(CONFIG, &notes("", "[gateway.limits]\nper_minute = 5000"));
    assert!(eventually(|| states() == Some(json!("connected"))), "{}", log());
    assert!(!house.run(&["doctor"]).out.contains("restart the server"));
    server.stop();
}

#[test]
fn where_nobody_is_asked_what_would_be_held_is_denied() {
    let house = House::new();
    house.write(CONFIG, "[gateway]\nhold = \"deny\"\n");
    let server = Server::start(&house);
    let said = server.read_note();
    assert!(said.contains("Denied by Toolwarden") && !said.contains("A person can permit it"), "{said}");
    let row = house.json(&["audit", "query", "--tool", "notes:read_note"]);
    assert_eq!(row.pointer("/0/decision"), Some(&json!("deny")), "{row}");
    assert_eq!(row.pointer("/0/status"), Some(&json!("denied")), "{row}");
    server.stop();
}
