//! One reader for each kind of file, and the choice of reader by a file's name.
//!
//! Every reader takes a label and bytes, so that anything at all can be thrown at it.

pub mod admin;
pub mod catalog;
pub mod config;
pub mod known;
pub mod mcp_json;
mod mode;
pub mod permissions;
pub(crate) mod record;
pub mod roomodes;
pub mod server;

use std::path::Path;

use toolwarden_core::Layer;

use crate::files;
use crate::finding::{Finding, Severity};
use crate::tree::{LARGEST_FILE, decode};

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    Config,
    Permissions,
    Modes,
    Servers,
    Rules,
    Admin,
    Catalog,
    /// One of the data directory's records.
    Record,
}

impl SourceKind {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Permissions => "permissions",
            Self::Modes => "modes",
            Self::Servers => "servers",
            Self::Rules => "rules",
            Self::Admin => "admin",
            Self::Catalog => "catalog",
            Self::Record => "record",
        }
    }

    /// The kind a file's name tells; none where it tells nothing.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let ends = |ending: &str| name.ends_with(ending);
        match name {
            _ if ends("permissions.json") => Some(Self::Permissions),
            _ if ends("mcp.json") || ends("mcp_settings.json") => Some(Self::Servers),
            _ if ends(".roomodes") || ends("modes.yaml") || ends("modes.yml") || ends("modes.json") => {
                Some(Self::Modes)
            }
            _ if ends("admin.json") || ends("admin.jsonc") || ends("admin.toml") => Some(Self::Admin),
            _ if ends(".toml") => Some(Self::Config),
            _ if ends(".cedar") => Some(Self::Rules),
            _ if ends("tools.json") || ends("catalog.json") => Some(Self::Catalog),
            _ => None,
        }
    }
}

/// What one file alone has to say for itself, for `lint FILE`.
#[must_use]
pub fn check_file(path: &Path) -> Vec<Finding> {
    let label = files::shown(path);
    let Some(kind) = SourceKind::of(path) else {
        let message = "the name of this file tells no kind that can be checked";
        return vec![Finding::whole(Severity::Error, "unknown_kind", &label, message)];
    };
    match files::read(path, LARGEST_FILE) {
        Ok(Some(bytes)) => check_bytes(&label, kind, &bytes),
        Ok(None) => vec![Finding::whole(Severity::Error, "missing", &label, "no such file")],
        Err(error) => vec![Finding::whole(Severity::Error, "unreadable", &label, error.to_string())],
    }
}

/// The findings of bytes read as a kind of file.
#[must_use]
pub fn check_bytes(label: &str, kind: SourceKind, bytes: &[u8]) -> Vec<Finding> {
    match kind {
        SourceKind::Config => config::read_bytes(label, config::Standing::Operator, bytes).findings,
        SourceKind::Permissions => permissions::read_bytes(label, Layer::UserFile, bytes).findings,
        SourceKind::Modes => roomodes::read_bytes(label, Layer::WorkspaceFile, bytes).findings,
        SourceKind::Servers => mcp_json::read_bytes(label, bytes).findings,
        SourceKind::Admin => admin::read_bytes(label, bytes).findings,
        SourceKind::Catalog => catalog::read_bytes(label, bytes).findings,
        SourceKind::Rules | SourceKind::Record => match decode(bytes) {
            Ok(_) => Vec::new(),
            Err(error) => vec![Finding::at(Severity::Error, error.code, label.into(), error.place, error.message)],
        },
    }
}
