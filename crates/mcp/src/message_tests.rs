//! What is a message, what is none, and that everything in it stays as written.

use toolwarden_core::json::Limits;

use super::{Incoming, Message, MessageError, read};

fn one(text: &str) -> Result<Message, MessageError> {
    super::read_one(text.as_bytes(), Limits::DEFAULT)
}

#[test]
fn kinds_are_told_apart_and_values_stay_raw() {
    let request = one(r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"n": 1e2, "x":[ 1 ]}}"#);
    assert!(matches!(&request, Ok(Message::Request(request))
        if request.id.raw() == "\"a\"" && &*request.method == "tools/call"
        && request.params.as_ref().map(toolwarden_core::json::Part::raw) == Some(r#"{"n": 1e2, "x":[ 1 ]}"#)));
    assert!(matches!(one(r#"{"jsonrpc":"2.0","method":"ping"}"#), Ok(Message::Notification(_))));
    assert!(matches!(one(r#"{"jsonrpc":"2.0","id":-7,"result":null}"#), Ok(Message::Response(_))));
    assert!(
        matches!(one(r#"{"jsonrpc":"2.0","id":null,"error":{}}"#), Ok(Message::Response(response)) if response.id.is_none())
    );
}

#[test]
fn everything_else_is_refused() {
    for text in [
        r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1e3,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","result":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#,
        r#"{"jsonrpc":"2.0","result":1}"#,
        r#""text""#,
        "",
        "[]",
        "{",
    ] {
        assert!(one(text).is_err(), "{text}");
    }
    // An id goes to the server, and nobody who approves a call is shown it.
    let with_id = |id: &str| one(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).is_ok();
    assert!(with_id(&format!("\"{}\"", "a".repeat(128))) && !with_id(&format!("\"{}\"", "a".repeat(129))));
    assert!(with_id(&"1".repeat(130)) && !with_id(&"1".repeat(131)));
    assert!(super::read_one(b"\xff", Limits::DEFAULT).is_err());
}

#[test]
fn a_batch_is_split_and_each_member_judged_alone() {
    let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":{}}, 7]"#;
    let Ok(Incoming::Batch(members)) = read(batch, Limits::DEFAULT) else { unreachable!("asserted") };
    assert_eq!(members.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false]);
}
