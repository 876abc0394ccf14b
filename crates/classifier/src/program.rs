//! A program of this machine that is asked: JSON on its stdin, JSON on its stdout.
//!
//! Never through a shell, with an environment of three variables, in a process group of its own that ends with the question.
//! What it says on stderr is not read.

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use crate::Failure;
use crate::question::{PROMPT_VERSION, Prompt};

/// What of an environment a program gets.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];
const LARGEST: u64 = 16 * 1024;

#[derive(Debug)]
pub(crate) struct Program {
    command: Vec<String>,
    environment: BTreeMap<String, String>,
}

impl Program {
    pub(crate) fn new(command: &[String], environment: &BTreeMap<String, String>) -> Self {
        let kept = environment.iter().filter(|(name, _)| INHERITED.contains(&name.as_str()));
        let environment = kept.map(|(name, value)| (name.clone(), value.clone())).collect();
        Self { command: command.to_vec(), environment }
    }

    /// What it is told on stdin.
    pub(crate) fn body(model: &str, prompt: &Prompt) -> String {
        serde_json::json!({
            "prompt_version": PROMPT_VERSION,
            "model": model,
            "system": prompt.system,
            "question": prompt.text,
            "mark": prompt.mark,
        })
        .to_string()
    }

    /// Asks it; dropped before it answered, it ends with everything it started.
    pub(crate) async fn ask(&self, body: String) -> Result<String, Failure> {
        let mut child = self.start().map_err(|error| {
            tracing::warn!("the classifier's program cannot be started: {}", error.kind());
            Failure::Unreachable
        })?;
        let group = Group::of(&child);
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else { return Err(Failure::Program) };
        let telling = async move {
            // A program that does not want to hear everything may still answer.
            let _ = stdin.write_all(body.as_bytes()).await;
            let _ = stdin.shutdown().await;
        };
        let mut said = Vec::new();
        let mut hearing = stdout.take(LARGEST + 1);
        let (_, heard) = tokio::join!(telling, hearing.read_to_end(&mut said));
        heard.map_err(|_| Failure::Program)?;
        if said.len() as u64 > LARGEST {
            return Err(Failure::AnswerTooLong);
        }
        let status = child.wait().await.map_err(|_| Failure::Program)?;
        drop(group);
        if !status.success() {
            return Err(Failure::Program);
        }
        String::from_utf8(said).map_err(|_| Failure::Answer("no text"))
    }

    fn start(&self) -> io::Result<Child> {
        let mut words = self.command.iter();
        let mut command = Command::new(words.next().ok_or(io::ErrorKind::NotFound)?);
        command.args(words).env_clear().envs(&self.environment).process_group(0).kill_on_drop(true);
        // Not where the gateway was started: that may be somebody's workspace.
        command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn()
    }
}

/// What the program started ends with it.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0.take() {
            // The only failure is that nobody is left to signal.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}
