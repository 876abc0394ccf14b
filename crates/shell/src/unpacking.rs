//! Programs that write files whose names are not in the line: archives, patches, copies of whole trees.
//! Takes a program and its arguments; gives the word for which it can never be auto-allowed. Accepts unpacking and
//! copying into a directory below the working directory that is named plainly; refuses patches and every other target,
//! because git's own files, hooks and configurations may be among what is written.

use crate::line::Word;
use crate::wrappers::listed;

/// These write wherever their input says.
const ALWAYS: &str = "quilt uudecode unshar cpio bsdcpio gcpio pax unrar unar lsar rpmcpio dpkg-deb";

/// Archivers whose first words say what they do, with the words that unpack.
const BY_VERB: &[(&str, &str)] =
    &[("ar", "x"), ("jar", "x"), ("z", "x e"), ("za", "x e"), ("zr", "x e"), ("7z", "x e")];

/// Options of `tar` that let names of an archive leave its target.
const TAR_LEAVING: &[&str] = &[
    "absolute-names",
    "transform",
    "xform",
    "one-top-level",
    "keep-directory-symlink",
    "recursive-unlink",
    "cd",
    "insecure",
];

/// Abbreviations of the option that names the target are not read.
const TAR_TARGET: &str = "directory";

/// The word by which a program would write files that the line does not name.
pub(super) fn unpacks<'a>(program: &str, arguments: &'a [Word]) -> Option<&'a str> {
    let texts: Vec<&'a str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let first = texts.first().copied()?;
    if listed(ALWAYS, program) {
        return Some(first);
    }
    if let Some((_, verbs)) = BY_VERB.iter().find(|(name, _)| *name == program) {
        let bundle = first.trim_start_matches('-');
        return verbs.split(' ').any(|verb| bundle.starts_with(verb)).then_some(first);
    }
    match program {
        "patch" | "gpatch" => (!texts.contains(&"--dry-run")).then_some(first),
        "tar" | "gtar" | "bsdtar" => tar(&texts),
        "unzip" => unzip(&texts),
        "cp" | "gcp" | "scp" | "ditto" | "rsync" | "xcopy" | "robocopy" => copy(program, &texts),
        _ => None,
    }
}

fn tar<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let first = texts.first().copied()?;
    let is_old_style = !first.starts_with('-');
    let bundles = || texts.iter().copied().filter_map(bundle).chain(is_old_style.then_some(first));
    let long = |names: &[&str]| {
        let is_named = |text: &&&str| {
            let name = text.strip_prefix("--").and_then(|option| option.split('=').next());
            name.is_some_and(|name| name.len() > 1 && names.iter().any(|known| known.starts_with(name)))
        };
        texts.iter().find(is_named).copied()
    };
    let extracts = bundles().any(|bundle| before_value(bundle, "fCTXbgKNVHL").contains('x'));
    if !extracts && long(&["extract", "get"]).is_none() {
        return None;
    }
    let leaves = bundles().any(|bundle| before_value(bundle, "fCTXbgKNVHL").contains(['P', 's']));
    let is_abbreviated = long(&[TAR_TARGET]).is_some_and(|text| !text.starts_with("--directory"));
    if leaves || is_abbreviated || long(TAR_LEAVING).is_some() {
        return Some(first);
    }
    let targets = values(texts, "-C", "--directory");
    let is_unsure = targets.is_empty() || (is_old_style && first.contains('C'));
    (is_unsure || !targets.into_iter().all(is_below)).then_some(first)
}

fn unzip<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let first = texts.first().copied()?;
    let only_lists = bundle(first).is_some_and(|letters| letters.contains(['l', 't', 'v', 'Z', 'p', 'z']));
    let targets = values(texts, "-d", "--");
    let leaves = texts.iter().any(|text| text.starts_with('-') && text.contains(':'));
    let is_bounded = !targets.is_empty() && targets.into_iter().all(is_below) && !leaves;
    (!only_lists && !is_bounded).then_some(first)
}

/// Whether a program copies whole trees with these arguments.
pub(super) fn takes_trees(program: &str, arguments: &[Word]) -> bool {
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    copies_trees(program, &texts)
}

fn copies_trees(program: &str, texts: &[&str]) -> bool {
    let is_long = |text: &&str| {
        let name = text.strip_prefix("--").and_then(|option| option.split('=').next());
        let long = ["recursive", "archive", "dirs", "no-dereference"];
        name.is_some_and(|name| name.len() > 1 && long.iter().any(|long| long.starts_with(name)))
    };
    let is_short = |text: &&str| bundle(text).is_some_and(|letters| letters.contains(['r', 'R', 'a', 'd', 'P']));
    let is_copier = matches!(program, "cp" | "gcp" | "scp" | "rsync");
    matches!(program, "ditto" | "robocopy" | "xcopy")
        || (is_copier && texts.iter().any(|text| is_long(text) || is_short(text)))
}

/// Copies of trees. A single file is written where the line says.
fn copy<'a>(program: &str, texts: &[&'a str]) -> Option<&'a str> {
    if !copies_trees(program, texts) {
        return None;
    }
    let mut operands = texts.iter().copied().filter(|text| !text.starts_with('-'));
    // `cp -rt target x`: the target is wherever the bundle says.
    let bundled = texts.iter().find(|text| bundle(text).is_some_and(|letters| letters.find('t') > Some(0)));
    let abbreviated = texts.iter().find(|text| text.starts_with("--t") && !text.starts_with("--target-directory"));
    if let Some(text) = bundled.or(abbreviated).filter(|_| program != "rsync") {
        return Some(text);
    }
    let named = values(texts, "-t", "--target-directory");
    let target = if named.is_empty() || program == "rsync" { operands.next_back() } else { named.last().copied() };
    let is_remote = |text: &str| text.split_once(':').is_some_and(|(host, _)| !host.contains('/') && program != "cp");
    target.filter(|target| !is_below(target) && !is_remote(target))
}

/// The letters of a bundle of short options.
fn bundle(text: &str) -> Option<&str> {
    text.strip_prefix('-').filter(|bundle| !bundle.is_empty() && !bundle.starts_with('-'))
}

/// The letters of a bundle up to the first that takes the rest as its value.
fn before_value<'a>(bundle: &'a str, valued: &str) -> &'a str {
    bundle.split(|letter| valued.contains(letter)).next().unwrap_or(bundle)
}

/// Every value of an option: the next word, glued, or behind `=`.
fn values<'a>(texts: &[&'a str], short: &str, long: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut words = texts.iter().copied();
    while let Some(word) = words.next() {
        if word == short || word == long {
            found.extend(words.next());
        } else if let Some(value) = word.strip_prefix(long).and_then(|rest| rest.strip_prefix('=')) {
            found.push(value);
        } else if let Some(value) = word.strip_prefix(short).filter(|_| !word.starts_with("--")) {
            found.push(value);
        }
    }
    found
}

/// A path that goes down from the working directory and nowhere else.
fn is_below(text: &str) -> bool {
    let mut names = text.split('/').filter(|name| !name.is_empty() && *name != ".").peekable();
    let goes_down =
        names.peek().is_some() && names.all(|name| name != ".." && !name.contains(['*', '?', '[', '{', '$', '`', '~']));
    goes_down && !text.starts_with(['/', '~', '-', '\\']) && !text.contains(':')
}
