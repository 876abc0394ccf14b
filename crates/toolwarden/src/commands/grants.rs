//! `grants`: answers given in advance, for one run or so many calls.

use anyhow::Result;
use toolwarden_cli::{GrantsCommand, Places};
use toolwarden_control::operations::grants_list::GrantView;
use toolwarden_control::operations::{GrantsIssue, GrantsList, GrantsRevoke, Nothing, grants_issue, grants_revoke};
use toolwarden_core::name::shown;

use crate::clerk::Desk;
use crate::environment;
use crate::output::{self, Exit, remark_text};
use crate::table::{self, Cell, Last};

pub fn run(places: &Places, command: &GrantsCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        GrantsCommand::Issue(arguments) => {
            let now = environment::now();
            let request = grants_issue::Request {
                entry: arguments.entry.clone(),
                token: arguments.token.clone(),
                user: arguments.user.clone(),
                run: arguments.run.clone(),
                calls: arguments.calls,
                expires_at: arguments.expires.map(|when| when.after(now)),
                note: arguments.note.clone(),
            };
            let grant = desk.ask::<GrantsIssue>(request)?;
            grant.findings.iter().for_each(|finding| output::remark(&remark_text(finding)));
            if arguments.format.json {
                output::json(&grant)?;
            } else {
                let (entry, whose) = (grant.entry(), grant.whose());
                output::text(&format!("grant {}: {entry} for {whose}, until {}\n", grant.id, grant.expires_at))?;
            }
        }
        GrantsCommand::List { format } => {
            let grants = desk.ask::<GrantsList>(Nothing {})?;
            if format.json {
                output::json(&grants)?;
            } else if grants.is_empty() {
                output::text("there are no grants\n")?;
            } else {
                output::text(&list(&grants))?;
            }
        }
        GrantsCommand::Revoke { id, format } => {
            let revoked = desk.ask::<GrantsRevoke>(grants_revoke::Request { id: id.clone() })?;
            if format.json {
                output::json(&revoked)?;
            } else {
                output::text(&format!("grant {} is taken back: the next call asks\n", revoked.id))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn list(grants: &[GrantView]) -> String {
    let row = |grant: &GrantView| {
        let left = match (grant.revoked, grant.calls_left) {
            (true, _) => "taken back".to_owned(),
            (false, Some(calls)) => calls.to_string(),
            (false, None) => "any".to_owned(),
        };
        vec![
            Cell::plain(grant.id.as_str()),
            Cell::plain(grant.entry()),
            Cell::plain(left),
            Cell::plain(grant.expires_at.as_str()),
            Cell::plain(shown(&grant.claims.by)),
            Cell::plain(grant.whose()),
        ]
    };
    table::text(&["ID", "TOOL", "CALLS", "UNTIL", "BY", "FOR"], grants.iter().map(row).collect(), Last::Cut)
}
