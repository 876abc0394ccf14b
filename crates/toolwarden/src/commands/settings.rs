//! `settings`: the system's settings, and each user's auto-run mode.

use anyhow::Result;
use serde_json::Value;
use toolwarden_control::operations::settings_get::Row;
use toolwarden_control::operations::{SettingsGet, SettingsSet, settings_get, settings_set};
use toolwarden_control::or_nearest;
use toolwarden_core::name::shown;

use crate::changed;
use crate::clerk::Desk;
use crate::output::{self, BadInput, Exit};
use crate::table::{self, Cell, Last};
use toolwarden_cli::{ChangeArguments, Format, Places, SettingsCommand};

pub fn run(places: &Places, command: &SettingsCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        SettingsCommand::Get { key, user, format } => get(&desk, key.as_deref(), user.clone(), *format),
        SettingsCommand::Set { key, value, user, change, format } => {
            set(&desk, key, Some(changed::value_of(value)), user.clone(), (change, *format))
        }
        SettingsCommand::Unset { key, user, change, format } => set(&desk, key, None, user.clone(), (change, *format)),
    }
}

fn get(desk: &Desk, key: Option<&str>, user: Option<String>, format: Format) -> Result<Exit> {
    let request = settings_get::Request { key: key.map(str::to_owned), user: user.clone() };
    let rows = desk.ask::<SettingsGet>(request)?.settings;
    let Some(key) = key else {
        if format.json {
            output::json(&rows)?
        } else {
            output::text(&list(&rows))?
        }
        return Ok(Exit::Done);
    };
    let Some(row) = rows.first() else {
        return Err(not_set(desk, key, user).into());
    };
    if format.json {
        output::json(row)?
    } else {
        output::text(&format!("{}\n", plain(&row.value)))?
    }
    Ok(Exit::Done)
}

fn list(rows: &[Row]) -> String {
    let row =
        |row: &Row| vec![Cell::plain(shown(&row.key)), Cell::plain(plain(&row.value)), Cell::plain(shown(&row.source))];
    table::text(&["SETTING", "VALUE", "SET IN"], rows.iter().map(row).collect(), Last::Whole)
}

fn plain(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    shown(&text).into_owned()
}

fn set(
    desk: &Desk,
    key: &str,
    value: Option<Value>,
    user: Option<String>,
    (change, format): (&ChangeArguments, Format),
) -> Result<Exit> {
    let said = match &value {
        Some(value) => format!("`{}` is {}", shown(key), plain(value)),
        None => format!("`{}` is no longer set", shown(key)),
    };
    let takes_back = value.is_none();
    let request =
        settings_set::Request { key: key.to_owned(), value, user: user.clone(), terms: changed::terms(change) };
    let done = desk.ask::<SettingsSet>(request)?;
    // As for every name that is not found.
    if takes_back && !done.changed {
        return Err(not_set(desk, key, user).into());
    }
    changed::say(&done, &said, format.json.then_some(&done))
}

/// Nothing is set under this name; the nearest name under which something is.
fn not_set(desk: &Desk, key: &str, user: Option<String>) -> BadInput {
    // Only for the hint: where it cannot be had, none is given.
    let rows = desk.ask::<SettingsGet>(settings_get::Request { key: None, user }).map(|found| found.settings);
    let rows = rows.unwrap_or_default();
    let others = rows.iter().map(|row| row.key.as_str()).filter(|other| *other != key);
    let help = or_nearest(key, others, "`toolwarden settings get` lists what is");
    BadInput(format!("`{}` is not set; {help}", shown(key)))
}
