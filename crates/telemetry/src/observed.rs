//! What is looked up when somebody asks, because it is known elsewhere already.

use toolwarden_core::Agreement;

use crate::process::ProcessObserved;

/// How the gateway is at one moment.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    pub sessions: usize,
    pub policy_version: u64,
    /// In the order they are configured.
    pub servers: Vec<ServerObserved>,
    pub journal: JournalObserved,
    /// How persons and a classifier agree, in the store this gateway uses.
    pub agreement: Agreement,
    pub process: ProcessObserved,
}

/// One server at one moment.
#[derive(Debug, Clone)]
pub struct ServerObserved {
    pub name: String,
    /// One of `STATES`.
    pub state: &'static str,
    /// Children, and lines of the oldest HTTP transport, that are open.
    pub lines: usize,
}

/// The states a server can be in.
pub(crate) const STATES: [&str; 4] = ["idle", "connected", "error", "disabled"];

/// The journal at one moment.
#[derive(Debug, Clone, Default)]
pub struct JournalObserved {
    pub written: u64,
    pub failed: u64,
    /// Records that are not in the index yet; none before the first delivery.
    pub behind: Option<u64>,
    /// Whether the last record could be written.
    pub is_writable: bool,
}
