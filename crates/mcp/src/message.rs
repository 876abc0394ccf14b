//! JSON-RPC messages with raw params and results: one strict pass, nothing rewritten.
//!
//! Takes the bytes of one message or batch; gives what it is, with every value as it was written.
//! Refuses duplicate keys, odd ids, params that are no object, and whatever is no JSON-RPC 2.0.

use std::fmt;
use std::sync::Arc;

use toolwarden_core::json::{Document, JsonError, Kind, Limits, Part};
use toolwarden_core::{Weakness, weak};

/// Bytes of an id, quotes included.
const LONGEST_ID: usize = 130;

/// The id of a request as it was written: a string with its quotes, or an integer.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Id(Arc<str>);

impl Id {
    /// From the raw text of a JSON value; none for anything but a string or an integer, or for one that is longer than any
    /// client's: an id travels to servers, and no person who approves a call is shown it.
    #[must_use]
    pub fn from_raw(raw: &str) -> Option<Self> {
        let is_string = raw.starts_with('"');
        let digits = raw.strip_prefix('-').unwrap_or(raw);
        let is_integer = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_short = raw.len() <= LONGEST_ID;
        ((is_string || is_integer) && is_short || weak::is(Weakness::Json)).then(|| Self(raw.into()))
    }

    #[must_use]
    pub fn number(number: u64) -> Self {
        Self(number.to_string().into())
    }

    /// As it stands in JSON.
    #[must_use]
    pub fn raw(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// One message.
#[derive(Debug, Clone)]
pub enum Message {
    Request(Request),
    Notification(Notification),
    Response(Response),
}

#[derive(Debug, Clone)]
pub struct Request {
    pub id: Id,
    pub method: Arc<str>,
    pub params: Option<Part>,
}

#[derive(Debug, Clone)]
pub struct Notification {
    pub method: Arc<str>,
    pub params: Option<Part>,
}

/// An answer. Errors may lack an id, where the sender could not tell what it answers.
#[derive(Debug, Clone)]
pub struct Response {
    pub id: Option<Id>,
    pub outcome: Result<Part, Part>,
}

/// One message, or several in one text (2025-03-26 only).
#[derive(Debug, Clone)]
pub enum Incoming {
    One(Message),
    Batch(Vec<Result<Message, MessageError>>),
}

/// Why a text is no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessageError {
    #[error("the message is not UTF-8")]
    NotUtf8,
    #[error("the message is not JSON: {0}")]
    NotJson(JsonError),
    #[error("the message is not acceptable JSON: {0}")]
    Refused(JsonError),
    #[error("{what}")]
    NotAMessage { what: &'static str, id: Option<Id> },
}

impl MessageError {
    /// The id to echo, where there is one.
    #[must_use]
    pub fn id(&self) -> Option<&Id> {
        match self {
            Self::NotAMessage { id, .. } => id.as_ref(),
            Self::NotUtf8 | Self::NotJson(_) | Self::Refused(_) => None,
        }
    }
}

/// Most messages of a batch.
const LARGEST_BATCH: usize = 100;

/// Reads one message or batch.
///
/// # Errors
/// The text is no JSON, breaks a limit, or is no JSON-RPC message.
pub fn read(bytes: &[u8], limits: Limits) -> Result<Incoming, MessageError> {
    let text = std::str::from_utf8(bytes).map_err(|_| MessageError::NotUtf8)?;
    let document = Arc::new(Document::parse(text, limits).map_err(json_error)?);
    if document.root().kind() != Kind::Array {
        return classify(&Part::whole(document)).map(Incoming::One);
    }
    let items: Vec<_> = document.root().items().map(|item| item.raw().to_owned()).collect();
    if items.is_empty() || items.len() > weak::limit(LARGEST_BATCH) {
        return Err(MessageError::NotAMessage { what: "a batch must hold 1 to 100 messages", id: None });
    }
    let read_one = |item: String| match Document::parse(item, limits) {
        Ok(document) => classify(&Part::whole(Arc::new(document))),
        Err(error) => Err(json_error(error)),
    };
    Ok(Incoming::Batch(items.into_iter().map(read_one).collect()))
}

/// Reads a text that must be one message: a line of stdio, an event of a stream.
///
/// # Errors
/// As `read`, and for a batch.
pub fn read_one(bytes: &[u8], limits: Limits) -> Result<Message, MessageError> {
    match read(bytes, limits)? {
        Incoming::One(message) => Ok(message),
        Incoming::Batch(_) => Err(MessageError::NotAMessage { what: "a batch is not accepted here", id: None }),
    }
}

fn json_error(error: JsonError) -> MessageError {
    use toolwarden_core::json::Fault;
    match error.fault {
        Fault::DuplicateKey | Fault::TooDeep | Fault::TooLarge => MessageError::Refused(error),
        _ => MessageError::NotJson(error),
    }
}

fn classify(whole: &Part) -> Result<Message, MessageError> {
    let refuse = |what, id: Option<Id>| Err(MessageError::NotAMessage { what, id });
    if whole.value().kind() != Kind::Object {
        return refuse("a message must be an object", None);
    }
    let id = match whole.value().get("id") {
        None => None,
        Some(value) => match Id::from_raw(value.raw()) {
            Some(id) => Some(id),
            None if value.kind() == Kind::Null && whole.value().get("method").is_none() => None,
            None => return refuse("`id` must be a string or an integer", None),
        },
    };
    if whole.value().get("jsonrpc").and_then(|value| value.as_str()).as_deref() != Some("2.0")
        && !weak::is(Weakness::Json)
    {
        return refuse("`jsonrpc` must be \"2.0\"", id);
    }
    let (result, error) = (whole.member("result"), whole.member("error"));
    let Some(method) = whole.value().get("method") else {
        return match (result, error) {
            (Some(result), None) if id.is_some() => Ok(Message::Response(Response { id, outcome: Ok(result) })),
            (None, Some(error)) => Ok(Message::Response(Response { id, outcome: Err(error) })),
            _ => refuse("a message needs `method`, or `id` with `result` or `error`", id),
        };
    };
    let Some(method) = method.as_str() else { return refuse("`method` must be a string", id) };
    if result.is_some() || error.is_some() {
        return refuse("a message with `method` has no `result` or `error`", id);
    }
    let params = whole.member("params");
    let is_odd = |params: &Part| params.value().kind() != Kind::Object && !weak::is(Weakness::Json);
    if params.as_ref().is_some_and(is_odd) {
        return refuse("`params` must be an object", id);
    }
    let method: Arc<str> = method.into();
    Ok(match id {
        Some(id) => Message::Request(Request { id, method, params }),
        None => Message::Notification(Notification { method, params }),
    })
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
