//! Completions and the manual page, generated from the command line itself.

use anyhow::Result;
use clap::CommandFactory;

use crate::cli::Cli;
use crate::output::Exit;

pub fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    clap_complete::generate(shell, &mut Cli::command(), "toolwarden", &mut std::io::stdout());
    Ok(Exit::Done)
}

pub fn manual() -> Result<Exit> {
    clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?;
    Ok(Exit::Done)
}
