//! The command line, as people type it.

mod address;
mod approvals;
mod audit;
mod changes;
mod grants;
mod servers;
mod tokens;
mod vault;

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Parser, Subcommand};

pub use address::numeric;
pub use approvals::ApprovalsCommand;
pub use audit::When;
pub use audit::{AuditCommand, ExportFormat, RowArguments};
pub use changes::{
    AdminCommand, ChangeArguments, ModeArguments, RoleArguments, RolesCommand, ServerArguments, SettingsCommand, Switch,
};
pub use grants::{GrantArguments, GrantsCommand};
pub use servers::{ServersCommand, SessionsCommand, ToolsCommand};
pub use tokens::{IssueArguments, TokensCommand};
pub use vault::VaultCommand;

/// The gate between AI agents and the tools they call.
#[derive(Debug, Parser)]
#[command(name = "toolwarden", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(flatten)]
    pub places: Places,
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 done or allow, 1 failed, 2 usage or bad input, 3 deny, 4 hold.";

/// Where things are; understood by every command.
#[derive(Debug, Clone, Args)]
pub struct Places {
    /// Config file; without it the nearest trusted toolwarden.toml, else the user's
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory of the store, the journal and trust records
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Count the workspace's files as they are, for this run only
    #[arg(long, global = true)]
    pub trust_workspace: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Serve(ServeArguments),
    Stdio(StdioArguments),
    Explain(Box<ExplainArguments>),
    Lint(LintArguments),
    Describe(DescribeArguments),
    /// Add an entry to the user's allowlist
    Allow(EntryArguments),
    /// Remove an entry from the user's allowlist
    Disallow(EntryArguments),
    Allowlist(AllowlistArguments),
    /// Take back that every call of a tool is denied (`approvals deny --remember`)
    Unblock(UnblockArguments),
    #[command(subcommand)]
    Approvals(ApprovalsCommand),
    #[command(subcommand)]
    Grants(GrantsCommand),
    #[command(subcommand)]
    Modes(ModesCommand),
    #[command(subcommand)]
    Roles(RolesCommand),
    #[command(subcommand)]
    Rules(RulesCommand),
    #[command(subcommand)]
    Settings(SettingsCommand),
    #[command(subcommand)]
    Admin(AdminCommand),
    #[command(subcommand)]
    Policy(PolicyCommand),
    Reload(ReloadArguments),
    Trust(TrustArguments),
    #[command(subcommand)]
    Servers(ServersCommand),
    #[command(subcommand)]
    Tools(ToolsCommand),
    #[command(subcommand)]
    Sessions(SessionsCommand),
    #[command(subcommand)]
    Tokens(TokensCommand),
    #[command(subcommand)]
    Vault(VaultCommand),
    #[command(subcommand)]
    Audit(AuditCommand),
    Doctor(DoctorArguments),
    /// A small notes server, for trying things out
    #[command(hide = true)]
    DemoServer,
    /// Print completions for a shell
    #[command(hide = true)]
    Completions {
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    #[command(hide = true)]
    Man,
}

/// What is no longer blocked.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwarden unblock notes:write_note")]
pub struct UnblockArguments {
    /// As `toolwarden allowlist` shows it: server:tool
    #[arg(value_name = "ENTRY", value_parser = NonEmptyStringValueParser::new())]
    pub entry: String,
    /// Whose block, other than your own
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    #[command(flatten)]
    pub format: Format,
}

/// Make the running server read its files again
#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  toolwarden reload\n\nFiles are also read again within a second after they change, and on SIGHUP."
)]
pub struct ReloadArguments {
    #[command(flatten)]
    pub format: Format,
}

/// Run the gateway: MCP over HTTP, every call judged and recorded
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolwarden serve\n  toolwarden serve --demo --listen 127.0.0.1:9000\n\nClients connect to /mcp for all servers, or /mcp/SERVER for one with its names unchanged."
)]
pub struct ServeArguments {
    /// Address to listen on, before `[gateway] listen`
    #[arg(long, value_name = "ADDRESS", value_parser = address::parse)]
    pub listen: Option<std::net::SocketAddr>,
    /// Add a small notes server where no server is configured
    #[arg(long)]
    pub demo: bool,
    /// The workspace whose files count, once trusted [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
}

/// Speak MCP on stdin and stdout, for clients that start a process
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  toolwarden stdio --mode code\n  toolwarden stdio --server github")]
pub struct StdioArguments {
    /// The mode calls are judged under
    #[arg(long, value_name = "SLUG", value_parser = NonEmptyStringValueParser::new())]
    pub mode: Option<String>,
    /// One server with its names unchanged, instead of all under one roof
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub server: Option<String>,
    /// The workspace whose files count, once trusted [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
}

/// Say what would happen to a call, and why
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolwarden explain github:create_issue\n  toolwarden explain --shell 'git status && npm publish'\n  toolwarden explain db:db.write --role pa --user ada --args '{\"table\":\"findings\"}' --json"
)]
pub struct ExplainArguments {
    /// The tool, as SERVER:TOOL
    #[arg(value_name = "SERVER:TOOL", required_unless_present_any = ["shell", "fetch"], conflicts_with_all = ["shell", "fetch"])]
    pub target: Option<String>,
    /// A command line instead of a tool
    #[arg(long, value_name = "CMD", conflicts_with = "fetch", allow_hyphen_values = true)]
    pub shell: Option<String>,
    /// A URL instead of a tool
    #[arg(long, value_name = "URL")]
    pub fetch: Option<String>,
    /// The call's arguments
    #[arg(long, value_name = "JSON", conflicts_with_all = ["shell", "fetch"])]
    pub args: Option<String>,
    /// Judge as this stored token
    #[arg(long = "as", value_name = "TOKEN_ID", conflicts_with_all = ["role", "user"])]
    pub as_token: Option<String>,
    /// Judge as a token of this role
    #[arg(long, value_name = "ROLE", value_parser = NonEmptyStringValueParser::new())]
    pub role: Option<String>,
    /// Judge under this mode
    #[arg(long, value_name = "SLUG", value_parser = NonEmptyStringValueParser::new())]
    pub mode: Option<String>,
    /// The user the call is made for
    #[arg(long, value_name = "USER", value_parser = NonEmptyStringValueParser::new())]
    pub user: Option<String>,
    /// A group of the caller; may be given several times
    #[arg(long, value_name = "GROUP", value_parser = NonEmptyStringValueParser::new())]
    pub group: Vec<String>,
    /// The token's task
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub task: Option<String>,
    /// The token's project
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub project: Option<String>,
    /// The token's run
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub run: Option<String>,
    /// The token's job
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub job: Option<String>,
    /// The token's session
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub session: Option<String>,
    /// A tool the token's task was given; may be given several times
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub task_tool: Vec<String>,
    /// A flow label seen in the session; may be given several times
    #[arg(long, value_name = "LABEL", value_parser = NonEmptyStringValueParser::new())]
    pub seen: Vec<String>,
    /// The time to judge at, instead of now
    #[arg(long, value_name = "RFC3339")]
    pub time: Option<jiff::Timestamp>,
    #[command(flatten)]
    pub policy: PolicyArguments,
    #[command(flatten)]
    pub format: Format,
}

/// What commands that judge need besides the places.
#[derive(Debug, Args)]
pub struct PolicyArguments {
    /// The workspace whose files count, once trusted [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// A saved tools/list answer, as FILE or SERVER=FILE; may be given several times
    #[arg(long, value_name = "FILE")]
    pub catalog: Vec<String>,
}

#[derive(Debug, Clone, Copy, Args)]
pub struct Format {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Look for mistakes in policy files
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolwarden lint\n  toolwarden lint .roomodes ~/.cursor/permissions.json\n\nExits with 1 if there is an error among the findings."
)]
pub struct LintArguments {
    /// Files to check by themselves; without any, everything that counts here
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub policy: PolicyArguments,
    #[command(flatten)]
    pub format: Format,
}

/// Print the prompt text of what a mode may use
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwarden describe --mode code --catalog github=tools.json")]
pub struct DescribeArguments {
    /// The mode to describe
    #[arg(long, value_name = "SLUG", value_parser = NonEmptyStringValueParser::new())]
    pub mode: Option<String>,
    #[command(flatten)]
    pub policy: PolicyArguments,
    #[command(flatten)]
    pub format: Format,
}

/// Change the user's allowlist
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  toolwarden allow github:create_issue\n  toolwarden allow --shell 'npm:install*'\n  toolwarden disallow 'linear:*'"
)]
pub struct EntryArguments {
    /// SERVER:TOOL, where either side may be `*`; or a terminal entry with --shell
    #[arg(value_name = "ENTRY", allow_hyphen_values = true)]
    pub entry: String,
    /// A terminal entry: `command` or `command:arguments`
    #[arg(long)]
    pub shell: bool,
    /// Another user's stored list
    #[arg(long, value_name = "USER", value_parser = NonEmptyStringValueParser::new())]
    pub user: Option<String>,
    /// The workspace the change is explained for [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    #[command(flatten)]
    pub format: Format,
}

/// Show the allowlists that count, and where each entry comes from
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwarden allowlist --json")]
pub struct AllowlistArguments {
    /// Only terminal entries
    #[arg(long)]
    pub shell: bool,
    /// Another user's stored list
    #[arg(long, value_name = "USER", value_parser = NonEmptyStringValueParser::new())]
    pub user: Option<String>,
    #[command(flatten)]
    pub policy: PolicyArguments,
    #[command(flatten)]
    pub format: Format,
}

/// Look at modes and change them
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden modes show secure-mode --json\n  toolwarden modes set review --allow-server github --disallow-tool github:delete_repo"
)]
pub enum ModesCommand {
    /// List every mode and where it is defined
    #[command(after_help = "Example:\n  toolwarden modes list --json")]
    List {
        #[command(flatten)]
        policy: PolicyArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Show one mode
    #[command(after_help = "Example:\n  toolwarden modes show secure-mode")]
    Show {
        /// The mode's slug
        slug: String,
        #[command(flatten)]
        policy: PolicyArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Make a mode, or change one that is stored
    #[command(
        after_help = "Examples:\n  toolwarden modes set review --name Review --allow-tool github:get_issue\n  toolwarden modes set review --from review.json --dry-run\n\nModes of files are changed there: a file comes before the store."
    )]
    Set(Box<ModeArguments>),
    /// Take a stored mode away
    #[command(after_help = "Example:\n  toolwarden modes delete review")]
    Delete {
        /// The mode's slug
        slug: String,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Say the least that would still permit what was used; without a record, what names of tools suggest
    #[command(
        after_help = "Examples:\n  toolwarden modes suggest review\n  toolwarden modes suggest --role worker --since 7d\n  toolwarden modes suggest review --json | jq .definition | toolwarden modes set review --from -"
    )]
    Suggest {
        /// The mode's slug
        #[arg(conflicts_with_all = ["role", "token"])]
        slug: Option<String>,
        /// What agents of this role used
        #[arg(long, value_name = "NAME", conflicts_with = "token")]
        role: Option<String>,
        /// What the bearer of this token used
        #[arg(long, value_name = "ID")]
        token: Option<String>,
        /// Not before: a time, or a span such as 7d
        #[arg(long, value_name = "WHEN")]
        since: Option<When>,
        #[command(flatten)]
        format: Format,
    },
    /// Print a ready-made mode to start from, or the list of them
    #[command(after_help = "Example:\n  toolwarden modes template read-only | toolwarden modes set reading --from -")]
    Template {
        /// The template; without one, all of them are listed
        name: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Check modes: all that count here, or those of the given files
    #[command(after_help = "Example:\n  toolwarden modes validate .roomodes")]
    Validate {
        /// Files in the format of .roomodes
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        policy: PolicyArguments,
        #[command(flatten)]
        format: Format,
    },
}

/// Look at access rules and change them
#[derive(Debug, Subcommand)]
#[command(after_help = "Example:\n  toolwarden rules check rules/team.cedar --catalog github=tools.json")]
pub enum RulesCommand {
    /// List every rule that counts here, with its text
    #[command(after_help = "Example:\n  toolwarden rules list")]
    List {
        #[command(flatten)]
        policy: PolicyArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Store rules under a name, or put others in their place
    #[command(after_help = "Example:\n  toolwarden rules add no-night-writes night.cedar --reason 'agreed with ops'")]
    Add {
        /// What they are called from now on
        name: String,
        /// Rules in Cedar; `-` reads from stdin
        file: PathBuf,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Take stored rules away
    #[command(after_help = "Example:\n  toolwarden rules remove no-night-writes")]
    Remove {
        /// The name they are stored under
        name: String,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Check rules against the schema: all that count here, or those of the given files
    #[command(after_help = "Example:\n  toolwarden rules check rules/team.cedar --catalog github=tools.json")]
    Check {
        /// Cedar files
        #[arg(value_name = "FILE")]
        files: Vec<PathBuf>,
        #[command(flatten)]
        policy: PolicyArguments,
        #[command(flatten)]
        format: Format,
    },
}

/// Let the policy files of a workspace count, as they are now
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  toolwarden trust .\n  toolwarden trust --list\n  toolwarden trust --remove .")]
pub struct TrustArguments {
    /// The workspace's directory
    #[arg(value_name = "DIR", required_unless_present = "list")]
    pub directory: Option<PathBuf>,
    /// Forget the directory instead
    #[arg(long, conflicts_with = "list")]
    pub remove: bool,
    /// List trusted directories
    #[arg(long, conflicts_with = "directory")]
    pub list: bool,
    #[command(flatten)]
    pub format: Format,
}

/// The versions of what was decided: who, when, what and why; and going back
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden policy history\n  toolwarden policy diff 3 5\n  toolwarden policy rollback 3 --reason 'too wide'"
)]
pub enum PolicyCommand {
    /// List versions, newest first
    #[command(after_help = "Example:\n  toolwarden policy history --limit 10 --json")]
    History {
        /// At most so many [default: 50]
        #[arg(long, value_name = "N")]
        limit: Option<u32>,
        /// Only older ones
        #[arg(long, value_name = "VERSION")]
        before: Option<u64>,
        #[command(flatten)]
        format: Format,
    },
    /// Show what changed between two versions, and what the later one newly allowed
    #[command(after_help = "Example:\n  toolwarden policy diff 3 5")]
    Diff {
        /// The earlier version [default: the one before the later]
        from: Option<u64>,
        /// The later version [default: the last]
        to: Option<u64>,
        #[command(flatten)]
        format: Format,
    },
    /// Make everything as it was at a version, as the next version
    #[command(
        after_help = "Example:\n  toolwarden policy rollback 3 --reason 'too wide'\n  toolwarden policy rollback --last\n\nTokens stay as they are."
    )]
    Rollback {
        /// As `policy history` shows it; 0 is before the first
        version: Option<u64>,
        /// Take back the last change
        #[arg(long, conflicts_with = "version")]
        last: bool,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Agree to the policy that waits: it is in force from now on
    #[command(
        after_help = "Example:\n  toolwarden policy confirm 5d41402abc4b2a76b9719d911017c592\n\nThe mark stands in the log, in `toolwarden doctor` and in /readyz, with what the policy would newly allow."
    )]
    Confirm {
        /// Of exactly this policy: another change of files has another mark
        mark: String,
        #[command(flatten)]
        format: Format,
    },
}

/// Check this installation: config, files, record, servers, port, clock, disk
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  toolwarden doctor\n\nExits with 1 if there is a problem among the findings.")]
pub struct DoctorArguments {
    /// The address a server would listen on, before `[gateway] listen`
    #[arg(long, value_name = "ADDRESS", value_parser = address::parse)]
    pub listen: Option<std::net::SocketAddr>,
    /// The workspace whose files count, once trusted [default: the working directory]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    #[command(flatten)]
    pub format: Format,
}

#[cfg(test)]
mod help_tests;
