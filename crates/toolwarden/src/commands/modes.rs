//! `modes`: list, show, check and change per-mode restrictions.

mod suggesting;

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;
use toolwarden_control::operations::{ModesDelete, ModesSet, modes_delete, modes_set, modes_suggest};
use toolwarden_control::or_nearest;
use toolwarden_core::name::shown;
use toolwarden_core::{Layer, Sourced, ToolIdentity};
use toolwarden_policy::input::ModeInput;
use toolwarden_policy::{Finding, PolicyInput};
use toolwarden_sources::SourceKind;
use toolwarden_sources::readers::roomodes;

use crate::changed;
use crate::clerk::Desk;
use crate::environment;
use crate::output::{self, BadInput, Exit};
use crate::wire::{self, House};
use toolwarden_cli::{Format, ModeArguments, ModesCommand, Places, PolicyArguments, Switch};

pub fn run(places: &Places, command: &ModesCommand) -> Result<Exit> {
    match command {
        ModesCommand::List { policy, format } => list(&wire::open(places, policy)?, *format),
        ModesCommand::Show { slug, policy, format } => show(&wire::open(places, policy)?, slug, *format),
        ModesCommand::Suggest { slug, role, token, since, format } => {
            let request = modes_suggest::Request {
                mode: slug.clone(),
                role: role.clone(),
                token: token.clone(),
                since: since.map(|when| when.resolve(environment::now())),
            };
            suggesting::suggest(places, &request, *format)
        }
        ModesCommand::Template { name, format } => suggesting::template(places, name.as_deref(), *format),
        ModesCommand::Set(arguments) => set(places, arguments),
        ModesCommand::Delete { slug, change, format } => {
            let desk = Desk::open(places, None)?;
            let request = modes_delete::Request { name: slug.clone(), terms: changed::terms(change) };
            let done = desk.ask::<ModesDelete>(request)?;
            changed::say(&done, &format!("mode `{}` is deleted", shown(slug)), format.json.then_some(&done))
        }
        ModesCommand::Validate { files, policy, format } => validate(places, files, policy, *format),
    }
}

fn set(places: &Places, arguments: &ModeArguments) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    let outcome = desk.ask::<ModesSet>(modes_set::Request {
        slug: arguments.slug.clone(),
        definition: arguments.from.as_deref().map(|path| definition(path, &arguments.slug)).transpose()?,
        name: arguments.name.clone(),
        extends: arguments.extends.clone(),
        groups: arguments.groups.clone(),
        allow_servers: arguments.allow_server.clone(),
        disallow_servers: arguments.disallow_server.clone(),
        inherit_servers: arguments.inherit_server.clone(),
        allow_tools: arguments.allow_tool.clone(),
        disallow_tools: arguments.disallow_tool.clone(),
        inherit_tools: arguments.inherit_tool.clone(),
        any_server: arguments.any_server,
        any_tool: arguments.any_tool,
        auto_review: arguments.auto_review.map(|switch| match switch {
            Switch::On => modes_set::Switch::On,
            Switch::Off => modes_set::Switch::Off,
            Switch::Inherit => modes_set::Switch::Inherit,
        }),
        terms: changed::terms(&arguments.change),
    })?;
    let said = format!("mode `{}` is set", shown(&outcome.slug));
    changed::say(&outcome.done, &said, arguments.format.json.then_some(&outcome))
}

/// A mode of a file: its keys in JSON, or a file of Roo's with a mode of that slug in it.
fn definition(path: &Path, slug: &str) -> Result<serde_json::Value> {
    let text = changed::text_of(path)?;
    if let Ok(value) = serde_json::from_str::<serde_json::Value>(&text)
        && value.get("customModes").is_none()
    {
        return Ok(value);
    }
    let reading = roomodes::read_bytes(&path.display().to_string(), Layer::UserFile, text.as_bytes());
    if let Some(error) = reading.findings.iter().find(|finding| finding.is_error()) {
        return Err(BadInput(error.to_string()).into());
    }
    let found = reading.value.iter().find(|mode| mode.slug == slug);
    let missing = || BadInput(format!("{}: there is no mode `{}` in it", path.display(), shown(slug)));
    Ok(toolwarden_sources::records::mode_content(found.ok_or_else(missing)?))
}

#[derive(Serialize)]
struct Summary<'a> {
    slug: &'a str,
    name: &'a str,
    source: String,
    refused: bool,
    faults: &'a [String],
}

fn list(house: &House, format: Format) -> Result<Exit> {
    let modes = house.policy.base().modes.sorted();
    let summary = |mode: &&toolwarden_policy::modes::Mode| -> (String, String, String, Vec<String>) {
        (mode.slug.clone(), mode.name.clone(), mode.origin.to_string(), mode.faults.clone())
    };
    let rows: Vec<_> = modes.iter().map(summary).collect();
    if format.json {
        let out: Vec<Summary<'_>> = rows
            .iter()
            .map(|(slug, name, source, faults)| Summary {
                slug,
                name,
                source: source.clone(),
                refused: !faults.is_empty(),
                faults,
            })
            .collect();
        output::json(&out)?;
        return Ok(Exit::Done);
    }
    let width = rows.iter().map(|(slug, ..)| slug.chars().count()).max().unwrap_or(0);
    for (slug, name, source, faults) in &rows {
        let refused = if faults.is_empty() { String::new() } else { format!("  REFUSED: {}", faults.join("; ")) };
        output::text(&format!("{slug:<width$}  {}  {source}{refused}\n", shown(name)))?;
    }
    Ok(Exit::Done)
}

/// Whether a mode exists; else a sentence with the nearest one.
pub(super) fn known(house: &House, slug: &str) -> Result<(), String> {
    let modes = &house.policy.base().modes;
    if modes.get(slug).is_some() {
        return Ok(());
    }
    let slugs: Vec<&str> = modes.sorted().iter().map(|mode| mode.slug.as_str()).collect();
    let all = format!("known are {}", slugs.join(", "));
    Err(format!("there is no mode `{}`; {}", shown(slug), or_nearest(slug, slugs, &all)))
}

#[derive(Serialize)]
struct Shown<'a> {
    slug: &'a str,
    name: &'a str,
    source: String,
    faults: &'a [String],
    extends: Option<&'a str>,
    groups: Option<&'a [String]>,
    allowed_servers: Option<Vec<&'a str>>,
    disallowed_servers: Vec<&'a str>,
    allowed_tools: Option<Vec<String>>,
    disallowed_tools: Vec<String>,
    days: &'a [String],
    hours: &'a [String],
    time_zone: Option<&'a str>,
    conditions: &'a toolwarden_policy::input::Conditions,
}

fn show(house: &House, slug: &str, format: Format) -> Result<Exit> {
    known(house, slug).map_err(BadInput)?;
    let compiled = house.policy.base().modes.get(slug);
    let input = house.loaded.input.base.modes.iter().rfind(|mode| mode.slug == slug);
    let built_in = compiled.map(|mode| ModeInput::unrestricted(&mode.slug, &mode.name, mode.origin.clone()));
    let (Some(compiled), Some(mode)) = (compiled, input.or(built_in.as_ref())) else { return Ok(Exit::Failed) };
    let names = |list: &'_ [Sourced<String>]| -> Vec<String> { list.iter().map(|name| name.value.clone()).collect() };
    let allowed = mode.allowed_servers.as_deref().map(names);
    let disallowed = names(&mode.disallowed_servers);
    let shown_mode = Shown {
        slug: &mode.slug,
        name: &mode.name,
        source: mode.origin.to_string(),
        faults: &compiled.faults,
        extends: mode.extends.as_ref().map(|parent| parent.value.as_str()),
        groups: mode.groups.as_deref(),
        allowed_servers: allowed.as_ref().map(|names| names.iter().map(String::as_str).collect()),
        disallowed_servers: disallowed.iter().map(String::as_str).collect(),
        allowed_tools: mode.allowed_tools.as_deref().map(tools),
        disallowed_tools: tools(&mode.disallowed_tools),
        days: mode.window.as_ref().map(|window| window.days.as_slice()).unwrap_or_default(),
        hours: mode.window.as_ref().map(|window| window.hours.as_slice()).unwrap_or_default(),
        time_zone: mode.window.as_ref().map(|window| window.time_zone.as_str()),
        conditions: &mode.conditions,
    };
    if format.json {
        output::json(&shown_mode)?
    } else {
        output::text(&text(&shown_mode))?
    }
    Ok(Exit::Done)
}

fn tools(list: &[Sourced<ToolIdentity>]) -> Vec<String> {
    list.iter().map(|tool| tool.value.to_string()).collect()
}

fn text(mode: &Shown<'_>) -> String {
    let list =
        |names: &[&str]| if names.is_empty() { "none".to_owned() } else { shown(&names.join(", ")).into_owned() };
    let owned = |names: &[String]| list(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut lines = vec![format!("{} ({})  {}", mode.slug, shown(mode.name), mode.source)];
    lines.extend(mode.faults.iter().map(|fault| format!("  REFUSED            {fault}")));
    lines.extend(mode.extends.map(|parent| format!("  extends            {parent}")));
    lines.push(format!("  groups             {}", mode.groups.map_or("all".to_owned(), owned)));
    lines.push(format!("  allowed servers    {}", mode.allowed_servers.as_deref().map_or("all".to_owned(), list)));
    lines.push(format!("  disallowed servers {}", list(&mode.disallowed_servers)));
    lines.push(format!("  allowed tools      {}", mode.allowed_tools.as_deref().map_or("all".to_owned(), owned)));
    lines.push(format!("  disallowed tools   {}", owned(&mode.disallowed_tools)));
    if let Some(zone) = mode.time_zone {
        lines.push(format!("  hours              {} {} {zone}", owned(mode.days), owned(mode.hours)));
    }
    lines.extend(
        mode.conditions.iter().map(|(key, texts)| format!("  condition          {key}: {}", texts.join(" or "))),
    );
    lines.push(String::new());
    lines.join("\n")
}

/// Findings about modes only: of everything here, or of the given files without saving anything.
fn validate(places: &Places, files: &[PathBuf], policy: &PolicyArguments, format: Format) -> Result<Exit> {
    if files.is_empty() {
        let findings = super::lint::here(places, policy)?;
        let about_modes: Vec<Finding> = findings.into_iter().filter(is_about_modes).collect();
        return super::lint::print(&about_modes, format);
    }
    // The servers configured here say which names are known; the files' modes replace the rest.
    let desk = Desk::open(places, policy.workspace.as_deref())?;
    let servers = desk
        .records()
        .and_then(|store| wire::read(desk.locations(), policy, &store))
        .map(|loaded| loaded.input.servers)
        .unwrap_or_default();
    let mut input = PolicyInput { servers, ..PolicyInput::default() };
    let mut of_readers = Vec::new();
    for path in files {
        let bytes = std::fs::read(path).map_err(|error| BadInput(format!("{}: {error}", path.display())))?;
        let reading = roomodes::read_bytes(&path.display().to_string(), Layer::UserFile, &bytes);
        of_readers.extend(reading.findings);
        input.base.modes.extend(reading.value);
    }
    let of_judge = toolwarden_advice::lint(&input).into_iter().filter(is_about_modes).collect();
    let findings = toolwarden_sources::merged(&of_readers, of_judge);
    super::lint::print(&findings, format)
}

/// A finding of the judge about a mode, or of a reader about a file of modes.
fn is_about_modes(finding: &Finding) -> bool {
    finding.code.starts_with("mode")
        || finding.message.contains("mode `")
        || matches!(finding.code, "unknown_mode" | "deny_list_on_open_mode" | "admin_server_reachable")
        || SourceKind::of(Path::new(&*finding.origin.source)) == Some(SourceKind::Modes)
}
