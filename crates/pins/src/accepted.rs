//! The names a server may be asked for: those of which somebody accepted a version.

use std::collections::HashSet;

use crate::{Kind, Section, ServerPins};

#[derive(Debug, Default)]
pub(super) struct Accepted {
    tools: Option<HashSet<String>>,
    prompts: Option<HashSet<String>>,
}

impl Accepted {
    pub(super) fn of(pins: &ServerPins) -> Self {
        Self { tools: names(&pins.tools), prompts: names(&pins.prompts) }
    }

    /// Whether a name is none of them. A server may serve what it never listed, or listed beyond what is kept:
    /// nobody has seen that. Exactly as it is spelled, because that is how the server is asked.
    pub(super) fn lacks(&self, kind: Kind, name: &str) -> bool {
        let names = match kind {
            Kind::Tool => &self.tools,
            Kind::Prompt => &self.prompts,
            Kind::Launch | Kind::Instructions => return false,
        };
        names.as_ref().is_some_and(|names| !names.contains(name))
    }
}

/// None before there is a baseline: everything would be new.
fn names(section: &Section) -> Option<HashSet<String>> {
    section.baseline?;
    let accepted = section.entries.iter().filter(|(_, pin)| !pin.accepted.is_empty());
    Some(accepted.map(|(name, _)| name.clone()).collect())
}
