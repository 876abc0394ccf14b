//! How persons and a classifier agree: looked up in the store now and then, for whoever observes this gateway.

use std::sync::PoisonError;

use toolwarden_core::Agreement;
use toolwarden_store::state::StateError;

use crate::desk::Desk;

impl Desk {
    /// As it was last looked up.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        *self.agreement.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn look_at_agreement(&self) -> Result<(), StateError> {
        let found = self.parts.state.agreement().await?;
        *self.agreement.lock().unwrap_or_else(PoisonError::into_inner) = found;
        Ok(())
    }
}
