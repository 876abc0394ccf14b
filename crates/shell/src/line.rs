//! What a read command line is made of: simple commands, their words and redirections, and the reasons why
//! a command may never be allowed automatically.
//! Plain data, filled by `read`; nothing here looks at the world.

use std::fmt;

/// Longest command line that is looked at, in bytes.
pub(super) const LONGEST_LINE: usize = 64 * 1024;

/// One command line: every simple command found anywhere in it, in the order their words end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellLine {
    /// The line as it was given.
    pub source: String,
    pub commands: Vec<SimpleCommand>,
    /// Redirections of groups, loops and other compound statements, which belong to no single command.
    pub redirections: Vec<Redirection>,
    /// Words of loops and assignments, which commands may be given by a variable.
    pub other_words: Vec<Word>,
    /// Variables that loops and assignments of the line set, with a value each, in their order.
    pub variables: Vec<(String, Word)>,
    /// `cd`, `pushd` or `popd` occurs: relative paths mean something else afterwards.
    pub changes_directory: bool,
    /// Why the whole line can never be auto-allowed; copied into each command that has no reason of its own.
    pub obstacle: Option<Obstacle>,
}

impl ShellLine {
    /// Every redirection of the line, of commands and of compound statements.
    pub fn all_redirections(&self) -> impl Iterator<Item = &Redirection> {
        self.commands.iter().flat_map(|command| command.redirections.iter()).chain(self.redirections.iter())
    }
}

/// One simple command: a command word, its arguments and redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimpleCommand {
    /// As written, on one line, for display.
    pub text: String,
    /// Set only when the command word is a plain unquoted literal.
    pub name: Option<String>,
    /// The command word with its quotes removed; `None` for a redirection without command.
    pub command_word: Option<Word>,
    pub arguments: Vec<Word>,
    pub redirections: Vec<Redirection>,
    /// Why this command can never be auto-allowed; `None` means an entry may allow it.
    pub obstacle: Option<Obstacle>,
}

impl SimpleCommand {
    /// The unquoted arguments joined by one space: what an entry's glob is compared with.
    pub fn joined_arguments(&self) -> String {
        join(&self.arguments)
    }
}

/// Joins the texts of words by one space.
pub(super) fn join(words: &[Word]) -> String {
    let mut joined = String::new();
    for (position, word) in words.iter().enumerate() {
        if position > 0 {
            joined.push(' ');
        }
        joined.push_str(&word.text);
    }
    joined
}

/// One word. `text` is the unquoted value when `literal`, else the raw source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub literal: bool,
}

impl Word {
    pub(super) fn literal(text: impl Into<String>) -> Self {
        Self { text: text.into(), literal: true }
    }

    pub(super) fn raw(text: impl Into<String>) -> Self {
        Self { text: text.into(), literal: false }
    }
}

/// One redirection to or from a file, or a duplication of a descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub target: Word,
    pub direction: Direction,
}

impl Redirection {
    /// `/dev/null` and descriptor duplication touch no file.
    pub fn is_harmless(&self) -> bool {
        self.direction == Direction::Duplicates || (self.target.literal && self.target.text == "/dev/null")
    }

    pub fn writes(&self) -> bool {
        self.direction == Direction::Writes
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Reads,
    Writes,
    /// `2>&1`, `<&3`, `>&-`
    Duplicates,
}

/// Why a command can never be auto-allowed, whatever the allowlist says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// A variable is set before a command or anywhere in the line.
    Assignment,
    /// The command word is quoted, expanded or otherwise not a plain literal.
    NameNotPlain,
    /// A redirection without a command.
    NoName,
    /// A builtin that evaluates text or changes the state of the shell.
    ShellState(String),
    /// A command that runs another command.
    Wrapper(String),
    /// An option or subcommand that executes something else.
    Executes { command: String, option: String },
    /// An argument of a command with executing options is not literal and could become such an option.
    ArgumentNotLiteral(String),
    /// A function is defined; it could stand in for an allowed command.
    FunctionDefinition,
    /// A construct that is not trusted to be read as every shell reads it.
    Construct(&'static str),
    /// `!` could be replaced from the history of an interactive shell.
    HistoryExpansion,
    /// A relative command is run in a line that changes the directory.
    RelativeAfterDirectoryChange,
    /// An argument reaches a place whose files are executed, such as `.git`.
    ExecutedPlace { command: String, place: String },
    /// A command writes files that the line does not name, where they may be executed.
    Unpacks(String),
    /// An option of a command that writes is not in the table, so it may name another target.
    UnknownOption { command: String, option: String },
    /// Names of files come from a file or from standard input.
    NamesFromFile { command: String, option: String },
    /// An argument of a command that may write, or a directory, cannot be known from the line.
    TargetNotKnown(String),
}

impl Obstacle {
    /// A short stable code, for tables and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Assignment => "assignment",
            Self::NameNotPlain | Self::NoName => "name",
            Self::ShellState(_) => "state",
            Self::Wrapper(_) => "wrapper",
            Self::Executes { .. } => "option",
            Self::ArgumentNotLiteral(_) => "expansion",
            Self::FunctionDefinition => "function",
            Self::Construct(_) => "construct",
            Self::HistoryExpansion => "history",
            Self::RelativeAfterDirectoryChange => "directory",
            Self::ExecutedPlace { .. } => "place",
            Self::Unpacks(_) => "unpacks",
            Self::UnknownOption { .. } => "writer",
            Self::NamesFromFile { .. } => "names",
            Self::TargetNotKnown(_) => "target",
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Assignment => write!(out, "a variable is set, which can change what later commands do"),
            Self::NameNotPlain => write!(out, "the command name is not a plain unquoted word"),
            Self::NoName => write!(out, "a redirection stands without a command"),
            Self::ShellState(name) => write!(out, "`{name}` evaluates text or changes the shell itself"),
            Self::Wrapper(name) => write!(out, "`{name}` runs another command"),
            Self::Executes { command, option } => write!(out, "`{option}` lets `{command}` run something else"),
            Self::ArgumentNotLiteral(name) => {
                write!(out, "an argument of `{name}` is expanded and could become an option that executes")
            }
            Self::FunctionDefinition => write!(out, "a function is defined, which could replace a command"),
            Self::Construct(what) => write!(out, "the line uses {what}"),
            Self::HistoryExpansion => write!(out, "`!` could be replaced from the shell's history"),
            Self::RelativeAfterDirectoryChange => {
                write!(out, "a relative command runs in a line that changes the directory")
            }
            Self::ExecutedPlace { command, place } => {
                write!(out, "`{command}` reaches `{place}`, whose files are executed or decide what is")
            }
            Self::Unpacks(name) => {
                write!(out, "`{name}` writes files that the line does not name, where they may be executed")
            }
            Self::UnknownOption { command, option } => {
                write!(
                    out,
                    "the option `{option}` of `{command}` is not known here, so neither is what would be written"
                )
            }
            Self::NamesFromFile { command, option } => {
                write!(out, "`{option}` lets `{command}` take names from a file, which the line does not show")
            }
            Self::TargetNotKnown(name) => {
                write!(out, "the line does not show which files `{name}` would open")
            }
        }
    }
}

/// Why a line cannot be judged at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unparsable {
    #[error("the command line is longer than 64 KiB")]
    TooLong,
    #[error("the command line is nested too deeply or has too many parts")]
    TooComplex,
    #[error("the command line has a syntax error")]
    Syntax,
    #[error("the command line holds no command")]
    NoCommand,
    #[error("the command line holds control or invisible characters")]
    ControlCharacter,
    #[error("the command line uses {0}, which shells read differently")]
    Ambiguous(&'static str),
}
