//! Finds lines that would change Toolwarden itself.
//! Takes a read line and the protected paths (config, data, trusted workspace files, client hooks); gives
//! why the line must be held: a changing `toolwarden` command, or a path that lands on, under or above a
//! protected one in anything but a pure reader. Unknown verbs count as changing.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::braces;
use crate::facts::{FileFacts, Real};
use crate::git;
use crate::line::{Direction, Redirection, ShellLine, SimpleCommand, Word, join};
use crate::options;
use crate::paths::{normalise, resolve};
use crate::reach::{Invocation, Reached, visit};
use crate::readers::is_reader;
use crate::unpacking;
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
const MOST_BASES: usize = 8;

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
    let Some(mut ground) = Ground::of(line, cwd, belongings.home, facts) else {
        return Some("changes the directory too often to tell what it does with toolwarden".to_owned());
    };
    ground.given = given;
    ground.protected = belongings.protected.iter().chain(belongings.secret).map(|path| normalise(path)).collect();
    let mut keys = ground.clone();
    keys.protected = belongings.secret.iter().map(|path| normalise(path)).collect();
    ground.keys = Some(Box::new(keys));
    let of_command = |one: &SimpleCommand| {
        let own = key(one.name.as_deref().unwrap_or_default(), &one.arguments);
        one.redirections.iter().find_map(|found| ground.redirection(found, &own))
    };
    let of_line = || line.redirections.iter().find_map(|found| ground.redirection(found, ""));
    if let Some(why) = line.commands.iter().find_map(of_command).or_else(of_line) {
        return Some(why);
    }
    // A variable may carry such a word to any command.
    if let Some(why) = line.other_words.iter().find_map(|word| ground.touched(word, Trees::Used)) {
        return Some(why.said("a variable names"));
    }
    let is_doubtful = given == Given::AsLine || is_single_with_variables(&line.source);
    let mentions = line.source.to_ascii_lowercase().contains("toolwarden") || ground.is_named_in(&line.source);
    let mentions = mentions && is_doubtful;
    // The body of a here-document is no argument of any command.
    let in_document = line.source.contains("<<") && ground.spelled(&line.source).is_some();
    let mut why = None;
    visit(line, &mut |reached| {
        why = match reached {
            Reached::Unknown { text } if mentions => Some(format!("cannot tell what `{text}` does with toolwarden")),
            Reached::Unknown { .. } => None,
            Reached::Redirection(redirection) => ground.redirection(redirection, ""),
            Reached::Invocation(invocation) if in_document && !is_reader(&program(invocation.name)) => {
                Some(format!("`{}` is given text that names files of toolwarden", invocation.name))
            }
            Reached::Invocation(invocation) => ground.invocation(invocation),
        };
        if why.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    why
}

/// Why a word is held.
enum Touched<'a> {
    Place(&'a Path),
    /// Where it leads cannot be told.
    Unresolved(PathBuf),
}

impl Touched<'_> {
    fn said(&self, what: &str) -> String {
        match self {
            Self::Place(path) => format!("{what} {}, which belongs to toolwarden", path.display()),
            Self::Unresolved(path) => format!("{what} {}, and it cannot be told where that leads", path.display()),
        }
    }
}

/// Where a line runs and what it must not touch.
#[derive(Clone)]
pub(super) struct Ground<'a> {
    protected: Vec<PathBuf>,
    /// The same ground with keys and data alone.
    keys: Option<Box<Ground<'a>>>,
    /// Directories that relative paths may start from: the working directory and each target of a `cd`.
    bases: Vec<PathBuf>,
    /// The working directory itself, the first of the bases.
    here: PathBuf,
    /// A `cd` goes to a place that cannot be known.
    is_lost: bool,
    /// Where trees are unpacked or copied to by the line itself, each with its command: links may be among them.
    unpacked: Vec<(String, PathBuf)>,
    home: Option<&'a Path>,
    facts: &'a FileFacts,
    given: Given,
}

impl<'a> Ground<'a> {
    /// The directories of a line; `None` where it changes them too often.
    pub(super) fn of(line: &ShellLine, cwd: &Path, home: Option<&'a Path>, facts: &'a FileFacts) -> Option<Self> {
        let here = normalise(cwd);
        let mut ground = Ground {
            protected: Vec::new(),
            keys: None,
            bases: vec![here.clone()],
            here,
            is_lost: false,
            unpacked: Vec::new(),
            home,
            facts,
            given: Given::AsLine,
        };
        if ground.follow_directories(line) == Followed::TooMany {
            return None;
        }
        let mut unpacked = Vec::new();
        visit(line, &mut |reached| {
            if let Reached::Invocation(invocation) = reached {
                let targets = ground.unpacked_by(&program(invocation.name), invocation.arguments);
                unpacked.extend(targets.into_iter().map(|target| (key(invocation.name, invocation.arguments), target)));
            }
            ControlFlow::Continue(())
        });
        ground.unpacked = unpacked;
        Some(ground)
    }

    /// Where a command brings trees, in which links may be. Git brings them into the whole work tree.
    fn unpacked_by(&self, program: &str, arguments: &[Word]) -> Vec<PathBuf> {
        if writes_unnamed(program, arguments) || (program == "git" && git::changes_tree(arguments)) {
            return self.bases.clone();
        }
        if !listed("tar gtar bsdtar unzip rsync", program) && !unpacking::takes_trees(program, arguments) {
            return Vec::new();
        }
        arguments.iter().flat_map(forms).flat_map(|form| self.spots(&form)).map(|path| normalise(&path)).collect()
    }

    pub(super) fn bases(&self) -> &[PathBuf] {
        &self.bases
    }

    /// The paths a text may mean, as written: seen from each directory the line may be in.
    pub(super) fn spots(&self, text: &str) -> Vec<PathBuf> {
        let expanded = self.expand_home(text);
        if expanded.is_empty() || expanded.starts_with('-') || expanded.contains(['$', '`', '\n', '\0']) {
            return Vec::new();
        }
        self.bases.iter().map(|base| base.join(&expanded)).filter(|path| path.is_absolute()).collect()
    }

    /// Adds the target of each `cd`, also inside text given to shells, seen from every directory before it.
    fn follow_directories(&mut self, line: &ShellLine) -> Followed {
        let mut targets: Vec<Word> = Vec::new();
        visit(line, &mut |reached| {
            if let Reached::Invocation(invocation) = reached
                && wrappers::changes_directory(&program(invocation.name))
            {
                let target = invocation.arguments.iter().find(|word| word.text == "-" || !word.text.starts_with('-'));
                let is_cd = matches!(invocation.name, "cd" | "chdir");
                // `popd`, `pushd` and `z` go where the shell remembers.
                let otherwise = Word::raw(if is_cd { "~" } else { "-" });
                targets.push(target.filter(|_| program(invocation.name) != "z").cloned().unwrap_or(otherwise));
            }
            ControlFlow::Continue(())
        });
        for target in targets {
            let text = self.expand_home(&unquoted(&target));
            if text == "-" || text.starts_with('~') || cut_at_expansion(&text).len() != text.len() {
                self.is_lost = true;
            }
            let reached: Vec<PathBuf> = self.bases.iter().filter_map(|base| resolve(&text, base)).collect();
            self.bases.extend(reached);
            self.bases.sort();
            self.bases.dedup();
            if self.bases.len() > MOST_BASES {
                return Followed::TooMany;
            }
        }
        Followed::All
    }

    /// Judges a redirection of the command with this key.
    fn redirection(&self, redirection: &Redirection, own: &str) -> Option<String> {
        match redirection.direction {
            Direction::Duplicates => None,
            Direction::Reads => self.keys.as_deref()?.place(&redirection.target, Trees::Named).map(reads),
            Direction::Writes => {
                let through = self.through_unpacked(&redirection.target, own);
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
        if is_reader(&program) {
            return self.reading(&program, invocation.arguments);
        }
        if let Some(entered) = self.entered() {
            return Some(Touched::Place(entered).said(&format!("`{program}` touches")));
        }
        let writes_unnamed = writes_unnamed(&program, invocation.arguments);
        let trees =
            if TREE_CHANGERS.contains(&program.as_str()) || writes_unnamed { Trees::Changed } else { Trees::Used };
        let words = || invocation.arguments.iter();
        let here = Word::literal(".");
        let unnamed = Some(&here).filter(|_| writes_unnamed);
        let found = words().chain(unnamed).find_map(|word| self.touched(word, trees));
        let found = found.or_else(|| words().filter(|_| program == "ln").find_map(|word| self.linked(word)));
        let is_writer = listed(WRITERS, &program);
        let own = key(invocation.name, invocation.arguments);
        let through = || words().filter(|_| is_writer).find_map(|word| self.through_unpacked(word, &own));
        let found = found.or_else(through);
        found.map(|touched| touched.said(&format!("`{program}` touches")))
    }

    /// A reader may read what is ours, but no keys and data.
    fn reading(&self, program: &str, arguments: &[Word]) -> Option<String> {
        let speaks = listed("echo printf true false pwd dirname basename cd", program);
        let keys = self.keys.as_deref().filter(|keys| !keys.protected.is_empty() && !speaks)?;
        let is_recursive = |word: &Word| {
            let bundle = word.text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
            bundle.is_some_and(|bundle| bundle.contains(['r', 'R'])) || word.text.contains("recurs")
        };
        let is_deep = matches!(program, "rg" | "du") || arguments.iter().any(is_recursive);
        let trees = if is_deep { Trees::Changed } else { Trees::Named };
        let named = || arguments.iter().find_map(|word| keys.place(word, trees));
        keys.entered().or_else(named).map(reads)
    }

    /// The place a word names. One whose way cannot be told is not read either.
    fn place(&self, word: &Word, trees: Trees) -> Option<&Path> {
        match self.touched(word, trees)? {
            Touched::Place(place) => Some(place),
            Touched::Unresolved(_) => None,
        }
    }

    /// A word that is written below a tree which another command of the line unpacks.
    fn through_unpacked(&self, word: &Word, own: &str) -> Option<Touched<'_>> {
        let spots = forms(word).into_iter().flat_map(|form| self.spots(&form)).map(|path| normalise(&path));
        let is_below = |path: &PathBuf| {
            self.unpacked.iter().any(|(other, tree)| other != own && path != tree && path.starts_with(tree))
        };
        let mut below = spots.filter(is_below);
        below.next().map(Touched::Unresolved)
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
                Real::Elsewhere(real) => real.starts_with(place),
                Real::AsWritten | Real::Unresolved => base.starts_with(place),
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
        let forms = forms(word);
        let lexical = forms.iter().find_map(|form| self.landing(form, trees).or_else(|| self.guessed(form, trees)));
        if let Some(path) = lexical {
            return Some(Touched::Place(path));
        }
        forms.iter().flat_map(|form| self.spots(form)).find_map(|spot| match self.facts.real(&spot) {
            Real::AsWritten => None,
            Real::Unresolved => Some(Touched::Unresolved(spot)),
            Real::Elsewhere(real) => {
                let is_place = |place: &&PathBuf| real.starts_with(place) || self.takes_tree(real, place, trees);
                self.protected.iter().find(is_place).map(|place| Touched::Place(place))
            }
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

    fn landing(&self, text: &str, trees: Trees) -> Option<&Path> {
        if text.is_empty() || text.starts_with('-') {
            return None;
        }
        let expanded = self.expand_home(text);
        // Without a known working directory a relative text may mean anything.
        if !Path::new(&expanded).is_absolute() && self.bases.iter().any(|base| !base.is_absolute()) {
            return self.protected.first().map(PathBuf::as_path);
        }
        let literal = cut_at_expansion(&expanded);
        let is_pattern = literal.len() != expanded.len();
        let paths: Vec<PathBuf> = self.bases.iter().filter_map(|base| resolve(literal, base)).collect();
        self.protected.iter().map(PathBuf::as_path).find(|protected| {
            paths.iter().any(|path| {
                let may_become = is_pattern && starts_like(protected, path);
                path.starts_with(protected) || may_become || self.takes_tree(path, protected, trees)
            })
        })
    }

    /// `rm -rf ~/.config` takes what is below it. Other commands are often given the directory they run in
    /// (`eslint .`), which says nothing about the files in it.
    fn takes_tree(&self, path: &Path, protected: &Path, trees: Trees) -> bool {
        let is_here = self.bases.iter().any(|base| base.starts_with(path));
        protected.starts_with(path) && (trees == Trees::Changed || (trees == Trees::Used && !is_here))
    }

    /// Replaces what stands for the home or the working directory at the beginning.
    fn expand_home(&self, text: &str) -> String {
        let home = self.home.map(|home| home.display().to_string());
        let here = Some(".".to_owned());
        let forms = [("~+", &here), ("~", &home), ("$HOME", &home), ("${HOME}", &home), ("$PWD", &here)];
        let braced = [("${HOME:-", &home), ("${HOME-", &home), ("${PWD}", &here), ("${PWD:-", &here)];
        for (prefix, value) in forms.into_iter().chain(braced) {
            let Some(rest) = text.strip_prefix(prefix) else { continue };
            let rest = if prefix.ends_with('-') { rest.split_once('}').map_or(rest, |(_, rest)| rest) } else { rest };
            if let Some(value) = value.as_ref().filter(|_| rest.is_empty() || rest.starts_with('/')) {
                return format!("{value}{rest}");
            }
        }
        text.to_owned()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Followed {
    All,
    TooMany,
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

/// What tells one command of a line from another.
fn key(name: &str, arguments: &[Word]) -> String {
    format!("{name} {}", join(arguments))
}

fn reads(place: &Path) -> String {
    format!("reads {}, which holds keys or data of toolwarden", place.display())
}

/// Programs that write to files they are given by name.
const WRITERS: &str = "tee cp mv install dd truncate sed gsed sort touch rsync ln patch";

/// Whether a program writes files that its words do not name, below the directory it runs in.
fn writes_unnamed(program: &str, arguments: &[Word]) -> bool {
    let applies = || {
        let mut verbs = options::possible_verb_tails(arguments).filter_map(|tail| tail.first());
        verbs.any(|verb| matches!(verb.text.as_str(), "apply" | "am")) && git::read(arguments).is_err()
    };
    unpacking::unpacks(program, arguments).is_some() || (program == "git" && applies())
}

/// The texts a word may stand for as a path: itself, what is behind `=`, glued to an option or between `:` and `,`,
/// each with its braces expanded.
pub(super) fn forms(word: &Word) -> Vec<String> {
    let text = unquoted(word);
    let behind_equals = text.split_once('=').map(|(_, value)| value);
    let glued = text.strip_prefix('-').and_then(|option| option.get(1..));
    let rooted = text.find(['/', '~', '$']).filter(|_| text.starts_with('-')).and_then(|start| text.get(start..));
    // `-v here:there`, `type=bind,src=here`
    let pieces = text.split(['=', ':', ',']).filter(|_| text.contains([':', ',']));
    let texts = [Some(text.as_str()), behind_equals, glued, rooted].into_iter().flatten().chain(pieces);
    let mut forms: Vec<String> = Vec::new();
    for text in texts {
        forms.push(text.to_owned());
        if text.contains('{') {
            forms.extend(braces::expanded(text).unwrap_or_default());
        }
    }
    forms
}

/// The text without quotes; a literal word has lost them already.
fn unquoted(word: &Word) -> String {
    if word.literal { word.text.clone() } else { word.text.replace(['"', '\'', '\\'], "") }
}

/// What stands before the first character that a shell would expand.
fn cut_at_expansion(text: &str) -> &str {
    text.split(['*', '?', '[', '{', '$', '`']).next().unwrap_or(text)
}

/// Whether `protected` could be an expansion of a pattern that begins with `path`.
fn starts_like(protected: &Path, path: &Path) -> bool {
    protected.to_string_lossy().starts_with(path.to_string_lossy().as_ref())
}
