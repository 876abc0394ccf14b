//! Links to the page of one held call, for one person: sealed, so that nobody can make or change one, and good for that
//! call alone as long as it waits.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolwarden_core::digest::hex;
use toolwarden_core::{ActingToken, Keyring, Purpose};

use toolwarden_store::state::Approval;

use crate::operations::approvals_link::link_for;
use crate::{Actor, Clerk, ControlError, Role, TokenInUse, Via};

/// How a link is told from the id of a held call.
pub const LINK_MARK: &str = "l.";
const BOUND_TO: &[u8] = b"link to a held call";
/// No real one comes near this.
const LONGEST: usize = 4 * 1024;

/// What a link says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) approval: String,
    pub(crate) user: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<String>,
    pub(crate) expires_at: Timestamp,
    /// The token it was asked for with: answers by the link are answers of that token, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<ActingToken>,
}

impl Link {
    /// The text that goes into an address.
    pub(crate) fn sealed(&self, keyring: &dyn Keyring) -> Result<String, ControlError> {
        let plain = serde_json::to_vec(self).map_err(|_| ControlError::Without("the key"))?;
        let sealed = keyring.seal(Purpose::Link, BOUND_TO, &plain).map_err(|_| ControlError::Without("the key"))?;
        Ok(format!("{LINK_MARK}{}", URL_SAFE_NO_PAD.encode(sealed)))
    }

    fn opened(keyring: &dyn Keyring, text: &str) -> Option<Self> {
        let text = text.strip_prefix(LINK_MARK).filter(|text| text.len() <= LONGEST)?;
        let sealed = URL_SAFE_NO_PAD.decode(text).ok()?;
        let plain = keyring.open(Purpose::Link, BOUND_TO, &sealed).ok()?;
        serde_json::from_slice(&plain).ok()
    }
}

impl Clerk {
    /// Whom a link was given to, and the held call it is for; none where it is none of ours, or over.
    #[must_use]
    pub fn link(&self, text: &str) -> Option<(Actor, String)> {
        let keyring = self.keyring().ok()?;
        let link = Link::opened(&*keyring, text).filter(|link| link.expires_at > self.parts.clock.now())?;
        // Whoever gave it made this person an approver of this one call.
        let token = link.token.map(|acting| TokenInUse { acting, ..TokenInUse::default() });
        let actor = Actor { user: link.user, via: Via::Link, roles: vec![Role::Approver], groups: link.groups, token };
        Some((actor, link.approval))
    }

    /// The address of the page of a held call, for whoever logs in there.
    #[must_use]
    pub fn page_of(&self, id: &str) -> Option<String> {
        self.parts.page.as_ref().map(|base| format!("{base}{id}"))
    }

    /// The address of a held call for one person, without a login; none where they may not answer it.
    #[must_use]
    pub fn link_to(&self, approval: &Approval, user: &str, groups: &[String]) -> Option<String> {
        link_for(self, approval, (user.to_owned(), groups.to_vec()), None).ok().map(|link| link.url)
    }

    /// What a form of ours carries, so that an answer comes from whoever was shown the page, and for what it showed.
    #[must_use]
    pub fn form_mark(&self, visitor: &str, id: &str) -> Option<String> {
        let text = format!("form {}:{visitor}{id}", visitor.len());
        Some(hex(&self.keyring().ok()?.mark(Purpose::Link, text.as_bytes())))
    }
}
