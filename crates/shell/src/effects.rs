//! What commands that change files do to them, as far as their words say.
//! Takes a program and its arguments; gives the words that are written, the words that are put into them, and whether
//! whole trees are. Refuses a writer with an option that is not in its row, because the option may name another target.

use crate::followers;
use crate::ground::unquoted;
use crate::line::Word;
use crate::packing;
use crate::transfers;
use crate::wrappers::listed;

/// What one command does to files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Effects {
    /// Words that are written or removed.
    pub(super) written: Vec<Word>,
    /// Those of them into which the sources are put.
    pub(super) targets: Vec<Word>,
    /// Words that are copied, moved or packed, or whose trees are read.
    pub(super) sources: Vec<Word>,
    /// Whole trees are put into the targets.
    pub(super) moves_trees: bool,
    /// They are copied, file by file, through links that are there already.
    pub(super) copies_trees: bool,
    /// What is below a source is put directly into the targets: `cp -r x/. d`.
    pub(super) spreads: bool,
    /// Links below the sources are followed.
    pub(super) follows_links: bool,
    /// Words that are not written are only read.
    pub(super) reads_the_rest: bool,
}

impl Effects {
    /// What is written without being named by one word: `cp x d` writes `d/x` where `d` is a directory.
    pub(super) fn joined(&self) -> Vec<Word> {
        let names: Vec<String> = self.sources.iter().take(MOST_JOINED).filter_map(last_name).collect();
        let targets = self.targets.iter().take(MOST_JOINED).map(unquoted);
        targets.flat_map(|target| names.iter().map(|name| put_into(&target, name)).collect::<Vec<_>>()).collect()
    }

    /// The directories into which trees are copied file by file.
    pub(super) fn filled(&self) -> Vec<Word> {
        let targets = self.targets.iter().filter(|_| self.spreads).cloned();
        targets.chain(self.joined()).collect()
    }

    /// Words of which everything below has to be looked at.
    pub(super) fn trees(&self) -> Vec<Word> {
        let mut trees = Vec::new();
        if self.follows_links || self.moves_trees {
            trees.extend(self.sources.iter().cloned());
        }
        if self.copies_trees {
            trees.extend(self.filled());
        }
        trees
    }
}

/// Sources and targets that are joined; a line with more has too many paths to be looked up anyway.
const MOST_JOINED: usize = 256;

fn put_into(directory: &str, name: &str) -> Word {
    Word::raw(format!("{}/{name}", directory.trim_end_matches('/')))
}

/// The last name of a path; none for `.`, `..` and a path that ends in one of them.
fn last_name(path: &Word) -> Option<String> {
    let path = unquoted(path);
    let name = path.trim_end_matches('/').rsplit('/').next()?;
    // `host:file`
    let name = name.rsplit(':').next().unwrap_or(name);
    (!matches!(name, "" | "." | "..")).then(|| name.to_owned())
}

/// Which operands of a program are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    All,
    /// All; those before the last one are put into it.
    Moved,
    /// The last one; the others are read. `-t` names it as well.
    Last,
    /// The first one; the others are read.
    First,
}

/// One row. Each text is a list parted by blanks, except the sets of letters.
struct Writer {
    programs: &'static str,
    /// Short options without a value.
    letters: &'static str,
    /// Short options whose value is not written: the rest of the word or the next one.
    valued: &'static str,
    /// Long options, alone or with a value behind `=` that is not written.
    flags: &'static str,
    /// Long options whose value is not written: behind `=` or the next word.
    texts: &'static str,
    written: Written,
}

const WRITER: Writer = Writer { programs: "", letters: "", valued: "", flags: "", texts: "", written: Written::All };

static WRITERS: &[Writer] = &[
    Writer {
        programs: "cp gcp",
        // `-l` and `-s` make links, through which a source would be written later.
        letters: "abdfiHLnPpRruvxTZ",
        flags: "archive attributes-only backup copy-contents debug dereference force interactive no-clobber \
            no-dereference no-preserve no-target-directory one-file-system preserve recursive reflink \
            remove-destination sparse strip-trailing-slashes update verbose help version",
        written: Written::Last,
        ..WRITER
    },
    Writer {
        programs: "mv gmv",
        letters: "bfinuvTZ",
        flags: "backup debug force interactive no-clobber no-target-directory strip-trailing-slashes update verbose \
            help version",
        written: Written::Moved,
        ..WRITER
    },
    Writer {
        programs: "ln gln",
        letters: "bdfFiLnPrsTv",
        flags: "backup directory force interactive logical no-dereference no-target-directory physical relative \
            symbolic verbose help version",
        written: Written::Last,
        ..WRITER
    },
    Writer {
        programs: "install ginstall",
        letters: "bcCdDpsvTZ",
        valued: "mog",
        flags: "backup compare directory preserve-timestamps strip verbose no-target-directory help version",
        texts: "mode owner group",
        written: Written::Last,
    },
    Writer {
        programs: "rsync",
        letters: "avzrtnuPhxcqWlpgoDHAXEmiIOLkJNUSyC0123456789",
        flags: "acls archive checksum compress copy-links cvs-exclude delete delete-after delete-before delete-delay \
            delete-during delete-excluded devices dirs dry-run executability existing exclude force group hard-links \
            human-readable ignore-existing ignore-errors ignore-times include inplace itemize-changes links list-only \
            no-compress no-group no-owner no-perms no-times numeric-ids omit-dir-times one-file-system owner partial \
            perms progress protect-args prune-empty-dirs quiet recursive size-only sparse specials stats times update \
            verbose whole-file xattrs help version bwlimit max-size min-size timeout info",
        texts: "exclude include max-size min-size bwlimit timeout info",
        written: Written::Last,
        ..WRITER
    },
    Writer { programs: "scp", letters: "rpqvCB346ATO", valued: "Pilc", written: Written::Last, ..WRITER },
    Writer { programs: "tee gtee sponge", letters: "aip", flags: "append ignore-interrupts output-error", ..WRITER },
    Writer {
        programs: "touch gtouch",
        letters: "acfhm",
        valued: "drt",
        flags: "no-create no-dereference",
        texts: "date reference time",
        ..WRITER
    },
    Writer {
        programs: "truncate gtruncate",
        letters: "co",
        valued: "rs",
        flags: "no-create io-blocks",
        texts: "reference size",
        ..WRITER
    },
    Writer {
        programs: "mkdir gmkdir mkfifo mknod rmdir grmdir",
        letters: "pvZ",
        valued: "m",
        flags: "parents verbose ignore-fail-on-non-empty context",
        texts: "mode",
        ..WRITER
    },
    Writer {
        programs: "rm grm unlink shred srm trash trash-put",
        letters: "dfiIrRvuxz",
        valued: "n",
        flags: "dir force interactive one-file-system preserve-root recursive verbose zero remove exact",
        ..WRITER
    },
    Writer {
        programs: "chmod gchmod chown gchown chgrp gchgrp",
        letters: "cfvRhHLPrwxXstugoa",
        flags: "changes quiet silent verbose recursive no-dereference dereference preserve-root",
        ..WRITER
    },
    Writer {
        programs: DECOMPRESSORS,
        letters: "cdefklLnqtvVhz0123456789",
        valued: "T",
        flags: "stdout to-stdout decompress uncompress force keep list no-name quiet test verbose fast best compress rm \
            extreme ultra long threads",
        ..WRITER
    },
    Writer {
        programs: "zip",
        letters: "rqvjyXoufdDlg0123456789",
        flags: "recurse-paths quiet verbose junk-paths symlinks no-extra update freshen delete",
        texts: "exclude include",
        valued: "xi",
        written: Written::First,
    },
    Writer { programs: "dos2unix unix2dos mac2unix", letters: "kqofs", flags: "keepdate quiet force", ..WRITER },
];

/// What a command does to files. Fails with an option of a writer that is not in its row.
pub(super) fn effects<'a>(program: &str, arguments: &'a [Word]) -> Result<Effects, &'a str> {
    let mut effects = match program {
        "sed" | "gsed" => {
            let in_place = arguments.iter().filter_map(|word| sed_option(&word.text)).any(|option| option.in_place);
            let written = sed_operands(arguments).into_iter().filter(|_| in_place).cloned().collect();
            Effects { written, ..Effects::default() }
        }
        "tar" | "gtar" | "bsdtar" => packing::tar(arguments)?,
        _ => match WRITERS.iter().find(|row| listed(row.programs, program)) {
            Some(row) => row.read(program, arguments)?,
            None => {
                // `curl 'http://host/{gi}' -o '.#1t/config'`: parts of the address become parts of the name.
                if let Some(word) = arguments.iter().find(|word| program == "curl" && word.text.contains('#')) {
                    return Err(&word.text);
                }
                Effects { written: outputs(program, arguments), ..followers::effects(program, arguments) }
            }
        },
    };
    effects.written.retain(|word| !is_harmless(&word.text));
    Ok(effects)
}

/// Whether a program is in the table of those that write to files they are given, and do nothing else.
pub(super) fn is_writer(program: &str) -> bool {
    WRITERS.iter().any(|row| listed(row.programs, program))
}

/// Standard output and devices that keep nothing.
fn is_harmless(text: &str) -> bool {
    matches!(text, "-" | "/dev/null" | "/dev/stdout" | "/dev/stderr" | "/dev/tty")
}

impl Writer {
    fn read<'a>(&self, program: &str, arguments: &'a [Word]) -> Result<Effects, &'a str> {
        let mut operands: Vec<Word> = Vec::new();
        let mut targets: Vec<Word> = Vec::new();
        let mut letters = String::new();
        let mut words = arguments.iter();
        let names_target = matches!(self.written, Written::Last | Written::Moved) && !listed("rsync scp", program);
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if text == "--" {
                operands.extend(words.cloned());
                break;
            }
            if !text.starts_with('-') || text == "-" {
                operands.push(word.clone());
                continue;
            }
            if names_target && matches!(text, "-t" | "--target-directory") {
                targets.push(words.next().cloned().ok_or(text)?);
                continue;
            }
            let glued = text.strip_prefix("--target-directory=").or_else(|| text.strip_prefix("-t"));
            if let Some(target) = glued.filter(|_| names_target) {
                targets.push(Word { text: target.to_owned(), literal: word.literal });
                continue;
            }
            letters.push_str(&self.option(text).ok_or(text)?);
            if self.takes_next(text) {
                words.next().ok_or(text)?;
            }
        }
        Ok(self.sorted(program, operands, targets, &letters))
    }

    fn sorted(&self, program: &str, mut operands: Vec<Word>, mut targets: Vec<Word>, letters: &str) -> Effects {
        let makes_directories = listed("install ginstall", program) && letters.contains('d');
        let is_copier = listed("cp gcp rsync scp", program);
        let follows = match program {
            "zip" => letters.contains('r') && !letters.contains('y'),
            _ => is_copier && letters.contains('L'),
        };
        let copies_trees = is_copier && letters.contains(['r', 'R', 'a', 'd']);
        let mut effects = Effects {
            moves_trees: copies_trees || self.written == Written::Moved,
            copies_trees,
            follows_links: follows,
            reads_the_rest: listed("cp gcp install ginstall zip rsync scp", program),
            ..Effects::default()
        };
        match self.written {
            Written::All => effects.written = operands,
            Written::Last | Written::Moved if makes_directories => effects.written = operands,
            Written::Last | Written::Moved => {
                if targets.is_empty() {
                    targets.extend(operands.pop());
                }
                effects.written.clone_from(&targets);
                if self.written == Written::Moved {
                    effects.written.extend(operands.iter().cloned());
                }
                let spreads = |word: &Word| word.text.ends_with('/') || last_name(word).is_none();
                effects.spreads = letters.contains('T') || operands.iter().any(spreads);
                effects.sources = operands;
                effects.targets = targets;
            }
            Written::First => {
                let mut operands = operands.into_iter();
                effects.written.extend(operands.next());
                effects.sources = operands.collect();
            }
        }
        if listed(DECOMPRESSORS, program) {
            let unpacked: Vec<Word> = effects.written.iter().filter_map(without_ending).collect();
            effects.written.extend(unpacked);
        }
        effects
    }

    /// The letters an option stands for; `None` for one that is not known.
    fn option(&self, text: &str) -> Option<String> {
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            let letter = match name {
                "recursive" | "archive" | "dirs" => "r",
                "dereference" | "copy-links" => "L",
                "symlinks" => "y",
                "recurse-paths" => "r",
                "no-target-directory" => "T",
                "directory" => "d",
                _ => "",
            };
            return (listed(self.flags, name) || listed(self.texts, name)).then(|| letter.to_owned());
        }
        let mut letters = String::new();
        for letter in text.chars().skip(1) {
            if self.valued.contains(letter) {
                return Some(letters);
            }
            if !self.letters.contains(letter) {
                return None;
            }
            letters.push(letter);
        }
        Some(letters)
    }

    /// Whether the value of an option is the next word.
    fn takes_next(&self, text: &str) -> bool {
        if let Some(long) = text.strip_prefix("--") {
            return listed(self.texts, long);
        }
        let valued = text.char_indices().skip(1).find(|(_, letter)| self.valued.contains(*letter));
        valued.is_some_and(|(at, letter)| at.saturating_add(letter.len_utf8()) == text.len())
    }
}

/// These write to the name of a file without its ending.
const DECOMPRESSORS: &str = "\
    gzip gunzip pigz unpigz bzip bunzip pbzip lbzip lbunzip xz unxz lzma unlzma zstd unzstd lz compress uncompress brotli \
    unbrotli lzop lzip plzip clzip lunzip lrzip lrunzip rzip";

/// The name of a packed file without its ending, which need not begin with a dot: `x-gz`.
fn without_ending(word: &Word) -> Option<Word> {
    let (stem, _) = word.text.rsplit_once(['.', '-', '_']).filter(|(_, ending)| !ending.contains('/'))?;
    Some(Word::raw(stem))
}

/// The files `sed` is given: its operands but the script.
pub(super) fn sed_operands(arguments: &[Word]) -> Vec<&Word> {
    let mut has_script = arguments.iter().filter_map(|word| sed_option(&word.text)).any(|option| option.gives_script);
    let mut files = Vec::new();
    let mut is_value = false;
    for word in arguments {
        if is_value {
            is_value = false;
        } else if let Some(option) = sed_option(&word.text) {
            is_value = option.takes_next;
        } else if has_script {
            files.push(word);
        } else {
            has_script = true;
        }
    }
    files
}

/// What one option of `sed` says.
#[derive(Debug, Default)]
struct SedOption {
    in_place: bool,
    /// It brings a script, so that no operand is one.
    gives_script: bool,
    /// Its value is the next word.
    takes_next: bool,
}

/// Reads `-n`, `-i.bak`, `-ne p`, `-nep`, `--expression=p` and abbreviations; none for a word that is no option.
fn sed_option(text: &str) -> Option<SedOption> {
    let mut option = SedOption::default();
    if let Some(long) = text.strip_prefix("--") {
        let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
        let is_named = |whole: &str| !name.is_empty() && whole.starts_with(name);
        option.in_place = is_named("in-place");
        option.gives_script = is_named("expression") || is_named("file");
        option.takes_next = value.is_none() && (option.gives_script || is_named("line-length"));
        return Some(option);
    }
    let bundle = text.strip_prefix('-').filter(|bundle| !bundle.is_empty())?;
    for (at, letter) in bundle.char_indices() {
        match letter {
            'i' => {
                option.in_place = true;
                break;
            }
            'e' | 'f' | 'l' => {
                option.gives_script = letter != 'l';
                option.takes_next = at.saturating_add(1) == bundle.len();
                break;
            }
            _ => {}
        }
    }
    Some(option)
}

/// Long options of other programs whose value is a file or directory they write.
const OUTPUT_OPTIONS: &str = "\
    output output-dir output-directory output-document output-file outfile out-dir outdir out dump-header cookie-jar \
    trace trace-ascii stderr etag-save append-output directory-prefix save-cookies libcurl hsts alt-svc hsts-file \
    warc-file rejected-log log-file ssl-sessions redirect-warnings";
/// Programs whose long options have one dash: `-count` is no bundle with `-o`.
const SINGLE_DASH: &str = "go java javac terraform tofu kotlinc scala scalac ghc";

/// Words behind options by which programs usually name what they write: `-o x`, `-ox`, `--output=x`, `of=x`.
fn outputs(program: &str, arguments: &[Word]) -> Vec<Word> {
    let letters = match program {
        "curl" => "oDc",
        "wget" => "OoaP",
        "find" | "gfind" | "grep" | "egrep" | "fgrep" | "rg" | "ls" | "git" | "ps" | "test" | "[" => return Vec::new(),
        _ => "o",
    };
    let mut found = transfers::written(program, arguments);
    let mut words = arguments.iter().peekable();
    while let Some(word) = words.next() {
        let text = unquoted(word);
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            let is_meant = |option: &str| option == name || (!name.is_empty() && option.starts_with(name));
            if OUTPUT_OPTIONS.split_ascii_whitespace().any(is_meant) {
                found.extend(value.map(Word::raw).or_else(|| words.peek().map(|next| (*next).clone())));
            }
        } else if let Some(bundle) = text.strip_prefix('-').filter(|bundle| !bundle.is_empty()) {
            if listed(SINGLE_DASH, program) && bundle != "o" && !bundle.starts_with("o=") {
                continue;
            }
            if let Some((at, _)) = bundle.char_indices().find(|(_, letter)| letters.contains(*letter)) {
                let glued = bundle.get(at.saturating_add(1)..).filter(|value| !value.is_empty());
                found.extend(glued.map(Word::raw).or_else(|| words.peek().map(|next| (*next).clone())));
            }
        } else if let Some(value) = text.strip_prefix("of=").filter(|_| program == "dd") {
            found.push(Word::raw(value));
        }
    }
    found
}

#[cfg(test)]
#[path = "effects_tests.rs"]
mod tests;
