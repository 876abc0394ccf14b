//! Programs that write files whose names are not in the line: archives, patches, split files.
//! Takes a program and its arguments; gives the word for which it can never be auto-allowed. Names that come out of a
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
        "unzip" => {
            let only_lists = bundle(first).is_some_and(|letters| letters.contains(['l', 't', 'v', 'Z', 'p', 'z']));
            (!only_lists).then_some(first)
        }
        _ => None,
    }
}

fn tar<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let first = texts.first().copied()?;
    let old_style = Some(first).filter(|first| !first.starts_with('-'));
    let mut bundles = texts.iter().copied().filter_map(bundle).chain(old_style);
    let is_extracting = |text: &&str| {
        let name = text.strip_prefix("--").and_then(|option| option.split('=').next());
        name.is_some_and(|name| name.len() > 1 && ["extract", "get"].iter().any(|known| known.starts_with(name)))
    };
    let extracts = bundles.any(|bundle| before_value(bundle, "fCTXbgKNVHL").contains('x'));
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
