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
    let (modern, structured) = (request.uri().path() == "/modern", request.uri().path() == "/structured");
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let text = String::from_utf8_lossy(&body);
    let answered =
        answer(&text, modern).map(|(status, said)| (status, if structured { with_structure(&said) } else { said }));
    let mut response = match answered {
        Some((status, answer)) => {
            let mut response = Response::new(Full::from(answer));
            *response.status_mut() = status;
            response
        }
        None => {
            let mut accepted = Response::new(Full::default());
            *accepted.status_mut() = StatusCode::ACCEPTED;
            accepted
        }
    };
    let headers = response.headers_mut();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    if !modern {
        headers.insert("mcp-session-id", HeaderValue::from_static("bench"));
    }
    Ok(response)
}

pub fn pipe(modern: bool) -> Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut input = std::io::BufReader::new(std::io::stdin().lock());
    let mut line = String::new();
    while input.read_line(&mut line)? > 0 {
        if let Some((_, answer)) = answer(&line, modern) {
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

/// Found by looking, not by parsing: the messages are our own. A server of one era refuses the other.
fn answer(text: &str, modern: bool) -> Option<(StatusCode, String)> {
    let id = member(text, "\"id\":")?;
    if modern != text.contains("io.modelcontextprotocol/protocolVersion") {
        let (code, words) = if modern { (-32602, "_meta is missing") } else { (-32601, "Method not found") };
        let error = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"{words}"}}}}"#);
        return Some((StatusCode::BAD_REQUEST, error));
    }
    let result = match member(text, "\"method\":")?.trim_matches('"') {
        "initialize" => r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}"#.to_owned(),
        "server/discover" => r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}"#.to_owned(),
        "tools/list" => format!("{{\"resultType\":\"complete\",\"tools\":[{}]}}", &**TOOLS),
        _ if text.contains("\"large\"") => format!(r#"{{"content":[{{"type":"text","text":"{}"}}]}}"#, &**LARGE),
        _ => r#"{"resultType":"complete","content":[{"type":"text","text":"a hundred bytes or so of an answer, which is what most tools give back"}]}"#.to_owned(),
    };
    Some((StatusCode::OK, format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}")))
}

/// The same of a server whose tools say what their results look like.
fn with_structure(said: &str) -> String {
    let schema = r#""outputSchema":{"type":"object","properties":{"lines":{"type":"integer"}},"required":["lines"]},"inputSchema""#;
    let content = r#""structuredContent":{"lines":3},"content""#;
    said.replace("\"inputSchema\"", schema).replace("\"content\"", content)
}

fn member<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(key)?;
    rest.split([',', '}']).next().map(str::trim)
}

/// The same call of a modern client.
pub fn modern_call() -> Arc<str> {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#;
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"tool_1","arguments":{{"path":"/some/where/small","size":"small","count":3}},{meta}}}}}"#
    )
    .into()
}

/// Shared by the load generator.
pub fn call(tool: &str, size: &str) -> Arc<str> {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"path":"/some/where/{size}","size":"{size}","count":3}}}}}}"#
    )
    .into()
}
