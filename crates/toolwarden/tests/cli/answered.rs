//! `explain` of a call that people said something of: the decision is the policy's, and what was said stands beside it.

use serde_json::Value;

use crate::approving::{call, held, house};
use crate::house::House;
use crate::server::Server;

fn notes(house: &House, arguments: &[&str]) -> String {
    let mut all = vec!["explain"];
    all.extend(arguments);
    let answer = house.json(&all);
    assert_eq!(answer.get("decision").and_then(Value::as_str), Some("hold"), "{answer}");
    answer.get("notes").map(Value::to_string).unwrap_or_default()
}

#[test]
fn explain_says_what_grants_approvals_and_rejections_would_do() {
    let house = house("");
    assert_eq!(notes(&house, &["notes:write_note"]), "[]", "and no store is made for it");
    assert!(!house.path("home/.local/share/toolwarden/toolwarden.sqlite").exists());
    let server = Server::start(&house);
    let args = |text: &str| format!(r#"{{"text":"{text}","name":"plan"}}"#);
    let asked = |text: &str| notes(&house, &["notes:write_note", "--args", &args(text)]);
    assert_eq!(asked("mine"), "[]");
    call(&server, "mine");
    let id = held(&house);
    assert_eq!(asked("mine"), "[]", "it waits, as the decision says");
    assert_eq!(house.run(&["approvals", "deny", &id]).code, 0);
    assert!(asked("mine").contains("this call was rejected by") && asked("mine").contains(&id));
    assert!(call(&server, "mine").contains("rejected"));
    assert_eq!(asked("other"), "[]", "another call is another one");
    let of_tool = notes(&house, &["notes:write_note"]);
    assert!(of_tool.contains("the same call, with the same arguments, is denied (rejected)"), "{of_tool}");
    for text in ["two", "three"] {
        call(&server, text);
        assert_eq!(house.run(&["approvals", "deny", &held(&house)]).code, 0);
    }
    let four = call(&server, "four");
    assert!(four.contains("denied") || four.contains("rejected"), "{four}");
    assert!(asked("four").contains("(rejected_often)"), "{}", asked("four"));
    assert!(asked("four").contains("3 calls of this tool were rejected within 10 minutes"), "{}", asked("four"));
    let user = house.json(&["approvals", "show", &id]);
    let user = user.pointer("/caller/user").and_then(Value::as_str).unwrap_or_default().to_owned();
    assert_eq!(house.run(&["grants", "issue", "notes:delete_note", "--calls", "1", "--user", &user]).code, 0);
    assert!(notes(&house, &["notes:delete_note"]).contains("a grant covers this call, so it runs"));
    assert!(notes(&house, &["notes:delete_note"]).contains("1 left)"));
    assert_eq!(notes(&house, &["notes:delete_note", "--user", "somebody-else"]), "[]");
    let shown = house.run(&["explain", "notes:delete_note"]).out;
    assert!(shown.contains("  note      a grant covers this call"), "{shown}");
    server.stop();
    assert!(notes(&house, &["notes:delete_note"]).contains("a grant covers"), "without a server, too");
}
