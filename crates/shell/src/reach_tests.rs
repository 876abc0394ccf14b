//! Looking through wrappers and inner text: names, blocked entries, deletions.

use crate::{BlockedMatch, Blocklist, Deletion, ShellEntry, command_names, deletes, read};

fn names(text: &str) -> Vec<String> {
    read(text).map(|line| command_names(&line).into_iter().collect()).unwrap_or_default()
}

fn blocked(entry: &str, text: &str) -> Option<BlockedMatch> {
    let entries: Vec<(usize, ShellEntry)> = ShellEntry::parse(entry).map(|entry| (3, entry)).into_iter().collect();
    read(text).ok().and_then(|line| Blocklist::compile(&entries).first_match(&line))
}

#[test]
fn names_are_found_through_wrappers() {
    assert_eq!(names("sudo /bin/rm x"), ["rm", "sudo"]);
    assert_eq!(names("env A=1 nice ls"), ["env", "ls", "nice"]);
    assert_eq!(names("bash -c 'a; b | c'"), ["a", "b", "bash", "c"]);
    assert_eq!(names("find . -exec grep x {} \\; -exec sudo rm {} +"), ["find", "grep", "rm", "sudo"]);
    assert!(names("xargs -n1 sh -c 'a b'").contains(&"a".to_owned()));
    assert!(names("timeout 5 ls").contains(&"ls".to_owned()));
    assert_eq!(names("git log"), ["git"]);
    assert!(names("env -S 'rm -rf x'").contains(&"rm".to_owned()));
}

#[test]
fn names_say_when_they_are_not_all() {
    assert_eq!(names("ls; $x"), ["?", "ls"]);
    assert!(names("bash -c \"$x\"").contains(&"?".to_owned()));
    assert!(names(&format!("sudo {}", "a ".repeat(300))).contains(&"?".to_owned()));
    assert!(names(&"ls;".repeat(1500)).contains(&"?".to_owned()));
    assert!(!names("sudo ls").contains(&"?".to_owned()));
}

#[test]
fn a_certain_match_names_entry_and_command() {
    let found = blocked("rm", "ls && sudo rm -rf x");
    assert_eq!(found, Some(BlockedMatch::Entry { index: 3, command: "sudo rm -rf x".to_owned() }));
    assert!(blocked("git push", "git -C x push origin").is_some());
    assert!(blocked("git:push*", "git --no-pager push").is_some());
    assert!(blocked("/bin/rm", "/bin/rm x").is_some());
    assert_eq!(blocked("/bin/rm", "rm x"), None);
    assert_eq!(blocked("rm", "echo rm"), None);
    assert_eq!(blocked("rm", "RM x"), None);
    assert_eq!(blocked("git push", "git pushy"), None);
}

#[test]
fn what_cannot_be_known_is_said() {
    for text in
        ["$x", "sh -c \"$x\"", "eval \"$x\"", "sudo $x", "sh", "a | sh", "bash -s", "eval \"'\"", "ssh h \"$x\""]
    {
        assert!(matches!(blocked("rm", text), Some(BlockedMatch::Unknown { .. })), "{text}");
    }
    let nested = (0..8).fold("true".to_owned(), |text, _| format!("sh -c {}", quote(&text)));
    assert!(matches!(blocked("rm", &nested), Some(BlockedMatch::Unknown { .. })), "{nested}");
    let empty = read("$x").ok().and_then(|line| Blocklist::default().first_match(&line));
    assert_eq!(empty, None);
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn deletions_are_found() {
    let certain = |text: &str| read(text).is_ok_and(|line| matches!(deletes(&line), Some(Deletion::Certain { .. })));
    for text in [
        "rm x",
        "sudo rm x",
        "sh -c 'rm x'",
        "find . -delete",
        "git -C a clean -f",
        "git worktree remove x",
        "fd -x rm",
        "docker exec a rm b",
        "env -S 'rm -rf x'",
        "env '-Srm -rf x'",
        "env --split-string='rm -rf x'",
        "flock /tmp/l -c 'rm -rf x'",
        "npx -c 'rm -rf x'",
        "npm exec -c 'rm -rf x'",
        "pee 'rm -rf x'",
        "gdb -ex 'shell rm -rf x'",
        "tar -cf x.tar --remove-files y",
        "tar -cf x.tar --rem y",
        "zip -m x.zip y",
    ] {
        assert!(certain(text), "{text}");
    }
    for text in
        ["ls rm", "git add rm", "echo rm", "git log clean", "docker rm x", "docker run --rm x", "find . -name rm"]
    {
        assert!(!certain(text), "{text}");
    }
}

#[test]
fn work_1_inner_text_is_read_up_to_a_budget() {
    assert_eq!(names(&format!("sh -c 'echo {}'", "a".repeat(1_000))), ["echo", "sh"]);
    // Each level is read again: both together are over the budget.
    let nested = format!("eval \"eval 'echo {}'\"", "a".repeat(40_000));
    assert!(names(&nested).iter().any(|name| name == "?"), "too much to be read: {:?}", names(&nested));
}
