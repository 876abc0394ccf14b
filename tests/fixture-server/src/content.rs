//! Pieces of content that tools, prompts and resources answer with.

use serde_json::{Value, json};

/// One red pixel.
pub const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC";
/// Four samples of silence.
const WAV: &str = "UklGRigAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA";

pub fn text(text: impl Into<String>) -> Value {
    json!({"type": "text", "text": text.into()})
}

pub fn image() -> Value {
    json!({"type": "image", "data": PNG, "mimeType": "image/png"})
}

pub fn audio() -> Value {
    json!({"type": "audio", "data": WAV, "mimeType": "audio/wav"})
}

pub fn resource(uri: &str, kind: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": text}})
}

/// A tool's answer.
pub fn answer(content: &[Value]) -> Value {
    json!({"content": content})
}

/// A tool's answer of one line.
pub fn line(words: impl Into<String>) -> Value {
    answer(&[text(words)])
}
