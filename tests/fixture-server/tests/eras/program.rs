//! The fixture server as a running program, a client of its pipes, and a client of its ports.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than any answer takes, shorter than a test runner waits.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that ends with its test, and a record of what reached it.
pub struct Server {
    process: Child,
    record: PathBuf,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts the program; `name` is the test's, so that records do not mix.
    pub fn start(name: &str, arguments: &[&str]) -> Self {
        let record = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("eras-{name}-{}", std::process::id()));
        let started = Command::new(env!("CARGO_BIN_EXE_toolwarden-fixture-server"))
            .args(arguments)
            .arg("--record")
            .arg(&record)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut process) = started else { unreachable!("{started:?}") };
        let (input, output) = (process.stdin.take(), process.stdout.take().map(BufReader::new));
        Self { process, record, input, output }
    }

    pub fn recorded(&self) -> String {
        fs::read_to_string(&self.record).unwrap_or_default()
    }

    /// Sends one message over the pipe.
    pub fn send(&mut self, message: &Value) {
        let sent = self.input.as_mut().map(|input| writeln!(input, "{message}"));
        assert!(matches!(sent, Some(Ok(()))), "{sent:?}");
    }

    /// The next message from the pipe.
    pub fn receive(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap_or_default()
    }

    /// Sends a request over the pipe and gives the next message.
    pub fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.receive()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.output.as_mut().map(|output| output.read_line(&mut line));
        assert!(matches!(read, Some(Ok(_))), "{read:?}");
        line.trim_end().to_owned()
    }

    /// Where it says that it listens.
    pub fn place(&mut self) -> Place {
        let line = self.line();
        let url = line.strip_prefix("listening on http://").unwrap_or_default();
        let (authority, path) = url.split_once('/').unwrap_or_default();
        Place { authority: authority.to_owned(), path: format!("/{path}") }
    }

    /// Closes its input and says whether it ended well.
    pub fn leave(mut self) -> bool {
        self.input = None;
        self.process.wait().is_ok_and(|status| status.success())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_file(&self.record);
    }
}

/// An address of a running server.
pub struct Place {
    pub authority: String,
    pub path: String,
}

impl Place {
    /// Sends a request of HTTP/1.0, whose answer has no framing but its end.
    pub fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let connected = TcpStream::connect(&self.authority);
        let Ok(mut stream) = connected else { unreachable!("{connected:?}") };
        let mut head = format!("{method} {} HTTP/1.0\r\nhost: {}\r\n", self.path, self.authority);
        head.push_str("accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let text = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
        assert!(stream.set_read_timeout(Some(PATIENCE)).is_ok());
        assert!(stream.write_all(text.as_bytes()).is_ok());
        Answer::read(BufReader::new(stream))
    }

    pub fn post(&self, headers: &[(&str, &str)], message: &Value) -> Answer {
        self.send("POST", headers, &message.to_string())
    }

    /// Posts a modern request with the headers it needs.
    pub fn post_modern(&self, message: &Value) -> Answer {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let method = text(message.get("method"));
        let name = text(message.get("params").and_then(|params| params.get("name")));
        let mut headers = vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", method.as_str())];
        if !name.is_empty() {
            headers.push(("mcp-name", name.as_str()));
        }
        self.post(&headers, message)
    }
}

/// An answer whose body is still to be read.
pub struct Answer {
    pub status: u16,
    head: String,
    body: BufReader<TcpStream>,
}

impl Answer {
    fn read(mut body: BufReader<TcpStream>) -> Self {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = body.read_line(&mut head);
            assert!(matches!(read, Ok(1..)), "{read:?} after {head}");
        }
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        Self { status, head: head.to_ascii_lowercase(), body }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The whole body as JSON.
    pub fn json(mut self) -> Value {
        let mut text = String::new();
        let read = self.body.read_to_string(&mut text);
        assert!(read.is_ok(), "{read:?}");
        serde_json::from_str(&text).unwrap_or(Value::String(text))
    }

    /// The data of the next event that has some.
    pub fn event(&mut self) -> String {
        loop {
            let mut line = String::new();
            let read = self.body.read_line(&mut line);
            assert!(matches!(read, Ok(1..)), "{read:?}");
            if let Some(data) = line.strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty()) {
                return data.to_owned();
            }
        }
    }

    /// The next event that is a message.
    pub fn message(&mut self) -> Value {
        serde_json::from_str(&self.event()).unwrap_or_default()
    }
}

/// A request of the legacy era.
pub fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// The same of the modern era, from a client that can answer everything.
pub fn claimed(id: u32, method: &str, params: &Value) -> Value {
    let mut params = params.clone();
    if let Some(fields) = params.as_object_mut() {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "eras", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": all_capabilities(),
        });
        fields.insert("_meta".to_owned(), meta);
    }
    request(id, method, &params)
}

pub fn initialize(version: &str, capabilities: &Value) -> Value {
    let client = json!({"name": "eras", "version": "1"});
    request(1, "initialize", &json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": client}))
}

pub fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

pub fn all_capabilities() -> Value {
    json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}})
}

/// The parameters of a call of the tool that returns its arguments.
pub fn echo() -> Value {
    json!({"name": "test_echo", "arguments": {"word": "kept"}})
}

/// The code of an error answer.
pub fn code(answer: &Value) -> Option<i64> {
    answer.get("error")?.get("code")?.as_i64()
}

/// Whether a call of `echo` ran.
pub fn echoed(answer: &Value) -> bool {
    answer.get("result").and_then(|result| result.get("structuredContent")) == Some(&json!({"word": "kept"}))
}
