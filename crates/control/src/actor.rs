//! Who asks for an operation, and how they got here.

/// Where an actor stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The owner of the data directory, or root, at the control socket.
    ControlSocket,
    /// The command line itself, where no server runs.
    CommandLine,
}

/// Who asks. Both kinds own the data directory, so both may do everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub user: String,
    pub via: Via,
}

impl Actor {
    /// The door written in the record.
    #[must_use]
    pub fn door(&self) -> &'static str {
        match self.via {
            Via::ControlSocket => "control",
            Via::CommandLine => "cli",
        }
    }
}
