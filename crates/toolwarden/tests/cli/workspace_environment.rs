//! Servers of a workspace are given only those variables that the user's own config lists (`[vault] workspace_env`, VAULT-6).

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::house::House;

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

/// Starts the workspace's server through a pipe, with two variables set; gives what the server was given of one of them,
/// none where it was not started.
fn given(house: &House, config: &str) -> Option<String> {
    house.write(CONFIG, config);
    let _ = std::fs::remove_file(house.path("given"));
    let process = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
        .args(["stdio", "--server", "brought", "--workspace", "."])
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .env("PATH", "/usr/bin:/bin")
        .env("LISTED", "hunter2x")
        .env("OTHER", "x")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut process) = process else { unreachable!("the program starts") };
    let (Some(mut input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
        unreachable!("they are pipes")
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    assert!(writeln!(input, "{hello}").is_ok());
    let answer = BufReader::new(output).lines().map_while(Result::ok).find(|line| line.contains("\"id\":1"));
    drop(input);
    assert!(process.wait().is_ok() && answer.is_some(), "{answer:?}");
    std::fs::read_to_string(house.path("given")).ok()
}

#[test]
fn vault_6_servers_of_a_workspace_are_given_listed_variables_alone() {
    let house = House::new();
    let (program, record) = (env!("CARGO_BIN_EXE_toolwarden"), house.path("given").display().to_string());
    let server = json!({ "mcpServers": { "brought": {
        "command": "/bin/sh", "env": { "GIVEN": "is ${env:LISTED}" },
        "args": ["-c", format!("printf %s \"$GIVEN\" > '{record}'; exec '{program}' demo-server")] } } });
    house.write("space/.mcp.json", &server.to_string());
    assert_eq!(house.run(&["trust", "."]).code, 0);
    assert_eq!(given(&house, ""), None, "nothing is listed: it is not started, and not with the text as it stands");
    assert_eq!(given(&house, "[vault]\nworkspace_env = [\"OTHER\"]\n"), None);
    assert_eq!(given(&house, "[vault]\nworkspace_env = [\"LISTED\"]\n").as_deref(), Some("is hunter2x"));
}
