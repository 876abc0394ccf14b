//! One file per verb. Each takes its arguments, asks the rooms, prints, and says how to exit.

mod admin;
mod allow;
mod allowlist;
mod approvals;
mod audit;
mod describe;
mod doctor;
mod explain;
mod grants;
mod lint;
mod modes;
mod policy;
mod reference;
mod reload;
mod roles;
mod rules;
mod serve;
mod servers;
mod sessions;
mod settings;
mod stdio;
mod tokens;
mod tools;
mod trust;
mod unblock;
mod vault;

use anyhow::Result;

use crate::output::Exit;
use toolwarden_cli::{Cli, Command};

pub fn run(cli: Cli) -> Result<Exit> {
    let places = cli.places;
    match cli.command {
        Command::Serve(arguments) => serve::run(&places, &arguments),
        Command::Stdio(arguments) => stdio::run(&places, &arguments),
        Command::DemoServer => {
            toolwarden_demo::serve(std::io::stdin().lock(), std::io::stdout().lock())?;
            Ok(Exit::Done)
        }
        Command::Explain(arguments) => explain::run(&places, &arguments),
        Command::Lint(arguments) => lint::run(&places, &arguments),
        Command::Describe(arguments) => describe::run(&places, &arguments),
        Command::Allow(arguments) => allow::add(&places, &arguments),
        Command::Disallow(arguments) => allow::remove(&places, &arguments),
        Command::Allowlist(arguments) => allowlist::run(&places, &arguments),
        Command::Unblock(arguments) => unblock::run(&places, &arguments),
        Command::Approvals(command) => approvals::run(&places, &command),
        Command::Grants(command) => grants::run(&places, &command),
        Command::Modes(command) => modes::run(&places, &command),
        Command::Roles(command) => roles::run(&places, &command),
        Command::Rules(command) => rules::run(&places, &command),
        Command::Settings(command) => settings::run(&places, &command),
        Command::Admin(command) => admin::run(&places, &command),
        Command::Policy(command) => policy::run(&places, &command),
        Command::Reload(arguments) => reload::run(&places, &arguments),
        Command::Trust(arguments) => trust::run(&places, &arguments),
        Command::Servers(command) => servers::run(&places, &command),
        Command::Sessions(command) => sessions::run(&places, &command),
        Command::Tools(command) => tools::run(&places, &command),
        Command::Tokens(command) => tokens::run(&places, &command),
        Command::Vault(command) => vault::run(&places, &command),
        Command::Audit(command) => audit::run(&places, &command),
        Command::Doctor(arguments) => doctor::run(&places, &arguments),
        Command::Completions { shell } => reference::completions(shell),
        Command::Man => reference::manual(),
    }
}
