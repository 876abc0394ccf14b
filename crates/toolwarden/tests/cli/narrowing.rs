//! "Always, with such arguments": from a held call to an entry over arguments and back, with the real program.

use serde_json::{Value, json};

use crate::house::House;
use crate::identifying::{ask, issue};
use crate::server::Server;

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const PERMISSIONS: &str = "home/.cursor/permissions.json";
const ENTRY: &str = r#"notes:write_note where {"/name":{"equals":"plan"},"/text":"free"}"#;

/// A house with the notes server; reading runs unasked.
fn house(more: &str) -> House {
    let house = House::new();
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let server = format!("{more}\n[servers.notes]\ncommand = \"{program}\"\nargs = [\"demo-server\"]\n");
    house.write(CONFIG, &server);
    assert_eq!(house.run(&["allow", "notes:read_note"]).code, 0);
    house
}

fn call(server: &Server, name: &str, text: &str) -> String {
    server.call("write_note", &json!({ "name": name, "text": text }))
}

fn note(server: &Server, name: &str) -> String {
    server.call("read_note", &json!({ "name": name }))
}

/// The id under which the newest call waits.
fn held(house: &House) -> String {
    let found = house.json(&["approvals", "list"]);
    found.pointer("/0/id").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn is_held(said: &str) -> bool {
    said.contains("Held by Toolwarden")
}

#[test]
fn review_3_a_narrowed_always_lets_such_calls_run_and_no_others() {
    let house = house("");
    let server = Server::start(&house);
    for (name, text) in [("other", "three"), ("plan", "bad"), ("plan", "two"), ("plan", "one")] {
        assert!(is_held(&call(&server, name, text)));
        if text == "bad" {
            assert_eq!(house.run(&["approvals", "deny", &held(&house)]).code, 0);
        }
    }
    let id = held(&house);
    let shown = house.run(&["approvals", "show", &id]);
    for words in [
        "--scope narrowed permits calls of this tool with such arguments",
        "--where 'name=equals:plan' --where 'text=equals:one'\n      would have let 0 of 3 earlier held calls run",
        "--where 'name=equals:plan' --free 'text'\n      would have let 2 of 3 earlier held calls run, 1 of them denied by a person",
        ENTRY,
    ] {
        assert!(shown.out.contains(words), "{words}: {}", shown.out);
    }
    let wanted = ["--scope", "narrowed", "--where", "name=equals:plan", "--free", "text"];
    let approved = house.run(&[&["approvals", "approve", &id], &wanted[..]].concat());
    assert!(approved.code == 0 && approved.out.contains(ENTRY), "{} {}", approved.out, approved.err);
    // Another text under the same name: nobody is asked.
    assert!(call(&server, "plan", "never seen").contains("wrote plan"));
    assert!(note(&server, "plan").contains("never seen"));
    // Everything else is held, and nothing of it reaches the server.
    for name in ["other", "Plan", "plan ", "plan2", "plan/x"] {
        let said = call(&server, name, "hidden");
        assert!(is_held(&said), "{name}: {said}");
        assert!(!note(&server, name).contains("hidden"), "{name}");
    }
    for arguments in [
        json!({ "name": "plan", "text": "hidden", "mode": "append" }),
        json!({ "name": ["plan"], "text": "hidden" }),
        json!({ "text": "hidden" }),
    ] {
        let said = server.call("write_note", &arguments);
        assert!(!said.contains("wrote"), "{said}");
    }
    assert!(!note(&server, "plan").contains("hidden"));
    told_and_taken_back(&house, &server);
}

/// The entry is listed with its rule, explained, recorded, and can be removed.
fn told_and_taken_back(house: &House, server: &Server) {
    let listed = house.run(&["allowlist"]).out;
    assert!(listed.contains(ENTRY) && listed.contains(r#"context.equals.hasTag("/name")"#), "{listed}");
    let arguments = r#"{"name":"plan","text":"x"}"#;
    let explained = house.run(&["explain", "notes:write_note", "--args", arguments]).out;
    assert!(explained.contains("narrowed_match") && explained.contains(ENTRY), "{explained}");
    let explained = house.run(&["explain", "notes:write_note", "--args", r#"{"name":"other","text":"x"}"#]).out;
    assert!(explained.contains("not_in_allowlist") && explained.contains("asks for other arguments"), "{explained}");
    let rows = house.json(&["audit", "query"]).to_string();
    assert!(rows.contains("narrowed_match") && rows.contains("approved (narrowed)"), "{rows}");
    let removed = house.run(&["disallow", &ENTRY.replace("plan", "PLAN")]);
    assert!(removed.out.contains("nothing changed"), "what is compared has a case: {}", removed.out);
    let removed = house.run(&["disallow", ENTRY]);
    assert!(removed.code == 0 && removed.out.contains("removed"), "{} {}", removed.out, removed.err);
    assert!(is_held(&call(server, "plan", "later")));
    assert!(!note(server, "plan").contains("later"));
}

#[test]
fn review_3_a_narrowed_answer_that_is_no_entry_changes_nothing() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "plan", "one");
    let id = held(&house);
    for (options, words) in [
        (vec!["--scope", "narrowed"], "the whole tool"),
        (vec!["--scope", "narrowed", "--where", "name=equals:plan"], "`/text`, of which nothing is said"),
        (vec!["--scope", "narrowed", "--where", "name=equals:other", "--free", "text"], "is not so"),
        (vec!["--scope", "narrowed", "--where", "name=path:../x", "--free", "text"], "no plain path"),
        (vec!["--scope", "narrowed", "--where", "name", "--free", "text"], "NAME=KIND:VALUE"),
        (vec!["--scope", "narrowed", "--free", "name", "--free", "text"], "the whole tool"),
        (vec!["--scope", "tool", "--where", "name=equals:plan"], "`narrowed` alone"),
        (vec!["--free", "text"], "`narrowed` alone"),
    ] {
        let refused = house.run(&[vec!["approvals", "approve", &id], options].concat());
        assert!(refused.code == 2 && refused.err.contains(words), "{words}: {}", refused.err);
    }
    let view = house.json(&["approvals", "show", &id]);
    assert_eq!(view.get("state").and_then(Value::as_str), Some("held"), "{view}");
    assert!(is_held(&call(&server, "plan", "one")));
    assert!(!house.run(&["allowlist"]).out.contains("write_note"));
}

#[test]
fn review_3_a_narrowed_entry_goes_where_it_takes_effect_and_lowers_no_demand() {
    let house = house("");
    house.write(PERMISSIONS, r#"{"mcpAllowlist": ["notes:read_note"]}"#);
    let server = Server::start(&house);
    call(&server, "plan", "one");
    let id = held(&house);
    let wanted = ["--scope", "narrowed", "--where", "name=equals:plan", "--free", "text"];
    assert_eq!(house.run(&[&["approvals", "approve", &id], &wanted[..]].concat()).code, 0);
    let file: Value = serde_json::from_str(&house.read(PERMISSIONS)).unwrap_or_default();
    assert_eq!(file.pointer("/mcpAllowlist/1").and_then(Value::as_str), Some(ENTRY), "{file}");
    assert!(call(&server, "plan", "two").contains("wrote plan"));
    server.stop();
    // A person is demanded each time: the entry does not count, and no such answer is offered.
    let asks = self::house("[auto_run]\nask = [\"notes:write_note\"]\n");
    let added = asks.run(&["allow", ENTRY]);
    assert!(
        added.code == 0 && added.out.contains("still be held") && added.out.contains("mandatory_ask"),
        "{}",
        added.out
    );
    let server = Server::start(&asks);
    assert!(is_held(&call(&server, "plan", "one")));
    assert!(!note(&server, "plan").contains("one"));
    let id = held(&asks);
    assert!(!asks.run(&["approvals", "show", &id]).out.contains("narrowed"));
    let refused = asks.run(&[&["approvals", "approve", &id], &wanted[..]].concat());
    assert!(refused.code == 2 && refused.err.contains("a person is asked each time"), "{}", refused.err);
    server.stop();
    // The admin's lists count, not one's own; and in the admin's list such an entry is none.
    let admins = self::house("");
    let added = admins.run(&["allow", ENTRY]);
    assert!(added.code == 0 && !added.out.contains("still be held"), "{}", added.out);
    let list = serde_json::to_string(&["notes:read_note", ENTRY]).unwrap_or_default();
    let set = admins.run(&["admin", "set", "enabled=true", &format!("mcp_tool_allowlist={list}")]);
    assert_eq!(set.code, 0, "{}", set.err);
    let again = admins.run(&["allow", ENTRY]).out;
    assert!(again.contains("nothing changed") && again.contains("the admin record's list counts"), "{again}");
    let server = Server::start(&admins);
    assert!(is_held(&call(&server, "plan", "one")));
    assert!(!note(&server, "plan").contains("one"));
}

#[test]
fn review_3_nobody_narrows_the_lists_of_others() {
    let house = house("[gateway]\nanonymous_loopback = true\n");
    let server = Server::start(&house);
    let (_, bob) = issue(&house, &["--person", "--user", "bob", "--right", "approver"]);
    let (_, answers) = issue(&house, &["--person", "--user", "eve", "--right", "user"]);
    let (_, eve) = issue(&house, &["--person", "--user", "eve"]);
    server.call_as(&eve, "write_note", &json!({ "name": "plan", "text": "hers" }));
    let id = held(&house);
    let body = json!({ "id": id, "scope": "narrowed", "where": ["name=equals:plan"], "free": ["text"] }).to_string();
    let post = |token: &str| ask(&server, Some(token), "POST", "/api/v1/approvals/approve", &body);
    let refused = post(&bob);
    assert!(refused.0 == "403", "{refused:?}");
    assert!(is_held(&server.call_as(&eve, "write_note", &json!({ "name": "plan", "text": "hers" }))));
    let done = post(&answers);
    assert!(done.0 == "200" && done.1.contains(" where "), "{done:?}");
    let said = server.call_as(&eve, "write_note", &json!({ "name": "plan", "text": "more" }));
    assert!(said.contains("wrote plan"), "{said}");
    let said = server.call_as(&bob, "write_note", &json!({ "name": "plan", "text": "his" }));
    assert!(is_held(&said), "it is for her calls alone: {said}");
}
