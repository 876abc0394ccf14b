//! Texts for agents. They say whom to ask, never how to permit something: an agent that can run commands would.

use std::borrow::Cow;

/// How a command line of ours begins in a text for people.
const COMMAND: &str = "`toolwarden ";
const ELSEWHERE: &str = "Toolwarden";

/// What an agent is told of a call that waits for a person.
#[must_use]
pub fn ask_for_approval(approval: &str) -> String {
    format!("ask the user to approve call {approval} in Toolwarden, then repeat it")
}

/// A text without the command lines that stand in it for people.
#[must_use]
pub fn without_commands(text: &str) -> Cow<'_, str> {
    if !text.contains(COMMAND) {
        return text.into();
    }
    let mut told = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, command)) = rest.split_once(COMMAND) {
        told.push_str(before);
        told.push_str(ELSEWHERE);
        rest = command.split_once('`').map_or("", |(_, after)| after);
    }
    told.push_str(rest);
    told.into()
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
