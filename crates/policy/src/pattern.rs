//! Role patterns over tool names: `db.read`, `db.*`, `*`, each optionally behind `server:`.
//!
//! Compiled into lookups: exact names in a map, prefixes in a map probed once per distinct length,
//! so a thousand patterns cost what ten do.

use std::borrow::Cow;

use hashbrown::HashMap;
use toolwarden_core::name::{self, NameFault};
use toolwarden_core::{Origin, Sourced};

use crate::verdict::RuleRef;

/// Why a text is not a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    #[error("`*` may stand only at the end of a pattern")]
    Wildcard,
    #[error("a pattern has at most one `:`, between server and tool pattern")]
    Separator,
    #[error("{0}")]
    Name(NameFault),
}

/// How names are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// Allow sides compare exactly with the listed name.
    Exact,
    /// Deny sides ignore ASCII case.
    Folded,
}

impl Case {
    fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Exact => Cow::Borrowed(text),
            Self::Folded => name::folded(text),
        }
    }
}

/// One parsed pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    pub server: Option<String>,
    /// The whole name, or the prefix before `*`.
    pub(crate) text: String,
    pub(crate) is_prefix: bool,
}

impl Pattern {
    /// Whether it stands for every name with its beginning.
    #[must_use]
    pub fn is_prefix(&self) -> bool {
        self.is_prefix
    }

    /// Reads a pattern.
    ///
    /// # Errors
    /// A `*` or `:` in the wrong place, or what cannot be a name.
    pub fn parse(text: &str) -> Result<Self, PatternFault> {
        let (server, pattern) = match text.split_once(':') {
            Some((server, pattern)) => (Some(server.to_owned()), pattern),
            None => (None, text),
        };
        if pattern.contains(':') {
            return Err(PatternFault::Separator);
        }
        if let Some(server) = &server {
            name::check(server).map_err(PatternFault::Name)?;
        }
        let (stem, is_prefix) = match pattern.strip_suffix('*') {
            Some(stem) => (stem, true),
            None => (pattern, false),
        };
        if stem.contains('*') {
            return Err(PatternFault::Wildcard);
        }
        if !(is_prefix && stem.is_empty()) {
            name::check(stem).map_err(PatternFault::Name)?;
        }
        Ok(Self { server, text: stem.to_owned(), is_prefix })
    }

    /// Whether everything the other pattern matches is matched by this one.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        let server = self.server.is_none() || self.server == other.server;
        let name = if self.is_prefix {
            other.text.starts_with(&self.text)
        } else {
            !other.is_prefix && self.text == other.text
        };
        server && name
    }

    /// The same in lower case, for deny sides, which ignore case.
    #[must_use]
    pub fn folded(&self) -> Self {
        Self {
            server: self.server.as_ref().map(|server| server.to_ascii_lowercase()),
            text: self.text.to_ascii_lowercase(),
            is_prefix: self.is_prefix,
        }
    }

    /// Whether a name fits in any ASCII case.
    pub(crate) fn matches_folded(&self, tool: &str) -> bool {
        let (pattern, tool) = (name::folded(&self.text), name::folded(tool));
        if self.is_prefix { tool.starts_with(&*pattern) } else { tool == pattern }
    }

    #[must_use]
    pub fn matches_name(&self, tool: &str) -> bool {
        if self.is_prefix { tool.starts_with(&self.text) } else { tool == self.text }
    }
}

/// Which servers patterns without a server reach (GATE-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    WithBare,
    OnlyNamed,
}

/// A compiled list of patterns.
#[derive(Debug, Clone)]
pub(crate) struct Patterns {
    case: Case,
    bare: Names,
    by_server: HashMap<String, Names>,
}

impl Patterns {
    /// Compiles a list; the faults of texts that are no pattern come back beside it.
    pub(crate) fn compile(case: Case, texts: &[Sourced<String>]) -> (Self, Vec<(Origin, String, PatternFault)>) {
        let mut patterns = Self { case, bare: Names::default(), by_server: HashMap::new() };
        let mut faults = Vec::new();
        for text in texts {
            match Pattern::parse(&text.value) {
                Ok(pattern) => patterns.add(&pattern, RuleRef::new(text.value.as_str(), &text.origin)),
                Err(fault) => faults.push((text.origin.clone(), text.value.clone(), fault)),
            }
        }
        (patterns, faults)
    }

    fn add(&mut self, pattern: &Pattern, rule: RuleRef) {
        let names = match &pattern.server {
            Some(server) => self.by_server.entry(self.case.apply(server).into_owned()).or_default(),
            None => &mut self.bare,
        };
        names.add(self.case.apply(&pattern.text).into_owned(), pattern.is_prefix, rule);
    }

    /// The pattern that matches, if any.
    pub(crate) fn find(&self, server: &str, tool: &str, reach: Reach) -> Option<&RuleRef> {
        let tool = self.case.apply(tool);
        let named = || self.by_server.get(&*self.case.apply(server)).and_then(|names| names.find(&tool));
        match reach {
            Reach::WithBare => self.bare.find(&tool).or_else(named),
            Reach::OnlyNamed => named(),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Names {
    exact: HashMap<String, RuleRef>,
    prefixes: HashMap<String, RuleRef>,
    /// The distinct byte lengths of the prefixes.
    lengths: Vec<usize>,
}

impl Names {
    fn add(&mut self, text: String, is_prefix: bool, rule: RuleRef) {
        if !is_prefix {
            self.exact.entry(text).or_insert(rule);
            return;
        }
        if let Err(place) = self.lengths.binary_search(&text.len()) {
            self.lengths.insert(place, text.len());
        }
        self.prefixes.entry(text).or_insert(rule);
    }

    fn find(&self, tool: &str) -> Option<&RuleRef> {
        let prefix = |length: &usize| self.prefixes.get(tool.get(..*length)?);
        self.lengths.iter().find_map(prefix).or_else(|| self.exact.get(tool))
    }
}

#[cfg(test)]
#[path = "pattern_tests.rs"]
mod tests;
