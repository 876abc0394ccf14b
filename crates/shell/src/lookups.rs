//! Says what has to be looked up before a line is judged, and judges where links lead and where git would run.
//! Takes a read line and where it runs; gives the paths that may be links and the directories of git, or why the line
//! must not run unasked. Bounded: a line with too many paths is not looked up, and therefore held.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::effects::{Effects, effects};
use crate::executed::{Use, is_first_of_pair, reached_by_name_in, reached_by_path};
use crate::facts::{FileFacts, Gathered, Questions, Reach, Real, Repository};
use crate::git;
use crate::ground::{Ground, forms, unquoted};
use crate::interpreters;
use crate::line::{Redirection, ShellLine, SimpleCommand, Word};
use crate::paths::normalise;
use crate::reach::{Reached, visit};
use crate::readers::{is_reader, path_words, shows_contents};
use crate::self_protection::words_of_value;
use crate::unpacking::{Unpacked, unpacked};
use crate::variables::{Substituted, substituted};
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

/// What is to be looked up; `None` where that is too much. A line whose variables have known values is looked up with
/// them, too.
#[must_use]
pub fn questions(line: &ShellLine, position: Position<'_>) -> Option<Questions> {
    let mut asked = asked_by(line, position)?;
    if let Substituted::Line(known) = substituted(line) {
        let further = asked_by(&known, position)?;
        asked.paths.extend(further.paths);
        asked.trees.extend(further.trees);
    }
    (asked.paths.len() <= MOST_PATHS).then_some(asked)
}

fn asked_by(line: &ShellLine, position: Position<'_>) -> Option<Questions> {
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
    is_bounded &= line.other_words.iter().all(|value| ask(value) && words_of_value(value).iter().all(&mut ask));
    is_bounded &= ask(&Word::literal("."));
    let mut asked_trees: Vec<Word> = Vec::new();
    let mut inside: Vec<PathBuf> = Vec::new();
    visit(line, &mut |reached| {
        is_bounded &= match reached {
            Reached::Redirection(redirection) => ask(&redirection.target),
            Reached::Invocation(invocation) => {
                let known = effects(&program(invocation.name), invocation.arguments).unwrap_or_default();
                asked_trees.extend(known.trees());
                if let Some(Unpacked::Below(words)) = unpacked(&program(invocation.name), invocation.arguments) {
                    asked_trees.extend(words);
                }
                if program(invocation.name) == "git" {
                    let ground = ground.inside(&git::directories(invocation.name, invocation.arguments));
                    let cloned = git::cloned(invocation.arguments);
                    let forms = invocation.arguments.iter().chain(&cloned).flat_map(forms);
                    inside.extend(forms.flat_map(|form| ground.spots(&form)));
                }
                let known_words = known.written.iter().chain(&known.sources);
                invocation.arguments.iter().chain(&known.joined()).chain(known_words).all(&mut ask)
            }
            Reached::Unknown { .. } => true,
        };
        if is_bounded { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    asked.paths.extend(inside);
    is_bounded &= asked.paths.len() <= MOST_PATHS;
    asked.trees.extend(asked_trees.iter().flat_map(forms).flat_map(|form| ground.spots(&form)));
    for run in git_runs(line, &ground) {
        asked.paths.extend(run.sources());
        if let Some(gathered) = run.gathered {
            asked.gathering.entry(run.directory.clone()).or_default().push(gathered);
        }
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
        Real::AsWritten | Real::Several(_) | Real::Unresolved => path,
    });
    let bounds = Bounds { ground: &ground, workspace, written: position.workspace, facts };
    let mut redirections = line.all_redirections().filter(|redirection| !redirection.is_harmless());
    let redirected = redirections.find_map(|redirection| bounds.redirected_astray(redirection));
    let led = || line.commands.iter().find_map(|command| bounds.led_astray(command));
    redirected.or_else(led).or_else(|| git_strays(line, &ground, facts))
}

/// Where a line may write.
struct Bounds<'a> {
    ground: &'a Ground<'a>,
    /// The workspace with its links followed.
    workspace: Option<&'a Path>,
    /// The workspace as it is written.
    written: Option<&'a Path>,
    facts: &'a FileFacts,
}

impl Bounds<'_> {
    /// A redirection through a link must stay inside like any other.
    fn redirected_astray(&self, redirection: &Redirection) -> Option<String> {
        let how = if redirection.writes() { Use::Written } else { Use::Any };
        if let Some(path) = self.ground.brought_at(&redirection.target, "").filter(|_| how == Use::Any) {
            return Some(brought(&path));
        }
        let spots = self.ground.spots(&redirection.target.text);
        let written = spots.iter().filter(|_| how == Use::Written).find_map(|spot| self.run_by_git(spot, Reach::Named));
        written.or_else(|| spots.iter().find_map(|spot| self.led_out(spot, how)))
    }

    /// Why a written path, as it stands or behind links, is one that the workspace's own git executes.
    fn run_by_git(&self, spot: &Path, reach: Reach) -> Option<String> {
        let reals = self.facts.real(spot).elsewhere();
        let here = self.under_real_workspace(&normalise(spot));
        let place = std::iter::once(&here).chain(reals).find_map(|path| self.facts.named_by_git(path, reach))?;
        let (spot, place) = (spot.display(), place.display());
        Some(format!("{spot} changes {place}, which git's configuration of the workspace names"))
    }

    /// A path of the workspace as seen from where its links lead.
    fn under_real_workspace(&self, path: &Path) -> PathBuf {
        let below = self.written.and_then(|written| path.strip_prefix(written).ok());
        below.zip(self.workspace).map_or_else(|| path.to_path_buf(), |(below, workspace)| workspace.join(below))
    }

    /// Why a path that is written or redirected leaves the workspace by a link, or reaches what is executed.
    fn led_out(&self, spot: &Path, how: Use) -> Option<String> {
        match self.facts.real(spot) {
            Real::AsWritten => None,
            Real::Unresolved => Some(format!("it cannot be told where {} leads", spot.display())),
            real => real.elsewhere().iter().find_map(|real| {
                let is_inside = self.workspace.is_some_and(|workspace| real.starts_with(workspace));
                let is_executed = reached_by_path(real, self.workspace, how).is_some();
                (!is_inside || is_executed).then(|| format!("{} leads to {}", spot.display(), real.display()))
            }),
        }
    }

    /// Why a command reaches a place whose files are executed, or writes outside of the workspace.
    fn led_astray(&self, command: &SimpleCommand) -> Option<String> {
        let program = command.name.as_deref().map(program)?;
        let words: Vec<&Word> = match program.as_str() {
            "git" => {
                let paths = git::read(&command.arguments).ok()?.paths;
                command.arguments.iter().filter(|word| paths.contains(&word.text.as_str())).collect()
            }
            _ => path_words(&program, &command.arguments),
        };
        let spots = words.into_iter().flat_map(forms).flat_map(|form| self.ground.spots(&form));
        let is_read = is_reader(&program) || (program == "git" && !git::changes_tree(&command.arguments));
        let how = if is_read { Use::Read } else { Use::Any };
        let reached = spots.into_iter().find_map(|spot| self.executed(&program, &spot, how));
        let known = || effects(&program, &command.arguments).ok();
        let written = || known().and_then(|known| self.written_astray(&program, &known));
        let changed = || self.changed_by_any(&program, command);
        reached.or_else(written).or_else(changed).or_else(|| self.reads_brought(&program, command))
    }

    /// Why a reader must not show what another command of the line brings: links may be among it.
    fn reads_brought(&self, program: &str, command: &SimpleCommand) -> Option<String> {
        let words = path_words(program, &command.arguments);
        let mut shown = words.into_iter().filter(|_| shows_contents(program));
        shown.find_map(|word| self.ground.brought_at(word, &command.text)).map(|path| brought(&path))
    }

    /// Why a program that is not known to only read is given a path that the workspace's own git executes, or `git mv`
    /// one that leads out of the workspace.
    fn changed_by_any(&self, program: &str, command: &SimpleCommand) -> Option<String> {
        // What these write was looked at before.
        let is_known = effects(program, &command.arguments).is_ok_and(|known| known.reads_the_rest);
        if is_reader(program) || is_known {
            return None;
        }
        let ground = self.ground.inside(&git::directories(program, &command.arguments));
        let cloned = if program == "git" { git::cloned(&command.arguments) } else { Vec::new() };
        if let Some(why) = cloned.iter().find_map(|target| self.cloned_astray(&ground, target)) {
            return Some(why);
        }
        let words: Vec<&Word> = match program {
            "git" => git::moved(&command.arguments).unwrap_or_default().into_iter().chain(&cloned).collect(),
            _ => path_words(program, &command.arguments),
        };
        let spots = words.into_iter().flat_map(forms).flat_map(|form| ground.spots(&form));
        spots.into_iter().find_map(|spot| {
            let led_out = || self.led_out(&spot, Use::Written).filter(|_| program == "git");
            let reach = if program == "git" { Reach::Below } else { Reach::Named };
            let is_tree_put_there = program == "git" && is_first_of_pair(&spot);
            let paired = || is_tree_put_there.then(|| format!("files below {} are executed", spot.display()));
            self.run_by_git(&spot, reach).or_else(led_out).or_else(paired)
        })
    }

    /// Why a repository must not be cloned to a place: what it brings is not known.
    fn cloned_astray(&self, ground: &Ground<'_>, target: &Word) -> Option<String> {
        if ground.is_adrift(target) {
            return Some(format!("it cannot be told where `git clone` writes to by `{}`", target.text));
        }
        let mut spots = forms(target).into_iter().flat_map(|form| ground.spots(&form));
        let is_inside = |path: &Path| {
            let roots = self.written.into_iter().chain(self.workspace);
            roots.into_iter().any(|workspace| path.starts_with(workspace))
        };
        let outside = spots.find(|spot| !is_inside(&normalise(spot)))?;
        Some(format!("`git clone` writes to {}, outside of the workspace", outside.display()))
    }

    /// Why a path, as it is written or behind links, reaches a place whose files are executed.
    fn executed(&self, program: &str, spot: &Path, how: Use) -> Option<String> {
        let by_path = |path: &Path| reached_by_path(path, self.workspace.or(self.written), how);
        let said = |place: String| {
            format!("{} leads to `{place}`, whose files are executed or decide what is", spot.display())
        };
        match self.facts.real(spot) {
            // The directory the line runs in may make a pair of it: `node_modules` and `.bin/x`.
            Real::AsWritten => by_path(&normalise(spot)).map(said),
            Real::Unresolved if is_reader(program) => None,
            Real::Unresolved => Some(format!("it cannot be told where {} leads", spot.display())),
            real => real.elsewhere().iter().find_map(|real| by_path(real)).map(said),
        }
    }

    /// Why a writer would leave the workspace, or bring something to a place whose files are executed.
    fn written_astray(&self, program: &str, known: &Effects) -> Option<String> {
        let joined = known.joined();
        let words = || known.written.iter().chain(&joined);
        if let Some(word) = words().find(|word| self.ground.is_adrift(word)) {
            return Some(format!("it cannot be told where `{program}` writes to by `{}`", word.text));
        }
        let is_remote = |word: &&Word| word.text.split('/').next().is_some_and(|host| host.contains(':'));
        if let Some(word) = words().find(|word| listed("rsync scp", program) && is_remote(word)) {
            return Some(format!("`{program}` writes to `{}`, on another machine", word.text));
        }
        let spots = || words().flat_map(unquoted_forms).flat_map(|form| self.ground.spots(&form));
        let outside = spots().find_map(|spot| {
            let is_inside = self.written.is_some_and(|workspace| normalise(&spot).starts_with(workspace));
            let is_inside =
                is_inside || self.workspace.is_some_and(|workspace| normalise(&spot).starts_with(workspace));
            let outside =
                (!is_inside).then(|| format!("`{program}` writes to {}, outside of the workspace", spot.display()));
            let by_path = || {
                let place = reached_by_path(&normalise(&spot), self.workspace.or(self.written), Use::Written)?;
                Some(format!("`{program}` writes to `{place}`, whose files are executed or decide what is"))
            };
            let by_git = || self.run_by_git(&spot, Reach::Named);
            outside.or_else(by_path).or_else(by_git).or_else(|| self.led_out(&spot, Use::Written))
        });
        let filled = known.filled();
        let spots_of = |words: &[Word]| -> Vec<PathBuf> {
            words.iter().flat_map(unquoted_forms).flat_map(|form| self.ground.spots(&form)).collect()
        };
        // A target that is not there becomes the tree itself.
        let made = spots_of(&known.targets).into_iter().filter(|spot| !self.facts.is_present(spot));
        let trees: Vec<PathBuf> = spots_of(&filled).into_iter().chain(made).collect();
        let makes_links = listed("ln gln", program);
        let paired = || {
            let spot = trees.iter().find(|spot| makes_links && is_first_of_pair(spot))?;
            Some(format!("files below {} are executed", spot.display()))
        };
        let brings_trees = known.moves_trees || makes_links;
        let by_git = || trees.iter().find_map(|spot| self.run_by_git(spot, Reach::Below)).filter(|_| brings_trees);
        outside
            .or_else(paired)
            .or_else(by_git)
            .or_else(|| self.trees_astray(program, known))
            .filter(|_| !known.written.is_empty())
    }

    /// Why a tree must not be copied or moved: what is in it, or links in the tree it is put into.
    fn trees_astray(&self, program: &str, known: &Effects) -> Option<String> {
        if !known.moves_trees {
            return None;
        }
        let spots = |words: &[Word]| -> Vec<PathBuf> {
            words.iter().flat_map(unquoted_forms).flat_map(|form| self.ground.spots(&form)).collect()
        };
        let put: Vec<PathBuf> = spots(&known.targets).into_iter().chain(spots(&known.joined())).collect();
        let unread =
            |spot: &PathBuf| format!("{} has too many files to look through, or cannot be read", spot.display());
        for spot in spots(&known.sources) {
            let Some(tree) = self.facts.tree(&spot).filter(|tree| tree.is_whole) else { return Some(unread(&spot)) };
            // What is moved stays what it was; a copy is new.
            if let Some(place) = tree.executed.as_ref().filter(|_| known.copies_trees) {
                return Some(format!("{} holds {}, whose files are executed", spot.display(), place.display()));
            }
            let pair =
                put.iter().find_map(|target| tree.names.iter().find_map(|name| reached_by_name_in(target, name)));
            if let Some(place) = pair {
                return Some(format!("`{program}` brings files to `{place}`, where they are executed"));
            }
        }
        spots(&known.filled()).iter().filter(|_| known.copies_trees).find_map(|spot| {
            let Some(tree) = self.facts.tree(spot).filter(|tree| tree.is_whole) else { return Some(unread(spot)) };
            let workspace = self.workspace.or(self.written);
            let astray = tree.links.iter().find(|link| {
                let is_inside = workspace.is_some_and(|workspace| link.starts_with(workspace));
                !is_inside || reached_by_path(link, workspace, Use::Written).is_some()
            })?;
            Some(format!("a link below {} leads to {}", spot.display(), astray.display()))
        })
    }
}

fn brought(path: &Path) -> String {
    format!("another command of the line brings {}, which may be a link by then", path.display())
}

/// The texts a written word may stand for. What is behind `=` or glued to an option was cut off before.
fn unquoted_forms(word: &Word) -> Vec<String> {
    let text = unquoted(word);
    match text.contains('{') {
        true => crate::braces::expanded(&text).unwrap_or_default(),
        false => vec![text],
    }
}

/// Why git would leave the repository of the workspace, or find one that may execute something.
fn git_strays(line: &ShellLine, ground: &Ground<'_>, facts: &FileFacts) -> Option<String> {
    let runs = git_runs(line, ground);
    let shaping: Vec<usize> =
        line.commands.iter().enumerate().filter(|(_, one)| may_shape_a_repository(one)).map(|(at, _)| at).collect();
    runs.iter().find_map(|run| {
        // What a command does itself comes too late for it.
        let mut others = line.commands.iter().enumerate().filter(|(at, _)| *at != run.command);
        let changes = shaping.iter().any(|at| *at != run.command)
            || writes_shape(&line.redirections)
            || others.any(|(_, one)| moves_onto(one, &run.directory, ground));
        let place = run.directory.display();
        if run.sources().iter().any(|source| facts.is_present(source)) {
            return Some(format!("git would take a directory in {place} for the repository it is given"));
        }
        match facts.repository(&run.directory) {
            Repository::Strange => Some(format!("git would run in {place}, whose configuration may execute something")),
            Repository::Nested => Some(format!(
                "the repository of {place} holds another one that git would enter, and whose configuration may execute something"
            )),
            Repository::Unread => Some(format!(
                "it cannot be told whether git would enter another repository below {place}: its index is not readable, or \
                 what is added has too many files"
            )),
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
    /// What git would take into its index.
    gathered: Option<Gathered>,
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
            let gathered = git::gathered(&command.arguments);
            runs.push(GitRun { command: at, directory, repository: known.repository, gathered });
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
        || effects(&program, &command.arguments).is_ok_and(|known| known.copies_trees)
        || command.arguments.iter().any(|word| shapes(&word.text))
}

/// Whether a command puts another directory in the place of this one, or of one above it.
fn moves_onto(command: &SimpleCommand, directory: &Path, ground: &Ground<'_>) -> bool {
    let Some(known) = command.name.as_deref().and_then(|name| effects(&program(name), &command.arguments).ok()) else {
        return false;
    };
    let joined = known.joined();
    let put = known.targets.iter().chain(&joined).filter(|_| known.moves_trees);
    let mut spots = put.flat_map(unquoted_forms).flat_map(|form| ground.spots(&form));
    spots.any(|spot| normalise(directory).starts_with(normalise(&spot)))
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
