//! The arguments of commands that change what the store holds.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::Format;

/// What every change can say besides what it changes.
#[derive(Debug, Clone, Default, Args)]
pub struct ChangeArguments {
    /// Why, for the history
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub reason: Option<String>,
    /// Only say what it would do
    #[arg(long)]
    pub dry_run: bool,
    /// Refuse it unless the record is at this version; 0 where there must be none
    #[arg(long, value_name = "VERSION")]
    pub if_version: Option<u64>,
}

/// Look at system settings and change them
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden settings get\n  toolwarden settings set mcp.tool.web.fetch.enabled false\n  toolwarden settings set auto_run.mode ask_every_time\n  toolwarden settings set auto_run.auto_review true\n\n`auto_run.mode` is each user's own; all others are the system's."
)]
pub enum SettingsCommand {
    /// Show every setting, or the value of one
    #[command(after_help = "Example:\n  toolwarden settings get auto_run.mode")]
    Get {
        /// Only this one
        key: Option<String>,
        /// Another user's auto-run mode
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Set one; the value is JSON, or a text
    #[command(
        after_help = "Example:\n  toolwarden settings set agents.project_manager.sandbox.allow_add_to_allowed_images true"
    )]
    Set {
        /// The setting, as `settings get` names it
        key: String,
        /// true, 5, ["a"], or a text
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Another user's auto-run mode
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Take one back, as if it had never been set
    #[command(after_help = "Example:\n  toolwarden settings unset auto_run.mode")]
    Unset {
        /// The setting, as `settings get` names it
        key: String,
        /// Another user's auto-run mode
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
}

/// What a mode is to be.
#[derive(Debug, Args)]
pub struct ModeArguments {
    /// The mode's slug
    pub slug: String,
    /// All of it: a file with the keys of [modes.SLUG] in JSON, or a .roomodes; `-` reads from stdin
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// How people call it
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// The mode it narrows
    #[arg(long, value_name = "SLUG")]
    pub extends: Option<String>,
    /// Its groups, such as mcp,command
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    pub groups: Option<Vec<String>>,
    /// Allow a server; once one is allowed, others are not. May be given several times, as all that follow
    #[arg(long, value_name = "SERVER")]
    pub allow_server: Vec<String>,
    /// Deny a server
    #[arg(long, value_name = "SERVER")]
    pub disallow_server: Vec<String>,
    /// Say nothing of a server any more
    #[arg(long, value_name = "SERVER")]
    pub inherit_server: Vec<String>,
    /// Allow a tool; once one is allowed, others are not
    #[arg(long, value_name = "SERVER:TOOL")]
    pub allow_tool: Vec<String>,
    /// Deny a tool
    #[arg(long, value_name = "SERVER:TOOL")]
    pub disallow_tool: Vec<String>,
    /// Say nothing of a tool any more
    #[arg(long, value_name = "SERVER:TOOL")]
    pub inherit_tool: Vec<String>,
    /// Servers need not be allowed one by one any more
    #[arg(long, conflicts_with = "allow_server")]
    pub any_server: bool,
    /// Tools need not be allowed one by one any more
    #[arg(long, conflicts_with = "allow_tool")]
    pub any_tool: bool,
    /// Whether a classifier may pay for some holds; `inherit` says nothing of it any more
    #[arg(long, value_enum, value_name = "SWITCH")]
    pub auto_review: Option<Switch>,
    #[command(flatten)]
    pub change: ChangeArguments,
    #[command(flatten)]
    pub format: Format,
}

/// On, off, or whatever counts without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    On,
    Off,
    Inherit,
}

/// Look at the roles of agents and change them
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden roles show worker\n  toolwarden roles set reviewer --scope pm --allow 'git.*' --disallow git.push"
)]
pub enum RolesCommand {
    /// List every role and where it is defined
    #[command(after_help = "Example:\n  toolwarden roles list --json")]
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Show what one role may call
    #[command(after_help = "Example:\n  toolwarden roles show worker")]
    Show {
        /// The role's name
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// Make a role, or change one
    #[command(
        after_help = "Examples:\n  toolwarden roles set reviewer --scope pm --allow 'git.*'\n  toolwarden roles set worker --drop api.call\n  toolwarden roles set worker --reset"
    )]
    Set(Box<RoleArguments>),
}

/// What a role is to be.
#[derive(Debug, Args)]
pub struct RoleArguments {
    /// The role's name
    pub name: String,
    /// All of it: a file with the keys of [roles.NAME] in JSON; `-` reads from stdin
    #[arg(long, value_name = "FILE")]
    pub from: Option<PathBuf>,
    /// The side of the house it is on: pm or sandbox
    #[arg(long, value_name = "SCOPE", value_parser = ["pm", "sandbox"])]
    pub scope: Option<String>,
    /// A pattern of tools it may call; may be given several times, as the next two
    #[arg(long, value_name = "PATTERN")]
    pub allow: Vec<String>,
    /// A pattern of tools it may never call
    #[arg(long, value_name = "PATTERN")]
    pub disallow: Vec<String>,
    /// A pattern that is to be in neither list any more
    #[arg(long, value_name = "PATTERN")]
    pub drop: Vec<String>,
    /// Whether its agents read why a call was denied
    #[arg(long, value_name = "BOOL")]
    pub explain: Option<bool>,
    /// Forget everything that is stored of it
    #[arg(long, conflicts_with_all = ["from", "scope", "allow", "disallow", "drop", "explain"])]
    pub reset: bool,
    #[command(flatten)]
    pub change: ChangeArguments,
    #[command(flatten)]
    pub format: Format,
}

/// Look at the controls of a team's administrator and change them
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden admin show\n  toolwarden admin set enabled=true 'blocked=[\"rm\"]' --reason 'team rules'"
)]
pub enum AdminCommand {
    /// Show the controls that count
    #[command(after_help = "Example:\n  toolwarden admin show --json")]
    Show {
        #[command(flatten)]
        format: Format,
    },
    /// Change controls in the store; a file of the administrator comes first
    #[command(
        after_help = "Examples:\n  toolwarden admin set enabled=true disable_mcp_auto_run=true\n  toolwarden admin set --from team.json"
    )]
    Set {
        /// KEY=VALUE with a value in JSON; KEY= takes it back
        #[arg(value_name = "KEY=VALUE", required_unless_present = "from")]
        controls: Vec<String>,
        /// All of them, as an admin record in JSON; `-` reads from stdin
        #[arg(long, value_name = "FILE")]
        from: Option<PathBuf>,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
}

/// A new server.
#[derive(Debug, Args)]
pub struct ServerArguments {
    /// A short name; clients reach it at /mcp/NAME
    pub name: String,
    /// Where it is reached
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "from"])]
    pub url: Option<String>,
    /// A header to send, as `NAME: VALUE`; `NAME: ${env:X}` keeps the value out of the store. May be given several times
    #[arg(long, value_name = "HEADER", requires = "url")]
    pub header: Vec<String>,
    /// A variable for the command, as NAME=VALUE or NAME=${env:X}; may be given several times
    #[arg(long, value_name = "VARIABLE", requires = "command")]
    pub env: Vec<String>,
    /// All of it: a file with the keys of [servers.NAME] in JSON; `-` reads from stdin
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    pub from: Option<PathBuf>,
    /// A user's own server: nobody else sees it
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Let a user's own server be near this machine; without it, only https at a public address is reached
    #[arg(long, requires_all = ["url", "user"])]
    pub private_network: bool,
    /// Put it in the place of one that is stored under that name
    #[arg(long)]
    pub replace: bool,
    #[command(flatten)]
    pub change: ChangeArguments,
    #[command(flatten)]
    pub format: Format,
    /// What starts it, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}
