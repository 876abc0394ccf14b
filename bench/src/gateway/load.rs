//! A closed loop over HTTP: N connections, each sends its next request when it has the last answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Where requests go.
#[derive(Debug, Clone)]
pub struct Target {
    pub name: &'static str,
    pub port: u16,
    pub path: &'static str,
    /// The process whose CPU counts; none for the direct connection.
    pub process: Option<u32>,
    /// Whether the client speaks the modern era.
    pub modern: bool,
}

/// What one round gave.
#[derive(Debug, Clone, Copy, Default)]
pub struct Round {
    pub per_second: f64,
    pub median_us: f64,
    pub cpu_us: f64,
}

/// One open session.
pub struct Session {
    sender: SendRequest<Full<Bytes>>,
    headers: HeaderMap,
    path: &'static str,
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;

impl Session {
    pub async fn open(target: &Target) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", target.port)).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "localhost"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", "2025-11-25"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let mut session = Self { sender, headers, path: target.path };
        if target.modern {
            for (name, value) in
                [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "tool_1")]
            {
                session.headers.insert(name, HeaderValue::from_static(value));
            }
            return Ok(session);
        }
        let (answered, _) = session.exchange(HELLO.into()).await?;
        let id = answered.get("mcp-session-id").context("no session was opened")?.clone();
        session.headers.insert("mcp-session-id", id);
        session.exchange(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into()).await?;
        Ok(session)
    }

    pub async fn exchange(&mut self, body: Arc<str>) -> Result<(HeaderMap, usize)> {
        let mut request = Request::new(Full::new(Bytes::from_owner(Text(body))));
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = http::Uri::from_static(self.path);
        request.headers_mut().clone_from(&self.headers);
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let (parts, mut body) = response.into_parts();
        let (mut size, mut tail) = (0, Bytes::new());
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                size += data.len();
                tail = data;
            }
        }
        if !parts.status.is_success() || tail.windows(14).any(|part| part == b"\"isError\":true") {
            bail!("{}: {}", parts.status, String::from_utf8_lossy(&tail).chars().take(300).collect::<String>());
        }
        Ok((parts.headers, size))
    }
}

struct Text(Arc<str>);

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// Runs one round.
pub async fn round(target: &Target, body: &Arc<str>, in_flight: usize, time: Duration) -> Result<Round> {
    let mut sessions = Vec::new();
    for _ in 0..in_flight {
        sessions.push(Session::open(target).await?);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let before = target.process.map_or(0.0, cpu_us);
    let started = Instant::now();
    let tasks: Vec<_> = sessions
        .into_iter()
        .map(|mut session| {
            let (stop, body) = (stop.clone(), body.clone());
            tokio::spawn(async move {
                let mut times = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let begun = Instant::now();
                    session.exchange(body.clone()).await?;
                    times.push(begun.elapsed());
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    tokio::time::sleep(time).await;
    stop.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await??);
    }
    let elapsed = started.elapsed().as_secs_f64();
    let used = target.process.map_or(0.0, cpu_us) - before;
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let calls = times.len().max(1) as f64;
    Ok(Round { per_second: calls / elapsed, median_us: median.as_secs_f64() * 1e6, cpu_us: used / calls })
}

/// CPU time of a process and its children that are still there.
pub fn cpu_us(process: u32) -> f64 {
    let own = ticks(process);
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let below: f64 = children.split_whitespace().filter_map(|child| child.parse().ok()).map(ticks).sum();
    (own + below) * 10_000.0
}

fn ticks(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let after = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
    after.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum()
}

/// Resident memory in MiB.
pub fn memory_mib(process: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().split(' ').next().and_then(|kib| kib.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
