//! Tokens of agents and of persons' clients: what they look like, and what they are good for (GATE-3).
//!
//! A token is `tw_ID_SECRET`: the id may be seen, the secret is 256 random bits of which only a digest is kept.

use std::fmt;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Digest, Secret};

const PREFIX: &str = "tw_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 32;
/// Without letters that are taken for one another, and without capitals, which people mistype.
const LETTERS: [char; 32] = [
    '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'j', 'k', 'm', 'n', 'p',
    'q', 'r', 's', 't', 'v', 'w', 'x', 'y', 'z',
];

/// How many random bytes a new token is made of.
pub const TOKEN_BYTES: usize = ID_BYTES + SECRET_BYTES;

/// Who bears a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bearer {
    Agent,
    /// A client that a person uses.
    Person,
}

/// What a token is good for. Fixed when it is issued: nothing in a request widens it (GATE-4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claims {
    pub bearer: Bearer,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_tools: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rights: Vec<String>,
    /// Answers that the client gives for its person count (REVIEW-6).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub may_answer: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_calls: Option<u64>,
    /// The tokens it was issued or rotated with; empty for tokens issued at the machine itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<String>,
}

impl Claims {
    /// A token that says no more than who bears it.
    #[must_use]
    pub fn of(bearer: Bearer) -> Self {
        Self {
            bearer,
            role: None,
            user: None,
            groups: Vec::new(),
            task: None,
            project: None,
            run: None,
            job: None,
            session: None,
            modes: Vec::new(),
            task_tools: Vec::new(),
            workspace: None,
            rights: Vec::new(),
            may_answer: false,
            expires_at: None,
            max_calls: None,
            ancestors: Vec::new(),
        }
    }
}

/// A new token, as it is shown once.
#[derive(Debug)]
pub struct NewToken {
    pub id: String,
    pub text: Secret,
    pub digest: Digest,
}

impl NewToken {
    /// A token of random bytes.
    #[must_use]
    pub fn of_random(bytes: &[u8; TOKEN_BYTES]) -> Self {
        let (id, secret) = bytes.split_at(ID_BYTES);
        let (id, secret) = (letters(id), letters(secret));
        Self { digest: digest(&secret), text: Secret::new(format!("{PREFIX}{id}_{secret}")), id }
    }

    /// The same secret under the id of a token that exists already.
    #[must_use]
    pub fn with_id(self, id: &str) -> Self {
        let secret = self.text.reveal_to_upstream().rsplit('_').next().unwrap_or_default();
        Self { text: Secret::new(format!("{PREFIX}{id}_{secret}")), id: id.to_owned(), digest: self.digest }
    }
}

/// A token somebody shows.
pub struct ShownToken<'a> {
    pub id: &'a str,
    secret: &'a str,
}

impl fmt::Debug for ShownToken<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ShownToken").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<'a> ShownToken<'a> {
    /// Takes a text apart; none where it is no token of ours.
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_of = |text: &str, bytes: usize| {
            text.len() == (bytes * 8).div_ceil(5) && text.chars().all(|letter| LETTERS.contains(&letter))
        };
        (is_of(id, ID_BYTES) && is_of(secret, SECRET_BYTES)).then_some(Self { id, secret })
    }

    /// The digest that tells whether it is the one that was issued.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest(self.secret)
    }
}

/// A plain digest is enough: nobody guesses 256 random bits.
fn digest(secret: &str) -> Digest {
    Digest::of_bytes(secret.as_bytes())
}

/// Bytes as letters that people can read and type, five bits each; the last one is filled up with zeros.
#[must_use]
pub fn letters(bytes: &[u8]) -> String {
    let bit = |place: usize| bytes.get(place / 8).is_some_and(|byte| byte >> (7 - place % 8) & 1 == 1);
    let letter = |number: usize| {
        let value = (0..5).fold(0, |value, place| value << 1 | usize::from(bit(number * 5 + place)));
        LETTERS.get(value).copied().unwrap_or_default()
    };
    (0..(bytes.len() * 8).div_ceil(5)).map(letter).collect()
}

#[cfg(test)]
#[path = "token_tests.rs"]
mod tests;
