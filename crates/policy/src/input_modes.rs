//! A mode as written: groups, server and tool lists, hours, conditions, inheritance.

use std::collections::BTreeMap;

use toolwarden_core::{Origin, Sourced, ToolIdentity};

/// One mode (MODE-1, MODE-11).
#[derive(Debug, Clone)]
pub struct ModeInput {
    pub slug: String,
    pub name: String,
    pub origin: Origin,
    pub extends: Option<Sourced<String>>,
    /// None = inherited, or everything where there is no parent.
    pub groups: Groups,
    pub allowed_servers: Option<Vec<Sourced<String>>>,
    pub disallowed_servers: Vec<Sourced<String>>,
    pub allowed_tools: Option<Vec<Sourced<ToolIdentity>>>,
    pub disallowed_tools: Vec<Sourced<ToolIdentity>>,
    pub window: Option<Window>,
    pub conditions: Conditions,
    /// Auto-review for this mode; none = the general setting (REVIEW-1).
    pub auto_review: Option<bool>,
    /// Errors its reader met: the mode is refused until repaired (MODE-6).
    pub faults: Vec<String>,
}

/// The tool groups a mode has; none given = all of them.
pub type Groups = Option<Vec<String>>;

/// When a mode may be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    pub origin: Origin,
    /// `mon` … `sun`; empty = every day.
    pub days: Vec<String>,
    /// `HH:MM-HH:MM`; an end before its start runs past midnight. Empty = all day.
    pub hours: Vec<String>,
    /// IANA name, or `UTC`.
    pub time_zone: String,
}

/// Context key (`task`, `project`, `run`, `job`, `session`, `user`, `role`, `group`) → texts one of
/// which it must equal; a trailing `*` matches any ending.
pub type Conditions = BTreeMap<String, Vec<String>>;

impl ModeInput {
    /// A mode without restrictions.
    #[must_use]
    pub fn unrestricted(slug: &str, name: &str, origin: Origin) -> Self {
        Self {
            slug: slug.to_owned(),
            name: name.to_owned(),
            origin,
            extends: None,
            groups: None,
            allowed_servers: None,
            disallowed_servers: Vec::new(),
            allowed_tools: None,
            disallowed_tools: Vec::new(),
            window: None,
            conditions: Conditions::new(),
            auto_review: None,
            faults: Vec::new(),
        }
    }
}
