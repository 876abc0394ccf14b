//! The oldest HTTP transport, of 2024-11-05: one stream of events for each client, and an address to post to.
//!
//! The stream begins with that address; every message of the server is an event on it, and a post is only accepted.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::response::Sse;
use axum::response::sse::{Event, KeepAlive};
use axum::routing::{get, post};
use futures_util::{Stream, StreamExt as _, stream};
use http::StatusCode;
use rmcp::transport::common::server_side_http::session_id;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::handler::Shared;
use crate::lines::{Lines, converse};

/// Where each client's posts go, by its session.
type Clients = Arc<Mutex<HashMap<String, mpsc::Sender<Vec<u8>>>>>;

#[derive(Clone)]
struct Door {
    shared: Arc<Shared>,
    clients: Clients,
}

pub async fn serve(shared: Arc<Shared>, listener: TcpListener) -> anyhow::Result<()> {
    let door = Door { shared, clients: Clients::default() };
    let router = Router::new().route("/sse", get(open)).route("/message", post(accept)).with_state(door);
    axum::serve(listener, router).await?;
    Ok(())
}

async fn open(State(door): State<Door>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let Lines { input, output, .. } = converse(door.shared, |pipe| pipe);
    let session = session_id().to_string();
    let address = format!("/message?sessionId={session}");
    lock(&door.clients).insert(session.clone(), input);
    let presence = Presence { clients: door.clients, session };
    let messages = stream::unfold((output, presence), |(mut output, presence)| async move {
        let line = output.recv().await?;
        let event = Event::default().event("message").data(String::from_utf8_lossy(&line));
        Some((Ok(event), (output, presence)))
    });
    let first = stream::once(async move { Ok(Event::default().event("endpoint").data(address)) });
    Sse::new(first.chain(messages)).keep_alive(KeepAlive::default())
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "sessionId")]
    session: String,
}

async fn accept(State(door): State<Door>, Query(address): Query<Address>, body: Bytes) -> (StatusCode, &'static str) {
    let Some(client) = lock(&door.clients).get(&address.session).cloned() else {
        return (StatusCode::NOT_FOUND, "Session not found");
    };
    if serde_json::from_slice::<serde::de::IgnoredAny>(&body).is_err() {
        return (StatusCode::BAD_REQUEST, "Invalid message");
    }
    // Inside JSON a line break is never more than a space.
    let line = body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    match client.send(line).await {
        Ok(()) => (StatusCode::ACCEPTED, "Accepted"),
        Err(_) => (StatusCode::NOT_FOUND, "Session not found"),
    }
}

/// A client whose stream is open. Its session ends with it.
struct Presence {
    clients: Clients,
    session: String,
}

impl Drop for Presence {
    fn drop(&mut self) {
        lock(&self.clients).remove(&self.session);
    }
}

fn lock(clients: &Clients) -> MutexGuard<'_, HashMap<String, mpsc::Sender<Vec<u8>>>> {
    clients.lock().unwrap_or_else(PoisonError::into_inner)
}
