//! The classifier of `[classifier]`, as far as it can be used here. One that cannot be is none, and said to be: then held
//! calls are for persons.

use std::sync::Arc;
use std::time::Duration;

use toolwarden_classifier::{Classifier, Kind, Ledger, Money, Parts, Settings};
use toolwarden_core::{Keyring, Secret};
use toolwarden_gateway::Budgets;
use toolwarden_sources::ConfigFile;
use toolwarden_sources::readers::config::ClassifierSection;
use toolwarden_store::State;

use super::filled;
use crate::environment::{self, SystemClock};

/// What a program is called that has no model's name.
const PROGRAM: &str = "command";

/// The classifier that the config names, where it can be used.
pub(super) fn open(config: &ConfigFile, keyring: &Arc<dyn Keyring>, state: &State) -> Option<Arc<Classifier>> {
    let section = config.classifier.as_ref()?;
    let made = made(section, keyring.clone(), state);
    made.inspect_err(|why| tracing::warn!("[classifier] is not used, so held calls are for persons: {why}")).ok()
}

fn made(section: &ClassifierSection, keyring: Arc<dyn Keyring>, state: &State) -> Result<Arc<Classifier>, String> {
    let ledger: Option<Arc<dyn Ledger>> = Some(Arc::new(Budgets::new(state.clone())));
    let parts = Parts { settings: settings(section)?, keyring, clock: Arc::new(SystemClock), ledger };
    Classifier::new(parts).map(Arc::new).map_err(|why| why.to_string())
}

/// Everything it is held to, looked through.
///
/// # Errors
/// What is configured cannot be used, in words without secrets.
pub fn settings(section: &ClassifierSection) -> Result<Settings, String> {
    let key = section.api_key.as_ref().map(|key| {
        // Only the user's own config has a say here, so it may read the environment.
        let text = filled(key.reveal_to_upstream(), true);
        text.map(Secret::new).map_err(|missing| format!("`api_key`: `{missing}` has no value here"))
    });
    let (key, url) = (key.transpose()?, section.url.clone());
    let kind = match section.kind.as_str() {
        "openai" => Kind::OpenAi { url, key },
        "anthropic" => Kind::Anthropic { url, key },
        _ => Kind::Command { command: section.command.clone(), environment: environment::inherited() },
    };
    let mut settings = Settings::new(kind, section.model.as_deref().unwrap_or(PROGRAM));
    settings.plain_http = section.plain_http;
    settings.patience = section.timeout.filter(|time| *time > Duration::ZERO).unwrap_or(settings.patience);
    settings.per_hour = section.budget.unwrap_or(settings.per_hour);
    let at_once = section.at_once.and_then(|most| usize::try_from(most).ok());
    settings.at_once = at_once.unwrap_or(settings.at_once);
    let money = |prices: toolwarden_sources::readers::config::Prices| Money {
        per_day: prices.max_cost,
        input: prices.input,
        output: prices.output,
    };
    settings.money = section.prices.map(money);
    settings.shadow = section.shadow;
    settings.allow.clone_from(&section.allow_instructions);
    settings.block.clone_from(&section.block_instructions);
    settings.check().map_err(|why| why.to_string())?;
    Ok(settings)
}
