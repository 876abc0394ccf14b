//! What `read` makes of single lines: words, names, redirections, refusals.

use std::path::Path;

use crate::{Direction, ShellLine, Unparsable, read, redirections_stay_inside};

/// Each command as `name|argument|..`; a word that is not literal is marked with `~`.
fn shown(text: &str) -> Vec<String> {
    let show = |line: ShellLine| {
        line.commands
            .iter()
            .map(|command| {
                let mut parts = vec![command.name.clone().unwrap_or_else(|| "?".to_owned())];
                parts.extend(
                    command
                        .arguments
                        .iter()
                        .map(|word| if word.literal { word.text.clone() } else { format!("~{}", word.text) }),
                );
                parts.join("|")
            })
            .collect()
    };
    read(text).map(show).unwrap_or_default()
}

#[test]
fn words_lose_their_quotes() {
    for (text, expected) in [
        ("echo 'a b' \"c d\" e\\ f", "echo|a b|c d|e f"),
        ("echo a'b'\"c\"d", "echo|abcd"),
        ("echo \"a\\\"b\\\\c\\$d\\x\"", "echo|a\"b\\c$d\\x"),
        ("echo $'a\\tb\\x41'", "echo|a\tbA"),
        ("echo $'\\u0041'", "echo|~$'\\u0041'"),
        ("echo \"\" ''", "echo||"),
        ("echo $x \"$x\" a$x", "echo|~$x|~\"$x\"|~a$x"),
        ("echo *.rs ~/x {a,b} [ab]", "echo|~*.rs|~~/x|~{a,b}|~[ab]"),
        ("echo {} a=b -1 1.5 @x %y", "echo|{}|a=b|-1|1.5|@x|%y"),
        ("echo =ls a=~/x", "echo|~=ls|~a=~/x"),
        ("echo caf\u{e9} 'caf\u{e9}'", "echo|~caf\u{e9}|caf\u{e9}"),
        ("echo {\u{1f600} \"{\u{1f600}\"", "echo|~{\u{1f600}|{\u{1f600}"),
        ("\"ls\" x", "?|x"),
        ("cat a > /dev/null b 2>&1 c", "cat|a|b|c"),
        ("[ -f x ]", "[|-f|x|]"),
        ("export A=1 B", "export|~A=1|B"),
    ] {
        assert_eq!(shown(text), [expected], "{text}");
    }
}

#[test]
fn commands_come_from_everywhere() {
    let names = |text: &str| -> Vec<String> {
        shown(text).iter().filter_map(|command| command.split('|').next().map(str::to_owned)).collect()
    };
    assert_eq!(names("a && b | c; d & e || ! f"), ["a", "b", "c", "d", "e", "f"]);
    assert_eq!(names("a \"$(b)\" `c` <(d) ${x:-$(e)}"), ["b", "c", "d", "e", "a"]);
    assert_eq!(names("if a; then b; elif c; then d; else e; fi"), ["a", "b", "c", "d", "e"]);
    assert_eq!(names("for i in $(a); do b; done; while c; do d; done"), ["a", "b", "c", "d"]);
    assert_eq!(names("case $(a) in $(b)) c;; *) d;; esac"), ["a", "b", "c", "d"]);
    assert_eq!(names("f() { a; }; (b; { c; })"), ["a", "b", "c"]);
    assert_eq!(names("cat <<E | a && b\n$(c)\nE\nd"), ["a", "b", "c", "cat", "d"]);
    assert_eq!(names("x=$(a) b; export y=$(c); [[ -f $(d) ]]; (( $(e) ))"), ["a", "b", "c", "export", "d", "e"]);
}

#[test]
fn refusals_have_their_kind() {
    for (text, expected) in [
        ("", Unparsable::NoCommand),
        ("# x", Unparsable::NoCommand),
        ("A=1", Unparsable::NoCommand),
        ("ls\0", Unparsable::ControlCharacter),
        ("ls\u{b}x", Unparsable::ControlCharacter),
        ("ls\u{c}x", Unparsable::ControlCharacter),
        ("ls\r\n", Unparsable::ControlCharacter),
        ("ls \u{1b}[2J", Unparsable::ControlCharacter),
        ("ls \u{202e}x", Unparsable::ControlCharacter),
        ("ls\u{2028}rm", Unparsable::ControlCharacter),
        ("ls\u{a0}x", Unparsable::ControlCharacter),
        ("ls\u{200b}", Unparsable::ControlCharacter),
        ("ls \u{85}x", Unparsable::ControlCharacter),
        ("ls (", Unparsable::Syntax),
    ] {
        assert_eq!(read(text).err(), Some(expected), "{text:?}");
    }
    assert_eq!(read(&"a".repeat(70_000)).err(), Some(Unparsable::TooLong));
    assert_eq!(read(&format!("{}ls{}", "(".repeat(300), ")".repeat(300))).err(), Some(Unparsable::TooComplex));
    assert_eq!(read(&"ls;".repeat(20_000)).err(), Some(Unparsable::TooComplex));
    assert!(read(&format!("{}ls{}", "( ".repeat(60), " )".repeat(60))).is_ok());
}

#[test]
fn redirections_are_kept_and_judged() {
    let line = read("a < in 2>&1 >> out; (b) > group");
    let directions: Vec<(String, Direction)> = line
        .map(|line| line.all_redirections().map(|one| (one.target.text.clone(), one.direction)).collect())
        .unwrap_or_default();
    let expected = [
        ("in", Direction::Reads),
        ("1", Direction::Duplicates),
        ("out", Direction::Writes),
        ("group", Direction::Writes),
    ]
    .map(|(text, direction)| (text.to_owned(), direction));
    assert_eq!(directions, expected);
    let inside =
        |text: &str| read(text).is_ok_and(|line| redirections_stay_inside(&line, Path::new("/w"), Path::new("/w/s")));
    assert!(inside("a > ../x"));
    assert!(!inside("a > ../../x"));
    assert!(!inside("a > .."));
    assert!(!inside("a > ''"));
    assert!(!inside("cd x; a > y"));
    assert!(!inside("a > \"$x\""));
    assert!(inside("a > /w/./s/../x 2>/dev/null"));
    let relative =
        |cwd: &str| read("a > x").is_ok_and(|line| redirections_stay_inside(&line, Path::new("w"), Path::new(cwd)));
    assert!(!relative("w"));
    assert!(!relative("/w"));
}

#[test]
fn each_obstacle_has_a_sentence() {
    for text in [
        "A=1 ls",
        "\"ls\"",
        "> x",
        "eval x",
        "sudo x",
        "git -c a=b x",
        "git $x",
        "f() { a; }",
        "[[ a ]] && b",
        "a !x",
        "cd x; ./y",
    ] {
        let sentences: Vec<String> = read(text)
            .map(|line| {
                line.commands.iter().filter_map(|command| command.obstacle.as_ref()).map(ToString::to_string).collect()
            })
            .unwrap_or_default();
        assert!(!sentences.is_empty() && sentences.iter().all(|sentence| sentence.len() > 10), "{text}: {sentences:?}");
    }
}
