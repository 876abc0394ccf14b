//! Programs that write files whose names are not in the line: archives, patches, split files.
//! Takes a program and its arguments; gives the word for which it can never be auto-allowed, and where it writes. Names that come out of a
//! file are unknown: git's own files, hooks, configurations and links may be among them, whatever the target directory.

use crate::line::Word;
use crate::wrappers::listed;

/// These write wherever their input says, or make up names.
const ALWAYS: &str = "\
    quilt uudecode unshar cpio bsdcpio gcpio pax unrar unar lsar rpmcpio dpkg-deb split gsplit csplit gcsplit munpack \
    ripmime unsquashfs unlz unace arj lha zoo cabextract";

/// Archivers whose first words say what they do, with the words that unpack.
const BY_VERB: &[(&str, &str)] =
    &[("ar", "x"), ("jar", "x"), ("z", "x e"), ("za", "x e"), ("zr", "x e"), ("7z", "x e")];

/// The word by which a program would write files that the line does not name.
pub(super) fn unpacks<'a>(program: &str, arguments: &'a [Word]) -> Option<&'a str> {
    let texts: Vec<&'a str> = arguments.iter().map(|word| word.text.as_str()).collect();
    // `patch < x` has no words, and unpacks all the same.
    let first = texts.first().copied().unwrap_or_default();
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
        "unzip" => {
            let only_lists = bundle(first).is_some_and(|letters| letters.contains(['l', 't', 'v', 'Z', 'p', 'z']));
            (!only_lists).then_some(first)
        }
        _ => None,
    }
}

/// Where an unpacking program writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unpacked {
    /// Wherever its input says.
    Anywhere,
    /// Below these, and through links that are there already.
    Below(Vec<Word>),
}

/// These write to names from the root as their input has them.
const ROOTED: &str = "uudecode unshar pax cpio gcpio bsdcpio";

/// Where a program writes that unpacks; `None` for one that does not. Every word may be the directory.
pub(super) fn unpacked(program: &str, arguments: &[Word]) -> Option<Unpacked> {
    unpacks(program, arguments)?;
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    let is_rooted = match program {
        "cpio" | "gcpio" | "bsdcpio" | "pax" if only_packs(program, &texts) => return None,
        "tar" | "gtar" | "bsdtar" => keeps_roots(&texts),
        "unzip" => texts.iter().filter_map(|text| bundle(text)).any(|letters| letters.contains(':')),
        _ => listed(ROOTED, program) && !texts.iter().any(|text| text.starts_with("--no-abs")),
    };
    if is_rooted {
        return Some(Unpacked::Anywhere);
    }
    let here = Some(Word::literal(".")).filter(|_| !has_target(program, &texts));
    Some(Unpacked::Below(arguments.iter().cloned().chain(here).collect()))
}

/// Whether a program unpacks into directories that its words name, and not where it runs.
pub(super) fn unpacks_elsewhere(program: &str, arguments: &[Word]) -> bool {
    let texts: Vec<&str> = arguments.iter().map(|word| word.text.as_str()).collect();
    unpacks(program, arguments).is_some() && has_target(program, &texts)
}

/// `cpio -o`, `cpio -it`, `pax -w`
fn only_packs(program: &str, texts: &[&str]) -> bool {
    let long = |known: &str| texts.iter().any(|text| text.len() > 3 && known.starts_with(text));
    let has = |letter: char| {
        texts
            .iter()
            .filter_map(|text| bundle(text))
            .any(|letters| before_value(letters, "CEFHIMORDWfsx").contains(letter))
    };
    let unpacks = ['i', 'p', 'r'].into_iter().any(has) || long("--extract") || long("--pass-through");
    // To pax this letter means something else.
    let lists = program != "pax" && (has('t') || long("--list"));
    lists || (has('o') || has('w') || long("--create")) && !unpacks
}

/// `tar -xPf a`, `tar xPf a`, `tar -x --absolute-names`
fn keeps_roots(texts: &[&str]) -> bool {
    let old_style = texts.first().filter(|first| !first.starts_with('-'));
    let in_bundle =
        texts.iter().filter_map(|text| bundle(text)).any(|bundle| before_value(bundle, VALUED).contains('P'));
    in_bundle
        || old_style.is_some_and(|letters| letters.contains('P'))
        || texts.iter().any(|text| text.starts_with("--ab"))
}

/// Whether the words name the only directory that is written to: otherwise it is the one the program runs in.
fn has_target(program: &str, texts: &[&str]) -> bool {
    let long = |text: &str| text.starts_with("--di");
    let named = |letter: char| move |text: &&str| bundle(text).is_some_and(|letters| letters.starts_with(letter));
    match program {
        "tar" | "gtar" | "bsdtar" => has_target_of_tar(texts),
        "unzip" | "patch" | "gpatch" => texts.iter().any(|text| named('d')(text) || long(text)),
        "cpio" | "gcpio" | "bsdcpio" => texts.iter().any(|text| named('D')(text) || long(text)),
        "7z" | "z" | "za" | "zr" => texts.iter().any(named('o')),
        _ => false,
    }
}

/// Members that are named before a `-C` come out where tar runs, so with any word that is no value this is a target, too.
fn has_target_of_tar(texts: &[&str]) -> bool {
    let mut values = 0_usize;
    let mut plain = 0_usize;
    let mut enters = false;
    for (at, text) in texts.iter().enumerate() {
        let is_old_style = at == 0 && !text.starts_with('-');
        if is_old_style {
            values = values.saturating_add(text.chars().filter(|letter| VALUED.contains(*letter)).count());
            enters |= text.contains('C');
        } else if let Some(option) = text.strip_prefix("--") {
            values = values.saturating_add(usize::from(matches!(option, "file" | "directory")));
            enters |= option.starts_with("di");
        } else if let Some(letters) = bundle(text) {
            let valued = letters.find(|letter| VALUED.contains(letter));
            values = values.saturating_add(usize::from(valued.is_some_and(|at| at.saturating_add(1) == letters.len())));
            enters |= valued.is_some_and(|at| letters.get(at..).is_some_and(|rest| rest.starts_with('C')));
        } else {
            plain = plain.saturating_add(1);
        }
    }
    enters && plain <= values
}

/// Short options of tar that take a value.
const VALUED: &str = "fCTXbgKNVHL";

fn tar<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let first = texts.first().copied()?;
    let old_style = Some(first).filter(|first| !first.starts_with('-'));
    let mut bundles = texts.iter().copied().filter_map(bundle).chain(old_style);
    let is_extracting = |text: &&str| {
        let name = text.strip_prefix("--").and_then(|option| option.split('=').next());
        name.is_some_and(|name| name.len() > 1 && ["extract", "get"].iter().any(|known| known.starts_with(name)))
    };
    let extracts = bundles.any(|bundle| before_value(bundle, VALUED).contains('x'));
    (extracts || texts.iter().any(is_extracting)).then_some(first)
}

/// The letters of a bundle of short options.
fn bundle(text: &str) -> Option<&str> {
    text.strip_prefix('-').filter(|bundle| !bundle.is_empty() && !bundle.starts_with('-'))
}

/// The letters of a bundle up to the first that takes the rest as its value.
fn before_value<'a>(bundle: &'a str, valued: &str) -> &'a str {
    bundle.split(|letter| valued.contains(letter)).next().unwrap_or(bundle)
}
