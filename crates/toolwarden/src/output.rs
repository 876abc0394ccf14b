//! How answers, findings and errors look. Data goes to stdout, errors to stderr.

use std::fmt;
use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;
use toolwarden_control::Remark;
use toolwarden_core::Decision;
use toolwarden_core::name::{shown, shown_json};
use toolwarden_policy::Finding;

pub use toolwarden_watch::words::in_one_line;

use crate::environment;

/// What a command ends with (INTERFACES: exit codes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Done,
    Failed,
    BadInput,
    Deny,
    Hold,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::BadInput => 2,
            Exit::Deny => 3,
            Exit::Hold => 4,
        })
    }
}

impl From<Decision> for Exit {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Done,
            Decision::Hold => Self::Hold,
            Decision::Deny => Self::Deny,
        }
    }
}

/// An error that is the input's fault: exit 2.
#[derive(Debug)]
pub struct BadInput(pub String);

impl fmt::Display for BadInput {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for BadInput {}

/// An error as scripts read it.
#[derive(Serialize)]
struct Failure<'a> {
    error: &'static str,
    message: &'a str,
}

/// Prints an error and says how the program ends. Scripts that read JSON get it there, too.
pub fn report(error: &anyhow::Error, for_scripts: bool) -> Exit {
    // It may repeat what a file or a server says.
    let said = format!("{error:#}").lines().map(|line| shown(line).into_owned()).collect::<Vec<_>>().join("\n");
    let _ = writeln!(std::io::stderr(), "toolwarden: {said}");
    let (exit, code) = match error.downcast_ref::<BadInput>() {
        Some(_) => (Exit::BadInput, "bad_input"),
        None => (Exit::Failed, "failed"),
    };
    if for_scripts {
        // Where it cannot be printed the words and the code say it.
        let _ = json(&Failure { error: code, message: &said });
    }
    exit
}

/// Prints a value as JSON.
pub fn json(value: &impl Serialize) -> Result<()> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    self::text(&shown_json(&text))
}

/// Prints text as it is. A reader who has gone away changes neither the answer nor the exit code.
pub fn text(text: &str) -> Result<()> {
    text_read(text).map(drop)
}

/// Prints text and says whether anybody still reads.
pub fn text_read(text: &str) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        Err(_) => Ok(false),
        Ok(()) => Ok(true),
    }
}

/// Prints a remark beside the answer.
pub fn remark(text: &str) {
    // A remark that cannot be shown is no reason to fail.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The same, and the line goes on.
pub fn remark_begun(text: &str) {
    let mut err = std::io::stderr();
    let _ = write!(err, "{text}").and_then(|()| err.flush());
}

/// As much of a text as fits.
pub fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A word in colour, on a terminal.
pub fn coloured(word: &str, colour: Colour) -> String {
    if environment::wants_colour() { format!("\u{1b}[{}m{word}\u{1b}[0m", colour.code()) } else { word.to_owned() }
}

#[derive(Debug, Clone, Copy)]
pub enum Colour {
    Green,
    Yellow,
    Red,
    Dim,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Green => "1;32",
            Self::Yellow => "1;33",
            Self::Red => "1;31",
            Self::Dim => "2",
        }
    }

    pub fn of(decision: Decision) -> Self {
        match decision {
            Decision::Allow => Self::Green,
            Decision::Hold => Self::Yellow,
            Decision::Deny => Self::Red,
        }
    }
}

/// One finding as JSON.
#[derive(Debug, Serialize)]
pub struct FindingOut {
    pub severity: &'static str,
    pub code: &'static str,
    pub source: String,
    pub line: u32,
    pub column: u32,
    pub message: String,
    pub suggestion: Option<String>,
}

impl From<&Finding> for FindingOut {
    fn from(finding: &Finding) -> Self {
        Self {
            severity: finding.severity.as_str(),
            code: finding.code,
            source: finding.origin.source.to_string(),
            line: finding.origin.line,
            column: finding.origin.column,
            message: finding.message.clone(),
            suggestion: finding.suggestion.clone(),
        }
    }
}

/// One finding as people read it: place, what, what to do.
pub fn finding_text(finding: &Finding) -> String {
    remark_text(&Remark::from(finding))
}

/// The same without colours, for texts that go into others: a log, a record, an answer.
pub fn plain_finding_text(finding: &Finding) -> String {
    remark_in(&Remark::from(finding), |word, _| word.to_owned())
}

/// The same for a finding that travelled.
pub fn remark_text(finding: &Remark) -> String {
    remark_in(finding, coloured)
}

fn remark_in(finding: &Remark, coloured: impl Fn(&str, Colour) -> String) -> String {
    let place = match (finding.line, finding.column) {
        (0, _) => shown(&finding.source).into_owned(),
        (line, column) => format!("{}:{line}:{column}", shown(&finding.source)),
    };
    let colour = match finding.severity.as_str() {
        "error" => Colour::Red,
        "warning" => Colour::Yellow,
        _ => Colour::Dim,
    };
    let help = finding.suggestion.as_ref().map(|help| format!("\n  help: {}", shown(help))).unwrap_or_default();
    let message = finding.message.lines().map(|line| shown(line).into_owned()).collect::<Vec<_>>().join("\n  ");
    format!("{place}: {}: {message} [{}]{help}", coloured(&finding.severity, colour), finding.code)
}
