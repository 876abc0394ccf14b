//! A home of its own for one test, the gateway that runs in it, and what can be seen of the gateway from outside.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

/// Everything runs: what is left is what the gateway does under strain.
pub const PERMISSIVE: &str = "[auto_run]\nmode = \"run_everything\"\n";

/// How long anything may take that does end, on a machine that does other things besides.
pub const PATIENCE: Duration = Duration::from_secs(90);

/// A fresh home and working directory.
pub struct House {
    directory: TempDir,
}

/// A `toolwarden serve` that was started, and may not listen yet.
pub struct Starting {
    child: Child,
    lines: UnboundedReceiver<String>,
    log: Arc<Mutex<String>>,
}

/// A running `toolwarden serve`.
pub struct Gateway {
    child: Child,
    base: String,
    log: Arc<Mutex<String>>,
}

/// What a command of a person said.
#[derive(Debug)]
pub struct Said {
    pub succeeded: bool,
    pub out: String,
    pub err: String,
}

impl House {
    /// A home whose configuration is this.
    pub fn new(config: &str) -> Self {
        let directory = TempDir::new();
        assert!(directory.is_ok(), "{directory:?}");
        let Ok(directory) = directory else { unreachable!("asserted") };
        let house = Self { directory };
        house.write("space/note.txt", "");
        house.write("home/.config/toolwarden/toolwarden.toml", config);
        house
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap_or_default().join(relative)
    }

    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        let parent = path.parent().unwrap_or(Path::new("/"));
        assert!(fs::create_dir_all(parent).is_ok() && fs::write(&path, text).is_ok(), "{}", path.display());
    }

    /// Replaces a file as a whole: nobody reads half of it.
    pub fn replace(&self, relative: &str, text: &str) {
        let beside = format!("{relative}.new");
        self.write(&beside, text);
        let replaced = fs::rename(self.path(&beside), self.path(relative));
        assert!(replaced.is_ok(), "{replaced:?}");
    }

    fn command(&self) -> Command {
        // The limit most systems start a program with: what it needs beyond that it must see to itself.
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -S -n 1024 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_toolwarden")]);
        command.current_dir(self.path("space")).env("HOME", self.path("home"));
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TOOLWARDEN_LOG"] {
            command.env_remove(name);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    /// Starts the gateway on a port of the system's choice, and does not wait for it.
    pub fn start(&self) -> Starting {
        let started = self.command().args(["serve", "--listen", "127.0.0.1:0"]).spawn();
        assert!(started.is_ok(), "{started:?}");
        let Ok(mut child) = started else { unreachable!("asserted") };
        let log = Arc::new(Mutex::new(String::new()));
        let (sender, lines) = unbounded_channel();
        gather(child.stdout.take(), &log, &sender);
        gather(child.stderr.take(), &log, &sender);
        Starting { child, lines, log }
    }

    /// Starts the gateway and waits until it listens.
    pub async fn serve(&self) -> Gateway {
        self.start().listening().await
    }

    /// A command of a person, such as `audit verify`.
    pub async fn run(&self, words: &[&str]) -> Said {
        // What it looks at grows with the time.
        let ran = timeout(PATIENCE * soak(), self.command().args(words).output()).await;
        assert!(matches!(ran, Ok(Ok(_))), "{words:?}: {ran:?}");
        let Ok(Ok(output)) = ran else { unreachable!("asserted") };
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Said { succeeded: output.status.success(), out: text(output.stdout), err: text(output.stderr) }
    }
}

fn gather(
    pipe: Option<impl AsyncRead + Unpin + Send + 'static>,
    log: &Arc<Mutex<String>>,
    to: &UnboundedSender<String>,
) {
    let (log, to) = (log.clone(), to.clone());
    let Some(pipe) = pipe else { return };
    tokio::spawn(async move {
        let mut lines = BufReader::new(pipe).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let mut all = log.lock().unwrap_or_else(PoisonError::into_inner);
            all.push_str(&line);
            all.push('\n');
            drop(all);
            // Nobody waits for a line any more: the log has it.
            let _ = to.send(line);
        }
    });
}

fn shown(log: &Mutex<String>) -> String {
    log.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

impl Starting {
    pub async fn listening(mut self) -> Gateway {
        let announced = async {
            while let Some(line) = self.lines.recv().await {
                if line.contains("all servers") {
                    return line;
                }
            }
            String::new()
        };
        let line = timeout(PATIENCE, announced).await.unwrap_or_default();
        let base = line.split_whitespace().last().and_then(|url| url.strip_suffix("/mcp")).unwrap_or_default();
        assert!(base.starts_with("http://127.0.0.1:"), "the gateway did not start\n{}", shown(&self.log));
        let base = base.trim_start_matches("http://").to_owned();
        Gateway { child: self.child, base, log: self.log }
    }

    /// Ends it as it stands, whether it listens or not.
    pub async fn kill(mut self) {
        kill(&mut self.child).await;
    }
}

async fn kill(child: &mut Child) {
    assert!(child.start_kill().is_ok(), "the gateway had ended before it was killed");
    let _ = child.wait().await;
}

impl Gateway {
    /// Host and port.
    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn log(&self) -> String {
        shown(&self.log)
    }

    /// `kill -9`.
    pub async fn kill(mut self) {
        let ended = self.child.try_wait();
        assert!(matches!(ended, Ok(None)), "the gateway ended by itself: {ended:?}\n{}", self.log());
        kill(&mut self.child).await;
        assert!(!self.log().contains("panicked"), "{}", self.log());
    }

    /// Asks the gateway to end, and waits until it has.
    pub async fn stop(mut self) {
        let asked = self.id().and_then(|id| kill_process(id, Signal::TERM).ok());
        assert!(asked.is_some(), "the gateway has no process\n{}", self.log());
        let ended = timeout(PATIENCE, self.child.wait()).await;
        let well = matches!(&ended, Ok(Ok(status)) if ExitStatus::success(status));
        assert!(well && !self.log().contains("panicked"), "the gateway did not end well: {ended:?}\n{}", self.log());
    }

    fn id(&self) -> Option<Pid> {
        self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
    }

    /// Resident memory now, in MiB.
    pub fn memory(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// The most resident memory it ever had, in MiB.
    pub fn peak(&self) -> u64 {
        self.status("VmHWM:")
    }

    /// Files, pipes and connections it has open.
    pub fn open_files(&self) -> usize {
        let path = format!("/proc/{}/fd", self.child.id().unwrap_or_default());
        fs::read_dir(path).map(Iterator::count).unwrap_or_default()
    }

    fn status(&self, field: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id().unwrap_or_default());
        let text = fs::read_to_string(path).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
        let kib: Option<u64> = line.split_whitespace().next().and_then(|number| number.parse().ok());
        assert!(kib.is_some(), "the gateway has no {field}\n{}", self.log());
        kib.unwrap_or_default() / 1024
    }
}

/// As many open files as this process may have: it is client and server at once.
pub fn open_many_files() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let raised = setrlimit(Resource::Nofile, limit);
    assert!(raised.is_ok(), "{raised:?}");
}

/// How many times longer than usual, by `TOOLWARDEN_SOAK`.
pub fn soak() -> u32 {
    #[expect(clippy::disallowed_methods, reason = "tests are told by the environment how long to soak")]
    let soak = std::env::var("TOOLWARDEN_SOAK").ok().and_then(|text| text.parse().ok());
    soak.unwrap_or(1)
}

/// Numbers for those who look, with `--no-capture`.
pub fn report(told: &str) {
    let _ = writeln!(std::io::stderr(), "{told}");
}

/// The fixture server's program, which stands beside ours.
pub fn fixture_program() -> String {
    let path = Path::new(env!("CARGO_BIN_EXE_toolwarden")).with_file_name("toolwarden-fixture-server");
    assert!(path.is_file(), "the fixture server is not built: run `cargo build -p toolwarden-fixture-server`");
    path.to_string_lossy().into_owned()
}

/// A `[servers.NAME]` table for a URL; lines that follow belong to it.
pub fn at_url(name: &str, url: &str) -> String {
    format!("[servers.{name}]\nurl = \"{url}\"\n")
}

/// The same for a shell script with arguments.
pub fn by_script(name: &str, script: &str, arguments: &[&str]) -> String {
    // A JSON string is a TOML string.
    let quoted = |text: &&str| serde_json::Value::from(*text).to_string();
    let words: Vec<String> = ["-c", script, "sh"].iter().chain(arguments).map(quoted).collect();
    format!("[servers.{name}]\ncommand = \"sh\"\nargs = [{}]\n", words.join(", "))
}
