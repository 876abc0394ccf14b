//! The hostile client over HTTP: every byte of a request is its own to choose.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::Fault;

/// No answer takes this long.
const PATIENCE: Duration = Duration::from_secs(30);

pub const META_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The claims of a modern request, with these client capabilities.
#[must_use]
pub fn meta(capabilities: &str) -> String {
    format!(r#""_meta":{{"{META_KEY}":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#)
}

/// A legacy request. `members` are those of its params.
#[must_use]
pub fn legacy(id: &str, method: &str, members: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{members}}}}}"#)
}

/// The members of a call.
#[must_use]
pub fn calling(tool: &str) -> String {
    format!(r#""name":"{tool}","arguments":{{}}"#)
}

/// An HTTP request.
#[derive(Debug, Clone)]
pub struct Ask {
    verb: &'static str,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Ask {
    /// A POST as clients send it.
    #[must_use]
    pub fn post(path: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = [
            ("Host", "localhost"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        Self { verb: "POST", path: path.to_owned(), headers, body: body.into() }
    }

    #[must_use]
    pub fn get(path: &str) -> Self {
        Self { verb: "GET", ..Self::post(path, "") }
    }

    #[must_use]
    pub fn delete(path: &str) -> Self {
        Self { verb: "DELETE", ..Self::post(path, "") }
    }

    /// A modern request with its mirrors; `name` is what `Mcp-Name` says, nothing where it is empty.
    #[must_use]
    pub fn modern(path: &str, method: &str, name: &str, members: &str) -> Self {
        Self::able(path, method, name, members, "{}")
    }

    /// The same from a client with capabilities.
    #[must_use]
    pub fn able(path: &str, method: &str, name: &str, members: &str, capabilities: &str) -> Self {
        let comma = if members.is_empty() { "" } else { "," };
        let body = legacy("7", method, &format!("{members}{comma}{}", meta(capabilities)));
        let ask = Self::post(path, body).with("MCP-Protocol-Version", "2026-07-28").with("Mcp-Method", method);
        if name.is_empty() { ask } else { ask.with("Mcp-Name", name) }
    }

    /// A modern call of a tool.
    #[must_use]
    pub fn call(path: &str, tool: &str) -> Self {
        Self::modern(path, "tools/call", tool, &calling(tool))
    }

    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    #[must_use]
    pub fn instead(self, name: &str, value: &str) -> Self {
        self.without(name).with(name, value)
    }

    /// The same with another text in the place of one.
    #[must_use]
    pub fn edited(mut self, from: &str, to: &str) -> Self {
        self.body = String::from_utf8_lossy(&self.body).replace(from, to).into_bytes();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut text = format!("{} {} HTTP/1.1\r\n", self.verb, self.path);
        for (name, value) in &self.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("Connection: close\r\nContent-Length: {}\r\n\r\n", self.body.len()));
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// What came back.
#[derive(Debug, Clone, Default)]
pub struct Got {
    pub status: u16,
    pub head: String,
    pub body: String,
    /// All of it came; a gateway that finds an answer wrong on its way breaks off.
    pub is_whole: bool,
}

impl std::fmt::Display for Got {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown: String = self.body.chars().take(600).collect();
        write!(formatter, "{} {shown}", self.status)
    }
}

impl Got {
    #[must_use]
    pub fn has(&self, text: &str) -> bool {
        self.body.contains(text)
    }

    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    }

    /// The text of a member of the answer, wherever it stands.
    #[must_use]
    pub fn text_of(&self, key: &str) -> Option<String> {
        let (_, rest) = self.body.split_once(&format!("\"{key}\":\""))?;
        rest.split_once('"').map(|(value, _)| value.to_owned())
    }
}

/// Sends a request over a connection of its own and reads the whole answer.
///
/// # Errors
/// No connection, or an answer that does not end.
pub async fn send(address: SocketAddr, ask: &Ask) -> Result<Got, Fault> {
    let mut stream = TcpStream::connect(address).await?;
    let mut bytes = Vec::new();
    // A gateway may refuse before it read everything, and close.
    let _ = stream.write_all(&ask.bytes()).await;
    let read = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.map_err(|_| "the answer does not end")?;
    let mut got = parse(&bytes);
    got.is_whole &= read.is_ok();
    Ok(got)
}

fn parse(bytes: &[u8]) -> Got {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&*text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let is_chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let (body, is_whole) = if is_chunked { joined(body) } else { (body.to_owned(), true) };
    Got { status, head: head.to_owned(), body, is_whole }
}

/// The text of chunks, and whether the last one came.
fn joined(mut chunks: &str) -> (String, bool) {
    let mut whole = String::new();
    while let Some((size, rest)) = chunks.split_once("\r\n") {
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { return (whole, false) };
        if size == 0 {
            return (whole, true);
        }
        let Some((chunk, rest)) = rest.split_at_checked(size) else {
            whole.push_str(rest);
            return (whole, false);
        };
        whole.push_str(chunk);
        chunks = rest.strip_prefix("\r\n").unwrap_or(rest);
    }
    (whole, false)
}

/// An answer that is read as it comes.
#[derive(Debug)]
pub struct Listening {
    stream: TcpStream,
    pub text: String,
}

impl Listening {
    /// Sends a request and starts to listen.
    ///
    /// # Errors
    /// No connection.
    pub async fn start(address: SocketAddr, ask: &Ask) -> Result<Self, Fault> {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(&ask.bytes()).await?;
        Ok(Self { stream, text: String::new() })
    }

    /// Reads until this was said; false where the answer ends before.
    ///
    /// # Errors
    /// Neither comes.
    pub async fn until(&mut self, is_enough: impl Fn(&str) -> bool) -> Result<bool, Fault> {
        let mut piece = vec![0; 64 * 1024];
        while !is_enough(&self.text) {
            let reading = timeout(PATIENCE, self.stream.read(&mut piece)).await;
            let length = reading.map_err(|_| format!("nothing more comes after: {}", self.text))?.unwrap_or(0);
            if length == 0 {
                return Ok(false);
            }
            self.text.push_str(&String::from_utf8_lossy(piece.get(..length).unwrap_or_default()));
        }
        Ok(true)
    }

    /// Reads until this text was said.
    ///
    /// # Errors
    /// As `until`.
    pub async fn hears(&mut self, text: &str) -> Result<bool, Fault> {
        self.until(|said| said.contains(text)).await
    }
}
