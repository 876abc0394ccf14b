//! What a server may ask of the client (GATE-18): by default forms, and nothing else.
//!
//! Applied twice: what a client declares is cut to it before the server hears of it, and what a
//! server asks all the same is declined.

use toolwarden_core::json::{Kind as JsonKind, Value};
use toolwarden_core::{Caller, Weakness, weak};

/// Something a server can ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Form,
    Url,
    Sampling,
    Roots,
}

/// What one server may ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MayAsk(Vec<Kind>);

impl MayAsk {
    /// `may_ask = ["elicitation", "url", "sampling", "roots"]`; unknown words permit nothing.
    pub fn from_config(words: Option<&[String]>) -> Self {
        let Some(words) = words else { return Self(vec![Kind::Form]) };
        let kind = |word: &String| match word.as_str() {
            "elicitation" | "form" => Some(Kind::Form),
            "url" => Some(Kind::Url),
            "sampling" => Some(Kind::Sampling),
            "roots" => Some(Kind::Roots),
            _ => None,
        };
        Self(words.iter().filter_map(kind).collect())
    }

    /// Roots widen what a server does: an agent's are never passed on.
    pub fn permits(&self, caller: &Caller, kind: Kind) -> bool {
        weak::is(Weakness::Questions) || self.0.contains(&kind) && !(kind == Kind::Roots && caller.is_agent())
    }

    /// Whether a question may be passed on to the client.
    pub fn permits_question(&self, caller: &Caller, method: &str, params: Option<Value<'_>>) -> bool {
        match method {
            "sampling/createMessage" => self.permits(caller, Kind::Sampling),
            "roots/list" => self.permits(caller, Kind::Roots),
            "elicitation/create" => {
                let mode = params.and_then(|params| params.get("mode")).and_then(|mode| mode.as_str());
                match mode.as_deref() {
                    None | Some("form") => self.permits(caller, Kind::Form),
                    Some("url") => self.permits(caller, Kind::Url),
                    Some(_) => false,
                }
            }
            _ => false,
        }
    }

    /// The client's capabilities without what this server may not ask for.
    pub fn cut(&self, caller: &Caller, capabilities: Value<'_>) -> String {
        let mut kept: Vec<String> = Vec::new();
        for (key, value) in capabilities.entries() {
            let value = match &*toolwarden_core::json::unescape(key) {
                "sampling" => self.permits(caller, Kind::Sampling).then(|| value.raw().to_owned()),
                "roots" => self.permits(caller, Kind::Roots).then(|| value.raw().to_owned()),
                "elicitation" => self.elicitation(caller, value),
                _ => Some(value.raw().to_owned()),
            };
            kept.extend(value.map(|value| format!("{key}:{value}")));
        }
        format!("{{{}}}", kept.join(","))
    }

    /// `{}` means forms only.
    fn elicitation(&self, caller: &Caller, value: Value<'_>) -> Option<String> {
        let has = |key: &str| value.get(key).is_some_and(|inner| inner.kind() == JsonKind::Object);
        let offers_form = has("form") || !has("url");
        match (self.permits(caller, Kind::Form) && offers_form, self.permits(caller, Kind::Url) && has("url")) {
            (true, true) => Some(value.raw().to_owned()),
            (true, false) if has("url") => Some("{\"form\":{}}".to_owned()),
            (true, false) => Some(value.raw().to_owned()),
            (false, true) => Some("{\"url\":{}}".to_owned()),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
#[path = "may_ask_tests.rs"]
mod tests;
