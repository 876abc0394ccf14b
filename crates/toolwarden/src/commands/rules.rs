//! `rules`: list, check and store Cedar rules.

use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use toolwarden_control::operations::{RulesAdd, RulesRemove, modes_delete, rules_add};
use toolwarden_core::name::shown;
use toolwarden_policy::rules::Rules;
use toolwarden_policy::servers::Servers;

use crate::changed;
use crate::clerk::Desk;
use crate::output::{self, Exit};
use crate::wire::{self, House};
use toolwarden_cli::{Format, Places, PolicyArguments, RulesCommand};

pub fn run(places: &Places, command: &RulesCommand) -> Result<Exit> {
    match command {
        RulesCommand::Add { name, file, change, format } => {
            let desk = Desk::open(places, None)?;
            let request =
                rules_add::Request { name: name.clone(), text: changed::text_of(file)?, terms: changed::terms(change) };
            let done = desk.ask::<RulesAdd>(request)?;
            changed::say(&done, &format!("rules `{}` are stored", shown(name)), format.json.then_some(&done))
        }
        RulesCommand::Remove { name, change, format } => {
            let desk = Desk::open(places, None)?;
            let request = modes_delete::Request { name: name.clone(), terms: changed::terms(change) };
            let done = desk.ask::<RulesRemove>(request)?;
            changed::say(&done, &format!("rules `{}` are removed", shown(name)), format.json.then_some(&done))
        }
        RulesCommand::List { policy, format } => list(&wire::open(places, policy)?, *format),
        RulesCommand::Check { files, policy, format } => check(places, files, policy, *format),
    }
}

#[derive(Serialize)]
struct Row {
    name: String,
    source: String,
    hold: Option<String>,
    text: String,
}

fn list(house: &House, format: Format) -> Result<Exit> {
    let rows: Vec<Row> = house
        .policy
        .base()
        .rules
        .all()
        .iter()
        .map(|rule| Row {
            name: shown(&rule.name).into_owned(),
            source: rule.origin.to_string(),
            hold: rule.hold.clone(),
            text: rule.text(),
        })
        .collect();
    if format.json {
        output::json(&rows)?;
        return Ok(Exit::Done);
    }
    for row in &rows {
        output::text(&format!("// {}  {}\n{}\n\n", row.name, row.source, row.text.trim()))?;
    }
    if rows.is_empty() {
        output::text("no rules: every call is denied\n")?;
    }
    Ok(Exit::Done)
}

/// The rules here, or the given files instead of them, against the schema of the tools known here.
fn check(places: &Places, files: &[PathBuf], policy: &PolicyArguments, format: Format) -> Result<Exit> {
    let desk = Desk::open(places, policy.workspace.as_deref())?;
    let mut loaded = wire::read(desk.locations(), policy, &desk.records()?)?;
    // Tools that servers listed to a gateway. A record that cannot be read is `doctor`'s to say.
    let _ = toolwarden_pins::fill(desk.locations(), &mut loaded.input);
    let mut rule_files = loaded.input.base.rules.clone();
    if !files.is_empty() {
        rule_files.clear();
        for path in files {
            rule_files.push(wire::rule_file(path)?);
        }
    }
    let findings = match Rules::compile(&rule_files) {
        Ok(rules) => {
            let mut findings = rules.validate(&Servers::compile(&loaded.input.servers));
            findings.extend(toolwarden_advice::annotations(&rules));
            findings
        }
        Err(findings) => findings,
    };
    super::lint::print(&findings, format)
}
