//! What the record shows of arguments, and what it never does.

use proptest::prelude::*;
use regex::Regex;
use serde_json::{Value as Json, json};
use toolwarden_core::json::{Document, Limits};
use toolwarden_sources::RedactionRules;

use super::{MARK, MOST_BYTES, Redactor};

fn shown(names: &[&str], patterns: &[&str], arguments: &Json) -> Json {
    let patterns = patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect();
    let rules = RedactionRules { names: names.iter().map(|name| name.to_lowercase()).collect(), patterns };
    let text = arguments.to_string();
    let document = Document::parse(text.as_str(), Limits::again(text.len()));
    document.map_or(Json::Null, |document| Redactor::new(&rules).redacted(document.root()))
}

#[test]
fn gate_15_named_arguments_are_hidden_at_every_depth_and_in_every_spelling() {
    for arguments in [
        json!({ "pin": "hunter2x" }),
        json!({ "PIN": "hunter2x" }),
        json!({ "Pin": ["hunter2x"] }),
        json!({ "p_i_n": { "deep": "hunter2x" } }),
        json!({ "a": [{ "b": { "pin": "hunter2x" } }] }),
        json!({ "body": "{\"pin\": \"hunter2x\"}" }),
        json!({ "body": "{\"x\": \"{\\\"pin\\\": \\\"hunter2x\\\"}\"}" }),
        json!({ "line": "tool --pin hunter2x --y" }),
        json!({ "line": "pin=hunter2x&z=1" }),
        json!({ "line": "pin: 'hunter2x'" }),
        json!({ "line": "\"pin\": \"hunter2x\"" }),
        json!({ "password": "hunter2x" }),
        json!({ "API-KEY": "hunter2x" }),
        json!({ "Authorization": "Bearer hunter2x" }),
        json!({ "line": "curl -H 'Authorization: Bearer hunter2xhunter2x'" }),
        json!({ "url": "https://u:hunter2x@h.example/" }),
        json!({ "line": "curl -H 'X-Api-Key: hunter2x'" }),
        json!({ "line": "api_key=hunter2x" }),
        json!({ "line": "PGPASSWORD=hunter2x psql" }),
        json!({ "line": "Authorization: Token hunter2x" }),
        json!({ "line": "Cookie: a=b; sid=hunter2x" }),
        json!({ "line": "--password=a&hunter2x" }),
        json!({ "line": "curl -u admin:hunter2x http://h/" }),
        json!({ "line": "mysql -uroot -phunter2x db" }),
        json!({ "line": "sshpass -p hunter2x ssh h" }),
        json!({ "text": "<password>hunter2x</password>" }),
        json!({ "password1": "hunter2x" }),
        json!({ "passwordConfirmation": "hunter2x" }),
        json!({ "tokens": ["hunter2x"], "apiKeys": ["hunter2x"] }),
        json!({ "PGPASSWORD": "hunter2x" }),
        json!({ "argv": ["tool", "--pin", "hunter2x"] }),
        json!({ "argv": ["--password", ["hunter2x"]] }),
        json!({ "argv": ["-p-i-n", "hunter2x"] }),
        json!({ "argv": ["DB_PASSWORD", "hunter2x"] }),
        json!({ "pairs": [["api_key", "hunter2x"]] }),
        json!({ "env": [{ "name": "DB_PASSWORD", "value": "hunter2x" }] }),
        json!({ "header": { "key": "Authorization", "values": ["hunter2x"] } }),
        json!({ "value": "hunter2x", "field": "pin" }),
        json!({ "question": "password", "answer": "hunter2x" }),
        json!({ "newValue": ["hunter2x"], "what": "API_KEY" }),
        json!({ "prompt": "pin", "userInput": "hunter2x" }),
        json!({ "dbPassword": "hunter2x" }),
        json!({ "x".repeat(129): { "and": ["hunter2x"] } }),
        json!({ "GITHUB_ACCESS_TOKEN": "hunter2x" }),
        json!({ "stripe-secret-key": 7, "x": { "userApiKey": "hunter2x" } }),
    ] {
        let shown = shown(&["pin"], &[], &arguments).to_string();
        assert!(!shown.contains("hunter2x") && shown.contains(MARK), "{arguments}: {shown}");
    }
}

#[test]
fn gate_15_patterns_hide_parts_of_texts_names_and_numbers() {
    let pattern = &["card-[0-9]{4}", "^4[0-9]{5}$"];
    for (arguments, expected) in [
        (json!({ "text": "pay card-1234 now" }), json!({ "text": "pay [redacted] now" })),
        (json!({ "text": "card-1234card-5678" }), json!({ "text": "[redacted][redacted]" })),
        (json!({ "card-1234": 1 }), json!({ "[redacted]": 1 })),
        (json!({ "card-1234": 1, "card-5678": 2 }), json!({ "[redacted]": 1, "[redacted] 2": 2 })),
        (json!({ "n": 411_111 }), json!({ "n": "[redacted]" })),
        (
            json!({ "n": 1.5, "b": true, "z": null, "l": [1, "x"] }),
            json!({ "n": 1.5, "b": true, "z": null, "l": [1, "x"] }),
        ),
    ] {
        assert_eq!(shown(&[], pattern, &arguments), expected, "{arguments}");
    }
    for arguments in [
        json!({ "path": "docs/a.md", "text": "token bearer" }),
        json!({ "path": "src/app.py", "text": "tokens" }),
        json!({ "path": "src/app.py", "text": "def f(token): return token" }),
        json!({ "title": "password", "body": "x" }),
        json!({ "question": "Which password do you mean?", "answer": "x" }),
        json!({ "lines": ["reset the password", "next line"] }),
    ] {
        let seen = shown(&[], &[], &arguments).to_string();
        assert!(["docs/a.md", "src/app.py", "\"x\"", "next line"].iter().any(|kept| seen.contains(kept)), "{seen}");
    }
    assert_eq!(shown(&["amount"], &["amount"], &json!({ "amount": 5 })), json!({ "amount": MARK }));
    let dotted = json!({ "user": { "id": "u1", "name": "n" }, "id": "i1" });
    assert_eq!(shown(&["user.id"], &[], &dotted), json!({ "user": { "id": "[redacted]", "name": "n" }, "id": "i1" }));
}

#[test]
fn gate_15_a_record_of_arguments_is_bounded() {
    let long = "x ".repeat(400_000);
    let many: Vec<Json> = (0..100_000).map(|number| json!({ "k": number })).collect();
    let mut wide = serde_json::Map::new();
    for number in 0..20_000 {
        wide.insert(format!("name{number}"), "v".into());
    }
    for arguments in [json!({ "a": long }), json!(many), Json::Object(wide), json!({ long.clone(): 1 })] {
        let shown = shown(&[], &[], &arguments).to_string();
        assert!(shown.len() <= 2 * MOST_BYTES && shown.contains(super::LEFT_OUT), "{}", shown.len());
    }
    // A secret that the end of what is shown would cut is hidden whole.
    let at_the_edge = format!("{}card-1234", "y ".repeat(510));
    let shown = shown(&[], &["card-[0-9]{4}"], &json!({ "a": at_the_edge })).to_string();
    assert!(!shown.contains("card-1"), "{shown}");
}

proptest! {
    #[test]
    fn gate_15_a_hidden_value_is_never_shown(
        before in "[a-z ]{0,12}", after in "[a-z ]{0,12}", depth in 0usize..6, by_pattern in any::<bool>(),
    ) {
        let secret = "Zq9SECRETq9Z";
        let leaf = if by_pattern { json!({ "t": format!("{before}{secret}{after}") }) } else { json!({ "PiN": format!("{before}{secret}{after}") }) };
        let nested = (0..depth).fold(leaf, |inner, level| match level % 3 {
            0 => json!({ "inner": inner }),
            1 => json!([inner]),
            _ => json!({ "text": inner.to_string() }),
        });
        let seen = shown(&["pin"], &["Zq9[A-Z]+q9Z"], &nested).to_string();
        prop_assert!(!seen.contains("SECRET"), "{}", seen);
    }
}
