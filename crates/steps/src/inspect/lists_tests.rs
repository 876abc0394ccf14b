//! An unchanged list is known whatever pieces it comes in, and a changed one is not.

use std::sync::Arc;

use bytes::Bytes;
use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_mcp::Id;

use super::is_same_message;

const KNOWN: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"a"}]}}"#;

fn is_same(message: &str, id: &str, piece: usize) -> bool {
    let Ok(document) = Document::parse(KNOWN, Limits::DEFAULT) else { unreachable!("it is JSON") };
    let known = Part::whole(Arc::new(document)).member("result");
    let (Some(known), Some(id)) = (known, Id::from_raw(id)) else { unreachable!("it has a result") };
    let pieces: Vec<Bytes> = message.as_bytes().chunks(piece).map(Bytes::copy_from_slice).collect();
    is_same_message(&known, &pieces, &id)
}

#[test]
fn a_list_is_known_by_all_of_its_bytes() {
    for piece in 1..=KNOWN.len() {
        assert!(is_same(KNOWN, "7", piece), "in pieces of {piece}");
        assert!(is_same(&KNOWN.replace("7", "\"long one\""), "\"long one\"", piece), "in pieces of {piece}");
        assert!(!is_same(KNOWN, "8", piece), "the answer to another request");
        assert!(!is_same(&KNOWN.replace("\"a\"", "\"b\""), "7", piece));
        assert!(!is_same(&format!("{KNOWN} "), "7", piece));
        assert!(!is_same(KNOWN.get(..KNOWN.len() - 1).unwrap_or_default(), "7", piece));
        assert!(!is_same(KNOWN.get(..26).unwrap_or_default(), "7", piece));
    }
    assert!(!is_same("", "7", 1));
}
