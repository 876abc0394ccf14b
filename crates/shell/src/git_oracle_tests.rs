//! Compares with a real git: lines that we allow are run in a scratch repository full of traps.
//! Editors, signing programs, aliases and filters of its configuration, an embedded bare repository, a patch, an
//! archive and links into `.git` all lead to one program that leaves a mark. After each line everyday commands of git
//! show what was planted. The mark must never be there.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::{Just, Strategy, prop, prop_oneof};

use crate::bash_oracle_tests::{BASH, line_count, lines, needs};
use crate::git_forms::options_before_repositories;
use crate::{
    Coverage, FileFacts, Position, Real, Repository, ShellAllowlist, ShellEntry, Tree, executed_below, questions, read,
    strays,
};

const ALLOWED: [&str; 19] = [
    "git", "ls", "cat", "echo", "cp", "mv", "tee", "ln", "tar", "sort", "sed", "mkdir", "touch", "install", "cd",
    "truncate", "grep", "find", "gzip",
];
const GIT: &str = "git";
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What the traps are made of; `MARK` is the program that leaves the mark.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tfsmonitor = MARK\n\tpager = MARK\n\teditor = MARK\n\tsshCommand = MARK\n\thooksPath = hooks\n";
const OWN: &[(&str, &str)] = &[
    ("user.name", "ann"),
    ("user.email", "ann@example.com"),
    ("gpg.program", "MARK"),
    ("alias.st", "!MARK"),
    ("tar.evil.command", "MARK"),
    ("trailer.x.command", "MARK"),
    ("interactive.diffFilter", "MARK"),
    ("difftool.c.cmd", "MARK"),
    ("mergetool.c.cmd", "MARK"),
    ("diff.tool", "c"),
    ("merge.tool", "c"),
    ("web.browser", "c"),
    ("browser.c.cmd", "MARK"),
    ("diff.c.textconv", "MARK"),
    ("sendemail.smtpserver", "MARK"),
    ("submodule.sub.update", "!MARK"),
];
const EDITORS: [&str; 6] = ["EDITOR", "VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR", "GIT_ASKPASS", "SSH_ASKPASS"];

struct Scratch {
    root: PathBuf,
    /// Lines that bash ran to a good end: those that only fail show little.
    succeeded: Cell<usize>,
}

impl Scratch {
    fn new() -> std::io::Result<Self> {
        let root = std::env::temp_dir().join(format!("toolwarden-git-oracle-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let scratch = Self { root, succeeded: Cell::new(0) };
        let repo = scratch.root.join("template");
        fs::create_dir_all(repo.join("sub"))?;
        fs::create_dir_all(scratch.root.join("home"))?;
        let mark = scratch.root.join("mark");
        fs::write(&mark, format!("#!/bin/sh\n: > {}\n", scratch.root.join("marked").display()))?;
        fs::set_permissions(&mark, fs::Permissions::from_mode(0o755))?;
        let mark = mark.display().to_string();
        scratch.git(&scratch.root, &["init", "-q", "--bare", "--template=", "-b", "main", "origin.git"])?;
        scratch.git(&repo, &["init", "-q", "--template=", "-b", "main"])?;
        for (key, value) in OWN {
            scratch.git(&repo, &["config", key, &value.replace("MARK", &mark)])?;
        }
        let config = CONFIG.replace("MARK", &mark);
        for (name, text) in
            [("a", "a\n"), ("b", "b\n"), ("sub/c", "c\n"), ("X", config.as_str()), ("message", "text\n")]
        {
            fs::write(repo.join(name), text)?;
        }
        fs::copy(scratch.root.join("mark"), repo.join("payload"))?;
        scratch.git(&repo, &["remote", "add", "origin", "../origin.git"])?;
        scratch.git(&repo, &["add", "-A"])?;
        scratch.git(&repo, &["commit", "-qm", "one"])?;
        scratch.git(&repo, &["branch", "other"])?;
        scratch.git(&repo, &["push", "-q", "origin", "main"])?;
        scratch.set_traps(&repo, &config)?;
        Ok(scratch)
    }

    fn set_traps(&self, repo: &Path, config: &str) -> std::io::Result<()> {
        // A bare repository among the files, and one in a directory of its own.
        for evil in [repo.join("evil"), repo.join("nested/.git")] {
            for directory in ["objects", "refs", "hooks"] {
                fs::create_dir_all(evil.join(directory))?;
            }
            // A commit that nobody has is enough for git to take a nested repository into its index.
            let head = if evil.ends_with(".git") { "1".repeat(40) } else { "ref: refs/heads/main".to_owned() };
            fs::write(evil.join("HEAD"), format!("{head}\n"))?;
            fs::write(evil.join("config"), config.replace("bare = false", "bare = false\n\tworktree = .."))?;
            for hook in ["pre-commit", "pre-receive", "post-update", "update", "post-checkout", "reference-transaction"]
            {
                fs::copy(self.root.join("mark"), evil.join("hooks").join(hook))?;
            }
        }
        fs::write(
            repo.join("evil.patch"),
            format!(
                "diff --git a/.git/hooks/pre-commit b/.git/hooks/pre-commit\nnew file mode 100755\n--- /dev/null\n+++ \
                 b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+{}\n",
                self.root.join("mark").display()
            ),
        )?;
        symlink(".git", repo.join("g"))?;
        fs::create_dir_all(repo.join(".git/hooks"))?;
        symlink(".git/hooks", repo.join("h"))?;
        let archive = repo.join("evil.tar").display().to_string();
        let nested = repo.join("nested").display().to_string();
        self.run("tar", &self.root, &["-cf", &archive, "-C", &nested, ".git"])
    }

    fn command(&self, program: &str, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.root.join("home"))
            .env("LC_ALL", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_CEILING_DIRECTORIES", &self.root)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn run(&self, program: &str, directory: &Path, arguments: &[&str]) -> std::io::Result<()> {
        self.command(program, directory).args(arguments).status().map(drop)
    }

    fn git(&self, directory: &Path, arguments: &[&str]) -> std::io::Result<()> {
        self.run(GIT, directory, arguments)
    }

    /// A fresh copy of the repository.
    fn fresh(&self) -> std::io::Result<PathBuf> {
        let work = self.root.join("work");
        let _ = fs::remove_dir_all(&work);
        let _ = fs::remove_file(self.root.join("marked"));
        self.run("cp", &self.root, &["-a", "template", "work"])?;
        Ok(work)
    }

    /// Whether a line, or everyday commands after it, ran the program that leaves the mark.
    fn is_marked_by(&self, line: &str, directory: &str) -> std::io::Result<bool> {
        let work = self.fresh()?;
        let mut command = self.command(BASH, &work.join(directory));
        for editor in EDITORS {
            command.env(editor, self.root.join("mark"));
        }
        let ended = command.args(["--norc", "-c", line]).status()?;
        self.succeeded.update(|count| count + usize::from(ended.success()));
        let is_marked = || self.root.join("marked").exists();
        if is_marked() {
            return Ok(true);
        }
        for everyday in [
            &["status"][..],
            &["-C", "sub", "status"],
            &["log", "-1"],
            &["commit", "-q", "--allow-empty", "-m", "x"],
            &["checkout", "-q", "-b", "everyday"],
            &["push", "-q", "origin", "HEAD:refs/heads/everyday"],
        ] {
            self.git(&work, everyday)?;
        }
        Ok(is_marked())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// Looks up what a line needs, the simple way.
fn facts(line: &crate::ShellLine, position: Position<'_>) -> FileFacts {
    let Some(asked) = questions(line, position) else { return FileFacts::default() };
    let mut paths = HashMap::new();
    let mut present = BTreeSet::new();
    for path in asked.paths {
        let above = path.ancestors().find_map(|above| Some((above, fs::canonicalize(above).ok()?)));
        let real = above.map(|(above, real)| match path.strip_prefix(above) {
            Ok(rest) if rest.as_os_str().is_empty() => real,
            Ok(rest) => real.join(rest),
            Err(_) => real,
        });
        if path.exists() {
            present.insert(path.clone());
        }
        let is_written = real.as_ref() == Some(&crate::paths::normalise(&path));
        paths.insert(path, if is_written { Real::AsWritten } else { real.map_or(Real::Unresolved, Real::Elsewhere) });
    }
    let repository = |directory: PathBuf| {
        let found = fs::canonicalize(&directory).map_or(Repository::Strange, |real| {
            let is_shaped = real.ancestors().any(|place| place.join("HEAD").exists());
            match position.workspace {
                _ if is_shaped || (real.join(".git").exists() && Some(real.as_path()) != position.workspace) => {
                    Repository::Strange
                }
                Some(workspace) if real == workspace => Repository::OwnTop,
                Some(workspace) if real.starts_with(workspace) => Repository::Own,
                _ => Repository::Strange,
            }
        });
        (directory, found)
    };
    let gathering = asked.gathering;
    let repository = |directory: PathBuf| {
        let (directory, found) = repository(directory);
        let is_gathering = gathering.contains_key(&directory);
        let nested = is_gathering && position.workspace.is_some_and(|workspace| !nested_below(workspace).is_empty());
        (directory, if nested { Repository::Nested } else { found })
    };
    let trees = asked.trees.into_iter().map(|path| (path.clone(), tree(&path))).collect();
    FileFacts::looked_up(paths, asked.directories.into_iter().map(repository).collect(), present).with_trees(trees)
}

/// Every path below a directory, links not followed.
fn entries_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_path_buf()];
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found
}

/// Nested repositories; the workspace's own is none.
fn nested_below(workspace: &Path) -> Vec<PathBuf> {
    let is_git = |path: &PathBuf| path.ends_with(".git") && *path != workspace.join(".git");
    entries_below(workspace).into_iter().filter(is_git).collect()
}

fn tree(path: &Path) -> Tree {
    let top = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut tree = Tree { is_whole: true, ..Tree::default() };
    for entry in entries_below(&top) {
        let relative = entry.strip_prefix(&top).unwrap_or(&entry);
        if relative.components().count() == 1 {
            tree.names.push(relative.to_string_lossy().into_owned());
        }
        if executed_below(relative) {
            tree.executed.get_or_insert_with(|| relative.to_path_buf());
        }
        if entry.is_symlink() {
            tree.links.push(fs::canonicalize(&entry).unwrap_or(entry));
        }
    }
    tree
}

fn is_allowed(text: &str, workspace: &Path, directory: &str) -> bool {
    let entries: Vec<(usize, ShellEntry)> =
        ALLOWED.iter().filter_map(|name| ShellEntry::parse(name).ok()).enumerate().collect();
    let cwd = workspace.join(directory);
    let cwd = if directory.is_empty() { workspace.to_path_buf() } else { cwd };
    let position = Position { cwd: &cwd, workspace: Some(workspace), home: None };
    read(text).is_ok_and(|line| {
        let covered = ShellAllowlist::compile(&entries).judge(&line, Some(workspace), &cwd);
        matches!(covered, Coverage::Covered(_)) && strays(&line, position, &facts(&line, position)).is_none()
    })
}

const VERBS: &str = "\
    status log diff show branch tag add commit push pull fetch clone checkout switch restore reset stash merge rebase \
    cherry-pick revert mv init remote config blame grep ls-files ls-tree ls-remote rev-parse rev-list describe shortlog reflog \
    worktree notes bisect archive format-patch apply am cat-file for-each-ref show-ref symbolic-ref merge-base gc fsck submodule \
    sparse-checkout update-index hash-object update-ref read-tree checkout-index bundle difftool mergetool instaweb st \
    filter-branch credential maintenance hook rerere replace fast-import interpret-trailers var help";

const WORDS: &str = "\
    -m message -F --amend --no-edit -a -f -q -n -p -i -e -x -o -O -S -c -C -u -b -t -v -- X payload ./payload a b sub sub/c \
    .git/config .git/hooks/pre-commit g/config h/pre-commit g h evil ./evil evil/ nested evil/config HEAD HEAD~1 main other origin \
    --output=h/pre-commit --output=.git/config --exec=./payload --upload-pack=./payload --receive-pack=./payload -O./payload \
    --open-files-in-pager=./payload --template=evil --separate-git-dir=evil --bare --unsafe-paths evil.patch --directory=.git \
    --gpg-sign --ext-diff --textconv --format=evil --stdin run set core.fsmonitor ./mark alias.x --edit -ccore.pager=./payload \
    core.pager=./payload --git-dir=evil --work-tree=. --exec-path=. --recurse-submodules push pop list show apply drop start \
    ext::./payload --all --tags --oneline --stat --cached --staged --soft --hard --interactive --patch --trailer x:y --annotate \
    --signed --tool=c -s --squash --fixup=HEAD --no-index --check --index --cacheinfo add foreach update init --refresh --show-signature \
    --format=%GG -L1,2:a --edit-description --set-upstream --track v1 HEAD:refs/heads/x .GIT/config ./.git/../.git/config";

const WRITERS: &[&str] = &[
    "cp X",
    "cp payload",
    "cp -r evil",
    "cp -a evil/.",
    "mv X",
    "mv payload",
    "mv evil/config",
    "cat X | tee",
    "ln -s payload",
    "ln -sf .git",
    "ln -s g",
    "tar -xf evil.tar",
    "tar -xf evil.tar -C",
    "sort X -o",
    "sort -o h/pre-commit",
    "sed -i s/a/b/",
    "install -m 755 payload",
    "echo x >",
    "cat X >",
    "cat payload >>",
    "mkdir -p",
    "touch",
    "cd",
    "mkdir x &&",
    "truncate -s 0",
];

fn hostile_line() -> impl Strategy<Value = String> {
    let word = |table: &'static str| prop::sample::select(table.split_ascii_whitespace().collect::<Vec<_>>());
    let directory = prop_oneof![6 => Just(""), 1 => Just("-C evil "), 1 => Just("-C sub "), 1 => Just("-C nested ")];
    let git = (directory, word(VERBS), prop::collection::vec(word(WORDS), 0..4))
        .prop_map(|(directory, verb, words)| format!("git {directory}{verb} {}", words.join(" ")));
    let writer = (prop::sample::select(WRITERS), prop::collection::vec(word(WORDS), 0..3))
        .prop_map(|(writer, words)| format!("{writer} {}", words.join(" ")));
    let command = prop_oneof![3 => git, 1 => writer];
    prop::collection::vec(command, 1..3).prop_map(|commands| commands.join(" && "))
}

#[test]
fn shell_3_no_allowed_line_of_git_runs_what_was_planted() -> std::io::Result<()> {
    needs(BASH);
    needs(GIT);
    let scratch = Scratch::new()?;
    let work = fs::canonicalize(scratch.fresh()?)?;
    // The traps work: without us each of these leaves the mark.
    for line in [
        "git mv -f X .git/config",
        "git -C evil status",
        "git -C nested status",
        "cp payload h/pre-commit",
        "cp X g/config",
        "tar -xf evil.tar",
        "git commit -S -m x --allow-empty",
        "git commit --allow-empty",
        "git push ./evil main",
        "git st",
        "git archive --format=evil HEAD",
        "git grep -O./payload a",
    ] {
        assert!(scratch.is_marked_by(line, "")?, "the trap for {line:?} does not work");
        scratch.fresh()?;
        assert!(!is_allowed(line, &work, ""), "{line:?} is allowed");
    }
    scratch.fresh()?;
    scratch.succeeded.set(0);
    let mut tried = 0_usize;
    for directory in ["", "sub"] {
        let allowed = |line: &str| is_allowed(line, &work, directory);
        let found = lines(&hostile_line(), line_count(45), allowed);
        assert!(found.len() >= 40, "only {} allowed lines were generated", found.len());
        tried += found.len();
        for line in found {
            assert!(!scratch.is_marked_by(&line, directory)?, "{line:?} in {directory:?} ran what was planted");
            scratch.fresh()?;
        }
    }
    let succeeded = scratch.succeeded.get();
    assert!(succeeded * 9 >= tried, "only {succeeded} of {tried} lines did what they say");
    Ok(())
}

/// Steps that every chain begins with: a directory shaped like git's, under a harmless name.
const SHAPING: &[&str] = &[
    "mkdir -p git/objects git/refs git/hooks m sub/m",
    "echo 1111111111111111111111111111111111111111 > git/HEAD",
    "echo '[core]' > git/config",
    "echo 'repositoryformatversion = 0' >> git/config",
    "echo 'bare = false' >> git/config",
    "echo 'worktree = ..' >> git/config",
    "echo 'fsmonitor = MARK' >> git/config",
];

/// Ways by which it becomes a repository that git enters. Each step runs only if it is allowed.
const CHAINS: &[&[&str]] = &[
    &["tar cf o.tar --transform 's/^git/m\\/.&/' git", "tar xf o.tar -C sub", "git add sub/m", "git status"],
    &["tar cf o.tar --xform=s,^git,m/.git, git", "tar xf o.tar -C sub", "git add -A", "git status"],
    &["mv git sub/m/.git", "git add sub/m", "git status"],
    &["cp -r git sub/m/.git", "git add sub/m", "git status"],
    &["mv git .git", "git status"],
    &["cp -r git/. sub/m", "git -C sub/m status"],
    &["mkdir w", "mv git w/x", "mv w/x w/.git", "git add w", "git status"],
    &["echo 'gitdir: ../../git' > .gi", "sed -it s/a/b/ .gi", "mv .git sub/m/", "git add sub/m", "git status"],
    &["cd sub/m && echo 'gitdir: ../../git' > .gi && sed -it s/a/b/ .gi", "git add sub/m", "git status"],
    &["echo 'gitdir: ../../git' > sub/m/.gi", "cp -b -S t sub/m/.gi sub/m/x", "git add sub/m", "git status"],
    &["echo 'gitdir: ../../git' > sub/m/.git.x", "gzip sub/m/.git.x", "gzip -d sub/m/.git.x.gz", "git status"],
    &[
        "echo 'gitdir: ../../git' > sub/m/x",
        "gzip -c sub/m/x > sub/m/.git.gz",
        "gzip -d sub/m/.git.gz",
        "git add sub/m",
    ],
    &["git add nested", "git status"],
    &["git add -A && git status"],
    &["git add .", "git commit -m x", "git status"],
    &["git add nes*", "git status"],
    &["cp -r nested q", "git add q", "git status"],
    &["cp -r nested/. q", "git -C q status"],
    &["tar cf n.tar nested", "tar xf n.tar -C sub", "git add sub/nested", "git status"],
    &["mkdir dst", "ln -s ../.git/config dst/X", "cp X dst/", "git status"],
    &["cp X g/", "git status"],
    &["cp payload h/", "mv h/payload h/pre-commit", "git commit -m x --allow-empty"],
    &["mkdir t", "cp payload t/pre-commit", "cp -r t/. h", "git commit -m x --allow-empty"],
    &["echo 'hooks' > list", "tar cf x.tar -T list", "git status"],
];

#[test]
fn shell_3_no_chain_of_allowed_lines_runs_what_was_planted() -> std::io::Result<()> {
    needs(BASH);
    needs(GIT);
    let scratch = Scratch::new()?;
    let mark = scratch.root.join("mark").display().to_string();
    let mut ran = 0_usize;
    for (at, chain) in CHAINS.iter().enumerate() {
        let work = fs::canonicalize(scratch.fresh()?)?;
        for line in SHAPING.iter().chain(*chain) {
            let line = line.replace("MARK", &mark);
            if is_allowed(&line, &work, "") {
                scratch.command(BASH, &work).args(["--norc", "-c", &line]).status()?;
                ran += usize::from(chain.contains(&line.as_str()));
            } else {
                assert!(!SHAPING.contains(&line.as_str()), "{line:?} is held, so the chain shows nothing");
            }
        }
        scratch.git(&work, &["status"])?;
        scratch.git(&work, &["commit", "-q", "--allow-empty", "-m", "x"])?;
        assert!(!scratch.root.join("marked").exists(), "chain {at} ran what was planted: {chain:?}");
    }
    // Were every step held, nothing would be shown.
    let steps = CHAINS.iter().map(|chain| chain.len()).sum::<usize>();
    assert!(ran * 3 >= steps && ran < steps, "{ran} of {steps} steps ran");
    Ok(())
}

#[test]
fn shell_3_the_chains_would_run_it_without_us() -> std::io::Result<()> {
    needs(BASH);
    needs(GIT);
    let scratch = Scratch::new()?;
    let mark = scratch.root.join("mark").display().to_string();
    const WORKING: [usize; 8] = [0, 1, 2, 3, 8, 12, 19, 22];
    let chains: Vec<_> = CHAINS.iter().enumerate().filter(|(at, _)| WORKING.contains(at)).collect();
    assert_eq!(chains.len(), WORKING.len(), "a chain is missing");
    for (at, chain) in chains {
        let work = fs::canonicalize(scratch.fresh()?)?;
        for line in SHAPING.iter().chain(*chain) {
            scratch.command(BASH, &work).args(["--norc", "-c", &line.replace("MARK", &mark)]).status()?;
        }
        scratch.git(&work, &["commit", "-q", "--allow-empty", "-m", "x"])?;
        assert!(scratch.root.join("marked").exists(), "chain {at} shows nothing: {chain:?}");
    }
    Ok(())
}

#[test]
fn shell_3_everyday_lines_of_the_table_run_nothing_planted() -> std::io::Result<()> {
    needs(BASH);
    needs(GIT);
    let scratch = Scratch::new()?;
    let everyday = include_str!("commands.txt").lines().filter_map(|row| row.strip_prefix("allow "));
    // No other machine is asked.
    let is_local = |line: &&str| line.starts_with("git ") && !line.contains("://") && !line.contains('@');
    // `git add -A` is held here, because of the nested repository.
    let work = fs::canonicalize(scratch.fresh()?)?;
    let (lines, left_out): (Vec<&str>, Vec<&str>) =
        everyday.map(str::trim).filter(is_local).partition(|line| is_allowed(line, &work, ""));
    assert!(lines.len() >= 60, "only {} lines", lines.len());
    assert!(left_out.len() * 9 <= lines.len(), "left out: {left_out:#?}");
    let tried = lines.len();
    for line in lines {
        assert!(!scratch.is_marked_by(line, "")?, "{line:?} ran what was planted");
    }
    let succeeded = scratch.succeeded.get();
    assert!(succeeded * 2 >= tried, "only {succeeded} of {tried} lines did what they say");
    Ok(())
}

/// Which word is the repository depends on which options take the next word. Git says of an option that it does not know
/// unless the one before has taken it for its value.
#[test]
fn shell_3_git_takes_values_where_we_do() -> std::io::Result<()> {
    needs(GIT);
    let scratch = Scratch::new()?;
    let repo = scratch.root.join("template");
    let options = options_before_repositories();
    assert!(options.len() > 100, "{}", options.len());
    let mut different = Vec::new();
    let (all, mut compared) = (options.len(), 0_usize);
    for (verb, option, takes_value) in options {
        let ran =
            scratch.command(GIT, &repo).args([verb, &option, "--no-such-option"]).stderr(Stdio::piped()).output()?;
        let said = String::from_utf8_lossy(&ran.stderr);
        // Git refuses an option that only a relative of this subcommand has.
        let name = option.trim_start_matches('-');
        if said.contains(&format!("unknown option `{name}'")) || said.contains(&format!("unknown switch `{name}'")) {
            continue;
        }
        compared += 1;
        let was_taken =
            !said.contains("unknown option `no-such-option'") && !said.contains("unknown option `such-option'");
        if was_taken != takes_value {
            different.push(format!("git {verb} {option}: {}", said.lines().next().unwrap_or_default()));
        }
    }
    assert!(compared * 2 >= all, "git knows only {compared} of {all} options");
    assert!(different.is_empty(), "{different:#?}");
    Ok(())
}
