//! The receipt of a call for a client that asks: where in the journal its record stands.

use bytes::Bytes;
use toolwarden_core::json::{Document, Kind, Limits};
use toolwarden_core::{Weakness, weak};
use toolwarden_mcp::compose::{object_with, push_spliced};
use toolwarden_policy::Query;
use toolwarden_store::journal::Receipt;

const ASKED_WITH: &str = "toolwarden/receipt";

/// Whether the request's `_meta` asks for a receipt.
#[must_use]
pub fn is_wanted(query: &Query) -> bool {
    let params = query.call.params.as_ref();
    params
        .and_then(|params| params.value().get("_meta")?.get(ASKED_WITH))
        .is_some_and(|asked| !matches!(asked.kind(), Kind::False | Kind::Null))
}

/// A response with the receipt in its result's `_meta`; errors stay as they are.
#[must_use]
pub fn with_receipt(message: Bytes, receipt: &Receipt) -> Bytes {
    let Ok(text) = std::str::from_utf8(&message) else { return message };
    let limits = Limits::again(text.len());
    let Ok(document) = Document::parse(text, limits) else { return message };
    let Some(result) = document.root().get("result").filter(|result| result.kind() == Kind::Object) else {
        return message;
    };
    let receipt = serde_json::to_string(receipt).unwrap_or_default();
    let meta = result.get("_meta").filter(|meta| meta.kind() == Kind::Object);
    // A weak gateway lets a receipt pass that the server made up; two of them would be read by their order.
    let forged = meta.and_then(|meta| meta.get(ASKED_WITH)).filter(|_| weak::is(Weakness::Answers));
    let meta = object_with(meta, &[(ASKED_WITH, Some(forged.map_or(&receipt, |forged| forged.raw())))]);
    let shown = object_with(Some(result), &[("_meta", Some(&meta))]);
    let mut whole = String::with_capacity(text.len() + receipt.len());
    push_spliced(&mut whole, text, &[(result.span(), &shown)]);
    Bytes::from(whole)
}
