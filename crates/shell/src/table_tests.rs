//! Reads `commands.txt`, a table of command lines and what becomes of each, and compares.
//! Takes the lists from the top of that file; gives the outcome in the order of SHELL-1 with delete
//! protection and self-protection on.

use std::path::{Path, PathBuf};

use crate::{
    BlockedMatch, Blocklist, Coverage, Deletion, FileFacts, Position, ShellAllowlist, ShellEntry, changes_toolwarden,
    deletes, read, strays,
};

const TABLE: &str = include_str!("commands.txt");

struct Setting {
    allowed: ShellAllowlist,
    blocked: Blocklist,
}

fn setting() -> Setting {
    let list = |key: &str| -> Vec<(usize, ShellEntry)> {
        TABLE
            .lines()
            .filter_map(|line| line.strip_prefix(key))
            .filter_map(|entry| ShellEntry::parse(entry).ok())
            .enumerate()
            .collect()
    };
    Setting { allowed: ShellAllowlist::compile(&list("# allow: ")), blocked: Blocklist::compile(&list("# block: ")) }
}

fn rows() -> Vec<(&'static str, String)> {
    TABLE
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
        .filter_map(|line| line.split_once(' '))
        .map(|(outcome, command)| {
            (outcome, command.trim_start().replace("\\n", "\n").replace("\\t", "\t").replace("<CR>", "\r"))
        })
        .collect()
}

fn outcome(setting: &Setting, command: &str) -> String {
    let Ok(line) = read(command) else { return "unparsable".to_owned() };
    let cwd = Path::new("/srv/project/sub");
    let protected =
        [PathBuf::from("/home/u/.config/toolwarden"), PathBuf::from("/srv/project/.cursor/permissions.json")];
    if let Some(why) = changes_toolwarden(&line, &protected, cwd, Some(Path::new("/home/u"))) {
        assert!(!why.is_empty());
        return "hold:self".to_owned();
    }
    match setting.blocked.first_match(&line) {
        Some(BlockedMatch::Entry { .. }) => return "hold:blocked".to_owned(),
        Some(BlockedMatch::Unknown { .. }) => return "hold:unknown".to_owned(),
        None => {}
    }
    if let Some(Deletion::Certain { .. }) = deletes(&line) {
        return "hold:deletion".to_owned();
    }
    let workspace = Some(Path::new("/srv/project"));
    let position = Position { cwd, workspace, home: Some(Path::new("/home/u")) };
    match setting.allowed.judge(&line, workspace, cwd) {
        Coverage::Covered(_) if strays(&line, position, &FileFacts::as_written()).is_some() => "hold:stray".to_owned(),
        Coverage::Covered(_) => "allow".to_owned(),
        Coverage::NotListed { .. } => "hold:unlisted".to_owned(),
        Coverage::Obstacle { obstacle, .. } => format!("hold:{}", obstacle.code()),
        Coverage::Redirection { .. } => "hold:redirection".to_owned(),
    }
}

#[test]
fn every_row_of_the_table_holds() {
    let setting = setting();
    let wrong: Vec<String> = rows()
        .iter()
        .filter_map(|(expected, command)| {
            let actual = outcome(&setting, command);
            (actual != *expected).then(|| {
                format!("expected {expected}, got {actual}: {command:?} {:?}", read(command).map(|line| line.obstacle))
            })
        })
        .collect();
    assert!(wrong.is_empty(), "{} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_table_is_long_enough_and_has_no_row_twice() {
    let rows = rows();
    assert!(rows.len() >= 260, "only {} rows", rows.len());
    let mut commands: Vec<&String> = rows.iter().map(|(_, command)| command).collect();
    commands.sort();
    let all = commands.len();
    commands.dedup();
    assert_eq!(all, commands.len(), "a row occurs twice");
}

#[test]
fn shell_1_an_entry_for_pushing_allows_pushing_alone() {
    let entries: Vec<(usize, ShellEntry)> = ShellEntry::parse("git:push*").ok().into_iter().enumerate().collect();
    assert_eq!(entries.len(), 1);
    let setting = Setting { allowed: ShellAllowlist::compile(&entries), blocked: Blocklist::compile(&[]) };
    for command in ["git push", "git push origin main", "git push -u origin main", "git push && git push --tags"] {
        assert_eq!(outcome(&setting, command), "allow", "{command}");
    }
    for command in [
        "git pull",
        "git",
        "git status",
        "git fetch origin main",
        "git pull origin push",
        "git -c push.default=x pull",
        "git push && git pull",
        "git push; ls",
        "git push --receive-pack=evil origin",
        "git push ./evil main",
        "git push > .git/config",
        "pushd x",
    ] {
        assert_ne!(outcome(&setting, command), "allow", "{command}");
    }
}
