//! Secrets in everything that passes: arguments, results, headers, environment, and whatever a hostile server says.
//! They reach those they are for, and appear in nothing a person or a program reads of the gateway.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::house::House;
use crate::server::{Server, eventually};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
/// Every one of them must be found nowhere.
const PLANTED: &str = "planted-";

/// A server that says what it likes, and a collector of spans.
#[derive(Clone, Default)]
struct Hostile {
    spans: Arc<Mutex<Vec<String>>>,
}

impl Hostile {
    fn start(&self) -> String {
        let Ok(listener) = TcpListener::bind("127.0.0.1:0") else { unreachable!("a port is free") };
        let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
        let hostile = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hostile = hostile.clone();
                std::thread::spawn(move || hostile.serve(stream));
            }
        });
        address
    }

    fn serve(&self, mut stream: TcpStream) {
        let Ok(reading) = stream.try_clone() else { return };
        let mut reader = BufReader::new(reading);
        while let Some((head, body)) = request(&mut reader) {
            let (status, kind, said) = self.answer(&head, &body);
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nMcp-Session-Id: {PLANTED}session\r\n\
                 X-Debug: {PLANTED}reply-header\r\nContent-Length: {}\r\n\r\n{said}",
                said.len()
            );
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }

    fn answer(&self, head: &str, body: &str) -> (&'static str, &'static str, String) {
        if head.contains("/v1/traces") {
            self.spans.lock().unwrap_or_else(PoisonError::into_inner).push(body.to_owned());
            return ("200 OK", "application/json", "{}".to_owned());
        }
        let message: Value = serde_json::from_str(body).unwrap_or_default();
        let (id, method) = (message.get("id").cloned().unwrap_or_default(), message.get("method"));
        let object = json!({ "type": "object" });
        let names = ["echo", "fails", "breaks", "status", "other_id", "asks", "news"];
        let tools: Vec<Value> = names.iter().map(|name| json!({ "name": name, "inputSchema": object })).collect();
        let result = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
        let ok = |text: String| ("200 OK", "application/json", text);
        match method.and_then(Value::as_str).unwrap_or_default() {
            "initialize" => ok(result(json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": format!("{PLANTED}server-name"), "version": "1" } }))),
            "tools/list" => ok(result(json!({ "tools": tools }))),
            "tools/call" => match message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default() {
                // What the client sent, and the credentials of the gateway, come back as a result.
                "echo" => ok(result(
                    json!({ "content": [{ "type": "text", "text": format!("{PLANTED}result {head} {body}") }] }),
                )),
                "fails" => ok(json!({ "jsonrpc": "2.0", "id": id,
                    "error": { "code": -32000, "message": format!("{PLANTED}error"), "data": head } })
                .to_string()),
                "breaks" => ok(format!("{{\"{PLANTED}broken\": {PLANTED}")),
                "status" => ("500 Oops", "text/plain", format!("{PLANTED}status {head}")),
                "other_id" => ok(json!({ "jsonrpc": "2.0", "id": format!("{PLANTED}id"), "result": {} }).to_string()),
                "asks" => ok(result(json!({ "resultType": format!("{PLANTED}kind"), "content": [] }))),
                _ => (
                    "200 OK",
                    "text/event-stream",
                    format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"{PLANTED}news\"}}\n\n"),
                ),
            },
            _ => (
                "400 Bad",
                "application/json",
                json!({ "jsonrpc": "2.0", "id": null,
                "error": { "code": -32000, "message": "Bad Request: Server not initialized" } })
                .to_string(),
            ),
        }
    }
}

/// A request's head and body; none when the client is gone.
fn request(reader: &mut BufReader<TcpStream>) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length =
        head.to_lowercase().split_once("content-length: ").and_then(|(_, rest)| rest.lines().next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some((head, String::from_utf8_lossy(&body).into_owned()))
}

/// A child that says its environment, its arguments and its input everywhere it can.
fn child() -> String {
    let script = r#"env >&2; while IFS= read -r line; do
        id=${line#*\"id\":}; id=${id%%,*}
        case $line in
            *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"c","version":"1"}}}\n' "$id" ;;
            *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"leak","inputSchema":{"type":"object"}}]}}\n' "$id" ;;
            *'"method":"tools/call"'*) printf '%s %s\n' "$TOKEN" "$line" >&2; printf '%s\n' "$TOKEN"; exit 3 ;;
        esac; done"#;
    let quoted = Value::from(script).to_string();
    format!(
        "[servers.child]\ncommand = \"/bin/sh\"\nargs = [\"-c\", {quoted}]\nenv = {{ TOKEN = \"{PLANTED}environment\" }}\n"
    )
}

/// Every file below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

fn assert_hidden(place: &str, text: &str) {
    let found = text.find(PLANTED).map(|at| text.get(at.saturating_sub(80)..(at + 60).min(text.len())));
    assert!(found.is_none(), "{place}: {found:?}");
}

fn calls_of_everything(server: &Server) -> String {
    let arguments = format!("{PLANTED}argument");
    let mut answers = String::new();
    for (place, tools) in [
        ("/mcp/hostile", &["echo", "fails", "breaks", "status", "other_id", "asks", "news", "none"][..]),
        ("/mcp/child", &["leak"]),
    ] {
        let session = server.session(place);
        for tool in tools {
            let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
                "params": { "name": tool, "arguments": { "password": arguments, PLANTED: arguments } } });
            answers.push_str(&server.post_in(place, &session, &call.to_string()));
        }
    }
    answers
}

#[test]
fn planted_secrets_appear_in_nothing_the_gateway_tells() {
    for format in ["text", "json"] {
        let house = House::new();
        let hostile = Hostile::default();
        let address = hostile.start();
        house.write(
            CONFIG,
            &format!(
                "[auto_run]\nmode = \"run_everything\"\n[telemetry]\nlog = \"{format}\"\notlp = \"http://{address}\"\n\
                 otlp_headers = {{ authorization = \"Bearer {PLANTED}collector\" }}\n\
                 [servers.hostile]\nurl = \"http://{address}/mcp\"\nheaders = {{ authorization = \"Bearer {PLANTED}header\" }}\n{}",
                child()
            ),
        );
        let server = Server::start_with(&house, &[("SECRET_OF_SHELL", "planted-shell")]);
        let answers = calls_of_everything(&server);
        assert!(answers.contains(&format!("{PLANTED}result")), "the client gets what is for it: {answers}");
        assert!(!answers.contains(&format!("{PLANTED}environment")), "{answers}");
        for page in ["/metrics", "/readyz", "/healthz"] {
            assert_hidden(page, &server.page(page));
        }
        for words in [
            &["servers", "list", "--json"][..],
            &["servers", "show", "hostile", "--json"],
            &["servers", "show", "child"],
            &["tools", "list", "--json"],
            &["tools", "diff", "--json"],
            &["doctor"],
            &["audit", "query", "--json", "--limit", "1000"],
            &["audit", "stats"],
            &["audit", "export"],
            &["audit", "export", "--format", "csv"],
            &["audit", "export", "--format", "ocsf"],
            &["audit", "export", "--format", "syslog"],
            &["lint"],
        ] {
            let ran = house.run(words);
            assert_hidden(&words.join(" "), &format!("{}{}", ran.out, ran.err));
        }
        let sent = || hostile.spans.lock().unwrap_or_else(PoisonError::into_inner).concat();
        assert!(eventually(|| sent().contains("tools/call")), "no span arrived");
        server.stop();
        assert_hidden("spans", &sent());
        let log = house.read("server.log");
        assert!(log.contains("hostile") || log.contains("child"), "it says something: {log}");
        assert_hidden("the log", &log);
        let data = files(&house.path("home/.local/share/toolwarden"));
        assert!(data.len() > 3, "{data:?}");
        for file in data {
            let bytes = std::fs::read(&file).unwrap_or_default();
            assert_hidden(&file.display().to_string(), &String::from_utf8_lossy(&bytes));
        }
    }
}
