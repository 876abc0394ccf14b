//! `doctor`: fine on a good setup, and a problem with its remedy on broken ones.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, ExitStatus, Stdio};

use serde_json::Value;

use crate::house::House;
use crate::server::{Server, eventually};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

/// Any free port, so that tests do not meet each other or a real server.
const ANY_PORT: &str = "127.0.0.1:0";
/// A port nobody listens on: below those that are given away.
const NOBODY: &str = "127.0.0.1:1";

/// Exit code, and the checks that are not fine as `name: status: message: next`.
fn examine(house: &House) -> (i32, Vec<String>) {
    let ran = house.run(&["doctor", "--json", "--listen", ANY_PORT]);
    let json: Value = serde_json::from_str(&ran.out).unwrap_or_default();
    let text = |check: &Value, name: &str| check.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let checks = json.get("checks").and_then(Value::as_array).into_iter().flatten();
    let line = |check: &Value| ["name", "status", "message", "next"].map(|name| text(check, name)).join(": ");
    (ran.code, checks.filter(|check| text(check, "status") != "ok").map(line).collect())
}

/// Whether exactly one check complains, with these words.
fn complains(house: &House, begins: &str, contains: &[&str]) {
    let (code, complaints) = examine(house);
    assert_eq!(code, i32::from(begins.contains("problem")), "{complaints:?}");
    let found = complaints.iter().find(|line| line.starts_with(begins));
    assert!(found.is_some_and(|line| contains.iter().all(|part| line.contains(part))), "{complaints:?}");
}

fn good() -> House {
    let house = House::new();
    let hook = "[control.webhooks.ops]\nurl = \"https://hooks.example/x\"\nsecret = \"sixteen bytes or more\"\n";
    house.write(CONFIG, &format!("{hook}[servers.gw]\ncommand = \"sh\"\n"));
    house.run(&["allow", "gw:x"]);
    house
}

/// REVIEW-3: a hold that nobody hears of is as good as a denial, and people should know.
#[test]
fn calls_that_can_be_held_without_anybody_hearing_of_it_are_said() {
    let house = House::new();
    house.write(CONFIG, "[servers.gw]\ncommand = \"sh\"\n");
    complains(&house, "held calls: warning", &["nobody hears of it", "approvals watch", "webhooks", "--may-answer"]);
    let config = "[servers.gw]\ncommand = \"sh\"\n[gateway]\nhold = \"deny\"\n";
    house.write(CONFIG, config);
    assert_eq!(examine(&house), (0, Vec::new()));
    let quiet = "[servers.gw]\ncommand = \"sh\"\n[auto_run]\nmode = \"run_everything\"\n";
    let open = "[auto_run.protections]\nbrowser = false\ndelete = false\n";
    house.write(CONFIG, &format!("{quiet}{open}"));
    let (_, complaints) = examine(&house);
    assert!(!complaints.iter().any(|line| line.starts_with("held calls")), "{complaints:?}");
    house.write(CONFIG, "[servers.gw]\ncommand = \"sh\"\n");
    assert_eq!(house.run(&["tokens", "issue", "--person", "--user", "bob", "--may-answer"]).code, 0);
    let (_, complaints) = examine(&house);
    assert!(!complaints.iter().any(|line| line.starts_with("held calls")), "{complaints:?}");
}

#[test]
fn a_running_server_says_whether_anybody_hears_of_held_calls() {
    let house = House::new();
    let program = env!("CARGO_BIN_EXE_toolwarden");
    house.write(CONFIG, &format!("[servers.notes]\ncommand = \"{program}\"\nargs = [\"demo-server\"]\n"));
    let server = Server::start(&house);
    let write = |text: &str| server.call("write_note", &serde_json::json!({ "name": "plan", "text": text }));
    assert!(server.page("/readyz").contains("nobody hears of them"), "{}", server.page("/readyz"));
    complains(&house, "held calls: warning", &["nobody hears of it"]);
    write("one");
    write("two");
    let log = house.read("server.log");
    assert_eq!(log.matches("nobody hears of it").count(), 1, "said once: {log}");
    // One look hears of nothing that is held later.
    assert_eq!(house.run(&["approvals", "list"]).code, 0);
    assert!(server.page("/readyz").contains("nobody hears of them"), "{}", server.page("/readyz"));
    complains(&house, "held calls: warning", &["nobody hears of it"]);
    // Whoever follows what waits counts as watching.
    let watching = Command::new(program)
        .args(["approvals", "watch", "--json"])
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .stdout(Stdio::null())
        .spawn();
    assert!(eventually(|| server.page("/readyz").contains("somebody hears of them")));
    assert!(watching.is_ok_and(|mut child| child.kill().is_ok() && child.wait().is_ok()));
    assert!(server.page("/readyz").contains("somebody hears of them"), "{}", server.page("/readyz"));
    let (_, complaints) = examine(&house);
    assert!(!complaints.iter().any(|line| line.starts_with("held calls")), "{complaints:?}");
}

#[test]
fn self_3_a_good_setup_has_no_complaint_and_the_boundary_is_said() {
    let house = good();
    assert_eq!(examine(&house), (0, Vec::new()));
    let shown = house.run(&["doctor", "--listen", ANY_PORT]).out;
    assert!(shown.contains("0 problem(s), 0 warning(s)"), "{shown}");
    assert!(shown.contains("only when agents run under another user."), "{shown}");
    // SELF-3: protections are named only once they exist.
    for unbuilt in ["cage", "sandbox", "passkey", "hooks,", "decision api"] {
        assert!(!shown.to_lowercase().contains(unbuilt), "{unbuilt}: {shown}");
    }
}

#[test]
fn it_changes_nothing() {
    let house = House::new();
    assert_eq!(examine(&house).0, 0);
    assert!(!house.path("home/.config").exists() && !house.path("home/.local").exists());
}

#[test]
fn broken_and_untrusted_configs() {
    let house = good();
    house.write(CONFIG, "[servers.gw\n");
    complains(&house, "config: problem", &["toolwarden.toml:1", "toolwarden lint"]);
    let house = good();
    house.write("space/toolwarden.toml", "[auto_run]\n");
    complains(&house, "config: problem", &["nobody trusted", "toolwarden trust"]);
    let house = good();
    house.write("space/.cursor/permissions.json", "{\"mcpAllowlist\": []}");
    complains(&house, "workspace: warning", &["permissions.json", "toolwarden trust"]);
}

#[test]
fn files_open_to_others() {
    let open = |house: &House, path: &str, mode| fs::set_permissions(house.path(path), Permissions::from_mode(mode));
    let house = good();
    assert!(open(&house, "home/.config/toolwarden", 0o777).is_ok());
    complains(&house, "config directory: problem", &["mode 777", "chmod 700"]);
    let house = good();
    assert!(open(&house, "home/.config/toolwarden/master.key", 0o644).is_ok());
    complains(&house, "key: problem", &["master.key", "chmod 600"]);
    let house = good();
    assert!(open(&house, "home/.local/share/toolwarden", 0o755).is_ok());
    complains(&house, "data directory: problem", &["mode 755", "chmod 700"]);
    let house = good();
    assert!(open(&house, "home/.config/toolwarden", 0o500).is_ok());
    complains(&house, "config directory: problem", &["shut to its owner", "chmod 700"]);
}

#[test]
fn a_broken_record_a_lost_key_and_a_broken_index() {
    let house = good();
    let node = house.path("home/.local/share/toolwarden/journal/cli-1");
    let head = fs::read_dir(&node).into_iter().flatten().flatten().find(|entry| entry.file_name() == "head");
    assert!(head.is_some_and(|head| fs::write(head.path(), "nonsense").is_ok()));
    complains(&house, "journal: problem", &["cli-1", "audit verify"]);
    let house = good();
    assert!(fs::remove_file(house.path("home/.config/toolwarden/master.key")).is_ok());
    complains(&house, "key: problem", &["there is no key in", "backup"]);
    let house = good();
    house.run(&["audit", "query"]);
    house.write("home/.local/share/toolwarden/toolwarden.sqlite", "this is no database, whatever its name says");
    complains(&house, "store: problem", &["backup", "in the journals, too"]);
}

#[test]
fn servers_that_cannot_be_reached() {
    let house = good();
    house.write(
        CONFIG,
        &format!(
            "[servers.gone]\ncommand = \"no-such-program\"\n[servers.web]\nurl = \"http://{NOBODY}/mcp?key=hidden\"\n"
        ),
    );
    complains(&house, "server gone: problem", &["no-such-program", "not found on PATH", "install it"]);
    complains(&house, "server web: problem", &[NOBODY, "cannot be reached", "start that server"]);
    assert!(!house.run(&["doctor"]).out.contains("hidden"));
    house.write(CONFIG, "[servers.env]\ncommand = \"sh\"\nenv = { KEY = \"${env:NOBODY_SET_THIS}\" }\n");
    complains(&house, "server env: problem", &["${env:NOBODY_SET_THIS}", "has no value here"]);
}

#[test]
fn the_port_is_free_taken_or_ours() {
    let house = good();
    let taken = std::net::TcpListener::bind("127.0.0.1:0");
    let address = taken.as_ref().ok().and_then(|taken| taken.local_addr().ok()).map(|address| address.to_string());
    let ran = house.run(&["doctor", "--listen", &address.unwrap_or_default()]);
    assert!(ran.code == 1 && ran.out.contains("is not free, and it is not ours"), "{}", ran.out);
    let server = Server::start(&house);
    let ran = house.run(&["doctor"]);
    assert!(ran.code == 0 && ran.out.contains("a server runs and serves 127.0.0.1:"), "{}", ran.out);
    drop(server);
}

#[test]
fn a_clock_that_went_back() {
    let house = good();
    house.run(&["audit", "query"]);
    // As if the last record had been written tomorrow: only the index is asked for its time.
    let database = house.path("home/.local/share/toolwarden/toolwarden.sqlite");
    let ran = Command::new("sqlite3")
        .arg(&database)
        .arg("UPDATE audit_calls SET time_text = '2999-01-01T00:00:00Z', time_us = 32472144000000000")
        .status();
    assert!(ran.as_ref().is_ok_and(ExitStatus::success), "sqlite3 is needed (tests/peers/install): {ran:?}");
    complains(&house, "clock: problem", &["2999-01-01", "set the clock"]);
}

#[test]
fn it_says_when_the_running_server_judges_by_other_files_and_which_servers_it_has() {
    let house = House::new();
    let _server = Server::start(&house);
    let said = house.run(&["doctor", "--listen", ANY_PORT]).out;
    assert!(said.contains("the running server judges by the policy of these files"), "{said}");
    assert!(said.contains("none is configured; the running server has notes"), "{said}");
    let other = house.path("other.toml").to_string_lossy().into_owned();
    house.write("other.toml", "[servers.x]\ncommand = \"x\"\n");
    let said = house.run(&["--config", &other, "doctor", "--listen", ANY_PORT]).out;
    assert!(said.contains("its config is none, here it is ~~/other.toml"), "{said}");
}
