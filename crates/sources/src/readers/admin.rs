//! The admin record (ALLOW-10): controls a user cannot undo.
//!
//! Takes JSON with comments, or TOML by its extension. Refuses a file that is not root's, that
//! others may write, or that lies in a directory others may write: then Toolwarden does not start.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use toolwarden_core::{Layer, Sourced};
use toolwarden_policy::input::{AdminInput, SandboxingControls};

use super::known::Section;
use super::permissions::{warn_mcp, warn_terminal};
use crate::files::{self, FileError};
use crate::report::{Reading, Report};
use crate::tree::{Format, LARGEST_FILE, Node, Value};

const ROOT: u32 = 0;

/// Why an admin record does not count.
#[derive(Debug, thiserror::Error)]
pub enum AdminFault {
    #[error("the admin file {0}")]
    File(#[from] FileError),
    #[error("the admin file does not exist")]
    Missing,
    #[error("the admin file belongs to user {0}, not to root; run `chown root` on it")]
    NotRoot(u32),
    #[error("the admin file can be changed by others (mode {0:o}); run `chmod go-w` on it")]
    Writable(u32),
    #[error("the admin file's directory can be changed by everyone (mode {0:o}); move the file")]
    OpenDirectory(u32),
}

/// Reads a root-owned admin file from the disk.
///
/// # Errors
/// It is missing, unreadable, not a regular file, not root's, or open to others.
pub fn read_trusted(path: &Path) -> Result<Vec<u8>, AdminFault> {
    read_of(ROOT, path)
}

/// The same for another owner than root: who is not root cannot make a file of root's to test this with.
fn read_of(owner: u32, path: &Path) -> Result<Vec<u8>, AdminFault> {
    let file = files::open(path)?.ok_or(AdminFault::Missing)?;
    let found = file.metadata().map_err(FileError::Read)?;
    if found.uid() != owner {
        return Err(AdminFault::NotRoot(found.uid()));
    }
    if found.mode() & 0o022 != 0 {
        return Err(AdminFault::Writable(found.mode() & 0o777));
    }
    for directory in [path.parent(), files::real(path).parent()].into_iter().flatten() {
        let mode = fs::metadata(directory).map_err(FileError::Read)?.mode();
        if mode & 0o002 != 0 {
            return Err(AdminFault::OpenDirectory(mode & 0o7777));
        }
    }
    Ok(files::read_open(&file, LARGEST_FILE)?)
}

/// Reads an admin record.
#[must_use]
pub fn read_bytes(path: &str, bytes: &[u8]) -> Reading<AdminInput> {
    let mut report = Report::strict(path, Layer::Admin);
    let toml = Path::new(path).extension().is_some_and(|extension| extension == "toml");
    let format = if toml { Format::Toml } else { Format::Jsonc };
    let input = report.parse(bytes, format).map(|root| read(&mut report, &root)).unwrap_or_default();
    let broken = report.has_errors();
    report.finish(input, broken)
}

/// Reads an admin record that is kept in the store.
pub(crate) fn read_node(label: &str, root: &Node) -> Reading<AdminInput> {
    let mut report = Report::strict(label, Layer::Admin);
    let input = read(&mut report, root);
    let broken = report.has_errors();
    report.finish(input, broken)
}

fn read(report: &mut Report, root: &Node) -> AdminInput {
    let mut admin = AdminInput::default();
    for (key, node) in report.keys(Section::AdminRecord, "admin", root) {
        let what = key.text.as_str();
        match what {
            "enabled" => admin.enabled = report.boolean(what, node).unwrap_or(true),
            "allowed" => admin.allowed = terminal(report, what, node),
            "blocked" => admin.blocked = terminal(report, what, node),
            "disable_mcp_auto_run" => admin.disable_mcp_auto_run = report.boolean(what, node).unwrap_or(true),
            "delete_file_protection" => admin.delete_file_protection = report.boolean(what, node).unwrap_or(true),
            "enable_run_everything" => admin.enable_run_everything = report.boolean(what, node) == Some(true),
            "mcp_tool_allowlist" => {
                admin.mcp_tool_allowlist = report.texts(what, node).unwrap_or_default();
                // What an admin lists is whole tools.
                let fault = |text: &str| toolwarden_core::Entry::parse(text).err().map(|fault| fault.to_string());
                warn_mcp(report, &admin.mcp_tool_allowlist, fault);
            }
            "sandboxing_controls" => admin.sandboxing = read_sandboxing(report, node),
            "browser_protection" => admin.browser_protection = report.boolean(what, node).unwrap_or(true),
            _ => report.unread(key),
        }
    }
    say_when_off(report, root, &admin);
    admin
}

/// A record that nobody switched on controls nothing, which whoever wrote it must have said.
fn say_when_off(report: &mut Report, root: &Node, admin: &AdminInput) {
    let is_said = root.get("enabled").is_some();
    let has_controls = matches!(&root.value, Value::Table(keys) if keys.len() > usize::from(is_said));
    if admin.enabled || !has_controls {
        return;
    }
    if is_said {
        report.warning(root.place, "admin_off", "`enabled` is false: none of these controls acts");
    } else {
        report.error(root.place, "missing_key", "the record does not say `enabled`, so none of its controls would act");
        report.help("add `enabled = true`, or `enabled = false` to keep them switched off");
    }
}

fn terminal(report: &mut Report, what: &str, node: &Node) -> Vec<Sourced<String>> {
    let entries = report.texts(what, node).unwrap_or_default();
    warn_terminal(report, &entries);
    entries
}

fn read_sandboxing(report: &mut Report, node: &Node) -> SandboxingControls {
    let mut controls = SandboxingControls::default();
    for (key, value) in report.keys(Section::SandboxingControls, "sandboxing_controls", node) {
        match key.text.as_str() {
            "denied_domains" => controls.denied_domains = report.texts(&key.text, value).unwrap_or_default(),
            _ => report.unread(key),
        }
    }
    controls
}

#[cfg(test)]
#[path = "admin_tests.rs"]
mod tests;
