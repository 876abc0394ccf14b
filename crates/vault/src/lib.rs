//! The safe: keys, and what they seal, mark and sign.
//!
//! Gives a `FileKeyring` to whoever holds the `Keyring` trait of `core`. Refuses key files that
//! others could read or replace; no error, `Debug` or log line shows a key.

mod file_keyring;
mod key_file;
mod purpose_keys;

pub use file_keyring::FileKeyring;
pub use key_file::{KEY_FILE, KeyFileError};
