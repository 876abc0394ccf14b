//! Where a piece of policy came from: layer, file, line, column. Shown with every decision.

use std::fmt;
use std::sync::Arc;

/// Who stands behind a piece of policy, from the strongest word to the weakest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// The admin record.
    Admin,
    /// The user's own config, or one named with `--config`.
    Config,
    /// `~/.cursor/permissions.json` and other files of the person's home.
    UserFile,
    /// A file that came with a workspace.
    WorkspaceFile,
    /// A list stored by `allow`, the console or an "always" answer; `alwaysAllow` where opted in.
    Settings,
    /// What Toolwarden ships.
    Shipped,
}

impl Layer {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Admin => "admin",
            Self::Config => "config",
            Self::UserFile => "user file",
            Self::WorkspaceFile => "workspace file",
            Self::Settings => "settings",
            Self::Shipped => "shipped",
        }
    }
}

/// A place in a file or record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    pub layer: Layer,
    pub source: Arc<str>,
    /// From 1; 0 where the source has no lines (a record).
    pub line: u32,
    /// From 1; 0 where unknown.
    pub column: u32,
}

impl Origin {
    #[must_use]
    pub fn new(layer: Layer, source: impl Into<Arc<str>>, line: u32, column: u32) -> Self {
        Self { layer, source: source.into(), line, column }
    }

    /// A place without lines: a stored record, or something shipped.
    #[must_use]
    pub fn record(layer: Layer, source: impl Into<Arc<str>>) -> Self {
        Self::new(layer, source, 0, 0)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.source)?;
        if self.line > 0 {
            write!(formatter, ":{}", self.line)?;
        }
        Ok(())
    }
}

/// A value and the place it was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Sourced<T> {
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}
