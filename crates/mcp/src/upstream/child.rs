//! A server that runs as a child process and speaks over its pipes.
//!
//! Takes a `ChildSpec`; gives a `Child` to send to and a receiver of its lines. The child gets no environment but
//! what it is given, and a process group of its own, so that whatever it started ends with it. A line over the limit
//! ends the child. Dropping the `Child` kills the group.

mod group;
mod log;
mod tasks;

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::process::Command;
use tokio::sync::{mpsc, watch};
use toolwarden_core::{Secret, Weakness, weak};

use self::group::Group;
use crate::compose::Wire;

/// How to start a server.
#[derive(Debug, Clone)]
pub struct ChildSpec {
    pub server: Arc<str>,
    pub command: String,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, Secret)>,
    /// What it gets of our own environment: names and values chosen by the caller.
    pub inherited: Vec<(String, String)>,
    pub directory: Option<PathBuf>,
    pub limits: ChildLimits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChildLimits {
    pub max_line_bytes: usize,
    /// So many messages wait on each side before the sender has to.
    pub queue: usize,
    /// How long a child may take to end by itself, and again after it was asked to.
    pub grace: Duration,
}

impl ChildLimits {
    pub const DEFAULT: Self = Self { max_line_bytes: 16 * 1024 * 1024, queue: 1024, grace: Duration::from_secs(2) };
}

#[derive(Debug, thiserror::Error)]
pub enum ChildError {
    #[error(
        "the server `{server}` cannot be started: the command `{command}` was not found; install it, or write its full path as the server's command"
    )]
    NotFound { server: Arc<str>, command: String },
    #[error(
        "the server `{server}` cannot be started: `{command}` may not be executed; make it executable, or name its interpreter as the command"
    )]
    NotExecutable { server: Arc<str>, command: String },
    #[error(
        "the server `{server}` cannot be started: its directory `{directory}` does not exist; create it or correct the server's `cwd`"
    )]
    NoDirectory { server: Arc<str>, directory: String },
    #[error("the server `{server}` cannot be started: {reason}")]
    Start { server: Arc<str>, reason: io::Error },
    #[error("the server `{server}` has ended")]
    Ended { server: Arc<str> },
}

/// Why a child is no longer there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct Exit {
    pub cause: ExitCause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExitCause {
    #[error("it ended with status {0}")]
    Status(i32),
    #[error("it was ended by signal {0}")]
    Signal(i32),
    #[error("it wrote a line longer than {limit} bytes and was ended")]
    LineTooLong { limit: usize },
    #[error("its end could not be observed")]
    Unknown,
}

/// A running server. Dropping it kills the process and everything it started.
pub struct Child {
    server: Arc<str>,
    messages: mpsc::Sender<Bytes>,
    closing: watch::Sender<bool>,
    exit: watch::Receiver<Option<Exit>>,
    group: Arc<Group>,
    grace: Duration,
    directory: Option<PathBuf>,
    last: log::LastLine,
}

/// How a child ended that was to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    pub exit: Exit,
    /// Where it was started; none = where this process was.
    pub directory: Option<PathBuf>,
    /// The last line it wrote to its error output, as it is shown in the log.
    pub last_line: Option<String>,
}

impl Child {
    /// Starts a server. The receiver gives its lines and ends after the last of them.
    ///
    /// # Errors
    /// The command cannot be started; the error says what to do.
    pub fn spawn(spec: &ChildSpec) -> Result<(Self, mpsc::Receiver<Bytes>), ChildError> {
        if let Some(directory) = spec.directory.as_ref().filter(|directory| !directory.is_dir()) {
            let directory = directory.display().to_string();
            return Err(ChildError::NoDirectory { server: spec.server.clone(), directory });
        }
        let process = command(spec).spawn().map_err(|error| start_error(spec, error))?;
        let (messages, queued) = mpsc::channel(spec.limits.queue);
        let (lines, received) = mpsc::channel(spec.limits.queue);
        let (closing, is_closing) = watch::channel(false);
        let (ended, exit) = watch::channel(None);
        let group = Arc::new(Group::of(&process));
        let last = log::LastLine::default();
        let (ours, words) = (group.clone(), last.clone());
        tasks::start(process, spec, tasks::Ends { queued, lines, is_closing, ended, group: ours, last: words });
        let (server, grace, directory) = (spec.server.clone(), spec.limits.grace, spec.directory.clone());
        let child = Self { server, messages, closing, exit, group, grace, directory, last };
        Ok((child, received))
    }

    /// Queues one message; waits while the queue is full.
    ///
    /// # Errors
    /// The server has ended or is ending.
    pub async fn send(&self, wire: Wire) -> Result<(), ChildError> {
        let sent = self.messages.send(wire.into_bytes()).await;
        sent.map_err(|_| ChildError::Ended { server: self.server.clone() })
    }

    /// Queues one message, or says that there is no room for it.
    ///
    /// # Errors
    /// The server has ended, or does not read what is sent to it.
    pub fn send_now(&self, wire: Wire) -> Result<(), ChildError> {
        let sent = self.messages.try_send(wire.into_bytes());
        sent.map_err(|_| ChildError::Ended { server: self.server.clone() })
    }

    #[must_use]
    pub fn server(&self) -> &Arc<str> {
        &self.server
    }

    /// Holds why the server ended, once it has.
    #[must_use]
    pub fn exit(&self) -> watch::Receiver<Option<Exit>> {
        self.exit.clone()
    }

    /// Ends the server: closes its input, waits, asks the group to end, waits, kills the group.
    pub async fn end(&self) -> Exit {
        self.closing.send_replace(true);
        if let Some(exit) = self.exit_within(self.grace).await {
            return exit;
        }
        self.group.terminate();
        if let Some(exit) = self.exit_within(self.grace).await {
            return exit;
        }
        self.group.kill();
        // A killed process ends unless the system holds it; a caller must not wait for that.
        self.exit_within(self.grace).await.unwrap_or(Exit { cause: ExitCause::Unknown })
    }

    /// How it ended, where it does so within a moment.
    pub async fn ending(&self) -> Option<Ending> {
        let exit = self.exit_within(self.grace).await?;
        let last_line = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Some(Ending { exit, directory: self.directory.clone(), last_line })
    }

    async fn exit_within(&self, within: Duration) -> Option<Exit> {
        let mut exit = self.exit.clone();
        let waited = tokio::time::timeout(within, exit.wait_for(Option::is_some)).await;
        match waited {
            Ok(Ok(exit)) => *exit,
            Ok(Err(_)) => Some(Exit { cause: ExitCause::Unknown }),
            Err(_) => None,
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.group.kill();
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Child").field("server", &self.server).finish_non_exhaustive()
    }
}

fn command(spec: &ChildSpec) -> Command {
    let mut command = Command::new(&spec.command);
    if !weak::is(Weakness::Children) {
        command.env_clear();
    }
    command.args(&spec.arguments).process_group(0).kill_on_drop(true);
    command.envs(spec.inherited.iter().map(|(name, value)| (name, value)));
    command.envs(spec.environment.iter().map(|(name, secret)| (name, secret.reveal_to_upstream())));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(directory) = &spec.directory {
        command.current_dir(directory);
    }
    command
}

fn start_error(spec: &ChildSpec, reason: io::Error) -> ChildError {
    let (server, command) = (spec.server.clone(), spec.command.clone());
    match reason.kind() {
        io::ErrorKind::NotFound => ChildError::NotFound { server, command },
        io::ErrorKind::PermissionDenied => ChildError::NotExecutable { server, command },
        _ => ChildError::Start { server, reason },
    }
}

#[cfg(test)]
#[path = "child_tests.rs"]
mod tests;
