//! `allowlist`: the lists that count, entry by entry, with layer and place.

use anyhow::Result;
use serde::Serialize;
use toolwarden_core::name::shown;
use toolwarden_core::{Entry, Sourced};
use toolwarden_policy::shell::ShellEntry;

use crate::cli::{AllowlistArguments, Places};
use crate::output::{self, Exit};
use crate::wire::{self, House};

#[derive(Serialize)]
struct Row {
    kind: &'static str,
    entry: String,
    layer: &'static str,
    source: String,
    /// Whether this list counts; another layer may replace it.
    counts: bool,
    /// Why the entry can never match.
    invalid: Option<String>,
}

pub fn run(places: &Places, arguments: &AllowlistArguments) -> Result<Exit> {
    let house = wire::open(places, &arguments.policy)?;
    let user = arguments.user.as_deref().unwrap_or(&house.locations.user);
    let mut rows = Vec::new();
    if !arguments.shell {
        rows.extend(mcp(&house, user));
    }
    rows.extend(terminal(&house, user));
    if arguments.format.json {
        output::json(&rows)?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        output::text("no entries: every call that is not otherwise allowed is held\n")?;
        return Ok(Exit::Done);
    }
    let width = rows.iter().map(|row| row.entry.chars().count()).max().unwrap_or(0);
    for row in &rows {
        let mark = match (&row.invalid, row.counts) {
            (Some(fault), _) => format!("  INVALID: {fault}"),
            (None, false) => "  (replaced by a stronger layer)".to_owned(),
            (None, true) => String::new(),
        };
        output::text(&format!("{:<8} {:<width$}  {} ({}){mark}\n", row.kind, row.entry, row.source, row.layer))?;
    }
    Ok(Exit::Done)
}

/// The lists of one kind, strongest layer first, each with whether it counts (PERM-2).
fn mcp(house: &House, user: &str) -> Vec<Row> {
    let input = &house.loaded.input;
    let fault = |text: &str| Entry::parse(text).err().map(|fault| fault.to_string());
    let row = |counts: bool| move |entry: &Sourced<String>| row("mcp", entry, counts, fault(&entry.value));
    let is_local = user == house.locations.user;
    let admin = input.base.admin.as_ref().filter(|admin| admin.enabled);
    let files = input.local.files.iter().filter(|_| is_local);
    let defined = files.clone().any(|file| file.broken || file.mcp_allowlist.is_some());
    let mut rows: Vec<Row> = admin.iter().flat_map(|admin| &admin.mcp_tool_allowlist).map(row(true)).collect();
    rows.extend(files.flat_map(|file| file.mcp_allowlist.iter().flatten()).map(row(admin.is_none())));
    let counts = admin.is_none() && !defined;
    rows.extend(input.users.get(user).into_iter().flat_map(|user| &user.mcp_allowlist).map(row(counts)));
    if is_local {
        let always = input.servers.iter().flat_map(|server| {
            server
                .always_allow
                .iter()
                .map(|tool| Sourced::new(format!("{}:{}", server.name, tool.value), tool.origin.clone()))
        });
        rows.extend(always.map(|entry| row(counts)(&entry)));
    }
    rows
}

fn terminal(house: &House, user: &str) -> Vec<Row> {
    let input = &house.loaded.input;
    let fault = |text: &str| ShellEntry::parse(text).err().map(|fault| fault.to_string());
    let row = |counts: bool| move |entry: &Sourced<String>| row("terminal", entry, counts, fault(&entry.value));
    let is_local = user == house.locations.user;
    let admin = input.base.admin.as_ref().filter(|admin| admin.enabled);
    let files = input.local.files.iter().filter(|_| is_local);
    let defined = files.clone().any(|file| file.broken || file.terminal_allowlist.is_some());
    let mut rows: Vec<Row> = admin.iter().flat_map(|admin| &admin.allowed).map(row(true)).collect();
    rows.extend(files.flat_map(|file| file.terminal_allowlist.iter().flatten()).map(row(admin.is_none())));
    let stored = input.users.get(user).into_iter().flat_map(|user| &user.terminal_allowlist);
    rows.extend(stored.map(row(admin.is_none() && !defined)));
    rows
}

fn row(kind: &'static str, entry: &Sourced<String>, counts: bool, invalid: Option<String>) -> Row {
    Row {
        kind,
        entry: shown(&entry.value).into_owned(),
        layer: entry.origin.layer.as_str(),
        source: entry.origin.to_string(),
        counts: counts && invalid.is_none(),
        invalid,
    }
}
