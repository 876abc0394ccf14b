//! Auto-run for a command line: the first match of SHELL-1 decides.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use toolwarden_core::{CallKind, Reason};

use super::{AutoRun, effective, mode};
use crate::input::AutoRunMode;
use crate::lists::{Admin, Effective};
use crate::shell::{self, BlockedMatch, Deletion, Position, ShellLine, SimpleCommand};
use crate::subject::Subject;
use crate::verdict::{RuleRef, Step};

pub(super) fn shell(subject: &Subject<'_>) -> AutoRun {
    let base = subject.policy.base();
    let admin = base.admin.as_ref();
    let line = match &subject.line {
        Some(Ok(line)) => line,
        Some(Err(fault)) => return Step::because(Reason::CommandUnparsable).noting(fault.to_string()).into(),
        None => return AutoRun::because(Reason::CommandUnparsable),
    };
    if admin.is_some_and(|admin| admin.auto_run_disabled) {
        return AutoRun::because(Reason::AutoRunDisabled);
    }
    if let Some(held) = admin.and_then(|admin| blocked(admin, line)) {
        return held.into();
    }
    let protections = subject.policy.protections(subject.caller);
    if let Some(deletion) = shell::deletes(line).filter(|_| protections.delete) {
        return Step::because(Reason::DeleteProtection).noting(describe(&deletion)).into();
    }
    let Some(mode) = mode(subject) else { return AutoRun::because(Reason::NoUser) };
    if mode.runs_everything && admin.is_none() {
        return AutoRun::because(Reason::RunEverything);
    }
    if mode.own == AutoRunMode::AskEveryTime {
        return AutoRun::because(Reason::AskEveryTime);
    }
    match_allowlist(subject, line)
}

fn blocked(admin: &Admin, line: &ShellLine) -> Option<Step> {
    let (rule, command) = match admin.blocked.first_match(line)? {
        BlockedMatch::Entry { index, command } => (admin.blocked_rules.get(index).cloned(), format!("`{command}`")),
        BlockedMatch::Unknown { command } => (None, format!("what `{command}` runs cannot be known")),
    };
    Some(Step::because(Reason::CommandBlocked).by(rule).noting(command))
}

fn describe(deletion: &Deletion) -> String {
    match deletion {
        Deletion::Certain { command } => format!("`{command}`"),
        Deletion::Unknown { command } => format!("what `{command}` runs cannot be known, so it may delete"),
    }
}

/// Every simple command must be allowed by itself, and the line must not write elsewhere.
fn match_allowlist(subject: &Subject<'_>, line: &ShellLine) -> AutoRun {
    let lists = effective(subject);
    let covered = |command: &SimpleCommand| {
        let lists: Effective<'_> = lists.filter(|_| !is_elsewhere(subject, command))?;
        lists.terminal.covers(command).cloned()
    };
    let rules: Vec<Option<RuleRef>> = line.commands.iter().map(covered).collect();
    let strays = strays(subject, line);
    let inside = stays_inside(subject, line) && strays.is_none();
    if inside && rules.iter().all(Option::is_some) {
        let rule = rules.into_iter().next().flatten();
        return Step::because(Reason::AllowlistMatch).by(rule).into();
    }
    let uncovered: Vec<&SimpleCommand> =
        line.commands.iter().zip(&rules).filter(|(_, rule)| rule.is_none()).map(|(command, _)| command).collect();
    let detail = match uncovered.first() {
        Some(command) => match &command.obstacle {
            Some(obstacle) => format!("`{}`: {obstacle}", command.text),
            None => format!("`{}` matches no entry", command.text),
        },
        None => strays.unwrap_or_else(|| {
            "a redirection leaves the workspace or reaches files that are executed, or the line changes directory before one"
                .to_owned()
        }),
    };
    let admin_controlled = subject.policy.base().admin.is_some();
    let elsewhere = uncovered.iter().any(|command| is_elsewhere(subject, command));
    let candidates: Option<Vec<String>> = uncovered.iter().map(|command| shell::candidate(command)).collect();
    // Entries are offered only where adding them would really let the line run.
    let mut candidates = candidates.filter(|_| inside && !elsewhere && !admin_controlled).unwrap_or_default();
    let mut seen = HashSet::new();
    candidates.retain(|candidate| seen.insert(candidate.clone()));
    AutoRun { step: Step::because(Reason::NotInAllowlist).noting(detail), candidates }
}

fn stays_inside(subject: &Subject<'_>, line: &ShellLine) -> bool {
    let workspace = subject.query.workspace();
    let directory = match &subject.query.call.kind {
        CallKind::Shell { directory: Some(directory), .. } => Some(directory.as_path()),
        _ => workspace,
    };
    match workspace.zip(directory) {
        Some((workspace, directory)) => {
            let directory = workspace.join(directory);
            shell::redirections_stay_inside(line, workspace, &directory)
        }
        // Without a workspace no path is inside it.
        None => line.all_redirections().all(shell::Redirection::is_harmless),
    }
}

/// Links that lead a writer elsewhere, and git in another repository than the workspace's own.
fn strays(subject: &Subject<'_>, line: &ShellLine) -> Option<String> {
    let cwd = directory(subject);
    let workspace = subject.query.workspace();
    let position = Position { cwd: &cwd, workspace, home: subject.policy.base().places.home() };
    shell::strays(line, position, &subject.query.files)
}

/// Where the command would run, for paths that mean Toolwarden's own files.
pub(crate) fn directory(subject: &Subject<'_>) -> PathBuf {
    let workspace = subject.query.workspace().unwrap_or(Path::new("/"));
    match &subject.query.call.kind {
        CallKind::Shell { directory: Some(directory), .. } => workspace.join(directory),
        _ => workspace.to_path_buf(),
    }
}

/// Whether a command's name means another file than the entry's author saw: a relative name in a
/// directory the caller chose.
fn is_elsewhere(subject: &Subject<'_>, command: &SimpleCommand) -> bool {
    let relative = command.name.as_deref().is_some_and(|name| name.contains('/') && !name.starts_with('/'));
    relative && subject.query.workspace() != Some(&directory(subject))
}
