//! What people wrote for a classifier: `autoRun` of permissions.json. Data that steers; the judge does not look at it.
//!
//! It counts for the user whose files these are (PERM-1), and not where an administrator's record does (ALLOW-10).

use toolwarden_core::Sourced;

use crate::input::PermissionsInput;
use crate::query::Query;
use crate::set::PolicySet;

/// Instructions in the words of whoever wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instructions {
    pub allow: Vec<String>,
    pub block: Vec<String>,
}

impl Instructions {
    /// The files unite (PERM-2); a broken one says nothing.
    pub(crate) fn of(files: &[&PermissionsInput]) -> Self {
        let good = || files.iter().filter(|file| !file.broken);
        let texts = |texts: &Vec<Sourced<String>>| texts.iter().map(|text| text.value.clone()).collect::<Vec<_>>();
        Self {
            allow: good().filter_map(|file| file.allow_instructions.as_ref()).flat_map(texts).collect(),
            block: good().filter_map(|file| file.block_instructions.as_ref()).flat_map(texts).collect(),
        }
    }
}

impl PolicySet {
    /// The instructions that belong to a caller in the call's workspace; none where none do.
    #[must_use]
    pub fn instructions(&self, query: &Query) -> Option<&Instructions> {
        let counts = self.base().admin.is_none() && self.local().belongs_to(&query.caller);
        counts.then(|| self.local().lists(query.workspace()).instructions())
    }

    /// Whether a permissions.json of the caller is broken in the call's workspace: the classifier then approves
    /// nothing (PERM-3).
    pub(crate) fn has_broken_permissions(&self, query: &Query) -> bool {
        self.local().belongs_to(&query.caller) && self.local().lists(query.workspace()).classifier_off()
    }
}
