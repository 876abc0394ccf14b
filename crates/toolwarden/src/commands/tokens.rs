//! `tokens`: credentials for agents and persons' clients.

use std::path::PathBuf;

use anyhow::Result;
use toolwarden_control::operations::tokens_issue::Request;
use toolwarden_control::operations::tokens_list::TokenView;
use toolwarden_control::operations::{Nothing, TokensIssue, TokensList, TokensRevoke, TokensRotate, tokens_revoke};
use toolwarden_core::name::shown;
use toolwarden_core::{Bearer, Claims};

use crate::clerk::Desk;
use crate::environment;
use crate::output::{self, BadInput, Colour, Exit};
use crate::table::{self, Cell, Last};
use toolwarden_cli::{IssueArguments, Places, TokensCommand};

const HEADINGS: [&str; 7] = ["ID", "STATE", "BEARER", "USER", "CALLS", "EXPIRES", "GOOD FOR"];

pub fn run(places: &Places, command: &TokensCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        TokensCommand::Issue(arguments) => issue(&desk, arguments)?,
        TokensCommand::List { format } => {
            let listed = desk.ask::<TokensList>(Nothing {})?;
            for id in &listed.not_authentic {
                output::remark(&format!(
                    "warning: token {} was changed in the database: it counts as nobody's",
                    shown(id)
                ));
            }
            if format.json { output::json(&listed.tokens)? } else { output::text(&list(&listed.tokens))? }
        }
        TokensCommand::Rotate { id, format } => {
            let rotated = desk.ask::<TokensRotate>(tokens_revoke::Request { id: id.clone() })?;
            let said = format!("token {} has another secret; the former one counts no more\n", shown(&rotated.id));
            show(&rotated, &said, &rotated.token.0, format.json)?;
        }
        TokensCommand::Revoke { id, format } => {
            let revoked = desk.ask::<TokensRevoke>(tokens_revoke::Request { id: id.clone() })?;
            if format.json {
                output::json(&revoked)?;
            } else {
                output::text(&format!("token {} is revoked\n", shown(&revoked.id)))?;
            }
        }
    }
    Ok(Exit::Done)
}

fn issue(desk: &Desk, arguments: &IssueArguments) -> Result<()> {
    let now = environment::now();
    let place = desk.place();
    let base = place.working_directory.clone().unwrap_or_default();
    let absolute = |path: &PathBuf| base.join(path);
    let workspace = arguments.workspace.as_ref().map(absolute);
    if let Some(missing) = workspace.as_ref().filter(|path| !path.is_dir()) {
        return Err(BadInput(format!("--workspace {}: no such directory", missing.display())).into());
    }
    let issued = desk.ask::<TokensIssue>(Request {
        place,
        person: arguments.person,
        role: arguments.role.clone(),
        user: arguments.user.clone(),
        groups: arguments.groups.clone(),
        task: arguments.task.clone(),
        project: arguments.project.clone(),
        run: arguments.run.clone(),
        job: arguments.job.clone(),
        session: arguments.session.clone(),
        modes: arguments.modes.clone(),
        task_tools: arguments.task_tools.clone(),
        workspace,
        rights: arguments.rights.clone(),
        may_answer: arguments.may_answer,
        expires_at: arguments.expires.map(|expires| expires.after(now)),
        max_calls: arguments.max_calls,
    })?;
    issued.notice().into_iter().for_each(output::remark);
    let said = format!("token {} was issued; it is shown once, and only here\n", issued.id);
    show(&issued, &said, &issued.token.0, arguments.format.json)
}

/// The token alone on stdout, so that it can be caught in a variable; the words beside it.
fn show(outcome: &impl serde::Serialize, said: &str, token: &str, json: bool) -> Result<()> {
    if json {
        return output::json(outcome);
    }
    output::remark(said.trim_end());
    output::text(&format!("{token}\n"))
}

fn list(tokens: &[TokenView]) -> String {
    if tokens.is_empty() {
        return "no token was issued yet: `toolwarden tokens issue --help`\n".to_owned();
    }
    table::text(&HEADINGS, tokens.iter().map(row).collect(), Last::Cut)
}

fn row(token: &TokenView) -> Vec<Cell> {
    let claims = &token.claims;
    let bearer = match claims.bearer {
        Bearer::Agent => shown(claims.role.as_deref().unwrap_or_default()).into_owned(),
        Bearer::Person => "person".to_owned(),
    };
    let state = match token.state.as_str() {
        "active" => Cell::in_colour("active", Colour::Green),
        other => Cell::in_colour(other.replace('_', " "), Colour::Dim),
    };
    let calls = claims.max_calls.map(|most| format!("{} of {most}", token.calls.unwrap_or(0))).unwrap_or_default();
    let expires = claims.expires_at.map(|end| end.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()).unwrap_or_default();
    vec![
        Cell::plain(token.id.clone()),
        state,
        Cell::plain(bearer),
        Cell::plain(shown(claims.user.as_deref().unwrap_or_default())),
        Cell::plain(calls),
        Cell::plain(expires),
        Cell::plain(good_for(claims)),
    ]
}

/// The rights of a token and what it is bound to.
fn good_for(claims: &Claims) -> String {
    let mut words: Vec<String> = claims.rights.iter().map(|right| format!("right {}", shown(right))).collect();
    words.extend(claims.may_answer.then(|| "answers in its client".to_owned()));
    let bound = [
        ("task", &claims.task),
        ("project", &claims.project),
        ("run", &claims.run),
        ("job", &claims.job),
        ("session", &claims.session),
    ];
    words.extend(bound.into_iter().filter_map(|(what, id)| Some(format!("{what} {}", shown(id.as_deref()?)))));
    words.extend(claims.modes.iter().map(|mode| format!("mode {}", shown(mode))));
    words.extend(claims.task_tools.iter().map(|tool| format!("tool {}", shown(tool))));
    words.extend(claims.workspace.as_ref().map(|path| format!("workspace {}", shown(&path.to_string_lossy()))));
    if words.is_empty() { "calls only".to_owned() } else { words.join(", ") }
}
