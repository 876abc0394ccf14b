//! Two builds of Toolwarden side by side: each round measures one, then the other, and ratios are taken round by round.
//! Takes the older and the newer binary; prints the median ratio of each row with its lowest and highest round. A
//! difference inside that spread says nothing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;

use super::load::{Round, Target, round};
use super::report::say;
use super::upstream::{call, modern_call};
use toolwarden_bench::proxies::{Running, answers, free_port, toolwarden_with, upstream};

/// Further lines of the config of the server `bench`.
const CONFIGS: [(&str, &str); 5] = [
    ("pinned definitions", ""),
    ("flow labels: reads", "labels = [\"reads_untrusted\"]\n"),
    ("flow labels: sends out", "labels = [\"sends_out\"]\n"),
    ("calls per minute", "limits = { per_minute = 100000000 }\n"),
    ("screening", "screening = \"redact\"\nhidden_text = \"neutralise\"\n"),
];

/// What is sent, where, and in which era.
struct Row {
    name: String,
    path: &'static str,
    modern: bool,
    in_flight: usize,
    /// Index into `CONFIGS`.
    config: usize,
}

fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for in_flight in [1, 16, 64] {
        let row = |name: &str, path, modern, config| Row { name: name.to_owned(), path, modern, in_flight, config };
        rows.push(row("legacy, HTTP server", "/mcp/bench", false, 0));
        rows.push(row("legacy, stdio server", "/mcp/pipe", false, 0));
        rows.push(row("modern client, legacy HTTP server", "/mcp/bench", true, 0));
        for (index, (name, _)) in CONFIGS.iter().enumerate().skip(1) {
            rows.push(row(name, "/mcp/bench", false, index));
        }
    }
    rows
}

pub async fn compare(programs: [PathBuf; 2], time: Duration, rounds: usize) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let up = free_port()?;
    let _server = upstream(up)?;
    answers(up).await?;
    let mut gateways: Vec<[(Running, u16); 2]> = Vec::new();
    for (number, (_, lines)) in CONFIGS.iter().enumerate() {
        let [older, newer] = &programs;
        let older = gateway(older, &directory.path().join(format!("older-{number}")), up, lines).await?;
        let newer = gateway(newer, &directory.path().join(format!("newer-{number}")), up, lines).await?;
        gateways.push([older, newer]);
    }
    say(
        "| what | in flight | calls/s, older | calls/s × | lowest..highest | CPU us/call, older | CPU × | lowest..highest |\n",
    )?;
    for row in rows() {
        let Some(pair) = gateways.get(row.config) else { continue };
        let body = if row.modern { modern_call() } else { call("tool_1", "small") };
        let mut measured: Vec<[Round; 2]> = Vec::new();
        for number in 0..rounds {
            let mut both = [Round::default(); 2];
            // Whoever comes first changes from round to round.
            for step in 0..2 {
                let which = (number + step) % 2;
                let Some((running, port)) = pair.get(which) else { continue };
                let process = Some(running.id());
                let target = Target { name: "versions", port: *port, path: row.path, process, modern: row.modern };
                if let Some(slot) = both.get_mut(which) {
                    *slot = round(&target, &body, row.in_flight, time).await?;
                }
            }
            measured.push(both);
        }
        let calls = spread(&measured, |round| round.per_second);
        let cpu = spread(&measured, |round| round.cpu_us);
        say(&format!("| {} | {} | {calls} | {cpu} |\n", row.name, row.in_flight))?;
    }
    Ok(())
}

async fn gateway(program: &Path, home: &Path, up: u16, lines: &str) -> Result<(Running, u16)> {
    let port = free_port()?;
    let own = std::env::current_exe()?;
    let config = format!(
        "[servers.bench]\nurl = \"http://127.0.0.1:{up}/mcp\"\n{lines}[servers.pipe]\ncommand = \"{}\"\nargs = [\"pipe\"]\n",
        own.display()
    );
    let running = toolwarden_with(program, home, port, &config)?;
    answers(port).await?;
    Ok((running, port))
}

/// The older build's median, the median ratio, and its lowest and highest round.
fn spread(measured: &[[Round; 2]], pick: fn(&Round) -> f64) -> String {
    let middle = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        let at = |index: usize| values.get(index).copied().unwrap_or_default();
        (at(values.len() / 2), at(0), at(values.len().saturating_sub(1)))
    };
    let (older, _, _) = middle(measured.iter().map(|[older, _]| pick(older)).collect());
    let (ratio, low, high) = middle(measured.iter().map(|[older, newer]| pick(newer) / pick(older)).collect());
    format!("{older:.1} | {ratio:.2} | {low:.2}..{high:.2}")
}
