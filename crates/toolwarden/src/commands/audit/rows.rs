//! Rows of the record as people read them: one line each, in columns.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;
use toolwarden_core::name::shown;

use crate::environment;
use crate::output::{Colour, coloured};

/// The columns after the time.
const COLUMNS: usize = 7;
/// No column gets wider than this by itself, so that one long name does not push all others away.
const WIDEST: usize = 40;

/// Columns wide enough for the rows seen so far.
pub struct Table {
    zone: TimeZone,
    widths: [usize; COLUMNS],
}

impl Table {
    pub fn of(rows: &[Value]) -> Self {
        let mut table = Self { zone: environment::time_zone(), widths: [0; COLUMNS] };
        rows.iter().for_each(|row| table.fit(row));
        table
    }

    /// Makes room for a row.
    pub fn fit(&mut self, row: &Value) {
        for (width, cell) in self.widths.iter_mut().zip(cells(row)) {
            *width = (*width).max(cell.chars().count().min(WIDEST));
        }
    }

    pub fn text(&self, rows: &[Value]) -> String {
        rows.iter().map(|row| self.line(row)).collect()
    }

    pub fn line(&self, row: &Value) -> String {
        let mut line = self.time(row);
        for ((cell, width), column) in cells(row).iter().zip(self.widths).zip(0..) {
            // A column nobody fills is left out.
            if width == 0 {
                continue;
            }
            let padded = format!("{cell:<width$}");
            line.push_str("  ");
            line.push_str(&if column == 0 { coloured(&padded, colour(cell)) } else { padded });
        }
        // Free words come last: they have no width.
        let detail = shown(field(row, "detail"));
        let arguments = row.get("arguments").filter(|arguments| !arguments.is_null()).map(Value::to_string);
        let arguments = arguments.as_deref().map(shown).unwrap_or_default();
        format!("{}\n", format!("{line}  {detail}  {arguments}").trim_end())
    }

    fn time(&self, row: &Value) -> String {
        let text = field(row, "time");
        match text.parse::<Timestamp>() {
            Ok(time) => time.to_zoned(self.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
            Err(_) => shown(text).into_owned(),
        }
    }
}

fn field<'r>(row: &'r Value, name: &str) -> &'r str {
    row.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn colour(decision: &str) -> Colour {
    match decision {
        "allow" => Colour::Green,
        "hold" => Colour::Yellow,
        "deny" => Colour::Red,
        _ => Colour::Dim,
    }
}

/// Decision, what, who, what their client says it is, reason, status, duration.
fn cells(row: &Value) -> [String; COLUMNS] {
    let text = |name: &str| shown(field(row, name)).into_owned();
    let is_event = field(row, "kind") == "event";
    let what = match (field(row, "server"), field(row, "tool")) {
        ("", "") => text("method"),
        // No server was found for it.
        ("", _) => format!("{} {}", text("method"), text("tool")),
        (_, "") => format!("{} {}", text("server"), text("method")).trim_end().to_owned(),
        _ => format!("{}:{}", text("server"), text("tool")),
    };
    let who = match (text("user"), text("agent_type")) {
        (user, role) if role.is_empty() => user,
        (user, role) => format!("{user} ({role})").trim_start().to_owned(),
    };
    let decision = if is_event { format!("event {}", text("event")).trim_end().to_owned() } else { text("decision") };
    let duration = row.get("duration_us").and_then(Value::as_u64).map(duration).unwrap_or_default();
    let client = match (text("client"), text("client_version")) {
        (name, _) if name.is_empty() => name,
        (name, version) => format!("says {name} {version}").trim_end().to_owned(),
    };
    [decision, what, who, client, text("reason"), text("status"), duration]
}

/// Microseconds in the unit people would use.
pub fn duration(microseconds: u64) -> String {
    let in_unit = |unit: u64, name: &str| format!("{}.{} {name}", microseconds / unit, microseconds % unit * 10 / unit);
    match microseconds {
        0..1_000 => format!("{microseconds} µs"),
        1_000..1_000_000 => in_unit(1_000, "ms"),
        _ => in_unit(1_000_000, "s"),
    }
}
