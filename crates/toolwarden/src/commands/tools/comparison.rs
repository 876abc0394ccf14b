//! What waits beside what was accepted, line by line, and how to accept exactly that.

use std::collections::BTreeMap;

use toolwarden_control::{DefinitionView, WaitingView};
use toolwarden_core::name::shown;
use toolwarden_pins::{Side, Standing, Told};

use super::address;
use crate::output::{Colour, coloured};

/// Texts up to this length are shown whole; of longer ones, this much of what is the same beside what changed.
const WHOLE: usize = 200;
const BESIDE: usize = 40;

/// `whole` has the digests of servers that are shown whole.
pub(super) fn diff(found: &[DefinitionView], whole: Option<&BTreeMap<String, String>>) -> String {
    if found.is_empty() {
        return "nothing waits: every definition that was seen is accepted\n".to_owned();
    }
    let mut text = String::new();
    for one in found {
        let standing = match one.standing {
            Standing::New => "is new",
            Standing::Changed | Standing::Accepted => "changed",
        };
        text.push_str(&with_changes(&format!("{} {standing}", address(one)), one));
        text.push('\n');
    }
    // Of what changed more than once a person has to choose, and what was not kept nobody can accept.
    let is_clear = |one: &DefinitionView| matches!(one.waiting.as_slice(), [only] if !only.too_large);
    let unclear: Vec<&str> = found.iter().filter(|one| !is_clear(one)).map(|one| one.server.as_str()).collect();
    let at_once = |server: &str| whole.is_some() && !unclear.contains(&server);
    for (server, digest) in whole.into_iter().flatten().filter(|(server, _)| at_once(server)) {
        let server = shown(server);
        text.push_str(&format!("Accept all of it with: toolwarden tools accept {server} --version {digest}\n"));
    }
    for one in found.iter().filter(|one| !at_once(&one.server)) {
        for WaitingView { version, .. } in one.waiting.iter().filter(|waiting| !waiting.too_large) {
            text.push_str(&format!("Accept it with: toolwarden tools accept {} --version {version}\n", address(one)));
        }
    }
    text
}

pub(super) fn with_changes(words: &str, one: &DefinitionView) -> String {
    let mut text = String::new();
    for waiting in &one.waiting {
        if !text.is_empty() {
            text.push('\n');
        }
        let WaitingView { version, first_seen, too_large, .. } = waiting;
        let offered = match waiting.offered {
            true => ", offered now",
            false if one.gone => ", not listed any more",
            false => "",
        };
        text.push_str(&format!("{words}, version {version}{offered}, first seen {first_seen}\n"));
        if *too_large {
            text.push_str("  it is larger than 256 KiB, so it was not kept and cannot be accepted\n");
        } else {
            waiting.told.iter().for_each(|told| push_told(&mut text, told));
        }
    }
    text
}

/// Both sides of a change, one below the other; what is the same in long texts is left out.
fn push_told(text: &mut String, Told { old, new }: &Told) {
    let words = |side: &Option<Side>| side.as_ref().map(|side| side.text.clone()).unwrap_or_default();
    let (before, after) = (words(old), words(new));
    let is_block = before.contains('\n') || after.contains('\n');
    let cut = |one: &str, other: &str| match (old, new) {
        (Some(_), Some(_)) if is_block => lines_around(one, other),
        (Some(_), Some(_)) if one.chars().count().max(other.chars().count()) > WHOLE => around(one, other),
        _ => one.to_owned(),
    };
    let sides = [('-', old, cut(&before, &after), Colour::Red), ('+', new, cut(&after, &before), Colour::Green)];
    for (sign, side, words, colour) in sides {
        let Some(Side { label, .. }) = side else { continue };
        let label = shown(label);
        let mut push = |line: String| {
            text.push_str(&coloured(&format!("  {sign} {line}"), colour));
            text.push('\n');
        };
        match words.as_str() {
            "" => push(label.into_owned()),
            words if is_block => {
                push(format!("{label}:"));
                // Each line has its sign, so that none passes for one of ours.
                words.split('\n').for_each(|line| push(format!("  {}", shown(line))));
            }
            words => push(format!("{label}: {}", shown(words))),
        }
    }
}

/// A text without the lines it shares with another at its beginning and end.
fn lines_around(text: &str, other: &str) -> String {
    let (mine, theirs): (Vec<&str>, Vec<&str>) = (text.split('\n').collect(), other.split('\n').collect());
    let (begin, end) = shared(&mine, &theirs);
    let middle = mine.iter().skip(begin).take(mine.len() - end - begin).copied();
    let mark = |count: usize| (count > 0).then_some("…");
    mark(begin).into_iter().chain(middle).chain(mark(end)).collect::<Vec<_>>().join("\n")
}

/// A text with only a little of what it shares with another at its beginning and end.
fn around(text: &str, other: &str) -> String {
    let (mine, theirs): (Vec<char>, Vec<char>) = (text.chars().collect(), other.chars().collect());
    let (begin, end) = shared(&mine, &theirs);
    let (skip, keep) = (begin.saturating_sub(BESIDE), mine.len() - end.saturating_sub(BESIDE));
    let middle: String = mine.iter().skip(skip).take(keep - skip).collect();
    let before = if skip > 0 { "…" } else { "" };
    let after = if keep < mine.len() { "…" } else { "" };
    format!("{before}{middle}{after}")
}

/// How much two have in common at their beginning, and of the rest at their end.
fn shared<T: PartialEq>(one: &[T], two: &[T]) -> (usize, usize) {
    let begin = one.iter().zip(two).take_while(|(one, two)| one == two).count();
    let most = one.len().min(two.len()) - begin;
    let end = one.iter().rev().zip(two.iter().rev()).take(most).take_while(|(one, two)| one == two).count();
    (begin, end)
}

#[cfg(test)]
#[test]
fn of_long_texts_the_part_that_changed_is_shown() {
    let same = "x".repeat(100);
    let (old, new) = (format!("{same}reads{same}"), format!("{same}sends{same}"));
    let beside = "x".repeat(BESIDE);
    // They share the last two letters, too.
    let rest = "x".repeat(BESIDE - 2);
    assert_eq!(around(&old, &new), format!("…{beside}reads{rest}…"));
    assert_eq!(around("a", "b"), "a");
    assert_eq!(around("aa", "a"), "aa");
    assert_eq!(around("", "a"), "");
    assert_eq!((lines_around("a\nb\nc", "a\nc"), lines_around("a\nc", "a\nb\nc")), ("…\nb\n…".into(), "…\n…".into()));
}
