//! `audit tail`: the past first, then what comes, with a server and without.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::house::House;
use crate::server::Server;

/// A tail under way.
struct Tail {
    child: Child,
    lines: Receiver<String>,
}

impl Tail {
    fn start(house: &House, arguments: &[&str]) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
            .args(["audit", "tail"])
            .args(arguments)
            .current_dir(house.path("space"))
            .env_clear()
            .env("HOME", house.path("home"))
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else { unreachable!("the program starts") };
        let (sender, lines) = channel();
        let out = child.stdout.take();
        std::thread::spawn(move || {
            for line in out.into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok)) {
                let _ = sender.send(line);
            }
        });
        Self { child, lines }
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(20)).unwrap_or_default()
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_follows_beside_a_server() {
    let house = House::new();
    let server = Server::start(&house);
    house.run(&["allow", "notes:read_note"]);
    let tail = Tail::start(&house, &["--json", "-n", "1"]);
    assert!(tail.next().contains("allowlist_add"));
    server.read_note();
    let line = tail.next();
    assert!(line.contains("\"tool\":\"read_note\"") && line.contains("\"status\":\"ok\""), "{line}");
    server.read_note();
    assert!(tail.next().contains("\"tool\":\"read_note\""));
}

#[test]
fn it_follows_without_a_server_and_shows_the_last_rows_first() {
    let house = House::new();
    for entry in ["a:one", "a:two", "a:three"] {
        house.run(&["allow", entry]);
    }
    let tail = Tail::start(&house, &["-n", "2"]);
    assert!(tail.next().contains("a:two"));
    assert!(tail.next().contains("a:three"));
    house.run(&["allow", "a:four"]);
    assert!(tail.next().contains("a:four"));
}
