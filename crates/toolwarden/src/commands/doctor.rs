//! `doctor`: looks at everything a running Toolwarden depends on, and says what to do next.

mod classifier;
mod files;
mod held;
mod machine;
mod policy;
mod record;
mod upstreams;

use anyhow::Result;
use serde::Serialize;
use toolwarden_sources::Locations;

use crate::clerk::Desk;
use crate::data_directory::{self, Fault};
use crate::environment;
use crate::output::{self, Colour, Exit, coloured};
use toolwarden_cli::{DoctorArguments, Places, PolicyArguments};

/// SELF-3: said every time, because it is what people get wrong.
const BOUNDARY: &str = "Approval is a security boundary only when agents run under another user. \
An agent that runs as you can change what you can change. Allowlists and the classifier are convenience, not a boundary.";

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Ok,
    Warning,
    Problem,
}

/// One check.
#[derive(Debug, Serialize)]
pub struct Check {
    pub name: String,
    pub status: State,
    pub message: String,
    /// What to do about it.
    pub next: Option<String>,
}

impl Check {
    pub fn ok(name: &str, message: impl Into<String>) -> Self {
        Self { name: name.to_owned(), status: State::Ok, message: message.into(), next: None }
    }

    pub fn warning(name: &str, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { name: name.to_owned(), status: State::Warning, message: message.into(), next: Some(next.into()) }
    }

    pub fn problem(name: &str, message: impl Into<String>, next: impl Into<String>) -> Self {
        Self { name: name.to_owned(), status: State::Problem, message: message.into(), next: Some(next.into()) }
    }
}

#[derive(Serialize)]
struct Examination {
    /// Whether there is no problem.
    ok: bool,
    checks: Vec<Check>,
    boundary: &'static str,
}

pub fn run(places: &Places, arguments: &DoctorArguments) -> Result<Exit> {
    let locations = environment::locations(places, arguments.workspace.as_deref())?;
    let checks = match data_directory::fault(&locations) {
        Some(fault) => without_data(&locations, fault),
        None => examine(places, arguments, &locations)?,
    };
    let ok = checks.iter().all(|check| check.status != State::Problem);
    let examination = Examination { ok, checks, boundary: BOUNDARY };
    if arguments.format.json {
        output::json(&examination)?;
    } else {
        output::text(&text(&examination))?;
    }
    Ok(if ok { Exit::Done } else { Exit::Failed })
}

/// What can be looked at without the data directory.
fn without_data(locations: &Locations, fault: Fault) -> Vec<Check> {
    let rest =
        "policy, store, key, journal, servers and the running server were not checked: all need the data directory";
    let checks = [
        Check::problem("data directory", fault.what, fault.next),
        files::config_directory(locations),
        Check::warning("the rest", rest, "repair the data directory first, then run doctor again"),
    ];
    checks.into_iter().collect()
}

fn examine(places: &Places, arguments: &DoctorArguments, locations: &Locations) -> Result<Vec<Check>> {
    let policy_arguments = PolicyArguments { workspace: arguments.workspace.clone(), catalog: Vec::new() };
    let desk = Desk::open(places, arguments.workspace.as_deref())?;
    // Why there are none, where there should be some, is the store's own check.
    let known = desk.records_and_own().unwrap_or_default();
    let (mut checks, loaded) = policy::check(locations, &policy_arguments, &known);
    checks.extend(files::check(locations));
    checks.extend(record::check(locations));
    checks.extend(loaded.iter().flat_map(|loaded| upstreams::check(loaded, locations, &desk)));
    checks.extend(upstreams::running(&desk));
    checks.extend(loaded.iter().filter_map(classifier::check));
    checks.extend(machine::policy_in_force(&desk, locations));
    checks.extend(loaded.as_ref().map(|loaded| held::check(&desk, loaded, locations)));
    checks.push(machine::port(&desk, loaded.as_ref(), arguments.listen));
    checks.push(machine::disk(locations));
    Ok(checks)
}

fn text(examination: &Examination) -> String {
    let checks = &examination.checks;
    let width = checks.iter().map(|check| check.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let word = match check.status {
            State::Ok => coloured("ok     ", Colour::Green),
            State::Warning => coloured("warning", Colour::Yellow),
            State::Problem => coloured("PROBLEM", Colour::Red),
        };
        text.push_str(&format!("{word}  {:<width$}  {}\n", check.name, check.message));
        if let Some(next) = &check.next {
            text.push_str(&format!("         {:<width$}  next: {next}\n", ""));
        }
    }
    let count = |state: State| checks.iter().filter(|check| check.status == state).count();
    let (problems, warnings) = (count(State::Problem), count(State::Warning));
    text.push_str(&format!("\n{problems} problem(s), {warnings} warning(s)\n\n{}\n", examination.boundary));
    text
}
