//! Requests that are never sent to their end (WORK-1): memory is bounded, others are served, and whoever is refused is
//! told why.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::house::House;
use crate::identifying::issue;
use crate::server::{Server, eventually};

const MEGABYTE: usize = 1 << 20;
/// Of three megabytes announced, so much is sent.
const SENT: usize = MEGABYTE;

/// Peak resident memory of a process, in bytes.
fn peak(server: &Server) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<usize>().ok());
    assert!(kilobytes.is_some(), "{status}");
    kilobytes.unwrap_or_default() * 1024
}

/// Begins a request with a token and does not end it.
fn stall(server: &Server, token: &str) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).ok()?;
    let head = format!(
        "POST /mcp/notes HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        server.address(),
        3 * MEGABYTE
    );
    stream.write_all(head.as_bytes()).ok()?;
    // Who is refused may be cut off while it still sends.
    let _ = stream.write_all(&vec![b' '; SENT]);
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

/// What was answered so far.
fn answered(streams: &mut [(TcpStream, String)]) -> Vec<String> {
    for (stream, said) in streams.iter_mut() {
        let mut bytes = [0; 4096];
        while let Ok(count) = stream.read(&mut bytes) {
            if count == 0 {
                break;
            }
            said.push_str(&String::from_utf8_lossy(bytes.get(..count).unwrap_or_default()));
        }
    }
    streams.iter().map(|(_, said)| said.clone()).filter(|said| !said.is_empty()).collect()
}

#[test]
fn work_1_stalled_posts_take_bounded_memory_and_nobody_elses_turn() {
    let house = House::new();
    let server = Server::start(&house);
    let (_, other) = issue(&house, &["--person"]);
    let callers: Vec<String> =
        (0..8).map(|number| issue(&house, &["--person", "--user", &format!("user-{number}")]).1).collect();
    let write = || server.call_as(&other, "write_note", &json!({ "name": "plan", "text": "x" }));
    assert!(write().contains("Held by Toolwarden"));
    let before = peak(&server);
    let first = callers.first().cloned().unwrap_or_default();
    let mut streams: Vec<_> =
        (0..60).filter_map(|_| stall(&server, &first)).map(|stream| (stream, String::new())).collect();
    assert_eq!(streams.len(), 60);
    // One caller has room for sixteen megabytes, and is told so beyond that.
    let refused = |streams: &mut Vec<(TcpStream, String)>, why: &str| {
        answered(streams).iter().filter(|said| said.contains(why)).count()
    };
    let streams_of_one = std::cell::RefCell::new(&mut streams);
    let own = "too many large requests of this caller are on their way";
    assert!(eventually(|| refused(&mut streams_of_one.borrow_mut(), own) >= 40), "{:?}", streams_of_one.borrow());
    let said = answered(&mut streams_of_one.borrow_mut());
    assert!(said.iter().all(|said| said.starts_with("HTTP/1.1 429") && said.contains("retry-after: 1")), "{said:?}");
    assert!(write().contains("Held by Toolwarden"), "others are served");
    // All callers together have room for sixty-four.
    let mut more: Vec<_> = callers
        .iter()
        .flat_map(|token| std::iter::repeat_n(token, 20))
        .filter_map(|token| stall(&server, token))
        .map(|stream| (stream, String::new()))
        .collect();
    let streams_of_all = std::cell::RefCell::new(&mut more);
    let everybodys = "HTTP/1.1 503";
    assert!(eventually(|| refused(&mut streams_of_all.borrow_mut(), everybodys) > 0));
    assert!(write().contains("Held by Toolwarden"), "small calls of others are served");
    let grown = peak(&server).saturating_sub(before);
    // 220 megabytes were sent, of which 64 may be in progress, in pieces that are more than half full. The rest is in the
    // read buffers of 220 connections, of 32 KiB each, and in what the allocator keeps.
    assert!(grown < (64 + 32 + 16) * MEGABYTE, "{} MiB", grown / MEGABYTE);
    drop(streams);
    drop(more);
    // With the connections their room is given back.
    let large = json!({ "name": "plan", "text": "x".repeat(2 * MEGABYTE) });
    assert!(eventually(|| {
        let said = server.call_as(&first, "write_note", &large);
        !said.starts_with("HTTP/1.1 429") && !said.starts_with("HTTP/1.1 503")
    }));
    server.stop();
}

/// Begins something with a head of its own, sends much, and does not end it.
fn stall_with(server: &Server, head: &str, rest: &[u8]) -> Option<(TcpStream, String)> {
    let mut stream = TcpStream::connect(server.address()).ok()?;
    stream.write_all(format!("POST /mcp/notes HTTP/1.1\r\nHost: {}\r\n{head}", server.address()).as_bytes()).ok()?;
    // What nobody reads waits in the system's own buffers, and then here.
    stream.set_nonblocking(true).ok()?;
    let mut rest = rest;
    while let Ok(sent @ 1..) = stream.write(rest) {
        rest = rest.get(sent..).unwrap_or_default();
    }
    Some((stream, String::new()))
}

#[test]
fn work_1_nobody_takes_memory_before_they_are_identified() {
    let house = House::new();
    let server = Server::start(&house);
    let (_, other) = issue(&house, &["--person"]);
    let write = || server.call_as(&other, "write_note", &json!({ "name": "plan", "text": "x" }));
    assert!(write().contains("Held by Toolwarden"));
    let before = peak(&server);
    let json = format!("Content-Type: application/json\r\nContent-Length: {}\r\n", 3 * MEGABYTE);
    let nobody = format!("{json}\r\n");
    let wrong = format!("Authorization: Bearer tw_{}\r\n{json}\r\n", "a".repeat(43));
    let (body, head) = (vec![b' '; SENT], vec![b'x'; SENT]);
    let mut streams: Vec<_> = (0..100)
        .flat_map(|_| {
            [
                stall_with(&server, &nobody, &body),
                stall_with(&server, &wrong, &body),
                // A head that does not end.
                stall_with(&server, "X-Long: ", &head),
            ]
        })
        .flatten()
        .collect();
    assert_eq!(streams.len(), 300);
    let heard = std::cell::RefCell::new(&mut streams);
    let count = |status: &str| answered(&mut heard.borrow_mut()).iter().filter(|said| said.starts_with(status)).count();
    assert!(eventually(|| count("HTTP/1.1 401") >= 190), "{}", count("HTTP/1.1 401"));
    assert!(write().contains("Held by Toolwarden"), "others are served");
    assert!(eventually(|| count("HTTP/1.1 431") >= 90), "{}", count("HTTP/1.1 431"));
    let grown = peak(&server).saturating_sub(before);
    // 32 KiB for each of 300 connections, and as much again for what belongs to a connection beside it.
    assert!(grown < 20 * MEGABYTE, "{} MiB", grown / MEGABYTE);
    server.stop();
}
