//! `/api/v1/events`: what happens, told as it does, as server-sent events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use http::{StatusCode, header};
use toolwarden_control::{Clerk, ControlEvent, Listening};

use crate::peer::Peer;
use crate::router::{failed, refuse};

/// A comment is sent this often on a silent stream, so that nobody in between closes it.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The path, at every door of the control side.
pub const EVENTS_PATH: &str = "/api/v1/events";

pub(crate) async fn events(State(clerk): State<Arc<Clerk>>, peer: Option<Extension<Peer>>) -> Response {
    let Some(Extension(peer)) = peer else {
        return refuse(StatusCode::FORBIDDEN, "forbidden", "nobody vouches for who asks");
    };
    let listening = match clerk.listen(&peer.actor(&clerk)) {
        Ok(listening) => listening,
        Err(error) => return failed(&error),
    };
    let told = stream::unfold(listening, |mut listening| async move {
        let bytes = told(&mut listening).await?;
        Some((Ok::<_, std::convert::Infallible>(bytes), listening))
    });
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (StatusCode::OK, headers, Body::from_stream(told)).into_response()
}

async fn told(listening: &mut Listening) -> Option<Bytes> {
    match tokio::time::timeout(KEEP_ALIVE, listening.next()).await {
        Ok(event) => event.map(|event| encoded(&event)),
        Err(_) => Some(Bytes::from_static(b": keep-alive\n\n")),
    }
}

/// JSON has no line breaks of its own.
fn encoded(event: &ControlEvent) -> Bytes {
    format!("event: {}\ndata: {}\n\n", event.name(), event.data()).into()
}
