//! A program that is asked: its answer, its bounds, and what it gets and does not get of this process.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use toolwarden_classifier::{Judged, Kind, Settings, payment};

use crate::standin::{Outcome, question, room};

/// Answers with what `sed` finds of the mark.
const ALLOWS: &str = r#"mark=$(cat | sed 's/.*"mark":"\([^"]*\)".*/\1/')
printf '{"verdict":"allow","reason":"fine","mark":"%s"}' "$mark"
"#;

fn script(directory: &Path, text: &str) -> std::io::Result<String> {
    let path = directory.join("ask");
    std::fs::write(&path, format!("#!/bin/sh\n{text}"))?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))?;
    Ok(path.display().to_string())
}

fn settings(command: Vec<String>) -> Settings {
    let environment = [("PATH", "/usr/bin:/bin"), ("HOME", "/nowhere"), ("LANG", "C"), ("API_KEY", "s3cret")];
    let environment: BTreeMap<_, _> =
        environment.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    let kind = Kind::Command { command, environment };
    Settings { patience: Duration::from_secs(30), ..Settings::new(kind, "local") }
}

async fn judged(settings: Settings) -> Result<Judged, Box<dyn std::error::Error>> {
    Ok(room(settings)?.classifier.judge(&question(1)).await)
}

#[tokio::test]
async fn review_2_a_programs_answer_counts_if_it_is_strict_and_ends_well() -> Outcome {
    let directory = tempfile::tempdir()?;
    let answered = judged(settings(vec![script(directory.path(), ALLOWS)?])).await?;
    assert!(payment(&answered.opinion).is_some(), "{answered:?}");
    for (code, text) in [
        ("program", format!("{ALLOWS}exit 1\n")),
        ("answer", format!("echo 'Certainly:'\n{ALLOWS}")),
        ("answer", format!("{ALLOWS}echo done\n")),
        ("answer", "cat >/dev/null\n".to_owned()),
        ("answer", "exit 0\n".to_owned()),
        ("mark", r#"echo '{"verdict":"allow","reason":"fine","mark":"x"}'"#.to_owned()),
        ("answer_too_long", "head -c 100000 /dev/zero\n".to_owned()),
        ("answer", "printf '\\377'\n".to_owned()),
    ] {
        let answered = judged(settings(vec![script(directory.path(), &text)?])).await?;
        let found = answered.failure.map(|failure| failure.code());
        assert_eq!((answered.opinion.verdict, found), (None, Some(code)), "{text}");
    }
    let absent = judged(settings(vec![directory.path().join("absent").display().to_string()])).await?;
    assert_eq!(absent.failure.map(|failure| failure.code()), Some("unreachable"));
    Ok(())
}

fn is_running(pid: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

#[tokio::test]
async fn review_2_a_program_that_takes_too_long_ends_with_all_it_started() -> Outcome {
    let directory = tempfile::tempdir()?;
    let pids = directory.path().join("pids");
    let text = format!("sleep 1000 &\necho $! $$ > {0}.new\nmv {0}.new {0}\nwait\n", pids.display());
    let slow = Settings { patience: Duration::from_secs(1), ..settings(vec![script(directory.path(), &text)?]) };
    let answered = judged(slow).await?;
    assert_eq!(answered.failure.map(|failure| failure.code()), Some("late"));
    let pids = std::fs::read_to_string(pids)?;
    assert_eq!(pids.split_whitespace().count(), 2, "{pids}");
    for pid in pids.split_whitespace() {
        let mut looks = 0;
        while is_running(pid) && looks < 500 {
            looks += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!is_running(pid), "{pid} of {pids} goes on");
    }
    Ok(())
}

#[tokio::test]
async fn review_2_a_program_gets_three_variables_its_arguments_as_they_are_and_the_question() -> Outcome {
    let directory = tempfile::tempdir()?;
    let told = directory.path().join("told");
    let text = format!(
        "cat > {0}.question\n/usr/bin/env > {0}.env\npwd > {0}.place\nprintf '%s' \"$1\" > {0}.argument\nexit 1\n",
        told.display()
    );
    let evil = format!("$(touch {}.shell) ; touch {0}.shell", told.display());
    judged(settings(vec![script(directory.path(), &text)?, evil.clone()])).await?;
    let read = |end: &str| std::fs::read_to_string(format!("{}.{end}", told.display()));
    let env = read("env")?;
    let mut names: Vec<_> = env.lines().filter_map(|line| line.split('=').next()).collect();
    // What a shell itself sets.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    names.sort_unstable();
    assert_eq!(names, ["HOME", "LANG", "PATH"], "{env}");
    assert_eq!(read("place")?.trim(), "/");
    assert_eq!(read("argument")?, evil);
    assert!(read("shell").is_err(), "a shell read it");
    let asked: Value = serde_json::from_str(&read("question")?)?;
    let text = asked.get("question").and_then(Value::as_str).unwrap_or_default();
    let mark = asked.get("mark").and_then(Value::as_str).unwrap_or_default();
    assert!(mark.len() >= 26 && text.contains(&format!("-----BEGIN CALL {mark}-----\n")), "{asked}");
    assert_eq!(asked.get("prompt_version"), Some(&serde_json::json!(1)));
    Ok(())
}

#[test]
fn a_program_has_a_whole_path_or_a_name() {
    for command in [vec![], vec![String::new()], vec!["./ask".to_owned()], vec!["bin/ask".to_owned()]] {
        assert!(room(settings(command.clone())).is_err(), "{command:?}");
    }
    assert!(room(settings(vec!["ask".to_owned()])).is_ok());
}
