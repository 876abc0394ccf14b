//! A server told to end: nobody new gets in, calls on their way have their grace, streams end as streams do, and nothing
//! stays behind.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::house::House;
use crate::server::{Server, eventually, signal_to};

/// A legacy server whose one tool answers once a file is there. It leaves its own process number.
fn slow(house: &House, grace: &str) -> String {
    format!(
        r#"
[gateway]
grace = "{grace}"
[auto_run]
mode = "run_everything"
[servers.notes]
command = "sh"
args = ["-c", '''
echo $$ > {pid}
while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"c","version":"1"}}}}' ;;
    *'"tools/list"'*) result='{{"tools":[{{"name":"wait","inputSchema":{{"type":"object"}}}}]}}' ;;
    *'"tools/call"'*)
      while ! test -e {go}; do sleep 0.05; done
      result='{{"content":[{{"type":"text","text":"done"}}]}}' ;;
    *'"server/discover"'*) printf '{{"jsonrpc":"2.0","id":%s,"error":{{"code":-32601,"message":"none"}}}}\n' "$id"; continue ;;
    *) continue ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$result"
done
''']
"#,
        pid = house.path("pid").display(),
        go = house.path("go").display()
    )
}

fn record(house: &House) -> String {
    record_of(house, "serve-1")
}

fn record_of(house: &House, node: &str) -> String {
    let node = house.path("home/.local/share/toolwarden/journal").join(node);
    let files = std::fs::read_dir(node).into_iter().flatten().flatten();
    files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).collect()
}

fn child_is_gone(house: &House) -> bool {
    let pid = house.read("pid");
    assert!(!pid.trim().is_empty());
    !Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn a_call_on_its_way_is_answered_and_nobody_new_gets_in() {
    let house = House::new();
    house.write("home/.config/toolwarden/toolwarden.toml", &slow(&house, "60s"));
    let server = Server::start(&house);
    std::thread::scope(|scope| {
        let call = scope.spawn(|| server.call("wait", &json!({})));
        assert!(eventually(|| record(&house).contains("\"kind\":\"intent\"")), "{}", record(&house));
        server.signal("-TERM");
        assert!(eventually(|| server.connect().is_err()), "it still takes connections");
        house.write("go", "");
        let answer = call.join();
        assert!(answer.as_ref().is_ok_and(|answer| answer == "done"), "{answer:?}");
    });
    server.ends();
    let record = record(&house);
    assert!(record.contains("\"kind\":\"outcome\"") && record.contains("\"status\":\"ok\""), "{record}");
    assert!(child_is_gone(&house));
    // What was recorded is delivered.
    let found = house.run(&["audit", "query", "--json"]);
    assert!(found.out.contains("\"ok\""), "{} {}", found.out, found.err);
}

#[test]
fn a_call_that_takes_longer_than_the_grace_does_not_keep_the_server() {
    let house = House::new();
    house.write("home/.config/toolwarden/toolwarden.toml", &slow(&house, "300ms"));
    let server = Server::start(&house);
    let mut waiting = server.connect();
    let sent = waiting.as_mut().map(|stream| {
        stream
            .write_all(server.request("tools/call", Some("wait"), &json!({"name": "wait", "arguments": {}})).as_bytes())
    });
    assert!(matches!(sent, Ok(Ok(()))));
    assert!(eventually(|| record(&house).contains("\"kind\":\"intent\"")), "{}", record(&house));
    server.signal("-TERM");
    server.ends();
    let record = record(&house);
    assert!(record.contains("\"status\":\"cancelled\""), "{record}");
    assert!(child_is_gone(&house));
}

/// A second order ends it at once.
#[test]
fn a_second_signal_ends_it_at_once() {
    let house = House::new();
    house.write("home/.config/toolwarden/toolwarden.toml", &slow(&house, "1h"));
    let server = Server::start(&house);
    let mut waiting = server.connect();
    let call = server.request("tools/call", Some("wait"), &json!({"name": "wait", "arguments": {}}));
    assert!(waiting.as_mut().is_ok_and(|stream| stream.write_all(call.as_bytes()).is_ok()));
    assert!(eventually(|| record(&house).contains("\"kind\":\"intent\"")), "{}", record(&house));
    server.signal("-TERM");
    assert!(eventually(|| server.connect().is_err()));
    server.signal("-INT");
    assert_eq!(server.code(), Some(130));
}

/// A pipe that is told to end writes first what it was asked.
#[test]
fn a_pipe_that_is_told_to_end_answers_what_is_on_its_way() {
    let house = House::new();
    house.write("home/.config/toolwarden/toolwarden.toml", &slow(&house, "60s"));
    let door = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
        .args(["stdio", "--server", "notes"])
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    assert!(door.is_ok(), "{door:?}");
    let Ok(mut door) = door else { unreachable!("the program starts") };
    let mut input = door.stdin.take();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wait", "arguments": {}}});
    for line in [hello, call] {
        assert!(input.as_mut().is_some_and(|input| writeln!(input, "{line}").is_ok()));
    }
    let is_on_its_way = || record_of(&house, "stdio-1").contains("\"kind\":\"intent\"");
    assert!(eventually(is_on_its_way), "{}", record_of(&house, "stdio-1"));
    signal_to(&door, "-TERM");
    house.write("go", "");
    let mut said = String::new();
    assert!(door.stdout.take().is_some_and(|mut output| output.read_to_string(&mut said).is_ok()));
    assert!(said.lines().last().is_some_and(|last| last.contains("done")), "{said}");
    assert!(door.wait().is_ok_and(|status| status.success()));
    drop(input);
    assert!(record_of(&house, "stdio-1").contains("\"status\":\"ok\""));
    assert!(child_is_gone(&house));
}

/// Reads until the other side closes.
fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    assert!(stream.read_to_end(&mut text).is_ok(), "it was cut off");
    String::from_utf8_lossy(&text).into_owned()
}

fn open(server: &Server, request: &str, until: &str) -> TcpStream {
    let stream = server.connect();
    assert!(stream.is_ok());
    let Ok(mut stream) = stream else { unreachable!("asserted") };
    assert!(stream.write_all(request.as_bytes()).is_ok());
    let mut heard = String::new();
    let mut byte = [0];
    while !heard.contains(until) {
        assert!(stream.read_exact(&mut byte).is_ok(), "{heard}");
        heard.extend(byte.map(char::from));
    }
    stream
}

#[test]
fn streams_end_and_are_not_cut_off() {
    let house = House::new();
    let server = Server::start(&house);
    let get = |path: &str, more: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n{more}\r\n")
    };
    let session = server.initialize();
    let standing = open(&server, &get("/mcp/notes", &format!("Mcp-Session-Id: {session}\r\n")), "\r\n\r\n");
    let oldest = open(&server, &get("/sse/notes", ""), "endpoint");
    let listen = server.request("subscriptions/listen", None, &json!({"notifications": {"toolsListChanged": true}}));
    let modern = open(&server, &listen.replace("POST /mcp/notes", "POST /mcp"), "acknowledged");
    server.signal("-TERM");
    let modern = rest(modern);
    assert!(modern.contains("\"resultType\":\"complete\"") && modern.ends_with("0\r\n\r\n"), "{modern}");
    for stream in [standing, oldest] {
        let rest = rest(stream);
        assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    }
    server.ends();
}
