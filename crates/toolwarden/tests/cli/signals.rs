//! SIGHUP reads the policy again; a service manager hears when the server is ready, reloads and stops.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::house::House;
use crate::server::{Server, eventually, signal_to};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const AGAIN: &str = "the policy was read again and is in force";
const REFUSED: &str = "the former policy stays in force";

#[test]
fn hangup_reads_the_policy_again() {
    let house = House::new();
    house.write(CONFIG, "[auto_run]\nmode = \"run_everything\"\n");
    let server = Server::start(&house);
    let log = || house.read("server.log");
    // No file has changed: nothing else would read them.
    server.signal("-HUP");
    assert!(eventually(|| log().contains(AGAIN)), "{}", log());
    assert!(server.read_note().contains("kept by the demo server"), "{}", server.read_note());
    house.write(CONFIG, "[auto_run]\nmode = \"no such mode\"\n");
    server.signal("-HUP");
    assert!(eventually(|| log().contains(REFUSED)), "{}", log());
    assert!(server.read_note().contains("kept by the demo server"), "{}", server.read_note());
    server.stop();
}

#[test]
fn hangup_reads_the_policy_of_a_pipe_again() {
    let house = House::new();
    let door = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
        .args(["stdio"])
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(house.path("door.log")).map_or_else(|_| Stdio::null(), Stdio::from))
        .spawn();
    assert!(door.is_ok(), "{door:?}");
    let Ok(mut door) = door else { unreachable!("the program starts") };
    let (mut input, output) = (door.stdin.take(), door.stdout.take());
    let mut lines = output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(Result::ok));
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert!(input.as_mut().is_some_and(|input| writeln!(input, "{hello}").is_ok()));
    assert!(lines.next().is_some());
    signal_to(&door, "-HUP");
    assert!(eventually(|| house.read("door.log").contains(AGAIN)), "{}", house.read("door.log"));
    assert!(input.as_mut().is_some_and(|input| writeln!(input, "{ping}").is_ok()));
    assert!(lines.next().is_some_and(|line| line.contains("\"id\":1")));
    drop(input);
    assert!(door.wait().is_ok_and(|status| status.success()));
}

#[test]
fn a_service_manager_hears_how_the_server_is() {
    let house = House::new();
    let place = house.path("notify");
    let socket = UnixDatagram::bind(&place);
    assert!(socket.is_ok(), "{socket:?}");
    let Ok(socket) = socket else { unreachable!("the socket is bound") };
    assert!(socket.set_read_timeout(Some(Duration::from_secs(20))).is_ok());
    // The next thing said that is no sign of life.
    let heard = || {
        let mut text = [0; 256];
        loop {
            let length = socket.recv(&mut text).unwrap_or_default();
            let said = String::from_utf8_lossy(text.get(..length).unwrap_or_default()).into_owned();
            if said != "WATCHDOG=1" {
                return said;
            }
        }
    };
    let place = place.to_string_lossy().into_owned();
    let server = Server::start_with(&house, &[("NOTIFY_SOCKET", &place), ("WATCHDOG_USEC", "100000")]);
    assert_eq!(heard(), "READY=1");
    let mut text = [0; 256];
    let alive = socket.recv(&mut text).unwrap_or_default();
    assert_eq!(text.get(..alive), Some(&b"WATCHDOG=1"[..]));
    server.signal("-HUP");
    let reloading = heard();
    let moment = reloading.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").and_then(|moment| moment.parse::<u64>().ok());
    assert!(moment.is_some_and(|moment| moment > 0), "{reloading}");
    assert_eq!(heard(), "READY=1");
    server.signal("-TERM");
    assert_eq!(heard(), "STOPPING=1");
    server.ends();
}
