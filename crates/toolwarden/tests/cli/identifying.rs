//! Tokens, from the command line to the call: issued, counted, rotated, revoked, and what they end for others.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_test_postgres::Cluster;

use crate::house::House;
use crate::server::{Server, eventually, exchange};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const KEY: &str = "home/.config/toolwarden/master.key";

/// A house whose notes agents may read, and only a project manager may write.
pub fn house() -> House {
    let house = House::new();
    house.write(
        CONFIG,
        &format!(
            "[auto_run]\nmode = \"run_everything\"\n[servers.notes]\ncommand = \"{}\"\nargs = [\"demo-server\"]\n\
             tools.read_note.scope = \"both\"\ntools.write_note.scope = \"pm\"\n\
             [roles.worker]\nallow = [\"notes:*\"]\n[roles.pm]\nallow = [\"notes:*\"]\n",
            env!("CARGO_BIN_EXE_toolwarden")
        ),
    );
    house
}

/// Issues a token; its id and its text.
pub fn issue(house: &House, arguments: &[&str]) -> (String, String) {
    let json = house.json(&[&["tokens", "issue"], arguments].concat());
    let field = |name: &str| json.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    assert!(field("token").starts_with(&format!("tw_{}_", field("id"))), "{json}");
    (field("id"), field("token"))
}

fn worker<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["--role", "worker", "--task", "t1", "--job", "j1", "--user", "ada"], more].concat()
}

fn read(server: &Server, token: &str) -> String {
    server.call_as(token, "read_note", &json!({ "name": "welcome" }))
}

pub fn is_read(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200") && answer.contains("kept by the demo server")
}

#[test]
fn gate_3_a_token_opens_what_its_role_may_and_no_more() {
    let house = house();
    let server = Server::start(&house);
    let (id, token) = issue(&house, &worker(&["--run", "r1"]));
    assert!(is_read(&read(&server, &token)), "{}", read(&server, &token));
    let denied = server.call_as(&token, "write_note", &json!({ "name": "x", "text": "y" }));
    assert!(denied.contains("Unknown tool") || denied.contains("unknown"), "{denied}");
    let (_, pm) = issue(&house, &["--role", "pm", "--user", "ada"]);
    let written = server.call_as(&pm, "write_note", &json!({ "name": "x", "text": "y" }));
    assert!(written.starts_with("HTTP/1.1 200") && !written.contains("isError\":true"), "{written}");
    let rows = house.json(&["audit", "query"]);
    let row = |decision: &str, tool: &str| {
        rows.as_array().into_iter().flatten().find(|row| {
            let is = |name: &str, value: &str| row.get(name).and_then(Value::as_str) == Some(value);
            is("token_id", &id) && is("decision", decision) && is("tool", tool)
        })
    };
    let allowed = row("allow", "read_note").cloned().unwrap_or_default();
    for (name, value) in
        [("agent_type", "worker"), ("user", "ada"), ("task_id", "t1"), ("job_id", "j1"), ("run_id", "r1")]
    {
        assert_eq!(allowed.get(name).and_then(Value::as_str), Some(value), "{rows}");
    }
    assert!(row("deny", "write_note").is_some(), "{rows}");
    // Its secret is nowhere: neither in the record, nor in the log, nor in a list.
    let secret = token.rsplit('_').next().unwrap_or_default().to_owned();
    for text in [rows.to_string(), house.read("server.log"), house.json(&["tokens", "list"]).to_string()] {
        assert!(!text.contains(&secret));
    }
}

#[test]
fn gate_2_a_credential_that_is_not_good_is_never_ignored() {
    let house = house();
    let server = Server::start(&house);
    assert!(server.read_note().contains("kept by the demo server"), "nobody else is known yet");
    let (id, token) = issue(&house, &worker(&[]));
    let (_, person) = issue(&house, &["--person"]);
    let changed = format!("{}{}", token.trim_end_matches(['0', '1']), "11");
    for wrong in ["", "x", "tw__", &changed, &token.to_uppercase(), &format!("{token}, {person}")] {
        let answer = read(&server, wrong);
        assert!(answer.starts_with("HTTP/1.1 401"), "{wrong}: {answer}");
        assert!(answer.to_lowercase().contains("www-authenticate: bearer"), "{answer}");
    }
    // A good one beside another is not chosen.
    let request = server.request("tools/list", None, &json!({}));
    let twice = format!("Authorization: Bearer {token}\r\nAuthorization: Bearer {person}\r\nContent-Type:");
    assert!(exchange(server.connect(), &request.replacen("Content-Type:", &twice, 1)).starts_with("HTTP/1.1 401"));
    let basic = request.replacen("Content-Type:", "Authorization: Basic YWRhOmFkYQ==\r\nContent-Type:", 1);
    assert!(exchange(server.connect(), &basic).starts_with("HTTP/1.1 401"));
    // Nor is nothing good enough any more, also when the only agent's token is gone again.
    assert!(exchange(server.connect(), &request).starts_with("HTTP/1.1 401"));
    assert_eq!(house.run(&["tokens", "revoke", &id]).code, 0);
    let answer = exchange(server.connect(), &request);
    assert!(
        answer.starts_with("HTTP/1.1 401")
            && answer.contains("a credential is needed")
            && !answer.contains("tokens issue"),
        "{answer}"
    );
    assert!(is_read(&read(&server, &person)), "{}", read(&server, &person));
}

#[test]
fn gate_3_revoked_and_rotated_on_the_next_call() {
    let house = house();
    let server = Server::start(&house);
    let (id, token) = issue(&house, &worker(&[]));
    assert!(is_read(&read(&server, &token)));
    let rotated = house.json(&["tokens", "rotate", &id]);
    let other = rotated.get("token").and_then(Value::as_str).unwrap_or_default();
    assert!(read(&server, &token).starts_with("HTTP/1.1 401"));
    assert!(is_read(&read(&server, other)), "{}", read(&server, other));
    assert_eq!(house.run(&["tokens", "revoke", &id]).code, 0);
    let answer = read(&server, other);
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("revoked"), "{answer}");
    assert_eq!(house.run(&["tokens", "revoke", &id]).code, 2, "it is not in use");
    assert_eq!(house.run(&["tokens", "rotate", "nobody"]).code, 2);
    let record = house.json(&["audit", "query"]).to_string();
    assert!(
        record.contains(&format!("nothing changed: {id}")) && record.contains("nothing changed: nobody"),
        "{record}"
    );
    // After a restart it is still so.
    server.stop();
    let server = Server::start_with(&house, &[]);
    assert!(read(&server, other).contains("revoked"));
    let listed = house.json(&["tokens", "list"]);
    assert_eq!(listed.pointer("/0/state").and_then(Value::as_str), Some("revoked"), "{listed}");
}

#[test]
fn gate_3_what_an_expired_token_has_open_ends_with_it() {
    let house = house();
    let server = Server::start(&house);
    let (_, token) = issue(&house, &worker(&["--expires", "3s"]));
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let about = |more: &str| {
        format!(
            "/mcp/notes HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\n{more}\r\n",
            server.address()
        )
    };
    let hello = hello.to_string();
    let opened =
        exchange(server.connect(), &format!("POST {}{hello}", about(&format!("Content-Length: {}\r\n", hello.len()))));
    let head = opened.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id: "));
    let session = head.and_then(|line| line.split_once(": ")).map(|(_, id)| id.trim().to_owned()).unwrap_or_default();
    let stream = server.connect();
    assert!(stream.as_ref().is_ok_and(|stream| stream.set_read_timeout(Some(Duration::from_secs(20))).is_ok()));
    let Ok(mut stream) = stream else { unreachable!("a connection opens") };
    let listen = format!("GET {}", about(&format!("Mcp-Session-Id: {session}\r\n")));
    let mut said = Vec::new();
    assert!(stream.write_all(listen.as_bytes()).is_ok());
    assert!(stream.read_to_end(&mut said).is_ok(), "the stream ends by itself");
    assert!(String::from_utf8_lossy(&said).starts_with("HTTP/1.1 200"), "{}", String::from_utf8_lossy(&said));
    assert!(read(&server, &token).contains("expired"));
    assert!(eventually(|| house.json(&["sessions", "list"]).as_array().is_some_and(Vec::is_empty)));
}

#[test]
fn gate_3_so_many_calls_and_no_more() {
    let house = house();
    let server = Server::start(&house);
    let (_, token) = issue(&house, &worker(&["--max-calls", "3"]));
    let answers: Vec<String> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..8).map(|_| scope.spawn(|| read(&server, &token))).collect();
        calls.into_iter().map(|call| call.join().unwrap_or_default()).collect()
    });
    assert_eq!(answers.iter().filter(|answer| is_read(answer)).count(), 3, "{answers:?}");
    let used_up = answers.iter().filter(|answer| answer.contains("no calls left")).count();
    assert_eq!(used_up, 5, "{answers:?}");
    let rows = house.json(&["audit", "query", "--decision", "deny"]);
    let exhausted = rows.as_array().into_iter().flatten();
    let exhausted = exhausted.filter(|row| row.get("reason").and_then(Value::as_str) == Some("credential_exhausted"));
    assert_eq!(exhausted.count(), 5, "{rows}");
    let listed = house.json(&["tokens", "list"]);
    assert_eq!(listed.pointer("/0/calls").and_then(Value::as_u64), Some(3), "{listed}");
    assert_eq!(listed.pointer("/0/state").and_then(Value::as_str), Some("used_up"), "{listed}");
    issue(&house, &["--person"]);
    let listed = house.json(&["tokens", "list"]);
    let counted = listed.as_array().into_iter().flatten().filter(|one| one.get("calls").is_some()).count();
    assert_eq!(counted, 1, "what is not counted is not said to be none: {listed}");
}

#[test]
fn gate_3_what_a_token_must_say() {
    let house = house();
    let refused = |arguments: &[&str], words: &str| {
        let ran = house.run(&[&["tokens", "issue"], arguments].concat());
        assert!(ran.code == 2 && ran.err.contains(words), "{arguments:?}: {}", ran.err);
    };
    refused(&["--role", "worker", "--task", "t1"], "needs a task and a job");
    refused(&["--role", "pm"], "needs a user");
    refused(&["--role", "nobody", "--user", "ada"], "no role is called `nobody`");
    refused(&["--role", "pm", "--user", "ada", "--mode", "no-such"], "no mode is called");
    refused(&["--role", "pm", "--user", "ada", "--max-calls", "0"], "good for nothing");
    refused(&["--role", "pm", "--user", "ada", "--expires", "2020-01-01T00:00:00Z"], "expired already");
    refused(&["--role", "pm", "--user", "ada", "--right", "admin"], "an agent has neither");
    refused(&["--role", "pm", "--user", "a\u{202e}b"], "is no name");
    refused(&["--person", "--right", "king"], "is no right");
    refused(&["--person", "--role", "pm"], "cannot be used with");
    refused(&[], "required");
    assert_eq!(house.json(&["tokens", "list"]), json!([]), "nothing was issued");
    // Without a server, too; the token alone is on stdout.
    let ran = house.run(&["tokens", "issue", "--person"]);
    assert!(ran.code == 0 && ran.out.starts_with("tw_") && ran.out.lines().count() == 1, "{}", ran.out);
    assert!(ran.err.contains("shown once"), "{}", ran.err);
}

#[test]
fn gate_2_loopback_without_a_credential_is_open_only_where_the_config_says_so() {
    let house = house();
    issue(&house, &["--person"]);
    let server = Server::start_with(&house, &[]);
    let request = server.request("tools/list", None, &json!({}));
    assert!(exchange(server.connect(), &request).starts_with("HTTP/1.1 401"));
    server.stop();
    let config = house.read(CONFIG);
    house.write(CONFIG, &format!("[gateway]\nanonymous_loopback = true\n{config}"));
    let server = Server::start_with(&house, &[]);
    assert!(exchange(server.connect(), &request_at(&server)).starts_with("HTTP/1.1 200"));
    server.stop();
    // And closed from the beginning where it says so.
    let fresh = self::house();
    let config = fresh.read(CONFIG);
    fresh.write(CONFIG, &format!("[gateway]\nanonymous_loopback = false\n{config}"));
    let server = Server::start_with(&fresh, &[]);
    assert!(exchange(server.connect(), &request_at(&server)).starts_with("HTTP/1.1 401"));
}

fn request_at(server: &Server) -> String {
    server.request("tools/list", None, &json!({}))
}

/// Two gateways with data directories of their own on one database.
fn replicas(cluster: &Cluster) -> [House; 2] {
    let houses = [house(), house()];
    for house in &houses {
        let config = house.read(CONFIG);
        house.write(CONFIG, &format!("[store]\nurl = \"{}\"\nmax_stale = \"2s\"\n{config}", cluster.url()));
    }
    // Whoever shares a store needs the key it is sealed with.
    let [one, other] = &houses;
    assert_eq!(one.run(&["tokens", "list"]).code, 0);
    assert!(std::fs::copy(one.path(KEY), other.path(KEY)).is_ok());
    houses
}

#[test]
fn gate_3_two_gateways_on_one_database_know_the_same_tokens() {
    let cluster = Cluster::start();
    assert!(cluster.is_ok(), "{cluster:?}");
    let Ok(mut cluster) = cluster else { unreachable!("asserted") };
    let [one, other] = replicas(&cluster);
    let (here, there) = (Server::start(&one), Server::start(&other));
    let (id, token) = issue(&one, &worker(&[]));
    assert!(is_read(&read(&here, &token)), "where it was issued it counts at once");
    assert!(eventually(|| is_read(&read(&there, &token))), "{}", read(&there, &token));
    // Ten calls in all, whoever is asked.
    let (_, limited) = issue(&other, &worker(&["--max-calls", "10"]));
    assert!(eventually(|| !read(&here, &limited).starts_with("HTTP/1.1 401")));
    let answers: Vec<bool> = std::thread::scope(|scope| {
        let ask = |number: usize| if number.is_multiple_of(2) { read(&here, &limited) } else { read(&there, &limited) };
        let calls: Vec<_> = (0..20).map(|number| scope.spawn(move || is_read(&ask(number)))).collect();
        calls.into_iter().map(|call| call.join().unwrap_or_default()).collect()
    });
    let before = one.json(&["tokens", "list"]).pointer("/0/calls").and_then(Value::as_u64);
    assert_eq!(before, Some(10));
    assert!((9..=10).contains(&answers.iter().filter(|is_read| **is_read).count()), "{answers:?}");
    // Revoked at one, it ends at the other, and stays ended.
    assert_eq!(one.run(&["tokens", "revoke", &id]).code, 0);
    assert!(read(&here, &token).starts_with("HTTP/1.1 401"));
    assert!(eventually(|| read(&there, &token).starts_with("HTTP/1.1 401")));
    assert!((0..20).all(|_| read(&there, &token).starts_with("HTTP/1.1 401")));
    // Cut off from the database, agents are refused after a while, and served again when it is back.
    let (_, another) = issue(&one, &worker(&[]));
    assert!(eventually(|| is_read(&read(&there, &another))));
    assert!(cluster.stop().is_ok());
    assert!(eventually(|| read(&there, &another).starts_with("HTTP/1.1 503")), "{}", read(&there, &another));
    assert!(cluster.restart().is_ok());
    assert!(eventually(|| is_read(&read(&there, &another))), "{}", read(&there, &another));
    // Nothing is lost in the one index.
    here.stop();
    let rows = other.json(&["audit", "query", "--limit", "1000", "--decision", "allow"]);
    let nodes: std::collections::BTreeSet<&str> =
        rows.as_array().into_iter().flatten().filter_map(|row| row.get("node")?.as_str()).collect();
    assert_eq!(nodes.len(), 2, "{nodes:?}");
    let all = other.json(&["audit", "query", "--limit", "10000"]);
    assert_eq!(all.as_array().map(Vec::len), Some(recorded(&one) + recorded(&other)));
}

/// However a gateway ends, no call is made beyond the limit.
#[test]
fn gate_3_killed_gateways_make_no_call_too_many() {
    let cluster = Cluster::start();
    assert!(cluster.is_ok(), "{cluster:?}");
    let Ok(cluster) = cluster else { unreachable!("asserted") };
    let [one, other] = replicas(&cluster);
    let (here, there) = (Server::start(&one), Server::start(&other));
    let (id, token) = issue(&one, &worker(&["--max-calls", "30"]));
    let tokens = || other.json(&["tokens", "list"]);
    assert!(eventually(|| tokens().to_string().contains(&id)));
    std::thread::scope(|scope| {
        for server in [&here, &there, &here, &there] {
            let token = token.as_str();
            scope.spawn(move || (0..12).for_each(|_| drop(server_answers(server, token))));
        }
        assert!(eventually(|| one.json(&["tokens", "list"]).pointer("/0/calls").and_then(Value::as_u64) > Some(5)));
        there.signal("-KILL");
    });
    let there = Server::start_with(&other, &[]);
    assert!(eventually(|| server_answers(&there, &token).contains("no calls left")));
    (0..5).for_each(|_| assert!(!is_read(&server_answers(&here, &token))));
    assert_eq!(tokens().pointer("/0/calls").and_then(Value::as_u64), Some(30));
    let made = one.json(&["audit", "query", "--token", &id, "--decision", "allow", "--limit", "1000"]);
    let made = made.as_array().map(Vec::len).unwrap_or_default();
    assert!((1..=30).contains(&made), "{made}");
}

/// What a gateway says, if it is there.
fn server_answers(server: &Server, token: &str) -> String {
    let request = server.request(
        "tools/call",
        Some("read_note"),
        &json!({ "name": "read_note", "arguments": { "name": "welcome" } }),
    );
    let shown = format!("Authorization: Bearer {token}\r\nContent-Type:");
    let Ok(stream) = server.connect() else { return String::new() };
    exchange(Ok(stream), &request.replacen("Content-Type:", &shown, 1))
}

/// Calls, refusals and events in the journals of a house.
fn recorded(house: &House) -> usize {
    let nodes = std::fs::read_dir(house.path("home/.local/share/toolwarden/journal")).into_iter().flatten().flatten();
    let files = nodes.flat_map(|node| std::fs::read_dir(node.path()).into_iter().flatten().flatten());
    let texts = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    let is_row =
        |line: &&str| ["intent", "refusal", "event"].iter().any(|kind| line.contains(&format!("\"kind\":\"{kind}\"")));
    texts.map(|text| text.lines().filter(is_row).count()).sum()
}

#[test]
fn gate_16_what_is_decided_at_one_gateway_acts_at_the_other() {
    let cluster = Cluster::start();
    assert!(cluster.is_ok(), "{cluster:?}");
    let Ok(cluster) = cluster else { unreachable!("asserted") };
    let [one, other] = replicas(&cluster);
    let (here, there) = (Server::start(&one), Server::start(&other));
    let (_, token) = issue(&one, &worker(&[]));
    assert!(eventually(|| is_read(&read(&there, &token))));
    assert_eq!(one.run(&["tools", "disable", "notes:read_note"]).code, 0);
    assert!(!is_read(&read(&here, &token)), "where it was decided it acts at once");
    assert!(eventually(|| !is_read(&read(&there, &token))), "{}", read(&there, &token));
    assert!((0..20).all(|_| !is_read(&read(&there, &token))), "and it stays so");
    // Each says how its servers are, and is forgotten when it ends.
    let elsewhere = || {
        let rows = one.json(&["servers", "list"]);
        let is_there = |row: &&Value| row.get("gateway").is_some();
        rows.as_array().into_iter().flatten().filter(is_there).cloned().collect::<Vec<_>>()
    };
    let status = |row: &Value| row.get("status").and_then(Value::as_str).map(str::to_owned);
    assert!(eventually(|| elsewhere().iter().filter_map(status).eq(["connected"])), "{:?}", elsewhere());
    assert_eq!(other.run(&["policy", "rollback", "0"]).code, 0);
    assert!(is_read(&read(&there, &token)));
    assert!(eventually(|| is_read(&read(&here, &token))));
    let versions = one.json(&["policy", "history"]);
    let doors = |version: &Value| version.get("summary").and_then(Value::as_str).map(str::to_owned);
    let said: Vec<_> = versions.as_array().into_iter().flatten().filter_map(doors).collect();
    assert_eq!(said, ["go back to version 0", "switch `notes:read_note` off"]);
    there.stop();
    assert!(elsewhere().is_empty(), "{:?}", elsewhere());
}

#[test]
fn gate_2_many_guesses_are_turned_away_and_a_good_token_is_not() {
    let house = house();
    let server = Server::start(&house);
    let (_, token) = issue(&house, &worker(&[]));
    let guess = "tw_0123456789abc_0000000000000000000000000000000000000000000";
    let statuses: Vec<String> = (0..300).map(|_| ask(&server, Some(guess), "GET", "/api/v1/status", "").0).collect();
    assert_eq!(statuses.first().map(String::as_str), Some("401"));
    let too_many = statuses.iter().filter(|status| *status == "429").count();
    // A minute may end in between.
    assert!(too_many >= 60 && statuses.iter().all(|status| status == "401" || status == "429"), "{too_many}");
    assert!(is_read(&read(&server, &token)), "whoever has a good one is not kept waiting");
}

/// Asks the control side over HTTP; the status and the answer.
pub fn ask(server: &Server, token: Option<&str>, method: &str, path: &str, body: &str) -> (String, String) {
    let shown = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\n{shown}Content-Type: application/json\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.address(),
        body.len()
    );
    let answer = exchange(server.connect(), &request);
    let status = answer.split(' ').nth(1).unwrap_or_default().to_owned();
    (status, answer)
}

#[test]
fn gate_2_the_control_side_is_for_persons_with_a_token_and_their_rights() {
    let house = house();
    house.write(CONFIG, &format!("{}[gateway]\nanonymous_loopback = true\n", house.read(CONFIG)));
    let server = Server::start(&house);
    let (_, agent) = issue(&house, &worker(&[]));
    let person = |user: &str, right: &str| issue(&house, &["--person", "--user", user, "--right", right]).1;
    let (viewer, auditor, admin) = (person("vera", "viewer"), person("otto", "auditor"), person("anna", "admin"));
    let (id, user) = issue(&house, &["--person", "--user", "uma", "--right", "user"]);
    let (_, client) = issue(&house, &["--person", "--user", "uma", "--may-answer"]);
    let status = |token: Option<&str>, method: &str, path: &str, body: &str| ask(&server, token, method, path, body).0;
    let off = r#"{"tool":"notes:read_note","enabled":false}"#;
    let list = r#"{"entry":"notes:list_notes"}"#;
    for (method, path, body, expected) in [
        // Nobody, an agent, somebody's guess, a client's token; then viewer, user, auditor and admin.
        ("GET", "/api/v1/status", "", ["401", "403", "401", "403", "200", "200", "200", "200"]),
        ("GET", "/api/v1/audit", "", ["401", "403", "401", "403", "403", "403", "200", "200"]),
        ("GET", "/api/v1/tokens/list", "", ["401", "403", "401", "403", "403", "403", "403", "200"]),
        ("POST", "/api/v1/allowlist/add", list, ["401", "403", "401", "403", "403", "200", "403", "200"]),
        ("POST", "/api/v1/tools/set", off, ["401", "403", "401", "403", "403", "403", "403", "200"]),
        ("GET", "/api/v1/nothing", "", ["401", "403", "401", "404", "404", "404", "404", "404"]),
    ] {
        let guess = "tw_0123456789abc_0000000000000000000000000000000000000000000";
        let everybody = [
            None,
            Some(&*agent),
            Some(guess),
            Some(&*client),
            Some(&*viewer),
            Some(&*user),
            Some(&*auditor),
            Some(&*admin),
        ];
        assert_eq!(everybody.map(|token| status(token, method, path, body)), expected, "{method} {path}");
    }
    // What a person decided over HTTP acts, is theirs, and stands in the record with their name.
    assert!(!is_read(&read(&server, &agent)));
    let lists = house.json(&["allowlist", "--user", "uma"]);
    assert_eq!(lists.pointer("/0/entry"), Some(&json!("notes:list_notes")), "{lists}");
    let rows = house.json(&["audit", "query", "--limit", "100"]);
    let by = |user: &str, detail: &str| {
        let has = |row: &Value, name: &str, text: &str| {
            row.get(name).and_then(Value::as_str).is_some_and(|it| it.contains(text))
        };
        rows.as_array().into_iter().flatten().any(|row| has(row, "user", user) && has(row, "detail", detail))
    };
    assert!(by("anna", "switch `notes:read_note` off") && by("vera", "refused"), "{rows}");
    // A token that is taken back opens nothing any more.
    assert_eq!(house.run(&["tokens", "revoke", &id]).code, 0);
    assert_eq!(status(Some(&user), "GET", "/api/v1/status", ""), "401");
    let large = format!("{{\"entry\":\"{}\"}}", "x".repeat(300 * 1024));
    assert_eq!(status(Some(&admin), "POST", "/api/v1/allowlist/add", &large), "413");
}

/// A request of a session, with a token.
fn head(method: &str, token: &str, session: Option<&str>, length: usize) -> String {
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    format!(
        "{method} /mcp/notes HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{session}\
         Content-Length: {length}\r\n\r\n"
    )
}

/// A stream that has begun.
fn opened(server: &Server, request: &str) -> TcpStream {
    let stream = server.connect();
    assert!(stream.is_ok());
    let Ok(mut stream) = stream else { unreachable!("asserted") };
    assert!(stream.set_read_timeout(Some(Duration::from_secs(20))).is_ok());
    assert!(stream.write_all(request.as_bytes()).is_ok());
    let mut begun = [0; 12];
    assert!(stream.read_exact(&mut begun).is_ok() && begun == *b"HTTP/1.1 200", "{}", String::from_utf8_lossy(&begun));
    stream
}

/// Whether a stream ends; one that goes on is not waited for.
fn ends(mut stream: TcpStream) -> bool {
    let reading = std::thread::spawn(move || stream.read_to_end(&mut Vec::new()).is_ok());
    eventually(|| reading.is_finished()) && reading.join().unwrap_or_default()
}

#[test]
fn gate_19_revocation_closes_open_streams() {
    let house = house();
    let server = Server::start(&house);
    let (id, token) = issue(&house, &worker(&[]));
    let (_, person) = issue(&house, &["--person"]);
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let hello = hello.to_string();
    let open = |token: &str| {
        let answer = exchange(server.connect(), &format!("{}{hello}", head("POST", token, None, hello.len())));
        let line = answer.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id: ")).unwrap_or_default();
        line.split_once(": ").map(|(_, id)| id.trim().to_owned()).unwrap_or_default()
    };
    let (session, others) = (open(&token), open(&person));
    assert!(!session.is_empty() && !others.is_empty());
    // A session is its principal's alone.
    let foreign = exchange(server.connect(), &head("GET", &person, Some(&session), 0));
    assert!(foreign.starts_with("HTTP/1.1 404"), "{foreign}");
    let stream = opened(&server, &head("GET", &token, Some(&session), 0));
    let oldest = opened(&server, &head("GET", &token, None, 0).replace("/mcp/notes", "/sse/notes"));
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let listen = server.request("subscriptions/listen", None, &listen).replace("/mcp/notes", "/mcp");
    let shown = format!("Authorization: Bearer {token}\r\nContent-Type:");
    let common = opened(&server, &listen.replacen("Content-Type:", &shown, 1));
    let mut other = opened(&server, &head("GET", &person, Some(&others), 0));
    assert_eq!(house.run(&["tokens", "revoke", &id]).code, 0);
    assert!(ends(stream));
    assert!(ends(oldest));
    assert!(ends(common));
    // Others go on.
    assert!(other.set_read_timeout(Some(Duration::from_millis(300))).is_ok());
    assert!(other.read_to_end(&mut Vec::new()).is_err());
    let gone = exchange(server.connect(), &head("GET", &token, Some(&session), 0));
    assert!(gone.starts_with("HTTP/1.1 401"), "{gone}");
}

/// Runs the pipe with a token in its environment and one message; its code and both outputs.
fn pipe(house: &House, token: &str) -> (Option<i32>, String) {
    let started = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
        .args(["stdio", "--server", "notes"])
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .env("PATH", "/usr/bin:/bin")
        .env("TOOLWARDEN_TOKEN", token)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut started) = started else { unreachable!("the program starts") };
    let lines = [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let _ = started.stdin.take().map(|mut input| input.write_all(text.as_bytes()));
    let Ok(ended) = started.wait_with_output() else { unreachable!("it ends") };
    let said = [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (ended.status.code(), said)
}

#[test]
fn gate_2_a_token_in_the_environment_is_never_ignored() {
    let house = house();
    let (_, token) = issue(&house, &worker(&[]));
    let (code, said) = pipe(&house, &token);
    assert!(code == Some(0) && said.contains("read_note") && !said.contains("write_note"), "{said}");
    for wrong in ["", " ", "x"] {
        let (code, said) = pipe(&house, wrong);
        assert!(code == Some(2) && said.contains("not known here"), "{wrong:?}: {said}");
    }
}

#[test]
fn gate_2_whoever_came_without_a_token_is_gone_with_the_first_one() {
    let house = house();
    let server = Server::start(&house);
    let session = server.session("/mcp/notes");
    let request = head("GET", "", Some(&session), 0).replace("Authorization: Bearer \r\n", "");
    let stream = opened(&server, &request);
    let (id, token) = issue(&house, &worker(&[]));
    assert!(ends(stream));
    // What was opened with a secret ends with that secret.
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let hello = hello.to_string();
    let answer = exchange(server.connect(), &format!("{}{hello}", head("POST", &token, None, hello.len())));
    let line = answer.lines().find(|line| line.to_lowercase().starts_with("mcp-session-id: ")).unwrap_or_default();
    let session = line.split_once(": ").map(|(_, id)| id.trim().to_owned()).unwrap_or_default();
    let stream = opened(&server, &head("GET", &token, Some(&session), 0));
    assert_eq!(house.run(&["tokens", "rotate", &id]).code, 0);
    assert!(ends(stream));
}
