//! The order to stop: nothing new begins, streams of news end, and what is on its way has a while.

use tokio::sync::watch;

/// Whether the order was given.
#[derive(Debug)]
pub struct Closing(watch::Sender<bool>);

impl Default for Closing {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Closing {
    /// Gives the order; it is not taken back.
    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    /// Whether whoever asks for readiness is to be told no.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits for the order; at once where it was given before.
    pub fn begun(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut order = self.0.subscribe();
        async move {
            // Without anybody who could give it everything is over, too.
            let _ = order.wait_for(|begun| *begun).await;
        }
    }
}
