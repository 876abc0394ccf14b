//! A running server of one test: the real binary with its demo notes, on a port of its own.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::house::House;

/// A server that ends with the test.
pub struct Server {
    child: Child,
    address: String,
}

impl Server {
    /// Starts `serve --demo` in the workspace of a house and waits until it listens.
    pub fn start(house: &House) -> Self {
        let server = Self::start_with(house, &[]);
        server.tools();
        server
    }

    /// The same with more in its environment, and whatever servers the config has.
    pub fn start_with(house: &House, environment: &[(&str, &str)]) -> Self {
        let log = File::create(house.path("server.log"));
        assert!(log.is_ok());
        let child = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
            .args(["serve", "--demo", "--listen", "127.0.0.1:0"])
            .current_dir(house.path("space"))
            .env_clear()
            .env("HOME", house.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.map_or_else(|_| Stdio::null(), Stdio::from))
            .spawn();
        let Ok(mut child) = child else { unreachable!("the program starts") };
        let mut lines =
            child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok));
        let address: Option<String> =
            lines.find_map(|line| Some(line.split_once("http://")?.1.split_once('/')?.0.to_owned()));
        assert!(address.is_some(), "{}", house.read("server.log"));
        Self { child, address: address.unwrap_or_default() }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Calls a tool of the demo server, and gives the text of its result.
    pub fn call(&self, tool: &str, arguments: &Value) -> String {
        let answer = self.rpc("tools/call", Some(tool), &json!({ "name": tool, "arguments": arguments }));
        let text = answer.pointer("/result/content/0/text").and_then(Value::as_str);
        text.map_or_else(|| answer.to_string(), str::to_owned)
    }

    /// The same of the server at another door.
    pub fn call_at(&self, path: &str, tool: &str, arguments: &Value) -> String {
        let request = self.request("tools/call", Some(tool), &json!({ "name": tool, "arguments": arguments }));
        let answer = exchange(self.connect(), &request.replacen("/mcp/notes", path, 1));
        let json = answer.find("{\"jsonrpc\"").and_then(|start| answer.get(start..)).unwrap_or_default();
        let said: Value = serde_json::from_str(json.lines().next().unwrap_or_default()).unwrap_or_default();
        let text = said.pointer("/result/content/0/text").and_then(Value::as_str);
        text.map_or(answer, str::to_owned)
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The same with a token; the whole answer.
    pub fn call_as(&self, token: &str, tool: &str, arguments: &Value) -> String {
        let request = self.request("tools/call", Some(tool), &json!({ "name": tool, "arguments": arguments }));
        let shown = format!("Authorization: Bearer {token}\r\nContent-Type:");
        exchange(self.connect(), &request.replacen("Content-Type:", &shown, 1))
    }

    /// What the server at `/mcp/notes` lists, as clients are shown it.
    pub fn tools(&self) -> String {
        self.rpc("tools/list", None, &json!({})).to_string()
    }

    pub fn read_note(&self) -> String {
        self.call("read_note", &json!({ "name": "welcome" }))
    }

    /// A page of the HTTP door, with its head.
    pub fn page(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        exchange(self.connect(), &request)
    }

    /// Posts a legacy message; the whole answer.
    pub fn post(&self, path: &str, body: &str) -> String {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        exchange(self.connect(), &request)
    }

    /// The status it ends with.
    pub fn code(mut self) -> Option<i32> {
        self.child.wait().ok()?.code()
    }

    /// A session of a legacy client at a door.
    pub fn session(&self, path: &str) -> String {
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
        let answer = self.post(path, &body.to_string());
        let head = answer.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id: "));
        let session = head.and_then(|line| line.split_once(": ")).map(|(_, id)| id.trim().to_owned());
        assert!(session.is_some(), "{answer}");
        session.unwrap_or_default()
    }

    /// What a legacy client is answered that gets no session.
    pub fn session_refused(&self, path: &str) -> String {
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
        self.post(path, &body.to_string())
    }

    /// Posts a message of that session; the whole answer.
    pub fn post_in(&self, path: &str, session: &str, body: &str) -> String {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        exchange(self.connect(), &request)
    }

    /// A session of a legacy client at `/mcp/notes`.
    pub fn initialize(&self) -> String {
        let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
        let answer = self.post("/mcp/notes", &body.to_string()).to_lowercase();
        let session = answer.split_once("mcp-session-id: ").and_then(|(_, rest)| rest.lines().next());
        assert!(session.is_some(), "{answer}");
        session.unwrap_or_default().to_owned()
    }

    /// A request of a modern client as its bytes.
    pub fn request(&self, method: &str, name: Option<&str>, parameters: &Value) -> String {
        let mut parameters = parameters.clone();
        if let Some(fields) = parameters.as_object_mut() {
            let about = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            fields.insert("_meta".to_owned(), about);
        }
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": parameters }).to_string();
        let name = name.map(|name| format!("Mcp-Name: {name}\r\n")).unwrap_or_default();
        format!(
            "POST /mcp/notes HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\n\
             Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
    }

    /// What is listed at `/mcp/notes` to a person in a mode; the whole answer.
    pub fn listed_in_mode(&self, mode: &str) -> String {
        let request = self.request("tools/list", None, &json!({}));
        exchange(self.connect(), &request.replacen("/mcp/notes ", &format!("/mcp/notes?mode={mode} "), 1))
    }

    /// Calls a tool of `/mcp/notes` as a person in a mode; the whole answer.
    pub fn called_in_mode(&self, mode: &str, tool: &str, arguments: &Value) -> String {
        let request = self.request("tools/call", Some(tool), &json!({ "name": tool, "arguments": arguments }));
        exchange(self.connect(), &request.replacen("/mcp/notes ", &format!("/mcp/notes?mode={mode} "), 1))
    }

    pub fn rpc(&self, method: &str, name: Option<&str>, parameters: &Value) -> Value {
        let answer = exchange(self.connect(), &self.request(method, name, parameters));
        let start = answer.find("{\"jsonrpc\"").unwrap_or_default();
        let json = answer.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
        let parsed = serde_json::from_str(json);
        assert!(parsed.is_ok(), "{answer}");
        parsed.unwrap_or_default()
    }

    /// Ends it as a person would, and waits.
    pub fn stop(self) {
        self.signal("-TERM");
        self.ends();
    }

    pub fn signal(&self, signal: &str) {
        signal_to(&self.child, signal);
    }

    /// Waits for its end, which must be a good one.
    pub fn ends(mut self) {
        assert!(self.child.wait().is_ok_and(|status| status.success()));
    }

    /// A new connection, if anybody takes it.
    pub fn connect(&self) -> std::io::Result<TcpStream> {
        TcpStream::connect(&self.address)
    }

    /// Ends it without giving it a chance to tidy up.
    pub fn kill(mut self) {
        assert!(self.child.kill().is_ok() && self.child.wait().is_ok());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn signal_to(process: &Child, signal: &str) {
    let told = Command::new("kill").args([signal, &process.id().to_string()]).status();
    assert!(told.is_ok_and(|status| status.success()));
}

/// Sends a request and reads until the other side closes.
pub fn exchange(stream: std::io::Result<impl Read + Write>, request: &str) -> String {
    assert!(stream.is_ok());
    let Ok(mut stream) = stream else { return String::new() };
    let mut answer = Vec::new();
    // Whoever closes without an answer may do so while we write.
    let _ = stream.write_all(request.as_bytes());
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

/// Asks until something is so, for a few seconds.
pub fn eventually(check: impl Fn() -> bool) -> bool {
    (0..100).any(|_| {
        let is_so = check();
        if !is_so {
            std::thread::park_timeout(Duration::from_millis(50));
        }
        is_so
    })
}
