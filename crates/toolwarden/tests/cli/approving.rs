//! Held calls and answers by command, beside a running gateway and without one, on a file and on PostgreSQL.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use toolwarden_test_postgres::Cluster;

use crate::house::House;
use crate::identifying::{ask, issue};
use crate::server::{Server, eventually};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

fn write(text: &str) -> Value {
    json!({ "name": "plan", "text": text })
}

pub fn call(server: &Server, text: &str) -> String {
    server.call("write_note", &write(text))
}

/// The notes that were written: what reached the server.
pub fn notes(server: &Server) -> String {
    server.call("read_note", &json!({ "name": "plan" }))
}

/// Reading runs unasked, writing asks.
pub fn house(more: &str) -> House {
    let house = House::new();
    house.write(
        CONFIG,
        &format!(
            "{more}\n[servers.notes]\ncommand = \"{}\"\nargs = [\"demo-server\"]\n",
            env!("CARGO_BIN_EXE_toolwarden")
        ),
    );
    house.write("home/.cursor/permissions.json", r#"{"mcpAllowlist": ["notes:read_note"]}"#);
    house
}

/// The id under which the newest call waits.
pub fn held(house: &House) -> String {
    let found = house.json(&["approvals", "list"]);
    found.pointer("/0/id").and_then(Value::as_str).unwrap_or_default().to_owned()
}

pub fn state(house: &House, id: &str) -> String {
    let view = house.json(&["approvals", "show", id]);
    view.get("state").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[test]
fn review_3_a_call_is_held_shown_approved_and_runs_once() {
    let house = house("");
    let server = Server::start(&house);
    let said = call(&server, "mine");
    let id = held(&house);
    assert!(said.contains(&format!("ask the user to approve call {id} in Toolwarden, then repeat it")), "{said}");
    assert!(!said.contains("toolwarden approvals") && !said.contains("toolwarden allow"), "{said}");
    let shown = house.run(&["approvals", "show", &id]);
    for words in ["notes:write_note", "\"text\": \"mine\"", "not_in_allowlist", "Write a note", "--scope tool"] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    assert!(house.run(&["approvals", "list"]).out.contains(&id));
    assert!(!notes(&server).contains("mine"), "nothing was run");
    let approved = house.run(&["approvals", "approve", &id, "--note", "fine"]);
    assert_eq!((approved.code, approved.err.as_str()), (0, ""), "{}", approved.out);
    assert!(call(&server, "mine").contains("wrote plan"));
    assert!(notes(&server).contains("mine"));
    assert!(call(&server, "mine").contains("Held by Toolwarden"), "an answer is good for one call");
    assert!(eventually(|| state(&house, &id) == "succeeded"), "{}", state(&house, &id));
    let late = house.run(&["approvals", "deny", &id]);
    assert!(late.code == 2 && late.err.contains("was approved by"), "{}", late.err);
    let rows = house.json(&["audit", "query"]);
    let told: Vec<_> = rows
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| row.get("approval_id").and_then(Value::as_str) == Some(&id))
        .filter_map(|row| row.get("method")?.as_str().map(str::to_owned))
        .collect();
    for step in ["approval_held", "approval_approved", "approval_consumed", "tools/call"] {
        assert!(told.iter().any(|method| method == step), "{step}: {told:?}");
    }
    assert_eq!(house.run(&["audit", "verify"]).code, 0);
}

#[test]
fn review_3_what_is_denied_is_told_with_the_persons_words_and_can_be_denied_always() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "mine");
    let denied = house.run(&["approvals", "deny", &held(&house), "--note", "use another name"]);
    assert_eq!(denied.code, 0, "{}", denied.err);
    let said = call(&server, "mine");
    assert!(said.contains("use another name") && said.contains("Reason: rejected"), "{said}");
    call(&server, "other");
    let denied = house.run(&["approvals", "deny", &held(&house), "--remember"]);
    assert!(denied.code == 0 && denied.out.contains("toolwarden unblock"), "{} {}", denied.out, denied.err);
    let said = call(&server, "third");
    assert!(said.contains("user_blocked"), "{said}");
    assert!(house.run(&["allowlist"]).out.contains("block"));
    assert_eq!(house.run(&["unblock", "notes:write_note"]).code, 0);
    assert!(call(&server, "third").contains("Held by Toolwarden"));
    assert_eq!(house.run(&["unblock", "notes:write_note"]).code, 2);
}

#[test]
fn review_3_always_this_tool_is_an_entry_where_it_takes_effect() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "mine");
    let approved = house.run(&["approvals", "approve", &held(&house), "--scope", "tool"]);
    assert!(approved.code == 0 && approved.out.contains("notes:write_note"), "{} {}", approved.out, approved.err);
    assert!(house.read("home/.cursor/permissions.json").contains("notes:write_note"));
    assert!(call(&server, "mine").contains("wrote plan"));
    assert!(call(&server, "another").contains("wrote plan"), "nobody is asked any more");
    // What always asks offers no such answer.
    let asks = self::house("[auto_run]\nask = [\"notes:write_note\"]\n");
    let server = Server::start(&asks);
    call(&server, "mine");
    let refused = asks.run(&["approvals", "approve", &held(&asks), "--scope", "tool"]);
    assert!(refused.code == 2 && refused.err.contains("a person is asked each time"), "{}", refused.err);
    assert!(call(&server, "mine").contains("Held by Toolwarden"));
}

#[test]
fn review_4_who_may_answer_is_said_by_rules_and_rights() {
    let house = house(
        "[control]\nsecond_person = [\"notes:write_note\"]\n[control.approve.\"notes:write_note\"]\nreason = true\n\
         [gateway]\nanonymous_loopback = true\n",
    );
    let server = Server::start(&house);
    let (_, bob) = issue(&house, &["--person", "--user", "bob", "--right", "approver"]);
    let (_, eve) = issue(&house, &["--person", "--user", "eve", "--right", "user"]);
    let (_, agent) = issue(&house, &["--role", "worker", "--task", "t", "--job", "j", "--user", "bob"]);
    call(&server, "mine");
    let id = held(&house);
    let own = house.run(&["approvals", "approve", &id, "--note", "mine"]);
    assert!(own.code != 0 && own.err.contains("another person"), "{}", own.err);
    let post = |token: &str, path: &str, body: &Value| ask(&server, Some(token), "POST", path, &body.to_string());
    let path = "/api/v1/approvals/approve";
    let refused = post(&eve, path, &json!({ "id": id, "note": "x" }));
    assert!(refused.0 == "404", "she does not see it: {refused:?}");
    let refused = post(&agent, path, &json!({ "id": id, "note": "x" }));
    assert!(refused.0 == "403", "{refused:?}");
    let refused = post(&bob, path, &json!({ "id": id }));
    assert!(refused.0 == "403" && refused.1.contains("note"), "{refused:?}");
    assert!(call(&server, "mine").contains("Held by Toolwarden"));
    let seen = ask(&server, Some(&bob), "GET", "/api/v1/approvals", "");
    assert!(seen.1.contains(&id), "{seen:?}");
    let done = post(&bob, path, &json!({ "id": id, "note": "I looked" }));
    assert!(done.0 == "200", "{done:?}");
    assert!(call(&server, "mine").contains("wrote plan"));
}

#[test]
fn review_8_a_caller_who_waits_is_answered_when_a_person_is_asked() {
    let house = house("[gateway]\nhold = \"wait\"\n");
    let server = Server::start(&house);
    let text = json!({ "name": "write_note", "arguments": write("mine") });
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.rpc("tools/call", Some("write_note"), &text).to_string());
        assert!(eventually(|| !held(&house).is_empty()));
        assert_eq!(house.run(&["approvals", "approve", &held(&house)]).code, 0);
        let said = waiting.join().unwrap_or_default();
        assert!(said.contains("wrote plan"), "{said}");
    });
}

#[test]
fn review_4_an_answer_given_without_a_server_counts_when_there_is_one() {
    let house = house("");
    let id = {
        let server = Server::start(&house);
        call(&server, "mine");
        held(&house)
    };
    assert_eq!(house.run(&["approvals", "approve", &id]).code, 0, "it survives the end of the gateway");
    let server = Server::start(&house);
    assert!(call(&server, "mine").contains("wrote plan"));
    assert!(eventually(|| state(&house, &id) == "succeeded"));
}

#[test]
fn review_7_this_session_counts_for_the_tool_and_the_token_alone() {
    let house = house("[gateway]\nanonymous_loopback = true\n");
    let server = Server::start(&house);
    let (id, token) = issue(&house, &["--person"]);
    let (_, other) = issue(&house, &["--person"]);
    let write_as = |token: &str, text: &str| server.call_as(token, "write_note", &write(text));
    write_as(&token, "one");
    let approved = house.run(&["approvals", "approve", &held(&house), "--scope", "session"]);
    assert!(approved.code == 0 && approved.out.contains("with the same token"), "{} {}", approved.out, approved.err);
    for text in ["one", "two", "three"] {
        assert!(write_as(&token, text).contains("wrote plan"), "{text}");
    }
    assert!(write_as(&other, "four").contains("Held by Toolwarden"));
    let grants = house.json(&["grants", "list"]);
    let grant = grants.pointer("/0/id").and_then(Value::as_str).unwrap_or_default().to_owned();
    assert_eq!(grants.pointer("/0/token").and_then(Value::as_str), Some(id.as_str()), "{grants}");
    assert_eq!(house.run(&["grants", "revoke", &grant]).code, 0);
    assert!(write_as(&token, "five").contains("Held by Toolwarden"));
    assert_eq!(house.run(&["grants", "revoke", &grant]).code, 2);
}

#[test]
fn review_9_a_grant_is_for_so_many_calls() {
    let house = house("");
    let server = Server::start(&house);
    let issued = house.run(&["grants", "issue", "notes:write_note", "--calls", "2", "--note", "two and no more"]);
    assert_eq!(issued.code, 0, "{}", issued.err);
    assert!(call(&server, "one").contains("wrote plan"));
    assert!(call(&server, "two").contains("wrote plan"));
    assert!(call(&server, "three").contains("Held by Toolwarden"));
    for (arguments, words) in [
        (vec!["notes:write_note", "--calls", "0"], "1 to 10000"),
        (vec!["*:write_note", "--calls", "1"], "one server"),
        (vec!["write_note", "--calls", "1"], "exactly one `:`"),
        (vec!["notes:write_note"], "--calls"),
        (vec!["notes:write_note", "--calls", "1", "--expires", "30d"], "within 7 days"),
    ] {
        let refused = house.run(&[vec!["grants", "issue"], arguments].concat());
        assert!(refused.code == 2 && refused.err.contains(words), "{words}: {}", refused.err);
    }
}

#[test]
fn review_3_persons_hear_of_held_calls_as_they_happen() {
    use std::io::{Read, Write};
    let house = house("[gateway]\nanonymous_loopback = true\n");
    let server = Server::start(&house);
    let (id, bob) = issue(&house, &["--person", "--user", "bob", "--right", "approver"]);
    let (_, eve) = issue(&house, &["--person", "--user", "eve", "--right", "user"]);
    let listen = |token: &str| {
        let Ok(mut stream) = server.connect() else { unreachable!("it listens") };
        assert!(stream.set_read_timeout(Some(Duration::from_secs(30))).is_ok());
        let request = format!(
            "GET /api/v1/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\n\r\n",
            server.address()
        );
        assert!(stream.write_all(request.as_bytes()).is_ok());
        stream
    };
    let read_until = |stream: &mut std::net::TcpStream, words: &str| {
        let mut heard = String::new();
        let mut bytes = [0; 4096];
        while !heard.contains(words) {
            match stream.read(&mut bytes) {
                Ok(0) | Err(_) => break,
                Ok(read) => heard.push_str(&String::from_utf8_lossy(bytes.get(..read).unwrap_or_default())),
            }
        }
        heard
    };
    let (mut hears, mut other) = (listen(&bob), listen(&eve));
    assert!(read_until(&mut hears, "\r\n\r\n").contains("text/event-stream"));
    read_until(&mut other, "\r\n\r\n");
    call(&server, "mine");
    let waiting = held(&house);
    let heard = read_until(&mut hears, "\"state\":\"held\"");
    assert!(heard.contains("event: approval") && heard.contains(&waiting), "{heard}");
    assert_eq!(house.run(&["approvals", "approve", &waiting]).code, 0);
    assert!(read_until(&mut hears, "\"state\":\"approved\"").contains(&waiting));
    // Another's calls are not hers to hear of; her own are.
    server.call_as(&eve, "write_note", &write("hers"));
    let heard = read_until(&mut other, "hers");
    assert!(heard.contains("hers") && !heard.contains(&waiting), "{heard}");
    assert_eq!(house.run(&["tokens", "revoke", &id]).code, 0);
    let rest = read_until(&mut hears, "never said");
    assert!(!rest.contains("never said"), "the stream ends with the token");
}

/// Two gateways with data directories of their own on one PostgreSQL.
#[test]
fn review_4_one_approval_runs_once_on_two_gateways() {
    let Ok(cluster) = Cluster::start() else { unreachable!("PostgreSQL starts") };
    let store = format!("[store]\nurl = \"{}\"\n", cluster.url());
    let (one, two) = (house(&store), house(&store));
    let first = Server::start(&one);
    let key = "home/.config/toolwarden/master.key";
    let bytes = std::fs::read(one.path(key)).unwrap_or_default();
    assert!(std::fs::write(two.path(key), bytes).is_ok());
    use std::os::unix::fs::PermissionsExt;
    for (path, mode) in [("home/.config/toolwarden", 0o700), (key, 0o600)] {
        assert!(std::fs::set_permissions(two.path(path), std::fs::Permissions::from_mode(mode)).is_ok());
    }
    let second = Server::start(&two);
    let said = call(&first, "mine");
    assert!(call(&second, "mine").contains(&held(&one)), "the same call lies there once: {said}");
    assert_eq!(two.run(&["approvals", "approve", &held(&two)]).code, 0);
    let ran = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..20)
            .map(|number| {
                let server = if number % 2 == 0 { &first } else { &second };
                scope.spawn(move || call(server, "mine"))
            })
            .collect();
        tries.into_iter().filter_map(|one| one.join().ok()).filter(|said| said.contains("wrote plan")).count()
    });
    assert_eq!(ran, 1);
    assert_eq!([&first, &second].iter().filter(|server| notes(server).contains("mine")).count(), 1);
}

/// A terminal for a program.
fn on_terminal(house: &House, arguments: &str) -> Option<Child> {
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let command = Command::new("script")
        .args(["--quiet", "--flush", "--return", "--command", &format!("{program} {arguments}"), "/dev/null"])
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .env("PATH", "/usr/bin:/bin")
        .env("TERM", "xterm")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    command.ok()
}

#[test]
fn review_3_held_calls_are_watched_and_answered_by_key() {
    use std::io::{Read, Write};
    let house = house("");
    let server = Server::start(&house);
    call(&server, "mine");
    let Some(mut child) = on_terminal(&house, "approvals watch") else { unreachable!("script(1) is installed") };
    let (Some(mut keys), Some(mut screen)) = (child.stdin.take(), child.stdout.take()) else {
        unreachable!("both are piped")
    };
    let shown = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = screen.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Pressed until it counts: nobody knows when the screen is there.
            for _ in 0..200 {
                let _ = keys.write_all(b"a").and_then(|()| keys.flush());
                if held(&house).is_empty() {
                    break;
                }
                pause(Duration::from_millis(100));
            }
            let _ = keys.write_all(b"q").and_then(|()| keys.flush());
        });
    });
    let ended = child.wait();
    let screen = shown.join().unwrap_or_default();
    assert!(ended.is_ok_and(|status| status.success()), "{screen}");
    assert!(screen.contains("notes:write_note") && screen.contains("approve once"), "{screen}");
    assert!(call(&server, "mine").contains("wrote plan"), "{screen}");
}

#[expect(clippy::disallowed_methods, reason = "a person takes a moment between two keys")]
pub fn pause(span: Duration) {
    std::thread::sleep(span);
}

/// One caller's many calls hide nobody else's: what waits is shown page by page, whoever waits longest first.
#[test]
fn review_3_whoever_watches_sees_every_call_that_waits() {
    use std::io::{BufRead, BufReader};
    let house = house("");
    let server = Server::start(&house);
    for number in 0..205 {
        call(&server, &format!("call {number:03}"));
    }
    let child = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
        .args(["approvals", "watch", "--json"])
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else { unreachable!("it starts") };
    let lines = child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines().map_while(Result::ok));
    let lines: Vec<_> = lines.take(205).collect();
    assert!(child.kill().and_then(|()| child.wait()).is_ok());
    assert!(lines.first().is_some_and(|line| line.contains("call 000")), "{:?}", lines.first());
    assert!(lines.last().is_some_and(|line| line.contains("call 204")), "{:?}", lines.last());
}
