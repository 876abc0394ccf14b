//! Headers that say something else than the body, or come from where they must not.

use toolwarden_hostile::server::{Heard, tool, with_tools};
use toolwarden_hostile::{Ask, House, Server, Tried, attacks, outcome};

attacks! {
    version_header_differs: Ladder, "The version in the header is another than in the body.";
    version_header_missing: Ladder, "A modern request comes without the header that says so.";
    legacy_header_on_a_modern_body: Ladder, "The header names a legacy revision, the body the modern one.";
    version_nobody_serves: Ladder, "A request names a revision that does not exist.";
    legacy_version_nobody_serves: Ladder, "A session's request names a revision that does not exist.";
    method_header_differs: Ladder, "The header says that a list is asked for, the body makes a call.";
    method_header_in_other_case: Ladder, "The header spells the method in capital letters.";
    name_header_differs: Ladder, "The header names the permitted tool, the body another.";
    name_header_missing: Ladder, "A call comes without the header that names its tool.";
    name_header_in_loose_base64: Ladder, "The header names the tool in base64 that only lenient decoders read.";
    name_header_twice: Ladder, "The header names two tools, one in each line.";
    method_header_twice: Ladder, "The header names two methods, one in each line.";
    version_header_twice: Ladder, "Two version headers: whoever reads the first and whoever reads the last disagree.";
    parameter_header_differs: Ladder, "A parameter that is repeated as a header says something else there.";
    parameter_header_missing: Ladder, "A parameter that must be repeated as a header is not.";
    parameter_header_made_up: Ladder, "A header gives a parameter that the body leaves out.";
    resource_header_differs: Ladder, "The header names one resource, the body reads another.";
    body_that_is_a_form: Ladder, "A web page posts JSON as a plain text form, which needs no permission of the browser.";
    host_of_another_name: Hosts, "A web page reaches the gateway by its own name, which it points at loopback.";
    host_with_loopback_in_front: Hosts, "A host name begins with localhost and ends elsewhere.";
    two_hosts: Hosts, "Two Host headers: one for the check, one for whoever comes after.";
    page_of_another_origin: Hosts, "A web page of the internet calls by the loopback address.";
    page_without_an_origin: Hosts, "A sandboxed page calls with the origin `null`.";
    origin_with_loopback_as_user: Hosts, "An origin has localhost as the user part of another host.";
    credential_nobody_issued: Credentials, "A token nobody issued is presented, in the hope that it is ignored.";
    headers_without_end: Limits, "A request has more headers than anybody needs.";
}

/// A modern request that must be refused before anything of it arrives.
async fn sent(ask: &Ask) -> Tried {
    let server = Server::honest().await?;
    let house = House::open_before(&server).await?;
    let got = house.send(ask).await?;
    outcome(!server.calls().is_empty(), got.status == 400 && server.calls().is_empty(), got)
}

fn call() -> Ask {
    Ask::call("/mcp/notes", "safe")
}

async fn version_header_differs() -> Tried {
    sent(&call().instead("MCP-Protocol-Version", "2026-07-29")).await
}

async fn version_header_missing() -> Tried {
    sent(&call().without("MCP-Protocol-Version")).await
}

async fn legacy_header_on_a_modern_body() -> Tried {
    sent(&call().instead("MCP-Protocol-Version", "2025-06-18")).await
}

async fn version_nobody_serves() -> Tried {
    sent(&call().instead("MCP-Protocol-Version", "2099-01-01").edited("2026-07-28", "2099-01-01")).await
}

async fn legacy_version_nobody_serves() -> Tried {
    let server = Server::honest().await?;
    let house = House::open_before(&server).await?;
    let session = house.session("/mcp/notes").await?;
    let got = house.send(&session.call("7", "safe").with("MCP-Protocol-Version", "1999-01-01")).await?;
    outcome(!server.calls().is_empty(), got.status == 400 && server.calls().is_empty(), got)
}

async fn method_header_differs() -> Tried {
    sent(&call().instead("Mcp-Method", "tools/list")).await
}

async fn method_header_in_other_case() -> Tried {
    sent(&call().instead("Mcp-Method", "Tools/Call")).await
}

async fn name_header_differs() -> Tried {
    sent(&Ask::call("/mcp/notes", "danger").instead("Mcp-Name", "safe")).await
}

async fn name_header_missing() -> Tried {
    sent(&call().without("Mcp-Name")).await
}

async fn name_header_in_loose_base64() -> Tried {
    // `safe` is c2FmZQ==; without its padding it is not base64.
    sent(&call().instead("Mcp-Name", "=?base64?c2FmZQ?=")).await
}

async fn name_header_twice() -> Tried {
    sent(&call().with("Mcp-Name", "danger")).await
}

async fn method_header_twice() -> Tried {
    sent(&call().with("Mcp-Method", "tools/list")).await
}

async fn version_header_twice() -> Tried {
    sent(&call().with("MCP-Protocol-Version", "2025-11-25")).await
}

fn with_header_parameter(heard: &Heard) -> toolwarden_hostile::Said {
    let mut annotated = tool("safe");
    if let Some(schema) = annotated.get_mut("inputSchema") {
        *schema = serde_json::json!({ "type": "object",
            "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
    }
    with_tools(heard, &[annotated])
}

/// A call of a tool whose parameter `region` is to be repeated as a header.
async fn with_parameter(body: &str, header: Option<&str>) -> Tried {
    let server = Server::start(with_header_parameter).await?;
    let house = House::open_before(&server).await?;
    let ask = Ask::modern("/mcp/notes", "tools/call", "safe", &format!(r#""name":"safe","arguments":{{{body}}}"#));
    let ask = header.map_or(ask.clone(), |value| ask.with("Mcp-Param-Region", value));
    let got = house.send(&ask).await?;
    outcome(!server.calls().is_empty(), got.status == 400 && server.calls().is_empty(), got)
}

async fn parameter_header_differs() -> Tried {
    with_parameter(r#""region":"east""#, Some("west")).await
}

async fn parameter_header_missing() -> Tried {
    with_parameter(r#""region":"east""#, None).await
}

async fn parameter_header_made_up() -> Tried {
    with_parameter("", Some("west")).await
}

async fn resource_header_differs() -> Tried {
    sent(&Ask::modern("/mcp/notes", "resources/read", "note://a", r#""uri":"note://secret""#)).await
}

async fn body_that_is_a_form() -> Tried {
    let server = Server::honest().await?;
    let house = House::open_before(&server).await?;
    let got = house.send(&call().instead("Content-Type", "text/plain")).await?;
    outcome(!server.calls().is_empty(), got.status == 415 && server.calls().is_empty(), got)
}

/// A request from a place that must not reach the gateway.
async fn from(change: impl Fn(Ask) -> Ask) -> Tried {
    let server = Server::honest().await?;
    let house = House::open_before(&server).await?;
    let got = house.send(&change(call())).await?;
    outcome(!server.calls().is_empty(), got.status == 403 && server.calls().is_empty(), got)
}

async fn host_of_another_name() -> Tried {
    from(|ask| ask.instead("Host", "evil.example:8665")).await
}

async fn host_with_loopback_in_front() -> Tried {
    from(|ask| ask.instead("Host", "localhost.evil.example")).await
}

async fn two_hosts() -> Tried {
    from(|ask| ask.with("Host", "evil.example")).await
}

async fn page_of_another_origin() -> Tried {
    from(|ask| ask.with("Origin", "https://evil.example")).await
}

async fn page_without_an_origin() -> Tried {
    from(|ask| ask.with("Origin", "null")).await
}

async fn origin_with_loopback_as_user() -> Tried {
    from(|ask| ask.with("Origin", "http://localhost@evil.example")).await
}

async fn credential_nobody_issued() -> Tried {
    let server = Server::honest().await?;
    let house = House::open_before(&server).await?;
    let got = house.send(&call().with("Authorization", "Bearer guessed")).await?;
    outcome(!server.calls().is_empty(), got.status == 401 && server.calls().is_empty(), got)
}

async fn headers_without_end() -> Tried {
    let server = Server::honest().await?;
    let house = House::open_before(&server).await?;
    let many = (0..200).fold(call(), |ask, number| ask.with(&format!("X-Many-{number}"), "x"));
    let got = house.send(&many).await?;
    outcome(!server.calls().is_empty(), got.status == 431 && server.calls().is_empty(), got)
}
