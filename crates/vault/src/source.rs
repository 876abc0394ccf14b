//! Where the master key comes from: a word of the configuration, and how to get the key.
//!
//! Reads no environment and no terminal itself: what a process has to give comes through `Supplies`. Where
//! keys are stored already, nothing is ever made beside them: a missing key is an error, not a new key.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use toolwarden_core::{KeyringError, Secret};

use crate::backend::Backend;
use crate::key_file::{self, KEY_FILE, KeyFileError};
use crate::key_text::{self, KeyBytes};
use crate::master::Master;
use crate::passphrase::Stretching;
use crate::ring::{RingError, fresh_root};
use crate::stored_key::{SealedBy, StoredKey};

mod os_keyring;

pub use os_keyring::OsKeyringError;

/// Not secret, and meant to be seen: whoever reads this can read what it seals.
const PUBLISHED: &[u8; 32] = b"toolwarden: plaintext, no secret";

/// The word of each source, as a configuration says it.
const WORDS: [&str; 7] = ["auto", "keyring", "file:PATH", "env:NAME", "passphrase", "memory", "plaintext"];

/// Where the master key comes from.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum KeySource {
    /// What sealed the stored keys; else the key file where there is one; else the keyring if it answers; else
    /// a new key file.
    #[default]
    Auto,
    /// The keyring of the operating system.
    Keyring,
    /// A key file; a relative path starts in the configuration's directory.
    File(PathBuf),
    /// A variable of the environment.
    Environment(String),
    /// What a person types.
    Passphrase,
    /// A key of this process only.
    Memory,
    /// No secret at all.
    Plaintext,
}

/// Why a text names no source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no source of a key{hint}; allowed are {}", WORDS.join(", "))]
pub struct SourceTextError {
    text: String,
    hint: String,
}

/// Why a passphrase is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asking {
    /// It becomes the key: better asked for twice.
    New,
    /// It has to be the one that was chosen.
    Known,
}

/// What only the process itself can give.
pub trait Supplies {
    /// A variable of the environment.
    fn variable(&self, name: &str) -> Option<Secret>;

    /// The passphrase, from a terminal or wherever the process has one.
    ///
    /// # Errors
    /// There is nobody to ask, or nobody answers; in words for people.
    fn passphrase(&self, asking: Asking) -> Result<Secret, String>;

    /// The configuration's directory, where the key file is unless its place is configured.
    fn directory(&self) -> &Path;
}

/// Why there is no master key. Says nothing of a key.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error(transparent)]
    File(#[from] KeyFileError),
    #[error(transparent)]
    Keyring(#[from] OsKeyringError),
    #[error(transparent)]
    Stored(#[from] RingError),
    #[error(
        "the variable `{name}` is not set; it must hold the master key: 64 hexadecimal digits, or base64 of 32 bytes"
    )]
    NoVariable { name: String },
    #[error(
        "the variable `{name}` holds no key: 64 hexadecimal digits or base64 of 32 bytes, not all zero, are wanted"
    )]
    MalformedVariable { name: String },
    #[error("there is no passphrase: {why}")]
    NoPassphrase { why: String },
    #[error("an empty passphrase protects nothing; choose another one")]
    EmptyPassphrase,
    #[error("the passphrase cannot be stretched: too little memory")]
    NoMemory,
    #[error(
        "there is no key in {place}, and the stored keys are sealed by `{}`; {}; no new key was made",
        wanted.short(), wanted.backend.how_to_give_back()
    )]
    Missing { place: String, wanted: SealedBy },
    #[error(
        "the stored keys are sealed by `{}`, which `auto` does not choose by itself; {}",
        wanted.short(), wanted.backend.how_to_give_back()
    )]
    NotByItself { wanted: SealedBy },
    #[error(
        "the master key is kept in {place}, where this program does not replace it: put another one there, or move the \
         key to a file (`[vault] key = \"file:PATH\"`)"
    )]
    NotRenewable { place: &'static str },
    #[error("the operating system gives no random bytes, or the key cannot be used")]
    Unusable,
}

impl From<KeyringError> for SourceError {
    fn from(_: KeyringError) -> Self {
        Self::Unusable
    }
}

impl KeySource {
    /// Gets the master key; `stored` are the keys it has to open, none on a fresh store or for a new master.
    ///
    /// Blocks: for up to three seconds where a keyring does not answer, about a second where a
    /// passphrase is stretched, and as long as a person takes to type one. An async program calls it before
    /// it serves, or on a thread for such work.
    ///
    /// # Errors
    /// The source has no key, refuses it, or what it has is no key.
    pub fn obtain(&self, supplies: &dyn Supplies, stored: &[StoredKey]) -> Result<Master, SourceError> {
        let wanted = stored.iter().max_by_key(|key| key.id).map(StoredKey::sealed_by).transpose()?;
        let wanted = wanted.as_ref();
        match self {
            Self::Auto => automatic(supplies, stored, wanted),
            Self::Keyring => from_keyring(supplies, wanted),
            Self::File(path) => from_file(&supplies.directory().join(path), wanted),
            Self::Environment(name) => from_variable(supplies, name),
            Self::Passphrase => from_passphrase(supplies, wanted),
            Self::Memory => match wanted {
                Some(wanted) => Err(missing("this process", wanted)),
                None => Ok(Master::new(fresh_root()?, Backend::Memory)?),
            },
            Self::Plaintext => Ok(Master::new(KeyBytes::new(*PUBLISHED), Backend::BasicText)?),
        }
    }
}

impl KeySource {
    /// A new master key in the place of `current`, kept beside it. It is in use once `follow` was called, which is after
    /// every root is sealed by it; found again where that was interrupted.
    ///
    /// # Errors
    /// The key is not kept in a file, or no other one can be made there.
    pub fn renewed(&self, supplies: &dyn Supplies, current: &Master) -> Result<Master, SourceError> {
        let next = key_file::next_of(&self.file(supplies, current)?);
        Ok(Master::new(key_file::read_or_create(&next)?, Backend::File)?)
    }

    /// Uses the key of `renewed` from now on; `former` is the one before.
    ///
    /// # Errors
    /// The files cannot be changed.
    pub fn follow(&self, supplies: &dyn Supplies, former: &Master) -> Result<(), SourceError> {
        Ok(key_file::follow(&self.file(supplies, former)?, former.mark())?)
    }

    fn file(&self, supplies: &dyn Supplies, current: &Master) -> Result<PathBuf, SourceError> {
        match (self, current.backend()) {
            (Self::File(path), _) => Ok(supplies.directory().join(path)),
            (Self::Auto, Backend::File) => Ok(supplies.directory().join(KEY_FILE)),
            (Self::Environment(_), _) => Err(SourceError::NotRenewable { place: "a variable" }),
            (Self::Passphrase, _) | (_, Backend::Passphrase) => {
                Err(SourceError::NotRenewable { place: "somebody's memory" })
            }
            (Self::Plaintext, _) => Err(SourceError::NotRenewable { place: "this program" }),
            _ => Err(SourceError::NotRenewable { place: "the keyring" }),
        }
    }
}

fn automatic(supplies: &dyn Supplies, stored: &[StoredKey], wanted: Option<&SealedBy>) -> Result<Master, SourceError> {
    let file = KeySource::File(PathBuf::from(KEY_FILE));
    let source = match wanted {
        Some(wanted) if wanted.backend.is_keyring() => KeySource::Keyring,
        Some(SealedBy { backend: Backend::File, .. }) => file,
        Some(SealedBy { backend: Backend::Passphrase, .. }) => KeySource::Passphrase,
        // The name of a variable is not stored, a process' memory is gone, and nobody slips into plaintext.
        Some(wanted) => return Err(SourceError::NotByItself { wanted: wanted.clone() }),
        // What former versions signed and marked hangs on the file they made.
        None if supplies.directory().join(KEY_FILE).symlink_metadata().is_ok() => file,
        None => match from_keyring(supplies, None) {
            Err(SourceError::Keyring(error)) if error.is_absence() => file,
            answer => return answer,
        },
    };
    source.obtain(supplies, stored)
}

fn from_keyring(supplies: &dyn Supplies, wanted: Option<&SealedBy>) -> Result<Master, SourceError> {
    let new = if wanted.is_none() { Some(fresh_root()?) } else { None };
    let candidates = os_keyring::read_or_create(supplies, new.as_ref())?;
    let mut masters = candidates.keys.into_iter().map(|key| Master::new(key, candidates.backend));
    let Some(wanted) = wanted else { return Ok(masters.next().ok_or(SourceError::Unusable)??) };
    let mut first = None;
    for master in masters {
        let master = master?;
        // Several programs may have made a key at once; the one that sealed is the one that counts.
        if master.mark() == wanted.mark {
            return Ok(master);
        }
        first.get_or_insert(master);
    }
    // A key that did not seal them is given all the same: opening says which is which.
    first.ok_or_else(|| missing("the keyring", wanted))
}

fn from_file(path: &Path, wanted: Option<&SealedBy>) -> Result<Master, SourceError> {
    let Some(wanted) = wanted else {
        return Ok(Master::new(key_file::read_or_create(path)?, Backend::File)?);
    };
    let place = || toolwarden_core::name::shown(&path.to_string_lossy()).into_owned();
    let found = key_file::read(path)?.map(|key| Master::new(key, Backend::File)).transpose()?;
    if let Some(found) = found.filter(|found| found.mark() == wanted.mark) {
        return Ok(found);
    }
    // A new key sealed the rows, and whoever did that ended before it was in its place.
    let next = key_file::read(&key_file::next_of(path))?.map(|key| Master::new(key, Backend::File)).transpose()?;
    if let Some(next) = next.filter(|next| next.mark() == wanted.mark) {
        let former = key_file::read(path)?.map(|key| Master::new(key, Backend::File)).transpose()?;
        key_file::follow(path, former.as_ref().map_or("former", Master::mark))?;
        return Ok(next);
    }
    // One that did not seal them is given all the same: opening says which is which.
    let key = key_file::read(path)?.ok_or_else(|| missing(&place(), wanted))?;
    Ok(Master::new(key, Backend::File)?)
}

fn from_variable(supplies: &dyn Supplies, name: &str) -> Result<Master, SourceError> {
    let text = supplies.variable(name).ok_or_else(|| SourceError::NoVariable { name: name.to_owned() })?;
    let key = key_text::read_bare(text.reveal_to_upstream());
    let key = key.ok_or_else(|| SourceError::MalformedVariable { name: name.to_owned() })?;
    Ok(Master::new(key, Backend::Environment)?)
}

fn from_passphrase(supplies: &dyn Supplies, wanted: Option<&SealedBy>) -> Result<Master, SourceError> {
    let stretching = match wanted.map(|wanted| wanted.stretching.clone().ok_or(wanted)) {
        Some(Ok(stretching)) => Some(stretching),
        // Not worth asking: no passphrase can be what sealed them.
        Some(Err(wanted)) => return Err(missing("a passphrase", wanted)),
        None => None,
    };
    let asking = if stretching.is_some() { Asking::Known } else { Asking::New };
    let stretching = match stretching {
        Some(stretching) => stretching,
        None => Stretching::fresh().map_err(|_| SourceError::Unusable)?,
    };
    let passphrase = supplies.passphrase(asking).map_err(|why| SourceError::NoPassphrase { why })?;
    if passphrase.reveal_to_upstream().is_empty() {
        return Err(SourceError::EmptyPassphrase);
    }
    let key = stretching.stretch(passphrase.reveal_to_upstream()).ok_or(SourceError::NoMemory)?;
    Ok(Master::new(key, Backend::Passphrase)?.with_stretching(stretching))
}

fn missing(place: &str, wanted: &SealedBy) -> SourceError {
    SourceError::Missing { place: place.to_owned(), wanted: wanted.clone() }
}

impl FromStr for KeySource {
    type Err = SourceTextError;

    fn from_str(text: &str) -> Result<Self, SourceTextError> {
        let error = |hint: &str| {
            // A key that was put here by mistake must not go into a message.
            let text = if text.len() > 40 { "(a long text)".into() } else { toolwarden_core::name::shown(text) };
            Err(SourceTextError { text: text.into_owned(), hint: hint.to_owned() })
        };
        let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        match (word, rest) {
            ("auto", None) => Ok(Self::Auto),
            ("keyring", None) => Ok(Self::Keyring),
            ("passphrase", None) => Ok(Self::Passphrase),
            ("memory", None) => Ok(Self::Memory),
            ("plaintext", None) => Ok(Self::Plaintext),
            ("file", None | Some("")) => error(": it needs a path"),
            ("file", Some(path)) => Ok(Self::File(PathBuf::from(path))),
            ("env", None | Some("")) => error(": it needs the name of a variable"),
            ("env", Some(name)) if is_variable(name) => Ok(Self::Environment(name.to_owned())),
            ("env", Some(_)) => error(": a variable has a name of letters, digits and `_`"),
            (word, _) => match nearest(word) {
                Some(near) => error(&format!(": did you mean `{near}`?")),
                None => error(""),
            },
        }
    }
}

fn is_variable(name: &str) -> bool {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let is_name = !name.starts_with(|first: char| first.is_ascii_digit()) && name.chars().all(is_part);
    // The key itself in the place of its variable's name would be shown wherever the name is.
    is_name && key_text::read_bare(name).is_none()
}

fn nearest(word: &str) -> Option<&'static str> {
    let distance = |known: &str| strsim::damerau_levenshtein(known.split(':').next().unwrap_or(known), word);
    WORDS.into_iter().min_by_key(|known| distance(known)).filter(|known| distance(known) <= 2)
}

impl fmt::Display for KeySource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => formatter.write_str("auto"),
            Self::Keyring => formatter.write_str("keyring"),
            Self::File(path) => write!(formatter, "file:{}", path.display()),
            Self::Environment(name) => write!(formatter, "env:{name}"),
            Self::Passphrase => formatter.write_str("passphrase"),
            Self::Memory => formatter.write_str("memory"),
            Self::Plaintext => formatter.write_str("plaintext"),
        }
    }
}

#[cfg(test)]
#[path = "source_tests.rs"]
mod tests;
