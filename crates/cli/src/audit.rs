//! The arguments of `audit`: which rows, how many, in what form.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;

use super::Format;

/// Look at the record of calls and changes
#[derive(Debug, Subcommand)]
#[command(
    after_help = "Examples:\n  toolwarden audit query --since 1h --decision deny\n  toolwarden audit tail\n  toolwarden audit verify"
)]
pub enum AuditCommand {
    /// Show rows, newest first
    #[command(after_help = "Example:\n  toolwarden audit query --tool github:create_issue --since 1d --json")]
    Query {
        #[command(flatten)]
        rows: RowArguments,
        /// At most so many rows
        #[arg(long, value_name = "N", default_value_t = 50)]
        limit: u32,
        #[command(flatten)]
        format: Format,
    },
    /// Show the last rows, then new ones as they come
    #[command(after_help = "Example:\n  toolwarden audit tail --decision deny --json")]
    Tail {
        #[command(flatten)]
        rows: RowArguments,
        /// So many rows of the past first
        #[arg(long, short = 'n', value_name = "N", default_value_t = 10)]
        lines: u32,
        #[command(flatten)]
        format: Format,
    },
    /// Count decisions, statuses, tools and users
    #[command(after_help = "Example:\n  toolwarden audit stats --since 7d")]
    Stats {
        #[command(flatten)]
        rows: RowArguments,
        #[command(flatten)]
        format: Format,
    },
    /// Write rows to stdout, oldest first
    #[command(after_help = "Example:\n  toolwarden audit export --format csv --since 30d > calls.csv")]
    Export {
        #[command(flatten)]
        rows: RowArguments,
        /// What the lines look like
        #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
        format: ExportFormat,
    },
    /// Check that nothing in the record was changed, removed or put in
    #[command(after_help = "Example:\n  toolwarden audit verify\n\nExits with 0 only if every chain is whole.")]
    Verify {
        #[command(flatten)]
        format: Format,
    },
}

/// Which rows.
#[derive(Debug, Clone, Args)]
pub struct RowArguments {
    /// Only this decision: allow, hold or deny
    #[arg(long, value_name = "DECISION", value_parser = NonEmptyStringValueParser::new())]
    pub decision: Option<String>,
    /// Only calls that ended so: ok, tool_error, upstream_error, timeout, denied, held, ..
    #[arg(long, value_name = "STATUS", value_parser = NonEmptyStringValueParser::new())]
    pub status: Option<String>,
    /// Only this tool, as SERVER:TOOL; either side may be `*`
    #[arg(long, value_name = "SERVER:TOOL", value_parser = NonEmptyStringValueParser::new())]
    pub tool: Option<String>,
    /// Only this server
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub server: Option<String>,
    /// Only calls made for this user
    #[arg(long, value_name = "USER", value_parser = NonEmptyStringValueParser::new())]
    pub user: Option<String>,
    /// Only intent (calls that left), refusal or event
    #[arg(long, value_name = "KIND", value_parser = NonEmptyStringValueParser::new())]
    pub kind: Option<String>,
    /// Only in this mode
    #[arg(long, value_name = "SLUG")]
    pub mode: Option<String>,
    /// Only of agents with this role
    #[arg(long, value_name = "ROLE")]
    pub role: Option<String>,
    /// Only of the bearer of this token
    #[arg(long, value_name = "ID")]
    pub token: Option<String>,
    /// Not before: a span such as 30m, 1h or 7d ago, or an RFC 3339 time
    #[arg(long, value_name = "WHEN")]
    pub since: Option<When>,
    /// Before: a span ago, or an RFC 3339 time
    #[arg(long, value_name = "WHEN")]
    pub until: Option<When>,
}

/// A time as people say it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// So long before now, or after it.
    Span(Duration),
    At(Timestamp),
}

impl When {
    /// In the past.
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Span(span) => now.checked_sub(span).unwrap_or(Timestamp::UNIX_EPOCH),
            Self::At(time) => time,
        }
    }

    /// In the future.
    pub fn after(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Span(span) => now.checked_add(span).unwrap_or(Timestamp::MAX),
            Self::At(time) => time,
        }
    }
}

impl FromStr for When {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(time) = text.parse() {
            return Ok(Self::At(time));
        }
        let split = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at_checked(split).unwrap_or((text, ""));
        let factor = match unit {
            "s" => Some(1),
            "m" => Some(60),
            "h" => Some(60 * 60),
            "d" => Some(24 * 60 * 60),
            "w" => Some(7 * 24 * 60 * 60),
            _ => None,
        };
        let seconds = digits.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
        seconds.map(|seconds| Self::Span(Duration::from_secs(seconds))).ok_or_else(|| {
            "write a span such as 90s, 30m, 1h, 7d or 2w, or a time such as 2026-11-15T08:00:00Z".to_owned()
        })
    }
}

/// The forms of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// One JSON object per line
    Jsonl,
    /// A table for spreadsheets
    Csv,
    /// API Activity of the Open Cybersecurity Schema Framework, one JSON object per line
    Ocsf,
    /// Lines of syslog (RFC 5424) with structured data
    Syslog,
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
