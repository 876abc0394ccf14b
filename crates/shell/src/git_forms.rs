//! Table of the forms of git that an entry may allow: subcommands with the options each may have.
//! Takes the name of a subcommand; gives its row. A subcommand or an option that is not in the table is never
//! auto-allowed, also not where git would take it for the abbreviation of one that is.

use crate::wrappers::listed;

/// One row. Each text is a list parted by blanks, except the sets of letters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    verbs: &'static str,
    /// Long options without their dashes, as a flag, with `=value` or with `no-` before them.
    flags: &'static str,
    /// Long options whose value is text and no path: behind `=` or the next word.
    texts: &'static str,
    /// Short options without a value, or with a number glued to them.
    letters: &'static str,
    /// Short options whose value is text and no path: the rest of the word or the next one.
    valued: &'static str,
    pub(super) operands: Operands,
}

/// What the words of a subcommand that are no options may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// Revisions and paths.
    Any,
    /// At most this many.
    AtMost(usize),
    /// One of these first; the words behind it are anything.
    Verb(&'static str),
    /// The first is a repository: a remote's name or an address of another machine.
    Repository,
}

const FORM: Form = Form { verbs: "", flags: "", texts: "", letters: "", valued: "", operands: Operands::Any };

/// What `log`, `diff` and their relatives print, and how. Not `--output`, `--ext-diff`, `--textconv`, `-O`.
const DIFF_FLAGS: &str = "\
    patch no-patch raw patch-with-raw patch-with-stat stat numstat shortstat dirstat cumulative summary name-only \
    name-status compact-summary full-index binary abbrev color color-moved color-words word-diff word-diff-regex \
    find-renames find-copies find-copies-harder renames break-rewrites ignore-space-at-eol ignore-space-change \
    ignore-all-space ignore-blank-lines ignore-cr-at-eol ignore-submodules minimal patience histogram \
    diff-algorithm indent-heuristic diff-filter diff-merges pickaxe-all pickaxe-regex relative text unified \
    inter-hunk-context function-context exit-code quiet check cached staged merge-base no-index no-prefix \
    default-prefix src-prefix dst-prefix line-prefix stat-width stat-count stat-name-width cc combined-all-paths \
    ws-error-highlight irreversible-delete skip-to rotate-to root stdin";
const DIFF_LETTERS: &str = "puwbazRMBCDWstrcmqv";
const DIFF_VALUED: &str = "USGlL";
const LOG_FLAGS: &str = "\
    oneline graph decorate decorate-refs decorate-refs-exclude clear-decorations source follow log-size all branches \
    tags remotes glob exclude reflog walk-reflogs merges min-parents max-parents first-parent reverse topo-order \
    date-order author-date-order date relative-date parents children left-right left-only right-only cherry \
    cherry-pick cherry-mark boundary simplify-merges simplify-by-decoration full-history dense sparse ancestry-path \
    show-pulls abbrev-commit no-walk do-walk full-diff mailmap use-mailmap expand-tabs notes show-notes count \
    objects objects-edge quiet invert-grep all-match regexp-ignore-case extended-regexp fixed-strings perl-regexp \
    basic-regexp encoding ignore-missing unpacked bisect header timestamp max-count skip max-age min-age \
    not exclude-first-parent-only disk-usage use-bitmap-index missing filter filter-print-omitted since-as-filter";
const LOG_TEXTS: &str = "grep author committer grep-reflog since after until before format pretty";
const LOG_LETTERS: &str = "iEFPg";

/// Rows with the same subcommand add up.
static FORMS: &[Form] = &[
    Form {
        verbs: "log show diff diff-tree diff-index diff-files whatchanged range-diff reflog stash format-patch",
        flags: DIFF_FLAGS,
        letters: DIFF_LETTERS,
        valued: DIFF_VALUED,
        ..FORM
    },
    Form {
        verbs: "log show whatchanged reflog rev-list shortlog format-patch diff-tree",
        flags: LOG_FLAGS,
        texts: LOG_TEXTS,
        letters: LOG_LETTERS,
        ..FORM
    },
    Form { verbs: "log show whatchanged reflog rev-list", valued: "n", ..FORM },
    Form { verbs: "range-diff", flags: "creation-factor no-dual-color left-only right-only", ..FORM },
    Form { verbs: "shortlog", flags: "numbered summary email committer group", letters: "nsec", valued: "w", ..FORM },
    Form {
        verbs: "format-patch",
        flags: "stdout numbered no-numbered keep-subject signoff cover-letter start-number attach inline thread zero-commit",
        texts: "subject-prefix",
        letters: "nNks",
        valued: "v",
        ..FORM
    },
    Form {
        verbs: "status",
        flags: "short branch show-stash porcelain long verbose untracked-files ignored ignore-submodules column \
            ahead-behind renames find-renames null",
        letters: "sbvuzM",
        ..FORM
    },
    Form {
        verbs: "branch",
        flags: "verbose quiet track set-upstream-to unset-upstream color remotes contains no-contains abbrev all delete \
            move copy list show-current create-reflog force merged no-merged column points-at ignore-case omit-empty",
        texts: "sort format",
        letters: "vqturadDmMcClfi",
        ..FORM
    },
    Form {
        verbs: "tag",
        flags: "list delete annotate force create-reflog column contains no-contains merged no-merged points-at \
            ignore-case omit-empty cleanup color",
        texts: "message sort format file",
        letters: "ldafin",
        valued: "mF",
        ..FORM
    },
    Form {
        verbs: "add",
        flags: "dry-run verbose force update renormalize intent-to-add all ignore-removal refresh ignore-errors \
            ignore-missing sparse chmod",
        letters: "nvfuNA",
        ..FORM
    },
    Form {
        verbs: "commit",
        flags: "quiet verbose reset-author signoff status all include only verify no-verify dry-run short branch \
            ahead-behind porcelain long null amend untracked-files allow-empty allow-empty-message post-rewrite cleanup \
            no-edit no-gpg-sign",
        texts: "message file reuse-message author date fixup squash",
        letters: "qvsaionzu",
        valued: "mFC",
        ..FORM
    },
    Form {
        verbs: "push",
        flags: "verbose quiet all branches mirror delete tags dry-run porcelain force force-with-lease force-if-includes \
            thin set-upstream progress prune verify no-verify follow-tags atomic ipv4 ipv6 no-recurse-submodules no-signed",
        letters: "vqdnfu46",
        operands: Operands::Repository,
        ..FORM
    },
    Form {
        verbs: "fetch pull",
        flags: "verbose quiet progress all append force tags prune dry-run keep unshallow update-shallow \
            show-forced-updates ipv4 ipv6 set-upstream no-recurse-submodules atomic prune-tags multiple refetch porcelain \
            write-fetch-head auto-maintenance auto-gc write-commit-graph",
        texts: "depth shallow-since shallow-exclude deepen refmap negotiation-tip",
        letters: "vqaftnpPkm46",
        operands: Operands::Repository,
        ..FORM
    },
    Form { verbs: "fetch", texts: "jobs", valued: "j", operands: Operands::Repository, ..FORM },
    // Here the number of jobs is only taken where it is glued to the option.
    Form { verbs: "pull", flags: "jobs", letters: "j", operands: Operands::Repository, ..FORM },
    Form {
        verbs: "pull",
        flags: "rebase stat log squash commit no-edit ff ff-only verify no-verify autostash signoff \
            allow-unrelated-histories no-gpg-sign",
        letters: "r",
        operands: Operands::Repository,
        ..FORM
    },
    Form {
        verbs: "ls-remote",
        flags: "quiet heads branches tags refs get-url exit-code symref",
        texts: "sort",
        letters: "qthb",
        operands: Operands::Repository,
        ..FORM
    },
    Form {
        verbs: "clone",
        flags: "verbose quiet progress no-checkout single-branch no-single-branch no-tags tags reject-shallow ipv4 ipv6 \
            no-recurse-submodules no-local no-hardlinks",
        texts: "depth shallow-since shallow-exclude branch origin jobs",
        letters: "vqn46",
        valued: "bjo",
        operands: Operands::Repository,
    },
    Form {
        verbs: "checkout switch",
        flags: "quiet progress merge detach track force guess overwrite-ignore ignore-other-worktrees overlay ours theirs \
            discard-changes no-recurse-submodules create force-create orphan conflict",
        letters: "qmdtfbBlcC23",
        ..FORM
    },
    Form {
        verbs: "restore",
        flags: "source staged worktree ignore-unmerged overlay quiet progress merge conflict ours theirs \
            no-recurse-submodules",
        letters: "sSWqm23",
        ..FORM
    },
    Form {
        verbs: "reset",
        flags: "quiet refresh no-refresh mixed soft hard merge keep intent-to-add no-recurse-submodules",
        letters: "qN",
        ..FORM
    },
    Form {
        verbs: "stash",
        flags: "quiet include-untracked all keep-index staged index only-untracked",
        texts: "message",
        letters: "quakSp",
        valued: "m",
        operands: Operands::Verb("list show pop apply push save drop clear branch"),
    },
    Form {
        verbs: "merge",
        flags: "stat summary log squash commit no-edit ff ff-only rerere-autoupdate verbose quiet abort quit \
            allow-unrelated-histories progress autostash overwrite-ignore signoff verify no-verify no-gpg-sign",
        texts: "message file into-name strategy-option",
        letters: "nvq",
        valued: "mFX",
        ..FORM
    },
    Form {
        verbs: "rebase",
        flags: "continue keep-base verify no-verify quiet verbose no-stat stat signoff force-rebase ff no-ff skip abort quit \
            committer-date-is-author-date reset-author-date ignore-whitespace autostash update-refs fork-point root merge \
            apply rebase-merges reapply-cherry-picks show-current-patch no-gpg-sign no-autosquash",
        texts: "onto empty strategy-option",
        letters: "qvnfmr",
        valued: "X",
        ..FORM
    },
    Form {
        verbs: "cherry-pick revert",
        flags: "continue quit abort skip no-commit commit no-edit signoff ff allow-empty allow-empty-message \
            keep-redundant-commits no-gpg-sign reference",
        texts: "mainline strategy-option",
        letters: "nsx",
        valued: "mX",
        ..FORM
    },
    Form { verbs: "rm", flags: "dry-run quiet cached force ignore-unmatch sparse", letters: "nqfr", ..FORM },
    Form { verbs: "mv", flags: "verbose dry-run force sparse", letters: "vnfk", ..FORM },
    Form { verbs: "clean", flags: "quiet dry-run force", texts: "exclude", letters: "qnfdxX", valued: "e", ..FORM },
    Form {
        verbs: "remote",
        flags: "verbose all push prune",
        letters: "vnp",
        operands: Operands::Verb("show get-url prune update"),
        ..FORM
    },
    Form {
        verbs: "blame",
        flags: "root show-stats progress show-name show-number porcelain line-porcelain incremental show-email \
            color-lines color-by-age minimal abbrev date",
        texts: "ignore-rev since",
        letters: "bfnpctlsewCM",
        valued: "L",
        ..FORM
    },
    Form {
        verbs: "grep",
        flags: "cached no-index untracked exclude-standard invert-match ignore-case word-regexp text recursive max-depth \
            extended-regexp basic-regexp fixed-strings perl-regexp line-number column full-name files-with-matches \
            name-only files-without-match null only-matching count color break heading context before-context \
            after-context threads show-function function-context and or not quiet all-match max-count",
        letters: "viwaIrEGFPnhHlLzocpWq",
        valued: "eABCm",
        ..FORM
    },
    Form {
        verbs: "ls-files",
        flags: "cached deleted modified others ignored stage killed directory eol empty-directory unmerged resolve-undo \
            exclude-standard full-name error-unmatch abbrev deduplicate sparse debug",
        texts: "exclude format with-tree",
        letters: "ztvfcdmoisku",
        valued: "x",
        ..FORM
    },
    Form {
        verbs: "ls-tree",
        flags: "long name-only name-status object-only full-name full-tree abbrev",
        texts: "format",
        letters: "drtzl",
        ..FORM
    },
    Form {
        verbs: "rev-parse",
        flags: "verify quiet short abbrev-ref symbolic symbolic-full-name all branches tags remotes glob show-toplevel \
            show-prefix show-cdup show-superproject-working-tree git-dir git-common-dir absolute-git-dir git-path \
            is-inside-git-dir is-inside-work-tree is-bare-repository is-shallow-repository show-object-format default \
            revs-only no-revs flags no-flags path-format show-ref-format",
        letters: "q",
        ..FORM
    },
    Form {
        verbs: "describe",
        flags: "contains all tags long first-parent abbrev exact-match candidates always dirty broken",
        texts: "match exclude",
        ..FORM
    },
    Form {
        verbs: "for-each-ref",
        flags: "count points-at merged no-merged contains no-contains ignore-case omit-empty exclude include-root-refs",
        texts: "sort format",
        ..FORM
    },
    Form {
        verbs: "show-ref",
        flags: "head heads branches tags dereference hash verify quiet abbrev exists",
        letters: "dsq",
        ..FORM
    },
    Form { verbs: "symbolic-ref", flags: "quiet short recurse", letters: "q", operands: Operands::AtMost(1), ..FORM },
    Form {
        verbs: "cat-file",
        flags: "batch batch-check batch-all-objects buffer unordered follow-symlinks",
        letters: "tsep",
        ..FORM
    },
    Form { verbs: "archive", flags: "verbose list", texts: "prefix format", letters: "lv0123456789", ..FORM },
    Form { verbs: "apply", flags: "check stat numstat summary verbose reverse", letters: "vRp", ..FORM },
    Form { verbs: "hash-object", flags: "stdin literally", letters: "t", ..FORM },
    Form {
        verbs: "update-index",
        flags: "refresh really-refresh",
        letters: "q",
        operands: Operands::AtMost(0),
        ..FORM
    },
    Form { verbs: "merge-base", flags: "all octopus independent is-ancestor fork-point", letters: "a", ..FORM },
    Form { verbs: "name-rev", flags: "name-only tags all always undefined", texts: "refs exclude", ..FORM },
    Form {
        verbs: "fsck",
        flags: "full strict verbose unreachable dangling root tags cache connectivity-only progress name-objects",
        letters: "v",
        ..FORM
    },
    Form { verbs: "cherry", flags: "abbrev", letters: "v", ..FORM },
    Form { verbs: "count-objects", flags: "verbose human-readable", letters: "vH", ..FORM },
    Form { verbs: "check-ignore", flags: "quiet verbose non-matching no-index", letters: "qvnz", ..FORM },
    Form { verbs: "check-attr", flags: "all cached", letters: "az", ..FORM },
    Form { verbs: "notes", operands: Operands::Verb("list show"), ..FORM },
    Form { verbs: "worktree", flags: "porcelain verbose", letters: "vz", operands: Operands::Verb("list"), ..FORM },
    Form {
        verbs: "submodule",
        flags: "quiet cached",
        letters: "q",
        operands: Operands::Verb("status summary"),
        ..FORM
    },
    Form { verbs: "sparse-checkout", operands: Operands::Verb("list"), ..FORM },
    Form { verbs: "bisect", operands: Operands::Verb("start good bad new old skip reset log terms"), ..FORM },
    Form { verbs: "var help version", flags: "build-options", operands: Operands::AtMost(1), ..FORM },
];

/// The rows of a subcommand; empty for one that is not in the table.
pub(super) fn forms(verb: &str) -> Vec<&'static Form> {
    FORMS.iter().filter(|form| listed(form.verbs, verb)).collect()
}

impl Form {
    /// A long option by its whole name, also switched off.
    pub(super) fn has_flag(&self, name: &str) -> bool {
        let positive = name.strip_prefix("no-").unwrap_or(name);
        // `--no-edit` is listed where `--edit` is not.
        listed(self.flags, name) || listed(self.flags, positive)
    }

    pub(super) fn has_text(&self, name: &str) -> bool {
        listed(self.texts, name)
    }

    pub(super) fn has_letter(&self, letter: char) -> bool {
        self.letters.contains(letter)
    }

    pub(super) fn has_valued(&self, letter: char) -> bool {
        self.valued.contains(letter)
    }
}

/// Every option of the subcommands that are given a repository, and whether its value is the next word.
#[cfg(test)]
pub(super) fn options_before_repositories() -> Vec<(&'static str, String, bool)> {
    let mut found = Vec::new();
    for form in FORMS.iter().filter(|form| form.operands == Operands::Repository) {
        for verb in form.verbs.split_ascii_whitespace() {
            let long = |names: &'static str, takes: bool| {
                names.split_ascii_whitespace().map(move |name| (verb, format!("--{name}"), takes))
            };
            let short = |letters: &'static str, takes: bool| {
                letters.chars().map(move |letter| (verb, format!("-{letter}"), takes))
            };
            found.extend(long(form.flags, false).chain(long(form.texts, true)));
            found.extend(short(form.letters, false).chain(short(form.valued, true)));
        }
    }
    found
}
