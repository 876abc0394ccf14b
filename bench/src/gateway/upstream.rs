//! The server behind the proxies: as little work per call as hyper allows, or a line in, a line out.

use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::sync::{Arc, LazyLock};

use anyhow::Result;
use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

static LARGE: LazyLock<String> = LazyLock::new(|| "x".repeat(1024 * 1024));
static TOOLS: LazyLock<String> = LazyLock::new(|| {
    let tool = |number: usize| {
        format!(
            r#"{{"name":"tool_{number}","description":"Does the thing number {number}, and says what came of it.","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string"}},"count":{{"type":"integer"}}}}}}}}"#
        )
    };
    (0..200).map(tool).collect::<Vec<_>>().join(",")
});

pub async fn serve(port: u16) -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let _ = stream.set_nodelay(true);
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(respond)));
    }
}

async fn respond(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let mut response = match answer(&text) {
        Some(answer) => Response::new(Full::from(answer)),
        None => {
            let mut accepted = Response::new(Full::default());
            *accepted.status_mut() = StatusCode::ACCEPTED;
            accepted
        }
    };
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("mcp-session-id", HeaderValue::from_static("bench"));
    Ok(response)
}

pub fn pipe() -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut input = std::io::BufReader::new(std::io::stdin().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        if let Some(answer) = answer(&line) {
            writeln!(out, "{answer}")?;
        }
        line.clear();
        // Answers go out together where questions came together.
        if !input.buffer().contains(&b'\n') {
            out.flush()?;
        }
    }
    Ok(())
}

/// Found by looking, not by parsing: the messages are our own.
fn answer(text: &str) -> Option<String> {
    let id = member(text, "\"id\":")?;
    let result = match member(text, "\"method\":")?.trim_matches('"') {
        "initialize" => r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}"#.to_owned(),
        "tools/list" => format!("{{\"tools\":[{}]}}", &**TOOLS),
        _ if text.contains("\"large\"") => format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, &**LARGE),
        _ => r#"{"content":[{"type":"text","text":"a hundred bytes or so of an answer, which is what most tools give back"}]}"#.to_owned(),
    };
    Some(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"))
}

fn member<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    rest.split([',', '}']).next().map(str::trim)
}

/// Shared by the load generator.
pub fn call(tool: &str, size: &str) -> Arc<str> {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"path":"/some/where/{size}","size":"{size}","count":3}}}}}}"#
    )
    .into()
}
