//! What the judge is built from: plain data, each piece with the place it was written.
//!
//! `sources` fills this from files and records; `PolicySet::compile` checks it and turns it into
//! lookups. Nothing here has been judged yet: names may be invalid, modes may conflict.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use toolwarden_core::{ApprovalNeeds, Origin, Sourced};

pub use crate::input_modes::{Conditions, Groups, ModeInput, Window};

/// Everything the judge knows, as written.
#[derive(Debug, Clone, Default)]
pub struct PolicyInput {
    pub version: u64,
    pub base: BaseInput,
    pub servers: Vec<ServerInput>,
    pub users: BTreeMap<String, UserInput>,
    /// The files of the operating-system user; nobody else's calls are judged by them (PERM-1).
    pub local: LocalInput,
}

/// The part that seldom changes: settings, admin record, modes, roles and rules.
#[derive(Debug, Clone, Default)]
pub struct BaseInput {
    pub auto_run: AutoRunInput,
    pub admin: Option<AdminInput>,
    pub modes: Vec<ModeInput>,
    pub roles: Vec<RoleInput>,
    pub rules: Vec<RuleFile>,
    /// System settings such as `mcp.tools.disabled`; values as JSON text.
    pub settings: BTreeMap<String, Sourced<serde_json::Value>>,
    /// Paths that no call may change without a person (SELF-1), absolute.
    pub protected_paths: Vec<PathBuf>,
    /// Those of them that hold keys and data, which no call reads without a person either.
    pub secret_paths: Vec<PathBuf>,
    /// For `~` in command lines.
    pub home: Option<PathBuf>,
    /// Configurations of git besides those at the home and in a repository.
    pub git_configs: Vec<PathBuf>,
    /// Directories people work in. A call that names one of them as a whole names no protected file in it.
    pub workspaces: Vec<PathBuf>,
    /// Of every call that no server or tool says otherwise about.
    pub limits: LimitsInput,
    pub approvers: ApproversInput,
}

/// Who may answer held calls, and how.
#[derive(Debug, Clone, Default)]
pub struct ApproversInput {
    /// `[control] approvers`.
    pub everywhere: Vec<String>,
    /// `[control] second_person`, `server:tool`.
    pub second_person: Vec<Sourced<String>>,
    /// `[control.approve."server:tool"]`.
    pub rules: Vec<(Sourced<String>, ApprovalNeeds)>,
}

/// How far auto-run goes when nothing narrower speaks (ALLOW-6).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AutoRunMode {
    AskEveryTime,
    #[default]
    UseAllowlist,
    RunEverything,
}

impl AutoRunMode {
    /// Reads a mode's name or alias.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "ask_every_time" => Some(Self::AskEveryTime),
            "use_allowlist" | "yolo" => Some(Self::UseAllowlist),
            "run_everything" | "full_yolo" => Some(Self::RunEverything),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AskEveryTime => "ask_every_time",
            Self::UseAllowlist => "use_allowlist",
            Self::RunEverything => "run_everything",
        }
    }
}

/// `[auto_run]`, `[features]` and `[sandbox] resolves`.
#[derive(Debug, Clone)]
pub struct AutoRunInput {
    pub mode: AutoRunMode,
    /// The config names a mode itself. A default is no choice where the allowlists are off (ALLOW-6, ALLOW-9).
    pub mode_is_chosen: bool,
    pub auto_review: bool,
    /// Mandatory ask entries (CORE-4), `server:tool`.
    pub ask: Vec<Sourced<String>>,
    pub mcp_protection: bool,
    pub browser_protection: bool,
    pub delete_protection: bool,
    pub browser_servers: Vec<String>,
    pub default_mode: Option<Sourced<String>>,
    pub require_mode: bool,
    /// Feature `mcp_allowlists` (ALLOW-9).
    pub mcp_allowlists: bool,
    /// `[sandbox] resolves`: the cage may pay for shell calls Toolwarden launches (SANDBOX-3).
    pub sandbox_resolves: bool,
}

impl Default for AutoRunInput {
    fn default() -> Self {
        Self {
            mode: AutoRunMode::default(),
            mode_is_chosen: false,
            auto_review: false,
            ask: Vec::new(),
            mcp_protection: false,
            browser_protection: true,
            delete_protection: true,
            browser_servers: vec!["cursor-browser-extension".to_owned(), "cursor-ide-browser".to_owned()],
            default_mode: None,
            require_mode: false,
            mcp_allowlists: true,
            sandbox_resolves: false,
        }
    }
}

/// The admin record (ALLOW-10).
#[derive(Debug, Clone, Default)]
pub struct AdminInput {
    pub enabled: bool,
    pub allowed: Vec<Sourced<String>>,
    pub blocked: Vec<Sourced<String>>,
    pub disable_mcp_auto_run: bool,
    pub delete_file_protection: bool,
    pub enable_run_everything: bool,
    pub mcp_tool_allowlist: Vec<Sourced<String>>,
    pub browser_protection: bool,
    pub sandboxing: SandboxingControls,
}

/// The smallest cage the admin accepts, and the domains nobody may fetch from.
#[derive(Debug, Clone, Default)]
pub struct SandboxingControls {
    pub required: bool,
    pub denied_domains: Vec<Sourced<String>>,
}

/// Which side of the house a role or tool belongs to (GATE-7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    Sandbox,
    Pm,
    Both,
}

impl Scope {
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "sandbox" => Some(Self::Sandbox),
            "pm" => Some(Self::Pm),
            "both" => Some(Self::Both),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Pm => "pm",
            Self::Both => "both",
        }
    }
}

/// `[roles.NAME]`: what is given replaces that key of a shipped role of the same name.
#[derive(Debug, Clone)]
pub struct RoleInput {
    pub name: Sourced<String>,
    /// Never `Both`: a role stands on one side.
    pub scope: Option<Scope>,
    pub allow: Option<Vec<Sourced<String>>>,
    pub disallow: Option<Vec<Sourced<String>>>,
    /// Tool pattern → what its arguments must be.
    pub conditions: Vec<ArgumentCondition>,
    pub explain: Option<bool>,
}

/// A role may call a tool only when these arguments have one of these values.
#[derive(Debug, Clone)]
pub struct ArgumentCondition {
    /// A tool pattern as in `allow`.
    pub tool: Sourced<String>,
    /// Top-level argument → texts it may have; a trailing `*` matches any ending.
    pub arguments: BTreeMap<String, Vec<String>>,
}

/// A file of Cedar policies.
#[derive(Debug, Clone)]
pub struct RuleFile {
    pub origin: Origin,
    pub text: String,
}

/// Who declared a server, which decides whether patterns without a server reach it (GATE-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Declared {
    /// The user's config, an explicit `--config`, or an admin.
    ByOperator,
    /// A config found by walking up, or another workspace file.
    ByWorkspace,
    /// Installed by one user, for that user.
    ByUser,
}

/// One upstream server.
#[derive(Debug, Clone)]
pub struct ServerInput {
    pub name: String,
    pub origin: Origin,
    pub declared: Declared,
    /// The user for whom alone it is there, declared `ByUser` (GATE-8); none = it is everybody's.
    pub owner: Option<String>,
    pub enabled: bool,
    pub default_enabled: bool,
    /// What starts or reaches it; two definitions that differ here disable the name (MODE-7).
    pub launch: Launch,
    /// Flow labels of all its tools (GATE-20).
    pub labels: Vec<String>,
    pub limits: LimitsInput,
    pub tools: BTreeMap<String, ToolInput>,
    /// Tools that are hidden and denied (`disabledTools`).
    pub disabled_tools: Vec<Sourced<String>>,
    /// `alwaysAllow`, only where the person opted in for that file; entries of the settings layer.
    pub always_allow: Vec<Sourced<String>>,
    /// The definitions it listed, where known.
    pub catalog: Option<Vec<ToolDefinition>>,
}

impl ServerInput {
    /// A server that is on, with nothing said about its tools.
    #[must_use]
    pub fn new(name: &str, origin: Origin, declared: Declared) -> Self {
        Self {
            name: name.to_owned(),
            origin,
            declared,
            owner: None,
            enabled: true,
            default_enabled: true,
            launch: Launch::Nothing,
            labels: Vec::new(),
            limits: LimitsInput::default(),
            tools: BTreeMap::new(),
            disabled_tools: Vec::new(),
            always_allow: Vec::new(),
            catalog: None,
        }
    }
}

impl ToolDefinition {
    /// A tool of which only the name is known.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Self { name: name.to_owned(), description: None, input_schema: None, output_schema: None }
    }
}

/// What starts or reaches a server, for telling two definitions apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Launch {
    Command {
        command: String,
        arguments: Vec<String>,
    },
    Url(String),
    /// Nothing is launched: `builtin`, or tools an SDK agent registers.
    Nothing,
}

/// Bounds on calls (GATE-13); none = the next wider level's, and at last the default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LimitsInput {
    pub request_bytes: Option<usize>,
    pub response_bytes: Option<u64>,
    /// Of arguments and of results.
    pub depth: Option<usize>,
    pub time: Option<Duration>,
    /// Calls on their way at the same time. Counts at every level that has one.
    pub in_flight: Option<u64>,
    /// Calls in any minute. Counts at every level that has one.
    pub per_minute: Option<u64>,
}

impl LimitsInput {
    /// What this level says, and the wider one where it says nothing.
    #[must_use]
    pub fn or(self, wider: Self) -> Self {
        Self {
            request_bytes: self.request_bytes.or(wider.request_bytes),
            response_bytes: self.response_bytes.or(wider.response_bytes),
            depth: self.depth.or(wider.depth),
            time: self.time.or(wider.time),
            in_flight: self.in_flight.or(wider.in_flight),
            per_minute: self.per_minute.or(wider.per_minute),
        }
    }

    /// The smaller of each, where two say something about the same thing.
    #[must_use]
    pub fn smaller(self, other: Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Self {
            request_bytes: least(self.request_bytes, other.request_bytes),
            response_bytes: least(self.response_bytes, other.response_bytes),
            depth: least(self.depth, other.depth),
            time: least(self.time, other.time),
            in_flight: least(self.in_flight, other.in_flight),
            per_minute: least(self.per_minute, other.per_minute),
        }
    }
}

/// `tools."x"` of a server.
#[derive(Debug, Clone, Default)]
pub struct ToolInput {
    pub origin: Option<Origin>,
    pub enabled: Option<bool>,
    pub scope: Option<Scope>,
    /// Argument names the call must carry (GATE-11); empty = not task-scoped.
    pub task_scoped: Vec<String>,
    pub requires_setting: Option<String>,
    /// `review = "human"`.
    pub human_review: bool,
    /// Its results wait for a person.
    pub result_review: bool,
    pub labels: Vec<String>,
    pub limits: LimitsInput,
}

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    pub description: Option<String>,
    /// None where the server lists none. A value that is no object makes the tool unusable; a text says why the schema
    /// could not be read (`read_schema`).
    pub input_schema: Option<serde_json::Value>,
    /// What its results must fit.
    pub output_schema: Option<serde_json::Value>,
}

/// Protections as a user set them; none = as `[auto_run] protections` has it (ALLOW-8).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnProtections {
    pub mcp: Option<bool>,
    pub browser: Option<bool>,
    pub delete: Option<bool>,
}

/// What is stored for one user.
#[derive(Debug, Clone, Default)]
pub struct UserInput {
    pub auto_run_mode: Option<AutoRunMode>,
    pub protections: OwnProtections,
    pub mcp_allowlist: Vec<Sourced<String>>,
    pub terminal_allowlist: Vec<Sourced<String>>,
    /// "Deny always" answers, `server:tool` (REVIEW-3).
    pub blocks: Vec<Sourced<String>>,
}

/// The permissions.json files of the operating-system user: of the local person, and of every token issued to that
/// user (PERM-1).
#[derive(Debug, Clone, Default)]
pub struct LocalInput {
    pub user: String,
    /// The user's own files: they count in every workspace.
    pub files: Vec<PermissionsInput>,
    /// Workspace files by the real path of their workspace: each counts for calls of that workspace alone.
    pub workspaces: BTreeMap<PathBuf, PermissionsInput>,
    /// The workspace of the place these were read for.
    pub workspace: Option<PathBuf>,
}

impl LocalInput {
    /// The files that count at the place they were read for.
    pub fn here(&self) -> impl Iterator<Item = &PermissionsInput> {
        let of_workspace = self.workspace.as_ref().and_then(|root| self.workspaces.get(root));
        self.files.iter().chain(of_workspace)
    }
}

/// One permissions.json. `Some`, even empty, replaces the settings list of that type (PERM-2).
#[derive(Debug, Clone, Default)]
pub struct PermissionsInput {
    pub mcp_allowlist: Option<Vec<Sourced<String>>>,
    pub terminal_allowlist: Option<Vec<Sourced<String>>>,
    pub allow_instructions: Option<Vec<Sourced<String>>>,
    pub block_instructions: Option<Vec<Sourced<String>>>,
    /// Could not be read: it grants nothing, defines every key, and stops the classifier (PERM-3).
    pub broken: bool,
}
