//! Allowlist entries as texts: which are valid, and which covers which (ALLOW-4, SHELL-2).

use toolwarden_core::{Entry, name};
use toolwarden_policy::NarrowEntry;

/// Which of a user's two lists is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    Mcp,
    Terminal,
}

impl List {
    /// The key of permissions.json.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Mcp => "mcpAllowlist",
            Self::Terminal => "terminalAllowlist",
        }
    }

    /// Why an entry cannot be added, if it cannot.
    #[must_use]
    pub fn fault(self, text: &str) -> Option<String> {
        match self {
            Self::Mcp => mcp_fault(text),
            Self::Terminal => terminal_fault(text).map(str::to_owned),
        }
    }

    /// Whether both texts are the same entry.
    pub(crate) fn same(self, left: &str, right: &str) -> bool {
        match self {
            // What an argument must equal is case and all.
            Self::Mcp => left == right || (NarrowEntry::parse(left).is_err() && left.eq_ignore_ascii_case(right)),
            Self::Terminal => left == right,
        }
    }

    /// Whether everything `narrow` matches is matched by `wide`.
    pub(crate) fn covers(self, wide: &str, narrow: &str) -> bool {
        match self {
            Self::Mcp => {
                let whole_tool = || NarrowEntry::parse(narrow).ok().map(|entry| entry.whole_tool());
                let narrow = Entry::parse(narrow).ok().or_else(whole_tool);
                matches!((Entry::parse(wide), narrow), (Ok(wide), Some(narrow)) if wide.covers(&narrow))
            }
            Self::Terminal => terminal_fault(wide).is_none() && terminal_covers(wide, narrow),
        }
    }
}

/// Why an entry for a tool, or for a tool with certain arguments, can never match, if so.
fn mcp_fault(text: &str) -> Option<String> {
    let fault = Entry::parse(text).err()?;
    if NarrowEntry::is_meant(text) {
        return NarrowEntry::parse(text).err().map(|fault| fault.to_string());
    }
    Some(fault.to_string())
}

/// Why a terminal entry can never match, if so.
pub(crate) fn terminal_fault(text: &str) -> Option<&'static str> {
    let base = text.split_once(':').map_or(text, |(base, _)| base);
    if text.trim().is_empty() {
        return Some("the entry is empty");
    }
    if text.trim() == "*" {
        return Some("a bare `*` would allow every command");
    }
    if base.trim().is_empty() {
        return Some("the command before `:` is empty");
    }
    if base.contains('*') {
        return Some("`*` may only stand after the `:`");
    }
    text.chars().any(name::is_deceptive).then_some("the entry contains a control or text-direction character")
}

/// Exact texts, a bare command over its argument globs, and a prefix glob over longer ones.
fn terminal_covers(wide: &str, narrow: &str) -> bool {
    if wide == narrow {
        return true;
    }
    let (wide_base, wide_glob) = wide.split_once(':').map_or((wide, None), |(base, glob)| (base, Some(glob)));
    let (base, glob) = narrow.split_once(':').map_or((narrow, None), |(base, glob)| (base, Some(glob)));
    if wide_base != base {
        return false;
    }
    match (wide_glob, glob) {
        (None, _) | (Some("*"), _) => true,
        (Some(_), None) => false,
        (Some(wide), Some(narrow)) => {
            let certain = narrow.split_once('*').map_or(narrow, |(certain, _)| certain);
            wide.strip_suffix('*').is_some_and(|prefix| !prefix.contains('*') && certain.starts_with(prefix))
        }
    }
}

#[cfg(test)]
#[path = "entries_tests.rs"]
mod tests;
