//! The runs and their table: rounds of all targets interleaved, medians of the rounds, ratios to nginx.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::time::Instant;

use super::guards;
use super::load::{Round, Session, Target, memory_mib, round};
use super::upstream::{call, modern_call};
use toolwarden_bench::proxies::{Running, answers, free_port, nginx, toolwarden, upstream};

pub const ROUNDS: usize = 5;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#;

struct Bench {
    targets: Vec<Target>,
    pipe: Target,
    time: Duration,
    toolwarden: Running,
    _others: (Running, Running, tempfile::TempDir),
}

/// Starts so often; the median counts.
const STARTS: usize = 5;

/// A gateway that was started some times: the last one, and how long the first and the others took to their first answer.
async fn started(program: &Path, home: &Path, gate: u16, up: u16) -> Result<(Running, Duration, Duration)> {
    let mut took = Vec::new();
    let target = Target { name: "toolwarden", port: gate, path: "/mcp/bench", process: None, modern: false };
    loop {
        let begun = Instant::now();
        let gateway = toolwarden(program, home, gate, up)?;
        answers(gate).await?;
        Session::open(&target).await?.exchange(call("tool_1", "small")).await?;
        took.push(begun.elapsed());
        if took.len() > STARTS {
            let first = took.remove(0);
            took.sort_unstable();
            return Ok((gateway, first, took.get(STARTS / 2).copied().unwrap_or_default()));
        }
    }
}

pub async fn run(program: PathBuf, time: Duration) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let (up, proxy, gate) = (free_port()?, free_port()?, free_port()?);
    let server = upstream(up)?;
    answers(up).await?;
    let nginx = nginx(directory.path(), proxy, up)?;
    answers(proxy).await?;
    let (gateway, first_ever, later) = started(&program, &directory.path().join("home"), gate, up).await?;
    let at_gate = |path| Target { name: "toolwarden", port: gate, path, process: Some(gateway.id()), modern: false };
    let target = at_gate("/mcp/bench");
    let idle = memory_mib(gateway.id());
    let targets = vec![
        Target { name: "direct", port: up, path: "/mcp", process: None, modern: false },
        Target { name: "nginx", port: proxy, path: "/mcp", process: Some(nginx.id()), modern: false },
        target,
    ];
    let pipe = at_gate("/mcp/pipe");
    let bench = Bench { targets, pipe, time, toolwarden: gateway, _others: (server, nginx, directory) };
    let milliseconds = |span: Duration| format!("{:.0} ms", span.as_secs_f64() * 1e3);
    say(&format!(
        "cold start to first answered call {}, in an empty data directory {}, idle memory {idle:.1} MiB\n",
        milliseconds(later),
        milliseconds(first_ever)
    ))?;
    bench.tables().await?;
    bench.eras().await?;
    bench.memory().await?;
    let Bench { toolwarden, _others: (server, nginx, directory), .. } = bench;
    drop((toolwarden, nginx));
    let compared = guards::compare(&program, directory.path(), up, time).await;
    drop(server);
    compared
}

pub fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

impl Bench {
    async fn tables(&self) -> Result<()> {
        let head = ["what", "target", "calls/s", "x nginx", "p50 us", "added p50", "CPU us/call", "x nginx"];
        say(&format!("{}\n", row(&head.map(str::to_owned))))?;
        let small = call("tool_1", "small");
        for in_flight in [1, 16, 64, 256] {
            self.compare(&format!("small, {in_flight} in flight"), &small, in_flight).await?;
        }
        let large = call("tool_2", "large");
        for in_flight in [1, 16] {
            self.compare(&format!("1 MB, {in_flight} in flight"), &large, in_flight).await?;
        }
        self.compare("list of 200, 16 in flight", &LIST.into(), 16).await?;
        for in_flight in [1, 16, 64] {
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                rounds.push(round(&self.pipe, &small, in_flight, self.time).await?);
            }
            let round = median(&rounds);
            let cells = [
                format!("stdio upstream, {in_flight} in flight"),
                "toolwarden".to_owned(),
                format!("{:.0}", round.per_second),
                String::new(),
                format!("{:.0}", round.median_us),
                String::new(),
                format!("{:.1}", round.cpu_us),
                String::new(),
            ];
            say(&format!("{}\n", row(&cells)))?;
        }
        Ok(())
    }

    /// Calls that cross the eras against calls that do not, of the same client over the same transport.
    async fn eras(&self) -> Result<()> {
        let head = ["client", "server", "in flight", "calls/s", "x same era", "p50 us", "CPU us/call", "x same era"];
        say(&format!("{}\n", row(&head.map(str::to_owned))))?;
        for (same, other) in [("/mcp/bench", "/mcp/modern"), ("/mcp/pipe", "/mcp/modern-pipe")] {
            self.pair(false, same, other).await?;
            self.pair(true, other, same).await?;
        }
        Ok(())
    }

    async fn pair(&self, modern: bool, same: &'static str, other: &'static str) -> Result<()> {
        let Some(gate) = self.targets.get(2) else { return Ok(()) };
        let body = if modern { modern_call() } else { call("tool_1", "small") };
        let at = |path| Target { path, modern, ..gate.clone() };
        for in_flight in [1, 16, 64] {
            let (mut plain, mut crossed) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                plain.push(round(&at(same), &body, in_flight, self.time).await?);
                crossed.push(round(&at(other), &body, in_flight, self.time).await?);
            }
            let (plain, crossed) = (median(&plain), median(&crossed));
            for (path, round) in [(same, plain), (other, crossed)] {
                let cells = [
                    if modern { "modern".to_owned() } else { "legacy".to_owned() },
                    path.to_owned(),
                    in_flight.to_string(),
                    format!("{:.0}", round.per_second),
                    format!("{:.2}", round.per_second / plain.per_second),
                    format!("{:.0}", round.median_us),
                    format!("{:.1}", round.cpu_us),
                    format!("{:.2}", round.cpu_us / plain.cpu_us),
                ];
                say(&format!("{}\n", row(&cells)))?;
            }
        }
        Ok(())
    }

    async fn compare(&self, what: &str, body: &Arc<str>, in_flight: usize) -> Result<()> {
        let mut rounds: Vec<Vec<Round>> = vec![Vec::new(); self.targets.len()];
        for _ in 0..ROUNDS {
            for (target, rounds) in self.targets.iter().zip(&mut rounds) {
                rounds.push(round(target, body, in_flight, self.time).await?);
            }
        }
        let medians: Vec<Round> = rounds.iter().map(|rounds| median(rounds)).collect();
        let direct = medians.first().copied().unwrap_or_default();
        let nginx = medians.get(1).copied().unwrap_or_default();
        for (target, round) in self.targets.iter().zip(&medians) {
            let cells = [
                what.to_owned(),
                target.name.to_owned(),
                format!("{:.0}", round.per_second),
                format!("{:.2}", round.per_second / nginx.per_second),
                format!("{:.0}", round.median_us),
                format!("{:+.0}", round.median_us - direct.median_us),
                format!("{:.1}", round.cpu_us),
                format!("{:.2}", round.cpu_us / nginx.cpu_us),
            ];
            say(&format!("{}\n", row(&cells)))?;
        }
        Ok(())
    }

    async fn memory(&self) -> Result<()> {
        let Some(target) = self.targets.get(2) else { return Ok(()) };
        let before = memory_mib(self.toolwarden.id());
        let mut sessions = Vec::new();
        for _ in 0..1000 {
            let mut session = Session::open(target).await?;
            session.exchange(call("tool_1", "small")).await?;
            sessions.push(session);
        }
        let after = memory_mib(self.toolwarden.id());
        let each = (after - before) * 1024.0 / 1000.0;
        say(&format!("memory after load {before:.1} MiB, with 1,000 sessions {after:.1} MiB, {each:.1} KiB each\n"))
    }
}

pub fn median(rounds: &[Round]) -> Round {
    let middle = |pick: fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    Round {
        per_second: middle(|round| round.per_second),
        median_us: middle(|round| round.median_us),
        cpu_us: middle(|round| round.cpu_us),
    }
}

pub fn row(cells: &[String; 8]) -> String {
    format!("| {} |", cells.join(" | "))
}
