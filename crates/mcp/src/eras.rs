//! The same message in the words of the other era: pure text, nothing sent, nothing decided.
//!
//! Legacy is every revision with `initialize`, modern is 2026-07-28. What a call consists of (names,
//! arguments, content) is never touched; only what belongs to a hop, and what one era has no word for.

mod annotations;
mod errors;
mod openings;
mod requests;
mod results;

pub use errors::{error_to_legacy, error_to_modern};
pub use openings::{discover_result, initialize_result};
pub use requests::{Introduction, asks_of_clients, legacy_meta, modern_meta};
pub use results::{result_to_legacy, result_to_modern};

/// Keys of `_meta` with this beginning speak of one hop only.
const PER_HOP: &str = "io.modelcontextprotocol/";
/// But for this one: it names a task, which belongs to both ends.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

fn is_per_hop(key: &str) -> bool {
    key.starts_with(PER_HOP) && key != RELATED_TASK
}

#[cfg(test)]
#[path = "eras_tests.rs"]
mod tests;
