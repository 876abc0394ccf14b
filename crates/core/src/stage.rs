//! The stages of a decision, in the order of CORE-1 and CORE-2.

use serde::Serialize;

/// Where in the order a decision was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Names,
    Context,
    Server,
    Switch,
    Mode,
    RoleDisallow,
    RoleAllow,
    Scope,
    Setting,
    TaskScope,
    Rules,
    Schema,
    Limits,
    MandatoryHold,
    AutoRun,
    /// Not the judge's: what became of a held call before.
    Review,
}

impl Stage {
    pub const ALL: [Self; 16] = [
        Self::Names,
        Self::Context,
        Self::Server,
        Self::Switch,
        Self::Mode,
        Self::RoleDisallow,
        Self::RoleAllow,
        Self::Scope,
        Self::Setting,
        Self::TaskScope,
        Self::Rules,
        Self::Schema,
        Self::Limits,
        Self::MandatoryHold,
        Self::AutoRun,
        Self::Review,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Names => "names",
            Self::Context => "context",
            Self::Server => "server",
            Self::Switch => "switch",
            Self::Mode => "mode",
            Self::RoleDisallow => "role_disallow",
            Self::RoleAllow => "role_allow",
            Self::Scope => "scope",
            Self::Setting => "setting",
            Self::TaskScope => "task_scope",
            Self::Rules => "rules",
            Self::Schema => "schema",
            Self::Limits => "limits",
            Self::MandatoryHold => "mandatory_hold",
            Self::AutoRun => "auto_run",
            Self::Review => "review",
        }
    }
}
