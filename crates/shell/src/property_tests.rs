//! Properties over arbitrary text and over lines glued together from shell fragments.

use std::path::Path;

use proptest::prelude::{Just, Strategy, any, prop, prop_assert, prop_assume, prop_oneof, proptest};

use crate::{
    Blocklist, Coverage, ShellAllowlist, ShellEntry, ShellLine, candidate, changes_toolwarden, command_names, deletes,
    read,
};

fn entries(texts: &[&str]) -> Vec<(usize, ShellEntry)> {
    texts.iter().filter_map(|text| ShellEntry::parse(text).ok()).enumerate().collect()
}

fn allowlist() -> ShellAllowlist {
    ShellAllowlist::compile(&entries(&["git", "ls", "echo", "cat", "cargo test", "true", "grep"]))
}

fn judge(line: &ShellLine) -> Coverage {
    allowlist().judge(line, Some(Path::new("/w")), Path::new("/w"))
}

fn is_allowed(text: &str) -> bool {
    read(text).is_ok_and(|line| matches!(judge(&line), Coverage::Covered(_)))
}

/// Pieces that matter to a shell.
const FRAGMENTS: &[&str] = &[
    "git",
    "ls",
    "echo",
    "cat",
    "true",
    "rm",
    "sudo",
    "sh",
    "-c",
    "-rf",
    "x",
    "status",
    "a=b",
    "FOO=1",
    "$x",
    "${x}",
    "${x:-",
    "$(",
    ")",
    "`",
    "\"",
    "'",
    "$'",
    "\\",
    "\n",
    " ",
    "  ",
    "\t",
    ";",
    "&",
    "&&",
    "||",
    "|",
    "|&",
    ">",
    ">>",
    "<",
    "2>&1",
    "2>",
    "/dev/null",
    "<(",
    ">(",
    "(",
    "{",
    "}",
    "((",
    "))",
    "[[",
    "]]",
    "[",
    "]",
    "if",
    "then",
    "else",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "while",
    "case",
    "esac",
    ";;",
    "function",
    "f()",
    "!",
    "#",
    "*",
    "?",
    "~",
    "=",
    "<<EOF\n",
    "EOF\n",
    "\nEOF\n",
    "<<<",
    "$((",
    "1",
    "+",
    "{a,b}",
    "é",
    "--",
    "-x",
    "eval",
    "time",
    "\\\n",
];

/// A line is a random sequence of these.
pub(super) fn fragment() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(FRAGMENTS);
    prop_oneof![8 => fixed.prop_map(str::to_owned), 1 => "[a-z]{1,4}", 1 => any::<char>().prop_map(String::from)]
}

/// Lines of whole words, most of which parse.
pub(super) fn tidy_line() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "git",
        "ls",
        "echo",
        "cat",
        "true",
        "grep x",
        "git status",
        "echo 'a b'",
        "echo \"$(ls)\"",
        "ls -la",
        "rm x",
        "whoami",
        "cat < in",
        "ls > out",
        "ls 2>&1",
        "echo `ls`",
        "echo $x",
        "(ls; git log)",
        "{ ls; }",
        "! true",
        "FOO=1 ls",
        "if ls; then git diff; fi",
        "for f in a b; do echo $f; done",
        "cat <(ls)",
        "ls > /tmp/out",
        "echo a\\ b",
        "cargo test",
        "ls # c",
        "[ -f x ]",
        "echo ${x:-$(ls)}",
        "eval ls",
        "cd sub",
    ]);
    let joint = prop::sample::select(vec![" && ", " || ", " | ", "; ", " & ", "\n", " |& "]);
    (word.clone(), prop::collection::vec((joint, word), 0..4))
        .prop_map(|(first, rest)| rest.into_iter().fold(first.to_owned(), |line, (joint, word)| line + joint + word))
}

pub(super) fn wild_line() -> impl Strategy<Value = String> {
    prop::collection::vec((fragment(), prop_oneof![Just(""), Just(" ")]), 0..14)
        .prop_map(|parts| parts.into_iter().map(|(part, blank)| part + blank).collect())
}

fn look_at(text: &str) {
    let Ok(line) = read(text) else { return };
    let blocked = Blocklist::compile(&entries(&["rm", "git push"]));
    let _ = (judge(&line), blocked.first_match(&line), deletes(&line), command_names(&line));
    let _ =
        changes_toolwarden(&line, &["/home/u/.config/toolwarden".into()], Path::new("/w"), Some(Path::new("/home/u")));
    for command in &line.commands {
        let _ = candidate(command);
    }
}

const TAILS: [&str; 9] =
    ["; rm -rf x", " && evil", " || evil", " | evil", "\nevil", " & evil", " $(evil)", " `evil`", " <(evil)"];

proptest! {
    #[test]
    fn nothing_panics_on_any_text(text in any::<String>()) {
        look_at(&text);
    }

    #[test]
    fn nothing_panics_on_shell_fragments(text in wild_line()) {
        look_at(&text);
    }

    #[test]
    fn an_allowed_line_consists_of_allowed_commands(text in prop_oneof![tidy_line(), wild_line()]) {
        if let Ok(line) = read(&text)
            && let Coverage::Covered(indices) = judge(&line)
        {
            prop_assert!(indices.len() == line.commands.len());
            for command in &line.commands {
                prop_assert!(command.obstacle.is_none());
                prop_assert!(allowlist().covers(command).is_some());
            }
        }
    }

    #[test]
    fn a_command_that_is_not_listed_spoils_any_allowed_line(text in prop_oneof![tidy_line(), wild_line()]) {
        prop_assume!(is_allowed(&text));
        for tail in TAILS {
            let longer = format!("{text}{tail}");
            prop_assert!(!is_allowed(&longer), "{longer:?}");
        }
    }

    #[test]
    fn a_candidate_parses_and_covers_its_command(text in prop_oneof![tidy_line(), wild_line()]) {
        if let Ok(line) = read(&text) {
            for command in &line.commands {
                if let Some(entry) = candidate(command) {
                    let parsed = ShellEntry::parse(&entry);
                    prop_assert!(parsed.is_ok());
                    let list = ShellAllowlist::compile(&parsed.map(|entry| (7, entry)).into_iter().collect::<Vec<_>>());
                    prop_assert!(list.covers(command) == Some(7));
                }
            }
        }
    }

    #[test]
    fn a_glob_agrees_with_a_plain_matcher(pattern in "[ab*]{0,6}", text in "[ab]{0,8}") {
        let entry = ShellEntry::parse(&format!("x:{pattern}"));
        let line = read(&format!("x '{text}'"));
        if let (Ok(entry), Ok(line)) = (entry, line) {
            for command in &line.commands {
                prop_assert!(entry.matches(command) == slow_match(pattern.as_bytes(), text.as_bytes()));
            }
        }
    }
}

/// The textbook definition, exponential but obvious.
fn slow_match(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => {
            slow_match(rest, text) || text.split_first().is_some_and(|(_, tail)| slow_match(pattern, tail))
        }
        Some((letter, rest)) => {
            text.split_first().is_some_and(|(first, tail)| first == letter && slow_match(rest, tail))
        }
    }
}

#[test]
fn hostile_sizes_are_answered_quickly() {
    let deep = [
        "(",
        "$(",
        "{ ",
        "\"$(",
        "if ",
        "`",
        "<(",
        "${x:-",
        "$((",
        "case x in x) ",
        "! ",
        "a | ",
        "a && ",
        "\"",
        "'",
        "[[",
    ];
    for part in deep {
        for times in [50, 500, 5_000, 20_000] {
            let text = part.repeat(times);
            look_at(&text);
            look_at(&format!("{text}ls"));
        }
    }
    look_at(&"a ".repeat(30_000));
    look_at(&"sudo ".repeat(12_000));
    look_at(&"sudo -u a ".repeat(6_000));
    look_at(&format!("{}rm {}", "cd a; ".repeat(20), "x ".repeat(9_000)));
    look_at(&format!("{}ls", "sudo -u a b c d e f g h; ".repeat(1_500)));
    look_at(&"find -exec ".repeat(5_000));
    look_at(&"eval sh -c ".repeat(5_000));
    look_at(&"sh -c 'ls' ".repeat(5_000));
    look_at(&"ls;".repeat(20_000));
    look_at(&"cat <<A\nx\nA\n".repeat(5_000));
    assert!(read(&"a".repeat(64 * 1024 + 1)).is_err());
}
