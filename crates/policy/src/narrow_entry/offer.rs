//! From a held call to an entry: what a person typed, `NAME=KIND:VALUE`, and what can be suggested to them.
//!
//! An entry made here always covers the call it was made for: a person who approves something sees it covered.

use std::collections::BTreeMap;

use toolwarden_core::json::{Kind, Value};
use toolwarden_core::name;

use super::facts::{Facts, counts_as, escaped, leaves, scalar};
use super::{Demand, Likeness, NarrowEntry, NarrowFault, fault, quoted};

/// The most that is suggested for one call.
const MOST: usize = 6;
/// Longer texts are not suggested to be the same each time.
const LONGEST_SUGGESTED: usize = 100;

/// What a person chose, or can choose: conditions as `NAME=KIND:VALUE`, and arguments that are free.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrowing {
    pub conditions: Vec<String>,
    pub free: Vec<String>,
}

impl NarrowEntry {
    /// The entry a person asks for when approving a call.
    ///
    /// # Errors
    /// What is wrong with it, or why it would not even cover this call.
    pub fn choose((server, tool): (&str, &str), arguments: Value<'_>, chosen: &Narrowing) -> Result<Self, NarrowFault> {
        let mut demands = BTreeMap::new();
        let Some(values) = leaves(arguments, &|_| false) else {
            return fault("the call has no arguments that could be named, or too many");
        };
        let conditions = chosen.conditions.iter().map(|text| condition(text, &values));
        let free = chosen.free.iter().map(|name| Ok((pointer(name), Demand::Free)));
        for demand in conditions.chain(free) {
            let (pointer, demand) = demand?;
            let shown = name::shown(&pointer).into_owned();
            if demands.insert(pointer, demand).is_some() {
                return fault(format!("`{shown}` is named twice"));
            }
        }
        // By its text: what is chosen is what will be read.
        let entry = Self::parse(&Self::new(server.to_owned(), tool.to_owned(), demands)?.to_string())?;
        match entry.misfit(server, tool, arguments) {
            None => Ok(entry),
            Some(why) => fault(why),
        }
    }

    /// Why a call is not covered, in words.
    fn misfit(&self, server: &str, tool: &str, arguments: Value<'_>) -> Option<String> {
        if self.covers(server, tool, Some(arguments)) {
            return None;
        }
        let facts = Facts::of(arguments, &self.demands);
        let unnamed = facts.iter().flat_map(|facts| &facts.names).find(|name| !self.demands.contains_key(*name));
        if let Some(name) = unnamed {
            let shown = name::shown(name);
            return Some(format!(
                "the call has the argument `{shown}`, of which nothing is said: name it, or leave it free"
            ));
        }
        let is_unmet = |(pointer, demand): (&String, &Demand)| match (demand, &facts) {
            (Demand::Like(likeness, value), Some(facts)) => {
                let counts_as = facts.counts_as.get(likeness.index()).and_then(|of_kind| of_kind.get(pointer));
                let is_met = counts_as.is_some_and(|texts| texts.contains(value));
                (!is_met).then(|| {
                    format!(
                        "the argument `{}` of this call is not so: {} {}",
                        name::shown(pointer),
                        likeness.as_str(),
                        name::shown(value)
                    )
                })
            }
            _ => None,
        };
        let unmet = self.demands.iter().find_map(is_unmet);
        Some(unmet.unwrap_or_else(|| "the call itself would not be covered".to_owned()))
    }

    /// Entries that suggest themselves for a call, the narrowest first: each argument as it is, then one that says
    /// where the call goes, with all others free.
    #[must_use]
    pub fn suggest((server, tool): (&str, &str), arguments: Value<'_>) -> Vec<(Narrowing, Self)> {
        let values = leaves(arguments, &|_| false).unwrap_or_default();
        let choices: Vec<(&String, Option<String>)> =
            values.iter().map(|(pointer, value)| (pointer, natural(pointer, *value))).collect();
        let narrowing = |only: Option<usize>| {
            let mut chosen = Narrowing::default();
            for (index, (pointer, condition)) in choices.iter().enumerate() {
                match condition {
                    Some(condition) if only.is_none_or(|only| only == index) => {
                        chosen.conditions.push(condition.clone())
                    }
                    _ => chosen.free.push(named(pointer)),
                }
            }
            chosen
        };
        let mut found: Vec<(Narrowing, Self)> = Vec::new();
        for chosen in std::iter::once(narrowing(None)).chain((0..choices.len()).map(|index| narrowing(Some(index)))) {
            match Self::choose((server, tool), arguments, &chosen) {
                Ok(entry) if found.len() < MOST && !found.iter().any(|(_, known)| *known == entry) => {
                    found.push((chosen, entry));
                }
                _ => {}
            }
        }
        found
    }
}

/// Reads `NAME=KIND:VALUE`. The call tells the type of what it is compared with.
fn condition(text: &str, values: &[(String, Value<'_>)]) -> Result<(String, Demand), NarrowFault> {
    let parts = text.split_once('=').and_then(|(name, rest)| Some((name, rest.split_once(':')?)));
    let Some((name, (kind, value))) = parts else {
        return fault(format!("`{}` is not NAME=KIND:VALUE", name::shown(text)));
    };
    let Some(likeness) = Likeness::parse(kind) else {
        return fault(format!("`{}` is no kind: equals, path, host, branch", name::shown(kind)));
    };
    let pointer = pointer(name);
    let value = match likeness {
        Likeness::Equals => {
            let is_text = |(_, found): &&(String, Value<'_>)| found.kind() == Kind::String;
            let found = values.iter().find(|(known, _)| *known == pointer);
            match found.filter(|found| !is_text(found)) {
                Some((_, found)) if scalar(*found).as_deref() == Some(value) => value.to_owned(),
                _ => quoted(value),
            }
        }
        Likeness::Path | Likeness::Host | Likeness::Branch => value.to_owned(),
    };
    Ok((pointer, Demand::Like(likeness, value)))
}

/// A pointer as it is, or the name of an argument as one.
fn pointer(name: &str) -> String {
    if name.starts_with('/') { name.to_owned() } else { format!("/{}", escaped(name)) }
}

/// As a person would write it.
fn named(pointer: &str) -> String {
    let name = pointer.trim_start_matches('/');
    if name.is_empty() || name.contains(['/', '~']) { pointer.to_owned() } else { name.to_owned() }
}

/// The condition that suggests itself for one argument; none where only the whole of it could be compared.
fn natural(pointer: &str, value: Value<'_>) -> Option<String> {
    let first = |likeness| counts_as(likeness, value).into_iter().next();
    let last = |likeness| counts_as(likeness, value).pop();
    let text = value.as_str();
    let is_address = text.as_ref().is_some_and(|text| text.starts_with("https://") || text.starts_with("http://"));
    let leaf = pointer.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let is_branch = leaf.ends_with("branch") || ["ref", "head", "base"].contains(&&*leaf);
    let is_path = ["path", "file", "dir", "folder"].iter().any(|word| leaf.contains(word));
    let is_path = is_path || text.as_ref().is_some_and(|text| text.starts_with('/'));
    let like = |likeness: Likeness, value: String| (likeness, value);
    let (likeness, value) = if is_address {
        like(Likeness::Host, first(Likeness::Host)?)
    } else if let Some(branch) = first(Likeness::Branch).filter(|_| is_branch) {
        like(Likeness::Branch, branch)
    } else if let Some(directory) = last(Likeness::Path).filter(|_| is_path) {
        like(Likeness::Path, directory)
    } else {
        let is_odd = |character: char| name::is_deceptive(character) || name::is_invisible(character);
        let shown = text.map_or_else(|| scalar(value), |text| Some(text.into_owned()))?;
        let is_short = shown.len() <= LONGEST_SUGGESTED && !shown.contains(is_odd);
        like(Likeness::Equals, Some(shown).filter(|_| is_short)?)
    };
    let name = named(pointer);
    (!name.contains('=')).then(|| format!("{name}={}:{value}", likeness.as_str()))
}
