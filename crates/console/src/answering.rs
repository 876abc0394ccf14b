//! One request of somebody a door vouches for, answered as a whole: for doors that are not this room's own.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use http::{Request, Response, StatusCode};
use toolwarden_control::{Clerk, ControlError, Listening};
use tower::ServiceExt;

use crate::page::{self, Visitors};
use crate::peer::Peer;
use crate::router::router;

/// More than any answer of the clerk's: exports are streamed from files, not from here.
const LARGEST: usize = 256 * 1024 * 1024;

/// Every operation of a clerk.
#[derive(Debug, Clone)]
pub struct Desk {
    router: Router,
    clerk: Arc<Clerk>,
}

impl Desk {
    #[must_use]
    pub fn new(clerk: Arc<Clerk>) -> Self {
        Self { router: router(clerk.clone()), clerk }
    }

    /// Listens to what happens, on behalf of somebody.
    ///
    /// # Errors
    /// They may not, or no gateway runs here.
    pub fn listen(&self, peer: &Peer) -> Result<Listening, ControlError> {
        self.clerk.listen(&peer.actor(&self.clerk))
    }

    /// The routes, for the control socket.
    pub(crate) fn router(&self) -> Router {
        self.router.clone()
    }

    /// Answers at the page of held calls, whoever comes.
    pub async fn page(self, visitors: Arc<dyn Visitors>, request: Request<Bytes>) -> Response<Bytes> {
        Box::pin(page::answer(&self.clerk, &*visitors, request)).await
    }

    /// Answers. Without a peer every route refuses.
    pub async fn answer(self, peer: Option<Peer>, request: Request<Bytes>) -> Response<Bytes> {
        let mut request = request.map(Body::from);
        if let Some(peer) = peer {
            request.extensions_mut().insert(peer);
        }
        let Ok(response) = self.router.oneshot(request).await;
        let (parts, body) = response.into_parts();
        match to_bytes(body, LARGEST).await {
            Ok(bytes) => Response::from_parts(parts, bytes),
            Err(_) => {
                let mut failed = Response::new(Bytes::new());
                *failed.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
                failed
            }
        }
    }
}
