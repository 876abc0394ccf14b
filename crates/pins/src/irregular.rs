//! What is not as accepted at one server, in the form a call asks for it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use toolwarden_core::name;
use toolwarden_policy::Definition;

use crate::{Kind, ServerPins, Standing};

/// Of definitions that wait: who has seen an accepted version since.
pub(super) type Regular = HashMap<(Kind, String), HashSet<u64>>;

/// How a definition stands, and for whom it stands as accepted nevertheless.
type Stands = (Definition, HashSet<u64>);

#[derive(Debug, Default, Clone)]
pub(super) struct Irregular {
    /// What starts it changed: nothing of it may run.
    pub(super) launch: bool,
    instructions: Option<HashSet<u64>>,
    /// By folded name: a call may spell it otherwise.
    tools: HashMap<String, Stands>,
    prompts: HashMap<String, Stands>,
}

impl Irregular {
    /// None where everything is as accepted. `launch` is what would start the server in this process.
    pub(super) fn of(pins: &ServerPins, launch: Option<&str>, regular: &Regular) -> Option<Self> {
        let mut found = Self::default();
        let pinned = pins.launch.entries.get("");
        found.launch = launch.zip(pinned).is_some_and(|(digest, pin)| pin.accepts(digest).is_none());
        let mut any = found.launch;
        for kind in [Kind::Instructions, Kind::Tool, Kind::Prompt] {
            let waiting = pins.section(kind).entries.iter().filter(|(_, pin)| !pin.waiting.is_empty());
            for (entry, pin) in waiting {
                any = true;
                let callers = regular.get(&(kind, entry.clone())).cloned().unwrap_or_default();
                let definition = if pin.standing() == Standing::New { Definition::New } else { Definition::Changed };
                match kind {
                    Kind::Launch => {}
                    Kind::Instructions => found.instructions = Some(callers),
                    Kind::Tool => add(&mut found.tools, entry, (definition, callers)),
                    Kind::Prompt => add(&mut found.prompts, entry, (definition, callers)),
                }
            }
        }
        any.then_some(found)
    }

    /// How what is called stands for a caller.
    pub(super) fn standing(&self, called: Option<(Kind, &str)>, caller: impl Fn() -> u64) -> Definition {
        let is_regular = |callers: &HashSet<u64>| callers.contains(&caller());
        if self.launch || self.instructions.as_ref().is_some_and(|callers| !is_regular(callers)) {
            return Definition::ServerChanged;
        }
        let entry = match called {
            Some((Kind::Tool, tool)) => self.tools.get(&*name::folded(tool)),
            Some((Kind::Prompt, prompt)) => self.prompts.get(&*name::folded(prompt)),
            Some((Kind::Launch | Kind::Instructions, _)) | None => None,
        };
        match entry {
            Some((definition, callers)) if !is_regular(callers) => *definition,
            _ => Definition::Accepted,
        }
    }
}

/// Names that differ in case alone cannot be told apart in a call, so the worse of them counts for both.
fn add(all: &mut HashMap<String, Stands>, name: &str, (definition, callers): Stands) {
    match all.entry(name.to_ascii_lowercase()) {
        Entry::Vacant(place) => drop(place.insert((definition, callers))),
        Entry::Occupied(mut other) => {
            let (worse, regular) = other.get_mut();
            *worse = worse_of(*worse, definition);
            regular.retain(|caller| callers.contains(caller));
        }
    }
}

/// What nobody ever accepted is worse than what changed since.
pub(super) fn worse_of(one: Definition, other: Definition) -> Definition {
    let weight = |definition: Definition| match definition {
        Definition::Accepted => 0,
        Definition::Changed => 1,
        Definition::New => 2,
        Definition::ServerChanged => 3,
    };
    if weight(other) > weight(one) { other } else { one }
}
