//! The arguments of `grants`.

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, Subcommand};

use super::Format;
use super::audit::When;

/// Let calls run without asking, for one run or so many times
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden grants issue github:create_issue --calls 3\n  toolwarden grants issue 'deploy:*' --run r42 --token 0123456789abc --expires 1h\n\nA grant pays where a call is held for want of a standing permission. What always asks (`ask`, `review = \"human\"`, `@hold` rules, protections) asks all the same."
)]
pub enum GrantsCommand {
    /// Issue a grant
    #[command(after_help = "Example:\n  toolwarden grants issue notes:write_note --calls 5 --user ada")]
    Issue(GrantArguments),
    /// List grants, newest first
    #[command(after_help = "Example:\n  toolwarden grants list --json")]
    List {
        #[command(flatten)]
        format: Format,
    },
    /// Take a grant back: the next call asks
    #[command(after_help = "Example:\n  toolwarden grants revoke 0123456789abcdef")]
    Revoke {
        /// As `grants list` shows it
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
        #[command(flatten)]
        format: Format,
    },
}

/// What a grant is for.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("how_far").args(["calls", "run"]).required(true).multiple(true))]
pub struct GrantArguments {
    /// server:tool, or server:*
    #[arg(value_name = "ENTRY", value_parser = NonEmptyStringValueParser::new())]
    pub entry: String,
    /// For so many calls
    #[arg(long, value_name = "N")]
    pub calls: Option<u64>,
    /// For the calls of one run
    #[arg(long, value_name = "ID")]
    pub run: Option<String>,
    /// For the bearer of one token
    #[arg(long, value_name = "ID")]
    pub token: Option<String>,
    /// For the calls of one user [default: your own]
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// How long it counts, as 30m, 1h or 7d, or until when [default: 8h]
    #[arg(long, value_name = "SPAN")]
    pub expires: Option<When>,
    /// Why, for the record
    #[arg(long, value_name = "TEXT")]
    pub note: Option<String>,
    #[command(flatten)]
    pub format: Format,
}
