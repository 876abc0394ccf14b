//! Waiting for what comes soon, and never for good.

use std::time::Duration;

/// Waits until something is so, for some seconds.
pub(super) async fn eventually(mut is_so: impl AsyncFnMut() -> bool) -> bool {
    for _ in 0..500 {
        if is_so().await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}
