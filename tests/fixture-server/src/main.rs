//! An MCP server for tests: everything the conformance suite asks for, in both eras of the protocol,
//! over HTTP or stdio, with a record of what really reached it.

mod asked;
mod catalogue;
mod changes;
mod content;
mod handler;
mod library;
mod questions;
mod record;
mod rounds;
mod stdin;
mod tools;

use std::io::{Write, stdout};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use crate::catalogue::Catalogue;
use crate::handler::Shared;
use crate::record::Record;
use crate::stdin::Stdin;

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
}

#[derive(Subcommand)]
enum Transport {
    /// Serve Streamable HTTP at /mcp on the loopback address
    Http {
        /// Port to listen on; 0 takes a free one
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// Serve one client over standard input and output
    Stdio,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let record = Record::open(options.record.as_deref()).context("cannot open the record")?;
    let shared = Arc::new(Shared::new(Catalogue::read()?, record));
    match options.transport {
        Transport::Http { port } => serve_http(shared, port).await,
        Transport::Stdio => serve_stdio(shared).await,
    }
}

async fn serve_stdio(shared: Arc<Shared>) -> anyhow::Result<()> {
    let streams = (Stdin::new(shared.news.clone()), tokio::io::stdout());
    match Fixture::new(shared).serve(streams).await {
        Ok(service) => drop(service.waiting().await?),
        // A client that only looked at what there is, and left.
        Err(ServerInitializeError::ConnectionClosed(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

async fn serve_http(shared: Arc<Shared>, port: u16) -> anyhow::Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.context("cannot listen")?;
    let address = listener.local_addr()?;
    let sessions = shared.sessions.clone();
    let service = StreamableHttpService::new(
        move || Ok(Fixture::new(shared.clone())),
        sessions,
        StreamableHttpServerConfig::default(),
    );
    writeln!(stdout(), "listening on http://{address}/mcp")?;
    stdout().flush()?;
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
