//! `allowlist`: the lists that count, entry by entry, with layer and place.

use anyhow::Result;
use toolwarden_control::operations::AllowlistShow;
use toolwarden_control::operations::allowlist_show::Request;
use toolwarden_core::name;

use crate::clerk::Desk;
use crate::output::{self, Exit, remark_text};
use toolwarden_cli::{AllowlistArguments, Places};

pub fn run(places: &Places, arguments: &AllowlistArguments) -> Result<Exit> {
    let desk = Desk::open(places, arguments.policy.workspace.as_deref())?;
    let shown = desk.ask::<AllowlistShow>(Request {
        place: desk.place(),
        user: arguments.user.clone(),
        shell: arguments.shell,
        catalogs: arguments.policy.catalog.clone(),
    })?;
    shown.findings.iter().for_each(|finding| output::remark(&remark_text(finding)));
    let rows = shown.rows;
    if arguments.format.json {
        output::json(&rows)?;
        return Ok(Exit::Done);
    }
    if rows.is_empty() {
        output::text("no entries: every call that is not otherwise allowed is held\n")?;
        return Ok(Exit::Done);
    }
    let width = rows.iter().map(|row| name::shown(&row.entry).chars().count()).max().unwrap_or(0);
    for row in &rows {
        let mark = match (&row.invalid, row.counts) {
            (Some(fault), _) => format!("  INVALID: {fault}"),
            (None, false) => "  (replaced by a stronger layer)".to_owned(),
            (None, true) => String::new(),
        };
        let (entry, source) = (name::shown(&row.entry), name::shown(&row.source));
        output::text(&format!("{:<8} {entry:<width$}  {source} ({}){mark}\n", row.kind, row.layer))?;
        if let Some(rule) = &row.rule {
            output::text(&format!("         {}\n", name::shown(rule)))?;
        }
    }
    Ok(Exit::Done)
}
