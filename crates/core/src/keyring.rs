//! Keys behind one trait: sealing, marking and signing, without anybody seeing a key.
//!
//! Implemented in `vault`, injected by the porch. Every use names its purpose, and each purpose has
//! a key of its own, so that a value made for one can never be taken for another.

/// What a key is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Ids of legacy client sessions.
    Session,
    /// `requestState` of a modern exchange.
    RequestState,
    /// Cursors of aggregated lists.
    Cursor,
    /// The digest of arguments in the journal: keyed, so that guesses cannot be tried against it.
    ArgumentDigest,
    /// Checkpoints of the journal.
    Checkpoint,
    /// Values of the environment that servers are started with, in what is pinned of them.
    Launch,
    /// Rows of the store.
    Record,
    /// Tokens of callers and of upstream servers.
    Token,
    /// What tells a held call from every other.
    Approval,
    /// Links to the page of a held call, and who is logged in there.
    Link,
}

/// How long values of a purpose count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Life {
    /// Kept for years: every root there was opens and verifies them.
    Lasting,
    /// Given out for minutes or hours and brought back: only the root in use opens them, and for a short while the one
    /// that it replaced (SELF-7).
    Passing,
}

impl Purpose {
    pub const ALL: [Self; 10] = [
        Self::Session,
        Self::RequestState,
        Self::Cursor,
        Self::ArgumentDigest,
        Self::Checkpoint,
        Self::Launch,
        Self::Record,
        Self::Token,
        Self::Approval,
        Self::Link,
    ];

    /// How long its values count. A new purpose does not compile before it is said here.
    #[must_use]
    pub fn life(self) -> Life {
        match self {
            Self::Session | Self::RequestState | Self::Cursor | Self::Link => Life::Passing,
            Self::ArgumentDigest | Self::Checkpoint | Self::Launch | Self::Record | Self::Token | Self::Approval => {
                Life::Lasting
            }
        }
    }

    /// The stable name that goes into key derivation.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::RequestState => "request_state",
            Self::Cursor => "cursor",
            Self::ArgumentDigest => "argument_digest",
            Self::Checkpoint => "checkpoint",
            Self::Launch => "launch",
            Self::Record => "record",
            Self::Token => "token",
            Self::Approval => "approval",
            Self::Link => "link",
        }
    }
}

/// Why a key operation failed. Says nothing of the value or the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    #[error("the value was not made by this key, or was changed")]
    NotAuthentic,
    #[error("the key cannot be used")]
    Unusable,
}

/// A signature and the public key that checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// Ed25519 public key, 32 bytes.
    pub public_key: [u8; 32],
    pub bytes: [u8; 64],
}

/// Keys that seal, mark and sign.
pub trait Keyring: Send + Sync + std::fmt::Debug {
    /// Encrypts and authenticates; `bound_to` must be given again to open.
    ///
    /// # Errors
    /// The key cannot be used.
    fn seal(&self, purpose: Purpose, bound_to: &[u8], plain: &[u8]) -> Result<Vec<u8>, KeyringError>;

    /// Opens what `seal` made. Values of passing purposes open only by the root in use, and for a short while by the one
    /// that it replaced.
    ///
    /// # Errors
    /// Another key, purpose or binding, or changed bytes.
    fn open(&self, purpose: Purpose, bound_to: &[u8], sealed: &[u8]) -> Result<Vec<u8>, KeyringError>;

    /// A keyed mark of some bytes (HMAC-SHA-256); of passing purposes, by the root in use.
    fn mark(&self, purpose: Purpose, bytes: &[u8]) -> [u8; 32];

    /// Signs with the key of a purpose (Ed25519).
    ///
    /// # Errors
    /// The key cannot be used.
    fn sign(&self, purpose: Purpose, bytes: &[u8]) -> Result<Signature, KeyringError>;

    /// Whether `signature` was made by a key of that purpose this keyring has or had.
    fn verifies(&self, purpose: Purpose, bytes: &[u8], signature: &Signature) -> bool;

    /// Bytes nobody can guess.
    ///
    /// # Errors
    /// The operating system gives none.
    fn random(&self, bytes: &mut [u8]) -> Result<(), KeyringError>;
}
