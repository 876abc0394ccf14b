//! Texts that two parsers read differently, or that no parser should have to read.

use toolwarden_hostile::attack::ANOTHER_WAY;
use toolwarden_hostile::client::{calling, legacy};
use toolwarden_hostile::house::OPEN;
use toolwarden_hostile::{Given, House, Server, Tried, attacks, outcome};

attacks! {
    duplicate_tool_name: Json, "A call names two tools: the permitted one is judged, the other may be run.";
    duplicate_method: Json, "A message has two methods: a list is judged, a call may be run.";
    duplicate_params: Json, "A message has its params twice.";
    duplicate_key_deep_in_arguments: Json, "The same key stands twice, deep in the arguments of a call.";
    duplicate_key_in_another_spelling: Json, "A key is repeated with one letter escaped, so that its texts differ and its meaning does not.";
    duplicate_key_among_many: Json, "A key is repeated at the end of an object with very many keys.";
    half_a_surrogate_pair: Json, "A text holds half a character, which one parser drops and another keeps.";
    text_after_the_message: Json, "A second message follows the first in the same body.";
    id_that_is_a_fraction: Json, "A request has the id 1.5, which parsers round in different ways.";
    id_that_is_a_list: Json, "A request has a list as its id.";
    id_that_is_null: Json, "A call has the id null, to look like a notification that nobody judges.";
    params_that_are_a_list: Json, "Params are a list, where names are looked up and not found.";
    no_version_of_json_rpc: Json, "A message does not say that it is JSON-RPC 2.0.";
    depth_bomb: Limits, "Arguments are nested deeper than parsers that call themselves can bear.";
    size_bomb: Limits, "A call is larger than the limit.";
    batch_where_there_are_none: Ladder, "A batch is sent in a revision that has none.";
    batch_with_a_forbidden_member: AutoRun, "A forbidden call hides between two permitted ones in a batch.", because ANOTHER_WAY;
    batch_bomb: Limits, "A batch holds thousands of calls.";
    long_line_at_the_pipe: Limits, "A client writes a line without end into the stdio door.";
}

/// Sends a message of a legacy session that must be refused as a whole, so that nothing of it arrives.
async fn sent(body: &str, arrives: &str) -> Tried {
    let server = Server::honest().await?;
    let house = House::open_before(&server).await?;
    let session = house.session("/mcp/notes").await?;
    let got = house.send(&session.post(body)).await?;
    let arrived = server.heard().iter().any(|heard| heard.text.contains(arrives));
    outcome(arrived, got.status == 400 && !arrived, got)
}

async fn duplicate_tool_name() -> Tried {
    sent(&legacy("7", "tools/call", r#""name":"safe","name":"danger","arguments":{}"#), "danger").await
}

async fn duplicate_method() -> Tried {
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","method":"tools/list","params":{"name":"danger"}}"#;
    sent(body, "danger").await
}

async fn duplicate_params() -> Tried {
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"danger"},"params":{"name":"safe"}}"#;
    sent(body, "danger").await
}

async fn duplicate_key_deep_in_arguments() -> Tried {
    let members = r#""name":"safe","arguments":{"a":[{"b":{"path":"/tmp","path":"/etc"}}]}"#;
    sent(&legacy("7", "tools/call", members), "/etc").await
}

async fn duplicate_key_in_another_spelling() -> Tried {
    let members = "\"name\":\"safe\",\"arguments\":{\"path\":\"/tmp\",\"p\\u0061th\":\"/etc\"}";
    sent(&legacy("7", "tools/call", members), "/etc").await
}

async fn duplicate_key_among_many() -> Tried {
    let many: Vec<String> = (0..5000).map(|number| format!("\"k{number}\":0")).collect();
    let members = format!(r#""name":"safe","arguments":{{{},"k17":"/etc"}}"#, many.join(","));
    sent(&legacy("7", "tools/call", &members), "/etc").await
}

async fn half_a_surrogate_pair() -> Tried {
    sent(&legacy("7", "tools/call", r#""name":"safe","arguments":{"text":"x\ud800y"}"#), "ud800").await
}

async fn text_after_the_message() -> Tried {
    let body =
        format!("{}{}", legacy("7", "tools/call", &calling("safe")), legacy("8", "tools/call", &calling("danger")));
    sent(&body, "safe").await
}

async fn id_that_is_a_fraction() -> Tried {
    sent(&legacy("1.5", "tools/call", &calling("danger")), "danger").await
}

async fn id_that_is_a_list() -> Tried {
    sent(&legacy("[7]", "tools/call", &calling("danger")), "danger").await
}

async fn id_that_is_null() -> Tried {
    sent(&legacy("null", "tools/call", &calling("danger")), "danger").await
}

async fn params_that_are_a_list() -> Tried {
    sent(r#"{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":["danger"]}"#, "danger").await
}

async fn no_version_of_json_rpc() -> Tried {
    sent(r#"{"id":7,"method":"tools/call","params":{"name":"danger","arguments":{}}}"#, "danger").await
}

async fn depth_bomb() -> Tried {
    // Deeper, and the weak gateway would not survive its own proof.
    let deep = 300;
    let members = format!(r#""name":"safe","arguments":{{"x":{}{}}}"#, "[".repeat(deep), "]".repeat(deep));
    sent(&legacy("7", "tools/call", &members), "[[[[").await
}

async fn size_bomb() -> Tried {
    let server = Server::honest().await?;
    let given = Given::new(&[OPEN, &server.table("notes")]).set(|settings| settings.limits.request_bytes = 10_000);
    let house = House::build(&given).await?;
    let session = house.session("/mcp/notes").await?;
    let members = format!(r#""name":"safe","arguments":{{"x":"{}"}}"#, "a".repeat(50_000));
    let got = house.send(&session.ask("7", "tools/call", &members)).await?;
    outcome(server.saw("aaaa"), got.status == 413 && server.calls().is_empty(), got)
}

async fn batch_where_there_are_none() -> Tried {
    sent(&format!("[{}]", legacy("7", "tools/call", &calling("danger"))), "danger").await
}

/// A session of the one revision that has batches.
async fn batched(members: &[String], arrives: &str, refused_with: &str) -> Tried {
    let server = Server::honest().await?;
    let house = House::guarded_before(&server).await?;
    let session = house.session_of("/mcp/notes", "2025-03-26", "{}").await?;
    let got = house.send(&session.post(format!("[{}]", members.join(",")))).await?;
    let arrived = server.calls().iter().any(|call| call.id == arrives);
    outcome(arrived, got.has(refused_with) && !arrived, got)
}

async fn batch_with_a_forbidden_member() -> Tried {
    let call = |id: &str, tool: &str| legacy(id, "tools/call", &calling(tool));
    batched(&[call("1", "safe"), call("2", "danger"), call("3", "safe")], "2", "not_in_allowlist").await
}

async fn batch_bomb() -> Tried {
    let calls: Vec<String> = (1..=500).map(|id| legacy(&id.to_string(), "tools/call", &calling("safe"))).collect();
    batched(&calls, "500", "1 to 100 messages").await
}

async fn long_line_at_the_pipe() -> Tried {
    let server = Server::honest().await?;
    let given = Given::new(&[OPEN, &server.table("notes")]).set(|settings| settings.limits.request_bytes = 10_000);
    let house = House::build(&given).await?;
    let mut pipe = toolwarden_hostile::pipe::Pipe::open(&house, "notes");
    let capabilities = r#""protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}"#;
    pipe.say(&legacy("0", "initialize", capabilities)).await?;
    pipe.hears().await?;
    pipe.say(&legacy("7", "tools/call", &format!(r#""name":"safe","arguments":{{"x":"{}"}}"#, "a".repeat(50_000))))
        .await?;
    // A door that was told too much closes.
    let said = pipe.hears().await?;
    outcome(server.saw("aaaa"), said.is_empty() && server.calls().is_empty(), said)
}
