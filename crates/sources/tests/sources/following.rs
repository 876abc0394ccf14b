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
const ENTRIES: &str =
    r#"{"terminalAllowlist": ["git", "ls", "cat", "echo", "cp", "tee", "mkdir", "cd", "sed", "tar", "grep"]}"#;

struct Judge {
    home: Home,
    policy: PolicySet,
}

impl Judge {
    fn new(home: Home) -> Result<Self, Box<dyn std::error::Error>> {
        let mut input = home.load()?.input;
        input.base.rules.push(RuleFile {
            origin: Origin::new(Layer::Shipped, shipped::RULES_SOURCE, 1, 1),
            text: shipped::RULES.to_owned(),
        });
        let policy = PolicySet::compile(&input).map_err(|refused| format!("{refused:?}"))?;
        Ok(Self { home, policy })
    }

    fn judged(&self, call: Call) -> (Decision, Reason) {
        let caller = Arc::new(Caller::local_person("me"));
        let transport = Transport::new(Door::Explain, Some(self.home.path("work")));
        let query = transport.query(caller, call, Timestamp::UNIX_EPOCH);
        let files = lookup::files(&self.policy, &query);
        let query = query.with_files(files);
        let verdict = decide(&self.policy, &query);
        (verdict.explanation().decision, verdict.explanation().reason)
    }

    fn line(&self, text: &str) -> (Decision, Reason) {
        self.judged(Call::shell(text, None))
    }

    fn line_in(&self, directory: &str, text: &str) -> Decision {
        self.judged(Call::shell(text, Some(PathBuf::from(directory)))).0
    }
}

fn home() -> Result<Home, Box<dyn std::error::Error>> {
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
    fs::hard_link(&permissions, home.path("work/hard"))?;
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
    Ok(())
}

/// A directory shaped like git's own.
fn shape(directory: &Path, config: &str) -> Result<(), std::io::Error> {
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
        "git add -A && git commit -m x && git push",
        "git fetch",
    ] {
        assert_eq!(judge.line(line).0, Decision::Allow, "{line}");
    }
    Ok(())
}
