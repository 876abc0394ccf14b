//! Command lines and tool calls judged with what the disk says: links, hard links, repositories of git.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Call, Caller, Decision, Door, Layer, Operation, Origin, Reason};
use toolwarden_policy::input::RuleFile;
use toolwarden_policy::{PolicySet, Transport, decide, shipped};
use toolwarden_sources::lookup;

use crate::home::{Home, Outcome};

/// Entries for everything these lines use.
const ENTRIES: &str = r#"{"terminalAllowlist": ["git", "ls", "cat", "echo", "cp", "tee", "mkdir", "cd", "sed", "tar", "grep", "mv", "head", "diff", "rg", "find"]}"#;

pub struct Judge {
    home: Home,
    policy: PolicySet,
}

impl Judge {
    pub fn new(home: Home) -> Result<Self, Box<dyn std::error::Error>> {
        let mut input = home.load()?.input;
        input.base.rules.push(RuleFile {
            origin: Origin::new(Layer::Shipped, shipped::RULES_SOURCE, 1, 1),
            text: shipped::RULES.to_owned(),
        });
        let policy = PolicySet::compile(&input).map_err(|refused| format!("{refused:?}"))?;
        Ok(Self { home, policy })
    }

    pub fn judged(&self, call: Call) -> (Decision, Reason) {
        let caller = Arc::new(Caller::local_person("me"));
        let transport = Transport::new(Door::Explain, Some(self.home.path("work")));
        let query = transport.query(caller, call, Timestamp::UNIX_EPOCH);
        let files = lookup::files(&self.policy, &query);
        let query = query.with_files(files);
        let verdict = decide(&self.policy, &query);
        (verdict.explanation().decision, verdict.explanation().reason)
    }

    pub fn line(&self, text: &str) -> (Decision, Reason) {
        self.judged(Call::shell(text, None))
    }

    fn line_in(&self, directory: &str, text: &str) -> Decision {
        self.judged(Call::shell(text, Some(PathBuf::from(directory)))).0
    }
}

pub fn home() -> Result<Home, Box<dyn std::error::Error>> {
    let home = Home::new()?;
    home.write("home/.cursor/permissions.json", ENTRIES)?;
    home.write("config/master.key", "key")?;
    home.write("data/store.db", "data")?;
    home.write("work/notes.txt", "notes")?;
    fs::create_dir_all(home.path("work/sub"))?;
    Ok(home)
}

#[test]
fn self_1_links_on_the_disk_are_followed_when_a_line_is_judged() -> Outcome {
    let home = home()?;
    let permissions = home.path("home/.cursor/permissions.json");
    symlink(&permissions, home.path("work/l"))?;
    symlink("l", home.path("work/second"))?;
    symlink(home.path("home/.cursor"), home.path("work/d"))?;
    symlink(home.path("home/.cursor/new.json"), home.path("work/dangling"))?;
    symlink(home.path("config/master.key"), home.path("work/k"))?;
    symlink("loop", home.path("work/loop"))?;
    symlink(home.path("home"), home.path("work/sub/up"))?;
    for directory in ["tree", "out/tree"] {
        fs::create_dir_all(home.path("work").join(directory))?;
    }
    for name in ["hard", "sub/hard", "out/tree/hard"] {
        fs::hard_link(&permissions, home.path("work").join(name))?;
    }
    symlink("hard", home.path("work/linked"))?;
    let judge = Judge::new(home)?;
    for text in [
        "echo x > l",
        "echo x >| second",
        "cat > l <<EOF\n{}\nEOF",
        "cp notes.txt l",
        "cp notes.txt d/permissions.json",
        "cp notes.txt sub/up/.cursor/permissions.json",
        "cp notes.txt sub/up/../home/.cursor/permissions.json",
        "sed -i s/a/b/ second",
        "echo x > hard",
        "tee hard",
        "echo x > loop",
        "tee l*",
        "tee har*",
        "tee su*/har*",
        "tee lin*",
        "cp -r tree out",
        "tee sub/u*/.cursor/permissions.json",
        "cd d && cp ../notes.txt permissions.json",
        "cat k",
        "cat < k",
        "grep -r x sub/up/../data",
    ] {
        assert_eq!(judge.line(text), (Decision::Hold, Reason::SelfProtection), "{text}");
    }
    for text in
        ["echo x > notes.txt", "cp notes.txt sub/other.txt", "mkdir -p x", "cat notes.txt", "sed -n 1,20p notes.txt"]
    {
        assert_eq!(judge.line(text).0, Decision::Allow, "{text}");
    }
    let writes = |path: &str| {
        let document = Document::parse(format!("{{\"path\": {path:?}}}"), Limits::DEFAULT).ok().map(Arc::new);
        judge.judged(Call::mcp("files", "write", document)).1
    };
    for path in ["l", "./second", "d/permissions.json", "sub/up/.cursor/permissions.json", "hard"] {
        assert_eq!(writes(path), Reason::SelfProtection, "{path}");
    }
    assert_ne!(writes("notes.txt"), Reason::SelfProtection);
    Ok(())
}

#[test]
fn self_1_keys_and_data_on_the_disk_are_not_read() -> Outcome {
    let home = home()?;
    home.write("config/toolwarden.toml", "[vault]\nkey = \"file:../elsewhere/own.key\"\n")?;
    let base = home.base();
    let judge = Judge::new(home)?;
    for path in ["config/master.key", "data/store.db", "data", "elsewhere/own.key"] {
        let path = base.join(path);
        for line in
            [format!("cat {}", path.display()), format!("cat < {}", path.display()), format!("cp {} x", path.display())]
        {
            assert_eq!(judge.line(&line), (Decision::Hold, Reason::SelfProtection), "{line}");
        }
        let uri = format!("{{\"uri\": \"file://{}\"}}", path.display());
        let document = Document::parse(uri.as_str(), Limits::DEFAULT).ok().map(Arc::new);
        let read = judge.judged(Call::operation("files", Operation::ReadResource, document));
        assert_eq!(read.1, Reason::SelfProtection, "{uri}");
    }
    let config = base.join("config/toolwarden.toml");
    assert_eq!(judge.line(&format!("cat {}", config.display())).0, Decision::Allow);
    // Words that a loop makes of its values, also of what a command prints.
    let key = base.join("config/master.key");
    for value in [format!("'x {}'", key.display()), format!("$(echo {})", key.display()), key.display().to_string()] {
        let line = format!("for f in {value}; do cat $f; done");
        assert_eq!(judge.line(&line).1, Reason::SelfProtection, "{line}");
    }
    for values in ["$(seq 3)", "`seq 3`", "'a b' c", "$(ls | head -3)", "$(git diff --name-only HEAD)"] {
        let line = format!("for f in {values}; do echo $f; done");
        assert_ne!(judge.line(&line).1, Reason::SelfProtection, "{line}");
    }
    Ok(())
}

/// A directory shaped like git's own.
pub fn shape(directory: &Path, config: &str) -> Result<(), std::io::Error> {
    for name in ["objects", "refs", "hooks"] {
        fs::create_dir_all(directory.join(name))?;
    }
    fs::write(directory.join("HEAD"), "ref: refs/heads/main\n")?;
    fs::write(directory.join("config"), config)
}

const HARMLESS: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n[remote \"origin\"]\n\turl = \
                        https://example.com/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n";

#[test]
fn shell_3_git_runs_only_where_nothing_strange_is_found() -> Outcome {
    let home = home()?;
    let work = home.path("work");
    // The workspace's own may say what it likes.
    shape(&work.join(".git"), "[core]\n\thooksPath = .husky\n[alias]\n\tx = !x\n")?;
    shape(&work.join("vendor/evil"), "[core]\n\tfsmonitor = evil\n")?;
    shape(&work.join("bare"), HARMLESS)?;
    shape(&work.join("plain/.git"), HARMLESS)?;
    shape(&work.join("hooked/.git"), HARMLESS)?;
    fs::write(work.join("hooked/.git/hooks/pre-commit"), "")?;
    for (name, text) in [
        ("monitor", "[core]\n\tfsmonitor = evil\n"),
        ("include", "[include]\n\tpath = evil\n"),
        ("alias", "[alias]\n\tstatus = !evil\n"),
        ("local", "[remote \"origin\"]\n\turl = ../evil\n"),
        ("ext", "[remote \"origin\"]\n\turl = ext::evil\n"),
        ("odd", "[core]\n\tfilemode = true \\\n\tfsmonitor = evil\n"),
        ("oneline", "[core] fsmonitor = evil\n"),
        ("worktree", "[core]\n\tworktree = ..\n"),
        // Several headers and a key in one line, and a branch whose remote is a directory.
        ("headers", "[remote \"a\"] [core] fsmonitor = evil # \"]\n"),
        ("branch", "[branch \"master\"]\n\tremote = ../evil\n\tmerge = refs/heads/master\n"),
        ("named", "[branch \"master\"]\n\tremote = evil\n\tmerge = refs/heads/master\n"),
        ("bare-remote", "[remote \"evil\"]\n\tprune = true\n[branch \"master\"]\n\tremote = evil\n"),
    ] {
        shape(&work.join("strange").join(name).join(".git"), &format!("{HARMLESS}{text}"))?;
    }
    fs::create_dir_all(work.join("file"))?;
    fs::write(work.join("file/.git"), "gitdir: ../vendor/evil\n")?;
    fs::create_dir_all(work.join("module"))?;
    shape(
        &work.join(".git/modules/module"),
        &HARMLESS.replace("bare = false", "bare = false\n\tworktree = ../../../module"),
    )?;
    fs::write(work.join("module/.git"), "gitdir: ../.git/modules/module\n")?;
    symlink("vendor/evil", work.join("link"))?;
    symlink(".git", work.join("g"))?;
    let judge = Judge::new(home)?;
    let strange = [
        "vendor/evil",
        "vendor/evil/objects",
        "bare",
        "hooked",
        "file",
        "link",
        "missing",
        "strange/monitor",
        "strange/include",
        "strange/alias",
        "strange/local",
        "strange/ext",
        "strange/odd",
        "strange/oneline",
        "strange/worktree",
    ];
    for directory in strange {
        for line in [format!("git -C {directory} status"), format!("cd {directory} && git status")] {
            assert_eq!(judge.line(&line).0, Decision::Hold, "{line}");
        }
        assert_eq!(judge.line_in(directory, "git status"), Decision::Hold, "{directory}");
    }
    for line in [
        "git push bare main",
        "git fetch vendor/evil",
        "git fetch plain",
        "git mv notes.txt g/config",
        "cp notes.txt g/config",
        "echo x > g/hooks/pre-commit",
        "cp notes.txt sub/HEAD && git -C sub status",
        "git add -A",
        "git add strange && git status",
    ] {
        assert_eq!(judge.line(line).0, Decision::Hold, "{line}");
    }
    for directory in ["", "sub", "plain", "module", "vendor"] {
        assert_eq!(judge.line_in(directory, "git status"), Decision::Allow, "{directory}");
        assert_eq!(judge.line_in(directory, "git push origin main"), Decision::Allow, "{directory}");
    }
    for line in [
        "git -C sub log",
        "cd sub && git diff",
        "git -C plain status",
        "git add sub && git commit -m x && git push",
        "git fetch",
    ] {
        assert_eq!(judge.line(line).0, Decision::Allow, "{line}");
    }
    Ok(())
}

#[test]
fn self_1_links_below_directories_and_behind_patterns_are_followed() -> Outcome {
    let home = home()?;
    let work = home.path("work");
    for directory in ["dst", "out/tree", "tree", "deep/a/b", "keys"] {
        fs::create_dir_all(work.join(directory))?;
    }
    fs::write(work.join("tree/x"), "x")?;
    symlink(home.path("config/master.key"), work.join("sub/k"))?;
    symlink(home.path("config/master.key"), work.join("deep/a/b/k"))?;
    symlink(home.path("home/.cursor/permissions.json"), work.join("dst/notes.txt"))?;
    symlink(home.path("home/.cursor/permissions.json"), work.join("out/tree/x"))?;
    symlink(home.path("data"), work.join("keys/d"))?;
    let judge = Judge::new(home)?;
    for text in [
        "cat sub/?",
        "cat sub/*",
        "cat sub/[k]",
        "cat s*/k",
        "cat */k",
        "head -c 9 sub/*",
        "grep -R '' sub",
        "grep -nR x deep",
        "grep --dereference-rec x deep",
        "grep --dereference-recursive x .",
        "cp -rL sub q",
        "cp -LR deep q",
        "cp --dereference -r deep q",
        "cp sub/* q",
        "tar -chf q.tar sub",
        "tar chf q.tar deep",
        "tar -C deep -chf q.tar a",
        "tar --dereference -cf q.tar deep",
        "diff -r sub deep",
        "diff -ru deep sub",
        "rg -L x deep",
        "rg --follow x",
        "cat keys/*/store.db",
        "cp notes.txt dst/",
        "cp notes.txt dst",
        "cp -t dst notes.txt",
        "cp *.txt dst",
        "mv notes.txt dst",
        "cp -r tree out",
        "cp -r tree/. out/tree",
        "sed -n p sub/*",
        "cat /proc/self/environ",
        "cat /proc/1/environ",
    ] {
        assert_eq!(judge.line(text), (Decision::Hold, Reason::SelfProtection), "{text}");
    }
    for text in ["grep -r x sub", "cp -r tree q", "cp notes.txt out", "cat *.txt", "ls sub", "tar -cf q.tar tree"] {
        assert_eq!(judge.line(text).0, Decision::Allow, "{text}");
    }
    Ok(())
}

#[test]
fn shell_3_writers_follow_links_and_trees_on_the_disk() -> Outcome {
    let home = home()?;
    let work = home.path("work");
    let outside = home.path("outside");
    shape(&work.join(".git"), "[core]\n")?;
    for directory in ["dst", "out/tree", "tree", "hidden/.vscode", "scripts/.bin", "deep/src", "node", "project/.git"] {
        fs::create_dir_all(work.join(directory))?;
    }
    fs::create_dir_all(&outside)?;
    fs::write(work.join("tree/x"), "x")?;
    symlink("../.git/config", work.join("dst/notes.txt"))?;
    symlink("../../.git/hooks", work.join("out/tree/d"))?;
    symlink(&outside, work.join("dst/o"))?;
    symlink("../notes.txt", work.join("deep/inside.txt"))?;
    let judge = Judge::new(home)?;
    for text in [
        "cp notes.txt dst/",
        "cp notes.txt dst",
        "cp *.txt dst",
        "cp notes.txt dst/o/x",
        "cp -r tree out",
        "cp -r tree/. out/tree",
        "cp -r hidden q",
        "cp -r hidden/. .",
        "cp -r project q",
        "cp -r scripts node_modules",
        "mv scripts node_modules",
        "cp -r scripts/.bin node_modules",
        "cd dst && cp ../notes.txt .",
        "sed -i s/a/b/ dst/*",
        "tee dst/no*",
        "cp notes.txt /usr/local/bin/git",
        "tee ~/bin/git",
        "sed -i s/a/b/ /usr/bin/git",
        "tar -cf dst/notes.txt tree",
        "tar -xf a.tar -C sub",
        "mkdir -p /tmp/x",
    ] {
        assert_eq!(judge.line(text).0, Decision::Hold, "{text}");
    }
    for text in [
        "cp notes.txt tree/",
        "cp notes.txt deep/inside.txt",
        "cp -r tree q",
        "cp -r tree/. q",
        "cp -r tree .",
        "mkdir -p a/b/c",
        "tee notes.txt",
        "sed -i 's/foo/bar/g' tree/*",
        "cd tree && cp x y",
        "tar -czf out.tar.gz --exclude=.git .",
        "find . -name '*.rs'",
        "grep -rn x .",
    ] {
        assert_eq!(judge.line(text).0, Decision::Allow, "{text}");
    }
    Ok(())
}

#[test]
fn self_1_links_among_the_arguments_of_a_tool_are_followed_in_every_form() -> Outcome {
    let home = home()?;
    let work = home.path("work");
    fs::create_dir_all(work.join("a/b"))?;
    symlink(home.path("config/master.key"), work.join("sub/k"))?;
    symlink(home.path("config/master.key"), work.join("a/b/k"))?;
    symlink("/proc", work.join("proc"))?;
    let judge = Judge::new(home)?;
    let reason = |arguments: &str| {
        let document = Document::parse(arguments, Limits::DEFAULT).ok().map(Arc::new);
        assert!(document.is_some(), "{arguments}");
        judge.judged(Call::mcp("files", "read", document)).1
    };
    for arguments in [
        r#"{"command": "cat sub/k"}"#,
        r#"{"command": "cat 'sub/k' | head"}"#,
        r#"{"command": "cd sub && cat k"}"#,
        r#"{"command": "cat sub/?"}"#,
        r#"{"command": "cat su''b/k"}"#,
        r#"{"command": "cat s\\ub/k"}"#,
        r#"{"command": "cat {sub,x}/k"}"#,
        r#"{"command": "x=sub/k; cat $x"}"#,
        r#"{"command": ["cat", "sub/k"]}"#,
        r#"{"path": "sub%2Fk"}"#,
        r#"{"path": "sub%252Fk"}"#,
        r#"{"path": "%73ub/k"}"#,
        r#"{"arguments": "{\"path\": \"sub\\u002fk\"}"}"#,
        r#"{"path": "sub\\x2fk"}"#,
        r#"{"path": "proc/1/environ"}"#,
        r#"{"uri": "file:sub/k"}"#,
        r#"{"dir": "sub", "name": "k"}"#,
        r#"{"name": "k", "dir": "./sub/"}"#,
        r#"{"dir": "sub", "names": ["x", "k"]}"#,
        r#"{"where": {"dir": "sub"}, "what": {"name": "k"}}"#,
        r#"{"root": "a", "dir": "b", "name": "k"}"#,
        r#"{"cwd": "sub", "command": "cat k"}"#,
        r#"{"cwd": "a/b", "command": "cat ./k"}"#,
        r#"{"files": {"sub/k": "{..}"}}"#,
        r#"{"sub": {"k": "x"}}"#,
        r#"{"sub%2fk": 1, "list": [{"other": 1}]}"#,
        r#"{"rows": [{"a/b": 1}, {"k": 2}]}"#,
    ] {
        assert_eq!(reason(arguments), Reason::SelfProtection, "{arguments}");
    }
    // What is given up is held: a line that changes to many directories, one that cannot be read, a long one, a pattern
    // whose matches could become options.
    fs::create_dir_all(judge.home.path("work/odd"))?;
    fs::write(judge.home.path("work/odd/-a"), "x")?;
    let padded = format!("cd sub; cat k # {}", "x".repeat(5_000));
    for line in ["cd sub; cat k; cd a; cd b; cd c", "cd sub; cat k; echo 'open", &padded, "cat odd/*"] {
        let arguments = format!("{{\"command\": {line:?}}}");
        assert_eq!(reason(&arguments), Reason::SelfProtection, "{line}");
    }
    for arguments in [
        r#"{"dir": "sub", "name": "x"}"#,
        r#"{"command": "ls sub"}"#,
        r#"{"text": "a sub is not a k"}"#,
        r#"{"path": "notes.txt"}"#,
    ] {
        assert_ne!(reason(arguments), Reason::SelfProtection, "{arguments}");
    }
    let long = format!("{{\"text\": {:?}}}", "word and more ".repeat(4_000));
    assert_ne!(reason(&long), Reason::SelfProtection);
    // Words that are no files cost little, so a large table is not held for its size.
    let table: Vec<String> = (0..15_000).map(|number| format!("w{number}")).collect();
    assert_ne!(reason(&format!("{{\"list\": {table:?}}}")), Reason::SelfProtection);
    let many: Vec<String> = (0..30_000).map(|number| format!("w{number}")).collect();
    assert_eq!(reason(&format!("{{\"list\": {many:?}}}")), Reason::SelfProtection);
    Ok(())
}
