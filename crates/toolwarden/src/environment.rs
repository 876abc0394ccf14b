//! The only place that reads the environment, the working directory and the clock.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Timestamp;
use toolwarden_core::Secret;
use toolwarden_sources::{Locations, WorkspaceTrust};

use crate::output::BadInput;
use toolwarden_cli::Places;

/// An admin record of the whole machine, where there is one.
const SYSTEM_ADMIN_FILE: &str = "/etc/toolwarden/admin.json";

/// Looks everything up once.
pub fn locations(places: &Places, workspace: Option<&Path>) -> Result<Locations> {
    let home = variable("HOME").context("HOME is not set: set it to the directory your permission files are under")?;
    let below_home = |name: &str, default: &str| {
        variable(name).filter(|path| path.is_absolute()).unwrap_or_else(|| home.join(default))
    };
    let working_directory = working_directory()?;
    if let Some(missing) = workspace.filter(|path| !working_directory.join(path).is_dir()) {
        return Err(BadInput(format!("--workspace {}: no such directory", missing.display())).into());
    }
    let user_id = rustix::process::geteuid().as_raw();
    let data_dir = places.data_dir.clone().map(|path| working_directory.join(path));
    let named = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(variable);
    let own = below_home("XDG_CONFIG_HOME", ".config").join("git/config");
    Ok(Locations {
        git_configs: named.map(|path| working_directory.join(path)).chain([own]).collect(),
        config_dir: below_home("XDG_CONFIG_HOME", ".config").join("toolwarden"),
        data_dir: data_dir.unwrap_or_else(|| below_home("XDG_DATA_HOME", ".local/share").join("toolwarden")),
        config: places.config.clone().map(|path| working_directory.join(path)),
        workspace: Some(workspace.map_or_else(|| working_directory.clone(), |path| working_directory.join(path))),
        working_directory,
        user: user_name(user_id),
        user_id,
        system_admin_file: Some(PathBuf::from(SYSTEM_ADMIN_FILE)),
        workspace_trust: if places.trust_workspace { WorkspaceTrust::AsTheyAre } else { WorkspaceTrust::Recorded },
        home,
    })
}

#[expect(clippy::disallowed_methods, reason = "this file is where the environment is read")]
fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

#[expect(clippy::disallowed_methods, reason = "this file is where the environment is read")]
fn working_directory() -> Result<PathBuf> {
    std::env::current_dir().context("the working directory cannot be read")
}

#[expect(clippy::disallowed_methods, reason = "this file is where the clock is read")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The time zone people read times in: `TZ`, else the machine's, else UTC.
pub fn time_zone() -> jiff::tz::TimeZone {
    let of_machine = || {
        let target = std::fs::read_link("/etc/localtime").ok()?;
        target.to_string_lossy().split_once("zoneinfo/").map(|(_, name)| name.to_owned())
    };
    let name = text("TZ").map(|name| name.trim_start_matches(':').to_owned()).or_else(of_machine);
    name.and_then(|name| jiff::tz::TimeZone::get(&name).ok()).unwrap_or(jiff::tz::TimeZone::UTC)
}

/// The real clock, for rooms that are handed one.
#[derive(Debug)]
pub struct SystemClock;

impl toolwarden_core::Clock for SystemClock {
    fn now(&self) -> Timestamp {
        now()
    }
}

/// What children of the gateway get of our environment.
const INHERITED: [&str; 8] = ["HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR"];

pub fn inherited() -> std::collections::BTreeMap<String, String> {
    let value = |name: &&str| Some(((*name).to_owned(), text(name)?));
    INHERITED.iter().filter_map(value).collect()
}

/// A credential in a variable. One that is set counts as shown, also if it is empty or no text: whoever meant to show
/// one must not be taken for somebody who need not (GATE-2).
#[expect(clippy::disallowed_methods, reason = "this file is where the environment is read")]
pub fn shown_credential(name: &str) -> Option<Secret> {
    std::env::var_os(name).map(|value| Secret::new(value.into_string().unwrap_or_default()))
}

/// A variable as text.
pub fn text(name: &str) -> Option<String> {
    variable(name)?.into_os_string().into_string().ok()
}

/// The name behind a user id: the system's word counts before the environment's.
fn user_name(user_id: u32) -> String {
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let of_line = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == user_id.to_string()).then(|| name.to_owned())
    };
    let from_environment =
        || variable("USER").or_else(|| variable("LOGNAME")).map(|name| name.to_string_lossy().into_owned());
    accounts.lines().find_map(of_line).or_else(from_environment).unwrap_or_else(|| user_id.to_string())
}

/// Columns of the terminal that answers are written to; without one, what most have.
pub fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.map(|size| usize::from(size.ws_col)).ok().filter(|columns| *columns > 0).unwrap_or(80)
}

/// Asks the person at the terminal for something that must not show while it is typed.
///
/// # Errors
/// There is no terminal.
pub fn ask_secret(words: &str) -> std::io::Result<Secret> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    use std::io::{BufRead, Write};
    let mut terminal = std::fs::OpenOptions::new().read(true).write(true).open("/dev/tty")?;
    terminal.write_all(words.as_bytes())?;
    let shown = tcgetattr(&terminal)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
    let mut line = String::new();
    let read = std::io::BufReader::new(&terminal).read_line(&mut line);
    // Whatever was read, what is typed next shows again.
    tcsetattr(&terminal, OptionalActions::Flush, &shown)?;
    terminal.write_all(b"\n")?;
    read?;
    Ok(Secret::new(line.trim_end_matches(['\r', '\n']).to_owned()))
}

/// The terminal a process was started from, and whether it is still there.
#[derive(Debug, Clone, Default)]
pub struct Terminal {
    was_there: bool,
    /// Rings when the process is to end because it is gone.
    pub gone: std::sync::Arc<tokio::sync::Notify>,
}

impl Terminal {
    /// Looks before signals are heard. Whoever ignores hang-ups (`nohup`) goes on without a terminal.
    pub fn at_start() -> Self {
        Self { was_there: has_terminal() && !ignores_hangups(), gone: std::sync::Arc::default() }
    }

    pub fn is_gone(&self) -> bool {
        self.was_there && !has_terminal()
    }
}

fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Whether the parent made this process ignore hang-ups, as Linux tells.
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// Whether somebody sees what is remarked while it is.
pub fn is_watched() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stderr())
}

/// Colours only on a terminal, and not where people asked for none.
pub fn wants_colour() -> bool {
    use std::io::IsTerminal;
    let is_dumb = variable("TERM").is_some_and(|terminal| terminal.as_os_str() == "dumb");
    variable("NO_COLOR").is_none() && !is_dumb && std::io::stdout().is_terminal() && std::io::stderr().is_terminal()
}
