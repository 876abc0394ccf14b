//! The receipt of a call for a client that asks: where in the journal its record stands.

use bytes::Bytes;
use toolwarden_core::json::{Document, Kind, Limits};
use toolwarden_policy::Query;
use toolwarden_store::journal::Receipt;

pub(crate) const ASKED_WITH: &str = "toolwarden/receipt";

/// Whether the request's `_meta` asks for a receipt.
pub(crate) fn is_wanted(query: &Query) -> bool {
    let params = query.call.params.as_ref();
    params
        .and_then(|params| params.value().get("_meta")?.get(ASKED_WITH))
        .is_some_and(|asked| !matches!(asked.kind(), Kind::False | Kind::Null))
}

/// A response with the receipt in its result's `_meta`; errors stay as they are.
pub(crate) fn with_receipt(message: Bytes, receipt: &Receipt) -> Bytes {
    let Ok(text) = std::str::from_utf8(&message) else { return message };
    let limits = Limits { bytes: text.len(), depth: 256 };
    let Ok(document) = Document::parse(text, limits) else { return message };
    let Some(result) = document.root().get("result").filter(|result| result.kind() == Kind::Object) else {
        return message;
    };
    let receipt = format!("\"{ASKED_WITH}\":{}", serde_json::to_string(receipt).unwrap_or_default());
    let (place, inserted, rest_is_empty) = match result.get("_meta").filter(|meta| meta.kind() == Kind::Object) {
        Some(meta) => (meta.span().start + 1, receipt, meta.entries().next().is_none()),
        None => (result.span().start + 1, format!("\"_meta\":{{{receipt}}}"), result.entries().next().is_none()),
    };
    let (Some(before), Some(after)) = (text.get(..place), text.get(place..)) else { return message };
    let comma = if rest_is_empty { "" } else { "," };
    Bytes::from(format!("{before}{inserted}{comma}{after}"))
}
