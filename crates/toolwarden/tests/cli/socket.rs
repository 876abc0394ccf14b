//! The control socket: whose it is, who may speak, and what becomes of one left behind.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::house::House;
use crate::server::{Server, eventually, exchange};

const DATA: &str = "home/.local/share/toolwarden";

fn socket(house: &House) -> PathBuf {
    house.path(DATA).join("control.sock")
}

fn ask(house: &House, request: &str) -> String {
    exchange(UnixStream::connect(socket(house)), request)
}

#[test]
fn it_is_the_owners_alone_and_goes_with_the_server() {
    let house = House::new();
    let server = Server::start(&house);
    let mode = |path: PathBuf| std::fs::metadata(path).map(|found| found.mode() & 0o777).unwrap_or_default();
    assert_eq!((mode(house.path(DATA)), mode(socket(&house))), (0o700, 0o600));
    server.stop();
    assert!(!socket(&house).exists());
}

#[test]
fn one_left_behind_is_not_asked_and_is_replaced() {
    let house = House::new();
    Server::start(&house).kill();
    assert!(socket(&house).exists());
    assert_eq!(house.run(&["allow", "a:b"]).code, 0);
    let server = Server::start(&house);
    assert_eq!(house.run(&["allow", "c:d"]).code, 0);
    let doors = house.run(&["audit", "query", "--kind", "event", "--json"]).out;
    assert!(doors.contains("\"door\": \"control\"") && doors.contains("\"door\": \"cli\""), "{doors}");
    assert_eq!(house.run(&["audit", "verify"]).code, 0);
    server.stop();
}

#[test]
fn a_second_server_leaves_it_alone_and_follows_the_files() {
    let house = House::new();
    let first = Server::start(&house);
    let second = Server::start(&house);
    assert!(house.read("server.log").contains("another server has the control socket"));
    house.run(&["allow", "notes:read_note"]);
    assert!(first.read_note().contains("This note"));
    assert!(eventually(|| second.read_note().contains("This note")));
    house.run(&["disallow", "notes:read_note"]);
    assert!(eventually(|| second.read_note().contains("Held by Toolwarden")));
    second.stop();
    assert!(socket(&house).exists());
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 0);
    assert!(first.read_note().contains("This note"));
}

#[test]
fn errors_have_one_form() {
    let house = House::new();
    let server = Server::start(&house);
    let close = "Host: x\r\nConnection: close\r\n";
    let unknown = ask(&house, &format!("GET /api/v1/nonsense HTTP/1.1\r\n{close}\r\n"));
    assert!(unknown.starts_with("HTTP/1.1 404") && unknown.contains("{\"error\":{\"code\":\"not_found\""), "{unknown}");
    let wrong = ask(&house, &format!("GET /api/v1/allowlist/add HTTP/1.1\r\n{close}\r\n"));
    assert!(wrong.starts_with("HTTP/1.1 405") && wrong.contains("\"message\":"), "{wrong}");
    let body = "{\"entry\":\"a:b\",\"bogus\":1}";
    let length = body.len();
    let bogus =
        ask(&house, &format!("POST /api/v1/allowlist/add HTTP/1.1\r\n{close}Content-Length: {length}\r\n\r\n{body}"));
    assert!(bogus.starts_with("HTTP/1.1 422") && bogus.contains("unknown field `bogus`"), "{bogus}");
    let large = "x".repeat(300 * 1024);
    let length = large.len();
    let refused =
        ask(&house, &format!("POST /api/v1/trust/add HTTP/1.1\r\n{close}Content-Length: {length}\r\n\r\n{large}"));
    assert!(refused.is_empty() || refused.starts_with("HTTP/1.1 413"), "{refused}");
    let fine = ask(&house, &format!("GET /api/v1/audit?limit=1&since=2026-01-01T00:00:00Z HTTP/1.1\r\n{close}\r\n"));
    assert!(fine.starts_with("HTTP/1.1 200") && fine.contains("\"rows\":["), "{fine}");
    drop(server);
}

#[expect(clippy::disallowed_methods, reason = "CI says by a variable that it is CI")]
fn runs_in_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

#[test]
fn another_user_is_closed_without_an_answer() {
    let house = House::new();
    let is_root = std::fs::metadata(house.path("home")).is_ok_and(|found| found.uid() == 0);
    if !is_root {
        // Only root can become somebody else. Unit tests of `console` check who is admitted for everybody.
        assert!(!runs_in_ci(), "CI runs this test as root");
        return;
    }
    for tool in ["/usr/bin/setpriv", "/usr/bin/curl"] {
        assert!(Path::new(tool).exists(), "{tool} is needed (tests/peers/install)");
    }
    let server = Server::start(&house);
    // The first door is opened wide, so that the second one is what is met.
    let path = socket(&house);
    for place in path.ancestors().take_while(|place| place.starts_with(house.path(""))) {
        assert!(std::fs::set_permissions(place, Permissions::from_mode(0o777)).is_ok());
    }
    let curl = |user: &str| {
        Command::new("/usr/bin/setpriv")
            .args(["--reuid", user, "--regid", user, "--clear-groups", "/usr/bin/curl", "-sS", "--unix-socket"])
            .arg(&path)
            .arg("http://toolwarden/api/v1/status")
            .output()
    };
    let output = |user: &str| curl(user).map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned()).ok();
    assert_eq!(output("65534").as_deref(), Some(""));
    assert!(eventually(|| house.read("server.log").contains("another user was turned away")));
    assert!(output("0").is_some_and(|answer| answer.contains("\"version\"")));
    drop(server);
}
