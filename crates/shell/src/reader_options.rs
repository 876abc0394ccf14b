//! Table of options of programs that search and list: which of them take a value, and whether that is a path.
//! Takes a program and its arguments; gives the words that may be paths, without patterns and texts. Gives none where an
//! option is not exactly in the row of its program: then it may take the next word, and any word may be a path.

use crate::line::Word;
use crate::wrappers::listed;

/// One row. Each text is a list parted by blanks, except the sets of letters.
struct Row {
    programs: &'static str,
    /// Short options without a value.
    letters: &'static str,
    /// Short options whose value is no path.
    texts: &'static str,
    /// Short options whose value is a path.
    paths: &'static str,
    /// Long options without a value of their own word.
    flags: &'static str,
    /// Long options whose value is no path: behind `=` or the next word.
    long_texts: &'static str,
    /// Long options whose value is a path.
    long_paths: &'static str,
    /// Options that bring the pattern, so that no operand is one; none where no operand ever is.
    patterns: &'static str,
    /// Long options have one dash: `-name`.
    has_single_dash: bool,
}

const ROW: Row = Row {
    programs: "",
    letters: "",
    texts: "",
    paths: "",
    flags: "",
    long_texts: "",
    long_paths: "",
    patterns: "",
    has_single_dash: false,
};

static ROWS: &[Row] = &[
    Row {
        programs: "grep egrep fgrep",
        letters: "EFGPivwxcLloqsbHhnTuUzZaIryRV0123456789",
        texts: "emABCdD",
        paths: "f",
        flags: "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp \
            line-regexp count files-without-match files-with-matches only-matching quiet silent no-messages byte-offset \
            with-filename no-filename line-number initial-tab null text recursive dereference-recursive null-data binary \
            line-buffered color colour help version no-group-separator exclude-vcs",
        long_texts: "regexp include exclude exclude-dir max-count after-context before-context context binary-files devices \
            directories label group-separator",
        long_paths: "file exclude-from",
        patterns: "e f regexp file",
        ..ROW
    },
    Row {
        programs: "rg",
        letters: "FisSvwxclonNHIpPquULzab.0V",
        texts: "egtTmABCdjrEM",
        paths: "f",
        flags: "fixed-strings ignore-case case-sensitive smart-case invert-match word-regexp line-regexp count count-matches \
            files-with-matches files-without-match only-matching line-number no-line-number with-filename no-filename pretty \
            pcre2 quiet unrestricted multiline multiline-dotall follow hidden no-ignore no-ignore-vcs no-ignore-parent files \
            type-list json vimgrep heading no-heading trim stats text binary null column no-messages passthru one-file-system \
            crlf byte-offset debug help version no-config sort-files search-zip glob-case-insensitive no-hidden no-follow",
        long_texts: "regexp glob iglob type type-not type-add type-clear max-count after-context before-context context \
            max-depth maxdepth threads replace encoding max-columns max-filesize sort sortr color colors context-separator \
            field-context-separator field-match-separator engine path-separator",
        long_paths: "file ignore-file",
        patterns: "e f regexp file files type-list",
        ..ROW
    },
    Row {
        programs: "ag ack",
        letters: "ilLvwcQnsuhHr",
        texts: "ABCGm",
        flags: "hidden ignore-case smart-case literal files-with-matches files-without-matches invert-match word-regexp count \
            follow nocolor color nogroup group noheading heading column numbers unrestricted",
        long_texts: "ignore ignore-dir after before context max-count depth file-search-regex",
        long_paths: "path-to-ignore",
        patterns: "none",
        ..ROW
    },
    Row {
        programs: "diff gdiff colordiff",
        letters: "qrucyiwbBasNenptTdEZ",
        texts: "UCWxIFDL",
        paths: "SX",
        flags: "brief recursive unified context side-by-side ignore-case ignore-all-space ignore-space-change \
            ignore-blank-lines text report-identical-files new-file ed rcs show-c-function expand-tabs initial-tab minimal \
            ignore-tab-expansion ignore-trailing-space color left-column suppress-common-lines no-dereference \
            unidirectional-new-file strip-trailing-cr normal paginate speed-large-files help version",
        long_texts: "exclude ignore-matching-lines label width show-function-line ifdef tabsize horizon-lines palette",
        long_paths: "exclude-from starting-file from-file to-file",
        ..ROW
    },
    Row {
        programs: "du gdu",
        letters: "abcDhHklLmPsSx0",
        texts: "dtB",
        paths: "X",
        flags: "all apparent-size bytes total dereference-args human-readable si dereference no-dereference separate-dirs \
            summarize one-file-system null count-links inodes time help version",
        long_texts: "exclude max-depth threshold block-size time-style",
        long_paths: "exclude-from files0-from",
        ..ROW
    },
    Row {
        programs: "ls",
        letters: "aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        texts: "IwT",
        flags: "all almost-all author escape ignore-backups directory dired classify file-type full-time no-group \
            human-readable si dereference-command-line dereference inode kibibytes literal hide-control-chars \
            show-control-chars quote-name reverse recursive size context zero color hyperlink group-directories-first help \
            version",
        long_texts: "ignore hide width tabsize block-size format indicator-style quoting-style sort time time-style",
        ..ROW
    },
    Row {
        programs: "tree",
        letters: "adlfxpsughDFqNQrtcUinACSJXvV",
        texts: "LIP",
        flags: "noreport dirsfirst prune gitignore matchdirs ignore-case inodes device du si filesfirst metafirst help version",
        long_texts: "filelimit charset timefmt sort",
        ..ROW
    },
    Row {
        programs: "fd fdfind",
        letters: "HIuUsigalpFLq10h",
        texts: "dtEecSj",
        flags: "hidden no-ignore no-ignore-vcs unrestricted case-sensitive ignore-case glob regex absolute-path list-details \
            full-path fixed-strings follow quiet print0 show-errors prune and one-file-system help version",
        long_texts: "exclude max-depth min-depth exact-depth type extension size changed-within changed-before owner color \
            threads max-results path-separator",
        long_paths: "ignore-file base-directory search-path",
        ..ROW
    },
    Row {
        programs: "cloc",
        flags: "vcs git json csv yaml quiet by-file sum-one skip-uniqueness",
        long_texts: "exclude-dir exclude-ext exclude-lang include-lang include-ext not-match-d not-match-f match-d match-f",
        ..ROW
    },
    Row {
        programs: "tar gtar bsdtar",
        letters: "ctvzjJZaphSlWokx",
        texts: "b",
        paths: "fC",
        flags: "create list verbose gzip bzip2 xz zstd lzma lzip compress auto-compress dereference no-recursion \
            preserve-permissions same-permissions exclude-vcs exclude-vcs-ignores exclude-caches exclude-backups numeric-owner \
            sparse one-file-system totals utc same-owner no-same-owner ungzip gunzip extract",
        long_texts: "exclude sort mtime owner group format",
        long_paths: "file directory",
        ..ROW
    },
    Row {
        programs: "rsync",
        letters: "avzrtnuPhxcqWlpgoDHAXEmiIOLkJNUSyC0123456789",
        flags: "acls archive checksum compress copy-links cvs-exclude delete dirs dry-run existing force group hard-links \
            human-readable ignore-existing ignore-errors ignore-times inplace itemize-changes links list-only no-compress \
            no-group no-owner no-perms no-times numeric-ids omit-dir-times one-file-system owner partial perms progress \
            protect-args prune-empty-dirs quiet recursive size-only sparse specials stats times update verbose whole-file xattrs",
        long_texts: "exclude include max-size min-size bwlimit timeout info",
        ..ROW
    },
    Row {
        programs: "zip",
        letters: "rqvjyXoufdDlg0123456789",
        flags: "recurse-paths quiet verbose junk-paths symlinks no-extra update freshen delete",
        long_texts: "exclude include",
        ..ROW
    },
    // `--arg`, `--slurpfile` and the like take two words and are not listed, so that every word may be a path there.
    Row {
        programs: "jq",
        letters: "nrRsCMcSejah",
        paths: "fL",
        flags: "null-input raw-input slurp compact-output raw-output raw-output0 join-output ascii-output sort-keys \
            color-output monochrome-output tab unbuffered stream stream-errors seq exit-status help",
        long_texts: "indent",
        long_paths: "from-file library-path",
        patterns: "f from-file",
        ..ROW
    },
    Row {
        programs: "find gfind",
        flags: "print print0 ls prune o a or and not depth d mount xdev follow empty quit true false executable readable \
            writable daystart noleaf nouser nogroup warn nowarn ignore_readdir_race noignore_readdir_race H L P E X s x O1 O2 \
            O3 help version",
        long_texts: "name iname path ipath wholename iwholename regex iregex lname ilname type xtype size mtime atime ctime mmin \
            amin cmin maxdepth mindepth perm user group uid gid links inum fstype printf regextype used",
        long_paths: "newer anewer cnewer samefile",
        has_single_dash: true,
        ..ROW
    },
];

/// What one word says.
enum Said {
    /// Neither it nor the next word is left out.
    Counts,
    /// It is left out.
    Text,
    /// It is left out, and so is the next word.
    TextNext,
    /// It counts, and so does the next word, whatever it looks like.
    PathNext,
}

/// The words that may be paths; `None` where an option is not in the row.
pub(super) fn path_words<'a>(program: &str, arguments: &'a [Word]) -> Option<Vec<&'a Word>> {
    let row = ROWS.iter().find(|row| listed(row.programs, program))?;
    let mut has_pattern = row.patterns.is_empty() || arguments.iter().any(|word| row.brings_pattern(&word.text));
    let mut found = Vec::new();
    let mut words = arguments.iter();
    let mut are_over = false;
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        if are_over || !text.starts_with('-') || text == "-" {
            // A variable may vanish, or become an option or several words; a pattern may become several as well.
            let is_one = word.literal || text.starts_with('"');
            if text.starts_with(['$', '`']) || (!has_pattern && !is_one) {
                return None;
            }
            if has_pattern {
                found.push(word);
            }
            has_pattern = true;
            continue;
        }
        if text == "--" {
            are_over = true;
            continue;
        }
        match row.said(text)? {
            Said::Counts => found.push(word),
            Said::Text => {}
            Said::TextNext => {
                words.next()?;
            }
            Said::PathNext => found.extend([Some(word), words.next()].into_iter().flatten()),
        }
    }
    Some(found)
}

impl Row {
    fn said(&self, text: &str) -> Option<Said> {
        let long = match self.has_single_dash {
            true => text.strip_prefix('-'),
            false => text.strip_prefix("--"),
        };
        if let Some(long) = long {
            let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            return match value {
                None if listed(self.long_texts, name) => Some(Said::TextNext),
                None if listed(self.long_paths, name) => Some(Said::PathNext),
                Some(_) if self.has_single_dash => None,
                Some(_) if listed(self.long_texts, name) => Some(Said::Text),
                _ if listed(self.flags, name) || listed(self.long_paths, name) => Some(Said::Counts),
                _ => None,
            };
        }
        let bundle = text.strip_prefix('-')?;
        for (at, letter) in bundle.char_indices() {
            let is_last = at.saturating_add(letter.len_utf8()) == bundle.len();
            match letter {
                letter if self.letters.contains(letter) => {}
                letter if self.texts.contains(letter) => {
                    return Some(if is_last { Said::TextNext } else { Said::Text });
                }
                letter if self.paths.contains(letter) => {
                    return Some(if is_last { Said::PathNext } else { Said::Counts });
                }
                _ => return None,
            }
        }
        Some(Said::Counts)
    }

    /// `-e x`, `-ne x`, `--regexp=x`
    fn brings_pattern(&self, text: &str) -> bool {
        if let Some(long) = text.strip_prefix("--") {
            return listed(self.patterns, long.split('=').next().unwrap_or(long));
        }
        let Some(bundle) = text.strip_prefix('-') else { return false };
        let is_valued = |letter: char| self.texts.contains(letter) || self.paths.contains(letter);
        let valued = bundle.chars().find(|letter| is_valued(*letter));
        valued.is_some_and(|letter| listed(self.patterns, letter.encode_utf8(&mut [0; 4])))
    }
}
