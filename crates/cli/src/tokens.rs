//! The arguments of `tokens`: for whom, what for, for how long.

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, Subcommand};

use super::Format;
use super::audit::When;

/// Issue credentials for agents and for persons' clients, and take them back
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden tokens issue --role worker --task t1 --job j1 --expires 1h\n  toolwarden tokens issue --person\n  toolwarden tokens revoke 0123456789abc\n\nA client sends its token as `Authorization: Bearer TOKEN`, or has it in TOOLWARDEN_TOKEN when it starts `toolwarden stdio`. Once a token was issued, clients that show none are refused, unless the config says `[gateway] anonymous_loopback = true`."
)]
pub enum TokensCommand {
    /// Issue a token; it is shown once
    #[command(
        after_help = "Examples:\n  toolwarden tokens issue --role worker --task t1 --job j1 --max-calls 100\n  toolwarden tokens issue --role pm --user ada --json\n  toolwarden tokens issue --person --right approver"
    )]
    Issue(Box<IssueArguments>),
    /// List tokens, newest first
    #[command(after_help = "Example:\n  toolwarden tokens list --json")]
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Give a token another secret; the former one counts no more
    #[command(after_help = "Example:\n  toolwarden tokens rotate 0123456789abc")]
    Rotate {
        /// As `tokens list` shows it
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
        #[command(flatten)]
        format: Format,
    },
    /// Take a token back: its next call is refused
    #[command(after_help = "Example:\n  toolwarden tokens revoke 0123456789abc")]
    Revoke {
        /// As `tokens list` shows it
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
        #[command(flatten)]
        format: Format,
    },
}

/// What a token is good for.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("bearer").args(["role", "person"]).required(true))]
pub struct IssueArguments {
    /// The role of the agent: worker, pm, pa, or one of the config's
    #[arg(long, value_name = "NAME")]
    pub role: Option<String>,
    /// For a person's client, not for an agent
    #[arg(long, conflicts_with = "role")]
    pub person: bool,
    /// Whose calls they are [default for --person: you]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// A group of the user; may be given several times
    #[arg(long = "group", value_name = "NAME")]
    pub groups: Vec<String>,
    /// The task it is bound to
    #[arg(long, value_name = "ID")]
    pub task: Option<String>,
    /// The job it is bound to
    #[arg(long, value_name = "ID")]
    pub job: Option<String>,
    /// The project it is bound to
    #[arg(long, value_name = "ID")]
    pub project: Option<String>,
    /// The run it is bound to
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// The session it is bound to
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// A mode it may use; may be given several times
    #[arg(long = "mode", value_name = "SLUG")]
    pub modes: Vec<String>,
    /// A tool its task was given; may be given several times
    #[arg(long = "task-tool", value_name = "NAME")]
    pub task_tools: Vec<String>,
    /// The directory its calls happen in
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// A control right: admin, approver, auditor, user, viewer; may be given several times [default: none, so that it calls tools and nothing else]
    #[arg(long = "right", value_name = "RIGHT")]
    pub rights: Vec<String>,
    /// Show approval forms in this client, and count its answers
    #[arg(long, requires = "person")]
    pub may_answer: bool,
    /// How long it is good, as 30m, 1h or 7d, or until when
    #[arg(long, value_name = "SPAN")]
    pub expires: Option<When>,
    /// Number of calls it is good for; every round of a call with questions counts
    #[arg(long, value_name = "N")]
    pub max_calls: Option<u64>,
    #[command(flatten)]
    pub format: Format,
}
