//! Edits reach their one place and nothing else.

use toolwarden_core::json::{Document, Limits, Part};

use super::{Edit, HopMember, error, object_with, push_edited, push_params, to_client};
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

fn hopped(params: Option<&str>, edits: &[Edit<'_>]) -> String {
    let params = params.and_then(|text| Document::parse(text, Limits::DEFAULT).ok());
    let params = params.map(|document| Part::whole(document.into()));
    let mut text = String::new();
    push_params(&mut text, params.as_ref(), edits);
    text
}

#[test]
fn members_of_a_hop_change_and_the_call_does_not() {
    let params = r#"{"name":"t", "arguments":{"_meta":1,"requestState":2, "n":1e5},"_meta":{"progressToken":7},"requestState":"s"}"#;
    let edits = [
        Edit::ProgressToken("9"),
        Edit::Hop(HopMember::Meta, Some(r#"{"progressToken":7,"x":1}"#)),
        Edit::Hop(HopMember::RequestState, None),
        Edit::Hop(HopMember::InputResponses, Some("{}")),
    ];
    assert_eq!(
        hopped(Some(params), &edits),
        r#","params":{"name":"t","arguments":{"_meta":1,"requestState":2, "n":1e5},"_meta":{"progressToken":9,"x":1},"inputResponses":{}}"#
    );
    assert_eq!(hopped(None, &[Edit::Hop(HopMember::Meta, None)]), r#","params":{}"#);
    assert_eq!(hopped(None, &[]), "");
}

#[test]
fn members_are_found_however_they_are_spelled() {
    let params = Document::parse(r#"{"\u005fmeta":1,"a":2}"#, Limits::DEFAULT);
    let text = params.map(|params| object_with(Some(params.root()), &[("_meta", None)]));
    assert_eq!(text.as_deref(), Ok(r#"{"a":2}"#));
}
