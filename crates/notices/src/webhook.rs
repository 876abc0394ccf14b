//! One webhook, as the config has it: where it is, what it is told, for whom, and what it may say.

use toolwarden_core::{ApprovalState, Secret};
use toolwarden_net::{NetError, Place};

use crate::signature::key;

const SHORTEST_KEY: usize = 16;

/// How a message is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Toolwarden's own.
    Json,
    /// What an incoming webhook of Slack, or of those that read the same, shows.
    Slack,
}

/// What a webhook is made of.
#[derive(Debug)]
pub struct WebhookParts {
    pub name: String,
    pub url: Secret,
    pub secret: Option<Secret>,
    pub format: Format,
    /// The one person it reaches: whose links it carries, and in whose name it may answer.
    pub user: Option<String>,
    pub groups: Vec<String>,
    pub states: Vec<ApprovalState>,
    /// Whether it is told the arguments of calls.
    pub arguments: bool,
    /// Whether it may answer.
    pub answers: bool,
}

/// Why a webhook cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    #[error(transparent)]
    Net(#[from] NetError),
    #[error("it needs a `secret`, by which whoever gets its messages knows that they are Toolwarden's")]
    NoSecret,
    #[error("`answers` needs a `secret` and a `user`: in whose name it answers")]
    NoUser,
    #[error("its secret has fewer than 16 bytes, or begins with `whsec_` and is no base64")]
    ShortSecret,
    #[error("{0} is another machine, and http is read by everybody on the way: use https")]
    Plain(String),
}

/// A webhook that can be used.
#[derive(Debug)]
pub struct Webhook {
    pub(crate) parts: WebhookParts,
    pub(crate) place: Place,
}

impl Webhook {
    /// # Errors
    /// Its address cannot be used, or something it needs is missing.
    pub fn new(parts: WebhookParts) -> Result<Self, WebhookError> {
        let place = Place::new(parts.url.reveal_to_upstream(), [])?;
        // What is told can carry a link that answers.
        if !place.is_secure() && !place.is_loopback() {
            return Err(WebhookError::Plain(place.name()));
        }
        if parts.secret.is_none() && parts.format == Format::Json {
            return Err(WebhookError::NoSecret);
        }
        if parts.answers && (parts.secret.is_none() || parts.user.is_none()) {
            return Err(WebhookError::NoUser);
        }
        let is_short = |secret: &Secret| key(secret).is_none_or(|key| key.len() < SHORTEST_KEY);
        if parts.secret.as_ref().is_some_and(is_short) {
            return Err(WebhookError::ShortSecret);
        }
        Ok(Self { parts, place })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Which moves of held calls it is told of.
    #[must_use]
    pub fn states(&self) -> &[ApprovalState] {
        &self.parts.states
    }
}
