//! Fuzz targets of the MCP wire: messages, the response scanner against the JSON index, event streams, headers, methods.

use bytes::{Bytes, BytesMut};
use toolwarden_core::Digest;
use toolwarden_core::json::{Document, Kind, Limits};
use toolwarden_mcp::scan::{Facts, Outcome, ScanFault, Scanner};
use toolwarden_mcp::sse::{self, Decoder, Event, Item};
use toolwarden_mcp::{Direction, Form, Incoming, Message, Method, Version, eras, headers, message};

const LIMITS: Limits = Limits { bytes: 1 << 20, depth: 64 };

/// Where a text is cut in two, chosen by its content so that a fuzzer can move it.
fn cut(bytes: &[u8]) -> usize {
    let sum: usize = bytes.iter().map(|byte| usize::from(*byte)).sum();
    sum.checked_rem(bytes.len()).unwrap_or(0)
}

/// Params are the bytes that were sent, and reading them again gives the same call.
pub fn read_message(bytes: &[u8]) {
    let Ok(incoming) = message::read(bytes, LIMITS) else { return };
    let all = match incoming {
        Incoming::One(message) => vec![message],
        Incoming::Batch(messages) => messages.into_iter().flatten().collect(),
    };
    for message in all {
        let params = match &message {
            Message::Request(request) => request.params.as_ref(),
            Message::Notification(notification) => notification.params.as_ref(),
            Message::Response(response) => Some(match &response.outcome {
                Ok(part) | Err(part) => part,
            }),
        };
        let Some(params) = params else { continue };
        let sent = params.raw().as_bytes();
        assert!(bytes.windows(sent.len().max(1)).any(|window| window == sent) || sent.is_empty());
        let (first, second) = (Document::parse(params.raw(), LIMITS), Document::parse(params.raw(), LIMITS));
        let digests = first.map(|one| Digest::of_params(&one)).ok().zip(second.map(|two| Digest::of_params(&two)).ok());
        assert!(digests.is_some_and(|(one, two)| one == two));
    }
}

fn scan(chunks: &[&[u8]]) -> Result<Facts, ScanFault> {
    let mut scanner = Scanner::new(LIMITS.depth);
    for chunk in chunks {
        scanner.feed(chunk).map_err(|error| error.fault)?;
    }
    scanner.finish().map_err(|error| error.fault)
}

/// Where the index accepts a response, the scanner reads the same facts, however the bytes are cut.
pub fn scanner(bytes: &[u8]) {
    let whole = scan(&[bytes]);
    let (head, tail) = bytes.split_at(cut(bytes));
    assert_eq!(scan(&[head, tail]).is_ok(), whole.is_ok());
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    let by_one = scan(&single);
    assert_eq!(by_one.as_ref().ok(), whole.as_ref().ok());
    let Ok(Message::Response(response)) = message::read_one(bytes, LIMITS) else { return };
    let Ok(facts) = whole else { return };
    assert_eq!(facts.outcome, Some(if response.outcome.is_ok() { Outcome::Result } else { Outcome::Error }));
    let id = facts.id.as_deref().filter(|id| *id != "null");
    assert_eq!(id, response.id.as_ref().map(|id| id.raw()));
    let Ok(result) = &response.outcome else { return };
    let is_error = result.value().get("isError").map(|value| value.kind());
    assert_eq!(facts.is_error == Some(true), is_error == Some(Kind::True));
    assert_eq!(facts.has_input_requests, result.value().get("inputRequests").is_some());
}

fn items(chunks: &[&[u8]]) -> Vec<Result<Item, sse::SseError>> {
    let mut decoder = Decoder::new(1 << 16);
    let mut items = Vec::new();
    for chunk in chunks {
        decoder.feed(Bytes::copy_from_slice(chunk));
        loop {
            match decoder.next() {
                Ok(Some(item)) => items.push(Ok(item)),
                Ok(None) => break,
                Err(error) => {
                    items.push(Err(error));
                    return items;
                }
            }
        }
    }
    items
}

fn encoded(event: &Event) -> Option<BytesMut> {
    let mut out = BytesMut::new();
    sse::encode(event, &mut out).ok().map(|()| out)
}

/// A stream means the same however it is cut, and an event that is written reads back.
pub fn events(bytes: &[u8]) {
    let whole = items(&[bytes]);
    let (head, tail) = bytes.split_at(cut(bytes));
    assert_eq!(items(&[head, tail]), whole);
    for item in whole.into_iter().flatten() {
        let Item::Event(event) = item else { continue };
        let Some(written) = encoded(&event) else { continue };
        let again = items(&[&written]);
        assert_eq!(again, [Ok(Item::Event(event))]);
    }
}

/// A value that mirrors the body reads back as it was, and base64 has one spelling.
pub fn header_values(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let value = headers::encode(text);
    let back = value.to_str().ok().and_then(headers::decode).map(|back| back.into_owned());
    assert_eq!(back.as_deref(), Some(text));
    if let Some(decoded) = headers::base64(text) {
        assert_eq!(headers::to_base64(&decoded), text);
    }
}

/// A message has at most one row in each revision, and what crosses between the eras stays JSON.
pub fn methods(bytes: &[u8]) {
    let Ok(message) = message::read_one(bytes, LIMITS) else { return };
    let (name, form) = match &message {
        Message::Request(request) => (request.method.clone(), Form::Request),
        Message::Notification(notification) => (notification.method.clone(), Form::Notification),
        Message::Response(response) => {
            let crossed = match &response.outcome {
                Ok(result) => [
                    eras::result_to_legacy("tools/call", result.value()),
                    eras::result_to_modern("tools/call", result.value(), Some(r#"{"name":"s","version":"1"}"#)),
                ],
                Err(error) => [eras::error_to_legacy(error.value()), eras::error_to_modern(error.value(), None)],
            };
            for text in crossed {
                let limits = Limits { bytes: text.len(), depth: LIMITS.depth + 2 };
                assert!(Document::parse(text.as_str(), limits).is_ok(), "{text}");
            }
            return;
        }
    };
    for version in Version::ALL {
        for direction in [Direction::ToServer, Direction::ToClient] {
            let found = Method::find(&name, direction, form, version);
            assert!(found.is_none_or(|row| row.name == &*name && row.form == form && row.direction == direction));
        }
    }
}
