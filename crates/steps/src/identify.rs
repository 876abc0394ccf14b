//! Who is calling. In this form: the local person, and the mode they chose.
//!
//! Takes what the client showed and the mode of the URL or flag; gives the caller; refuses every
//! presented credential, since none was issued, and modes nobody defined (MODE-8).

use std::sync::Arc;

use toolwarden_core::{Caller, Weakness, weak};

use crate::arrival::Credential;
use crate::gateway::Gateway;
use toolwarden_refusals::Refusal;

/// Who is calling.
///
/// # Errors
/// The credential is not known here, or nobody defined the mode.
pub fn identify(gateway: &Gateway, credential: &Credential, mode: Option<&str>) -> Result<Arc<Caller>, Refusal> {
    if *credential == Credential::Presented && !weak::is(Weakness::Credentials) {
        return Err(Refusal::Unauthorized);
    }
    let Some(mode) = mode else { return Ok(gateway.local.clone()) };
    if gateway.live.policy().base().modes.get(mode).is_none() {
        return Err(Refusal::UnknownMode(mode.to_owned()));
    }
    let mut caller = (*gateway.local).clone();
    caller.mode = Some(mode.to_owned());
    Ok(Arc::new(caller))
}
