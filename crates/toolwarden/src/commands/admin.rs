//! `admin`: the controls of a team's administrator.

use anyhow::Result;
use serde_json::{Map, Value};
use toolwarden_control::operations::{AdminSet, AdminShow, Nothing, admin_set};
use toolwarden_core::name::shown;

use crate::changed;
use crate::clerk::Desk;
use crate::output::{self, BadInput, Exit};
use crate::table::{self, Cell, Last};
use toolwarden_cli::{AdminCommand, Places};

pub fn run(places: &Places, command: &AdminCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        AdminCommand::Show { format } => {
            let found = desk.ask::<AdminShow>(Nothing {})?;
            if format.json {
                output::json(&found)?;
                return Ok(Exit::Done);
            }
            let Some(controls) = &found.controls else {
                output::text("there are no admin controls: users decide for themselves\n")?;
                return Ok(Exit::Done);
            };
            let row =
                |(key, value): (&String, &Value)| vec![Cell::plain(shown(key)), Cell::plain(shown(&value.to_string()))];
            let source = found.source.as_deref().unwrap_or_default();
            output::text(&format!("{}\n", shown(source)))?;
            output::text(&table::text(&["CONTROL", "VALUE"], controls.iter().map(row).collect(), Last::Whole))?;
            Ok(Exit::Done)
        }
        AdminCommand::Set { controls, from, change, format } => {
            let whole = from.as_deref().map(changed::json_of).transpose()?;
            let replace = whole.is_some();
            let mut given = match whole {
                None => Map::new(),
                Some(Value::Object(whole)) => whole,
                Some(_) => return Err(BadInput("an admin record is a table of controls".to_owned()).into()),
            };
            for control in controls {
                let Some((key, value)) = control.split_once('=') else {
                    return Err(BadInput(format!("`{}` is not KEY=VALUE", shown(control))).into());
                };
                let value = if value.is_empty() { Value::Null } else { changed::value_of(value) };
                given.insert(key.to_owned(), value);
            }
            let request = admin_set::Request { controls: given, replace, terms: changed::terms(change) };
            let outcome = desk.ask::<AdminSet>(request)?;
            changed::say(&outcome.done, "the admin controls are set", format.json.then_some(&outcome))
        }
    }
}
