//! Completions and the manual page, generated from the command line itself.

use anyhow::Result;
use clap::CommandFactory;

use crate::output::{self, Exit};
use toolwarden_cli::Cli;

pub fn completions(shell: clap_complete::Shell) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "toolwarden", &mut script);
    output::text(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

pub fn manual() -> Result<Exit> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    output::text(&String::from_utf8_lossy(&page))?;
    Ok(Exit::Done)
}
