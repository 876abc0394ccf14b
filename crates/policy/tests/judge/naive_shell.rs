//! Terminal entries, `base` or `base:glob`, over the commands of a read line (SHELL-2, SHELL-3).

use std::path::Path;

use toolwarden_policy::shell::{Redirection, ShellLine, SimpleCommand, redirections_stay_inside};

/// Whether an entry is one at all.
pub fn is_entry(entry: &str) -> bool {
    let base = entry.split_once(':').map_or(entry, |(base, _)| base);
    !base.trim().is_empty() && !base.contains('*')
}

/// Whether an entry covers a command.
pub fn entry_matches(entry: &str, command: &SimpleCommand) -> bool {
    let (Some(name), None) = (&command.name, &command.obstacle) else { return false };
    if !is_entry(entry) {
        return false;
    }
    let arguments: Vec<&str> = command.arguments.iter().map(|word| word.text.as_str()).collect();
    let text = if arguments.is_empty() { name.clone() } else { format!("{name} {}", arguments.join(" ")) };
    match entry.split_once(':') {
        None => text == entry || text.starts_with(&format!("{entry} ")),
        Some((base, glob)) if base == text => glob_matches(glob, ""),
        Some((base, glob)) => text.strip_prefix(&format!("{base} ")).is_some_and(|rest| glob_matches(glob, rest)),
    }
}

/// `*` spans anything; both ends are anchored.
pub fn glob_matches(glob: &str, text: &str) -> bool {
    match glob.split_once('*') {
        None => glob == text,
        Some((before, after)) => match text.strip_prefix(before) {
            None => false,
            Some(rest) => {
                let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
                ends.filter_map(|at| rest.get(at..)).any(|tail| glob_matches(after, tail))
            }
        },
    }
}

/// Every command is covered by itself.
pub fn covers(entries: &[&str], line: &ShellLine) -> bool {
    let listed = line.commands.iter().all(|command| entries.iter().any(|entry| entry_matches(entry, command)));
    !line.commands.is_empty() && line.obstacle.is_none() && listed
}

/// No redirection leaves the workspace; without one, none may go to a file.
pub fn stays_inside(line: &ShellLine, workspace: Option<&Path>, directory: &Path) -> bool {
    match workspace {
        Some(workspace) => redirections_stay_inside(line, workspace, directory),
        None => line.all_redirections().all(Redirection::is_harmless),
    }
}
