//! Where a line runs: the directories that its relative paths may be seen from, and what its words mean there.
//! Takes a read line, the working directory and the home; gives paths as they are written. A directory that cannot be
//! known is said to be so, and a line that changes its directory too often has no ground.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::addresses::file_paths;
use crate::braces;
use crate::effects::effects;
use crate::encodings::decoded;
use crate::facts::{FileFacts, Real};
use crate::git;
use crate::line::{ShellLine, Word};
use crate::options;
use crate::paths::{normalise, resolve};
use crate::reach::{Reached, visit};
use crate::self_protection::Given;
use crate::unpacking;
use crate::wrappers::{self, listed, program};

const MOST_BASES: usize = 8;

/// Stands for the text of a command that runs more than once. No command has it.
const AGAIN: &str = "\0";

/// Whether a command stands in a line twice, or in a loop: what its first run brings is there when its next one begins.
fn may_run_again(line: &ShellLine, text: &str) -> bool {
    let is_twice = line.commands.iter().filter(|command| command.text == text).nth(1).is_some();
    is_twice || line.source.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == "done")
}

/// Where a line runs and what it must not touch.
#[derive(Clone)]
pub(super) struct Ground<'a> {
    pub(super) protected: Vec<PathBuf>,
    /// The same ground with keys and data alone.
    pub(super) keys: Option<Box<Ground<'a>>>,
    /// Directories that relative paths may start from: the working directory and each target of a `cd`.
    pub(super) bases: Vec<PathBuf>,
    /// The working directory itself, the first of the bases.
    pub(super) here: PathBuf,
    /// A `cd` goes to a place that cannot be known.
    pub(super) is_lost: bool,
    /// Where the line itself brings trees or links.
    pub(super) brought: Vec<Brought>,
    pub(super) home: Option<&'a Path>,
    pub(super) facts: &'a FileFacts,
    pub(super) given: Given,
    /// What a command of the line prints may become words of another.
    pub(super) hands_over: bool,
}

/// A path to which a command of the line brings something that may be or hold a link.
#[derive(Clone)]
pub(super) struct Brought {
    /// The text of the simple command.
    pub(super) by: String,
    pub(super) path: PathBuf,
    /// The path itself may be a link; otherwise only what is below it.
    pub(super) is_link: bool,
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
            brought: Vec::new(),
            home,
            facts,
            given: Given::AsLine,
            hands_over: false,
        };
        if ground.follow_directories(line) == Followed::TooMany {
            return None;
        }
        let mut brought = Vec::new();
        visit(line, &mut |reached| {
            if let Reached::Invocation(invocation) = reached {
                let by = if may_run_again(line, invocation.text) { AGAIN } else { invocation.text };
                let program = program(invocation.name);
                let trees = ground.unpacked_by(&program, invocation.arguments).into_iter().map(|path| (path, false));
                let links = ground.linked_by(&program, invocation.arguments).into_iter().map(|path| (path, true));
                brought.extend(trees.chain(links).map(|(path, is_link)| Brought { by: by.to_owned(), path, is_link }));
            }
            ControlFlow::Continue(())
        });
        ground.brought = brought;
        Some(ground)
    }

    /// The same ground as git sees it that was told to run elsewhere by `-C`, each directory seen from the one before.
    pub(super) fn inside(&self, directories: &[&str]) -> Self {
        let mut ground = self.clone();
        let enter = |base: &PathBuf| directories.iter().fold(base.clone(), |base, next| base.join(next));
        ground.bases.extend(self.bases.iter().map(enter).map(|base| normalise(&base)).collect::<Vec<_>>());
        ground.keys = self.keys.as_ref().map(|keys| Box::new(keys.inside(directories)));
        ground
    }

    /// Where a command makes links, or moves what may be one: a relative link leads elsewhere from its new place.
    fn linked_by(&self, program: &str, arguments: &[Word]) -> Vec<PathBuf> {
        let is_copy = listed("cp gcp", program);
        let has = |letters: &str, longs: &str| {
            arguments.iter().any(|word| match word.text.strip_prefix("--") {
                Some(long) => {
                    let name = long.split('=').next().unwrap_or(long);
                    !name.is_empty() && longs.split_ascii_whitespace().any(|known| known.starts_with(name))
                }
                None => letters.chars().any(|letter| is_bundle_with(word, letter)),
            })
        };
        let makes = listed("ln gln", program) || (is_copy && has("sl", "symbolic-link link"));
        let keeps = || has("PdaRr", "no-dereference archive recursive preserve");
        let moves = listed("mv gmv", program) || (is_copy && keeps());
        if !makes && !moves {
            return Vec::new();
        }
        let spots = |word: &Word| forms(word).into_iter().flat_map(|form| self.spots(&form)).collect::<Vec<_>>();
        // With an option that is not known any word may be the target.
        let Ok(known) = effects(program, arguments) else {
            return arguments.iter().flat_map(spots).map(|path| normalise(&path)).collect();
        };
        let may_be_link = |spot: &PathBuf| {
            let tree = self.facts.tree(spot);
            *self.facts.real(spot) != Real::AsWritten
                || tree.is_some_and(|tree| !tree.is_whole || !tree.links.is_empty())
        };
        if !makes && !known.sources.iter().flat_map(spots).any(|spot| may_be_link(&spot)) {
            return Vec::new();
        }
        let targets = known.targets.iter().cloned().chain(known.joined());
        targets.flat_map(|word| spots(&word)).map(|path| normalise(&path)).collect()
    }

    /// A path that a word means and to which another command of the line brings trees or links, or that lies below one.
    pub(super) fn brought_at(&self, word: &Word, own: &str) -> Option<PathBuf> {
        let mut spots = forms(word).into_iter().flat_map(|form| self.spots(&form)).map(|path| normalise(&path));
        let reaches = |path: &PathBuf, one: &Brought| {
            one.by != own && path.starts_with(&one.path) && (one.is_link || *path != one.path)
        };
        spots.find(|path| self.brought.iter().any(|one| reaches(path, one)))
    }

    /// Where a command brings trees, in which links may be. Git brings them into the whole work tree.
    fn unpacked_by(&self, program: &str, arguments: &[Word]) -> Vec<PathBuf> {
        if writes_unnamed(program, arguments) || (program == "git" && git::changes_tree(arguments)) {
            return self.bases.clone();
        }
        if !effects(program, arguments).is_ok_and(|known| known.copies_trees) {
            return Vec::new();
        }
        arguments.iter().flat_map(forms).flat_map(|form| self.spots(&form)).map(|path| normalise(&path)).collect()
    }

    /// Whether a word is relative to a directory that cannot be known, or is expanded to what cannot be known.
    pub(super) fn is_adrift(&self, word: &Word) -> bool {
        let text = self.expand_home(&unquoted(word));
        text.contains(['$', '`']) || text.starts_with('~') || (self.is_lost && !text.starts_with('/'))
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

    /// Replaces what stands for the home or the working directory at the beginning.
    pub(super) fn expand_home(&self, text: &str) -> String {
        let home = self.home.map(|home| home.display().to_string());
        let here = Some(".".to_owned());
        let own = self.home.and_then(Path::file_name).map(|name| format!("~{}", name.to_string_lossy()));
        let own = own.unwrap_or_else(|| "~".to_owned());
        let forms =
            [("~+", &here), (own.as_str(), &home), ("~", &home), ("$HOME", &home), ("${HOME}", &home), ("$PWD", &here)];
        let braced = [("${HOME:-", &home), ("${HOME-", &home), ("${PWD}", &here), ("${PWD:-", &here)];
        // Where these are not set to something else.
        let below = |rest: &str| self.home.map(|home| home.join(rest).display().to_string());
        let (config, data, state) = (below(".config"), below(".local/share"), below(".local/state"));
        let standard = [
            ("$XDG_CONFIG_HOME", &config),
            ("${XDG_CONFIG_HOME}", &config),
            ("${XDG_CONFIG_HOME:-", &config),
            ("$XDG_DATA_HOME", &data),
            ("${XDG_DATA_HOME}", &data),
            ("${XDG_DATA_HOME:-", &data),
            ("$XDG_STATE_HOME", &state),
            ("${XDG_STATE_HOME}", &state),
            ("${XDG_STATE_HOME:-", &state),
        ];
        for (prefix, value) in forms.into_iter().chain(braced).chain(standard) {
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

/// The texts a word may stand for as a path: itself, what is behind `=`, glued to an option or between `:`, `,` and the
/// like, the paths of an address, each decoded, without quotes and with its braces expanded.
pub(super) fn forms(word: &Word) -> Vec<String> {
    let text = unquoted(word);
    // `file:///%68ome`
    let decoded = decoded(&text);
    let mut forms: Vec<String> = Vec::new();
    for text in std::iter::once(text.as_str()).chain(decoded.as_deref()) {
        for piece in pieces(text).into_iter().filter(|piece| !piece.is_empty()) {
            forms.push(piece.to_owned());
            // `-F 'a=@"lk/k"'`: curl takes quotes for its own.
            if piece.contains(['"', '\'']) {
                forms.push(piece.replace(['"', '\''], ""));
            }
            // `[1-20]` in an address stands for texts of any length.
            if text.contains("://") && piece.contains('[') {
                forms.push(without_ranges(piece));
            }
        }
    }
    let braced =
        |form: &String| if form.contains('{') { braces::expanded(form).unwrap_or_default() } else { Vec::new() };
    let expanded: Vec<String> = forms.iter().flat_map(braced).collect();
    forms.extend(expanded);
    forms.sort();
    forms.dedup();
    forms
}

/// Most letters of short options in front of a value.
const MOST_LETTERS: usize = 8;

/// The parts of a text that may be paths.
fn pieces(text: &str) -> Vec<&str> {
    let is_option = text.starts_with('-');
    let mut pieces = vec![text];
    pieces.extend(text.split_once('=').map(|(_, value)| value));
    // `-aF../x`: which letters of a bundle take a value is not known here.
    let most = if text.starts_with("--") { 1 } else { MOST_LETTERS };
    let letters = text.char_indices().skip(2).map(|(at, _)| at).take(most);
    pieces.extend(letters.filter(|_| is_option).filter_map(|at| text.get(at..)));
    pieces.extend(text.find(['/', '~', '$']).filter(|_| is_option).and_then(|start| text.get(start..)));
    // `-v here:there`, `type=bind,src=here`, `-d @here`, `a=<here;type=x`
    const PARTING: [char; 6] = ['=', ':', ',', '@', '<', ';'];
    if text.contains(PARTING) {
        pieces.extend(text.split(PARTING));
    }
    // `host//path` of an address that was decoded, and the paths of addresses wherever they begin.
    pieces.extend(text.find("//").and_then(|at| text.get(at..)));
    pieces.extend(text.to_ascii_lowercase().find("file:").and_then(|at| text.get(at..)));
    let addresses: Vec<&str> = pieces.iter().flat_map(|piece| file_paths(piece)).collect();
    pieces.extend(addresses);
    pieces
}

/// A text with each pair of brackets as a `*`.
fn without_ranges(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, (_, behind))) = rest.split_once('[').and_then(|(a, b)| Some((a, b.split_once(']')?))) {
        plain.push_str(before);
        plain.push('*');
        rest = behind;
    }
    plain.push_str(rest);
    plain
}

fn is_bundle_with(word: &Word, letter: char) -> bool {
    let bundle = word.text.strip_prefix('-').filter(|bundle| !bundle.starts_with('-'));
    bundle.is_some_and(|bundle| bundle.contains(letter))
}

/// The text without quotes; a literal word has lost them already.
pub(super) fn unquoted(word: &Word) -> String {
    if word.literal { word.text.clone() } else { word.text.replace(['"', '\'', '\\'], "") }
}

/// What stands before the first character that a shell would expand.
pub(super) fn cut_at_expansion(text: &str) -> &str {
    text.split(['*', '?', '[', '{', '$', '`']).next().unwrap_or(text)
}

/// Whether a program writes files that its words do not name, below the directory it runs in.
pub(super) fn writes_unnamed(program: &str, arguments: &[Word]) -> bool {
    let applies = || {
        let mut verbs = options::possible_verb_tails(arguments).filter_map(|tail| tail.first());
        verbs.any(|verb| matches!(verb.text.as_str(), "apply" | "am")) && git::read(arguments).is_err()
    };
    unpacking::unpacks(program, arguments).is_some() || (program == "git" && applies())
}
