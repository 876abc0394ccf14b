//! For tests of this room: a process that supplies what it is told to, and masters of every kind.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use toolwarden_core::Secret;

use crate::source::{Asking, KeySource, Supplies};
use crate::{Backend, Master};

pub(crate) type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A process with a directory, some variables, and perhaps a person who types.
pub(crate) struct Process {
    root: tempfile::TempDir,
    directory: PathBuf,
    variables: HashMap<String, String>,
    typed: Option<String>,
    pub(crate) asked: AtomicUsize,
}

impl Process {
    pub(crate) fn new() -> Outcome<Self> {
        let root = tempfile::tempdir()?;
        let directory = root.path().join("config");
        Ok(Self { root, directory, variables: HashMap::new(), typed: None, asked: AtomicUsize::new(0) })
    }

    pub(crate) fn with_variable(mut self, name: &str, text: &str) -> Self {
        self.variables.insert(name.to_owned(), text.to_owned());
        self
    }

    pub(crate) fn typing(mut self, text: &str) -> Self {
        self.typed = Some(text.to_owned());
        self
    }

    /// A place beside the configuration's directory.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }
}

impl Supplies for Process {
    fn variable(&self, name: &str) -> Option<Secret> {
        self.variables.get(name).map(|text| Secret::new(text.clone()))
    }

    fn passphrase(&self, _: Asking) -> Result<Secret, String> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.typed.clone().map(Secret::new).ok_or_else(|| "nobody is here".to_owned())
    }

    fn directory(&self) -> &Path {
        &self.directory
    }
}

/// A master that no other test has.
pub(crate) fn master() -> Outcome<Master> {
    Ok(KeySource::Memory.obtain(&Process::new()?, &[])?)
}

/// A master of known bytes, for looking for these bytes.
pub(crate) fn known_master(backend: Backend) -> Outcome<Master> {
    Ok(Master::new(zeroize::Zeroizing::new(KNOWN), backend)?)
}

/// No two bytes alike, so that any four of them in a row are found only where they leaked.
pub(crate) const KNOWN: [u8; 32] = {
    let mut bytes = [0; 32];
    let mut value: u8 = 0x3b;
    let mut rest: &mut [u8] = &mut bytes;
    while let Some((first, later)) = rest.split_first_mut() {
        *first = value;
        value = value.wrapping_mul(5).wrapping_add(0x6d);
        rest = later;
    }
    bytes
};

/// Whether a text holds four bytes in a row of a key, as hexadecimal digits, numbers of a list, or base64.
pub(crate) fn tells_of(text: &str, key: &[u8]) -> bool {
    use base64::Engine;
    let spaceless: String = text.chars().filter(|character| !character.is_whitespace()).collect();
    let low = spaceless.to_lowercase();
    let in_parts = key.windows(4).any(|part| {
        let digits: String = part.iter().map(|byte| format!("{byte:02x}")).collect();
        let numbers = part.iter().map(u8::to_string).collect::<Vec<_>>().join(",");
        low.contains(&digits) || low.contains(&numbers)
    });
    let as_base64 = (0..3).any(|from| {
        let part = key.get(from..from + 12).unwrap_or_default();
        spaceless.contains(base64::engine::general_purpose::STANDARD_NO_PAD.encode(part).as_str())
    });
    in_parts || as_base64
}
