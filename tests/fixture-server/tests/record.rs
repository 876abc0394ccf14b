//! The record is on disk before a call is answered.
//!
//! This test is also why `cargo test --workspace` builds the program, which tests of other crates start.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const MESSAGES: [&str; 3] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"record","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"test_echo","arguments":{"word":"kept"}}}"#,
];

/// Ends the program also when the test fails.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_call_is_recorded_before_it_is_answered() {
    let record = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("record-{}", std::process::id()));
    let started = Command::new(env!("CARGO_BIN_EXE_toolwarden-fixture-server"))
        .args(["stdio", "--record"])
        .arg(&record)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    assert!(started.is_ok(), "{started:?}");
    let Ok(mut server) = started.map(Server) else { unreachable!("asserted") };
    let (input, output) = (server.0.stdin.take(), server.0.stdout.take());
    for message in MESSAGES {
        let written = input.as_ref().map(|mut input| writeln!(input, "{message}"));
        assert!(matches!(written, Some(Ok(()))), "{written:?}");
    }
    let mut lines = output.into_iter().flat_map(|output| BufReader::new(output).lines()).map_while(Result::ok);
    let answer = lines.find(|line| line.contains("\"id\":2")).unwrap_or_default();
    let recorded = fs::read_to_string(&record).unwrap_or_default();
    let _ = fs::remove_file(&record);
    assert!(answer.contains(r#""structuredContent":{"word":"kept"}"#), "{answer}");
    assert_eq!(recorded, "tools/call test_echo\n");
}
