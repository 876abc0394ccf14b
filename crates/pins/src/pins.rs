//! The record of a server: its definitions, and of each the versions that are accepted or wait.
//!
//! Whether something is news, how it stands and what becomes of it is said here; who saw it, and where
//! it is kept, is for the files beside this one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolwarden_core::json::Value;
use toolwarden_core::{Digest, Weakness, weak};

use crate::addition;

/// Versions of one definition that are kept as accepted, and as waiting.
const MOST_ACCEPTED: usize = 16;
const MOST_WAITING: usize = 8;
/// Definitions of one kind that are kept for a server.
pub(crate) const MOST_DEFINITIONS: usize = 5_000;
/// A definition larger than this is shown to nobody.
pub(crate) const LARGEST: usize = 256 * 1024;

/// What is pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What starts or reaches the server (MODE-7).
    Launch,
    Instructions,
    Tool,
    Prompt,
}

impl Kind {
    pub const ALL: [Self; 4] = [Self::Launch, Self::Instructions, Self::Tool, Self::Prompt];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launch => "launch",
            Self::Instructions => "instructions",
            Self::Tool => "tool",
            Self::Prompt => "prompt",
        }
    }

    /// How a person names a definition of this kind: no tool has a `/` in its name.
    #[must_use]
    pub fn address(self, name: &str) -> String {
        match self {
            Self::Launch => "server/launch".to_owned(),
            Self::Instructions => "server/instructions".to_owned(),
            Self::Tool => name.to_owned(),
            Self::Prompt => format!("prompts/{name}"),
        }
    }

    /// The kind and name behind what a person wrote.
    #[must_use]
    pub fn addressed(written: &str) -> (Self, &str) {
        match written {
            "server/launch" => (Self::Launch, ""),
            "server/instructions" => (Self::Instructions, ""),
            _ => match written.strip_prefix("prompts/") {
                Some(name) => (Self::Prompt, name),
                None => (Self::Tool, written),
            },
        }
    }
}

/// How a definition stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    Accepted,
    Changed,
    New,
}

/// Everything pinned of one server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerPins {
    pub server: String,
    pub launch: Section,
    pub instructions: Section,
    pub tools: Section,
    pub prompts: Section,
}

impl ServerPins {
    #[must_use]
    pub fn section(&self, kind: Kind) -> &Section {
        match kind {
            Kind::Launch => &self.launch,
            Kind::Instructions => &self.instructions,
            Kind::Tool => &self.tools,
            Kind::Prompt => &self.prompts,
        }
    }

    /// How many definitions wait for a person.
    #[must_use]
    pub fn waiting(&self) -> usize {
        let entries = Kind::ALL.into_iter().flat_map(|kind| self.section(kind).entries.values());
        entries.filter(|pin| !pin.waiting.is_empty()).count()
    }

    pub(crate) fn section_mut(&mut self, kind: Kind) -> &mut Section {
        match kind {
            Kind::Launch => &mut self.launch,
            Kind::Instructions => &mut self.instructions,
            Kind::Tool => &mut self.tools,
            Kind::Prompt => &mut self.prompts,
        }
    }
}

/// The definitions of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// When everything there was, was taken as it was. What appears later is new.
    pub baseline: Option<Timestamp>,
    /// Whether a whole list was noted, so that what has no offer is gone.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub looked_over: bool,
    pub entries: BTreeMap<String, Pin>,
}

/// One definition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pin {
    /// The last one is shown in place of what is not accepted.
    pub accepted: Vec<Version>,
    pub waiting: Vec<Version>,
    /// The digest of what the server offered when it was last looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered: Option<String>,
}

/// One version of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    pub digest: String,
    /// As the server wrote it.
    pub text: String,
    /// What is shown instead: an addition without its words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served: Option<String>,
    pub since: Timestamp,
    pub how: How,
}

/// How a version came to stand where it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    Baseline,
    /// An optional field more than the version before.
    Addition,
    /// The config says that changes of this server are followed.
    Followed,
    Accepted {
        by: String,
    },
    Waiting,
    /// Its text was not kept, so nobody can accept it.
    TooLarge,
}

impl Version {
    #[must_use]
    pub fn shown(&self) -> &str {
        self.served.as_deref().unwrap_or(&self.text)
    }
}

impl Pin {
    #[must_use]
    pub fn last_accepted(&self) -> Option<&Version> {
        self.accepted.last()
    }

    /// How it stands where nobody has seen an accepted version since.
    #[must_use]
    pub fn standing(&self) -> Standing {
        match (self.accepted.is_empty(), self.waiting.is_empty()) {
            (_, true) => Standing::Accepted,
            (true, false) => Standing::New,
            (false, false) => Standing::Changed,
        }
    }

    pub(crate) fn accepts(&self, digest: &str) -> Option<&Version> {
        self.accepted.iter().find(|version| version.digest == digest)
    }

    fn waits(&self, digest: &str) -> Option<&Version> {
        self.waiting.iter().find(|version| version.digest == digest)
    }

    fn add(&mut self, version: Version) {
        if self.accepted.len() >= MOST_ACCEPTED {
            self.accepted.remove(0);
        }
        self.accepted.push(version);
    }
}

/// What becomes of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// They wait for a person.
    Wait,
    /// They are taken over and recorded.
    Follow,
}

/// A definition as a server gave it just now.
#[derive(Debug, Clone)]
pub struct Given<'a> {
    pub name: String,
    pub value: Value<'a>,
    pub digest: String,
}

impl<'a> Given<'a> {
    #[must_use]
    pub fn new(name: String, value: Value<'a>) -> Self {
        Self { name, value, digest: Digest::of_json(value).to_string() }
    }
}

impl Section {
    /// Whether a definition says something that is not on record yet, or not as it should be.
    #[must_use]
    pub fn is_news(&self, given: &Given<'_>, changes: Changes) -> bool {
        let Some(pin) = self.entries.get(&given.name) else {
            return self.entries.len() < weak::limit(MOST_DEFINITIONS);
        };
        // What waited before changes were followed waits no longer.
        let follows = changes == Changes::Follow;
        let could_be_taken = |version: &Version| follows && version.how != How::TooLarge;
        match (pin.accepts(&given.digest), pin.waits(&given.digest)) {
            (Some(_), _) => pin.waiting.iter().any(could_be_taken),
            (None, Some(version)) => could_be_taken(version),
            (None, None) => pin.waiting.len() < MOST_WAITING || follows && given.value.raw().len() <= LARGEST,
        }
    }

    /// How a definition stands, and what is shown in its place.
    #[must_use]
    pub fn view<'a>(&'a self, given: &Given<'a>) -> (Standing, Option<&'a str>) {
        if weak::is(Weakness::Pins) {
            return (Standing::Accepted, Some(given.value.raw()));
        }
        let Some(pin) = self.entries.get(&given.name) else { return (Standing::New, None) };
        match (pin.accepts(&given.digest), pin.last_accepted()) {
            (Some(version), _) => {
                (Standing::Accepted, Some(version.served.as_deref().unwrap_or_else(|| given.value.raw())))
            }
            (None, Some(last)) => (Standing::Changed, Some(last.shown())),
            (None, None) => (Standing::New, None),
        }
    }

    /// Puts a definition on record; gives how, where it was news.
    pub fn record(&mut self, given: &Given<'_>, changes: Changes, now: Timestamp) -> Option<How> {
        let is_accepted = self.entries.get(&given.name).is_some_and(|pin| pin.accepts(&given.digest).is_some());
        if is_accepted || !self.is_news(given, changes) {
            return None;
        }
        let is_first = self.baseline.is_none();
        let text = given.value.raw();
        let too_large = text.len() > LARGEST;
        let pin = self.entries.entry(given.name.clone()).or_default();
        let addition = pin.last_accepted().filter(|_| !too_large).and_then(|last| addition::served(last, given.value));
        let is_unknown = pin.accepted.is_empty() && pin.waiting.is_empty();
        let how = match () {
            () if too_large => How::TooLarge,
            () if is_first && is_unknown => How::Baseline,
            () if changes == Changes::Follow => How::Followed,
            () if addition.is_some() => How::Addition,
            () => How::Waiting,
        };
        pin.offered = Some(given.digest.clone());
        let mut version = Version {
            digest: given.digest.clone(),
            text: if too_large { "null".to_owned() } else { text.to_owned() },
            served: None,
            since: now,
            how: how.clone(),
        };
        match how {
            How::Waiting | How::TooLarge => pin.waiting.push(version),
            How::Addition => {
                version.served = addition;
                pin.add(version);
            }
            How::Baseline | How::Followed | How::Accepted { .. } => {
                // Whoever follows has nothing waiting.
                pin.waiting.clear();
                pin.add(version);
            }
        }
        Some(how)
    }

    /// Forgets what waited of a definition that is back to an accepted version.
    pub(crate) fn take_back(&mut self, given: &Given<'_>) -> bool {
        let pin = self.entries.get_mut(&given.name).filter(|pin| pin.accepts(&given.digest).is_some());
        pin.is_some_and(|pin| !std::mem::take(&mut pin.waiting).is_empty())
    }

    /// Accepts a waiting version. What the server offers instead goes on waiting; versions that were offered before
    /// are put on record again when they are seen again.
    pub(crate) fn accept(&mut self, name: &str, digest: &str, by: &str, now: Timestamp) -> Result<(), NotAccepted> {
        let pin = self.entries.get_mut(name).ok_or(NotAccepted::Unknown)?;
        let found = pin.waits(digest).ok_or(NotAccepted::NothingWaits)?;
        if found.how == How::TooLarge {
            return Err(NotAccepted::TooLarge);
        }
        let version = Version { since: now, how: How::Accepted { by: by.to_owned() }, ..found.clone() };
        pin.waiting.retain(|other| other.digest != digest && pin.offered.as_ref() == Some(&other.digest));
        pin.add(version);
        Ok(())
    }
}

/// As much of a digest as people need to name a version. A server chooses what is digested: with fewer digits it
/// could prepare two definitions that share them, and put one in the place of the other once a person has looked.
#[must_use]
pub fn short(digest: &str) -> String {
    digest.chars().take(32).collect()
}

/// Why nothing was accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAccepted {
    #[error("nothing of that name was seen")]
    Unknown,
    #[error("nothing waits")]
    NothingWaits,
    #[error("no such version waits")]
    NoSuchVersion { waiting: Vec<String> },
    #[error("it is larger than 256 KiB, so it was not kept and cannot be accepted")]
    TooLarge,
    #[error("`{}` changed more than once: name the version to accept ({})", .0, .1.join(", "))]
    Several(String, Vec<String>),
    #[error("{count} definitions wait: look at them first")]
    Unseen { count: usize, digest: String },
    #[error("something else waits now than what was shown")]
    OtherWaits,
}

#[cfg(test)]
#[path = "pins_tests.rs"]
mod tests;
