//! Compares with a real bash, an oracle nobody here wrote.
//! Generated lines that we can read must parse in bash; lines that we allow are really run, with a `PATH`
//! of stubs that record their names, and nothing may run that we did not report.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::{Just, Strategy, prop, prop_oneof};
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::property_tests::{tidy_line, wild_line};
use crate::{BlockedMatch, Blocklist, Coverage, ShellAllowlist, ShellEntry, ShellLine, read};

pub(super) const BASH: &str = "/bin/bash";
const ALLOWED: [&str; 3] = ["alpha", "beta", "gamma"];

/// Set while compiling, asks for more lines, and different ones on each run.
const MORE_LINES: Option<&str> = option_env!("TOOLWARDEN_BASH_LINES");

/// Fails where a program is missing that these tests run.
pub(super) fn needs(program: &str) {
    let version = Command::new(program).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status();
    assert!(version.is_ok_and(|status| status.success()), "{program} is needed (tests/peers/install)");
}

/// How many generated lines are shown to bash.
pub(super) fn line_count(usual: usize) -> usize {
    MORE_LINES.and_then(|count| count.parse().ok()).unwrap_or(usual)
}

/// Different lines on each run when more were asked for, the same ones otherwise.
fn runner() -> TestRunner {
    if MORE_LINES.is_some() { TestRunner::default() } else { TestRunner::deterministic() }
}

/// Lines that pass `wanted`, without repetition.
pub(super) fn lines(
    strategy: &impl Strategy<Value = String>,
    count: usize,
    wanted: impl Fn(&str) -> bool,
) -> BTreeSet<String> {
    let mut runner = runner();
    let mut found = BTreeSet::new();
    for _ in 0..count.saturating_mul(200) {
        if found.len() >= count {
            break;
        }
        if let Ok(tree) = strategy.new_tree(&mut runner) {
            let line = tree.current();
            if wanted(&line) {
                found.insert(line);
            }
        }
    }
    found
}

/// What hostile lines are glued together from.
const STUB_PARTS: &[&str] = &[
    "alpha",
    "beta",
    "gamma",
    "alpha x",
    "beta 'y z'",
    "gamma \"$(alpha)\"",
    "evil",
    "evil",
    "evil",
    "e\"vi\"l",
    "$(",
    ")",
    "`",
    "\"",
    "'",
    "$'",
    "\\",
    "\n",
    "\n",
    " ",
    "\t",
    ";",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    ">",
    ">o",
    "> o",
    "<",
    "2>&1",
    "2>",
    "/dev/null",
    "<(",
    "(",
    "{ ",
    "; }",
    "((",
    "))",
    "[[ ",
    " ]]",
    "[ ",
    " ]",
    "if ",
    "then ",
    "else ",
    "fi",
    "for f in ",
    "; do ",
    "; done",
    "case x in ",
    "esac",
    ";;",
    "x)",
    "f() ",
    "! ",
    "#",
    " #",
    "# x",
    "*",
    "~",
    "=",
    "A=1 ",
    "<<EOF\n",
    "EOF\n",
    "\nEOF\n",
    "<<'EOF'\n",
    "<<-EOF\n",
    "\tEOF\n",
    "EOF",
    "<<<",
    "$((",
    "1",
    "${x:-",
    "}",
    "${#x}",
    "${x",
    "$x",
    "\\\n",
    " \\\n",
    "\\\\",
    "\\$",
    "\\`",
    "\\\"",
    "\\'",
    "$\"",
    "a",
    "{a,b}",
    "-",
    "time ",
    "coproc ",
    "$[",
    "]",
    "@(",
    "?(",
    "!(",
    "é",
    "{x}>",
    ">&",
    "<&-",
    ">|",
    "&>",
];

/// Hostile lines over the stub names: `evil` is never allowed.
fn stub_line() -> impl Strategy<Value = String> {
    let part = prop::sample::select(STUB_PARTS);
    prop::collection::vec((part, prop_oneof![2 => Just(""), 1 => Just(" ")]), 1..12)
        .prop_map(|parts| parts.into_iter().flat_map(|(part, blank)| [part, blank]).collect())
}

fn bash_accepts(line: &str) -> bool {
    Command::new(BASH)
        .args(["-n", "-c", "--", line])
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[test]
fn what_we_can_read_bash_can_parse() {
    needs(BASH);
    let can_read = |line: &str| read(line).is_ok();
    let mut all = lines(&wild_line(), line_count(150), can_read);
    all.extend(lines(&stub_line(), line_count(150), can_read));
    all.extend(lines(&tidy_line(), line_count(60), can_read));
    let wrong: Vec<&String> = all.iter().filter(|line| !bash_accepts(line)).collect();
    assert!(wrong.is_empty(), "{} of {} lines are errors in bash: {:#?}", wrong.len(), all.len(), wrong);
}

struct Stubs {
    directory: PathBuf,
}

impl Stubs {
    fn new(label: &str) -> std::io::Result<Self> {
        let directory = std::env::temp_dir().join(format!("toolwarden-stubs-{label}-{}", std::process::id()));
        fs::create_dir_all(directory.join("bin"))?;
        for name in ["alpha", "beta", "gamma", "evil", "x", "a", "f", "o"] {
            let path = directory.join("bin").join(name);
            fs::write(&path, "#!/bin/sh\necho \"${0##*/}\" >> \"$STUB_LOG\"\n")?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(Self { directory })
    }

    /// Names of the stubs that bash really started.
    fn run(&self, line: &str) -> std::io::Result<BTreeSet<String>> {
        let work = self.directory.join("work");
        let log = self.directory.join("log");
        let _ = fs::remove_dir_all(&work);
        fs::create_dir_all(&work)?;
        fs::write(&log, "")?;
        Command::new(BASH)
            .args(["--norc", "-c", "eval \"$1\"; wait", "bash", line])
            .env_clear()
            .env("PATH", self.directory.join("bin"))
            .env("STUB_LOG", &log)
            .env("LC_ALL", "C.UTF-8")
            .current_dir(&work)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        Ok(fs::read_to_string(&log)?.lines().map(str::to_owned).collect())
    }
}

impl Drop for Stubs {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn is_allowed(line: &ShellLine) -> bool {
    let entries: Vec<(usize, ShellEntry)> =
        ALLOWED.iter().filter_map(|name| ShellEntry::parse(name).ok()).enumerate().collect();
    let list = ShellAllowlist::compile(&entries);
    matches!(list.judge(line, Some(Path::new("/w")), Path::new("/w")), Coverage::Covered(_))
}

#[test]
fn bash_runs_nothing_that_we_did_not_report() {
    needs(BASH);
    let Ok(stubs) = Stubs::new("allowed") else { unreachable!("the stubs are made") };
    let allowed = |line: &str| !line.contains("while") && read(line).is_ok_and(|line| is_allowed(&line));
    let strange = lines(&stub_line(), line_count(60), |line| line.contains("evil") && allowed(line));
    let ordinary = lines(&stub_line(), line_count(150), allowed);
    assert!(ordinary.len() >= 100, "only {} allowed lines were generated", ordinary.len());
    for text in strange.iter().chain(&ordinary) {
        let Ok(line) = read(text) else { continue };
        let reported: BTreeSet<String> = line.commands.iter().filter_map(|command| command.name.clone()).collect();
        let Ok(ran) = stubs.run(text) else { unreachable!("bash runs") };
        assert!(ran.is_subset(&reported), "{text:?} ran {ran:?}, reported {reported:?}");
    }
}

/// Readable lines that are not allowed must still report every command, or the blocklist would miss it.
#[test]
fn every_command_bash_runs_is_reported_even_when_held() {
    needs(BASH);
    let Ok(stubs) = Stubs::new("held") else { unreachable!("the stubs are made") };
    let readable = |line: &str| line.contains("evil") && !line.contains("coproc") && read(line).is_ok();
    let unknowable =
        Blocklist::compile(&ShellEntry::parse("nothing").map(|entry| (0, entry)).into_iter().collect::<Vec<_>>());
    for text in lines(&stub_line(), line_count(120), readable) {
        let Ok(line) = read(&text) else { continue };
        if let Some(BlockedMatch::Unknown { .. }) = unknowable.first_match(&line) {
            continue;
        }
        let reported = crate::command_names(&line);
        let Ok(ran) = stubs.run(&text) else { unreachable!("bash runs") };
        assert!(ran.is_subset(&reported), "{text:?} ran {ran:?}, reported {reported:?}");
    }
}
