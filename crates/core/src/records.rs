//! What people decided, as records: each at a place, all of them at a version. Kept in the store, read by whoever
//! builds the judge.

use std::collections::BTreeMap;
use std::fmt;

use crate::name::shown;

/// What a record is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Setting,
    /// A user's auto-run mode, lists and blocks.
    User,
    Mode,
    Role,
    /// A file of Cedar rules.
    Rule,
    Server,
    /// Switch and scope of a tool.
    Tool,
    /// The controls of a team's administrator.
    Admin,
    /// A policy file as it was put in force; the file itself decides.
    File,
}

impl Kind {
    pub const ALL: [Self; 9] = [
        Self::Setting,
        Self::User,
        Self::Mode,
        Self::Role,
        Self::Rule,
        Self::Server,
        Self::Tool,
        Self::Admin,
        Self::File,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Setting => "setting",
            Self::User => "user",
            Self::Mode => "mode",
            Self::Role => "role",
            Self::Rule => "rule",
            Self::Server => "server",
            Self::Tool => "tool",
            Self::Admin => "admin",
            Self::File => "file",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// The place of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    pub kind: Kind,
    /// Whose it is; empty = everybody's.
    pub owner: String,
    pub name: String,
}

impl Place {
    /// A record of the whole house.
    #[must_use]
    pub fn of_house(kind: Kind, name: impl Into<String>) -> Self {
        Self { kind, owner: String::new(), name: name.into() }
    }

    /// A record of one user.
    #[must_use]
    pub fn of_user(kind: Kind, owner: impl Into<String>, name: impl Into<String>) -> Self {
        Self { kind, owner: owner.into(), name: name.into() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} `{}`", self.kind.as_str(), shown(&self.name))?;
        if self.owner.is_empty() { Ok(()) } else { write!(formatter, " of {}", shown(&self.owner)) }
    }
}

/// One record as it counts now.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The version that wrote it.
    pub version: u64,
    pub content: serde_json::Value,
}

/// All records, and how far they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Records {
    pub version: u64,
    pub by_place: BTreeMap<Place, Record>,
}

impl Records {
    /// The records of a kind, in order of owner and name.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = (&Place, &Record)> {
        self.by_place.iter().filter(move |(place, _)| place.kind == kind)
    }

    #[must_use]
    pub fn get(&self, place: &Place) -> Option<&Record> {
        self.by_place.get(place)
    }
}
