//! Places whose files are executed or decide what is: git's state, hooks, start files of shells, configurations of
//! editors, clients and builders, directories of programs.
//! Takes a word as it stands in a line, or a path; gives the name by which it reaches such a place. One function for
//! arguments, redirections and paths found behind links, so that no program can be forgotten. Lexical and wide: case,
//! quotes, glued options, braces, patterns and the short names of other file systems all count.

use std::collections::HashSet;
use std::path::Path;
use std::sync::LazyLock;

use crate::braces;
use crate::encodings::decoded;
use crate::folded::folded;

/// Names that make every path they stand in such a place. Compared folded.
const NAMES: &str = "\
    .git .hg .svn .jj .bzr _darcs \
    .husky .githooks .git-hooks .lefthook lefthook.yml lefthook.yaml lefthook-local.yml .lefthook.yml \
    .pre-commit-config.yaml .pre-commit-config.yml .overcommit.yml .gitconfig .gitmodules gitconfig \
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .profile .zshrc .zshenv .zprofile \
    .zlogin .zlogout .zsh .oh-my-zsh .kshrc .mkshrc .cshrc .tcshrc .login .logout .inputrc .xprofile .xinitrc .xsession \
    .xsessionrc .xserverrc .envrc .direnvrc .pam_environment bash.bashrc profile.d config.fish \
    .vscode .vscode-server .idea .vim .vimrc .gvimrc .exrc .nvimrc .nvim.lua .emacs .emacs.d .dir-locals.el .spacemacs \
    .zed .fleet .devcontainer .devcontainer.json .nanorc .helix \
    .cursor .claude .claude.json .codex .gemini .roo .roomodes .mcp.json .windsurf .codeium .continue .kilocode .cline \
    .aider.conf.yml .opencode .amazonq .junie .github-copilot .goose \
    .npmrc .yarnrc .yarnrc.yml .yarn .pnpmfile.cjs .pnp.cjs .pnp.loader.mjs .cargo .mvn .mavenrc .gradle .bundle \
    .mise.toml mise.toml .rbenv .pyenv .nvm .sdkman \
    .gdbinit .lldbinit .pdbrc .pythonrc .pythonrc.py .irbrc .pryrc .rprofile .psqlrc .sqliterc .mysqlrc .my.cnf \
    .screenrc .tmux.conf .lesskey .lessfilter .lesskey.src .mailcap .curlrc .wgetrc .netrc .ackrc .ripgreprc .hgrc \
    .terraformrc .docker .kube .aws .ssh .gnupg .subversion \
    sitecustomize.py usercustomize.py authorized_keys ld.so.preload ld.so.conf ld.so.conf.d crontab cron.d cron.daily \
    cron.hourly cron.weekly cron.monthly sudoers sudoers.d init.d rc.local launchagents launchdaemons";

/// A name and the one behind it that make such a place together.
const PAIRS: &[(&str, &str)] = &[
    ("node_modules", ".bin"),
    (".venv", "bin"),
    (".venv", "scripts"),
    ("venv", "bin"),
    ("venv", "scripts"),
    (".local", "bin"),
    (".local", "lib"),
    (".config", "git"),
    (".config", "fish"),
    (".config", "zsh"),
    (".config", "nvim"),
    (".config", "emacs"),
    (".config", "helix"),
    (".config", "zed"),
    (".config", "code"),
    (".config", "systemd"),
    (".config", "autostart"),
    (".config", "environment.d"),
    (".config", "direnv"),
    (".config", "mise"),
    (".config", "hg"),
    (".config", "jj"),
    (".config", "opencode"),
    (".config", "github-copilot"),
    (".config", "tmux"),
    (".config", "pip"),
    ("etc", "profile"),
    ("etc", "environment"),
    ("etc", "gitconfig"),
    ("etc", "zsh"),
    ("etc", "zshrc"),
    ("etc", "zshenv"),
    ("etc", "systemd"),
    ("spool", "cron"),
];

/// Names that only count where something is written: reading such a file says nothing, writing it decides what later
/// runs. Configurations of rarer clients, start files of interpreters and other programs, configurations that are code.
const WRITTEN_NAMES: &str = "\
    .kiro .copilot .qwen .trae .lmstudio opencode.json opencode.jsonc .crush crush.json .crush.json .factory .augment \
    .pearai .aide .tabnine .cody .sourcegraph .amp .rovodev mcp.json .mcp.jsonc mcp_config.json mcp_settings.json \
    cline_mcp_settings.json claude_desktop_config.json .cursorrc .windsurfrc .zencoder .openhands .aider.conf.yaml \
    .xonshrc .nushell .elvish .ipython .jupyter .julia .ghci .haskeline .ocamlinit .utop .iex.exs .clojure .lein .sbclrc \
    .guile .octaverc .scilab .gnuplot .bcrc .gforthrc .luarc .rdebugrc .byebugrc .perldb .perltidyrc .phpdbginit .racketrc \
    .lldbinit-xcode .gdbearlyinit .radare2rc .valgrindrc .ltrace.conf .tigrc .wezterm.lua .hammerspoon .alacritty.toml \
    .kitty .xbindkeysrc .xresources .i3 .fvwm .mutt .muttrc .msmtprc .procmailrc .forward .fetchmailrc .getmail .cvsrc \
    .ansible.cfg ansible.cfg .vagrant.d .packer.d .helm .pulumi .azure .prettierrc.js .prettierrc.cjs .prettierrc.mjs \
    .eslintrc.js .eslintrc.cjs .mocharc.js .mocharc.cjs .babelrc.js .babelrc.cjs .stylelintrc.js .lintstagedrc.js \
    .lintstagedrc .lintstagedrc.json .commitlintrc.js .releaserc.js .puppeteerrc.cjs .rspec .rubocop.yml .pylintrc .bazelrc \
    .buckconfig .watchmanconfig .condarc .pip .pypirc .simple-git-hooks.json .simple-git-hooks.js .tool-versions \
    .selected_editor";

/// Endings of such names.
const WRITTEN_ENDINGS: [&str; 3] = [".code-workspace", ".sublime-project", ".pth"];

/// Pairs that only count where something is written.
const WRITTEN_PAIRS: &[(&str, &str)] = &[
    (".config", "xonsh"),
    (".config", "nushell"),
    (".config", "elvish"),
    (".config", "kitty"),
    (".config", "alacritty"),
    (".config", "wezterm"),
    (".config", "ghostty"),
    (".config", "cursor"),
    (".config", "claude"),
    (".config", "goose"),
    (".config", "crush"),
    (".config", "amp"),
    (".config", "trae"),
    (".config", "kiro"),
    (".config", "vscodium"),
    (".config", "windsurf"),
    (".config", "lmstudio"),
    (".config", "i3"),
    (".config", "sway"),
    (".config", "hypr"),
    (".config", "lazygit"),
    (".config", "tig"),
    (".config", "gh"),
    (".config", "mpv"),
    (".config", "ranger"),
    (".config", "lf"),
    (".config", "nnn"),
    (".config", "yazi"),
    (".config", "containers"),
    (".config", "plasma-workspace"),
    (".config", "cargo"),
    (".config", "julia"),
    (".config", "ipython"),
    (".julia", "config"),
    ("application support", "code"),
    ("application support", "claude"),
    ("application support", "cursor"),
    ("env", "bin"),
    (".env", "bin"),
    ("vendor", "bin"),
    (".tox", "bin"),
    ("bin", "activate_this.py"),
];

/// Files in a directory `hooks` that git runs: so a directory shaped like git's is known by them.
const HOOKS: &str = "\
    applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit \
    pre-rebase post-checkout post-merge pre-push pre-receive update proc-receive post-receive post-update \
    reference-transaction push-to-checkout pre-auto-gc post-rewrite sendemail-validate fsmonitor-watchman \
    p4-changelist p4-prepare-changelist p4-post-changelist p4-pre-submit post-index-change";

/// Files and directories of a bare repository `x.git`.
const BARE: &str = "head config objects refs hooks info packed-refs index modules worktrees commondir gitdir";

/// What is done to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Any,
    Read,
    Written,
}

/// The place a word of a line reaches, in whatever form it is written.
pub(super) fn reached_by_word(text: &str) -> Option<String> {
    reached(text, Use::Any)
}

/// The place a word reaches that is written.
pub(super) fn written_by_word(text: &str) -> Option<String> {
    reached(text, Use::Written)
}

/// The place a word reaches that is only read. A pattern that begins with a wild character shows files of that name at
/// most, and executes none: `*.py`, `src/*.toml`.
pub(super) fn read_by_word(text: &str) -> Option<String> {
    reached(text, Use::Read)
}

fn reached(text: &str, how: Use) -> Option<String> {
    let text = text.replace(['"', '\''], "");
    let Some(forms) = braces::expanded(&text) else { return Some("too many braces".to_owned()) };
    // `http://host/%2egit/config`
    let decoded: Vec<String> = forms.iter().filter_map(|form| decoded(form)).collect();
    forms.iter().chain(&decoded).find_map(|form| {
        // A backslash quotes in some shells and parts names in others.
        let unescaped = form.replace('\\', "");
        [form.as_str(), unescaped.as_str()].into_iter().find_map(|text| {
            // `--output=x`, `if=x`, `host:x`, `:(top)x`, `<(x)`.
            let pieces = text.split(['=', ':', ',', '(', ')', '|', ';', '&', '<', '>', '@', ' ', '\n', '\t']);
            std::iter::once(text).chain(pieces).find_map(|piece| reached_by_piece(piece, how))
        })
    })
}

/// The place a path reaches below a directory that is above suspicion, such as the workspace.
pub(super) fn reached_by_path(path: &Path, trusted: Option<&Path>, how: Use) -> Option<String> {
    let below = trusted.and_then(|trusted| path.strip_prefix(trusted).ok()).unwrap_or(path);
    reached_by_piece(&below.to_string_lossy(), how)
}

/// Whether writing a relative path reaches such a place. For whoever looks through a tree.
#[must_use]
pub fn executed_below(path: &Path) -> bool {
    reached_by_piece(&path.to_string_lossy(), Use::Written).is_some()
}

/// The place that a file or directory of this name reaches inside of a directory, which counts by its own name.
pub(super) fn reached_by_name_in(directory: &Path, name: &str) -> Option<String> {
    let last = directory.file_name()?.to_string_lossy();
    reached_by_piece(&format!("{last}/{name}"), Use::Written)
}

/// Whether files of some names below a path would be executed: `node_modules`, where `.bin` is.
pub(super) fn is_first_of_pair(path: &Path) -> bool {
    let name = path.file_name().map(|name| clean(&name.to_string_lossy())).unwrap_or_default();
    PAIRS.iter().chain(WRITTEN_PAIRS).any(|(first, _)| *first == name) || name == "hooks"
}

fn reached_by_piece(piece: &str, how: Use) -> Option<String> {
    let names: Vec<String> =
        piece.split(['/', '\\']).filter(|name| !name.is_empty() && *name != ".").map(clean).collect();
    let glued = piece.starts_with('-').then(|| names.first()).flatten();
    let is_shown = |name: &str| how == Use::Read && name.starts_with(['*', '?', '[']);
    for (at, name) in names.iter().enumerate().filter(|(_, name)| !is_shown(name)) {
        if is_executed(name) || (how == Use::Written && is_written(name)) {
            return Some(name.clone());
        }
        let Some(next) = names.get(at.saturating_add(1)) else { continue };
        let is_pair = |(first, second): &(&str, &str)| fits(name, first) && fits(next, second);
        let is_hook = fits(name, "hooks") && HOOKS.split_ascii_whitespace().any(|hook| fits(next, hook));
        let is_bare = name.ends_with(".git") && BARE.split_ascii_whitespace().any(|file| fits(next, file));
        let is_written_pair = || how == Use::Written && WRITTEN_PAIRS.iter().any(is_pair);
        if PAIRS.iter().any(is_pair) || is_hook || is_bare || is_written_pair() {
            return Some(format!("{name}/{next}"));
        }
    }
    // `-o.git/config`: the letters of an option stand before the name.
    glued.and_then(|first| glued_name(first, names.get(1).map(String::as_str)))
}

/// A name behind the letters of a short option, or behind a long one without `=`.
fn glued_name(first: &str, next: Option<&str>) -> Option<String> {
    let starts = first.char_indices().skip(2).map(|(at, _)| at).take(MOST_GLUED);
    starts.filter_map(|at| first.get(at..)).find_map(|rest| {
        // `--x.git` may be a name of its own; a path behind it or an exact name counts.
        let is_pair = |(one, two): &(&str, &str)| rest == *one && next.is_some_and(|next| fits(next, two));
        (KNOWN.contains(rest) || is_short_name(rest) || PAIRS.iter().any(is_pair)).then(|| rest.to_owned())
    })
}

/// How many letters may stand before a glued name.
const MOST_GLUED: usize = 64;

/// A name as the most forgiving file system reads it: small letters, nothing invisible, no trailing dots and blanks.
fn clean(name: &str) -> String {
    let folded = folded(name);
    let bare = folded.trim_end_matches(['.', ' ']);
    if bare.is_empty() { folded.into_owned() } else { bare.to_owned() }
}

fn is_executed(name: &str) -> bool {
    if is_short_name(name) {
        return true;
    }
    if !name.contains(WILD) {
        return KNOWN.contains(name);
    }
    NAMES.split_ascii_whitespace().any(|known| fits(name, known)) || fits(name, "git~1")
}

fn is_written(name: &str) -> bool {
    let ends = WRITTEN_ENDINGS.iter().any(|ending| name.ends_with(ending));
    let fits_one = || WRITTEN_NAMES.split_ascii_whitespace().any(|known| fits(name, known));
    ends || if name.contains(WILD) { fits_one() } else { KNOWN_WRITTEN.contains(name) }
}

/// The tables, ready for many names: whole trees are compared with them.
static KNOWN: LazyLock<HashSet<&str>> = LazyLock::new(|| NAMES.split_ascii_whitespace().collect());
static KNOWN_WRITTEN: LazyLock<HashSet<&str>> = LazyLock::new(|| WRITTEN_NAMES.split_ascii_whitespace().collect());

/// `git~1` is `.git` on file systems with short names.
fn is_short_name(name: &str) -> bool {
    name.strip_prefix("git~").is_some_and(|number| number.chars().all(|digit| digit.is_ascii_digit()))
        || name.strip_prefix("gi7eba~").is_some_and(|number| number.chars().all(|digit| digit.is_ascii_digit()))
}

/// Characters that a shell may replace by others.
const WILD: [char; 6] = ['*', '?', '[', ']', '$', '`'];

/// Whether a name, which may be a pattern, can become a known one. A pattern that begins with a wild character matches
/// no name that begins with a dot.
fn fits(name: &str, known: &str) -> bool {
    if !name.contains(WILD) {
        return name == known;
    }
    let before = name.split(WILD).next().unwrap_or_default();
    if name.contains(['$', '`']) {
        // A whole name that is not known is refused elsewhere.
        return !before.is_empty() && known.starts_with(before);
    }
    let after = name.rsplit(WILD).next().unwrap_or_default();
    let is_blind = before.is_empty() && known.starts_with('.');
    // Nothing but wild characters says nothing: `*/x`.
    let says_something = !(before.is_empty() && after.is_empty());
    says_something && !is_blind && known.starts_with(before) && known.ends_with(after)
}

#[cfg(test)]
#[path = "executed_tests.rs"]
mod tests;
