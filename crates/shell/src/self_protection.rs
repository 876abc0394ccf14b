//! Finds lines that would change Toolwarden itself.
//! Takes a read line and the protected paths (config, data, trusted workspace files, client hooks); gives
//! why the line must be held: a changing `toolwarden` command, or a path that lands on, under or above a
//! protected one in anything but a pure reader. Unknown verbs count as changing.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::argued::spelled;
use crate::braces;
use crate::effects::{Effects, effects, is_writer};
use crate::facts::{FileFacts, Real};
use crate::git;
use crate::ground::{Ground, cut_at_expansion, forms, unquoted, writes_unnamed};
use crate::handed::{hands_over, reads};
use crate::line::{Direction, Redirection, ShellLine, SimpleCommand, Word};
use crate::options;
use crate::paths::{normalise, resolve};
use crate::patterns;
use crate::processes::{is_behind_expansion, shows_processes};
use crate::reach::{Invocation, Reached, visit};
use crate::readers::{is_reader, is_recursive, names_other_home, path_words};
use crate::stopping;
use crate::unpacking::{Unpacked, unpacked, unpacks_elsewhere};
use crate::variables::{Substituted, substituted};
use crate::verbs::{changing_verb, is_ours};
use crate::wrappers::{self, listed, program};

/// Programs that change everything below a directory they are given.
const TREE_CHANGERS: &[&str] = &[
    "rm",
    "rmdir",
    "mv",
    "cp",
    "rsync",
    "chmod",
    "chown",
    "chgrp",
    "chattr",
    "setfacl",
    "ln",
    "tar",
    "unzip",
    "find",
    "shred",
    "srm",
    "trash",
    "trash-put",
    "install",
    "rd",
    "del",
    "erase",
    "remove-item",
    "ri",
    "mount",
    "umount",
    "rimraf",
    "unlink",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trees {
    /// Everything below a directory that is given.
    Changed,
    Used,
    /// Nothing but what is given.
    Named,
}

/// What belongs to Toolwarden: absolute paths.
#[derive(Debug, Clone, Copy)]
pub struct Belongings<'a> {
    /// What no line changes.
    pub protected: &'a [PathBuf],
    /// Keys and data, which no line reads either.
    pub secret: &'a [PathBuf],
    /// What `~` and `$HOME` stand for.
    pub home: Option<&'a Path>,
}

/// Why the line would change Toolwarden; `None` when nothing of the kind was found. Lexical: links are not followed.
pub fn changes_toolwarden(line: &ShellLine, protected: &[PathBuf], cwd: &Path, home: Option<&Path>) -> Option<String> {
    let belongings = Belongings { protected, secret: &[], home };
    look(line, belongings, cwd, &FileFacts::as_written(), Given::AsLine)
}

/// Why the line would change Toolwarden or read its keys and data, with links followed as `facts` says. A line whose
/// paths were not looked up is held.
pub fn touches_toolwarden(
    line: &ShellLine,
    belongings: Belongings<'_>,
    cwd: &Path,
    facts: &FileFacts,
) -> Option<String> {
    if !facts.is_known() {
        return Some("it was not looked up where its paths lead".to_owned());
    }
    look(line, belongings, cwd, facts, Given::AsLine)
}

/// Whether a text is certainly a command line, or any text that can be read as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    AsLine,
    /// It may be prose: what is not known says nothing, and neither do words that are no verb of ours.
    AsText,
}

pub(super) fn look(
    line: &ShellLine,
    belongings: Belongings<'_>,
    cwd: &Path,
    facts: &FileFacts,
    given: Given,
) -> Option<String> {
    let why = look_as_written(line, belongings, cwd, facts, given);
    why.or_else(|| match substituted(line) {
        Substituted::Line(known) => look_as_written(&known, belongings, cwd, facts, given),
        Substituted::Same => None,
        Substituted::TooMuch => Some("has variables with too many values to tell what it names".to_owned()),
    })
}

fn look_as_written(
    line: &ShellLine,
    belongings: Belongings<'_>,
    cwd: &Path,
    facts: &FileFacts,
    given: Given,
) -> Option<String> {
    let Some(mut ground) = Ground::of(line, cwd, belongings.home, facts) else {
        return Some("changes the directory too often to tell what it does with toolwarden".to_owned());
    };
    ground.given = given;
    ground.protected = belongings.protected.iter().chain(belongings.secret).map(|path| normalise(path)).collect();
    let mut keys = ground.clone();
    keys.protected = belongings.secret.iter().map(|path| normalise(path)).collect();
    ground.keys = Some(Box::new(keys));
    let of_command =
        |one: &SimpleCommand| one.redirections.iter().find_map(|found| ground.redirection(found, &one.text));
    let of_line = || line.redirections.iter().find_map(|found| ground.redirection(found, ""));
    if let Some(why) = line.commands.iter().find_map(of_command).or_else(of_line) {
        return Some(why);
    }
    // A variable may carry such a word to any command.
    if let Some(why) = line.other_words.iter().find_map(|word| ground.in_variable(word)) {
        return Some(why);
    }
    let told = |one: &&SimpleCommand| given == Given::AsLine && !is_understood(one);
    if let Some(why) = line.commands.iter().filter(told).find_map(|one| spelled(&one.text)) {
        return Some(why);
    }
    let is_doubtful = given == Given::AsLine || is_single_with_variables(&line.source);
    let mentions = line.source.to_ascii_lowercase().contains("toolwarden") || ground.is_named_in(&line.source);
    let mentions = mentions && is_doubtful;
    // The body of a here-document is no argument of any command.
    let in_document = line.source.contains("<<") && ground.spelled(&line.source).is_some();
    ground.hands_over = hands_over(line);
    let mut why = None;
    visit(line, &mut |reached| {
        why = match reached {
            Reached::Unknown { text } if mentions => Some(format!("cannot tell what `{text}` does with toolwarden")),
            Reached::Unknown { .. } => None,
            Reached::Redirection(redirection) => ground.redirection(redirection, ""),
            Reached::Invocation(invocation) if in_document && !is_reader(&program(invocation.name)) => {
                Some(format!("`{}` is given text that names files of toolwarden", invocation.name))
            }
            Reached::Invocation(invocation) => {
                let found = stopping::ends_found(line, &program(invocation.name));
                found.or_else(|| ground.invocation(invocation))
            }
        };
        if why.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    why
}

/// The words a shell makes of a variable's value, those inside a substitution too; none where the value is one word.
pub(super) fn words_of_value(value: &Word) -> Vec<Word> {
    let text = unquoted(value);
    let parts = |letter: char| letter.is_whitespace() || "()`;|&<>".contains(letter);
    if !text.contains(parts) {
        return Vec::new();
    }
    text.split(parts).filter(|word| !matches!(*word, "" | "$")).map(Word::raw).collect()
}

/// Whether nothing in the text of a command is a program or a script, so that our name in it says nothing.
fn is_understood(command: &SimpleCommand) -> bool {
    let Some(name) = command.name.as_deref().map(program) else { return false };
    let is_plain = matches!(name.as_str(), "git" | "sed" | "gsed") || is_writer(&name);
    is_reader(&name) || name == "toolwarden" || (is_plain && command.obstacle.is_none())
}

/// Why a word is held.
enum Touched<'a> {
    Place(&'a Path),
    /// Where it leads cannot be told.
    Unresolved(PathBuf),
}

impl Touched<'_> {
    /// Keys and data that would be read, or what may lead to them.
    fn said_read(&self) -> String {
        match self {
            Self::Place(path) => reads(path),
            Self::Unresolved(path) => format!("reads {}, and it cannot be told where that leads", path.display()),
        }
    }

    fn said(&self, what: &str) -> String {
        match self {
            Self::Place(path) => format!("{what} {}, which belongs to toolwarden", path.display()),
            Self::Unresolved(path) => format!("{what} {}, and it cannot be told where that leads", path.display()),
        }
    }
}

impl Ground<'_> {
    /// A value of a variable: a word, or the words a shell makes of it, options among them.
    fn in_variable(&self, value: &Word) -> Option<String> {
        if let Some(touched) = self.touched(value, Trees::Used) {
            return Some(touched.said("a variable names"));
        }
        if let Some(why) = self.process_file(value) {
            return Some(why);
        }
        let keys = self.keys.as_deref().filter(|keys| !keys.protected.is_empty())?;
        let touched = words_of_value(value).into_iter().find_map(|word| keys.touched(&word, Trees::Changed));
        touched.map(|touched| touched.said_read())
    }

    /// A file in which the system shows the environment, memory or open files of processes, among them Toolwarden's own.
    fn process_file(&self, word: &Word) -> Option<String> {
        let forms = forms(word);
        let expanded = forms.iter().filter(|_| !word.literal).find(|form| is_behind_expansion(form));
        let spots = forms.iter().flat_map(|form| self.spots(form));
        let found = expanded.map(PathBuf::from).or_else(|| {
            spots.into_iter().find(|spot| {
                let reals = self.facts.real(spot).elsewhere();
                shows_processes(&normalise(spot)) || reals.iter().any(|real| shows_processes(real))
            })
        })?;
        Some(format!("{} shows memory, environment or open files of processes, toolwarden among them", found.display()))
    }

    /// Judges a redirection of the simple command with this text, whose redirections are opened before it runs.
    fn redirection(&self, redirection: &Redirection, own: &str) -> Option<String> {
        let process = Some(&redirection.target).filter(|_| redirection.direction != Direction::Duplicates);
        if let Some(why) = process.and_then(|target| self.process_file(target)) {
            return Some(why);
        }
        match redirection.direction {
            _ if redirection.is_harmless() => None,
            Direction::Duplicates => None,
            Direction::Reads => {
                let touched = self.keys.as_deref()?.touched(&redirection.target, Trees::Named);
                touched.map(|touched| touched.said_read())
            }
            Direction::Writes => {
                let through = self.through_brought(&redirection.target, own);
                let touched = self.touched(&redirection.target, Trees::Used).or(through);
                touched.map(|touched| touched.said("writes to"))
            }
        }
    }

    fn invocation(&self, invocation: Invocation<'_>) -> Option<String> {
        let program = program(invocation.name);
        if program == "toolwarden" {
            let verb = changing_verb(invocation.arguments).filter(|verb| self.given == Given::AsLine || is_ours(verb));
            return verb.map(|verb| format!("runs `toolwarden {verb}`"));
        }
        if let Some(why) = stopping::stops(&program, invocation.arguments) {
            return Some(why);
        }
        let directories = git::directories(invocation.name, invocation.arguments);
        if !directories.is_empty() {
            return self.inside(&directories).used(&program, invocation);
        }
        self.used(&program, invocation)
    }

    fn used(&self, program: &str, invocation: Invocation<'_>) -> Option<String> {
        let program = program.to_owned();
        if is_reader(&program) {
            return self.reading(&program, invocation);
        }
        if let Some(entered) = self.entered() {
            return Some(Touched::Place(entered).said(&format!("`{program}` touches")));
        }
        if let Some(why) = invocation.arguments.iter().find_map(|word| self.process_file(word)) {
            return Some(why);
        }
        let known = effects(&program, invocation.arguments).unwrap_or_default();
        let unpacked = || self.unpacked(&program, invocation.arguments);
        if let Some(why) = self.through_trees(&program, &known).or_else(unpacked) {
            return Some(why);
        }
        if known.reads_the_rest || only_finds(&program, invocation.arguments) {
            return self.known_writer(&program, invocation, &known);
        }
        // `git grep --no-index` and `git diff --no-index` read any tree.
        let reads_anything =
            program == "git" && invocation.arguments.iter().any(|word| word.text.starts_with("--no-i"));
        let compared =
            Some(program.as_str()).filter(|program| *program == "git").map(|_| git::compared(invocation.arguments));
        let keys = self.keys.as_deref().filter(|keys| !keys.protected.is_empty());
        let mut shown = compared.iter().flatten().filter_map(|word| keys?.touched(word, Trees::Changed));
        if let Some(touched) = shown.next() {
            return Some(touched.said_read());
        }
        let writes_unnamed = writes_unnamed(&program, invocation.arguments) || reads_anything;
        let trees =
            if TREE_CHANGERS.contains(&program.as_str()) || writes_unnamed { Trees::Changed } else { Trees::Used };
        let joined = known.joined();
        let words = || invocation.arguments.iter().chain(&joined);
        let here = Word::literal(".");
        let unnamed = Some(&here).filter(|_| writes_unnamed && !unpacks_elsewhere(&program, invocation.arguments));
        let found = words().chain(unnamed).find_map(|word| self.touched(word, trees));
        let found = found.or_else(|| words().filter(|_| program == "ln").find_map(|word| self.linked(word)));
        let is_writer = listed(WRITERS, &program);
        let through = || words().filter(|_| is_writer).find_map(|word| self.through_brought(word, invocation.text));
        let found = found.or_else(through);
        found.map(|touched| touched.said(&format!("`{program}` touches")))
    }

    /// A writer of which it is known what it writes: the other words are only read.
    fn known_writer(&self, program: &str, invocation: Invocation<'_>, known: &Effects) -> Option<String> {
        // `cp -r x .` changes `./x`, not everything in a directory that is used by everything.
        let filled = known.filled();
        let changed = filled.iter().map(|word| (word, if known.moves_trees { Trees::Changed } else { Trees::Used }));
        let named = known.written.iter().map(|word| (word, Trees::Used));
        let written = changed.chain(named).find_map(|(word, trees)| {
            self.touched(word, trees).or_else(|| self.through_brought(word, invocation.text))
        });
        if let Some(touched) = written {
            return Some(touched.said(&format!("`{program}` touches")));
        }
        let keys = self.keys.as_deref().filter(|keys| !keys.protected.is_empty())?;
        if self.hands_over && listed("find gfind", program) {
            return keys.found_by(invocation.arguments).map(reads);
        }
        // `find` shows names only.
        let trees = if only_finds(program, invocation.arguments) { Trees::Named } else { Trees::Changed };
        let sources = invocation.arguments.iter().chain(&known.sources);
        sources.into_iter().find_map(|word| keys.touched(word, trees)).map(|touched| touched.said_read())
    }

    /// Links below a tree that is read through them, or that is written.
    fn through_trees(&self, program: &str, known: &Effects) -> Option<String> {
        let keys = self.keys.as_deref().unwrap_or(self);
        let filled = known.filled();
        let written = filled.iter().filter(|_| known.copies_trees).flat_map(|word| self.below(word));
        let read = known.sources.iter().filter(|_| known.follows_links).flat_map(|word| keys.below(word));
        let touched = written.chain(read).next()?;
        Some(touched.said(&format!("`{program}` is led by a link to")))
    }

    /// What comes out of an archive is written wherever the archive says, or through links that are there already.
    fn unpacked(&self, program: &str, arguments: &[Word]) -> Option<String> {
        match unpacked(program, arguments)? {
            Unpacked::Anywhere => {
                let why = || format!("`{program}` may write anywhere, files of toolwarden among them");
                (!self.protected.is_empty()).then(why)
            }
            Unpacked::Below(words) => {
                let touched = words.iter().flat_map(|word| self.below(word)).next()?;
                Some(touched.said(&format!("`{program}` is led by a link to")))
            }
        }
    }

    /// The protected paths that links below a tree lead to.
    fn below(&self, word: &Word) -> Vec<Touched<'_>> {
        let spots = forms(word).into_iter().flat_map(|form| self.spots(&form));
        let mut found = Vec::new();
        for spot in spots.filter(|_| !self.protected.is_empty()) {
            let Some(tree) = self.facts.tree(&spot).filter(|tree| tree.is_whole) else {
                found.push(Touched::Unresolved(spot));
                continue;
            };
            let leads = |place: &&PathBuf| {
                let is_it = |link: &PathBuf| link.starts_with(place) || self.takes_tree(link, place, Trees::Changed);
                tree.links.iter().any(is_it)
            };
            found.extend(self.protected.iter().filter(leads).map(|place| Touched::Place(place)));
        }
        found
    }

    /// A reader may read what is ours, but no keys and data.
    fn reading(&self, program: &str, invocation: Invocation<'_>) -> Option<String> {
        let arguments = invocation.arguments;
        // What these say becomes words of another command: `echo x | xargs cat`.
        let hands_over = self.hands_over && listed("echo printf", program);
        let speaks = listed("echo printf true false pwd dirname basename cd", program) && !hands_over;
        if let Some(why) = self.through_trees(program, &effects(program, arguments).unwrap_or_default()) {
            return Some(why);
        }
        if let Some(why) = arguments.iter().filter(|_| !speaks).find_map(|word| self.process_file(word)) {
            return Some(why);
        }
        let keys = self.keys.as_deref().filter(|keys| !keys.protected.is_empty() && !speaks)?;
        let is_deep = is_recursive(program, arguments);
        let trees = if is_deep { Trees::Changed } else { Trees::Named };
        let words = path_words(program, arguments);
        let here = Word::literal(".");
        // Without a path they go through the directory they run in.
        let implied = Some(&here).filter(|_| is_deep && words.iter().all(|word| word.text.starts_with('-')));
        let named = || arguments.iter().chain(implied).find_map(|word| keys.touched(word, trees));
        let processes = || words.iter().filter(|_| is_deep).find_map(|word| self.process_tree(word));
        let named = || named().map(|touched| touched.said_read());
        keys.entered().map(reads).or_else(named).or_else(processes)
    }

    /// `/` and `/proc` as trees.
    fn process_tree(&self, word: &Word) -> Option<String> {
        let spots = forms(word).into_iter().flat_map(|form| self.spots(&form));
        let found = spots.into_iter().map(|spot| normalise(&spot)).find(|spot| {
            let reals = self.facts.real(spot).elsewhere();
            std::iter::once(spot).chain(reals).any(|path| *path == Path::new("/") || path.starts_with("/proc"))
        })?;
        Some(format!("{} holds memory, environment or open files of processes, toolwarden among them", found.display()))
    }

    /// A word that is used at or below a path to which another command of the line brings trees or links.
    fn through_brought(&self, word: &Word, own: &str) -> Option<Touched<'_>> {
        self.brought_at(word, own).map(Touched::Unresolved)
    }

    /// The target of a link is seen from where the link is, which may be anywhere: it counts by its last name.
    fn linked(&self, word: &Word) -> Option<Touched<'_>> {
        let text = unquoted(word);
        let name = Path::new(&text).file_name()?.to_string_lossy().to_ascii_lowercase();
        let is_it =
            |path: &Path| path.file_name().is_some_and(|own| own.to_string_lossy().to_ascii_lowercase() == name);
        let found = self.protected.iter().find(|path| is_it(path) || path.parent().is_some_and(is_it));
        found.map(|path| Touched::Place(path))
    }

    /// The directory of ours that a `cd` goes into: every command there is suspect.
    fn entered(&self) -> Option<&Path> {
        let is_entered = |place: &PathBuf| {
            let leads = |base: &PathBuf| match self.facts.real(base) {
                Real::AsWritten | Real::Unresolved => base.starts_with(place),
                real => real.elsewhere().iter().any(|real| real.starts_with(place)),
            };
            self.bases.iter().any(|base| *base != self.here && leads(base))
        };
        self.protected.iter().find(|place| is_entered(place)).map(PathBuf::as_path)
    }

    /// The protected path a word lands on, under or above; looks behind `=`, into glued options and braces too, and
    /// follows links.
    fn touched(&self, word: &Word, trees: Trees) -> Option<Touched<'_>> {
        let text = unquoted(word);
        if let Some(path) = self.spelled(&text) {
            return Some(Touched::Place(path));
        }
        // `~bob/..`, `~-`: where that is only the shell knows.
        let is_elsewhere = names_other_home(&self.expand_home(&text));
        let is_wide = trees == Trees::Changed || text.contains("..") || cut_at_expansion(&text).len() != text.len();
        if is_elsewhere && is_wide && !self.protected.is_empty() {
            return Some(Touched::Unresolved(PathBuf::from(text)));
        }
        let forms = forms(word);
        let lexical =
            forms.iter().find_map(|form| self.landing(form, trees, word.literal).or_else(|| self.guessed(form, trees)));
        if let Some(path) = lexical {
            return Some(Touched::Place(path));
        }
        forms.iter().flat_map(|form| self.spots(form)).find_map(|spot| match self.facts.real(&spot) {
            Real::AsWritten => None,
            Real::Unresolved => Some(Touched::Unresolved(spot)),
            real => real.elsewhere().iter().find_map(|real| {
                let is_place = |place: &&PathBuf| real.starts_with(place) || self.takes_tree(real, place, trees);
                self.protected.iter().find(is_place).map(|place| Touched::Place(place))
            }),
        })
    }

    /// A protected path that is spelled out anywhere in a text.
    fn spelled(&self, text: &str) -> Option<&Path> {
        let is_code = text.contains([' ', '(', '"', '\'', '\n']);
        let text = text.replace(['"', '\'', '\\'], "");
        let is_spelled = |protected: &Path| {
            // In code a relative path counts by its last two names.
            let last_names = protected.parent().and_then(Path::parent).and_then(|top| protected.strip_prefix(top).ok());
            if is_code && last_names.is_some_and(|names| text.contains(&*names.to_string_lossy())) {
                return true;
            }
            let below_home = self.home.and_then(|home| protected.strip_prefix(home).ok());
            let home_forms = below_home
                .into_iter()
                .flat_map(|rest| ["~/", "$HOME/", "${HOME}/"].map(|home| format!("{home}{}", rest.display())));
            protected.parent().is_some()
                && std::iter::once(protected.display().to_string()).chain(home_forms).any(|form| text.contains(&form))
        };
        self.protected.iter().map(PathBuf::as_path).find(|protected| is_spelled(protected))
    }

    /// Whether the name of a protected file or directory occurs in a text.
    fn is_named_in(&self, text: &str) -> bool {
        self.protected.iter().filter_map(|path| path.file_name()).any(|name| text.contains(&*name.to_string_lossy()))
    }

    /// A word whose beginning cannot be known is compared by the names in it: `$X/.cursor/permissions.json`.
    fn guessed(&self, text: &str, trees: Trees) -> Option<&Path> {
        let expanded = self.expand_home(text);
        let is_unknown = expanded.contains(['$', '`']) || expanded.starts_with(['~', '{', '*', '?', '[']);
        // `a*/../../x`: a pattern may go up from anywhere.
        let climbs = expanded.contains("..") && cut_at_expansion(&expanded).len() != expanded.len();
        let is_adrift = self.is_lost && !expanded.starts_with('/');
        if !(is_unknown || climbs || is_adrift) {
            return None;
        }
        let fits = |name: &str| {
            expanded.split(['/', '{', '}', ',', '(', ')', ' ', '=']).any(|part| {
                let start = cut_at_expansion(part);
                let is_pattern = start.len() != part.len() && !start.is_empty() && name.starts_with(start);
                // `${x}ssions.json`
                let is_tail = part.len() > ".json".len() && name.ends_with(part);
                part.eq_ignore_ascii_case(name) || is_pattern || is_tail
            })
        };
        self.protected.iter().map(PathBuf::as_path).find(|protected| {
            let above = protected.parent().filter(|_| trees == Trees::Changed);
            let names = [Some(*protected), above].into_iter().flatten().filter_map(Path::file_name);
            names.map(|name| name.to_string_lossy()).any(|name| fits(&name))
        })
    }

    /// The protected path a text lands on. `is_literal`: quotes keep the shell from expanding it, though a program may
    /// still expand patterns.
    fn landing(&self, text: &str, trees: Trees, is_literal: bool) -> Option<&Path> {
        if text.is_empty() || text.starts_with('-') {
            return None;
        }
        let expanded = self.expand_home(text);
        // Without a known working directory a relative text may mean anything.
        if !Path::new(&expanded).is_absolute() && self.bases.iter().any(|base| !base.is_absolute()) {
            return self.protected.first().map(PathBuf::as_path);
        }
        let literal = cut_at_expansion(&expanded);
        // Braces with few alternatives are forms of their own.
        let is_unfolded = expanded.contains('{') && braces::expanded(&expanded).is_none();
        let is_unknown = is_unfolded || (!is_literal && expanded.contains(['$', '`']));
        let is_pattern = literal.len() != expanded.len() && (is_unfolded || !expanded.contains('{'));
        let paths: Vec<PathBuf> = self.bases.iter().filter_map(|base| resolve(literal, base)).collect();
        let wild: Vec<PathBuf> = self.bases.iter().filter(|_| is_pattern).map(|base| base.join(&expanded)).collect();
        self.protected.iter().map(PathBuf::as_path).find(|protected| {
            let lands = paths.iter().any(|path| {
                let may_become = is_unknown && starts_like(protected, path);
                path.starts_with(protected) || may_become || self.takes_tree(path, protected, trees)
            });
            lands
                || wild
                    .iter()
                    .any(|pattern| patterns::expands_to(&normalise(pattern), protected, trees == Trees::Changed))
        })
    }

    /// `rm -rf ~/.config` takes what is below it. Other commands are often given the directory they run in
    /// (`eslint .`), which says nothing about the files in it.
    fn takes_tree(&self, path: &Path, protected: &Path, trees: Trees) -> bool {
        let is_here = self.bases.iter().any(|base| base.starts_with(path));
        protected.starts_with(path) && (trees == Trees::Changed || (trees == Trees::Used && !is_here))
    }
}

/// One line in which variables may stand for commands: `t=toolwarden; $t allow x`.
pub(super) fn is_single_with_variables(text: &str) -> bool {
    text.contains('$') && !text.contains('\n')
}

/// Programs whose presence makes a text a command line rather than prose: they change trees or directories, or run others.
pub(super) fn is_telling(program: &str) -> bool {
    program == "toolwarden"
        || TREE_CHANGERS.contains(&program)
        || wrappers::changes_directory(program)
        || wrappers::reach(program).is_some()
        || wrappers::starts_programs(program)
}

/// Programs that write to files they are given by name.
const WRITERS: &str = "tee cp mv install dd truncate sed gsed sort touch rsync ln patch";

/// `find` without actions that write or execute shows names only.
fn only_finds(program: &str, arguments: &[Word]) -> bool {
    listed("find gfind", program) && options::executing(program, arguments).is_none()
}

/// Whether `protected` could be an expansion of a pattern that begins with `path`.
fn starts_like(protected: &Path, path: &Path) -> bool {
    protected.to_string_lossy().starts_with(path.to_string_lossy().as_ref())
}
