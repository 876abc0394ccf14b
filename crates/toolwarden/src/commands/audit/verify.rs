//! `audit verify`: what was checked of every journal, and the first bad place where there is one.

use anyhow::Result;
use toolwarden_control::operations::{AuditVerify, Nothing};
use toolwarden_core::name::shown;
use toolwarden_store::journal::NodeReport;

use crate::clerk::Desk;
use crate::output::{self, Colour, Exit, coloured};

pub fn run(desk: &Desk, json: bool) -> Result<Exit> {
    let report = desk.ask::<AuditVerify>(Nothing {})?;
    if json {
        output::json(&report)?;
    } else if report.nodes.is_empty() {
        output::text("there is no journal yet, so there is nothing to check\n")?;
    } else {
        let width = report.nodes.iter().map(|node| node.node.len()).max().unwrap_or(0);
        let lines: String = report.nodes.iter().map(|node| line(node, width)).collect();
        output::text(&lines)?;
    }
    Ok(if report.whole { Exit::Done } else { Exit::Failed })
}

fn line(node: &NodeReport, width: usize) -> String {
    let name = format!("{:<width$}", shown(&node.node));
    if let Some(problem) = &node.problem {
        let place = match problem.line {
            0 => format!("{}/{}", shown(&node.node), shown(&problem.file)),
            line => format!("{}/{}:{line}", shown(&node.node), shown(&problem.file)),
        };
        let word = coloured("BROKEN", Colour::Red);
        return format!("{name}  {word} at {place}, record {}: {}\n", problem.sequence, shown(&problem.sentence));
    }
    let segments = if node.segments == 1 { "1 file".to_owned() } else { format!("{} files", node.segments) };
    let unsigned = node.last_sequence.saturating_sub(node.signed_through);
    let rest = match (unsigned, node.in_use) {
        (0, _) => "all signed".to_owned(),
        (count, true) => format!("the last {count} not signed yet"),
        (count, false) => format!("the last {count} not signed"),
    };
    let used = if node.in_use { ", in use" } else { "" };
    let word = coloured("whole", Colour::Green);
    format!("{name}  {word}: {} records in {segments}, {rest}{used}\n", node.last_sequence)
}
