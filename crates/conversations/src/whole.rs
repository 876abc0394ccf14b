//! A whole answer, where somebody must look into it: lists and openings.

use bytes::Bytes;
use tokio::time::timeout;
use toolwarden_core::json::{Fault, Kind, Limits, Part, Value, unescape};
use toolwarden_core::{Status, Weakness, weak};
use toolwarden_mcp::message::read_one;
use toolwarden_mcp::scan::OWN_WORDS;
use toolwarden_mcp::sse::Item;
use toolwarden_mcp::upstream::http::{Body, Reply as HttpReply, ReplyBody};
use toolwarden_mcp::{Id, Message, MessageError};

use crate::failure::Failure;
use crate::questions::wants_addresses;
use crate::upstreams::{StdioReply, Upstream, http_failure};

/// What a server answered, not inspected yet.
#[derive(Debug)]
pub enum Reply {
    Http(HttpReply),
    Stdio(StdioReply),
    /// A message that wants no answer was sent.
    Sent,
}

/// Largest answer that is gathered to be looked into.
pub const LARGEST: usize = 16 * 1024 * 1024;
/// No message of a server is read that nests deeper, whatever limits say.
pub const DEEPEST: usize = 512;

/// How a call ended that was answered so.
pub fn status_of(outcome: &Result<Part, Part>) -> Status {
    match outcome {
        Ok(result) if result.value().get("isError").is_some_and(|is| is.kind() == Kind::True) => Status::ToolError,
        Ok(_) => Status::Ok,
        Err(_) => Status::ToolError,
    }
}

/// The result of a request; an error of the server becomes a failure that carries it.
pub async fn result_of(upstream: &Upstream, reply: Reply, id: &Id) -> Result<Part, Failure> {
    timeout(upstream.bounds().silence, gather(upstream, reply, id)).await.map_err(|_| Failure::Timeout)?
}

/// A whole answer in the pieces it came in.
pub async fn pieces(upstream: &Upstream, mut body: Body) -> Result<Vec<Bytes>, Failure> {
    let gathering = async {
        let (mut pieces, mut size) = (Vec::new(), 0);
        while let Some(piece) = body.chunk().await.map_err(http_failure)? {
            size += piece.len();
            if size > LARGEST {
                return Err(Failure::TooLarge);
            }
            pieces.push(piece);
        }
        Ok(pieces)
    };
    timeout(upstream.bounds().silence, gathering).await.map_err(|_| Failure::Timeout)?
}

async fn gather(upstream: &Upstream, reply: Reply, id: &Id) -> Result<Part, Failure> {
    match reply {
        Reply::Sent => Err(Failure::Protocol("nothing was asked".to_owned())),
        Reply::Stdio(reply) => {
            let last = reply.last.await?;
            last.outcome.map_err(|error| answered(&error, 200))
        }
        Reply::Http(reply) => {
            let status = reply.status.as_u16();
            match reply.body {
                ReplyBody::Json(body) => outcome(&body.collect(LARGEST).await.map_err(http_failure)?, id, status),
                ReplyBody::Events(mut events) => {
                    while let Some(item) = events.next_item().await.map_err(http_failure)? {
                        let Item::Event(event) = item else { continue };
                        let data = event.data.unwrap_or_default();
                        match read(&data) {
                            Some(Message::Response(_)) => return outcome(&data, id, status),
                            Some(Message::Notification(news)) => upstream.take_note(&news),
                            Some(Message::Request(_)) | None => {}
                        }
                    }
                    Err(Failure::Died)
                }
                ReplyBody::Empty | ReplyBody::Other(_) => Err(Failure::Wordless { status }),
            }
        }
    }
}

fn read(bytes: &[u8]) -> Option<Message> {
    read_one(bytes, Limits { bytes: LARGEST, depth: DEEPEST }).ok()
}

pub fn outcome(bytes: &Bytes, id: &Id, status: u16) -> Result<Part, Failure> {
    let Some(Message::Response(response)) = read(bytes) else {
        return Err(Failure::Wordless { status });
    };
    match response.outcome {
        Ok(result) if response.id.as_ref() == Some(id) || weak::is(Weakness::Answers) => Ok(result),
        Ok(_) => Err(Failure::Protocol("it answered another request than was asked".to_owned())),
        Err(error) => Err(answered(&error, status)),
    }
}

/// The failure that carries a server's error. Nobody is asked anything in the place of a list.
fn answered(error: &Part, status: u16) -> Failure {
    if let Err(imitation) = check_words(Err(error.value())) {
        return imitation;
    }
    if wants_addresses(error.value()) && !weak::is(Weakness::Answers) {
        return Failure::Protocol("it asked for something where nothing may be asked".to_owned());
    }
    Failure::Answered { status, error: error.raw().to_owned() }
}

/// A result or an error nests no deeper than the limit (GATE-13).
pub fn check_depth(outcome: &Result<Part, Part>, most: usize) -> Result<(), Failure> {
    let (Ok(said) | Err(said)) = outcome;
    if said.is_within(weak::limit(most)) { Ok(()) } else { Err(Failure::TooDeep) }
}

/// Why a message of a server could not be read.
pub fn unread(error: &MessageError) -> Failure {
    match error {
        MessageError::NotJson(fault) | MessageError::Refused(fault) if fault.fault == Fault::TooDeep => {
            Failure::TooDeep
        }
        error => Failure::Protocol(error.to_string()),
    }
}

/// The error object of a body that came with a status of its own.
pub async fn error_of(body: ReplyBody) -> Option<String> {
    let bytes = match body {
        ReplyBody::Json(body) => body.collect(LARGEST).await.ok()?,
        ReplyBody::Events(_) | ReplyBody::Empty | ReplyBody::Other(_) => return None,
    };
    match read(&bytes)? {
        Message::Response(response) => response.outcome.err().map(|error| error.raw().to_owned()),
        Message::Request(_) | Message::Notification(_) => None,
    }
}

/// What only the gateway says must not come from a server: clients act on it.
pub fn check_words(outcome: Result<Value<'_>, Value<'_>>) -> Result<(), Failure> {
    let words = match outcome {
        Ok(result) => result.get("_meta"),
        Err(error) => error.get("data"),
    };
    let imitates = words.is_some_and(|words| words.entries().any(|(key, _)| unescape(key).starts_with(OWN_WORDS)));
    if imitates && !weak::is(Weakness::Answers) { Err(imitation()) } else { Ok(()) }
}

pub fn imitation() -> Failure {
    Failure::Protocol("its answer speaks in the gateway's name".to_owned())
}
