//! The arguments of `approvals`.

use clap::builder::NonEmptyStringValueParser;
use clap::{Subcommand, ValueEnum};
use toolwarden_core::AnswerScope;

use super::Format;

/// Answer calls that are held for a person
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden approvals watch\n  toolwarden approvals approve 0123456789abcdef\n  toolwarden approvals deny 0123456789abcdef --note 'not on a Friday'\n\nAn answer counts for exactly the call that was shown, once: the agent makes the same call again, or waits for the answer where the config says `[gateway] hold = \"wait\"`."
)]
pub enum ApprovalsCommand {
    /// List held calls, the newest first
    #[command(after_help = "Examples:\n  toolwarden approvals list\n  toolwarden approvals list --state all --json")]
    List {
        /// In this state: held, approved, rejected, expired, cancelled, consumed, dispatched, succeeded, failed, unknown; or all
        #[arg(long, value_name = "STATE", default_value = "held")]
        state: String,
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: u32,
        #[command(flatten)]
        format: Format,
    },
    /// Show a held call: its arguments, who makes it, why it is held, and what can be answered
    #[command(after_help = "Example:\n  toolwarden approvals show 0123456789abcdef")]
    Show {
        /// As `approvals list` shows it
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
        #[command(flatten)]
        format: Format,
    },
    /// Permit a held call
    #[command(
        after_help = "Examples:\n  toolwarden approvals approve 0123456789abcdef\n  toolwarden approvals approve 0123456789abcdef --scope tool --note 'reads only'\n  toolwarden approvals approve 0123456789abcdef --scope narrowed --where path=path:src --free text\n\nEvery argument of the call is named, by --where or --free; a later call with any other argument is held. NAME may be a JSON pointer such as /options/branch. `approvals show` suggests some."
    )]
    Approve {
        /// As `approvals list` shows it
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
        /// What else it permits; `approvals show` says what each means for this call
        #[arg(long, value_enum, default_value_t = Scope::Once)]
        scope: Scope,
        /// With `--scope narrowed`: what an argument must be like; KIND is equals, path (below this directory), host or branch (this one, or below it)
        #[arg(long = "where", value_name = "NAME=KIND:VALUE", value_parser = NonEmptyStringValueParser::new())]
        conditions: Vec<String>,
        /// With `--scope narrowed`: an argument that may be anything
        #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
        free: Vec<String>,
        /// Why, for the record
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Also where the call may have run already, and nobody knows
        #[arg(long)]
        again: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Refuse a held call
    #[command(
        after_help = "Examples:\n  toolwarden approvals deny 0123456789abcdef --note 'use the staging server'\n  toolwarden approvals deny 0123456789abcdef --remember"
    )]
    Deny {
        /// As `approvals list` shows it
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
        /// And every later call of this tool by the same user, until `toolwarden unblock`
        #[arg(long)]
        remember: bool,
        /// What the agent is told
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        /// Also where somebody permitted it, and the call was not made yet
        #[arg(long)]
        take_back: bool,
        #[command(flatten)]
        format: Format,
    },
    /// Give one person a link to look at a held call and answer it, once
    #[command(
        after_help = "Examples:\n  toolwarden approvals link 0123456789abcdef --user bob\n\nWhoever has the link answers in that person's name: give it to nobody else. It is good for this call alone, as long as that waits."
    )]
    Link {
        /// As `approvals list` shows it
        #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
        id: String,
        /// Whom it is for; you, where nobody is named
        #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
        user: Option<String>,
        /// A group this person is in, where the config names groups as approvers
        #[arg(long = "group", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
        groups: Vec<String>,
        #[command(flatten)]
        format: Format,
    },
    /// How often persons answered as the classifier would have
    #[command(after_help = "Example:\n  toolwarden approvals stats --json")]
    Stats {
        #[command(flatten)]
        format: Format,
    },
    /// Watch held calls as they come, and answer them by key
    #[command(
        after_help = "Examples:\n  toolwarden approvals watch\n  toolwarden approvals watch --json\n\nKeys: arrows, PgUp, PgDn and Space scroll, Tab chooses a call, a approves once, s for this session, t the tool, S the server, n with such arguments, d denies with a note, D blocks the tool, ? shows all keys, q leaves. A call can be approved once all of it was on the screen; permanent answers ask once more. Without a terminal, use --json: one line for each call that comes."
    )]
    Watch {
        #[command(flatten)]
        format: Format,
    },
}

/// What an approval permits besides the call itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Nothing: this call, once
    Once,
    /// The tool, in this session (with a token: in every session of it), for at most 8 hours
    Session,
    /// The tool, from now on
    Tool,
    /// Every tool of the server, from now on
    Server,
    /// The tool with such arguments as --where and --free say, from now on
    Narrowed,
}

impl From<Scope> for AnswerScope {
    fn from(scope: Scope) -> Self {
        match scope {
            Scope::Once => Self::Once,
            Scope::Session => Self::Session,
            Scope::Tool => Self::Tool,
            Scope::Server => Self::Server,
            Scope::Narrowed => Self::Narrowed,
        }
    }
}
