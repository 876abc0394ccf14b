//! A fresh home, workspace and data directory for one test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A place of its own for one test.
pub struct House {
    directory: TempDir,
}

/// What a run of the program gave.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl House {
    pub fn new() -> Self {
        let directory = TempDir::new();
        assert!(directory.is_ok());
        let Ok(directory) = directory else { unreachable!("asserted") };
        let house = Self { directory };
        for part in ["home", "space"] {
            assert!(fs::create_dir_all(house.path(part)).is_ok());
        }
        house
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap_or_default().join(relative)
    }

    /// Writes a file below the test's directory, such as `home/.cursor/permissions.json`.
    pub fn write(&self, relative: &str, text: &str) -> &Self {
        let path = self.path(relative);
        let parent = path.parent().unwrap_or(Path::new("/"));
        assert!(fs::create_dir_all(parent).is_ok() && fs::write(&path, text).is_ok(), "{}", path.display());
        self
    }

    pub fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap_or_default()
    }

    /// Runs the program in the workspace; the test's own paths are shown as `~~`.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
            .args(arguments)
            .current_dir(self.path("space"))
            .env_clear()
            .env("HOME", self.path("home"))
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .output();
        assert!(output.is_ok(), "{output:?}");
        let Ok(output) = output else { unreachable!("asserted") };
        let root = self.path("").to_string_lossy().trim_end_matches('/').to_owned();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(&root, "~~");
        Ran { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// A run with its exit code and both outputs, for snapshots.
    pub fn shown(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        let mut text = format!("$ toolwarden {}\n{}", arguments.join(" "), ran.out);
        if !ran.err.is_empty() {
            text.push_str("--- stderr\n");
            text.push_str(&ran.err);
        }
        format!("{text}[exit {}]\n", ran.code)
    }

    /// The decision, reason and exit code of an `explain --json`.
    pub fn decision(&self, arguments: &[&str]) -> String {
        let json = self.json(arguments);
        let field = |name: &str| json.get(name).and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        format!("{} {}", field("decision"), field("reason"))
    }

    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let mut all = arguments.to_vec();
        all.push("--json");
        let ran = self.run(&all);
        let parsed = serde_json::from_str(&ran.out);
        assert!(parsed.is_ok(), "{:?}\n{}\n{}", arguments, ran.out, ran.err);
        let json: serde_json::Value = parsed.unwrap_or_default();
        let expected = match json.get("decision").and_then(|decision| decision.as_str()) {
            Some("deny") => 3,
            Some("hold") => 4,
            Some(_) => 0,
            None => ran.code,
        };
        assert_eq!(ran.code, expected, "{arguments:?}");
        json
    }
}

/// Seed 004's permissions.json, with a comment.
pub const PERMISSIONS: &str = r#"{
  // What I decided is always safe.
  "mcpAllowlist": ["github:create_issue", "linear:*"],
  "terminalAllowlist": ["git", "npm:install*", "ls"],
  "autoRun": {
    "allow_instructions": ["Read-only inspections of build artifacts under ./dist are fine."],
    "block_instructions": ["Always pause delete operations so I get a chance to review them."]
  }
}
"#;
