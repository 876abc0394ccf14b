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
    assert!(held.contains("definition_changed") && held.contains("toolwarden tools diff"), "{held}");
    assert!(house.path("space/one").exists() && !house.path("space/two").exists(), "it was started");
    let diff = house.run(&["tools", "diff", "notes"]).out;
    assert!(diff.contains("notes:server/launch changed") && diff.contains("touch one"), "{diff}");
    assert!(diff.contains("+ reached/args/1: touch two") && diff.contains("tools accept notes"), "{diff}");
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
        (vec!["tools", "accept", "nobody"], "nothing is waiting"),
        (vec!["tools", "accept", "notes:nothing"], "nothing of that name was seen"),
        (vec!["tools", "accept", "notes:server/launch", "--version", "zzz"], "nothing of that name was seen"),
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
