//! The gate before a conversation in lines.

use serde_json::json;

use super::{Era, Kind, LEGACY_NEWS, MODERN_METHODS, Sent};

/// Where a line goes.
#[derive(Debug)]
pub enum Passage {
    Through,
    Nowhere,
    /// Back, as this answer.
    Answered(String),
}

/// Remembers whether the conversation has begun: rmcp takes nothing but requests before.
#[derive(Debug)]
pub struct Gate {
    era: Era,
    is_open: bool,
}

impl Gate {
    pub fn new(era: Era) -> Self {
        Self { era, is_open: false }
    }

    pub fn judge(&mut self, line: &[u8]) -> Passage {
        if self.era == Era::Both {
            return Passage::Through;
        }
        let Some(sent) = Sent::read(line) else { return Passage::Through };
        match (self.era, sent.kind) {
            (Era::Modern, Kind::Request) => self.modern(&sent),
            (_, Kind::Request) => self.legacy(&sent),
            (Era::Modern, Kind::Response) => Passage::Nowhere,
            (Era::Modern, _) if LEGACY_NEWS.contains(&sent.method.as_str()) => Passage::Nowhere,
            (Era::Legacy, _) if sent.claims => Passage::Nowhere,
            _ if self.is_open => Passage::Through,
            _ => Passage::Nowhere,
        }
    }

    fn modern(&mut self, sent: &Sent) -> Passage {
        let refusal = match (sent.is("initialize"), sent.claims) {
            (true, true) => sent.unknown_method(),
            (true, false) => {
                let versions = json!({"supported": self.era.versions(), "requested": sent.requested});
                sent.error(-32022, "Unsupported protocol version", Some(versions))
            }
            (false, false) => sent.without_claim(),
            (false, true) => {
                // rmcp answers this one and goes on waiting for the first.
                self.is_open |= !sent.is("server/discover");
                return Passage::Through;
            }
        };
        Passage::Answered(refusal.to_string())
    }

    fn legacy(&mut self, sent: &Sent) -> Passage {
        let refusal = if MODERN_METHODS.contains(&sent.method.as_str()) {
            sent.unknown_method()
        } else if sent.claims {
            sent.of_other_era()
        } else if self.is_open || sent.is("initialize") || sent.is("ping") {
            self.is_open |= sent.is("initialize");
            return Passage::Through;
        } else {
            sent.error(-32602, "Received request before initialization was complete", None)
        };
        Passage::Answered(refusal.to_string())
    }
}
