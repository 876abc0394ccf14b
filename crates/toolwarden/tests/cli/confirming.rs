//! `[control] confirm_file_widening`: what files newly allow waits for a person (SELF-2).

use std::process::{Command, ExitStatus};

use serde_json::json;

use crate::house::House;
use crate::server::{Server, eventually};

const NOTE: &str = "This note is kept by the demo server.";
const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const OWN: &str = "home/.cursor/permissions.json";
const ASKS: &str = "[control]\nconfirm_file_widening = true\n";

/// The mark of the policy that waits, as `doctor` tells it.
fn waiting(house: &House) -> Option<String> {
    let told = house.run(&["doctor"]).out;
    let (_, after) = told.split_once("policy confirm ")?;
    after.split('`').next().map(str::to_owned)
}

fn wait_for_mark(house: &House, other_than: &str) -> String {
    assert!(eventually(|| waiting(house).is_some_and(|mark| mark != other_than)));
    waiting(house).unwrap_or_default()
}

fn allow(house: &House, entry: &str) {
    house.write(OWN, &format!("{{\"mcpAllowlist\": [\"{entry}\"]}}"));
}

#[test]
fn self_2_a_file_that_widens_waits_for_a_person_where_the_config_asks_for_it() {
    let house = House::new();
    house.write(CONFIG, ASKS);
    let server = Server::start(&house);
    allow(&house, "notes:read_note");
    let first = wait_for_mark(&house, "");
    assert!(house.read("server.log").contains("`notes:read_note`"), "{}", house.read("server.log"));
    assert_ne!(server.read_note(), NOTE, "it is not in force yet");
    let doctor = house.run(&["doctor"]).out;
    assert!(doctor.contains(&format!("toolwarden policy confirm {first}")), "{doctor}");

    // Who agrees to one policy agrees to no other.
    allow(&house, "notes:*");
    let second = wait_for_mark(&house, &first);
    let stale = house.run(&["policy", "confirm", &first]);
    assert!(stale.code != 0 && stale.err.contains(&second), "{} {}", stale.out, stale.err);
    assert_ne!(server.read_note(), NOTE);

    let agreed = house.run(&["policy", "confirm", &second]);
    assert_eq!((agreed.code, agreed.out), (0, format!("agreed to the policy {second}\n")), "{}", agreed.err);
    assert_eq!(server.read_note(), NOTE);
    assert_eq!(waiting(&house), None);
    let recorded = house.run(&["audit", "query", "--kind", "event", "--json"]).out;
    assert!(recorded.contains("policy_confirm") && recorded.contains(&second), "{recorded}");
    assert!(recorded.contains("policy_widened"), "{recorded}");
    server.stop();
}

#[test]
fn self_2_what_narrows_or_what_a_person_asked_for_waits_for_nobody() {
    let house = House::new();
    house.write(CONFIG, ASKS);
    allow(&house, "notes:*");
    let server = Server::start(&house);
    assert_eq!(server.read_note(), NOTE);
    house.write(OWN, "{\"mcpAllowlist\": []}");
    assert!(eventually(|| server.read_note() != NOTE), "{}", house.read("server.log"));
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 0);
    assert_eq!(server.read_note(), NOTE);
    assert_eq!(house.run(&["disallow", "notes:read_note"]).code, 0);
    assert_ne!(server.read_note(), NOTE);
    assert_eq!(waiting(&house), None);
    server.stop();
}

#[test]
fn self_2_a_widening_that_cannot_be_stored_is_not_in_force() {
    let house = House::new();
    allow(&house, "notes:read_note");
    let server = Server::start(&house);
    assert_eq!(server.read_note(), NOTE);
    let database = house.path("home/.local/share/toolwarden/toolwarden.sqlite");
    let run = |sql: &str| {
        let ran = Command::new("sqlite3").args(["-cmd", ".timeout 5000"]).arg(&database).arg(sql).status();
        assert!(ran.as_ref().is_ok_and(ExitStatus::success), "sqlite3 is needed (tests/peers/install): {ran:?}");
    };
    run("CREATE TRIGGER full BEFORE INSERT ON versions BEGIN SELECT RAISE(ABORT, 'no room'); END");
    let write = || server.call("write_note", &json!({ "name": "plan", "text": "x" }));
    allow(&house, "notes:*");
    let told = "makes the policy wider, and cannot be stored as a version";
    assert!(eventually(|| house.read("server.log").contains(told)), "{}", house.read("server.log"));
    assert!(write().contains("Held by Toolwarden"));
    assert_eq!(server.read_note(), NOTE, "the former policy stays");
    assert!(server.page("/readyz").contains("\"refused\":{\"since\""), "{}", server.page("/readyz"));
    assert!(house.run(&["doctor"]).out.contains("cannot be stored as a version"));
    // What takes something away acts all the same.
    house.write(OWN, "{\"mcpAllowlist\": []}");
    assert!(eventually(|| server.read_note() != NOTE), "{}", house.read("server.log"));
    // And once it can be stored, it is in force and in the history.
    run("DROP TRIGGER full");
    allow(&house, "notes:*");
    assert!(eventually(|| write().contains("wrote plan")), "{}", house.read("server.log"));
    assert!(house.run(&["policy", "history"]).out.contains("file"));
    server.stop();
}

#[test]
fn self_2_following_a_servers_changes_is_a_widening() {
    let house = House::new();
    let defined = format!(
        "{ASKS}[servers.notes]\ncommand = \"{}\"\nargs = [\"demo-server\"]\n",
        env!("CARGO_BIN_EXE_toolwarden")
    );
    house.write(CONFIG, &defined);
    let server = Server::start(&house);
    house.write(CONFIG, &format!("{defined}definitions = \"follow\"\n"));
    let mark = wait_for_mark(&house, "");
    let log = house.read("server.log");
    assert!(log.contains("changed definitions of `notes` need nobody's consent"), "{log}");
    assert_eq!(house.run(&["policy", "confirm", &mark]).code, 0);
    assert_eq!(waiting(&house), None);
    server.stop();
}

#[test]
fn self_2_that_files_need_no_consent_any_more_needs_consent() {
    let house = House::new();
    house.write(CONFIG, ASKS);
    let server = Server::start(&house);
    house.write(CONFIG, "");
    let mark = wait_for_mark(&house, "");
    allow(&house, "notes:read_note");
    let both = wait_for_mark(&house, &mark);
    assert_ne!(server.read_note(), NOTE);
    // The file as it was, and nothing waits.
    house.write(CONFIG, ASKS);
    house.write(OWN, "{\"mcpAllowlist\": []}");
    assert!(eventually(|| waiting(&house).is_none()), "{}", house.read("server.log"));
    // With consent, files act from then on by themselves.
    house.write(CONFIG, "");
    let mark = wait_for_mark(&house, &both);
    assert_eq!(house.run(&["policy", "confirm", &mark]).code, 0);
    allow(&house, "notes:read_note");
    assert!(eventually(|| server.read_note() == NOTE), "{}", house.read("server.log"));
    server.stop();
}

#[test]
fn a_mark_is_a_mark() {
    let house = House::new();
    for wrong in ["", "5d41402abc4b", "5d41402abc4b2a76b9719d911017c59g", "5d41402abc4b2a76b9719d911017c5921"] {
        let run = house.run(&["policy", "confirm", wrong]);
        assert!(run.code == 2 && run.err.contains("a mark is 32 characters"), "{wrong}: {} {}", run.code, run.err);
    }
}
