//! The numbers of the record on one screen.

use toolwarden_core::name::shown;
use toolwarden_store::index::{Count, Stats};

use super::rows::duration;

/// So many names of a kind; JSON has all of them.
const MOST_NAMES: usize = 10;

pub fn text(stats: &Stats) -> String {
    let mut text = match stats.total {
        1 => "1 record\n".to_owned(),
        total => format!("{total} records\n"),
    };
    for (title, counts) in
        [("decisions", &stats.by_decision), ("statuses", &stats.by_status), ("users", &stats.by_user)]
    {
        if !counts.is_empty() {
            text.push_str(&format!("{title:<10} {}\n", line(counts)));
        }
    }
    if let Some(times) = &stats.duration_us {
        let [p50, p90, p99, max] = [times.p50, times.p90, times.p99, times.max].map(duration);
        text.push_str(&format!("{:<10} half within {p50}, 90% {p90}, 99% {p99}, longest {max}\n", "durations"));
    }
    if !stats.by_tool.is_empty() {
        text.push_str("tools\n");
    }
    let width = stats.by_tool.first().map_or(0, |most| most.count.to_string().len());
    for tool in stats.by_tool.iter().take(MOST_NAMES) {
        text.push_str(&format!("  {:>width$}  {}\n", tool.count, shown(&tool.name)));
    }
    let more = stats.by_tool.len().saturating_sub(MOST_NAMES);
    if more > 0 {
        text.push_str(&format!("  and {more} more; see --json\n"));
    }
    text
}

fn line(counts: &[Count]) -> String {
    let named = counts.iter().take(MOST_NAMES).map(|count| format!("{} {}", shown(&count.name), count.count));
    named.collect::<Vec<_>>().join(", ")
}
