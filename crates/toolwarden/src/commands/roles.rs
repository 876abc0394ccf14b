//! `roles`: what agents of a kind may call.

use anyhow::Result;
use toolwarden_control::operations::roles_list::View;
use toolwarden_control::operations::{RolesList, RolesSet, roles_list, roles_set};
use toolwarden_core::name::shown;

use crate::changed;
use crate::clerk::Desk;
use crate::output::{self, Exit};
use crate::table::{self, Cell, Last};
use toolwarden_cli::{Places, RoleArguments, RolesCommand};

pub fn run(places: &Places, command: &RolesCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        RolesCommand::List { format } => {
            let roles = desk.ask::<RolesList>(roles_list::Request::default())?.roles;
            if format.json { output::json(&roles)? } else { output::text(&list(&roles))? }
        }
        RolesCommand::Show { name, format } => {
            let found = desk.ask::<RolesList>(roles_list::Request { name: Some(name.clone()) })?;
            let Some(role) = found.roles.first() else { return Ok(Exit::Failed) };
            if format.json { output::json(role)? } else { output::text(&show(role))? }
        }
        RolesCommand::Set(arguments) => return set(&desk, arguments),
    }
    Ok(Exit::Done)
}

fn list(roles: &[View]) -> String {
    let row = |role: &View| {
        vec![
            Cell::plain(shown(&role.name)),
            Cell::plain(role.scope.clone().unwrap_or_default()),
            Cell::plain(shown(&role.source)),
            Cell::plain(shown(&role.allow.join(", "))),
        ]
    };
    table::text(&["ROLE", "SCOPE", "DEFINED IN", "MAY CALL"], roles.iter().map(row).collect(), Last::Cut)
}

fn show(role: &View) -> String {
    let list = |names: &[String]| match names {
        [] => "nothing".to_owned(),
        names => shown(&names.join(", ")).into_owned(),
    };
    let mut lines = vec![
        format!("{} ({})  {}", shown(&role.name), role.scope.as_deref().unwrap_or("no scope"), shown(&role.source)),
        format!("  may call       {}", list(&role.allow)),
        format!("  may never call {}", list(&role.disallow)),
    ];
    lines.extend(role.conditions.iter().map(|condition| format!("  only if        {}", shown(condition))));
    lines.push(format!("  is told why    {}", if role.explain { "yes" } else { "no" }));
    lines.push(String::new());
    lines.join("\n")
}

fn set(desk: &Desk, arguments: &RoleArguments) -> Result<Exit> {
    let definition = arguments.from.as_deref().map(changed::json_of).transpose()?;
    let outcome = desk.ask::<RolesSet>(roles_set::Request {
        name: arguments.name.clone(),
        definition,
        scope: arguments.scope.clone(),
        allow: arguments.allow.clone(),
        disallow: arguments.disallow.clone(),
        drop: arguments.drop.clone(),
        explain: arguments.explain,
        reset: arguments.reset,
        terms: changed::terms(&arguments.change),
    })?;
    let said = format!("role `{}` is {}", shown(&outcome.name), if arguments.reset { "reset" } else { "set" });
    changed::say(&outcome.done, &said, arguments.format.json.then_some(&outcome))
}
