//! The Keychain of macOS: one generic password of the login keychain.
//!
//! Asked on a thread, because macOS may show a question and wait for a person; after three seconds
//! nobody waits for the thread any more. An entry that is there is never replaced.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use security_framework::os::macos::keychain::SecKeychain;
use security_framework::passwords::{PasswordOptions, generic_password};
use zeroize::Zeroizing;

use super::{Candidates, OsKeyringError};
use crate::backend::Backend;
use crate::key_text::{self, KeyBytes};
use crate::source::Supplies;

const LIMIT: Duration = Duration::from_secs(3);

const SERVICE: &str = "toolwarden";
const ACCOUNT: &str = "master key";

/// What macOS says of an entry that is not there or there already, where nobody may be asked, and where a
/// person said no.
const NOT_FOUND: i32 = -25300;
const THERE_ALREADY: i32 = -25299;
const MAY_NOT_ASK: i32 = -25308;
const CANCELLED: i32 = -128;

pub(super) fn read_or_create(_: &dyn Supplies, new: Option<&KeyBytes>) -> Result<Candidates, OsKeyringError> {
    let (told, answer) = mpsc::channel();
    let new = new.cloned();
    thread::spawn(move || told.send(ask(new.as_ref())));
    let keys = answer.recv_timeout(LIMIT).unwrap_or(Err(OsKeyringError::NoAnswer { seconds: LIMIT.as_secs() }))?;
    Ok(Candidates { keys, backend: Backend::KeychainAccess })
}

fn ask(new: Option<&KeyBytes>) -> Result<Vec<KeyBytes>, OsKeyringError> {
    let found = read()?;
    let (None, Some(new)) = (&found, new) else { return Ok(found.into_iter().collect()) };
    let keychain = SecKeychain::default().map_err(in_words)?;
    match keychain.add_generic_password(SERVICE, ACCOUNT, &key_text::write(new)) {
        Err(error) if error.code() != THERE_ALREADY => return Err(in_words(error)),
        // Read back, because another process may have been first: its key is the key then.
        _ => {}
    }
    Ok(read()?.into_iter().collect())
}

fn read() -> Result<Option<KeyBytes>, OsKeyringError> {
    match generic_password(PasswordOptions::new_generic_password(SERVICE, ACCOUNT)) {
        Ok(text) => key_text::read(&Zeroizing::new(text)).map(Some).ok_or(OsKeyringError::Malformed),
        Err(error) if error.code() == NOT_FOUND => Ok(None),
        Err(error) => Err(in_words(error)),
    }
}

fn in_words(error: security_framework::base::Error) -> OsKeyringError {
    match error.code() {
        MAY_NOT_ASK => OsKeyringError::Locked,
        CANCELLED => OsKeyringError::Refused { why: "the question was answered with no".to_owned() },
        _ => OsKeyringError::Refused { why: error.to_string() },
    }
}
