//! An MCP server for tests: everything the conformance suite asks for, in both eras of the protocol or one of them,
//! over HTTP, its predecessor with events, or stdio, with a record of what really reached it.

mod asked;
mod catalogue;
mod changes;
mod content;
mod era;
mod farewell;
mod handler;
mod jobs;
mod library;
mod lines;
mod questions;
mod record;
mod rounds;
mod sse;
mod stdio;
mod tasks;
mod tools;

use std::io::{Write, stdout};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::middleware::from_fn_with_state;
use clap::{Parser, Subcommand};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::catalogue::Catalogue;
use crate::era::Era;
use crate::handler::Shared;
use crate::record::Record;

pub use crate::handler::Fixture;

/// A server for tests of MCP clients and gateways.
#[derive(Parser)]
struct Options {
    #[command(subcommand)]
    transport: Transport,
    /// Append a line `METHOD NAME` to this file for every call, read, prompt and completion received,
    /// and a line `cancelled NAME` for every test_delay whose caller gave up
    #[arg(long, global = true, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Which era of the protocol to speak
    #[arg(long, global = true, value_enum, default_value_t = Era::Both)]
    era: Era,
}

#[derive(Subcommand)]
enum Transport {
    /// Serve Streamable HTTP at /mcp on the loopback address
    Http {
        /// Port to listen on; 0 takes a free one
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// Serve the HTTP transport of 2024-11-05 at /sse on the loopback address, for the legacy era only
    Sse {
        /// Port to listen on; 0 takes a free one
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// Serve one client over standard input and output
    Stdio,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = Runtime::new()?;
    let served = runtime.block_on(serve(options));
    // A read of standard input that nobody waits for any more must not keep the program.
    runtime.shutdown_background();
    served
}

async fn serve(options: Options) -> anyhow::Result<()> {
    let record = Record::open(options.record.as_deref()).context("cannot open the record")?;
    let era = match (&options.transport, options.era) {
        (Transport::Sse { .. }, Era::Modern) => anyhow::bail!("the transport sse exists in the legacy era only"),
        (Transport::Sse { .. }, _) => Era::Legacy,
        (_, era) => era,
    };
    let shared = Arc::new(Shared::new(Catalogue::read()?, record, era));
    match options.transport {
        Transport::Http { port } => serve_http(shared, listen(port, "mcp").await?).await,
        Transport::Sse { port } => sse::serve(shared, listen(port, "sse").await?).await,
        Transport::Stdio => stdio::serve(shared).await,
    }
}

/// Listens, and says where.
async fn listen(port: u16, path: &str) -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.context("cannot listen")?;
    let address = listener.local_addr()?;
    writeln!(stdout(), "listening on http://{address}/{path}")?;
    stdout().flush()?;
    Ok(listener)
}

async fn serve_http(shared: Arc<Shared>, listener: TcpListener) -> anyhow::Result<()> {
    let (sessions, era) = (shared.sessions.clone(), shared.era);
    let service = StreamableHttpService::new(
        move || Ok(Fixture::new(shared.clone())),
        sessions,
        StreamableHttpServerConfig::default(),
    );
    let router = Router::new().nest_service("/mcp", service);
    let router = if era == Era::Both { router } else { router.layer(from_fn_with_state(era, era::http::gate)) };
    axum::serve(listener, router).await?;
    Ok(())
}
