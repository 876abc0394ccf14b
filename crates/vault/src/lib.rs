//! The safe: where the master key is kept, the roots it seals, and what these seal, mark and sign.
//!
//! `KeySource` gives a `Master`, which opens stored keys to a `Ring` for whoever holds the `Keyring` trait of
//! `core`. Refuses a key that others could read or replace, and never makes one beside keys that are stored;
//! no error, `Debug` or log line shows a key.

mod backend;
mod file_keyring;
mod key_file;
mod key_text;
#[cfg(test)]
mod kit;
mod master;
mod master_in_use;
mod passphrase;
mod purpose_keys;
mod randomness;
mod ring;
mod rotation;
mod sealed;
mod source;
mod stored_key;

pub use backend::Backend;
pub use file_keyring::FileKeyring;
pub use key_file::{KEY_FILE, KeyFileError};
pub use master::Master;
pub use master_in_use::MasterInUse;
pub use passphrase::Stretching;
pub use ring::{Ring, RingError};
pub use rotation::{Step, add_waiting, make_current, next_step, retire, rewrap};
pub use sealed::{head_of, root_of};
pub use source::{Asking, KeySource, OsKeyringError, SourceError, SourceTextError, Supplies};
pub use stored_key::{KeyState, SealedBy, StoredKey};
