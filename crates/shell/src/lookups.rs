//! Says what has to be looked up before a line is judged, and judges where links lead and where git would run.
//! Takes a read line and where it runs; gives the paths that may be links and the directories of git, or why the line
//! must not run unasked. Bounded: a line with too many paths is not looked up, and therefore held.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::executed::reached_by_path;
use crate::facts::{FileFacts, Questions, Real, Repository};
use crate::git;
use crate::interpreters;
use crate::line::{Redirection, ShellLine, SimpleCommand, Word};
use crate::reach::{Reached, visit};
use crate::readers::{is_reader, path_words};
use crate::self_protection::{Ground, forms};
use crate::unpacking;
use crate::wrappers::{self, listed, program};

/// Most paths that are looked up for one line.
const MOST_PATHS: usize = 4_000;

/// Where a line runs.
#[derive(Debug, Clone, Copy)]
pub struct Position<'a> {
    /// The working directory.
    pub cwd: &'a Path,
    pub workspace: Option<&'a Path>,
    /// What `~` and `$HOME` stand for.
    pub home: Option<&'a Path>,
}

/// What is to be looked up; `None` where that is too much.
#[must_use]
pub fn questions(line: &ShellLine, position: Position<'_>) -> Option<Questions> {
    let facts = FileFacts::as_written();
    let ground = Ground::of(line, position.cwd, position.home, &facts)?;
    let mut asked = Questions::default();
    asked.paths.extend(position.workspace.map(Path::to_path_buf));
    asked.paths.extend(ground.bases().iter().cloned());
    let mut ask = |word: &Word| {
        for form in forms(word) {
            asked.paths.extend(ground.spots(&form));
        }
        asked.paths.len() <= MOST_PATHS
    };
    let mut is_bounded = line.all_redirections().all(|redirection| ask(&redirection.target));
    is_bounded &= line.other_words.iter().all(&mut ask);
    is_bounded &= ask(&Word::literal("."));
    visit(line, &mut |reached| {
        is_bounded &= match reached {
            Reached::Redirection(redirection) => ask(&redirection.target),
            Reached::Invocation(invocation) => invocation.arguments.iter().all(&mut ask),
            Reached::Unknown { .. } => true,
        };
        if is_bounded { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    for run in git_runs(line, &ground) {
        asked.paths.extend(run.sources());
        asked.directories.insert(run.directory);
    }
    is_bounded.then_some(asked)
}

/// Why a line must not run unasked although its words are harmless: a link leads a writer to a place whose files are
/// executed or out of the workspace, or git would find another repository than that of the workspace.
#[must_use]
pub fn strays(line: &ShellLine, position: Position<'_>, facts: &FileFacts) -> Option<String> {
    let Some(ground) = Ground::of(line, position.cwd, position.home, facts) else {
        return Some("the line changes the directory too often to tell what it reaches".to_owned());
    };
    let workspace = position.workspace.map(|path| match facts.real(path) {
        Real::Elsewhere(real) => real.as_path(),
        Real::AsWritten | Real::Unresolved => path,
    });
    let mut redirections = line.all_redirections().filter(|redirection| !redirection.is_harmless());
    let redirected =
        redirections.find_map(|redirection| redirected_astray(&redirection.target, &ground, workspace, facts));
    let led = || line.commands.iter().find_map(|command| led_astray(command, &ground, workspace, facts));
    redirected.or_else(led).or_else(|| git_strays(line, &ground, facts))
}

/// A redirection through a link must stay inside like any other.
fn redirected_astray(
    target: &Word,
    ground: &Ground<'_>,
    workspace: Option<&Path>,
    facts: &FileFacts,
) -> Option<String> {
    ground.spots(&target.text).into_iter().find_map(|spot| match facts.real(&spot) {
        Real::AsWritten => None,
        Real::Unresolved => Some(format!("it cannot be told where {} leads", spot.display())),
        Real::Elsewhere(real) => {
            let is_inside = workspace.is_some_and(|workspace| real.starts_with(workspace));
            let is_executed = reached_by_path(real, workspace).is_some();
            (!is_inside || is_executed).then(|| format!("{} leads to {}", spot.display(), real.display()))
        }
    })
}

/// An argument that a link leads to a place whose files are executed.
fn led_astray(
    command: &SimpleCommand,
    ground: &Ground<'_>,
    workspace: Option<&Path>,
    facts: &FileFacts,
) -> Option<String> {
    let program = command.name.as_deref().map(program)?;
    let words: Vec<&Word> = match program.as_str() {
        "git" => {
            let paths = git::read(&command.arguments).ok()?.paths;
            command.arguments.iter().filter(|word| paths.contains(&word.text.as_str())).collect()
        }
        _ => path_words(&program, &command.arguments),
    };
    let spots = words.into_iter().flat_map(forms).flat_map(|form| ground.spots(&form));
    spots.into_iter().find_map(|spot| match facts.real(&spot) {
        Real::AsWritten => None,
        Real::Unresolved if is_reader(&program) => None,
        Real::Unresolved => Some(format!("it cannot be told where {} leads", spot.display())),
        Real::Elsewhere(real) => {
            let place = reached_by_path(real, workspace)?;
            Some(format!("{} leads to `{place}`, whose files are executed or decide what is", spot.display()))
        }
    })
}

/// Why git would leave the repository of the workspace, or find one that may execute something.
fn git_strays(line: &ShellLine, ground: &Ground<'_>, facts: &FileFacts) -> Option<String> {
    let runs = git_runs(line, ground);
    let shaping: Vec<usize> =
        line.commands.iter().enumerate().filter(|(_, one)| may_shape_a_repository(one)).map(|(at, _)| at).collect();
    runs.iter().find_map(|run| {
        // What a command does itself comes too late for it.
        let changes = shaping.iter().any(|at| *at != run.command) || writes_shape(&line.redirections);
        let place = run.directory.display();
        if run.sources().iter().any(|source| facts.is_present(source)) {
            return Some(format!("git would take a directory in {place} for the repository it is given"));
        }
        match facts.repository(&run.directory) {
            Repository::Strange => Some(format!("git would run in {place}, whose configuration may execute something")),
            Repository::OwnTop => None,
            Repository::None | Repository::Own | Repository::Plain if changes => {
                Some(format!("the line may change what git finds in {place}"))
            }
            Repository::None | Repository::Own | Repository::Plain => None,
        }
    })
}

struct GitRun<'a> {
    /// Which command of the line it is.
    command: usize,
    directory: PathBuf,
    repository: Option<&'a str>,
}

impl GitRun<'_> {
    /// Paths that git would take for the repository it is given, before it takes the word for a remote's name.
    fn sources(&self) -> Vec<PathBuf> {
        let names = self.repository.into_iter().flat_map(|name| [name.to_owned(), format!("{name}.git")]);
        names.map(|name| self.directory.join(name)).collect()
    }
}

/// Every directory git may run in: seen from the working directory and from each `cd`, then by `-C`.
fn git_runs<'a>(line: &'a ShellLine, ground: &Ground<'_>) -> Vec<GitRun<'a>> {
    let mut runs = Vec::new();
    for (at, command) in line.commands.iter().enumerate() {
        if command.name.as_deref().is_none_or(|name| program(name) != "git") {
            continue;
        }
        let Ok(known) = git::read(&command.arguments) else { continue };
        for base in ground.bases() {
            let directory = known.directories.iter().fold(base.clone(), |directory, next| directory.join(next));
            runs.push(GitRun { command: at, directory, repository: known.repository });
        }
    }
    runs
}

/// Names without which no directory is shaped like git's.
const SHAPE: &str = "head objects refs config gitdir commondir";

/// Whether a command may make a directory look like git's own before git runs there. Programs that run the code of a
/// project can do so anyway; an entry for one of them says they may.
fn may_shape_a_repository(command: &SimpleCommand) -> bool {
    if writes_shape(&command.redirections) {
        return true;
    }
    let Some(name) = &command.name else { return true };
    let program = program(name);
    if program == "git" {
        return git::changes_tree(&command.arguments);
    }
    let runs_code = interpreters::is_interpreter(&program)
        || wrappers::starts_programs(&program)
        || listed("cargo make gmake go pytest gradle mvn rake tox nox cmake ninja dotnet", &program);
    if is_reader(&program) || runs_code || wrappers::changes_directory(&program) {
        return false;
    }
    listed(TREE_MOVERS, &program)
        || unpacking::takes_trees(&program, &command.arguments)
        || command.arguments.iter().any(|word| shapes(&word.text))
}

fn writes_shape(redirections: &[Redirection]) -> bool {
    redirections.iter().any(|redirection| redirection.writes() && shapes(&redirection.target.text))
}

/// Whether a word may name a part of a directory shaped like git's.
fn shapes(text: &str) -> bool {
    text.contains(['*', '?', '[', '{', '$', '`'])
        || text.split(['/', '\\', '=']).any(|name| listed(SHAPE, &name.to_ascii_lowercase()))
}

/// Programs that bring whole directories to another place.
const TREE_MOVERS: &str = "tar gtar bsdtar unzip rsync ln ditto xcopy robocopy";
