//! Entries `server:tool`: validity, matching, and which of several is the widest (ALLOW-1..5).

use toolwarden_core::Operation;

use crate::naive::{Case, Kind};
use crate::naive_names::{is_valid, known_tools, same};

/// The two sides of a valid entry.
pub fn sides(entry: &str) -> Option<(&str, &str)> {
    let (server, tool) = entry.split_once(':')?;
    let good = |side: &str| side == "*" || is_valid(side);
    (!tool.contains(':') && good(server) && good(tool)).then_some((server, tool))
}

fn side_matches(side: &str, name: &str) -> bool {
    side == "*" || same(side, name)
}

/// Ask entries and blocks: case never matters.
pub fn deny_entry_matches(entry: &str, case: &Case<'_>) -> bool {
    let Some((server, tool)) = sides(entry) else { return false };
    side_matches(server, &case.named.server) && side_matches(tool, &case.named.tool)
}

/// Whether an entry lets this call run unasked.
pub fn allow_entry_matches(entry: &str, case: &Case<'_>) -> bool {
    let Some((server, tool)) = sides(entry) else { return false };
    if !is_valid(&case.named.server) || !is_valid(&case.named.tool) || !side_matches(server, &case.named.server) {
        return false;
    }
    if case.kind == Kind::Mcp(Operation::ReadResource) {
        return tool == "*";
    }
    let known = known_tools(case.input, case.query, &case.named.server);
    let twins = known.iter().filter(|known| same(known, &case.named.tool)).count() > 1;
    tool == "*" || if twins { tool == case.named.tool } else { same(tool, &case.named.tool) }
}

/// `*:*` before `*:tool` before `server:*` before `server:tool`.
pub fn widest<'a>(entries: &[&'a str], case: &Case<'_>) -> Option<&'a str> {
    let rank = |entry: &str| match sides(entry) {
        Some(("*", "*")) => 0,
        Some(("*", _)) => 1,
        Some((_, "*")) => 2,
        _ => 3,
    };
    entries.iter().copied().filter(|entry| allow_entry_matches(entry, case)).min_by_key(|entry| rank(entry))
}
