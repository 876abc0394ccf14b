//! `toolwarden.toml`: every section typed and checked; unknown keys refused with the nearest one.
//!
//! Takes TOML; gives the plain sections (`ConfigFile`) and the pieces the judge is built from.
//! Any error makes the whole file broken (PERM-3).

mod access;
mod addresses;
pub mod audit;
mod auto_run;
mod classifier;
mod gateway;
mod modes;
mod roles;
pub mod screening;
mod servers;
mod telemetry;
mod webhooks;

use std::collections::BTreeMap;

use toolwarden_core::{Layer, Sourced};
use toolwarden_policy::input::{AutoRunInput, Declared, ModeInput, RoleInput};

pub use access::{RulesSection, VaultSection};
pub use audit::AuditSection;
pub use auto_run::AlwaysAllowFile;
pub use classifier::{ClassifierSection, Prices};
pub use gateway::{ControlSection, GatewaySection, StoreSection, TlsFiles, WebhookSection};
pub use telemetry::TelemetrySection;

use super::known::Section;
use super::server::ServerDefinition;
use crate::report::{Reading, Report};
use crate::tree::{Format, Node};

/// Whose file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The user's own config, or one named with `--config`.
    Operator,
    /// Found by walking up: it came with a workspace.
    Workspace,
}

impl Standing {
    fn layer(self) -> Layer {
        match self {
            Self::Operator => Layer::Config,
            Self::Workspace => Layer::WorkspaceFile,
        }
    }

    fn declared(self) -> Declared {
        match self {
            Self::Operator => Declared::ByOperator,
            Self::Workspace => Declared::ByWorkspace,
        }
    }
}

/// What a config says, section by section.
#[derive(Debug, Default)]
pub struct ConfigFile {
    pub gateway: GatewaySection,
    pub control: ControlSection,
    pub store: StoreSection,
    pub audit: AuditSection,
    pub telemetry: TelemetrySection,
    pub vault: VaultSection,
    pub auto_run: AutoRunInput,
    /// Files whose `alwaysAllow` the person opted in to (MODE-7).
    pub always_allow_files: Vec<AlwaysAllowFile>,
    pub classifier: Option<ClassifierSection>,
    pub features: Features,
    pub rules: RulesSection,
    /// What is looked for in the results of every server that is screened.
    pub patterns: Vec<screening::Pattern>,
    pub settings: BTreeMap<String, Sourced<serde_json::Value>>,
    pub servers: Vec<ServerDefinition>,
    pub modes: Vec<ModeInput>,
    pub roles: Vec<RoleInput>,
    /// `[admin] file`, as written.
    pub admin_file: Option<Sourced<String>>,
}

/// `[features]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    pub mcp_allowlists: bool,
}

impl Default for Features {
    fn default() -> Self {
        Self { mcp_allowlists: true }
    }
}

/// Reads one config.
#[must_use]
pub fn read_bytes(path: &str, standing: Standing, bytes: &[u8]) -> Reading<ConfigFile> {
    let mut report = Report::strict(path, standing.layer());
    let Some(root) = report.parse(bytes, Format::Toml) else { return report.finish(ConfigFile::default(), true) };
    let mut config = ConfigFile::default();
    for (key, node) in report.keys(Section::Config, "toolwarden.toml", &root) {
        match key.text.as_str() {
            "gateway" => config.gateway = gateway::read_gateway(&mut report, node),
            "control" => config.control = gateway::read_control(&mut report, node),
            "store" => config.store = gateway::read_store(&mut report, standing, node),
            "audit" => config.audit = audit::read(&mut report, standing, node),
            "telemetry" => config.telemetry = telemetry::read(&mut report, standing, node),
            "vault" => config.vault = access::read_vault(&mut report, standing, node),
            "auto_run" => auto_run::read(&mut report, standing, node, &mut config),
            "sandbox" => access::check_sandbox(&mut report, node),
            "classifier" => config.classifier = classifier::read(&mut report, standing, key, node),
            "features" => config.features = read_features(&mut report, node),
            "rules" => config.rules = access::read_rules(&mut report, node),
            "screening" => config.patterns = screening::read(&mut report, node),
            "settings" => access::read_settings(&mut report, "", node, &mut config.settings),
            "servers" => config.servers = servers::read(&mut report, standing.declared(), node),
            "modes" => config.modes = modes::read(&mut report, node),
            "roles" => config.roles = roles::read(&mut report, node),
            "admin" => config.admin_file = read_admin(&mut report, node),
            _ => report.unread(key),
        }
    }
    access::refuse_misplaced(&mut report, &config);
    for server in &mut config.servers {
        server.screening.patterns.extend(config.patterns.iter().cloned());
    }
    config.auto_run.mcp_allowlists = config.features.mcp_allowlists;
    let broken = report.has_errors();
    report.finish(config, broken)
}

/// Modes as `[modes]` has them, read by themselves; the same for the next two.
pub(super) fn read_modes(report: &mut Report, node: &Node) -> Vec<ModeInput> {
    modes::read(report, node)
}

pub(super) fn read_roles(report: &mut Report, node: &Node) -> Vec<RoleInput> {
    roles::read(report, node)
}

pub(super) fn read_servers(report: &mut Report, declared: Declared, node: &Node) -> Vec<ServerDefinition> {
    servers::read(report, declared, node)
}

fn read_features(report: &mut Report, node: &Node) -> Features {
    let mut features = Features::default();
    for (key, value) in report.keys(Section::Features, "features", node) {
        match key.text.as_str() {
            "mcp_allowlists" => features.mcp_allowlists = report.boolean(&key.text, value).unwrap_or(true),
            _ => report.unread(key),
        }
    }
    features
}

fn read_admin(report: &mut Report, node: &Node) -> Option<Sourced<String>> {
    let mut file = None;
    for (key, value) in report.keys(Section::AdminFile, "admin", node) {
        match key.text.as_str() {
            "file" => file = report.sourced_text(&key.text, value),
            _ => report.unread(key),
        }
    }
    file
}
