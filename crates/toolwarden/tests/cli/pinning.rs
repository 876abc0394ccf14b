//! `tools list|diff|accept` beside a running server and without one, and a server whose launch changed.

use crate::house::House;
use crate::server::Server;

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

/// A server that leaves a trace of what started it.
fn config(trace: &str) -> String {
    let program = env!("CARGO_BIN_EXE_toolwarden");
    format!(
        "[auto_run]\nmode = \"run_everything\"\n[servers.notes]\ncommand = \"/bin/sh\"\n\
         args = [\"-c\", \"touch {trace}; exec {program} demo-server\"]\n"
    )
}

#[test]
fn mode_7_a_server_whose_launch_changed_does_not_start_before_a_person_accepts_it() {
    let house = House::new();
    house.write(CONFIG, &config("one"));
    let server = Server::start(&house);
    assert!(server.read_note().contains("This note"), "{}", house.read("server.log"));
    server.stop();
    let listed = house.run(&["tools", "list"]).out;
    assert!(listed.contains("notes:read_note") && listed.contains("first seen"), "{listed}");
    assert!(house.run(&["tools", "diff"]).out.starts_with("nothing waits"));

    house.write(CONFIG, &config("two"));
    let server = Server::start(&house);
    let held = server.read_note();
    assert!(held.contains("definition_changed") && held.contains("a person compares the definitions"), "{held}");
    assert!(!held.contains("toolwarden tools"), "an agent is told no command: {held}");
    assert!(house.path("space/one").exists() && !house.path("space/two").exists(), "it was started");
    let diff = house.run(&["tools", "diff", "notes"]).out;
    assert!(diff.contains("notes:server/launch changed") && diff.contains("touch one"), "{diff}");
    assert!(diff.contains("+ command: /bin/sh -c 'touch two; ") && !diff.contains("reached/"), "{diff}");
    assert!(diff.contains("tools accept notes --version "), "{diff}");
    let explained = house.run(&["explain", "notes:read_note", "--args", "{\"name\":\"welcome\"}"]);
    assert!(explained.code == 4 && explained.out.contains("definition_changed"), "{}", explained.out);
    assert_eq!(house.run(&["tools", "accept", "notes:read_note"]).code, 2, "nothing of it waits");

    let doctor = house.run(&["doctor"]).out;
    assert!(doctor.contains("definitions of notes") && doctor.contains("toolwarden tools diff notes"), "{doctor}");
    assert!(server.page("/readyz").contains("\"definitions_waiting\":1"), "{}", server.page("/readyz"));

    let accepted = house.run(&["tools", "accept", "notes:server/launch"]);
    assert!(accepted.code == 0 && accepted.out.contains("accepted notes:server/launch"), "{}", accepted.err);
    assert!(server.read_note().contains("This note"), "{}", house.read("server.log"));
    assert!(house.path("space/two").exists());
    assert!(!house.run(&["doctor"]).out.contains("definitions of notes"));
    let recorded = house.run(&["audit", "query", "--kind", "event", "--json"]).out;
    assert!(recorded.contains("accept notes: server/launch (version "), "{recorded}");
    server.stop();
}

#[test]
fn gate_12_acceptance_works_without_a_server_and_says_what_it_cannot_find() {
    let house = House::new();
    house.write(CONFIG, &config("one"));
    Server::start(&house).stop();
    house.write(CONFIG, &config("two"));
    Server::start(&house).stop();
    let json = house.run(&["tools", "diff", "--json"]).out;
    assert!(json.contains("\"standing\": \"changed\"") && json.contains("reached/args/1"), "{json}");
    for (wrong, words) in [
        (vec!["tools", "accept", "nobody"], "nothing was seen of a server called `nobody`"),
        (vec!["tools", "accept", "notes:nothing"], "nothing was seen of notes called `nothing`"),
        (vec!["tools", "accept", "notes:server/launch", "--version", "zzz"], "no version zzz of notes:server/launch"),
    ] {
        let ran = house.run(&wrong);
        assert!(ran.code == 2 && ran.err.contains(words), "{wrong:?}: {}", ran.err);
    }
    assert_eq!(house.run(&["tools", "accept", "notes"]).code, 0);
    assert!(house.run(&["tools", "diff"]).out.starts_with("nothing waits"));
    house.write(CONFIG, &config("three"));
    Server::start(&house).stop();
    house.write(CONFIG, &config("four"));
    Server::start(&house).stop();
    let several = house.run(&["tools", "accept", "notes"]);
    assert!(several.code == 2 && several.err.contains("changed more than once"), "{}", several.err);
}

/// As if the server had begun to list its tools only after it was first seen.
fn nobody_accepted_its_tools(house: &House) {
    let records = std::fs::read_dir(house.path("home/.local/share/toolwarden/pins")).into_iter().flatten().flatten();
    for record in records {
        let text = std::fs::read_to_string(record.path()).unwrap_or_default();
        let mut pins: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let entries = pins.pointer_mut("/tools/entries").and_then(serde_json::Value::as_object_mut);
        for (_, pin) in entries.into_iter().flatten() {
            let Some(pin) = pin.as_object_mut() else { continue };
            let accepted = pin.insert("accepted".to_owned(), serde_json::json!([]));
            pin.insert("waiting".to_owned(), accepted.unwrap_or_default());
        }
        assert!(std::fs::write(record.path(), pins.to_string()).is_ok());
    }
}

#[test]
fn gate_12_several_definitions_are_accepted_by_the_command_that_the_diff_ends_with() {
    let house = House::new();
    house.write(CONFIG, &config("one"));
    let server = Server::start(&house);
    server.read_note();
    server.stop();
    nobody_accepted_its_tools(&house);
    let one = house.run(&["tools", "diff", "notes:read_note"]).out;
    assert!(one.contains("toolwarden tools accept notes:read_note --version ") && !one.contains("all of it"), "{one}");
    let unseen = house.run(&["tools", "accept", "notes"]);
    assert!(unseen.code == 2 && unseen.err.contains("toolwarden tools diff notes"), "{}", unseen.err);
    let stale = house.run(&["tools", "accept", "notes", "--version", "0123"]);
    assert!(stale.code == 2 && stale.err.contains("something else waits now"), "{}", stale.err);
    let diff = house.run(&["tools", "diff", "notes"]).out;
    let command = diff.lines().last().and_then(|line| line.split_once("toolwarden ")).map(|(_, rest)| rest);
    let arguments: Vec<&str> = command.unwrap_or_default().split(' ').collect();
    assert!(unseen.err.contains(command.unwrap_or("nothing")), "the refusal says the same: {}", unseen.err);
    let accepted = house.run(&arguments);
    assert!(accepted.code == 0 && accepted.out.contains("accepted notes:read_note"), "{diff}{}", accepted.err);
    assert!(house.run(&["tools", "diff"]).out.starts_with("nothing waits"));
}
