//! Finds command lines that would change Toolwarden among the arguments of any tool: some tools are shells.
//! Takes a text, or the words of a list; gives why it must be held. A text is read as a command line where it
//! can be one; prose that merely speaks of Toolwarden says nothing. A text that is no line is searched for our
//! name with one of our verbs behind it.

use std::ops::ControlFlow;
use std::path::Path;

use crate::effects::is_writer;
use crate::facts::FileFacts;
use crate::line::{Direction, ShellLine, Word};
use crate::paths::normalise;
use crate::places::Places;
use crate::processes::shows_processes;
use crate::reach::{Reached, visit};
use crate::read::read;
use crate::readers::is_reader;
use crate::self_protection::{Given, is_single_with_variables, is_telling, look};
use crate::stopping::{is_stopper, stops};
use crate::verbs::{changing_verb, is_ours};
use crate::work;
use crate::wrappers::program;

/// How many words behind our name are looked at for a verb.
const MOST_WORDS: usize = 8;
/// How many words behind the name of a program that stops others are looked at.
const MOST_STOPPED: usize = 64;
/// How often our name is looked for in one text; one with more is held unread.
const MOST_NAMES: usize = 1_000;

/// Why a text, run as a command line, would change Toolwarden. `here` is where it would run.
#[must_use]
pub fn text_changes_toolwarden(text: &str, places: &Places, here: &Path) -> Option<String> {
    work::went_through(text);
    let by_line = match read(text) {
        Ok(line) if is_command(&line) || reads_process_file(&line) => {
            look(&line, places.belongings(), here, &FileFacts::as_written(), Given::AsText)
        }
        Ok(_) | Err(_) => None,
    };
    by_line.or_else(|| spelled(text)).or_else(|| unquoted(text).and_then(|plain| spelled(&plain)))
}

/// A text without the signs that mean nothing to a shell inside of a word: `tool""warden`.
fn unquoted(text: &str) -> Option<String> {
    text.contains(QUOTES).then(|| text.replace(QUOTES, ""))
}

const QUOTES: [char; 3] = ['"', '\'', '\\'];

/// Whether our name stands in a text once such signs are left out. One pass without a copy.
pub(super) fn names_us(text: &str) -> bool {
    const NAME: &[u8] = b"toolwarden";
    let mut matched = 0_usize;
    for byte in text.bytes().filter(|byte| !b"\"'\\".contains(byte)) {
        let byte = byte.to_ascii_lowercase();
        // No letter of the name but the first begins it anew.
        matched = match NAME.get(matched) {
            Some(next) if *next == byte => matched.saturating_add(1),
            _ => usize::from(byte == b't'),
        };
        if matched == NAME.len() {
            return true;
        }
    }
    false
}

/// Why words, run as a program with its arguments, would change Toolwarden.
#[must_use]
pub fn words_change_toolwarden<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let words: Vec<&str> = words.into_iter().collect();
    // `["sudo", "systemctl", "stop", "toolwarden"]`
    let stopper = words.iter().take(MOST_WORDS).position(|word| is_stopper(&program(word)));
    let first = words.iter().position(|word| is_toolwarden(word));
    if let Some((at, behind)) = stopper.and_then(|at| Some((at, words.get(at.saturating_add(1)..)?)))
        && first.is_none_or(|first| first > at)
    {
        let arguments: Vec<Word> = behind.iter().take(MOST_STOPPED).map(|word| Word::literal(*word)).collect();
        let name = words.get(at).map(|word| program(word)).unwrap_or_default();
        if let Some(why) = stops(&name, &arguments) {
            return Some(why);
        }
    }
    verb_behind(words.get(first?.saturating_add(1)..)?.iter().copied())
}

/// Whether a text is the name or the path of our program.
#[must_use]
pub fn is_toolwarden(text: &str) -> bool {
    program(text) == "toolwarden" || unquoted(text).is_some_and(|plain| program(&plain) == "toolwarden")
}

/// Why words behind our program's name would change something.
#[must_use]
pub fn verb_behind<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let words: Vec<Word> = words.into_iter().take(MOST_WORDS).map(Word::literal).collect();
    let verb = changing_verb(&words).filter(|verb| is_ours(verb))?;
    Some(format!("runs `toolwarden {verb}`"))
}

/// Whether a line has something that tells it from prose.
fn is_command(line: &ShellLine) -> bool {
    if line.all_redirections().any(|redirection| redirection.direction == Direction::Writes) {
        return true;
    }
    let mut is_command = false;
    visit(line, &mut |reached| {
        is_command = match reached {
            Reached::Invocation(invocation) => is_named_like_a_program(&program(invocation.name)),
            Reached::Unknown { .. } => is_single_with_variables(&line.source),
            Reached::Redirection(_) => true,
        };
        if is_command { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    is_command
}

/// Whether a command begins with this: programs that run others, and those that read or write files.
fn is_named_like_a_program(program: &str) -> bool {
    let is_other = || matches!(program, "sed" | "gsed" | "dd" | "sort" | "ps" | "pgrep" | "pidof");
    is_telling(program) || is_reader(program) || is_writer(program) || is_stopper(program) || is_other()
}

/// Whether some part of a text begins with the name of such a program.
pub(super) fn begins_like_a_line(text: &str) -> bool {
    let mut parts = text.split([';', '|', '&', '(', '{', '\n', '`']).take(MOST_PARTS);
    parts.any(|part| part.split_whitespace().next().is_some_and(|word| is_named_like_a_program(&program(word))))
}

/// How many parts of a text are looked at.
const MOST_PARTS: usize = 32;

/// Whether a reader is given a file of a process. Prose seldom begins like that.
fn reads_process_file(line: &ShellLine) -> bool {
    line.commands.iter().any(|command| {
        let is_reader = command.name.as_deref().is_some_and(|name| is_reader(&program(name)));
        is_reader && command.arguments.iter().any(|word| shows_processes(&normalise(Path::new(&word.text))))
    })
}

/// Our name with one of our verbs behind it, anywhere in a text.
pub(super) fn spelled(text: &str) -> Option<String> {
    let mut rest =
        text.split(|sign: char| sign.is_whitespace() || SIGNS.contains(sign)).filter(|word| !word.is_empty());
    let mut names = 0_usize;
    while let Some(word) = rest.next() {
        if program(word) != "toolwarden" {
            continue;
        }
        names = names.saturating_add(1);
        if names > MOST_NAMES {
            return Some("names toolwarden too often to tell what it runs".to_owned());
        }
        if let Some(why) = verb_behind(rest.clone()) {
            return Some(why);
        }
    }
    None
}

/// Signs that part words in lines and programs.
const SIGNS: &str = "'\"`;|&(){}[]<>,=$!:@\\";

#[cfg(test)]
#[path = "argued_tests.rs"]
mod tests;
