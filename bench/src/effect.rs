//! How soon a decision acts: at the gateway that was told, and at another one on the same PostgreSQL.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::Instant;
use toolwarden_bench::proxies::{Running, free_port, toolwarden_with};

const ROUNDS: usize = 50;
const PATIENCE: Duration = Duration::from_secs(20);
const KEY: &str = ".config/toolwarden/master.key";
const SOCKET: &str = ".local/share/toolwarden/control.sock";
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_note","arguments":{"name":"welcome"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// Switches a tool off and on at one gateway, and calls it at both; gives the times until each obeys, sorted.
pub fn measure(program: &Path, root: &Path, url: &str) -> Result<[Vec<Duration>; 2]> {
    let (one, other) = (root.join("one"), root.join("other"));
    let (_one, here) = gateway(program, &one, url)?;
    // Whoever shares a store needs the key it is sealed with.
    std::fs::create_dir_all(other.join(".config/toolwarden"))?;
    std::fs::copy(one.join(KEY), other.join(KEY)).context("the key of the first gateway")?;
    let (_other, there) = gateway(program, &other, url)?;
    let mut spans = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        let is_on = round % 2 == 1;
        let begun = Instant::now();
        let body = format!(r#"{{"tool":"notes:read_note","enabled":{is_on}}}"#);
        let answer =
            exchange(UnixStream::connect(one.join(SOCKET))?, &post("/api/v1/tools/set", "toolwarden", "", &body))?;
        anyhow::ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        anyhow::ensure!(reads(here)? == is_on, "where it was decided it counts when the answer is there");
        spans[0].push(begun.elapsed());
        until(|| Ok(reads(there)? == is_on))?;
        spans[1].push(begun.elapsed());
    }
    spans.iter_mut().for_each(|spans| spans.sort_unstable());
    Ok(spans)
}

fn gateway(program: &Path, home: &Path, url: &str) -> Result<(Running, u16)> {
    let port = free_port()?;
    let config = format!(
        "[store]\nurl = \"{url}\"\n[auto_run]\nmode = \"run_everything\"\n[servers.notes]\ncommand = \"{}\"\nargs = [\"demo-server\"]\n",
        program.display()
    );
    let running = toolwarden_with(program, home, port, &config)?;
    until(|| Ok(reads(port).unwrap_or_default()))?;
    Ok((running, port))
}

fn until(mut is_so: impl FnMut() -> Result<bool>) -> Result<()> {
    let begun = Instant::now();
    while !is_so()? {
        anyhow::ensure!(begun.elapsed() < PATIENCE, "it does not come to pass");
        std::thread::park_timeout(Duration::from_millis(1));
    }
    Ok(())
}

fn reads(port: u16) -> Result<bool> {
    let more = "Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\n\
                Mcp-Method: tools/call\r\nMcp-Name: read_note\r\n";
    let request = post("/mcp/notes", &format!("127.0.0.1:{port}"), more, CALL);
    Ok(exchange(TcpStream::connect(("127.0.0.1", port))?, &request)?.contains("kept by the demo server"))
}

fn post(path: &str, host: &str, more: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{more}Connection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn exchange(mut stream: impl Read + Write, request: &str) -> Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
