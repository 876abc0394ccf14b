//! Where a master key is kept, as a stable word.
//!
//! The words go into rows of the store and into what people and scripts read; they are those other
//! desktop programs use for the same places, and none of them is ever renamed.

use std::fmt;

/// The place a master key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// An owner-only file.
    File,
    /// A variable of the environment.
    Environment,
    /// Stretched from what a person types.
    Passphrase,
    /// Made by this process, gone with it.
    Memory,
    /// A published constant: protects nothing.
    BasicText,
    /// The Secret Service of GNOME.
    GnomeLibsecret,
    /// The Secret Service of KDE 5.
    Kwallet5,
    /// The Secret Service of KDE 6.
    Kwallet6,
    /// A Secret Service that is neither of these.
    SecretService,
    /// The Keychain of macOS.
    KeychainAccess,
    /// The data protection of Windows.
    Dpapi,
}

impl Backend {
    pub const ALL: [Self; 11] = [
        Self::File,
        Self::Environment,
        Self::Passphrase,
        Self::Memory,
        Self::BasicText,
        Self::GnomeLibsecret,
        Self::Kwallet5,
        Self::Kwallet6,
        Self::SecretService,
        Self::KeychainAccess,
        Self::Dpapi,
    ];

    /// The stable word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Environment => "env",
            Self::Passphrase => "passphrase",
            Self::Memory => "memory",
            Self::BasicText => "basic_text",
            Self::GnomeLibsecret => "gnome_libsecret",
            Self::Kwallet5 => "kwallet5",
            Self::Kwallet6 => "kwallet6",
            Self::SecretService => "secret_service",
            Self::KeychainAccess => "keychain_access",
            Self::Dpapi => "dpapi",
        }
    }

    /// The backend of a stable word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|backend| backend.as_str() == word)
    }

    /// Whether what is sealed is kept from somebody who has the data. Callers warn where it is not.
    #[must_use]
    pub fn is_protected(self) -> bool {
        self != Self::BasicText
    }

    /// Whether it is a keyring of the operating system.
    #[must_use]
    pub fn is_keyring(self) -> bool {
        match self {
            Self::GnomeLibsecret
            | Self::Kwallet5
            | Self::Kwallet6
            | Self::SecretService
            | Self::KeychainAccess
            | Self::Dpapi => true,
            Self::File | Self::Environment | Self::Passphrase | Self::Memory | Self::BasicText => false,
        }
    }

    /// What a person does to give back the key that sealed something.
    pub(crate) fn how_to_give_back(self) -> &'static str {
        match self {
            Self::File => "put that key file back from a backup, or name its place as `file:PATH`",
            Self::Environment => "name its variable as `env:NAME`, and give it the value it had",
            Self::Passphrase => "choose `passphrase`, and type the one that was used",
            Self::Memory => "it is gone with the process that made it, and so is what it sealed",
            Self::BasicText => "choose `plaintext`, or go back to the data of the other key",
            Self::GnomeLibsecret
            | Self::Kwallet5
            | Self::Kwallet6
            | Self::SecretService
            | Self::KeychainAccess
            | Self::Dpapi => "choose `keyring`, as the user whose keyring holds it, and unlock that",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}
