//! The gateway side by side with a direct connection and nginx, interleaved in one run.
//!
//! `toolwarden-bench-gateway TOOLWARDEN [SECONDS]` starts everything itself on free ports and prints
//! ratios and CPU per call; `versions OLDER NEWER [SECONDS] [ROUNDS]` compares two builds instead. As `upstream PORT` or
//! `pipe` it is the server behind the proxies.

#[path = "gateway/guards.rs"]
mod guards;
#[path = "gateway/load.rs"]
mod load;
#[path = "gateway/report.rs"]
mod report;
#[path = "gateway/upstream.rs"]
mod upstream;
#[path = "gateway/versions.rs"]
mod versions;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().context("usage: toolwarden-bench-gateway TOOLWARDEN [SECONDS]")?;
    let second = arguments.next();
    match first.as_str() {
        "upstream" => {
            let port = second.and_then(|port| port.parse().ok()).context("upstream needs a port")?;
            runtime()?.block_on(upstream::serve(port))
        }
        "pipe" => upstream::pipe(second.as_deref() == Some("modern")),
        // For profilers: `load PORT PATH IN_FLIGHT SECONDS` against something that already runs.
        "load" => {
            let port = second.and_then(|port| port.parse().ok()).context("load needs a port")?;
            let path: &'static str = arguments.next().unwrap_or_else(|| "/mcp/bench".to_owned()).leak();
            let in_flight = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(16);
            let seconds = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(5.0);
            let target = load::Target { name: "load", port, path, process: None, modern: false };
            let time = Duration::from_secs_f64(seconds);
            let round =
                runtime()?.block_on(load::round(&target, &upstream::call("tool_1", "small"), in_flight, time))?;
            report::say(&format!("{:.0} calls/s, p50 {:.0} us\n", round.per_second, round.median_us))
        }
        "versions" => {
            let older = second.context("usage: versions OLDER NEWER [SECONDS] [ROUNDS]")?;
            let newer = arguments.next().context("usage: versions OLDER NEWER [SECONDS] [ROUNDS]")?;
            let seconds = arguments.next().and_then(|seconds| seconds.parse().ok()).unwrap_or(1.0);
            let rounds = arguments.next().and_then(|rounds| rounds.parse().ok()).unwrap_or(10);
            let programs = [PathBuf::from(older), PathBuf::from(newer)];
            runtime()?.block_on(versions::compare(programs, Duration::from_secs_f64(seconds), rounds))
        }
        program => {
            let seconds = second.and_then(|seconds| seconds.parse().ok()).unwrap_or(2.0);
            runtime()?.block_on(report::run(PathBuf::from(program), Duration::from_secs_f64(seconds)))
        }
    }
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}
