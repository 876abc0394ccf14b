//! What is pinned of servers' definitions (GATE-12), in the form people and scripts read.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use toolwarden_core::json::{Document, Limits};
use toolwarden_pins::{self as pins, Change, How, Kind, Pin, ServerPins, Standing, Told, Version, changes, short};
use toolwarden_policy::{Schema, read_input_schema, read_schema};

use crate::seen::Configured;

/// One definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionView {
    pub server: String,
    /// Whether there is such a server by now.
    pub configured: bool,
    pub kind: Kind,
    /// A tool's name, or `prompts/NAME`, `server/instructions`, `server/launch`.
    pub name: String,
    pub standing: Standing,
    /// The server does not list it any more; nothing else is changed by that.
    pub gone: bool,
    /// What is shown of it in words, whole.
    pub description: Option<String>,
    /// Why a schema of the tool cannot be used: every call of it is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
    /// How many versions are accepted.
    pub accepted: usize,
    /// Since when the version that is shown is accepted, and how it came to be.
    pub since: Option<String>,
    pub how: Option<String>,
    pub waiting: Vec<WaitingView>,
}

/// A version that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingView {
    pub version: String,
    pub first_seen: String,
    /// Whether this is what the server offered when it was last looked at.
    pub offered: bool,
    /// Too large to be kept: it cannot be accepted.
    pub too_large: bool,
    /// Against the version that was accepted last; without one, everything.
    pub changes: Vec<Change>,
    /// The same in the words of people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Told>,
}

/// Every definition of a server.
pub(crate) fn views(pins: &ServerPins, configured: &Configured) -> Vec<DefinitionView> {
    let configured = configured.has(&pins.server);
    let of = |kind: Kind| pins.section(kind).entries.iter().map(move |(name, pin)| (kind, name, pin));
    let all = Kind::ALL.into_iter().flat_map(of);
    all.map(|(kind, name, pin)| DefinitionView { configured, ..view(pins, kind, name, pin) }).collect()
}

/// Why nobody can call a tool as it is defined.
fn unusable(kind: Kind, text: &str) -> Option<String> {
    let document = Document::parse(text, Limits::again(text.len())).ok().filter(|_| kind == Kind::Tool)?;
    let sides = [("input", "inputSchema"), ("output", "outputSchema")];
    sides.into_iter().find_map(|(side, member)| {
        let given = document.root().get(member);
        let schema = if side == "input" { read_input_schema(given) } else { read_schema(given?) };
        let schema = Schema::compile(&schema);
        schema.fault().map(|fault| format!("{side} schema: {fault}"))
    })
}

fn view(pins: &ServerPins, kind: Kind, name: &str, pin: &Pin) -> DefinitionView {
    let last = pin.last_accepted();
    let waiting = |version: &Version| WaitingView {
        version: short(&version.digest),
        first_seen: in_seconds(version.since),
        offered: pin.offered.as_ref() == Some(&version.digest),
        too_large: version.how == How::TooLarge,
        changes: changes(last.map(|last| last.text.as_str()), &version.text),
        told: pins::told(kind, last.map(|last| last.text.as_str()), &version.text),
    };
    DefinitionView {
        server: pins.server.clone(),
        configured: true,
        kind,
        name: kind.address(name),
        standing: pin.standing(),
        gone: pins.section(kind).is_gone(name),
        description: last.or(pin.waiting.last()).and_then(|version| description(kind, version.shown())),
        unusable: last.or(pin.waiting.last()).and_then(|version| unusable(kind, version.shown())),
        accepted: pin.accepted.len(),
        since: last.map(|version| in_seconds(version.since)),
        how: last.map(|version| how(&version.how)),
        waiting: pin.waiting.iter().map(waiting).collect(),
    }
}

/// Nobody compares fractions of a second.
fn in_seconds(time: Timestamp) -> String {
    Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}

fn how(how: &How) -> String {
    match how {
        How::Baseline => "first seen".to_owned(),
        How::Addition => "optional field added".to_owned(),
        How::Followed => "followed".to_owned(),
        How::Accepted { by } => format!("accepted by {by}"),
        How::Waiting | How::TooLarge => "waiting".to_owned(),
    }
}

fn description(kind: Kind, text: &str) -> Option<String> {
    if kind == Kind::Launch {
        return pins::reached(text).map(|reached| reached.text);
    }
    let document = Document::parse(text, Limits::again(text.len())).ok()?;
    let words = match kind {
        Kind::Tool | Kind::Prompt => document.root().get("description")?.as_str()?.into_owned(),
        Kind::Instructions | Kind::Launch => document.root().as_str()?.into_owned(),
    };
    Some(words)
}
