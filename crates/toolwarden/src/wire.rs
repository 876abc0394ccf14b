//! Builds what commands need: the files of this place, and the policy they make.

use std::path::Path;

use anyhow::Result;
use toolwarden_core::{Layer, Origin, Records};
use toolwarden_pins as pins;
use toolwarden_policy::input::{Declared, Launch, RuleFile, ServerInput};
use toolwarden_policy::{Finding, PolicySet, Refused, Severity, shipped};
use toolwarden_sources::readers::catalog;
use toolwarden_sources::{Loaded, Locations, Refusal, load, merged, records};

use crate::clerk::Desk;
use crate::data_directory;
use crate::output::{self, BadInput, finding_text, plain_finding_text};
use crate::serving::DEMO;
use toolwarden_cli::{Places, PolicyArguments};

/// A policy and the files it was made of.
pub struct House {
    pub locations: Locations,
    pub loaded: Loaded,
    pub policy: PolicySet,
}

/// Loads and compiles the policy that counts here, and says what is wrong with its files.
pub fn open(places: &Places, arguments: &PolicyArguments) -> Result<House> {
    let house = open_quietly(places, arguments)?;
    warn(&house.loaded);
    Ok(house)
}

fn open_quietly(places: &Places, arguments: &PolicyArguments) -> Result<House> {
    let desk = Desk::open(places, arguments.workspace.as_deref())?;
    let loaded = load_here(&desk)?.map_err(|refusal| BadInput(refusal.to_string()))?;
    compiled(desk.locations(), complete(loaded, desk.locations(), arguments)?)
}

/// Loads what counts where a desk stands. A config that is broken is said to be, rather than that no store was found.
pub fn load_here(desk: &Desk) -> Result<Result<Loaded, Refusal>> {
    match desk.records_and_own() {
        Ok((store, own)) => Ok(load(desk.locations(), &store).map(|mut loaded| {
            loaded.input.servers.extend(own.iter().map(|name| demo(name, &store)));
            loaded
        })),
        // Nothing of what is in it can be read.
        Err(error) if data_directory::fault(desk.locations()).is_some() => Err(error),
        Err(error) => match load(desk.locations(), &Records::default()) {
            Ok(_) => Err(error),
            refused => Ok(refused),
        },
    }
}

/// A server that `serve --demo` keeps in memory, as far as it is judged.
pub fn demo(name: &str, store: &Records) -> ServerInput {
    let mut input = ServerInput::new(name, Origin::record(Layer::Config, DEMO), Declared::ByOperator);
    input.launch = Launch::Command { command: "toolwarden".to_owned(), arguments: vec!["demo-server".to_owned()] };
    records::lay_over(store, &mut input);
    input
}

/// The policy of these files and records.
pub fn house(locations: &Locations, arguments: &PolicyArguments, store: &Records) -> Result<House> {
    compiled(locations, read(locations, arguments, store)?)
}

fn compiled(locations: &Locations, loaded: Loaded) -> Result<House> {
    let locations = locations.clone();
    let policy = PolicySet::compile(&loaded.input).map_err(|refused| policy_refused(&refused))?;
    Ok(House { locations, loaded, policy })
}

/// The same, with the tools of servers that a gateway has seen: it need not run now.
pub fn with_seen_tools(mut house: House) -> Result<House> {
    pins::fill(&house.locations, &mut house.loaded.input)?;
    house.policy = PolicySet::compile(&house.loaded.input).map_err(|refused| policy_refused(&refused))?;
    Ok(house)
}

/// The findings of `lint` that whoever runs a server must see: errors, warnings and unsafe shapes (MODE-6).
pub fn findings(loaded: &Loaded) -> Vec<Finding> {
    let mut findings = merged(&loaded.findings, toolwarden_advice::lint(&loaded.input));
    findings.retain(|finding| finding.severity != Severity::Note);
    findings
}

/// The same, said on stderr when a server starts.
pub fn warn_of_all(loaded: &Loaded) {
    findings(loaded).iter().for_each(|finding| output::remark(&finding_text(finding)));
}

/// Says on stderr what is wrong with files that are used all the same: a broken permissions.json
/// grants nothing, and whoever wonders why must not have to look for it.
pub fn warn(loaded: &Loaded) {
    for finding in loaded.findings.iter().filter(|finding| finding.severity != Severity::Note) {
        output::remark(&finding_text(&finding.of_policy()));
    }
}

/// Loads the files that count here, with the shipped rules and the catalogs given.
pub fn read(locations: &Locations, arguments: &PolicyArguments, store: &Records) -> Result<Loaded> {
    let loaded = load(locations, store).map_err(|refusal| BadInput(refusal.to_string()))?;
    complete(loaded, locations, arguments)
}

/// Adds what the files do not hold: the shipped rules and the catalogs given.
pub fn complete(mut loaded: Loaded, locations: &Locations, arguments: &PolicyArguments) -> Result<Loaded> {
    if loaded.shipped_rules {
        loaded.input.base.rules.push(shipped_rules());
    }
    for argument in &arguments.catalog {
        apply_catalog(&mut loaded, locations, argument)?;
    }
    Ok(loaded)
}

pub fn shipped_rules() -> RuleFile {
    RuleFile { origin: Origin::new(Layer::Shipped, shipped::RULES_SOURCE, 1, 1), text: shipped::RULES.to_owned() }
}

fn apply_catalog(loaded: &mut Loaded, locations: &Locations, argument: &str) -> Result<()> {
    let findings = catalog::apply(argument, &locations.working_directory, &mut loaded.input)
        .map_err(|error| BadInput(error.to_string()))?;
    let guessed = findings.iter().filter(|finding| finding.code == catalog::GUESSED);
    guessed.for_each(|finding| output::remark(&finding_text(&finding.of_policy())));
    Ok(())
}

pub fn policy_refused(refused: &Refused) -> BadInput {
    // Without colours: a server logs this, and tells it.
    let findings: Vec<String> = refused.0.iter().map(plain_finding_text).collect();
    BadInput(format!("the policy cannot be used\n{}", findings.join("\n")))
}

/// A file as rules, for checking it by itself.
pub fn rule_file(path: &Path) -> Result<RuleFile> {
    let text = std::fs::read_to_string(path).map_err(|error| BadInput(format!("{}: {error}", path.display())))?;
    Ok(RuleFile { origin: Origin::new(Layer::Config, path.display().to_string(), 1, 1), text })
}
