//! Edits reach their one place and nothing else.

use toolwarden_core::json::{Document, Limits, Part};

use super::{Edit, error, push_edited, to_client};
use crate::message::Id;

fn edited(params: &str, edits: &[Edit<'_>]) -> String {
    let mut text = String::new();
    if let Ok(document) = Document::parse(params, Limits::DEFAULT) {
        push_edited(&mut text, &Part::whole(document.into()), edits);
    }
    text
}

#[test]
fn only_the_named_places_change() {
    let params = r#"{"_meta":{"x":1e5, "progressToken":"t"},"progressToken":"t", "requestId":7}"#;
    assert_eq!(edited(params, &[]), params);
    assert_eq!(
        edited(params, &[Edit::CancelledRequest("12"), Edit::ProgressToken("9")]),
        r#"{"_meta":{"x":1e5, "progressToken":9},"progressToken":"t", "requestId":12}"#
    );
    assert_eq!(edited("{}", &[Edit::ProgressToken("9")]), "{}");
}

#[test]
fn own_messages_are_json() {
    let text = error(Id::from_raw("\"a\\\"b\"").as_ref(), -32602, "no \"such\" tool\n", None);
    let value: Result<serde_json::Value, _> = serde_json::from_slice(&text);
    assert_eq!(value.ok().and_then(|value| value.get("id").cloned()), Some("a\"b".into()));
    assert_eq!(to_client(None, "a\"b", None).as_ref(), br#"{"jsonrpc":"2.0","method":"a\"b"}"#);
}
