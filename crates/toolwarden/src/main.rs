//! The porch: reads the command line and the environment, asks the rooms, prints the answer.

mod changed;
mod clerk;
mod commands;
mod data_directory;
mod environment;
mod keys;
mod output;
mod roots_copy;
mod serving;
mod store;
mod table;
mod wire;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches};
use toolwarden_cli::Cli;

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let for_scripts = wants_json(&matches);
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match commands::run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => output::report(&error, for_scripts).into(),
    }
}

/// Whether `--json` was asked for, whichever command has it.
fn wants_json(matches: &ArgMatches) -> bool {
    let here = matches.try_get_one::<bool>("json").ok().flatten();
    here == Some(&true) || matches.subcommand().is_some_and(|(_, below)| wants_json(below))
}
