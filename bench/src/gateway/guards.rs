//! What each guard costs, alone and together: gateways that differ in one thing, side by side in one run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::load::{Round, Target, round};
use super::report::{ROUNDS, median, row, say};
use super::upstream::call;
use toolwarden_bench::proxies::{Running, answers, free_port, toolwarden_with};
use toolwarden_test_postgres::Cluster;

/// A gateway with something more than a plain one.
struct Variant {
    name: &'static str,
    /// Lines of the server's table, and tables of their own.
    server: &'static str,
    tables: &'static str,
    /// Where the server behind it answers.
    path: &'static str,
    /// What processes share is in PostgreSQL, not in a file.
    on_postgres: bool,
}

const fn of_server(name: &'static str, server: &'static str) -> Variant {
    Variant { name, server, tables: "", path: "mcp", on_postgres: false }
}

const fn on_postgres(name: &'static str, server: &'static str) -> Variant {
    Variant { name, server, tables: "", path: "mcp", on_postgres: true }
}

/// Nothing listens there: spans are made, queued and dropped.
const TRACED: &str = "[telemetry]\notlp = \"http://127.0.0.1:9\"\n";
const LABELLED: &str = "labels = [\"reads_untrusted\"]\n";
/// Every call looks up what its caller has met.
const SENDS_OUT: &str = "labels = [\"sends_out\"]\n";
const IN_FLIGHT: &str = "limits = { in_flight = 10000 }\n";
/// Every call is counted where other processes see it.
const PER_MINUTE: &str = "limits = { per_minute = 100000000 }\n";

const SCREENED: &str = "screening = \"redact\"\nhidden_text = \"neutralise\"\n";

const VARIANTS: [Variant; 14] = [
    of_server("plain: definitions followed", "definitions = \"follow\"\n"),
    of_server("pinned definitions", ""),
    Variant { name: "output schema", server: "", tables: "", path: "structured", on_postgres: false },
    of_server("flow labels: reads", LABELLED),
    of_server("flow labels: sends out", SENDS_OUT),
    of_server("calls in flight", IN_FLIGHT),
    of_server("calls per minute", PER_MINUTE),
    on_postgres("PostgreSQL: pinned definitions", ""),
    on_postgres("PostgreSQL: flow labels: reads", LABELLED),
    on_postgres("PostgreSQL: flow labels: sends out", SENDS_OUT),
    on_postgres("PostgreSQL: calls per minute", PER_MINUTE),
    of_server("screening", SCREENED),
    Variant { name: "traces", server: "", tables: TRACED, path: "mcp", on_postgres: false },
    Variant {
        name: "all of them",
        server: "labels = [\"reads_untrusted\"]\nlimits = { in_flight = 10000, per_minute = 100000000 }\n\
                 screening = \"redact\"\nhidden_text = \"neutralise\"\n",
        tables: TRACED,
        path: "structured",
        on_postgres: false,
    },
];

/// Gateways that share a store need one key: the first one's.
fn share_key(key: &mut Option<PathBuf>, home: &Path) -> Result<()> {
    let own = home.join(".config/toolwarden/master.key");
    match key {
        None => *key = Some(own),
        Some(first) => {
            std::fs::create_dir_all(home.join(".config/toolwarden"))?;
            std::fs::copy(first, own).context("the first gateway has no key")?;
        }
    }
    Ok(())
}

pub async fn compare(program: &Path, directory: &Path, upstream: u16, time: Duration) -> Result<()> {
    let mut gateways: Vec<(Running, Target)> = Vec::new();
    let cluster = Cluster::start().context("PostgreSQL does not start")?;
    let mut key = None;
    for (number, variant) in VARIANTS.iter().enumerate() {
        let port = free_port()?;
        let home = directory.join(format!("guard-{number}"));
        let store = if variant.on_postgres { format!("[store]\nurl = \"{}\"\n", cluster.url()) } else { String::new() };
        let config = format!(
            "[servers.bench]\nurl = \"http://127.0.0.1:{upstream}/{}\"\n{}{}{store}",
            variant.path, variant.server, variant.tables
        );
        if variant.on_postgres {
            share_key(&mut key, &home)?;
        }
        let gateway = toolwarden_with(program, &home, port, &config)?;
        answers(port).await?;
        let process = Some(gateway.id());
        gateways.push((gateway, Target { name: variant.name, port, path: "/mcp/bench", process, modern: false }));
    }
    let head = ["guard", "in flight", "calls/s", "x plain", "p50 us", "added p50", "CPU us/call", "x plain"];
    say(&format!("{}\n", row(&head.map(str::to_owned))))?;
    let body = call("tool_1", "small");
    for in_flight in [1, 16, 64] {
        let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); gateways.len()];
        for _ in 0..ROUNDS {
            for ((_, target), rounds) in gateways.iter().zip(&mut rounds) {
                rounds.push(round(target, &body, in_flight, time).await?);
            }
        }
        let medians: Vec<Round> = rounds.iter().map(|rounds| median(rounds)).collect();
        let plain = medians.first().copied().unwrap_or_default();
        for ((_, target), round) in gateways.iter().zip(&medians) {
            let cells = [
                target.name.to_owned(),
                in_flight.to_string(),
                format!("{:.0}", round.per_second),
                format!("{:.2}", round.per_second / plain.per_second),
                format!("{:.0}", round.median_us),
                format!("{:+.0}", round.median_us - plain.median_us),
                format!("{:.1}", round.cpu_us),
                format!("{:.2}", round.cpu_us / plain.cpu_us),
            ];
            say(&format!("{}\n", row(&cells)))?;
        }
    }
    Ok(())
}
