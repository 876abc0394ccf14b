//! What a person accepts of what waits: nothing but what they were shown.

use toolwarden_core::Digest;

use crate::{Kind, NotAccepted, ServerPins, Version, short};

/// One waiting version of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub kind: Kind,
    pub name: String,
    pub digest: String,
}

/// A digest over everything that waits at a server: who names it has seen that, and nothing came after.
#[must_use]
pub fn digest_of_waiting(pins: &ServerPins) -> String {
    let mut text = String::new();
    for kind in Kind::ALL {
        for (name, pin) in &pins.section(kind).entries {
            for version in &pin.waiting {
                // Every part says how long it is, so that none can pass for two.
                for part in [kind.as_str(), name, &version.digest] {
                    text.push_str(&format!("{}:{part}", part.len()));
                }
            }
        }
    }
    short(&Digest::of_bytes(text.as_bytes()).to_string())
}

/// The versions to accept: of the definition that is named, or of everything that waits at the server. What
/// changed more than once must be named with its version. Of a server where several definitions wait,
/// everything is accepted only by the digest of what was shown: there may be more by now.
///
/// # Errors
/// Nothing fits, or it is not clear what is meant.
pub fn choose(
    pins: &ServerPins,
    only: Option<(Kind, &str)>,
    version: Option<&str>,
) -> Result<Vec<Waiting>, NotAccepted> {
    match only {
        Some(only) => one(pins, only, version),
        None => everything(pins, version),
    }
}

fn one(pins: &ServerPins, (kind, name): (Kind, &str), version: Option<&str>) -> Result<Vec<Waiting>, NotAccepted> {
    let pin = pins.section(kind).entries.get(name).ok_or(NotAccepted::Unknown)?;
    if pin.waiting.is_empty() {
        return Err(NotAccepted::NothingWaits);
    }
    let fits = |one: &&Version| version.is_none_or(|version| one.digest.starts_with(version));
    let found: Vec<&Version> = pin.waiting.iter().filter(fits).collect();
    if found.is_empty() {
        return Err(NotAccepted::NoSuchVersion { waiting: pin.waiting.iter().map(|one| short(&one.digest)).collect() });
    }
    only_version(kind, name, &found).map(|waiting| vec![waiting])
}

fn everything(pins: &ServerPins, shown: Option<&str>) -> Result<Vec<Waiting>, NotAccepted> {
    let (count, digest) = (pins.waiting(), digest_of_waiting(pins));
    match shown {
        _ if count == 0 => return Err(NotAccepted::NothingWaits),
        Some(shown) if shown != digest => return Err(NotAccepted::OtherWaits),
        None if count > 1 => return Err(NotAccepted::Unseen { count, digest }),
        Some(_) | None => {}
    }
    let mut chosen = Vec::with_capacity(count);
    for kind in Kind::ALL {
        for (name, pin) in pins.section(kind).entries.iter().filter(|(_, pin)| !pin.waiting.is_empty()) {
            chosen.push(only_version(kind, name, &pin.waiting.iter().collect::<Vec<_>>())?);
        }
    }
    Ok(chosen)
}

fn only_version(kind: Kind, name: &str, found: &[&Version]) -> Result<Waiting, NotAccepted> {
    match found {
        [one] => Ok(Waiting { kind, name: name.to_owned(), digest: one.digest.clone() }),
        several => {
            let versions = several.iter().map(|one| short(&one.digest)).collect();
            Err(NotAccepted::Several(kind.address(name), versions))
        }
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
