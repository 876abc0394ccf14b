//! Who is calling, and the mode they chose.
//!
//! Takes what the client showed and the mode of the URL or flag; gives the caller. Refuses a credential that is not
//! good, whoever shows none where one is needed, and modes nobody defined (GATE-2, MODE-8).

use std::sync::Arc;

use toolwarden_core::{Caller, Weakness, weak};

use crate::arrival::Credential;
use crate::gateway::Gateway;
use toolwarden_refusals::Refusal;

/// Who is calling.
///
/// # Errors
/// The credential is not good, one is needed, or nobody defined the mode.
pub fn identify(gateway: &Gateway, credential: &Credential, mode: Option<&str>) -> Result<Arc<Caller>, Refusal> {
    let caller = match credential {
        Credential::Local => gateway.local.clone(),
        Credential::Anonymous if gateway.identities.admits_anonymous() => gateway.anonymous.clone(),
        Credential::Anonymous if gateway.identities.cannot_tell() => return Err(Refusal::Unverified),
        Credential::Anonymous => return Err(Refusal::Unauthorized(NEEDED)),
        Credential::Token(text) => {
            let bearer = gateway.identities.bearer(text.reveal_to_upstream(), gateway.clock.now());
            match bearer {
                Err(_) if weak::is(Weakness::Credentials) => gateway.anonymous.clone(),
                bearer => bearer?,
            }
        }
    };
    let Some(mode) = mode else { return Ok(caller) };
    if gateway.live.policy().base().modes.get(mode).is_none() {
        return Err(Refusal::UnknownMode(mode.to_owned()));
    }
    let mut caller = (*caller).clone();
    caller.mode = Some(mode.to_owned());
    Ok(Arc::new(caller))
}

impl Gateway {
    /// Says in the log that a client was refused for its credential.
    pub fn say_refused_credential(&self, why: &str) {
        self.identities.say_refused(why, self.clock.now());
    }
}

const NEEDED: &str = "tokens were issued here, so a credential is needed: ask the user for a token of Toolwarden, and send it \
                      as `Authorization: Bearer TOKEN`";
