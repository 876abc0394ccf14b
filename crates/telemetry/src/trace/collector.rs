//! The collector: one POST of JSON at a time, over HTTP or HTTPS, with bounds on everything it may say.

use std::time::Duration;

use toolwarden_core::Secret;
use toolwarden_net::{Bounds, NetError, Place};
use url::Url;

/// How long one delivery may take, and the largest answer that is read.
const BOUNDS: Bounds = Bounds { patience: Duration::from_secs(10), largest_answer: 64 * 1024 };
const PATH: &str = "v1/traces";

/// Why a collector cannot be used. Says nothing of its address but host and port, nothing of headers' values.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    #[error("its address cannot be used; write it as http://127.0.0.1:4318")]
    Address,
    #[error(transparent)]
    Net(NetError),
    #[error("{place} answers {status}")]
    Status { place: String, status: u16 },
}

/// Where spans go.
#[derive(Debug)]
pub struct Collector(Place);

impl Collector {
    /// At this base address, with these headers.
    ///
    /// # Errors
    /// The address or a header cannot be used.
    pub fn new<'a>(
        address: &str,
        headers: impl IntoIterator<Item = (&'a String, &'a Secret)>,
    ) -> Result<Self, CollectorError> {
        let mut url = Url::parse(address).map_err(|_| CollectorError::Address)?;
        if url.query().is_some() || url.cannot_be_a_base() {
            return Err(CollectorError::Address);
        }
        let base = url.path().trim_end_matches('/');
        let path = if base.ends_with(PATH) { base.to_owned() } else { format!("{base}/{PATH}") };
        url.set_path(&path);
        Place::new(url.as_str(), headers).map(Self).map_err(|error| match error {
            NetError::Address => CollectorError::Address,
            error => CollectorError::Net(error),
        })
    }

    /// Delivers one batch.
    pub(super) async fn deliver(&self, body: String) -> Result<(), CollectorError> {
        // What it says of it is of no use; only too much of it is no reason to call it a failure.
        let status = match self.0.post_json(body, &[], BOUNDS).await {
            Ok(answered) => answered.status,
            Err(NetError::TooLong { .. }) => return Ok(()),
            Err(error) => return Err(CollectorError::Net(error)),
        };
        match status {
            200..=299 => Ok(()),
            status => Err(CollectorError::Status { place: self.0.name(), status }),
        }
    }
}
