//! Child processes that end when the test ends, however it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{park_timeout, spawn};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// How long a program may take to say that it is ready.
const READY: Duration = Duration::from_secs(60);
const STEP: Duration = Duration::from_millis(20);
/// Steps a program has to end by itself once it is asked to.
const PATIENCE: usize = 500;

/// A program in the background, with everything it says.
pub struct Program {
    child: Child,
    lines: Receiver<String>,
    log: Arc<Mutex<String>>,
}

/// What a program left that ran to its end.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Program {
    pub fn start(command: &mut Command) -> Self {
        let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        assert!(started.is_ok(), "{command:?}: {started:?}");
        let Ok(mut child) = started else { unreachable!("asserted") };
        let log = Arc::new(Mutex::new(String::new()));
        let (sender, lines) = channel();
        gather(child.stdout.take(), &log, &sender);
        gather(child.stderr.take(), &log, &sender);
        Self { child, lines, log }
    }

    /// Waits for a line with these words, on either output; none if the program ends before.
    pub fn line_with(&self, words: &str) -> Option<String> {
        while let Ok(line) = self.lines.recv_timeout(READY) {
            if line.contains(words) {
                return Some(line);
            }
        }
        None
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn gather(pipe: Option<impl Read + Send + 'static>, log: &Arc<Mutex<String>>, lines: &Sender<String>) {
    let (log, lines) = (log.clone(), lines.clone());
    let Some(pipe) = pipe else { return };
    spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let mut all = log.lock().unwrap_or_else(PoisonError::into_inner);
            all.push_str(&line);
            all.push('\n');
            drop(all);
            // Nobody waits for a line any more: the log has it.
            let _ = lines.send(line);
        }
    });
}

/// Runs a program to its end; one that takes longer than `limit` fails the test.
pub fn run(command: &mut Command, limit: Duration) -> Ran {
    let started = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    assert!(started.is_ok(), "{command:?}: {started:?}");
    let Ok(mut child) = started else { unreachable!("asserted") };
    let (out, err) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
    let steps = limit.as_millis() / STEP.as_millis();
    let mut code = None;
    for _ in 0..steps {
        code = child.try_wait().ok().flatten();
        if code.is_some() {
            break;
        }
        park_timeout(STEP);
    }
    end(&mut child);
    let text = |pipe: &Receiver<String>| pipe.recv_timeout(READY).unwrap_or_default();
    let ran = Ran { code: code.and_then(|code| code.code()).unwrap_or(-1), out: text(&out), err: text(&err) };
    assert!(code.is_some(), "{command:?} did not end in {limit:?}\n{}\n{}", ran.out, ran.err);
    ran
}

fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, text) = channel();
    spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    text
}

/// Asks a program to end, waits for it, and ends what it leaves behind.
fn end(child: &mut Child) {
    let family = descendants(child.id());
    if matches!(child.try_wait(), Ok(None)) {
        let _ = process(child.id()).map(|id| kill_process(id, Signal::TERM));
    }
    for _ in 0..PATIENCE {
        if !matches!(child.try_wait(), Ok(None)) {
            break;
        }
        park_timeout(STEP);
    }
    let _ = child.kill();
    let _ = child.wait();
    for (id, started) in family {
        let alive = process(id).filter(|id| test_kill_process(*id).is_ok());
        if let Some(id) = alive.filter(|_| status(id).is_some_and(|(_, then)| then == started)) {
            let _ = kill_process(id, Signal::KILL);
        }
    }
}

fn process(id: u32) -> Option<Pid> {
    i32::try_from(id).ok().and_then(Pid::from_raw)
}

/// The children of a process and theirs, each with the time it was started.
fn descendants(root: u32) -> Vec<(u32, u64)> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    let ids = names.filter_map(|name| name.to_str()?.parse::<u32>().ok());
    let all: Vec<(u32, u32, u64)> =
        ids.filter_map(|id| status(id).map(|(parent, started)| (id, parent, started))).collect();
    let mut parents = vec![root];
    let mut found = Vec::new();
    while let Some(parent) = parents.pop() {
        for (id, _, started) in all.iter().filter(|(_, of, _)| *of == parent) {
            parents.push(*id);
            found.push((*id, *started));
        }
    }
    found
}

/// The parent of a process and when it was started.
fn status(id: u32) -> Option<(u32, u64)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let parent = fields.nth(1)?.parse().ok()?;
    Some((parent, fields.nth(17)?.parse().ok()?))
}
