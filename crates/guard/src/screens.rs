//! The screens of all servers, which change with the config: the next answer meets the new one.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use toolwarden_sources::ServerDefinition;

use crate::screen::Screen;

/// By server; servers that are not screened have none.
#[derive(Debug, Default)]
pub struct Screens(ArcSwap<HashMap<String, Arc<Screen>>>);

impl Screens {
    #[must_use]
    pub fn of(definitions: &[ServerDefinition]) -> Self {
        let screens = Self::default();
        screens.replace(definitions);
        screens
    }

    #[must_use]
    pub fn get(&self, server: &str) -> Option<Arc<Screen>> {
        self.0.load().get(server).cloned()
    }

    /// Screens are built anew only where their rules are other ones.
    pub fn replace(&self, definitions: &[ServerDefinition]) {
        let known = self.0.load();
        let screened = |definition: &ServerDefinition| {
            let (name, rules) = (&definition.input.name, &definition.screening);
            let same = known.get(name).filter(|screen| screen.has_rules(rules)).cloned();
            Some((name.clone(), same.or_else(|| Screen::of(rules).map(Arc::new))?))
        };
        self.0.store(Arc::new(definitions.iter().filter_map(screened).collect()));
    }

    /// The servers of which more would be shown than now.
    #[must_use]
    pub fn shown_more(&self, definitions: &[ServerDefinition]) -> Vec<String> {
        let known = self.0.load();
        let shows_more = |definition: &&ServerDefinition| {
            known.get(&definition.input.name).is_some_and(|screen| screen.is_stricter_than(&definition.screening))
        };
        definitions.iter().filter(shows_more).map(|definition| definition.input.name.clone()).collect()
    }
}
