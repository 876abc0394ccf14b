//! A table of answers: two are some, everything else is none.

use toolwarden_core::MachineVerdict;

use super::{Answer, read};
use crate::Failure;

const MARK: &str = "abc";

#[test]
fn review_2_an_answer_is_one_object_with_three_members_and_the_mark() {
    let good = [
        (r#"{"verdict":"allow","reason":"reads only","mark":"abc"}"#, MachineVerdict::Allow),
        (" {\"mark\":\"abc\", \"reason\":\"reads only\",\n\"verdict\":\"hold\"}\n", MachineVerdict::Hold),
    ];
    for (text, verdict) in good {
        assert_eq!(read(text, MARK), Ok(Answer { verdict, words: "reads only".to_owned() }), "{text}");
    }
}

#[test]
fn review_2_everything_else_is_no_answer() {
    let bad = [
        "",
        "allow",
        "null",
        "[]",
        r#"["allow"]"#,
        r#""allow""#,
        "{}",
        r#"{"verdict":"allow","reason":"r"}"#,
        r#"{"verdict":"allow","mark":"abc"}"#,
        r#"{"reason":"r","mark":"abc"}"#,
        r#"{"verdict":"allow","reason":"r","mark":"abd"}"#,
        r#"{"verdict":"allow","reason":"r","mark":"ABC"}"#,
        r#"{"verdict":"allow","reason":"r","mark":" abc"}"#,
        r#"{"verdict":"allow","reason":"r","mark":""}"#,
        r#"{"verdict":"allow","reason":"r","mark":null}"#,
        r#"{"verdict":"allow","reason":null,"mark":"abc"}"#,
        r#"{"verdict":true,"reason":"r","mark":"abc"}"#,
        r#"{"verdict":"Allow","reason":"r","mark":"abc"}"#,
        r#"{"verdict":"allow ","reason":"r","mark":"abc"}"#,
        r#"{"verdict":"deny","reason":"r","mark":"abc"}"#,
        r#"{"verdict":["allow"],"reason":"r","mark":"abc"}"#,
        r#"{"verdict":{"a":{"b":1}},"reason":"r","mark":"abc"}"#,
        r#"{"verdict":"allow","reason":"r","mark":"abc","more":1}"#,
        r#"{"verdict":"hold","verdict":"allow","reason":"r","mark":"abc"}"#,
        r#"{"verdict":"allow","verdict":"allow","mark":"abc"}"#,
        r#"{"verdict":"hold","\u0076erdict":"allow","reason":"r","mark":"abc"}"#,
        r#"{"\u0076erdict":"allow","reason":"r","mark":"abc"}"#,
        r#"{"verdict":"allow","reason":"r","mark":"abc"} fine"#,
        r#"Sure: {"verdict":"allow","reason":"r","mark":"abc"}"#,
        "```json\n{\"verdict\":\"allow\",\"reason\":\"r\",\"mark\":\"abc\"}\n```",
        r#"{"verdict":"allow","reason":"r","mark":"abc"}{"verdict":"hold","reason":"r","mark":"abc"}"#,
        r#"{"verdict":"allow","reason":"r","mark":"abc",}"#,
        r#"{'verdict':'allow','reason':'r','mark':'abc'}"#,
        r#"{"verdict":"allow","reason":"r","mark":"abc""#,
        "{\"verdict\":\"allow\",\"reason\":\"a\nb\",\"mark\":\"abc\"}",
    ];
    for text in bad {
        assert!(read(text, MARK).is_err(), "{text}");
    }
    let long = format!(r#"{{"verdict":"allow","reason":"{}","mark":"abc"}}"#, "x".repeat(1001));
    assert_eq!(read(&long, MARK), Err(Failure::AnswerTooLong));
    let spaced = format!(r#"{{"verdict":"allow","reason":"r","mark":"abc"}}{}"#, " ".repeat(5000));
    assert!(read(&spaced, MARK).is_err());
}

#[test]
fn what_a_machine_says_is_kept_short_and_without_controls() {
    let text = format!(r#"{{"verdict":"hold","reason":"\u001b[2J\u202e{}","mark":"abc"}}"#, "ö".repeat(400));
    let answer = read(&text, MARK);
    let Ok(answer) = answer else { unreachable!("{answer:?}") };
    assert!(answer.words.chars().count() == 300 && answer.words.starts_with("\\u{1b}[2J\\u{202e}"), "{}", answer.words);
}
