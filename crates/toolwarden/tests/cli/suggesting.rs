//! MODE-10: what was used says what is needed; where nothing was, names of tools do.

use serde_json::{Value, json};

use crate::house::House;
use crate::server::Server;

/// Arguments that fit.
const NAMED: &str = r#"{"name":"welcome"}"#;

#[test]
fn mode_10_what_was_used_is_the_least_that_is_needed() {
    let house = House::new();
    let server = Server::start(&house);
    for command in [&["allow", "notes:*"][..], &["modes", "set", "review", "--name", "Review"]] {
        assert_eq!(house.run(command).code, 0);
    }
    // Nothing was used in the mode yet: the names of listed tools suggest what it should not have.
    assert!(server.listed_in_mode("review").contains("delete_note"));
    let said = house.run(&["modes", "suggest", "review"]).out;
    assert!(said.contains("toolwarden modes set review --disallow-tool notes:delete_note\n"), "{said}");
    let by_name = house.json(&["modes", "suggest", "review"]);
    assert_eq!(
        by_name.get("by_name"),
        Some(&json!([{ "mode": "review", "disallow_tools": ["notes:delete_note"] }])),
        "{by_name}"
    );
    let read = server.called_in_mode("review", "read_note", &json!({ "name": "welcome" }));
    assert!(read.contains("kept by the demo server"), "{read}");
    let found = house.json(&["modes", "suggest", "review"]);
    assert_eq!(found.get("used"), Some(&json!([{ "server": "notes", "tool": "read_note", "calls": 1 }])), "{found}");
    assert_eq!(
        found.get("definition"),
        Some(&json!({ "name": "Review", "allowed_servers": ["notes"], "allowed_tools": ["notes:read_note"] }))
    );
    let no_longer = found.get("no_longer").and_then(Value::as_array).cloned().unwrap_or_default();
    assert!(
        no_longer.contains(&json!("notes:write_note")) && !no_longer.contains(&json!("notes:read_note")),
        "{found}"
    );
    // What is suggested can be set as it is, and still permits what was used.
    house.write("space/suggested.json", &found.get("definition").cloned().unwrap_or_default().to_string());
    assert_eq!(house.run(&["modes", "set", "review", "--from", "suggested.json"]).code, 0);
    assert!(house.decision(&["explain", "notes:read_note", "--mode", "review", "--args", NAMED]).starts_with("allow"));
    assert!(house.decision(&["explain", "notes:write_note", "--mode", "review"]).starts_with("deny"));
    assert_eq!(house.run(&["modes", "suggest", "nobody"]).code, 2);
}

#[test]
fn mode_9_templates_are_filled_in_with_tools_that_were_seen_and_can_be_set() {
    let house = House::new();
    let server = Server::start(&house);
    assert!(house.run(&["modes", "template"]).out.contains("read-only"));
    let template = house.run(&["modes", "template", "read-only"]).out;
    house.write("space/template.json", &template);
    assert_eq!(house.run(&["modes", "set", "reading", "--from", "template.json"]).code, 0);
    let listed = server.listed_in_mode("reading");
    assert!(listed.contains("read_note") && !listed.contains("write_note"), "{listed}");
    assert_eq!(house.run(&["modes", "template", "nothing-like-it"]).code, 2);
}
