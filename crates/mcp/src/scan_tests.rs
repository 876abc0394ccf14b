//! The scanner against the strict parser: same facts wherever both accept, and known reasons where they differ.

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop, prop_oneof};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use proptest::{prop_assert, prop_assert_eq, proptest};
use toolwarden_core::json::{Document, Fault, Kind, Limits, Value, unescape};

use super::{Facts, OWN_WORDS, Outcome, ScanFault, Scanner};

const DEPTH: usize = 6;

fn scan(chunks: &[&[u8]]) -> Result<Facts, ScanFault> {
    let mut scanner = Scanner::new(DEPTH);
    for chunk in chunks {
        scanner.feed(chunk).map_err(|error| error.fault)?;
    }
    scanner.finish().map_err(|error| error.fault)
}

fn scan_text(text: &str) -> Result<Facts, ScanFault> {
    scan(&[text.as_bytes()])
}

/// What the scanner must say about a text the parser accepts; none if it must refuse.
fn expected(document: &Document) -> Option<Facts> {
    let root = document.root();
    let (result, error) = (root.get("result"), root.get("error"));
    if root.kind() != Kind::Object || root.get("method").is_some() || result.is_some() == error.is_some() {
        return None;
    }
    let mut facts = Facts::default();
    if let Some(id) = root.get("id") {
        if !matches!(id.kind(), Kind::Null | Kind::Number | Kind::String) {
            return None;
        }
        facts.id = Some(id.raw().into());
    }
    facts.outcome = Some(if result.is_some() { Outcome::Result } else { Outcome::Error });
    match result.and_then(|result| result.get("resultType")).map(|value| (value.kind(), value.as_str())) {
        Some((Kind::String, text)) => facts.result_type = text.map(Into::into),
        Some((Kind::Null, _)) | None => {}
        Some(_) => return None,
    }
    match result.and_then(|result| result.get("isError")).map(Value::kind) {
        Some(Kind::True) => facts.is_error = Some(true),
        Some(Kind::False) => facts.is_error = Some(false),
        Some(Kind::Null) | None => {}
        Some(_) => return None,
    }
    facts.has_input_requests = result.is_some_and(|result| result.get("inputRequests").is_some());
    let words = result.and_then(|result| result.get("_meta")).or(error.and_then(|error| error.get("data")));
    facts.imitates = words.is_some_and(|words| words.entries().any(|(key, _)| unescape(key).starts_with(OWN_WORDS)));
    if let Some(error) = error {
        if error.kind() != Kind::Object {
            return None;
        }
        if let Some(code) = error.get("code") {
            facts.error_code = Some(code.raw().parse().ok()?);
        }
    }
    Some(facts)
}

/// The facts but the id, by a parser that lets the last of two equal keys count.
fn last_of_two(bytes: &[u8]) -> Option<Facts> {
    let root: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    let (result, error) = (root.get("result"), root.get("error"));
    Some(Facts {
        id: None,
        outcome: Some(if result.is_some() { Outcome::Result } else { Outcome::Error }),
        error_code: error.and_then(|error| error.get("code")?.as_i64()),
        result_type: result.and_then(|result| result.get("resultType")?.as_str()).map(Into::into),
        is_error: result.and_then(|result| result.get("isError")?.as_bool()),
        has_input_requests: result.is_some_and(|result| result.get("inputRequests").is_some()),
        imitates: [result.and_then(|it| it.get("_meta")), error.and_then(|it| it.get("data"))]
            .into_iter()
            .flatten()
            .filter_map(serde_json::Value::as_object)
            .any(|words| words.keys().any(|key| key.starts_with(OWN_WORDS))),
    })
}

/// A generator that made only broken texts would prove nothing.
#[test]
fn the_generator_makes_all_kinds_of_texts() {
    let mut runner = TestRunner::deterministic();
    let (mut good, mut lenient, mut refused) = (0, 0, 0);
    for _ in 0..3000 {
        let bytes = response().new_tree(&mut runner).map(|tree| tree.current()).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let accepted = Document::parse(&*text, Limits { bytes: 100_000, depth: DEPTH }).is_ok();
        match (scan(&[&bytes]), accepted) {
            (Ok(_), true) => good += 1,
            (Ok(_), false) => lenient += 1,
            (Err(_), _) => refused += 1,
        }
    }
    assert!(good > 600 && lenient > 20 && refused > 600, "{good} {lenient} {refused}");
}

#[test]
fn facts_of_real_responses() {
    let facts =
        scan_text(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\"b"}],"isError":true}}"#);
    let id = |raw: &str| Some(raw.into());
    let outcome = Some(Outcome::Result);
    assert_eq!(facts, Ok(Facts { id: id("7"), outcome, is_error: Some(true), ..Facts::default() }));
    let facts = scan_text(
        r#" {"result": {"resultType": "input_required", "inputRequests": {"a": {}}, "x": {"isError": true}}, "id": "q\u0041"} "#,
    );
    let result_type = Some("input_required".into());
    assert_eq!(
        facts,
        Ok(Facts { id: id(r#""q\u0041""#), outcome, result_type, has_input_requests: true, ..Facts::default() })
    );
    let facts = scan_text(r#"{"id":null,"error":{"message":"no","data":{"code":1},"code":-32022}}"#);
    let outcome = Some(Outcome::Error);
    assert_eq!(facts, Ok(Facts { id: id("null"), outcome, error_code: Some(-32022), ..Facts::default() }));
    for (text, imitates) in [
        (r#"{"result":{"_meta":{"a":{},"toolwarden/decision":{}}}}"#, true),
        (r#"{"error":{"code":1,"data":{"toolwarden/decision":1}}}"#, true),
        (
            r#"{"result":{"_meta":{"a":{"toolwarden/decision":{}}},"toolwarden/decision":1,"x":{"toolwarden/decision":1}}}"#,
            false,
        ),
        (r#"{"result":{"_meta":["toolwarden/decision"],"data":{"toolwarden/decision":1}}}"#, false),
        (r#"{"result":{"_meta":{}},"_meta":{"toolwarden/decision":1}}"#, false),
    ] {
        assert_eq!(scan_text(text).map(|facts| facts.imitates), Ok(imitates), "{text}");
    }
}

#[test]
fn keys_are_compared_unescaped() {
    let facts = scan_text(r#"{"re\u0073ult":{"\u0069sError":true,"result\u0054ype":"\u0063omplete"}}"#);
    assert_eq!(facts.as_ref().map(|facts| facts.is_error), Ok(Some(true)));
    assert_eq!(facts.map(|facts| facts.result_type), Ok(Some("complete".into())));
}

#[test]
fn what_could_be_read_two_ways_is_refused() {
    for (text, fault) in [
        ("", ScanFault::End),
        ("[]", ScanFault::NotAnObject),
        ("\u{feff}{}", ScanFault::NotAnObject),
        ("{}", ScanFault::Neither),
        (r#"{"result":{}}{}"#, ScanFault::Trailing),
        (r#"{"result":{}]"#, ScanFault::Unexpected),
        (r#"{"result":{},}"#, ScanFault::Unexpected),
        (r#"{"result":[1,]}"#, ScanFault::Unexpected),
        (r#"{"result":{"a":1]}"#, ScanFault::Unexpected),
        (r#"{"result":{}"#, ScanFault::End),
        (r#"{"result":01}"#, ScanFault::Unexpected),
        (r#"{"result":1.}"#, ScanFault::Number),
        (r#"{"result":nul}"#, ScanFault::Unexpected),
        (r#"{"result":'a'}"#, ScanFault::Unexpected),
        (r#"{"result":"\x"}"#, ScanFault::Escape),
        (r#"{"result":"\u12"}"#, ScanFault::Escape),
        ("{\"result\":\"\n\"}", ScanFault::Control),
        (r#"{"result":1,"result":2}"#, ScanFault::DuplicateKey),
        (r#"{"result":1,"re\u0073ult":2}"#, ScanFault::DuplicateKey),
        (r#"{"id":1,"id":1,"result":2}"#, ScanFault::DuplicateKey),
        (r#"{"result":{"isError":false,"isError":true}}"#, ScanFault::DuplicateKey),
        (r#"{"error":{"code":1,"code":2}}"#, ScanFault::DuplicateKey),
        (r#"{"result":1,"error":{}}"#, ScanFault::Ambiguous),
        (r#"{"method":"x","result":1}"#, ScanFault::Ambiguous),
        (r#"{"error":null}"#, ScanFault::WrongKind),
        (r#"{"error":{"code":"1"}}"#, ScanFault::WrongKind),
        (r#"{"error":{"code":1.5}}"#, ScanFault::WrongKind),
        (r#"{"id":{},"result":1}"#, ScanFault::WrongKind),
        (r#"{"result":{"isError":"false"}}"#, ScanFault::WrongKind),
        (r#"{"result":{"resultType":1}}"#, ScanFault::WrongKind),
        (r#"{"result":[[[[[[]]]]]]}"#, ScanFault::TooDeep),
        ("{\"result\"\u{a0}:1}", ScanFault::Unexpected),
    ] {
        assert_eq!(scan_text(text), Err(fault), "{text}");
    }
    assert_eq!(scan(&[b"{\"result\":\"\xC0\xA2\"}"]), Err(ScanFault::Encoding));
    assert_eq!(scan(&[b"{\"result\":\"\xE2\x82", b"\"}"]), Err(ScanFault::Encoding));
    let long = format!(r#"{{"id":"{}","result":1}}"#, "x".repeat(5000));
    assert_eq!(scan_text(&long), Err(ScanFault::TooLong));
}

#[test]
fn what_other_parsers_refuse_and_this_one_passes() {
    let lenient = [r#"{"a":1,"a":2,"result":{}}"#, r#"{"result":{"x":1,"x":2}}"#, r#"{"result":"\ud800"}"#];
    for text in lenient {
        assert!(scan_text(text).is_ok(), "{text}");
        assert!(Document::parse(text, Limits::DEFAULT).is_err(), "{text}");
    }
}

#[test]
fn memory_stays_small_whatever_arrives() {
    let mut scanner = Scanner::new(128);
    assert!(scanner.feed(br#"{"result":{"#).is_ok());
    for _ in 0..200 {
        assert!(scanner.feed(br#""kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk":"#).is_ok());
        assert!(scanner.feed(format!("\"{}\",", "v".repeat(10_000)).as_bytes()).is_ok());
    }
    assert!(scanner.feed(format!("\"{}", "k".repeat(1_000_000)).as_bytes()).is_ok());
    assert!(scanner.captured.capacity() + scanner.open.capacity() < 10_000);
}

/// A string, its characters sometimes escaped.
fn quoted(text: &'static str) -> impl Strategy<Value = String> {
    prop::collection::vec(0..12_u8, text.len()).prop_map(move |choices| {
        let write = |(character, choice): (char, u8)| match choice {
            0 => format!("\\u{:04x}", u32::from(character)),
            _ => character.to_string(),
        };
        format!("\"{}\"", text.chars().zip(choices).map(write).collect::<String>())
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => quoted("result"),
        2 => quoted("id"),
        1 => quoted("error"),
        1 => quoted("jsonrpc"),
        1 => quoted("resultType"),
        1 => quoted("isError"),
        1 => quoted("inputRequests"),
        1 => quoted("code"),
        2 => quoted("_meta"),
        1 => quoted("data"),
        1 => quoted("toolwarden/decision"),
        1 => quoted("toolwarden/a-key-that-is-longer-than-any-other-key-that-is-looked-at-\u{1F600}\u{1F600}\u{1F600}\u{1F600}"),
        1 => Just("\"method\"".to_owned()),
        3 => "\"[a-zé\u{1F600}]{0,3}\"",
    ]
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        quoted("complete"),
        Just(r#""a\n\"\\\/\ud83d\ude00\u00e9""#.to_owned()),
        Just("null".to_owned()),
        any::<bool>().prop_map(|value| value.to_string()),
        any::<i16>().prop_map(|value| value.to_string()),
        "-?(0|[1-9][0-9]{0,3})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,2})?",
        "\"[ -!#-\\[\\]-~é漢\u{1F600}]{0,20}\"",
    ]
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(5, 40, 5, |inner| {
        let member = (key(), inner.clone()).prop_map(|(key, value)| format!("{key}: {value}"));
        prop_oneof![
            1 => prop::collection::vec(inner, 0..4).prop_map(|items| format!("[{}]", items.join(","))),
            3 => prop::collection::vec(member, 0..5).prop_map(|members| format!("{{{}}}", members.join(" ,"))),
        ]
    })
}

/// A response, often valid, with a few bytes perhaps replaced, removed or repeated.
fn response() -> impl Strategy<Value = Vec<u8>> {
    let members = prop::collection::vec((key(), value()), 0..4);
    let change = (any::<prop::sample::Index>(), 0..3_u8, any::<prop::sample::Index>());
    let changes = prop_oneof![3 => Just(Vec::new()), 1 => prop::collection::vec(change, 1..3)];
    (value(), members, changes).prop_map(|(result, members, changes)| {
        let others: String = members.iter().map(|(key, value)| format!(",{key}:{value}")).collect();
        let mut bytes = format!("{{\"result\":{result}{others}}}\n").into_bytes();
        if others.len().is_multiple_of(3) {
            bytes = format!("{{\"id\":1,\"error\":{{\"code\":{}}}{others}}}", others.len()).into_bytes();
        }
        let special = b"{}[]:,\"\\ 0-.eE\n\t\x00\x80\xC3\xFFntf";
        for (place, kind, other) in changes {
            let at = place.index(bytes.len());
            match kind {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, *other.get(special)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        bytes
    })
}

fn pieces<'a>(text: &'a [u8], cuts: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    let pairs = places.iter().zip(places.iter().skip(1));
    pairs.filter_map(|(from, to)| text.get(*from..*to)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_scanner_agrees_with_the_parser(
        bytes in response(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let scanned = scan(&pieces(&bytes, &cuts));
        prop_assert_eq!(scan(&[&bytes]).ok(), scanned.clone().ok(), "cuts must not matter");
        let limits = Limits { bytes: 100_000, depth: DEPTH };
        let parsed = std::str::from_utf8(&bytes).ok().map(|text| Document::parse(text, limits));
        match parsed {
            None => prop_assert!(scanned.is_err(), "{:?}", scanned),
            Some(Ok(document)) => match expected(&document) {
                Some(facts) => prop_assert_eq!(scanned, Ok(facts)),
                None => prop_assert!(scanned.is_err(), "{:?}", scanned),
            },
            Some(Err(error)) => if let Ok(facts) = scanned {
                prop_assert!(matches!(error.fault, Fault::DuplicateKey | Fault::Escape), "{}", error);
                // A parser that takes the last of two keys reads the same.
                if let Some(other) = last_of_two(&bytes) {
                    prop_assert_eq!(Facts { id: None, ..facts }, other);
                }
            }
        }
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = scan(&[&bytes]);
    }
}
