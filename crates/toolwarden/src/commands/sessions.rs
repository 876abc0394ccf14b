//! `sessions`: open conversations with clients, and the mode each is in.

use anyhow::Result;
use toolwarden_control::SessionView;
use toolwarden_control::operations::{Nothing, SessionsList, SessionsMode, sessions_mode};
use toolwarden_core::name::shown;

use crate::clerk::Desk;
use crate::output::{self, Exit};
use crate::table::{self, Cell, Last};
use toolwarden_cli::{Places, SessionsCommand};

pub fn run(places: &Places, command: &SessionsCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        SessionsCommand::List { format } => {
            let found = desk.ask::<SessionsList>(Nothing {})?;
            if format.json {
                output::json(&found.sessions)?;
            } else if !found.is_running {
                output::text("no session is open: no gateway runs\n")?;
            } else {
                output::text(&list(&found.sessions))?;
            }
        }
        SessionsCommand::Mode { id, mode, format, .. } => {
            let request = sessions_mode::Request { id: id.clone(), mode: mode.clone() };
            let session = desk.ask::<SessionsMode>(request)?;
            if format.json {
                output::json(&session)?;
            } else {
                let mode = session
                    .mode
                    .as_deref()
                    .map_or("no mode of its own".to_owned(), |mode| format!("the mode `{}`", shown(mode)));
                output::text(&format!("session {} is in {mode}, from its next call on\n", session.id))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn list(sessions: &[SessionView]) -> String {
    if sessions.is_empty() {
        return "no session is open\n".to_owned();
    }
    let cell = |text: &Option<String>| Cell::plain(text.as_deref().map_or("-".into(), shown));
    let row = |session: &SessionView| {
        vec![
            Cell::plain(session.id.as_str()),
            cell(&session.user),
            cell(&session.role),
            cell(&session.mode),
            Cell::plain(session.server.as_deref().map_or("all".into(), shown)),
            Cell::plain(session.version.as_str()),
            cell(&session.client),
        ]
    };
    let headings = ["ID", "USER", "ROLE", "MODE", "SERVER", "PROTOCOL", "CLIENT"];
    table::text(&headings, sessions.iter().map(row).collect(), Last::Cut)
}
