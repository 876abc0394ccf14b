//! Every key a reader knows, and what becomes of it (SELF-6).
//!
//! Readers look at keys through this table only (`Report::keys`): a key that is not here is unknown, and a key that is
//! here is used, refused because its feature is not built, or listed as informational with the reason.

mod client;
mod config;
mod record;

use crate::tree::{Node, Value};

/// A table of keys in one kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Section {
    Config,
    Gateway,
    Tls,
    Control,
    Approve,
    Webhook,
    Store,
    Audit,
    Redaction,
    Telemetry,
    Vault,
    AutoRun,
    Protections,
    Sandbox,
    Classifier,
    Features,
    Rules,
    Screening,
    Pattern,
    Server,
    Tool,
    Limits,
    Mode,
    ModeTool,
    Role,
    AdminFile,
    AdminRecord,
    SandboxingControls,
    Permissions,
    Instructions,
    ModesFile,
    RooMode,
    RooRestrictions,
    RooTool,
    RooGroupOptions,
    ServersFile,
    ClientServer,
}

/// What becomes of a key.
#[derive(Debug, Clone, Copy)]
pub enum Standing {
    /// It acts. The table of the house tests names the code that reads it and a test of its behaviour.
    Used,
    /// Its feature is not built: refused, unless the value says what happens anyway.
    NotBuilt(&'static str, Unless),
    /// It acts nowhere here, and ignoring it is safe for this reason.
    Informational(&'static str),
}

/// The values of a key that is not built which are true all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unless {
    Never,
    False,
    True,
    Empty,
    Word(&'static str),
}

impl Unless {
    pub(crate) fn covers(self, node: &Node) -> bool {
        match (self, &node.value) {
            (Self::False, Value::Bool(value)) => !value,
            (Self::True, Value::Bool(value)) => *value,
            (Self::Empty, Value::List(items)) => items.is_empty(),
            (Self::Empty, Value::Table(entries)) => entries.is_empty(),
            (Self::Word(word), Value::String(text)) => text == word,
            _ => false,
        }
    }

    /// The value that may stand there, for people.
    pub(crate) fn words(self) -> Option<String> {
        match self {
            Self::Never => None,
            Self::False => Some("false".to_owned()),
            Self::True => Some("true".to_owned()),
            Self::Empty => Some("an empty value".to_owned()),
            Self::Word(word) => Some(format!("\"{word}\"")),
        }
    }
}

pub(crate) type Row = (&'static str, Standing);

impl Section {
    pub const ALL: [Self; 37] = [
        Self::Config,
        Self::Gateway,
        Self::Tls,
        Self::Control,
        Self::Approve,
        Self::Webhook,
        Self::Store,
        Self::Audit,
        Self::Redaction,
        Self::Telemetry,
        Self::Vault,
        Self::AutoRun,
        Self::Protections,
        Self::Sandbox,
        Self::Classifier,
        Self::Features,
        Self::Rules,
        Self::Screening,
        Self::Pattern,
        Self::Server,
        Self::Tool,
        Self::Limits,
        Self::Mode,
        Self::ModeTool,
        Self::Role,
        Self::AdminFile,
        Self::AdminRecord,
        Self::SandboxingControls,
        Self::Permissions,
        Self::Instructions,
        Self::ModesFile,
        Self::RooMode,
        Self::RooRestrictions,
        Self::RooTool,
        Self::RooGroupOptions,
        Self::ServersFile,
        Self::ClientServer,
    ];

    /// Where the keys stand, for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        self.table().0
    }

    /// All keys with what becomes of them.
    #[must_use]
    pub fn rows(self) -> &'static [(&'static str, Standing)] {
        self.table().1
    }

    /// The keys that may be written.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        self.rows().iter().map(|(key, _)| *key).filter(|key| *key != "$schema").collect()
    }

    pub(crate) fn standing(self, key: &str) -> Option<Standing> {
        self.rows().iter().find(|(known, _)| *known == key).map(|(_, standing)| *standing)
    }

    fn table(self) -> (&'static str, &'static [Row]) {
        match self {
            Self::Config => ("", &config::SECTIONS),
            Self::Gateway => ("[gateway]", &config::GATEWAY),
            Self::Tls => ("tls", &config::TLS),
            Self::Control => ("[control]", &config::CONTROL),
            Self::Approve => ("[control.approve.ENTRY]", &config::APPROVE),
            Self::Webhook => ("[control.webhooks.NAME]", &config::WEBHOOK),
            Self::Store => ("[store]", &config::STORE),
            Self::Audit => ("[audit]", &config::AUDIT),
            Self::Redaction => ("[audit] redaction", &config::REDACTION),
            Self::Telemetry => ("[telemetry]", &config::TELEMETRY),
            Self::Vault => ("[vault]", &config::VAULT),
            Self::AutoRun => ("[auto_run]", &config::AUTO_RUN),
            Self::Protections => ("[auto_run] protections", &config::PROTECTIONS),
            Self::Sandbox => ("[sandbox]", &config::SANDBOX),
            Self::Classifier => ("[classifier]", &config::CLASSIFIER),
            Self::Features => ("[features]", &config::FEATURES),
            Self::Rules => ("[rules]", &config::RULES),
            Self::Screening => ("[screening]", &config::SCREENING),
            Self::Pattern => ("patterns", &config::PATTERN),
            Self::Server => ("[servers.NAME]", &config::SERVER),
            Self::Tool => ("[servers.NAME] tools", &config::TOOL),
            Self::Limits => ("limits", &config::LIMITS),
            Self::Mode => ("[modes.SLUG]", &config::MODE),
            Self::ModeTool => ("[modes.SLUG] tools", &config::MODE_TOOL),
            Self::Role => ("[roles.NAME]", &config::ROLE),
            Self::AdminFile => ("[admin]", &config::ADMIN_FILE),
            Self::AdminRecord => ("admin record", &record::ADMIN),
            Self::SandboxingControls => ("sandboxing_controls", &record::SANDBOXING_CONTROLS),
            Self::Permissions => ("permissions.json", &client::PERMISSIONS),
            Self::Instructions => ("permissions.json autoRun", &client::INSTRUCTIONS),
            Self::ModesFile => ("modes file", &client::MODES_FILE),
            Self::RooMode => ("modes file mode", &client::ROO_MODE),
            Self::RooRestrictions => ("mcpRestrictions", &client::ROO_RESTRICTIONS),
            Self::RooTool => ("mcpRestrictions tools", &client::ROO_TOOL),
            Self::RooGroupOptions => ("options of a group", &client::ROO_GROUP_OPTIONS),
            Self::ServersFile => ("mcp.json", &client::SERVERS_FILE),
            Self::ClientServer => ("mcp.json server", &client::SERVER),
        }
    }
}
