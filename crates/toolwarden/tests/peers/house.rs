//! A home of its own for one test: the configuration, the gateway, and what the gateway left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::processes::Program;

/// Everything runs, and servers may ask for everything: what is left is what the gateway does to messages.
pub const PERMISSIVE: &str = "[auto_run]\nmode = \"run_everything\"\n";
/// For servers with more tools for clients that offer more: to a pinned one those of the second client are new.
pub const FOLLOWED: &str = "definitions = \"follow\"\n";
pub const MAY_ASK: &str = "may_ask = [\"elicitation\", \"url\", \"sampling\", \"roots\"]\n";

/// The workspace's root.
pub fn root() -> PathBuf {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_directory.ancestors().nth(2).unwrap_or(crate_directory).to_path_buf()
}

/// A fresh home and working directory.
pub struct House {
    directory: TempDir,
}

/// A running `toolwarden serve`.
pub struct Gateway {
    program: Program,
    base: String,
}

impl House {
    /// A home whose configuration is this.
    pub fn new(config: &str) -> Self {
        let directory = TempDir::new();
        assert!(directory.is_ok(), "{directory:?}");
        let Ok(directory) = directory else { unreachable!("asserted") };
        let house = Self { directory };
        house.write("space/note.txt", "A note for the filesystem server.\n");
        house.configure(config);
        house
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap_or_default().join(relative)
    }

    pub fn shown(&self, relative: &str) -> String {
        self.path(relative).to_string_lossy().into_owned()
    }

    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        let parent = path.parent().unwrap_or(Path::new("/"));
        assert!(fs::create_dir_all(parent).is_ok() && fs::write(&path, text).is_ok(), "{}", path.display());
    }

    pub fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap_or_default()
    }

    pub fn configure(&self, config: &str) {
        self.write("home/.config/toolwarden/toolwarden.toml", config);
    }

    /// A program that lives in this home.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.path("space")).env("HOME", self.path("home"));
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "TOOLWARDEN_LOG"] {
            command.env_remove(name);
        }
        command
    }

    /// Starts the gateway on a port of the system's choice.
    pub fn serve(&self) -> Gateway {
        let mut command = self.command(env!("CARGO_BIN_EXE_toolwarden"));
        let program = Program::start(command.args(["serve", "--listen", "127.0.0.1:0"]));
        let line = program.line_with("all servers").unwrap_or_default();
        let base = line.split_whitespace().last().and_then(|url| url.strip_suffix("/mcp")).unwrap_or_default();
        assert!(base.starts_with("http://127.0.0.1:"), "the gateway did not start\n{}", program.log());
        Gateway { base: base.to_owned(), program }
    }

    /// What the fixture server says reached it, in a file that it appends to.
    pub fn recorded(&self) -> Vec<String> {
        self.read("record").lines().map(str::to_owned).collect()
    }

    /// Waits until the record has this line: servers learn of some things after the client has left.
    pub fn await_record(&self, line: &str) {
        for _ in 0..250 {
            if self.recorded().iter().any(|recorded| recorded == line) {
                return;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(20));
        }
        assert!(self.recorded().iter().any(|recorded| recorded == line), "no `{line}` in {:?}", self.recorded());
    }

    /// The journal after every process that writes to it has ended: whole, and with an intent for each
    /// call that reached the fixture server. Gives its records.
    pub fn audited(&self) -> Vec<Value> {
        let journal = self.path("home/.local/share/toolwarden/journal");
        let ran = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
            .args(["audit", "verify"])
            .current_dir(self.path(""))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .output();
        let said = ran.as_ref().map(|ran| String::from_utf8_lossy(&ran.stdout).into_owned()).unwrap_or_default();
        let whole = ran.as_ref().is_ok_and(|ran| ran.status.success()) && said.contains("whole");
        assert!(whole, "the journal does not verify: {ran:?}");
        let records = journal_records(&journal);
        let mut intents: Vec<String> = records.iter().filter_map(intent).collect();
        for call in self.recorded().iter().filter(|line| !line.starts_with("cancelled ")) {
            // The journal names tools; of a resource, prompt or completion it has the method and a digest.
            let method = call.split(' ').next().unwrap_or_default();
            let wanted = if method == "tools/call" { call.clone() } else { format!("{method} {method}") };
            let place = intents.iter().position(|intent| *intent == wanted);
            assert!(place.is_some(), "`{call}` reached the server without an intent among {intents:#?}");
            let _ = place.map(|place| intents.swap_remove(place));
        }
        records
    }
}

impl Gateway {
    /// The address of a door: `/mcp`, `/mcp/{server}`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Ends the gateway, so that its journal is closed.
    pub fn stop(self) {
        let log = self.program.log();
        drop(self.program);
        assert!(!log.contains("panicked"), "{log}");
    }
}

/// The records of every node, in the order they stand there.
fn journal_records(journal: &Path) -> Vec<Value> {
    let list = |path: &Path| -> Vec<PathBuf> {
        let mut paths: Vec<_> = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let files = list(journal).into_iter().filter(|path| path.is_dir()).flat_map(|node| list(&node));
    let texts = files.filter_map(|file| fs::read_to_string(file).ok());
    let record = |line: &str| serde_json::from_str(line.split_once(' ')?.1).ok();
    texts.flat_map(|text| text.lines().filter_map(record).collect::<Vec<Value>>()).collect()
}

/// An intent in the words of the fixture's record: `METHOD NAME`.
fn intent(record: &Value) -> Option<String> {
    let field = |name: &str| record.get(name).and_then(Value::as_str);
    let is_intent = field("kind") == Some("intent");
    is_intent.then(|| format!("{} {}", field("method").unwrap_or_default(), field("tool").unwrap_or_default()))
}
