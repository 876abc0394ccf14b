//! A compiled terminal allowlist.
//! Takes entries; gives whether they cover a command or a whole line, and the narrowest entry for a command.
//! Refuses whatever has an obstacle or a redirection that leaves the workspace, whatever the entries say.

use std::collections::HashMap;
use std::path::Path;

use crate::entry::ShellEntry;
use crate::line::{Obstacle, ShellLine, SimpleCommand};
use crate::paths::leaving_redirection;

/// Looks entries up by command word, so that its size hardly matters.
#[derive(Debug, Clone, Default)]
pub struct ShellAllowlist {
    by_command: HashMap<String, Entries>,
}

#[derive(Debug, Clone, Default)]
struct Entries {
    /// Entries that one argument text alone can match.
    exact: HashMap<String, usize>,
    others: Vec<(usize, ShellEntry)>,
}

/// What an allowlist says about a whole line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    /// Every command is covered: the caller's index of the entry for each.
    Covered(Vec<usize>),
    /// This command is on no entry.
    NotListed { command: String },
    /// This command can never be auto-allowed.
    Obstacle { command: String, obstacle: Obstacle },
    /// A redirection to this target may leave the workspace.
    Redirection { target: String },
}

impl ShellAllowlist {
    /// Compiles entries, each with the caller's index for it. The lowest index wins.
    pub fn compile(entries: &[(usize, ShellEntry)]) -> Self {
        let mut by_command: HashMap<String, Entries> = HashMap::new();
        for (index, entry) in entries {
            let slot = by_command.entry(entry.command().to_owned()).or_default();
            match entry.exact_arguments() {
                Some(arguments) => {
                    let known = slot.exact.entry(arguments.to_owned()).or_insert(*index);
                    *known = (*known).min(*index);
                }
                None => slot.others.push((*index, entry.clone())),
            }
        }
        for slot in by_command.values_mut() {
            slot.others.sort_by_key(|(index, _)| *index);
        }
        Self { by_command }
    }

    /// The entry that covers this command; `None` also when an obstacle is present. Redirections are judged
    /// for the whole line by `judge`.
    pub fn covers(&self, command: &SimpleCommand) -> Option<usize> {
        if command.obstacle.is_some() {
            return None;
        }
        let entries = self.by_command.get(command.name.as_deref()?)?;
        let exact = entries.exact.get(&command.joined_arguments()).copied();
        let other = entries.others.iter().find(|(_, entry)| entry.matches(command)).map(|(index, _)| *index);
        match (exact, other) {
            (Some(left), Some(right)) => Some(left.min(right)),
            (left, right) => left.or(right),
        }
    }

    /// Judges a whole line: each command must be covered by itself, each redirection must stay inside.
    /// Without a workspace no redirection to a file is accepted.
    pub fn judge(&self, line: &ShellLine, workspace: Option<&Path>, cwd: &Path) -> Coverage {
        let mut indices = Vec::with_capacity(line.commands.len());
        for command in &line.commands {
            if let Some(obstacle) = command.obstacle.clone().or_else(|| line.obstacle.clone()) {
                return Coverage::Obstacle { command: command.text.clone(), obstacle };
            }
            match self.covers(command) {
                Some(index) => indices.push(index),
                None => return Coverage::NotListed { command: command.text.clone() },
            }
        }
        if let Some(redirection) = leaving_redirection(line, workspace, cwd) {
            return Coverage::Redirection { target: redirection.target.text.clone() };
        }
        // `read` never gives a line without commands; if one is built by hand it grants nothing.
        match line.commands.first() {
            Some(_) => Coverage::Covered(indices),
            None => Coverage::NotListed { command: line.source.clone() },
        }
    }
}

/// The narrowest entry that allows exactly this command: `git:push origin main`, `ls:`. `None` when no entry
/// could: an obstacle, an argument that is not literal, or text an entry cannot hold.
pub fn candidate(command: &SimpleCommand) -> Option<String> {
    let is_exact = command.arguments.iter().all(|word| word.literal && !word.text.contains('*'));
    if command.obstacle.is_some() || !is_exact {
        return None;
    }
    let text = format!("{}:{}", command.name.as_deref()?, command.joined_arguments());
    let entry = ShellEntry::parse(&text).ok()?;
    entry.matches(command).then_some(text)
}
