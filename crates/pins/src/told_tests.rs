//! Every change is told in one form or the other.

use super::*;

/// The lines of a comparison.
fn lines(kind: Kind, old: Option<&str>, new: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for Told { old, new } in told(kind, old, new) {
        for (sign, side) in [('-', old), ('+', new)] {
            lines.extend(side.map(|side| format!("{sign} {}: {}", side.label, side.text)));
        }
    }
    lines
}

fn schema(properties: &str, required: &str) -> String {
    format!(r#"{{"name":"t","inputSchema":{{"properties":{properties},"required":{required}}}}}"#)
}

#[test]
fn parameters_are_told_whole_and_what_must_be_given_with_them() {
    let before = schema(r#"{"a":{"type":"string"},"b":{}}"#, r#"["a"]"#);
    let after = schema(r#"{"a":{"type":"string"},"b":{},"c/d":{"type":"string","description":"C"}}"#, r#"["c/d","b"]"#);
    let expected = [
        "- parameter a (string, required): ",
        "+ parameter a (string): ",
        "- parameter b (any type): ",
        "+ parameter b (any type, required): ",
        "+ parameter c/d (string, required): C",
    ];
    assert_eq!(lines(Kind::Tool, Some(&before), &after), expected);
    assert_eq!(
        lines(Kind::Tool, None, &schema("{}", "[]")),
        ["+ inputSchema/properties: {}", "+ inputSchema/required: []", "+ name: t"]
    );
}

#[test]
fn what_is_not_plain_is_told_by_its_place() {
    let plain = schema(r#"{"a":{"type":"string"}}"#, r#"["a"]"#);
    for (other, expected) in [
        (
            schema(r#"{"a":{"type":["string","null"]}}"#, r#"["a"]"#),
            vec![
                "- inputSchema/properties/a/type: string",
                "+ inputSchema/properties/a/type/0: string",
                "+ inputSchema/properties/a/type/1: null",
            ],
        ),
        (schema(r#"{"a":{"type":"string"}}"#, r#"["a","SYSTEM"]"#), vec!["+ inputSchema/required/1: SYSTEM"]),
        (schema(r#"{"a":{"type":"string"}}"#, r#"["a","a"]"#), vec!["+ inputSchema/required/1: a"]),
        (
            schema(r#"{"a":true}"#, "[]"),
            vec![
                "+ inputSchema/properties/a: true",
                "- inputSchema/properties/a/type: string",
                "+ inputSchema/required: []",
                "- inputSchema/required/0: a",
            ],
        ),
        (schema(r#"{"a":{"type":"string","default":"x"}}"#, r#"["a"]"#), vec!["+ inputSchema/properties/a/default: x"]),
    ] {
        assert_eq!(lines(Kind::Tool, Some(&plain), &other), expected, "{other}");
    }
    let (one, two) = (schema(r#"{"a":{},"b":{}}"#, r#"["a","b"]"#), schema(r#"{"a":{},"b":{}}"#, r#"["b","a"]"#));
    assert_eq!(lines(Kind::Tool, Some(&one), &two).len(), 4, "another order is a change, too");
}

#[test]
fn a_description_that_is_empty_is_not_one_that_is_missing() {
    let (one, two) = (schema(r#"{"a":{}}"#, "[]"), schema(r#"{"a":{"description":""}}"#, "[]"));
    let expected = ["- inputSchema/properties/a: {}", "+ inputSchema/properties/a/description: "];
    assert_eq!(lines(Kind::Tool, Some(&one), &two), expected);
}

#[test]
fn what_starts_a_server_is_one_line() {
    let launch = |args: &str, cwd: &str| format!(r#"{{"reached":{{"command":"run","args":{args}}},"cwd":{cwd}}}"#);
    let before = launch(r#"["a b","it's",""]"#, "null");
    let expected = [r"- command: run 'a b' 'it'\''s' ''", "+ command: run a b"];
    assert_eq!(lines(Kind::Launch, Some(&before), &launch(r#"["a","b"]"#, "null")), expected);
    let elsewhere = launch(r#"["a b","it's",""]"#, r#""x""#);
    assert_eq!(lines(Kind::Launch, Some(&before), &elsewhere), ["- cwd: null", "+ cwd: x"]);
    let url = r#"{"reached":{"url":"https://h/mcp"},"cwd":null}"#;
    assert_eq!(
        lines(Kind::Launch, Some(url), &launch(r#"["a"]"#, "null")),
        ["- url: https://h/mcp", "+ command: run a"]
    );
    let nothing = r#"{"reached":{},"cwd":null}"#;
    assert_eq!(lines(Kind::Launch, Some(url), nothing), ["+ reached: {}", "- reached/url: https://h/mcp"]);
}
