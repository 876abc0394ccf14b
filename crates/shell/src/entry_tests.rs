//! Entries: what parses, what matches, and that a large allowlist is as fast as a small one.

use std::path::Path;

use crate::{Coverage, EntryFault, ShellAllowlist, ShellEntry, SimpleCommand, candidate, read};

fn matches(entry: &str, command: &str) -> bool {
    let line = read(command);
    let first: Option<&SimpleCommand> = line.as_ref().ok().and_then(|line| line.commands.first());
    ShellEntry::parse(entry).is_ok_and(|entry| first.is_some_and(|command| entry.matches(command)))
}

#[test]
fn invalid_entries_say_why() {
    let fault = |text: &str| ShellEntry::parse(text).err();
    for empty in ["", " ", "   ", ":", ":x", " :x"] {
        assert_eq!(fault(empty), Some(EntryFault::Empty), "{empty:?}");
    }
    for star in ["*", "*:x", "g*", "git *", "*:*"] {
        assert_eq!(fault(star), Some(EntryFault::StarInBase), "{star:?}");
    }
    for blanks in [" git", "git ", "git  status", "git :x"] {
        assert_eq!(fault(blanks), Some(EntryFault::Blanks), "{blanks:?}");
    }
    for control in ["git\n", "git:\u{7}", "\tgit"] {
        assert_eq!(fault(control), Some(EntryFault::ControlCharacter), "{control:?}");
    }
    for valid in ["git", "git:", "git:status", "npm:install*", "cargo test", "a:b:c", "./run.sh", "git:*"] {
        assert_eq!(fault(valid), None, "{valid:?}");
    }
}

#[test]
fn matching_follows_the_seed() {
    for (entry, command, expected) in [
        ("git", "git status", true),
        ("git", "git push", true),
        ("git", "git", true),
        ("git", "gitk", false),
        ("git:status", "git status", true),
        ("git:status", "git status -s", false),
        ("git:status", "git", false),
        ("git:status", "git 'status'", true),
        ("npm:install*", "npm install", true),
        ("npm:install*", "npm install --save-dev foo", true),
        ("npm:install*", "npm publish", false),
        ("cargo test", "cargo test --all", true),
        ("cargo test", "cargo tests", false),
        ("cargo test:--all", "cargo test --all", true),
        ("cargo test:--all", "cargo test", false),
        ("ls:", "ls", true),
        ("ls:", "ls -l", false),
        ("git:*status", "git -x status", true),
        ("git:a*b*c", "git a1b2c", true),
        ("git:a*b*c", "git acb", false),
        ("git:a*a", "git a", false),
        ("a:b:c", "a b:c", true),
        ("Git", "git status", false),
        ("git", "./git status", false),
        ("echo:$x", "echo $x", true),
        ("echo:[a]", "echo '[a]'", true),
        ("echo:a?", "echo ab", false),
    ] {
        assert_eq!(matches(entry, command), expected, "{entry} / {command}");
    }
}

#[test]
fn the_lowest_index_wins_and_obstacles_stay() {
    let entries: Vec<(usize, ShellEntry)> = [(9, "git"), (4, "git:status"), (6, "git:st*")]
        .into_iter()
        .filter_map(|(index, text)| ShellEntry::parse(text).ok().map(|entry| (index, entry)))
        .collect();
    let list = ShellAllowlist::compile(&entries);
    let covers =
        |text: &str| read(text).ok().and_then(|line| line.commands.first().and_then(|command| list.covers(command)));
    assert_eq!(covers("git status"), Some(4));
    assert_eq!(covers("git stash"), Some(6));
    assert_eq!(covers("git log"), Some(9));
    assert_eq!(covers("git -c a=b log"), None);
    assert_eq!(covers("ls"), None);
}

#[test]
fn ten_thousand_entries_still_answer() {
    let entries: Vec<(usize, ShellEntry)> = (0..10_000)
        .filter_map(|index| ShellEntry::parse(&format!("git:log -n {index}")).ok().map(|entry| (index, entry)))
        .collect();
    let list = ShellAllowlist::compile(&entries);
    for index in [0, 5_000, 9_999] {
        let line = read(&format!("git log -n {index}"));
        let covered = line.map(|line| list.judge(&line, None, Path::new("/")));
        assert_eq!(covered, Ok(Coverage::Covered(vec![index])));
    }
}

#[test]
fn candidates_are_narrow() {
    let of = |text: &str| read(text).ok().and_then(|line| line.commands.first().and_then(candidate));
    assert_eq!(of("git push origin main").as_deref(), Some("git:push origin main"));
    assert_eq!(of("ls").as_deref(), Some("ls:"));
    assert_eq!(of("git commit -m 'a b'").as_deref(), Some("git:commit -m a b"));
    for none in ["ls *.rs", "ls '*'", "ls $x", "sudo ls", "\"ls\"", "git -c a=b log", "A=1 ls", "echo 'a\nb'"] {
        assert_eq!(of(none), None, "{none}");
    }
}
