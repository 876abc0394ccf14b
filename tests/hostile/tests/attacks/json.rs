//! Texts that two parsers read differently, or that no parser should have to read.

use toolwarden_hostile::client::{calling, legacy};
use toolwarden_hostile::{Ask, Given, House, Server, Tried, attacks, outcome};

attacks! {
    duplicate_tool_name: Json, "A call names two tools: the permitted one is judged, the other may be run.";
}

/// Sends a message of a legacy session that must be refused as a whole, and nothing of it may arrive.
async fn refused(body: &str, arrives: &str) -> Tried {
    let server = Server::honest().await?;
    let house = House::open_before(&server).await?;
    let session = house.session("/mcp/notes").await?;
    let got = house.send(&session.post(body)).await?;
    let arrived = server.heard().iter().any(|heard| heard.text.contains(arrives));
    outcome(arrived, got.status == 400 && !arrived, got)
}

async fn duplicate_tool_name() -> Tried {
    refused(&legacy("7", "tools/call", r#""name":"safe","name":"danger","arguments":{}"#), "danger").await
}
