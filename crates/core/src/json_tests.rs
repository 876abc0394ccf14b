//! The parser accepts and refuses what an independent parser does, plus our stricter rules.

use proptest::prelude::{Just, Strategy, any, prop, prop_oneof, proptest};

use super::{Document, Fault, Limits, Value};
use crate::json::Kind;

fn fault(text: &str) -> Option<Fault> {
    Document::parse(text, Limits { bytes: 1000, depth: 4 }).err().map(|error| error.fault)
}

#[test]
fn strict_grammar() {
    for (text, expected) in [
        ("", Some(Fault::End)),
        ("{}", None),
        (" [1, 2.5e-3, -0] ", None),
        ("[01]", Some(Fault::Number)),
        ("[1.]", Some(Fault::Number)),
        ("[-]", Some(Fault::Number)),
        ("[1,]", Some(Fault::Unexpected)),
        ("{\"a\":1,}", Some(Fault::Unexpected)),
        ("{\"a\" 1}", Some(Fault::Unexpected)),
        ("{\"a\":1]", Some(Fault::Unexpected)),
        ("nul", Some(Fault::Unexpected)),
        ("true false", Some(Fault::Trailing)),
        ("// no\n1", Some(Fault::Unexpected)),
        ("\"a\nb\"", Some(Fault::Control)),
        ("\"\\x\"", Some(Fault::Escape)),
        ("\"\\ud83d\\ude00\"", None),
        ("\"\\ud83d\"", Some(Fault::Escape)),
        ("\"\\ude00\"", Some(Fault::Escape)),
        ("{\"a\":1,\"a\":2}", Some(Fault::DuplicateKey)),
        ("{\"a\":1,\"\\u0061\":2}", Some(Fault::DuplicateKey)),
        ("{\"x\":{\"a\":1},\"a\":2}", None),
        ("[{\"x\":[1,{\"b\":0,\"b\":0}]}]", Some(Fault::DuplicateKey)),
        ("[[[[]]]]", None),
        ("[[[[[]]]]]", Some(Fault::TooDeep)),
    ] {
        assert_eq!(fault(text), expected, "{text}");
    }
    assert_eq!(fault(&" ".repeat(1001)), Some(Fault::TooLarge));
}

#[test]
fn deep_nesting_neither_recurses_nor_crashes() {
    let text = "[".repeat(1_000_000);
    let error = Document::parse(text, Limits { bytes: 2_000_000, depth: 128 }).err().map(|error| error.fault);
    assert_eq!(error, Some(Fault::TooDeep));
}

#[test]
fn values_keep_their_text() {
    let document = Document::parse(r#" {"n": 1.0e2, "s": "a\u00e9\n", "l": [null, true]} "#, Limits::DEFAULT);
    let Ok(document) = document else { unreachable!("valid") };
    let root = document.root();
    assert_eq!(root.get("n").map(Value::raw), Some("1.0e2"));
    assert_eq!(root.get("s").and_then(Value::as_str).as_deref(), Some("aé\n"));
    assert_eq!(root.get("l").map(|list| list.items().map(Value::kind).collect()), Some(vec![Kind::Null, Kind::True]));
    assert_eq!(document.depth(), 2);
}

/// Our document as the other parser's value, numbers by their text.
fn convert(value: Value<'_>) -> serde_json::Value {
    match value.kind() {
        Kind::Object => {
            value.entries().map(|(key, member)| (super::view::unescape(key).into_owned(), convert(member))).collect()
        }
        Kind::Array => value.items().map(convert).collect(),
        _ => serde_json::from_str(value.raw()).unwrap_or_default(),
    }
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(serde_json::Value::from),
        any::<i64>().prop_map(serde_json::Value::from),
        any::<f64>().prop_map(serde_json::Value::from),
        any::<String>().prop_map(serde_json::Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::vec((any::<String>(), inner), 0..6).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_an_independent_parser(value in json()) {
        let text = serde_json::to_string_pretty(&value).unwrap_or_default();
        // Parsed again, because the other parser rounds floats when it reads them.
        let theirs = serde_json::from_str(&text).unwrap_or_default();
        let document = Document::parse(text, Limits::DEFAULT);
        assert_eq!(document.map(|document| convert(document.root())), Ok(theirs));
    }

    #[test]
    fn refuses_what_an_independent_parser_refuses(text in r#"[\[\]{}:,0-9a-e."\\ +-]{0,12}"#) {
        if serde_json::from_str::<serde_json::Value>(&text).is_err() {
            // The other parser keeps the last of two equal keys; numbers too large for it are no
            // concern of ours.
            let out_of_range = serde_json::from_str::<serde_json::Value>(&text)
                .is_err_and(|error| error.to_string().contains("out of range"));
            assert!(out_of_range || Document::parse(text, Limits::DEFAULT).is_err());
        }
    }
}
