//! Which eras of the protocol the server speaks, and what it says to a client of the other one.
//!
//! rmcp speaks both at once. A server of one era is rmcp behind a gate: what belongs to the other era is answered
//! before rmcp sees it, so it cannot run.

pub mod http;
pub mod lines;

use std::borrow::Cow;

use rmcp::model::ProtocolVersion;
use serde_json::{Value, json};

/// The key by which a request says that it is of the modern era.
const CLAIM: &str = "io.modelcontextprotocol/protocolVersion";
/// Methods the legacy era does not know.
const MODERN_METHODS: [&str; 2] = ["server/discover", "subscriptions/listen"];
/// Notifications the modern era does not know.
const LEGACY_NEWS: [&str; 2] = ["notifications/initialized", "notifications/roots/list_changed"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Era {
    /// Whatever the client speaks
    Both,
    /// Revisions up to 2025-11-25, with sessions
    Legacy,
    /// Revision 2026-07-28 alone, without sessions
    Modern,
}

impl Era {
    /// The revisions the server offers.
    pub fn versions(self) -> Cow<'static, [ProtocolVersion]> {
        match self {
            Self::Both => Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
            Self::Legacy => Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25)),
            Self::Modern => Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
        }
    }
}

/// What the gate needs to know of a message.
#[derive(Debug)]
struct Sent {
    kind: Kind,
    method: String,
    id: Value,
    /// It says which modern revision it follows; a value that makes no sense is rmcp's to refuse.
    claims: bool,
    /// The version that `initialize` asks for.
    requested: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Request,
    Notification,
    Response,
}

impl Sent {
    /// Reads a message; nothing if it is no JSON object, which rmcp refuses by itself.
    fn read(text: &[u8]) -> Option<Self> {
        let mut message: Value = serde_json::from_slice(text).ok()?;
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        let id = message.as_object_mut()?.remove("id");
        let params = message.get("params");
        let kind = match (&method, &id) {
            (None, _) => Kind::Response,
            (Some(_), None) => Kind::Notification,
            (Some(_), Some(_)) => Kind::Request,
        };
        Some(Self {
            kind,
            method: method.unwrap_or_default(),
            id: id.unwrap_or_default(),
            claims: params.and_then(|params| params.get("_meta")?.get(CLAIM)).is_some(),
            requested: params.and_then(|params| params.get("protocolVersion")).cloned().unwrap_or_default(),
        })
    }

    fn is(&self, method: &str) -> bool {
        self.method == method
    }

    fn error(&self, code: i32, message: &str, data: Option<Value>) -> Value {
        error(&self.id, code, message, data)
    }

    fn unknown_method(&self) -> Value {
        self.error(-32601, &format!("Method not found: {}", self.method), None)
    }

    fn without_claim(&self) -> Value {
        self.error(-32602, "the request does not say in _meta which protocol version it follows", None)
    }

    fn of_other_era(&self) -> Value {
        self.error(-32600, "a request of another era on a legacy connection", None)
    }
}

fn error(id: &Value, code: i32, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({"code": code, "message": message});
    if let (Some(data), Some(fields)) = (data, error.as_object_mut()) {
        fields.insert("data".to_owned(), data);
    }
    json!({"jsonrpc": "2.0", "error": error, "id": id})
}
