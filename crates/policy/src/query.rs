//! One question to the judge: who, what, where, when, and what is known around it.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::{Call, Caller, Door};

use crate::shell::FileFacts;

/// What is known of the tool's definition (GATE-12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Definition {
    /// As accepted, or not pinned.
    #[default]
    Accepted,
    Changed,
    /// What starts its server, or the server's instructions, changed.
    ServerChanged,
    /// First seen after its server's baseline.
    New,
}

/// Who would carry the call out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Launcher {
    /// An upstream server, or the client itself.
    #[default]
    Elsewhere,
    /// Toolwarden starts the shell command, in the cage.
    Caged,
}

/// Whether every stage is to be reported, or only what decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tracing {
    #[default]
    Off,
    Full,
}

/// A question to the judge. Time comes in here: the judge has no clock.
#[derive(Debug, Clone)]
pub struct Query {
    pub caller: Arc<Caller>,
    pub call: Call,
    pub door: Door,
    pub time: Timestamp,
    pub definition: Definition,
    pub launcher: Launcher,
    /// Flow labels seen under this session anchor (GATE-20).
    pub seen: Arc<[String]>,
    /// The workspace bound at the door (PERM-4), for redirections and relative paths.
    pub workspace: Option<PathBuf>,
    pub tracing: Tracing,
    /// Where the paths of a command line really lead, looked up just before (SELF-1). Unless somebody looked, command
    /// lines are held.
    pub files: Arc<FileFacts>,
}

impl Query {
    #[must_use]
    pub fn new(caller: Arc<Caller>, call: Call, door: Door, time: Timestamp) -> Self {
        Self {
            caller,
            call,
            door,
            time,
            definition: Definition::default(),
            launcher: Launcher::default(),
            seen: Arc::from([]),
            workspace: None,
            tracing: Tracing::default(),
            files: Arc::default(),
        }
    }

    /// The same question with what the file system says of the paths it names.
    #[must_use]
    pub fn with_files(mut self, files: FileFacts) -> Self {
        self.files = Arc::new(files);
        self
    }

    /// The same question with every stage reported.
    #[must_use]
    pub fn traced(mut self) -> Self {
        self.tracing = Tracing::Full;
        self
    }
}
