//! One allowlist entry, `server:tool`, where either side may be `*` as a whole (ALLOW-1).
//!
//! Takes the text a person wrote; gives a parsed entry or the reason it can never match (ALLOW-3).

use std::fmt;

use crate::name::{self, NameFault};

/// One side of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Side {
    Any,
    Name(String),
}

impl Side {
    fn parse(text: &str) -> Result<Self, NameFault> {
        if text == "*" {
            return Ok(Self::Any);
        }
        name::check(text).map(|()| Self::Name(text.to_owned()))
    }

    /// Whether this side covers the other: `*` covers all, a name covers itself in any ASCII case.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (Self::Name(_), Self::Any) => false,
            (Self::Name(mine), Self::Name(theirs)) => mine.eq_ignore_ascii_case(theirs),
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => formatter.write_str("*"),
            Self::Name(name) => formatter.write_str(&name::shown(name)),
        }
    }
}

/// Why a text is not an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryFault {
    #[error("an entry needs exactly one `:` between server and tool")]
    Separator,
    #[error("server: {0}")]
    Server(NameFault),
    #[error("tool: {0}")]
    Tool(NameFault),
}

/// A parsed allowlist entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    pub server: Side,
    pub tool: Side,
}

impl Entry {
    /// Parses `server:tool`.
    ///
    /// # Errors
    /// Not exactly one `:`, or a side that is neither `*` nor a valid name.
    pub fn parse(text: &str) -> Result<Self, EntryFault> {
        let (server, tool) = text.split_once(':').ok_or(EntryFault::Separator)?;
        if tool.contains(':') {
            return Err(EntryFault::Separator);
        }
        Ok(Self {
            server: Side::parse(server).map_err(EntryFault::Server)?,
            tool: Side::parse(tool).map_err(EntryFault::Tool)?,
        })
    }

    /// Parses an entry of a list that restricts: one that nobody could have meant would restrict nothing.
    ///
    /// # Errors
    /// As `parse`, and a side that begins or ends with what cannot be seen.
    pub fn parse_restricting(text: &str) -> Result<Self, EntryFault> {
        let entry = Self::parse(text)?;
        let check = |side: &Side| match side {
            Side::Any => Ok(()),
            Side::Name(name) => name::check_written(name),
        };
        check(&entry.server).map_err(EntryFault::Server)?;
        check(&entry.tool).map_err(EntryFault::Tool)?;
        Ok(entry)
    }

    /// Whether everything the other entry matches is matched by this one.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.server.covers(&other.server) && self.tool.covers(&other.tool)
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.server, self.tool)
    }
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
