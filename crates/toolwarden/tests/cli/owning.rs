//! A user's own server, from the command to the call: theirs alone, near this machine only where an admin says so, and
//! unknown to everybody else (GATE-8).

use serde_json::{Value, json};

use crate::house::House;
use crate::identifying::{ask, house, is_read, issue};
use crate::server::{Server, exchange};

const NEAR: &str = "a user's own server is reached by https, at an address of the public network";

fn person(house: &House, user: &str) -> String {
    issue(house, &["--person", "--user", user, "--right", "user"]).1
}

/// Reads a note of the server `anna.docs`.
fn read(server: &Server, token: &str) -> String {
    read_at(server, token, "/mcp/anna.docs")
}

fn read_at(server: &Server, token: &str, door: &str) -> String {
    let call = json!({ "name": "read_note", "arguments": { "name": "welcome" } });
    let request = server.request("tools/call", Some("read_note"), &call).replacen("/mcp/notes", door, 1);
    let shown = format!("Authorization: Bearer {token}\r\nContent-Type:");
    exchange(server.connect(), &request.replacen("Content-Type:", &shown, 1))
}

fn refused() -> (String, String) {
    ("403".to_owned(), "403".to_owned())
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").map_or(answer, |(_, body)| body)
}

fn calls(house: &House) -> usize {
    let rows = house.json(&["audit", "query", "--limit", "1000"]);
    let is_call = |row: &&Value| row.get("tool").and_then(Value::as_str) == Some("read_note");
    rows.as_array().into_iter().flatten().filter(is_call).count()
}

#[test]
fn gate_8_a_users_server_is_reached_by_that_user_and_unknown_to_others() {
    let elsewhere = house();
    let upstream = Server::start(&elsewhere);
    let house = house();
    let server = Server::start(&house);
    let (anna, bob) = (person(&house, "anna"), person(&house, "bob"));
    let url = format!("http://{}/mcp/notes", upstream.address());
    let add = |user: &str, more: Value| {
        let mut definition = json!({ "url": url.replace("http:", "https:") });
        definition
            .as_object_mut()
            .into_iter()
            .for_each(|all| all.extend(more.as_object().cloned().unwrap_or_default()));
        json!({ "name": "docs", "user": user, "definition": definition }).to_string()
    };
    let added = |token: &str, body: &str| ask(&server, Some(token), "POST", "/api/v1/servers/add", body);
    assert_eq!(added(&bob, &add("anna", json!({}))).0, "403", "nobody adds for another");
    assert_eq!(added(&anna, &add("anna", json!({ "private_network": true }))).0, "403");
    let plain = add("anna", json!({ "url": url }));
    assert!(added(&anna, &plain).1.contains("--private-network"), "{}", added(&anna, &plain).1);
    let (status, answer) = added(&anna, &add("anna", json!({})));
    assert_eq!(status, "200", "{answer}");
    // It is hers, but she has no say over the neighbours of this machine.
    let unreached = read(&server, &anna);
    assert!(!is_read(&unreached) && unreached.contains("\"error\""), "{unreached}");
    assert!(house.run(&["servers", "show", "anna.docs"]).out.contains(NEAR));
    assert_eq!(calls(&elsewhere), 0);
    let replaced =
        house.run(&["servers", "add", "docs", "--user", "anna", "--url", &url, "--private-network", "--replace"]);
    assert_eq!(replaced.code, 0, "{}{}", replaced.out, replaced.err);
    // What starts it is another thing now.
    assert!(replaced.err.contains("tools diff anna.docs"), "{}", replaced.err);
    let accepted = house.run(&["tools", "accept", "anna.docs:server/launch"]);
    assert_eq!(accepted.code, 0, "{}{}", accepted.out, accepted.err);
    assert!(is_read(&read(&server, &anna)), "{}", read(&server, &anna));
    let reached = calls(&elsewhere);
    // For an agent of hers it has no scope yet, and for others it is not there, at no door and by no name.
    let (_, agent) = issue(&house, &["--role", "pm", "--user", "anna"]);
    assert!(!is_read(&read(&server, &agent)));
    let set = |token: &str, wish: Value| ask(&server, Some(token), "POST", "/api/v1/tools/set", &wish.to_string()).0;
    let scoped = json!({ "tool": "anna.docs:read_note", "scope": "pm" });
    assert_eq!((set(&bob, scoped.clone()), set(&anna, json!({ "tool": "notes:read_note", "scope": "pm" }))), refused());
    assert_eq!(set(&anna, json!({ "tool": "anna.docs:read_note", "enabled": true })), "403", "that is for admins");
    assert_eq!(set(&anna, scoped), "200");
    let (for_bob, of_nobody) = (read(&server, &bob), read_at(&server, &bob, "/mcp/nina.docs"));
    assert!(!for_bob.starts_with("HTTP/1.1 200"), "{for_bob}");
    assert_eq!(body(&for_bob).replace("anna", "nina"), body(&of_nobody));
    let seen = |token: &str, path: &str| ask(&server, Some(token), "GET", path, "");
    for path in ["/api/v1/servers", "/api/v1/tools"] {
        assert!(seen(&anna, path).1.contains("anna.docs"), "{path}: {}", seen(&anna, path).1);
        assert!(!seen(&bob, path).1.contains("anna.docs"), "{path}: {}", seen(&bob, path).1);
    }
    for path in ["/api/v1/servers/show?name=anna.docs", "/api/v1/tools?server=anna.docs"] {
        assert_eq!(seen(&anna, path).0, "200", "{path}");
        let [hidden, unknown] = [path, &path.replace("anna.", "nina.")].map(|path| seen(&bob, path));
        assert_eq!((hidden.0.as_str(), unknown.0.as_str()), ("404", "404"), "{path}");
        assert_eq!(body(&hidden.1).replace("anna", "nina"), body(&unknown.1));
    }
    assert_eq!(seen(&bob, "/api/v1/policy/history").0, "403");
    assert!(seen(&anna, "/api/v1/modes/template").1.contains("anna.docs:read_note"));
    for path in ["/api/v1/modes/template", "/api/v1/settings"] {
        assert!(!seen(&bob, path).1.contains("anna.docs"), "{path}: {}", seen(&bob, path).1);
    }
    // Nor does anybody choose over HTTP what is read on this machine.
    let other_place = json!({ "place": { "working_directory": "/", "config": "/etc/passwd" } }).to_string();
    let shown = ask(&server, Some(&bob), "POST", "/api/v1/allowlist/show", &other_place);
    assert_eq!(shown.0, "200", "{}", shown.1);
    let switch = |token: &str, name: &str| {
        let body = json!({ "name": name, "enabled": false }).to_string();
        ask(&server, Some(token), "POST", "/api/v1/servers/switch", &body).0
    };
    assert_eq!((switch(&bob, "anna.docs"), switch(&bob, "nina.docs")), refused());
    let accept = json!({ "server": "anna.docs" }).to_string();
    assert_eq!(ask(&server, Some(&bob), "POST", "/api/v1/tools/accept", &accept).0, "404");
    assert_eq!(calls(&elsewhere), reached, "nobody else's call came through");
    // No second server by a name that is as good as the same.
    let taken = house.run(&["servers", "add", "ANNA.docs", "--url", &url]);
    assert!(taken.code != 0 && taken.err.contains("as good as"), "{}", taken.err);
    assert_eq!(switch(&anna, "Anna.DOCS"), "200");
    assert!(!is_read(&read(&server, &anna)));
    let on = json!({ "name": "anna.docs", "enabled": true }).to_string();
    let switch_on = || ask(&server, Some(&anna), "POST", "/api/v1/servers/switch", &on);
    assert_eq!(switch_on().0, "200");
    assert!(is_read(&read(&server, &anna)));
    // What an admin switches off, its owner does not switch on: not by a switch, nor by another definition.
    let reached = calls(&elsewhere);
    assert_eq!(house.run(&["servers", "disable", "anna.docs"]).code, 0);
    assert!(switch_on().0 == "422" && switch_on().1.contains("by an admin"), "{}", switch_on().1);
    let mut again: Value = serde_json::from_str(&add("anna", json!({ "enabled": true }))).unwrap_or_default();
    again.as_object_mut().into_iter().for_each(|all| drop(all.insert("replace".to_owned(), true.into())));
    assert_eq!(added(&anna, &again.to_string()).0, "200");
    assert!(!is_read(&read(&server, &anna)));
    assert_eq!(calls(&elsewhere), reached);
    assert_eq!(house.run(&["servers", "enable", "anna.docs"]).code, 0);
    assert!(!is_read(&read(&server, &anna)));
    assert!(house.run(&["servers", "show", "anna.docs"]).out.contains(NEAR), "hers again, and far from here");
    // What was refused is in the record.
    let rows = house.json(&["audit", "query", "--limit", "1000"]).to_string();
    assert!(rows.contains("refused: servers of others are for those with the right"), "{rows}");
}
