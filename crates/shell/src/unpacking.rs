//! Programs that write files whose names are not in the line: archives, patches, split files.
//! Takes a program and its arguments; gives the word for which it can never be auto-allowed, and where it writes. Names that come out of a
//! file are unknown: git's own files, hooks, configurations and links may be among them, whatever the target directory.

use crate::line::Word;
use crate::options;
use crate::wrappers::listed;

/// These write wherever their input says, or make up names.
const ALWAYS: &str = "\
    quilt uudecode unshar cpio bsdcpio gcpio pax unrar unar lsar rpmcpio rpm2archive dpkg-deb dpkg-source split gsplit \
    csplit gcsplit munpack ripmime unsquashfs unlz unace arj lha zoo cabextract aunpack atool unp dtrx patool ouch \
    innoextract unalz unlzx unarj xar ditto star bsdunzip p7zip uudeview tnef msiextract unshield zpaq foremost binwalk";

/// Archivers with the verbs by which they leave files as they are or write the archive that is named; any other verb
/// unpacks. Options may stand before it.
const BY_VERB: &[(&str, &str)] =
    &[("7z 7za 7zr 7zz 7zzs", "a b d h i l rn t u"), ("rar", "a l lb lt lta t v vb vt vta p i")];

/// Archivers whose verb is a letter in a bundle, with these letters and with long options that unpack.
const BY_LETTER: &[(&str, &str, &str)] = &[
    ("ar gar llvm-ar", "xM", ""),
    ("jar", "x", "extract"),
    ("dpkg", "xXeRi", "extract vextract control raw-extract install unpack"),
];

/// Modules of Python that are archivers.
const MODULES: &str = "zipfile tarfile rarfile pyzr py7zr gzip bzip2 lzma uu wheel patoolib";

/// The word by which a program would write files that the line does not name.
pub(super) fn unpacks<'a>(program: &str, arguments: &'a [Word]) -> Option<&'a str> {
    let texts: Vec<&'a str> = arguments.iter().map(|word| word.text.as_str()).collect();
    // `patch < x` has no words, and unpacks all the same.
    let first = texts.first().copied().unwrap_or_default();
    if listed(ALWAYS, program) {
        return Some(first);
    }
    if let Some((_, verbs)) = BY_VERB.iter().find(|(names, _)| listed(names, program)) {
        // None of their options takes the next word.
        let verb = texts.iter().copied().find(|text| !text.starts_with('-'))?;
        return (!listed(verbs, &verb.to_ascii_lowercase())).then_some(verb);
    }
    if let Some((_, letters, long)) = BY_LETTER.iter().find(|(names, ..)| listed(names, program)) {
        let verb = possible_verbs(arguments).filter(|_| program != "dpkg").find(|verb| is_bundle_with(verb, letters));
        return verb.or_else(|| texts.into_iter().find(|text| is_option_with(text, letters, long)));
    }
    match program {
        "patch" | "gpatch" => (!only_tries(&texts)).then_some(first),
        "tar" | "gtar" | "bsdtar" => tar(&texts),
        "unzip" => (!only_lists(arguments)).then_some(first),
        _ if program.starts_with("python") || listed("py pypy", program) => by_module(&texts),
        _ => None,
    }
}

/// Words that may be the verb: the first one, or the first ones behind options, whose values they may be.
fn possible_verbs(arguments: &[Word]) -> impl Iterator<Item = &str> {
    options::possible_verb_tails(arguments).filter_map(|tail| tail.first()).map(|word| word.text.as_str())
}

/// `jar vxf a`, `ar --target=x vx a`
fn is_bundle_with(verb: &str, letters: &str) -> bool {
    verb.chars().all(|letter| letter.is_ascii_alphanumeric()) && verb.contains(|letter| letters.contains(letter))
}

/// `jar -vxf a`, `dpkg --extract a .`; `@` names a file with more words.
fn is_option_with(text: &str, letters: &str, long: &str) -> bool {
    match (text.strip_prefix("--"), text.strip_prefix('-')) {
        (Some(option), _) => {
            let name = option.split('=').next().unwrap_or(option);
            !name.is_empty() && long.split_ascii_whitespace().any(|known| known.starts_with(name))
        }
        (None, Some(bundle)) => bundle.contains(|letter| letters.contains(letter)),
        (None, None) => text.starts_with('@'),
    }
}

/// `python3 -m zipfile -e a.zip .`
fn by_module<'a>(texts: &[&'a str]) -> Option<&'a str> {
    let is_module = |text: &&str| MODULES.split_ascii_whitespace().any(|module| text.split('.').next() == Some(module));
    let glued = |text: &&str| {
        bundle(text).and_then(|letters| letters.split_once('m')).is_some_and(|(_, module)| is_module(&module))
    };
    let loads = texts.iter().any(|text| is_module(text) || glued(text));
    let is_unpacking = |text: &&&str| match text.strip_prefix("--") {
        Some(name) => {
            !name.is_empty() && ["extract", "decompress", "unpack"].iter().any(|known| known.starts_with(name))
        }
        None => {
            bundle(text).is_some_and(|letters| letters.contains(['e', 'd']))
                || matches!(**text, "x" | "unpack" | "extract")
        }
    };
    texts.iter().find(is_unpacking).copied().filter(|_| loads)
}

/// Options of unzip by which it shows the archive, and those that may stand beside them.
const SHOWING: &str = "ltvpzcZ";
const BESIDE: &str = "qCM12hms";

/// Whether unzip only shows what is in the archive. A further dash takes options back, and one behind the archive is the
/// name of a file in it.
fn only_lists(arguments: &[Word]) -> bool {
    let is_option = |word: &&Word| word.text.starts_with('-');
    let bundles: Vec<&str> = arguments.iter().take_while(is_option).filter_map(|word| bundle(&word.text)).collect();
    let are_known =
        bundles.iter().all(|letters| letters.chars().all(|letter| SHOWING.contains(letter) || BESIDE.contains(letter)));
    // A pattern may become an option, and `-Z` counts as the first one alone.
    let is_plain = |word: &Word| {
        word.literal || word.text.starts_with(|first: char| first.is_ascii_alphanumeric() || "./_~".contains(first))
    };
    let is_late = |(at, letters): (usize, &&str)| {
        letters.char_indices().any(|(place, letter)| letter == 'Z' && (at, place) != (0, 0))
    };
    arguments.iter().filter(is_option).count() == bundles.len()
        && are_known
        && arguments.iter().all(is_plain)
        && !bundles.iter().enumerate().any(is_late)
        && bundles.iter().any(|letters| letters.contains(|letter| SHOWING.contains(letter)))
}

/// Options of patch without a value, and short and long ones whose value may be the next word.
const PATCH_LETTERS: &str = "bceEflnNRstTuvZ";
const PATCH_VALUED: &str = "BdDFgioprVxYz";
const PATCH_FLAGS: &str = "\
    backup context ed remove-empty-files force ignore-whitespace normal forward batch silent quiet set-time set-utc \
    unified reverse verbose binary posix follow-symlinks no-backup-if-mismatch backup-if-mismatch merge";
const PATCH_TEXTS: &str = "\
    prefix directory ifdef fuzz get input output strip reject-file version-control debug basename-prefix suffix \
    quoting-style read-only reject-format";

/// Whether patch only says what it would do. `-z --dry-run` is a value, and behind an operand it is one to some.
fn only_tries(texts: &[&str]) -> bool {
    let mut words = texts.iter();
    while let Some(text) = words.next() {
        if *text == "--dry-run" {
            return true;
        }
        let takes_next = match (text.strip_prefix("--"), bundle(text)) {
            (Some(long), _) => match long.split_once('=') {
                Some((name, _)) if listed(PATCH_TEXTS, name) || listed(PATCH_FLAGS, name) => false,
                None if listed(PATCH_FLAGS, long) => false,
                None if listed(PATCH_TEXTS, long) => true,
                _ => return false,
            },
            (None, Some(letters)) => {
                let valued = letters.find(|letter| PATCH_VALUED.contains(letter));
                let own = valued.and_then(|at| letters.get(..at)).unwrap_or(letters);
                if !own.chars().all(|letter| PATCH_LETTERS.contains(letter)) {
                    return false;
                }
                valued.is_some_and(|at| at.saturating_add(1) == letters.len())
            }
            (None, None) => return false,
        };
        if takes_next {
            words.next();
        }
    }
    false
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
        "7z" | "7za" | "7zr" | "7zz" | "7zzs" => texts.iter().any(named('o')),
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
