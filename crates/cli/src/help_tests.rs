//! The help of every command, read from the definition itself.

use clap::{Command, CommandFactory};

use super::Cli;

/// Commands without `--json`: two serve and print no data, and `audit export` has `--format`.
const WITHOUT_JSON: [&str; 3] = ["toolwarden serve", "toolwarden stdio", "toolwarden audit export"];

/// Every command that people are shown, by its whole name.
fn commands(command: &Command, before: &str, found: &mut Vec<(String, Command)>) {
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        let name = format!("{before} {}", inner.get_name());
        found.push((name.clone(), inner.clone()));
        commands(inner, &name, found);
    }
}

fn all() -> Vec<(String, Command)> {
    let mut found = Vec::new();
    commands(&Cli::command(), "toolwarden", &mut found);
    found
}

#[test]
fn every_command_says_what_it_does_with_an_example() {
    let found = all();
    assert!(found.len() > 60, "{} commands", found.len());
    let mut lacking = Vec::new();
    for (name, mut command) in found {
        if command.get_about().is_none_or(|about| about.to_string().trim().is_empty()) {
            lacking.push(format!("{name}: what it does"));
        }
        let help = command.render_long_help().to_string();
        let examples = help.split_once("Example").map(|(_, after)| after).unwrap_or_default();
        if !examples.contains(&name) {
            lacking.push(format!("{name}: an example with its own name"));
        }
    }
    assert!(lacking.is_empty(), "{lacking:#?}");
}

#[test]
fn every_argument_is_described() {
    let described = |argument: &clap::Arg| argument.get_help().is_some_and(|help| !help.to_string().trim().is_empty());
    let mut lacking = Vec::new();
    for (name, command) in all() {
        let arguments = command.get_arguments().filter(|argument| !argument.is_hide_set() && !described(argument));
        lacking.extend(arguments.map(|argument| format!("{name}: {}", argument.get_id())));
    }
    assert!(lacking.is_empty(), "{lacking:#?}");
}

#[test]
fn whatever_prints_data_prints_json() {
    let prints = |command: &Command| command.get_arguments().any(|argument| argument.get_long() == Some("json"));
    let leaves = all().into_iter().filter(|(_, command)| command.get_subcommands().next().is_none());
    let lacking: Vec<_> = leaves
        .filter(|(name, command)| !prints(command) && !WITHOUT_JSON.contains(&name.as_str()))
        .map(|(name, _)| name)
        .collect();
    assert!(lacking.is_empty(), "{lacking:#?}");
    let unknown: Vec<_> = WITHOUT_JSON.iter().filter(|name| !all().iter().any(|(known, _)| known == *name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
