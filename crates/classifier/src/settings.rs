//! How a classifier is reached and what it is held to. Refuses what cannot be used, without repeating a secret.

use std::collections::BTreeMap;
use std::time::Duration;

use toolwarden_core::Secret;
use toolwarden_net::{NetError, Place};

/// Where an API is, if nobody says otherwise.
const OPENAI: &str = "https://api.openai.com/v1";
const ANTHROPIC: &str = "https://api.anthropic.com";
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Models have names, not stories.
const LONGEST_MODEL: usize = 128;

/// What kind of machine is asked.
#[derive(Debug, Clone)]
pub enum Kind {
    /// `POST {url}/chat/completions`.
    OpenAi { url: Option<String>, key: Option<Secret> },
    /// `POST {url}/v1/messages`.
    Anthropic { url: Option<String>, key: Option<Secret> },
    /// A program of this machine, its arguments, and all it gets of the environment.
    Command { command: Vec<String>, environment: BTreeMap<String, String> },
}

/// What may be spent on one day (UTC), in billionths of whatever the prices are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Money {
    pub per_day: u64,
    /// For a million tokens that are sent, and that come back.
    pub input: u64,
    pub output: u64,
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub kind: Kind,
    pub model: String,
    /// Without TLS to other machines: everything that is asked can be read and answered on the way.
    pub plain_http: bool,
    pub patience: Duration,
    pub per_hour: u64,
    pub at_once: usize,
    pub money: Option<Money>,
    /// Asks and records, and pays nothing.
    pub shadow: bool,
    /// The operator's instructions, for everybody's calls.
    pub allow: Vec<String>,
    pub block: Vec<String>,
}

impl Settings {
    /// With bounds that fit a person's own machine.
    #[must_use]
    pub fn new(kind: Kind, model: impl Into<String>) -> Self {
        Self {
            kind,
            model: model.into(),
            plain_http: false,
            patience: Duration::from_secs(5),
            per_hour: 600,
            at_once: 8,
            money: None,
            shadow: false,
            allow: Vec::new(),
            block: Vec::new(),
        }
    }

    /// # Errors
    /// What is written cannot be used.
    pub fn check(&self) -> Result<(), Unusable> {
        if self.model.is_empty() || self.model.len() > LONGEST_MODEL {
            return Err(Unusable::NoModel);
        }
        self.place().map(drop)
    }

    /// Where it posts to; none for a program.
    ///
    /// # Errors
    /// What is written cannot be used.
    pub(crate) fn place(&self) -> Result<Option<Place>, Unusable> {
        let (base, path, headers) = match &self.kind {
            Kind::OpenAi { url, key } => {
                let bearer = |key: &Secret| Secret::new(format!("Bearer {}", key.reveal_to_upstream()));
                let headers = key.iter().map(|key| ("authorization".to_owned(), bearer(key)));
                (url.as_deref().unwrap_or(OPENAI), "chat/completions", headers.collect::<Vec<_>>())
            }
            Kind::Anthropic { url, key } => {
                let mut headers = vec![("anthropic-version".to_owned(), Secret::new(ANTHROPIC_VERSION.to_owned()))];
                headers.extend(key.iter().map(|key| ("x-api-key".to_owned(), key.clone())));
                (url.as_deref().unwrap_or(ANTHROPIC), "v1/messages", headers)
            }
            Kind::Command { command, .. } => return checked(command).map(|()| None),
        };
        let headers = headers.iter().map(|(name, value)| (name, value));
        let place = Place::new(&format!("{}/{path}", base.trim_end_matches('/')), headers)?;
        if !place.is_secure() && !place.is_loopback() && !self.plain_http {
            return Err(Unusable::Plain(place.name()));
        }
        Ok(Some(place))
    }
}

/// A path that depends on where the gateway was started could come with a workspace.
fn checked(command: &[String]) -> Result<(), Unusable> {
    match command.first() {
        None => Err(Unusable::NoCommand),
        Some(program) if program.is_empty() => Err(Unusable::NoCommand),
        Some(program) if program.contains('/') && !program.starts_with('/') => Err(Unusable::RelativeCommand),
        Some(_) => Ok(()),
    }
}

/// Why a classifier cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error(transparent)]
    Address(#[from] NetError),
    #[error("{0} is reached without TLS, so that others could answer for it; use https, or set `plain_http = true`")]
    Plain(String),
    #[error("`command` names no program")]
    NoCommand,
    #[error("`command` must be a whole path, or a name that is on PATH")]
    RelativeCommand,
    #[error("`model` is missing, or too long")]
    NoModel,
}
