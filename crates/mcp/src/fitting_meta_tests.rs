//! Whatever `_meta` says, what travels beside the digest is of a narrow form.

use proptest::prelude::*;
use serde_json::{Value, json};
use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Digest, LEFT_OUT_OF_META};

use super::{Answered, fitting_capabilities, fitting_meta};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// `_meta` as it travels.
fn travels(meta: &str, answered: Answered) -> Value {
    let document = Document::parse(meta, Limits::again(meta.len()));
    assert!(document.is_ok(), "{meta}");
    let fitted = document.ok().and_then(|document| fitting_meta(document.root(), answered));
    serde_json::from_str(&fitted.unwrap_or_else(|| meta.to_owned())).unwrap_or_default()
}

fn member(name: &str, value: &Value, answered: Answered) -> Option<Value> {
    let mut meta = json!({ name: value, "own": 1 });
    if name == "tracestate"
        && let Some(meta) = meta.as_object_mut()
    {
        meta.insert("traceparent".to_owned(), json!(PARENT));
    }
    let travelled = travels(&meta.to_string(), answered);
    assert_eq!(travelled.get("own"), Some(&json!(1)));
    travelled.get(name).cloned()
}

#[test]
fn review_5_capabilities_are_bounded_wherever_they_are_cut() {
    let many: Vec<String> = (0..100).map(|number| format!("\"{}{number}\":{{}}", "x".repeat(60))).collect();
    let many = format!("{{{}}}", many.join(","));
    let fitting = |text: &str, answered| {
        let document = Document::parse(text, Limits::again(text.len()));
        document.map(|document| fitting_capabilities(document.root(), answered)).unwrap_or_default()
    };
    assert_eq!(fitting(&many, Answered::No), many);
    assert_eq!(fitting(&many, Answered::Yes), "{}");
    assert_eq!(fitting("{\"a\":{\"b\":\"text\",\"c\":true}}", Answered::Yes), "{\"a\":{\"c\":true}}");
}

#[test]
fn review_5_what_is_no_part_of_the_digest_is_of_its_form_or_left_out() {
    let long = "x".repeat(9000);
    let table = [
        ("traceparent", json!(PARENT), true, true),
        ("traceparent", json!("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more"), false, false),
        ("traceparent", json!("00-00000000000000000000000000000000-00f067aa0ba902b7-01"), false, false),
        ("traceparent", json!(PARENT.to_uppercase()), false, false),
        ("traceparent", json!({ "command": "rm" }), false, false),
        ("traceparent", json!(["rm"]), false, false),
        ("traceparent", json!(1), false, false),
        ("traceparent", json!(long), false, false),
        ("tracestate", json!("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"), true, false),
        ("tracestate", json!("no pair"), false, false),
        ("tracestate", json!("a=b\u{e9}"), false, false),
        ("tracestate", json!(format!("a={long}")), false, false),
        ("tracestate", json!({}), false, false),
        ("baggage", json!("userId=alice,serverNode=DF%2028;isProduction=false"), true, false),
        ("baggage", json!("a=\"quoted\""), false, false),
        ("baggage", json!(format!("a={long}")), false, false),
        ("baggage", json!([1, 2]), false, false),
        ("progressToken", json!(7), true, true),
        ("progressToken", json!("3f0e-1"), true, true),
        ("progressToken", json!("rm -rf / please"), true, false),
        ("progressToken", json!(1.5), false, false),
        ("progressToken", json!({ "a": 1 }), false, false),
        ("progressToken", json!(long), false, false),
        ("io.modelcontextprotocol/logLevel", json!("warning"), true, true),
        ("io.modelcontextprotocol/logLevel", json!("rm -rf /"), false, false),
        ("io.modelcontextprotocol/logLevel", json!({}), false, false),
        ("io.modelcontextprotocol/protocolVersion", json!("2026-07-28"), true, true),
        ("io.modelcontextprotocol/protocolVersion", json!("rm -rf /"), false, false),
        ("io.modelcontextprotocol/clientInfo", json!({ "name": "c", "version": "1" }), true, true),
        ("io.modelcontextprotocol/clientInfo", json!("rm"), false, false),
        ("io.modelcontextprotocol/clientCapabilities", json!({ "elicitation": { "form": {} } }), true, true),
        ("io.modelcontextprotocol/clientCapabilities", json!([]), false, false),
    ];
    for (name, value, plain, answered) in table {
        for (answered, is_kept) in [(Answered::No, plain), (Answered::Yes, answered)] {
            let expected = is_kept.then(|| value.clone());
            assert_eq!(member(name, &value, answered), expected, "{name} {value} {answered:?}");
        }
    }
    // A state without a place belongs to nothing.
    assert_eq!(travels(r#"{"tracestate":"a=b"}"#, Answered::No), json!({}));
    // An approved call names its client and capabilities, and says no more.
    let client = json!({ "name": "c", "version": "1", "command": "rm", "icons": [{ "src": "data:rm" }] });
    let shown = member("io.modelcontextprotocol/clientInfo", &client, Answered::Yes);
    assert_eq!(shown, Some(json!({ "name": "c", "version": "1" })));
    let able = json!({ "roots": { "listChanged": true }, "experimental": { "x": { "run": "rm" }, "a b": {} }, "n": 5 });
    let shown = member("io.modelcontextprotocol/clientCapabilities", &able, Answered::Yes);
    assert_eq!(shown, Some(json!({ "roots": { "listChanged": true }, "experimental": { "x": {} } })));
    let many: serde_json::Map<String, Value> =
        (0..100).map(|number| (format!("word-of-data-{number}"), json!({}))).collect();
    let shown = member("io.modelcontextprotocol/clientCapabilities", &Value::Object(many), Answered::Yes);
    assert_eq!(shown, Some(json!({})), "names say too much, too");
}

/// Whether a member that travels with an approved call is of the stated form: letters of names, and bounded.
fn is_narrow(name: &str, value: &Value) -> bool {
    let is_word = |text: &str, most: usize| {
        text.chars().count() <= most
            && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "._:-/".contains(letter))
    };
    match (name, value) {
        ("progressToken", Value::Number(number)) => number.to_string().len() <= 20,
        ("progressToken" | "io.modelcontextprotocol/protocolVersion", Value::String(text)) => is_word(text, 64),
        ("traceparent", Value::String(text)) => is_word(text, 55) && text.len() == 55,
        ("io.modelcontextprotocol/logLevel", Value::String(text)) => is_word(text, 9),
        ("io.modelcontextprotocol/clientInfo", Value::Object(members)) => members.iter().all(|(key, value)| {
            ["name", "version", "title"].contains(&key.as_str())
                && value.as_str().is_some_and(|text| text.chars().count() <= 128)
        }),
        ("io.modelcontextprotocol/clientCapabilities", value) => is_skeleton(value, &is_word),
        _ => false,
    }
}

fn is_skeleton(value: &Value, is_word: &impl Fn(&str, usize) -> bool) -> bool {
    match value {
        Value::Bool(_) => true,
        Value::Object(members) => members.iter().all(|(key, value)| is_word(key, 128) && is_skeleton(value, is_word)),
        _ => false,
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,80}".prop_map(Value::from),
        "[a-z0-9=,;-]{0,80}".prop_map(Value::from),
        Just(json!(PARENT)),
        Just(json!("debug")),
        Just(json!("2026-07-28")),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z ]{1,8}|name|version", inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// `_meta` with these values for the members that the digest leaves out, and one of the client's own.
fn meta_of(values: &[Option<Value>], own: &Value) -> String {
    let names = LEFT_OUT_OF_META.iter().map(|name| name.trim_matches('"').to_owned());
    let members = names.zip(values).filter_map(|(name, value)| Some((name, value.clone()?)));
    let members: serde_json::Map<String, Value> = members.chain([("own".to_owned(), own.clone())]).collect();
    Value::Object(members).to_string()
}

proptest! {
    #[test]
    fn review_5_requests_with_equal_digests_are_equal_up_to_narrow_members(
        first in prop::collection::vec(prop::option::of(any_json()), 8),
        second in prop::collection::vec(prop::option::of(any_json()), 8),
        own in any_json(),
    ) {
        let metas = [meta_of(&first, &own), meta_of(&second, &own)];
        let digest = |meta: &String| {
            let params = format!(r#"{{"name":"t","_meta":{meta}}}"#);
            Document::parse(params.as_str(), Limits::again(params.len())).map(|params| Digest::of_params(&params)).ok()
        };
        let [first, second] = &metas;
        prop_assert!(digest(first).is_some() && digest(first) == digest(second));
        let mut left = Vec::new();
        for meta in &metas {
            let mut travelled = travels(meta, Answered::Yes);
            let members = travelled.as_object_mut();
            prop_assert!(members.is_some());
            let Some(members) = members else { unreachable!("asserted") };
            for name in LEFT_OUT_OF_META.map(|name| name.trim_matches('"')) {
                if let Some(value) = members.remove(name) {
                    prop_assert!(is_narrow(name, &value), "{name}: {value}");
                }
            }
            left.push(travelled);
        }
        let [one, another] = left.as_slice() else { unreachable!("there are two") };
        prop_assert_eq!(one, another);
        let sent: Option<Value> = serde_json::from_str(&own.to_string()).ok();
        prop_assert_eq!(one.get("own"), sent.as_ref());
    }
}
