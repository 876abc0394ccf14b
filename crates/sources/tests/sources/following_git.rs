//! Command lines of git, judged with what the disk says of its state, its index and its configuration.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use toolwarden_core::Decision;

use crate::following::{Judge, home, shape};
use crate::home::Outcome;

/// Runs git in a directory, without any configuration of the machine.
fn git(directory: &Path, arguments: &[&str]) -> Result<(), std::io::Error> {
    let mut command = std::process::Command::new("git");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").current_dir(directory);
    let names = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "advice.addEmbeddedRepo=false"];
    let done = command.args(names).args(arguments).stdout(std::process::Stdio::null()).status()?;
    assert!(done.success(), "git {arguments:?}");
    Ok(())
}

#[test]
fn shell_3_git_never_enters_a_strange_nested_repository() -> Outcome {
    const EVERYDAY: [&str; 6] =
        ["git status", "git diff", "git commit -am x", "git add notes.txt", "git log", "git -C sub status"];
    for version in ["2", "3", "4", "split", "sha256"] {
        let home = home()?;
        let work = home.path("work");
        let format = if version == "sha256" { "--object-format=sha256" } else { "--object-format=sha1" };
        git(&work, &["init", "-q", format])?;
        for name in ["plain", "evil"] {
            let inner = work.join("vendor").join(name);
            fs::create_dir_all(&inner)?;
            git(&inner, &["init", "-q", "--template=", format])?;
            fs::write(inner.join("f"), "f")?;
            git(&inner, &["add", "f"])?;
            git(&inner, &["commit", "-qm", "f"])?;
        }
        for name in 0..40 {
            fs::write(work.join(format!("sub/file-{name}")), "x")?;
        }
        git(&work, &["add", "sub", "notes.txt"])?;
        match version {
            "3" => {
                fs::write(work.join("extra"), "x")?;
                git(&work, &["add", "-N", "extra"])?;
            }
            "4" => git(&work, &["update-index", "--index-version", "4"])?,
            "split" => git(&work, &["update-index", "--split-index"])?,
            _ => {}
        }
        let judge = Judge::new(home)?;
        let is_allowed = |line: &str| judge.line(line).0 == Decision::Allow;
        for line in EVERYDAY {
            assert!(is_allowed(line), "{version}: {line} before");
        }
        git(&work, &["add", "vendor/plain"])?;
        for line in EVERYDAY {
            assert!(is_allowed(line), "{version}: {line} with a plain one");
        }
        assert!(is_allowed("git add -A && git commit -m x"), "{version}");
        git(&work.join("vendor/evil"), &["config", "core.fsmonitor", "evil"])?;
        for line in ["git add vendor/evil", "git add .", "git add -A", "git add -A && git commit -m x", "git add 'v*'"]
        {
            assert!(!is_allowed(line), "{version}: {line}");
        }
        assert!(is_allowed("git add notes.txt && git commit -m x"), "{version}");
        git(&work, &["add", "vendor/evil"])?;
        for line in EVERYDAY {
            assert!(!is_allowed(line), "{version}: {line} with a strange one");
        }
        assert!(judge.line("ls").0 == Decision::Allow);
    }
    Ok(())
}

#[test]
fn shell_3_an_index_that_cannot_be_read_holds_git() -> Outcome {
    let home = home()?;
    let work = home.path("work");
    git(&work, &["init", "-q"])?;
    git(&work, &["add", "notes.txt"])?;
    let index = work.join(".git/index");
    let whole = fs::read(&index)?;
    let judge = Judge::new(home)?;
    assert_eq!(judge.line("git status").0, Decision::Allow);
    let mut cut = whole.clone();
    cut.truncate(whole.len().saturating_sub(30));
    for odd in [b"DIRC".to_vec(), cut, b"other".to_vec(), [&b"DIRC\0\0\0\x09\0\0\0\0"[..], &[0; 20]].concat()] {
        fs::write(&index, odd)?;
        assert_eq!(judge.line("git status").0, Decision::Hold);
    }
    Ok(())
}

#[test]
fn shell_3_what_the_own_configuration_of_git_names_is_not_written() -> Outcome {
    let home = home()?;
    let work = home.path("work");
    let config = "[core]\n\thooksPath = myhooks ; where ours are\n[include]\n\tpath = ../extra.cfg # more\n[includeIf \"gitdir:~/x/\"] path = \"~/more.cfg\"\n\
                  [filter \"x\"]\n\tclean = python tools/clean.py %f\n[alias]\n\tgo = !sh ./scripts/a.sh\n\tlater = \"!scripts/none.sh\"\n\tlast = !later/y\n\
                  [user]\n\tname = notes.txt\n[remote \"origin\"]\n\turl = tree/x\n";
    shape(&work.join(".git"), config)?;
    home.write("work/extra.cfg", "[diff \"y\"]\n\tcommand = tools/diff.sh\n")?;
    home.write("home/.gitconfig", "[credential]\n\thelper = !tools/helper\n")?;
    for file in
        ["tools/clean.py", "tools/diff.sh", "tools/helper", "tools/other.py", "scripts/a.sh", "tree/x", "other/y"]
    {
        home.write(&format!("work/{file}"), "x")?;
    }
    symlink("tools/clean.py", work.join("link"))?;
    symlink(home.path("data"), work.join("out"))?;
    let judge = Judge::new(home)?;
    for text in [
        "cp notes.txt myhooks/pre-commit",
        "mkdir -p myhooks/pre-commit",
        "echo x > myhooks/pre-commit",
        "echo x > extra.cfg",
        "echo x >> ./tools/../extra.cfg",
        "sed -i s/a/b/ tools/clean.py",
        "tee tools/diff.sh",
        "tee scripts/a.sh",
        "tee scripts/none.sh",
        "cp notes.txt tools/helper",
        "cp notes.txt link",
        "echo x > link",
        "mv notes.txt scripts/a.sh",
        "mv other later",
        "cp -r other later",
        "cp -r other/. tools",
        "cd tools && cp ../notes.txt clean.py",
        "git mv notes.txt tools/clean.py",
        "git mv -f scripts s2",
        "git mv notes.txt out/notes.txt",
    ] {
        assert_eq!(judge.line(text).0, Decision::Hold, "{text}");
    }
    for text in [
        "cat tools/clean.py",
        "cp tools/clean.py tools/copy.py",
        "cp notes.txt tools/other.py",
        "cp -r other .",
        "cp -r other tools",
        "sed -i s/a/b/ notes.txt tree/x",
        "echo x > notes.txt",
        "git add tools/clean.py extra.cfg",
        "git mv notes.txt tree/notes.txt",
        "git status",
    ] {
        assert_eq!(judge.line(text).0, Decision::Allow, "{text}");
    }
    Ok(())
}

#[test]
fn shell_3_a_state_directory_elsewhere_is_gits_own() -> Outcome {
    let home = home()?;
    let work = home.path("work");
    shape(&work.join("state"), "[core]\n")?;
    fs::write(work.join(".git"), "gitdir: state\n")?;
    let judge = Judge::new(home)?;
    for text in
        ["cp notes.txt state/config", "echo x > state/hooks/pre-commit", "tee state/info/attributes", "mv state s2"]
    {
        assert_eq!(judge.line(text).0, Decision::Hold, "{text}");
    }
    assert_eq!(judge.line("cp notes.txt copy.txt").0, Decision::Allow);
    // One that cannot be read holds every writer.
    fs::write(work.join(".git"), "nonsense\n")?;
    assert_eq!(judge.line("cp notes.txt copy.txt").0, Decision::Hold);
    Ok(())
}
