//! `audit`: rows, filters, exports, numbers, and what `verify` finds.

use std::fs;
use std::path::PathBuf;

use crate::house::House;
use crate::server::Server;

const JOURNAL: &str = "home/.local/share/toolwarden/journal";

fn busy() -> House {
    let house = House::new();
    for entry in ["a:one", "a:two", "b:three"] {
        assert_eq!(house.run(&["allow", entry]).code, 0);
    }
    house
}

/// The only segment of a node.
fn segment(house: &House, node: &str) -> PathBuf {
    let entries = fs::read_dir(house.path(JOURNAL).join(node)).into_iter().flatten().flatten();
    let largest = entries.max_by_key(|entry| entry.metadata().map(|found| found.len()).unwrap_or_default());
    largest.map(|entry| entry.path()).unwrap_or_default()
}

/// Changes one letter of an entry's name in the record.
fn edit(house: &House, node: &str) {
    let path = segment(house, node);
    let bytes = fs::read(&path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replacen("a:two", "a:twO", 1);
    assert!(text.as_bytes() != bytes.as_slice() && fs::write(&path, text).is_ok(), "{}", path.display());
}

#[test]
fn gate_15_an_edited_byte_is_found_and_its_place_is_named() {
    let house = busy();
    let whole = house.run(&["audit", "verify"]);
    assert!(whole.code == 0 && whole.out.starts_with("cli-1  whole: "), "{}", whole.out);
    edit(&house, "cli-1");
    let broken = house.run(&["audit", "verify"]);
    assert_eq!(broken.code, 1);
    assert!(broken.out.contains("cli-1  BROKEN at cli-1/") && broken.out.contains(", record "), "{}", broken.out);
    let json = house.run(&["audit", "verify", "--json"]);
    assert!(json.code == 1 && json.out.contains("\"whole\": false"), "{}", json.out);
    // What is in front of the bad place can still be asked for, and the answer says what is missing.
    let rows = house.run(&["audit", "query"]);
    assert!(rows.code == 0 && rows.err.contains("run `toolwarden audit verify`"), "{}{}", rows.out, rows.err);
}

#[test]
fn gate_15_an_edited_byte_is_found_beside_a_running_server() {
    let house = House::new();
    let server = Server::start(&house);
    house.run(&["allow", "a:two"]);
    assert_eq!(house.run(&["audit", "verify"]).code, 0);
    edit(&house, "serve-1");
    let broken = house.run(&["audit", "verify"]);
    assert!(broken.code == 1 && broken.out.contains("serve-1  BROKEN"), "{}", broken.out);
    drop(server);
}

#[test]
fn gate_15_a_lost_key_is_said_and_not_replaced() {
    let house = busy();
    assert!(fs::remove_file(house.path("home/.config/toolwarden/master.key")).is_ok());
    let ran = house.run(&["audit", "verify"]);
    assert!(ran.code == 1 && ran.err.contains("put that key file back from a backup"), "{}", ran.err);
    assert!(!house.path("home/.config/toolwarden/master.key").exists());
}

#[test]
fn rows_are_filtered_limited_and_newest_first() {
    let house = busy();
    let json = house.json(&["audit", "query", "--limit", "2"]);
    let details: Vec<&str> =
        json.as_array().into_iter().flatten().filter_map(|row| row.get("detail")?.as_str()).collect();
    assert!(matches!(details.as_slice(), [first, second] if first.contains("b:three") && second.contains("a:two")));
    assert_eq!(house.run(&["audit", "query", "--decision", "deny"]).out, "no rows\n");
    assert_eq!(house.run(&["audit", "query", "--since", "1h"]).out.lines().count(), 3);
    assert_eq!(house.run(&["audit", "query", "--until", "1h"]).out, "no rows\n");
    assert_eq!(house.json(&["audit", "query", "--tool", "x:y"]), serde_json::json!([]));
    for wrong in [["--decision", "allowed"], ["--status", "fine"], ["--since", "yesterday"], ["--limit", "-1"]] {
        let mut arguments = vec!["audit", "query"];
        arguments.extend(wrong);
        assert_eq!(house.run(&arguments).code, 2, "{wrong:?}");
    }
}

#[test]
fn exports_and_numbers_hold_every_row() {
    let house = busy();
    let jsonl = house.run(&["audit", "export"]).out;
    assert_eq!(jsonl.lines().filter(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()).count(), 3);
    assert!(jsonl.lines().next().is_some_and(|line| line.contains("a:one")), "{jsonl}");
    let csv = house.run(&["audit", "export", "--format", "csv", "--since", "1h"]).out;
    assert!(csv.starts_with("time,kind,decision,") && csv.lines().count() == 4, "{csv}");
    let ocsf = house.run(&["audit", "export", "--format", "ocsf"]).out;
    let is_event = |line: &str| {
        let event: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
        event.get("class_uid") == Some(&6003.into()) && event.pointer("/api/operation").is_some()
    };
    assert!(ocsf.lines().count() == 3 && ocsf.lines().all(is_event), "{ocsf}");
    let syslog = house.run(&["audit", "export", "--format", "syslog"]).out;
    let is_line = |line: &str| line.starts_with("<110>1 2") && line.contains(" - toolwarden cli-1 event [toolwarden@");
    assert!(syslog.lines().count() == 3 && syslog.lines().all(is_line), "{syslog}");
    assert!(house.run(&["audit", "stats"]).out.starts_with("3 records\n"));
    assert_eq!(house.json(&["audit", "stats"]).get("total"), Some(&3.into()));
}

#[test]
fn a_fresh_home_has_nothing_to_show_and_nothing_wrong() {
    let house = House::new();
    assert_eq!(house.shown(&["audit", "query"]), "$ toolwarden audit query\nno rows\n[exit 0]\n");
    assert_eq!(house.run(&["audit", "verify"]).code, 0);
    assert_eq!(house.run(&["audit", "export"]).out, "");
    assert!(!house.path("home/.config/toolwarden").exists());
}

#[test]
fn gate_15_a_record_that_was_taken_away_whole_is_missed() {
    let house = busy();
    // The index has seen it.
    assert_eq!(house.run(&["audit", "query"]).code, 0);
    assert!(fs::remove_dir_all(house.path(JOURNAL)).is_ok());
    let missed = house.run(&["audit", "verify"]);
    assert!(missed.code == 1 && missed.out.contains("cli-1"), "{} {}", missed.out, missed.err);
}

#[test]
fn a_broken_index_does_not_keep_the_record_from_being_checked() {
    let house = busy();
    house.write(
        "home/.local/share/toolwarden/toolwarden.sqlite",
        "this is no database, and it is long enough to be read as one",
    );
    let checked = house.run(&["audit", "verify"]);
    assert!(checked.code == 0 && checked.out.contains("cli-1  whole"), "{} {}", checked.out, checked.err);
    assert!(checked.err.contains("the index cannot be used"), "{}", checked.err);
}
