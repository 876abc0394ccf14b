//! `vault`: how the store is sealed, and another root for it.

use anyhow::{Context, Result};
use toolwarden_control::operations::vault_status::{RESUME, RootView};
use toolwarden_control::operations::{Nothing, VaultRotateKey, VaultStatus, vault_rotate_key, vault_status};

use crate::clerk::Desk;
use crate::environment;
use crate::output::{self, Colour, Exit};
use crate::table::{self, Cell, Last};
use toolwarden_cli::{Places, VaultCommand};

const HEADINGS: [&str; 6] = ["ROOT", "STATE", "RECORDS", "CHANGES", "TOKENS", "APPROVALS"];

pub fn run(places: &Places, command: &VaultCommand) -> Result<Exit> {
    let desk = Desk::open(places, None)?;
    match command {
        VaultCommand::Status { format } => {
            let status = desk.ask::<VaultStatus>(Nothing {})?;
            if let Some(warning) = &status.warning {
                output::remark(&format!("warning: {warning}"));
            }
            if format.json { output::json(&status)? } else { output::text(&status_text(&status))? }
        }
        VaultCommand::RotateKey { master, format } => {
            let rotated = rotate(&desk, *master)?;
            if format.json { output::json(&rotated)? } else { output::text(&rotated_text(&rotated))? }
        }
    }
    Ok(Exit::Done)
}

/// Asks for step after step. What was stored by then counts, so this can end at any moment and be called again.
fn rotate(desk: &Desk, mut master: bool) -> Result<vault_rotate_key::Outcome> {
    let mut progress = Progress { is_shown: environment::is_watched(), is_within_line: false };
    let (mut root, mut sealed_again, mut renewed) = (None, 0, None);
    loop {
        let request = vault_rotate_key::Request { root, master: std::mem::take(&mut master) };
        let step = desk.ask_waiting::<VaultRotateKey>(request, || progress.tick());
        progress.end_line();
        let step = match root {
            Some(root) => step.with_context(|| {
                format!("the rotation to root {root} is not over; nothing is lost, and `{RESUME}` goes on with it")
            })?,
            None => step?,
        };
        sealed_again += step.sealed_again;
        renewed = renewed.or_else(|| step.master.clone());
        if step.is_done() {
            return Ok(vault_rotate_key::Outcome { sealed_again, master: renewed, ..step });
        }
        progress.tell(&match step.state.as_str() {
            "waiting" => format!("root {} waits until every gateway knows it", step.root),
            _ => format!("root {} seals; values sealed again: {sealed_again}", step.root),
        });
        root = Some(step.root);
    }
}

/// What a person at a terminal sees meanwhile; nothing where nobody watches.
struct Progress {
    is_shown: bool,
    is_within_line: bool,
}

impl Progress {
    fn tell(&mut self, words: &str) {
        if self.is_shown {
            output::remark_begun(words);
            self.is_within_line = true;
        }
    }

    fn tick(&mut self) {
        if self.is_within_line {
            output::remark_begun(".");
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_within_line) {
            output::remark("");
        }
    }
}

fn rotated_text(rotated: &vault_rotate_key::Outcome) -> String {
    let (root, again) = (rotated.root, rotated.sealed_again);
    let mut text = format!("root {root} seals the store; values sealed again: {again}; former roots are kept\n");
    text.extend(rotated.master.iter().map(vault_rotate_key::NewMaster::words));
    if rotated.unreadable > 0 {
        text.push_str(&format!(
            "warning: values that somebody changed in the database, and that do not open: {}; they stay as they are\n",
            rotated.unreadable
        ));
    }
    text
}

fn status_text(status: &vault_status::Outcome) -> String {
    let backend =
        if status.protected { status.backend.clone() } else { output::coloured(&status.backend, Colour::Red) };
    let mut text = format!("backend  {backend}\nkey      {}, from {}\n", status.mark, status.place);
    text.push_str(&format!("config   [vault] key = \"{}\"\n\n", status.source));
    text.push_str(&table::text(&HEADINGS, status.roots.iter().map(row).collect(), Last::Whole));
    if status.unknown.all() > 0 {
        let values = status.unknown.all();
        text.push_str(&format!("\nvalues that none of these sealed: {values}; somebody changed the database\n"));
    }
    if let Some(rotation) = &status.rotation {
        let stands = match rotation.state.as_str() {
            "waiting" => "waits until every gateway knows it".to_owned(),
            _ => format!("seals, values to be sealed again: {}", rotation.left),
        };
        text.push_str(&format!(
            "\na rotation is not over: root {} {stands}; `{}` goes on with it\n",
            rotation.root, rotation.resume
        ));
    }
    text
}

fn row(root: &RootView) -> Vec<Cell> {
    let state = match root.state.as_str() {
        "current" => Cell::in_colour("current", Colour::Green),
        "retired" => Cell::in_colour("retired", Colour::Dim),
        other => Cell::in_colour(other, Colour::Yellow),
    };
    let number = |count: u64| Cell::plain(count.to_string());
    let sealed = &root.sealed;
    let root = Cell::plain(root.root.to_string());
    vec![root, state, number(sealed.records), number(sealed.changes), number(sealed.tokens), number(sealed.approvals)]
}
