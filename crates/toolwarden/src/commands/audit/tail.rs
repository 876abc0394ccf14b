//! `audit tail`: the last rows, then new ones as they come.
//!
//! A call is shown when it has ended, because how it ended is what people watch for. Journals of
//! several processes arrive a little out of order, so each look goes back a few seconds.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use jiff::Timestamp;
use serde_json::Value;
use toolwarden_control::Selection;
use toolwarden_core::name::shown_json;

use super::rows::Table;
use crate::clerk::Desk;
use crate::environment;
use crate::output::{self, Exit};

const PAUSE: Duration = Duration::from_millis(500);
/// How late a row may come and still be seen.
const LATE: Duration = Duration::from_secs(30);

pub fn run(desk: &Desk, selection: &Selection, lines: u32, json: bool) -> Result<Exit> {
    let began = environment::now();
    let mut past = if lines == 0 { Vec::new() } else { super::fetch(desk, selection, lines)? };
    past.reverse();
    let mut watched = Watched { printed: BTreeSet::new(), table: Table::of(&past), json };
    if !watched.print(&past)? {
        return Ok(Exit::Done);
    }
    // What was there before and is not among the last rows is not new.
    let mut from = oldest_open(&past).map_or(began, |open| open.min(began));
    loop {
        desk.pause(PAUSE);
        let mut window = selection.clone();
        window.since = Some(selection.since.map_or(from, |since| since.max(from)));
        let mut rows = super::fetch(desk, &window, u32::MAX)?;
        rows.reverse();
        if !watched.print(&rows)? {
            return Ok(Exit::Done);
        }
        // A call under way keeps the window open until it ends.
        let open = oldest_open(&rows);
        let late = environment::now().checked_sub(LATE).unwrap_or(began).max(began);
        from = open.map_or(late, |open| open.min(late));
        watched.forget(&rows);
    }
}

/// What was shown already.
struct Watched {
    printed: BTreeSet<(String, u64)>,
    table: Table,
    json: bool,
}

impl Watched {
    /// Prints what is new and ended; false when nobody reads any more.
    fn print(&mut self, rows: &[Value]) -> Result<bool> {
        let mut text = String::new();
        for row in rows.iter().filter(|row| is_ended(row)) {
            if !self.printed.insert(key(row)) {
                continue;
            }
            if self.json {
                text.push_str(&shown_json(&format!("{row}\n")));
            } else {
                self.table.fit(row);
                text.push_str(&self.table.line(row));
            }
        }
        if text.is_empty() { Ok(true) } else { output::text_read(&text) }
    }

    /// Remembers only what the next look could show again.
    fn forget(&mut self, rows: &[Value]) {
        let seen: BTreeSet<_> = rows.iter().map(key).collect();
        self.printed.retain(|key| seen.contains(key));
    }
}

fn key(row: &Value) -> (String, u64) {
    let node = row.get("node").and_then(Value::as_str).unwrap_or_default();
    (node.to_owned(), row.get("sequence").and_then(Value::as_u64).unwrap_or_default())
}

fn is_ended(row: &Value) -> bool {
    row.get("kind").and_then(Value::as_str) != Some("intent") || row.get("status").is_some_and(Value::is_string)
}

/// When the oldest call began that is still under way.
fn oldest_open(rows: &[Value]) -> Option<Timestamp> {
    let time = |row: &Value| row.get("time")?.as_str()?.parse().ok();
    rows.iter().filter(|row| !is_ended(row)).filter_map(time).min()
}
