//! The first token ends access without one: who issues it is told, refused clients are in the log, and clients that look for
//! an authorization server find out that there is none. An upgrade that takes rights away says so.

use serde_json::{Value, json};

use crate::house::House;
use crate::identifying::{house, issue};
use crate::server::{Server, exchange};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

#[test]
fn gate_2_the_first_token_says_that_clients_without_one_are_refused_from_now_on() {
    let said = "clients that show none are refused";
    let house = house();
    let first = house.run(&["tokens", "issue", "--person"]);
    assert!(first.code == 0 && first.err.contains(said) && first.out.lines().count() == 1, "{}", first.err);
    let second = house.run(&["tokens", "issue", "--person"]);
    assert!(second.code == 0 && !second.err.contains(said), "{}", second.err);
    // Nothing ends where the config says who may come.
    for choice in ["true", "false"] {
        let house = self::house();
        house.write(CONFIG, &format!("[gateway]\nanonymous_loopback = {choice}\n{}", house.read(CONFIG)));
        let first = house.run(&["tokens", "issue", "--person"]);
        assert!(first.code == 0 && !first.err.contains(said), "{choice}: {}", first.err);
    }
    let fresh = self::house();
    let issued = fresh.json(&["tokens", "issue", "--person"]);
    assert_eq!(issued.get("ends_anonymous_loopback"), Some(&json!(true)), "{issued}");
}

#[test]
fn gate_2_refused_clients_are_in_the_log_without_what_they_showed() {
    let house = house();
    let (_, token) = issue(&house, &["--person"]);
    let server = Server::start(&house);
    let request = server.request("tools/list", None, &json!({}));
    for _ in 0..5 {
        assert!(exchange(server.connect(), &request).starts_with("HTTP/1.1 401"));
    }
    let wrong = format!("{}x", token.get(..token.len() - 1).unwrap_or_default());
    let shown = format!("Authorization: Bearer {wrong}\r\nContent-Type:");
    assert!(exchange(server.connect(), &request.replacen("Content-Type:", &shown, 1)).starts_with("HTTP/1.1 401"));
    server.stop();
    let log = house.read("server.log");
    let lines: Vec<_> = log.lines().filter(|line| line.contains("a client was refused")).collect();
    assert!(lines.len() == 1, "once in ten seconds: {log}");
    assert!(lines.iter().all(|line| line.contains("tokens issue") && line.contains("anonymous_loopback")), "{log}");
    assert!(!log.contains(&wrong), "{log}");
}

#[test]
fn gate_2_whoever_looks_for_an_authorization_server_reads_in_json_that_there_is_none() {
    let house = house();
    issue(&house, &["--person"]);
    let server = Server::start(&house);
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource/mcp/notes",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration",
        "/.well-known/openid-configuration/mcp/notes",
        "/mcp/.well-known/openid-configuration",
        "/mcp/notes/.well-known/oauth-authorization-server",
        "/register",
    ] {
        for method in ["GET", "POST"] {
            let request = format!(
                "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\
                 Content-Type: application/json\r\n\r\n{{}}"
            );
            let answer = exchange(server.connect(), &request);
            assert!(answer.starts_with("HTTP/1.1 404"), "{method} {path}: {answer}");
            assert!(answer.to_lowercase().contains("content-type: application/json"), "{method} {path}: {answer}");
            let body = answer.split("\r\n\r\n").nth(1).unwrap_or_default();
            let body: Value = serde_json::from_str(body).unwrap_or_default();
            assert_eq!(body.get("error"), Some(&json!("not_found")), "{method} {path}: {answer}");
        }
    }
    // Other paths are answered as before.
    assert!(server.page("/.well-known/other").contains("nothing is here"));
    assert!(server.page("/.well-known/openid-configurations").contains("nothing is here"));
}

#[test]
fn self_6_what_restricts_agents_is_refused_for_persons_tokens() {
    let house = House::new();
    for flags in [&["--mode", "code"][..], &["--task-tool", "api.call"]] {
        let refused = house.run(&[&["tokens", "issue", "--person"][..], flags].concat());
        assert!(refused.code == 2 && refused.err.contains("restrict agents"), "{flags:?}: {}", refused.err);
    }
}
