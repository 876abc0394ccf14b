//! Finding the workspace's files.

use std::fs;
use std::path::{Path, PathBuf};

/// The workspace's root.
pub fn root() -> PathBuf {
    let crate_directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    crate_directory.ancestors().nth(2).unwrap_or(crate_directory).to_path_buf()
}

/// A file of the workspace.
pub struct File {
    /// Relative to the root.
    pub path: String,
    pub text: String,
}

/// Every Rust file under `crates/`, `bench/`, `fuzz/` and `tests/`, build products left out.
pub fn rust_files() -> Vec<File> {
    let mut files = Vec::new();
    for part in ["crates", "bench", "fuzz", "tests"] {
        collect(&root().join(part), &mut files);
    }
    files.sort_by(|left, right| left.path.cmp(&right.path));
    assert!(files.len() > 50, "the walk found only {} files", files.len());
    files
}

fn collect(directory: &Path, files: &mut Vec<File>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(root()).unwrap_or(&path).to_string_lossy().into_owned();
            files.push(File { path: relative, text: fs::read_to_string(&path).unwrap_or_default() });
        }
    }
}

pub fn read(relative: &str) -> String {
    let text = fs::read_to_string(root().join(relative));
    assert!(text.is_ok(), "{relative} cannot be read");
    text.unwrap_or_default()
}
