//! The porch: reads the command line and the environment, asks the rooms, prints the answer.

mod changed;
mod clerk;
mod commands;
mod environment;
mod keys;
mod output;
mod roots_copy;
mod serving;
mod store;
mod table;
mod wire;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = toolwarden_cli::Cli::parse();
    match commands::run(cli) {
        Ok(exit) => exit.into(),
        Err(error) => output::report(&error).into(),
    }
}
