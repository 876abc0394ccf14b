//! Requests over connections of their own, as callers and persons send them, and the stream of events as one hears it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::time::Instant;

const PATIENCE: Duration = Duration::from_secs(60);

/// Whoever asks: where, and with which token.
#[derive(Debug, Clone)]
pub struct Door {
    pub port: u16,
    pub token: String,
}

fn request(verb: &str, path: &str, host: &str, more: &str, body: &str) -> String {
    format!(
        "{verb} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{more}Connection: close\r\n\
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

/// The owner's door of a gateway, which opens last.
pub fn owners_door(home: &Path) -> std::io::Result<UnixStream> {
    UnixStream::connect(home.join(".local/share/toolwarden/control.sock"))
}

/// What the owner of a gateway asks there.
pub fn owner(home: &Path, path: &str, body: &str) -> Result<String> {
    let answer = exchange(owners_door(home)?, &request("POST", path, "toolwarden", "", body))?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    Ok(answer)
}

/// A text member of an answer.
pub fn member(answer: &str, key: &str) -> Option<String> {
    let rest = answer.split_once(&format!("\"{key}\":"))?.1.trim_start().strip_prefix('"')?;
    rest.split('"').next().map(str::to_owned)
}

impl Door {
    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    fn open(&self) -> Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// What a person asks of the API.
    pub fn asks(&self, verb: &str, path: &str, body: &str) -> Result<String> {
        let answer = exchange(self.open()?, &request(verb, path, &self.host(), &self.bearer(), body))?;
        ensure!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        Ok(answer)
    }

    fn call(&self, text: &str) -> String {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"write_note","arguments":{{"name":"plan","text":"{text}"}},{meta}}}}}"#
        );
        let more = format!(
            "Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: \
             tools/call\r\nMcp-Name: write_note\r\n{}",
            self.bearer()
        );
        request("POST", "/mcp/notes", &self.host(), &more, &body)
    }

    /// Makes a call; the whole answer.
    pub fn calls(&self, text: &str) -> Result<String> {
        exchange(self.open()?, &self.call(text))
    }

    /// Makes a call that is held; the id it lies under.
    pub fn holds(&self, text: &str) -> Result<String> {
        let answer = self.calls(text)?;
        member(&answer, "toolwarden/approval").with_context(|| format!("it is not held: {answer}"))
    }

    /// Makes a call and does not wait for its answer.
    pub fn begins(&self, text: &str) -> Result<TcpStream> {
        let mut stream = self.open()?;
        stream.write_all(self.call(text).as_bytes())?;
        Ok(stream)
    }

    /// Hears what becomes of held calls, each with the moment it was heard.
    pub fn listens(&self) -> Result<Events> {
        let mut stream = self.open()?;
        stream.set_read_timeout(None)?;
        let (host, bearer) = (self.host(), self.bearer());
        stream.write_all(format!("GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\n{bearer}\r\n").as_bytes())?;
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        ensure!(line.starts_with("HTTP/1.1 200"), "{line}");
        let (told, heard) = channel();
        std::thread::spawn(move || {
            loop {
                line.clear();
                match lines.read_line(&mut line) {
                    Ok(read) if read > 0 => {}
                    _ => return,
                }
                if line.starts_with("data:") && told.send((Instant::now(), line.clone())).is_err() {
                    return;
                }
            }
        });
        Ok(Events(heard))
    }
}

/// What a listener heard.
#[derive(Debug)]
pub struct Events(Receiver<(Instant, String)>);

impl Events {
    /// When it was heard that a held call is in this state.
    pub fn heard(&self, id: &str, state: &str) -> Result<Instant> {
        let wanted = format!("\"state\":\"{state}\"");
        loop {
            let Ok((at, line)) = self.0.recv_timeout(PATIENCE) else { bail!("{id} is never said to be {state}") };
            if line.contains(id) && line.replace("\": \"", "\":\"").contains(&wanted) {
                return Ok(at);
            }
        }
    }
}
