//! The arguments of `servers`, `tools` and `sessions`.

use clap::Subcommand;

use super::{ChangeArguments, Format, ServerArguments};

/// Look at upstream servers and change them
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden servers list\n  toolwarden servers show github --json\n  toolwarden servers add notes -- npx -y notes-server\n  toolwarden servers disable github"
)]
pub enum ServersCommand {
    /// List every server and how it is doing
    #[command(after_help = "Example:\n  toolwarden servers list --json")]
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Add a server: clients can use it at once
    #[command(
        after_help = "Examples:\n  toolwarden servers add docs --url https://example.com/mcp --header 'Authorization: Bearer ${env:DOCS_TOKEN}'\n  toolwarden servers add notes -- npx -y notes-server"
    )]
    Add(Box<ServerArguments>),
    /// Take a stored server away
    #[command(after_help = "Example:\n  toolwarden servers remove notes")]
    Remove {
        /// The server's name
        name: String,
        /// Whose it is, where it is a user's own
        #[arg(long, value_name = "USER")]
        user: Option<String>,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Switch a server on again
    #[command(after_help = "Example:\n  toolwarden servers enable github")]
    Enable {
        /// The server's name
        name: String,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Switch a server off: nobody reaches it
    #[command(after_help = "Example:\n  toolwarden servers disable github")]
    Disable {
        /// The server's name
        name: String,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// End what is open with a server; it is started or reached anew when somebody needs it
    #[command(after_help = "Example:\n  toolwarden servers reload github")]
    Reload {
        /// The server's name
        name: String,
        #[command(flatten)]
        format: Format,
    },
    /// Show one server, its tools, and what your calls of them would meet
    #[command(after_help = "Example:\n  toolwarden servers show github")]
    Show {
        /// The server's name
        name: String,
        #[command(flatten)]
        format: Format,
    },
}

/// Switch and scope of tools; what was accepted of their definitions, and what changed since
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden tools list\n  toolwarden tools diff github\n  toolwarden tools accept github:create_issue\n\nNames are TOOL, prompts/PROMPT, server/instructions or server/launch. Until a change is accepted, clients are shown the last accepted definition and calls are held."
)]
pub enum ToolsCommand {
    /// List every definition that was seen, and how it stands
    #[command(
        after_help = "Example:\n  toolwarden tools list github --json\n\nStanding is accepted, changed or new; gone, if the last list of the server lacks it; not configured, if there is no such server any more. What is gone may still be called, if the server answers."
    )]
    List {
        /// Of this server only
        server: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Switch a tool on again
    #[command(after_help = "Example:\n  toolwarden tools enable github:create_issue")]
    Enable {
        /// SERVER:TOOL, SERVER:* or, on every server, TOOL
        tool: String,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Switch a tool off for everyone, whatever else says
    #[command(after_help = "Example:\n  toolwarden tools disable github:create_issue")]
    Disable {
        /// SERVER:TOOL, SERVER:* or, on every server, TOOL
        tool: String,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Say which agents may use a tool, beside their allowlists
    #[command(after_help = "Example:\n  toolwarden tools scope github:create_issue pm")]
    Scope {
        /// SERVER:TOOL
        tool: String,
        /// none takes back what was set
        #[arg(value_parser = ["sandbox", "pm", "both", "none"])]
        scope: String,
        #[command(flatten)]
        change: ChangeArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Show what changed, or is new, and waits for a person
    #[command(
        after_help = "Example:\n  toolwarden tools diff github:create_issue\n\nEvery version that waits is compared with the one that was accepted last. `offered now` marks the version the server offered when it was last looked at."
    )]
    Diff {
        /// SERVER, or SERVER:TOOL
        definition: Option<String>,
        #[command(flatten)]
        format: Format,
    },
    /// Accept what changed: clients are shown it from now on, and calls are no longer held for it
    #[command(
        after_help = "Example:\n  toolwarden tools accept github:create_issue\n\nEverything that waits at a server is accepted by the command that `toolwarden tools diff SERVER` ends with: it names what was shown, so that nothing the server lists meanwhile is accepted along. Where another version is offered by now than the one that is accepted, that one goes on waiting."
    )]
    Accept {
        /// SERVER for everything that waits, or SERVER:TOOL
        definition: String,
        /// The version as `tools diff` shows it: of a definition where several wait, of a server where several
        /// definitions wait
        #[arg(long, value_name = "VERSION")]
        version: Option<String>,
        #[command(flatten)]
        format: Format,
    },
}

/// Look at open conversations with clients, and put them in another mode
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden sessions list\n  toolwarden sessions mode 0123456789ab review\n\nModern clients (2026-07-28) have no sessions: each of their calls names its mode."
)]
pub enum SessionsCommand {
    /// List every open session: who speaks, at which server, in which mode
    #[command(after_help = "Example:\n  toolwarden sessions list --json")]
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Put a session in another mode, which acts on its next call
    #[command(
        after_help = "Examples:\n  toolwarden sessions mode 0123456789ab review\n  toolwarden sessions mode 0123456789ab --none"
    )]
    Mode {
        /// As `sessions list` names it
        id: String,
        /// A mode's slug
        #[arg(required_unless_present = "none")]
        mode: Option<String>,
        /// No mode of its own: the default mode, where there is one
        #[arg(long, conflicts_with = "mode")]
        none: bool,
        #[command(flatten)]
        format: Format,
    },
}
