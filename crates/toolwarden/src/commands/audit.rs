//! `audit`: the record, as rows, as it grows, in numbers, exported, and checked.

mod rows;
mod stats;
mod tail;
mod unknown;
mod verify;

use anyhow::Result;
use toolwarden_control::Selection;
use toolwarden_control::operations::audit_export::{Format, Request};
use toolwarden_control::operations::{AuditExport, AuditQuery, AuditStats, audit_query};

use crate::clerk::Desk;
use crate::environment;
use crate::output::{self, Exit};
use toolwarden_cli::{AuditCommand, ExportFormat, Places, RowArguments};

pub fn run(places: &Places, command: &AuditCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        AuditCommand::Query { rows, limit, format } => query(&desk, rows, *limit, format.json),
        AuditCommand::Tail { rows, lines, format } => tail::run(&desk, &selection(rows), *lines, format.json),
        AuditCommand::Stats { rows, format } => {
            let outcome = desk.ask::<AuditStats>(selection(rows))?;
            tell(&outcome.problems);
            if format.json {
                output::json(&outcome.stats)?
            } else {
                output::text(&stats::text(&outcome.stats))?
            }
            Ok(Exit::Done)
        }
        AuditCommand::Export { rows, format } => export(&desk, rows, *format),
        AuditCommand::Verify { format } => verify::run(&desk, format.json),
    }
}

fn query(desk: &Desk, arguments: &RowArguments, limit: u32, json: bool) -> Result<Exit> {
    let found = fetch(desk, &selection(arguments), limit)?;
    if found.is_empty()
        && let Some(unknown) = unknown::hint(desk, arguments)
    {
        output::remark(&unknown);
    }
    if json {
        output::json(&found)?;
    } else if found.is_empty() {
        output::text("no rows\n")?;
    } else {
        output::text(&rows::Table::of(&found).text(&found))?;
    }
    Ok(Exit::Done)
}

/// Rows, newest first, page by page, up to a limit.
fn fetch(desk: &Desk, selection: &Selection, limit: u32) -> Result<Vec<serde_json::Value>> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let left = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
        let request = audit_query::Request { selection: selection.clone(), limit: Some(left), after: after.take() };
        let page = desk.ask::<AuditQuery>(request)?;
        if found.is_empty() {
            tell(&page.problems);
        }
        found.extend(page.rows);
        after = page.next;
        if after.is_none() || found.len() >= usize::try_from(limit).unwrap_or(usize::MAX) {
            return Ok(found);
        }
    }
}

fn export(desk: &Desk, arguments: &RowArguments, format: ExportFormat) -> Result<Exit> {
    let format = match format {
        ExportFormat::Jsonl => Format::Jsonl,
        ExportFormat::Csv => Format::Csv,
        ExportFormat::Ocsf => Format::Ocsf,
        ExportFormat::Syslog => Format::Syslog,
    };
    let mut after = None;
    loop {
        let begins = after.is_none();
        let page = desk.ask::<AuditExport>(Request { selection: selection(arguments), format, after })?;
        if begins {
            tell(&page.problems);
        }
        after = page.next;
        if !output::text_read(&page.text)? || after.is_none() {
            return Ok(Exit::Done);
        }
    }
}

fn selection(arguments: &RowArguments) -> Selection {
    let now = environment::now();
    Selection {
        kind: arguments.kind.clone(),
        decision: arguments.decision.clone(),
        status: arguments.status.clone(),
        server: arguments.server.clone(),
        tool: arguments.tool.clone(),
        user: arguments.user.clone(),
        mode: arguments.mode.clone(),
        role: arguments.role.clone(),
        token: arguments.token.clone(),
        since: arguments.since.map(|when| when.resolve(now)),
        until: arguments.until.map(|when| when.resolve(now)),
    }
}

/// What is missing from an answer is said beside it.
fn tell(problems: &[String]) {
    problems.iter().for_each(|problem| output::remark(&format!("warning: {problem}")));
}
