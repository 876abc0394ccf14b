//! A client at the stdio door, message by message.

use std::time::Duration;
use toolwarden_gateway::Credential;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use toolwarden_conversations::Scope;

use super::doors::Speech;
use super::house::House;
use crate::stdio;

const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Pipe {
    write: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    serving: JoinHandle<()>,
}

impl Pipe {
    /// Opens the door; a legacy client says hello, too.
    pub(super) async fn open(house: &House, scope: Scope, speech: Speech) -> Self {
        Self::open_as(house, scope, speech, &json!({})).await
    }

    /// The same for a client with these capabilities.
    pub(super) async fn open_as(house: &House, scope: Scope, speech: Speech, capabilities: &Value) -> Self {
        Self::open_with(house, scope, speech, capabilities, Credential::Local).await
    }

    /// The same for a client that shows this.
    pub(super) async fn open_with(
        house: &House,
        scope: Scope,
        speech: Speech,
        capabilities: &Value,
        credential: Credential,
    ) -> Self {
        let (client, server) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(server);
        let gateway = house.gateway.clone();
        let serving = tokio::spawn(async move {
            let never = std::future::pending();
            let client = stdio::Client { scope, credential: &credential, mode: None };
            let _ = stdio::serve(&gateway, client, (input, output), never, stdio::nothing_to_catch_up).await;
        });
        let (read, write) = tokio::io::split(client);
        let mut pipe = Self { write, lines: BufReader::new(read).lines(), serving };
        if speech == Speech::Legacy {
            pipe.say(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}}}))
                .await;
            let said = pipe.hear().await;
            assert!(said.get("result").is_some(), "{said}");
            pipe.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        }
        pipe
    }

    pub(super) async fn say(&mut self, message: &Value) {
        assert!(self.write.write_all(format!("{message}\n").as_bytes()).await.is_ok());
    }

    /// The next message; null where none comes in time.
    pub(super) async fn hear(&mut self) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line()).await.ok().and_then(Result::ok).flatten();
        line.and_then(|line| serde_json::from_str(&line).ok()).unwrap_or_default()
    }

    /// The next message but for news of these lists, which changes of what is visible bring along.
    pub(super) async fn hear_besides(&mut self, lists: &[&str]) -> Value {
        loop {
            let said = self.hear().await;
            let method = said.get("method").and_then(Value::as_str).unwrap_or_default();
            if !lists.iter().any(|list| method == format!("notifications/{list}/list_changed")) {
                return said;
            }
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
