//! Clients that take their time: to say what they want, and to read what they get.

use std::time::Duration;

use anyhow::Result;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::caller::{Bystanders, Fault, Session};
use crate::house::{House, PATIENCE, PERMISSIVE, at_url, open_many_files, report};
use crate::upstream::{Upstream, bad};

/// Connections of each kind.
const EACH: usize = 100;
const PAUSE: Duration = Duration::from_millis(700);
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"slow","version":"1"}}}"#;

/// Says something at once, then the rest byte by byte; gives what it heard until the gateway closed.
async fn drip(base: String, at_once: String, slowly: String) -> Result<String> {
    let (mut reader, mut writer) = TcpStream::connect(&base).await?.into_split();
    let writing = tokio::spawn(async move {
        if writer.write_all(at_once.as_bytes()).await.is_err() {
            return;
        }
        for byte in slowly.bytes() {
            sleep(PAUSE).await;
            if writer.write_all(&[byte]).await.is_err() {
                return;
            }
        }
        // It keeps the connection open and says no more.
        std::future::pending::<()>().await;
    });
    let mut heard = Vec::new();
    let mut buffer = [0; 1024];
    // A connection that is reset is closed as well.
    while let Ok(count @ 1..) = timeout(PATIENCE, reader.read(&mut buffer)).await?.or(Ok::<_, Fault>(0)) {
        heard.extend(buffer.iter().take(count));
    }
    writing.abort();
    Ok(String::from_utf8_lossy(&heard).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_never_finish_are_closed_and_are_alone() -> Result<()> {
    open_many_files();
    let healthy = Upstream::start().await?;
    let house = House::new(&format!("{PERMISSIVE}{}", at_url("healthy", &healthy.url)));
    let gateway = house.serve().await;
    let bystanders = Bystanders::at(gateway.base(), "healthy");
    let post = "POST /mcp/healthy HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let endless = format!("{post}x-slow: {}", "x".repeat(1000));
    let length = BODY.len();
    let accept = "accept: application/json, text/event-stream\r\n";
    let head = format!("{post}{accept}content-length: {length}\r\n\r\n");
    let kinds = [
        ("silent", String::new(), String::new(), ""),
        ("slow headers", String::new(), endless, ""),
        ("slow body", head, BODY.to_owned(), "408"),
    ];
    let mut slow = Vec::new();
    for (name, at_once, slowly, heard) in kinds {
        for _ in 0..EACH {
            let dripping = tokio::spawn(drip(gateway.base().to_owned(), at_once.clone(), slowly.clone()));
            slow.push((name, heard, dripping));
        }
    }
    bystanders.served(200).await?;
    let memory = gateway.memory();
    for (name, expected, dripping) in slow {
        let heard = dripping.await?;
        assert!(heard.is_ok(), "{name}: the connection was never closed");
        let heard = heard.unwrap_or_default();
        assert!(heard.contains(expected) && !heard.contains("200 OK"), "{name}: {heard}");
    }
    report(&format!("slow writers, MiB: {memory}"));
    assert!(memory < 200, "the gateway took {memory} MiB");
    bystanders.served(20).await?;
    bystanders.leave().await?;
    gateway.stop().await;
    Ok(())
}

const READERS: usize = 16;
const MIB: u64 = 1024 * 1024;
/// Of each answer; all of them together would not fit into what the gateway may take.
const SIZE: u64 = 48 * MIB;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_read_slowly_are_alone() -> Result<()> {
    let (healthy, large) = (Upstream::start().await?, Upstream::start().await?);
    let config = format!("{PERMISSIVE}{}{}", at_url("healthy", &healthy.url), at_url("large", &large.url));
    let house = House::new(&config);
    let gateway = house.serve().await;
    let bystanders = Bystanders::at(gateway.base(), "healthy");
    bystanders.served(100).await?;
    let before = gateway.peak();
    let mut waiting = Vec::new();
    for reader in 0..READERS {
        let mut session = Session::open(gateway.base(), "large").await?;
        let tool = if reader % 2 == 0 { bad::LONG_JSON } else { bad::LONG_STREAM };
        let response = session.begin(tool, &json!({"bytes": SIZE})).await?;
        waiting.push((session, tool, response.into_body()));
    }
    // As long as nobody reads, the server cannot send: what it sent stands in buffers.
    bystanders.served(500).await?;
    let sent = large.sent();
    assert!(sent < READERS as u64 * SIZE / 2, "the gateway took {sent} bytes that nobody reads");
    for (_session, tool, body) in waiting {
        let mut body = body;
        let mut size = 0;
        while let Some(frame) = timeout(PATIENCE, body.frame()).await? {
            size += frame?.into_data().map_or(0, |data| data.len() as u64);
        }
        assert!(size > SIZE, "{size} bytes of {tool}");
    }
    let peak = gateway.peak();
    report(&format!("slow readers, MiB: {before} before, at most {peak}; {sent} bytes in buffers"));
    assert!(peak < before + 100, "the gateway grew from {before} to {peak} MiB");
    bystanders.served(20).await?;
    bystanders.leave().await?;
    gateway.stop().await;
    Ok(())
}
