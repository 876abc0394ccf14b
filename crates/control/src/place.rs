//! Where a request is asked from, and the policy that counts there.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolwarden_core::{Layer, Origin, Records};
use toolwarden_pins::{self as pins, Changes};
use toolwarden_policy::input::{RuleFile, ServerInput};
use toolwarden_policy::{Finding, PolicySet, Severity, shipped};
use toolwarden_sources::readers::catalog;
use toolwarden_sources::{Loaded, Locations, WorkspaceTrust, load, records};

use crate::actor::Actor;
use crate::error::ControlError;
use crate::remark::Remark;

/// The place a person stands in, as their own process sees it. Home, config and data directory are
/// always those of the process that does the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Place {
    pub working_directory: Option<PathBuf>,
    pub workspace: Option<PathBuf>,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--trust-workspace`.
    pub trust_workspace: bool,
}

impl Place {
    /// The place of these locations.
    #[must_use]
    pub fn of(locations: &Locations) -> Self {
        Self {
            working_directory: Some(locations.working_directory.clone()),
            workspace: locations.workspace.clone(),
            config: locations.config.clone(),
            trust_workspace: locations.workspace_trust == WorkspaceTrust::AsTheyAre,
        }
    }

    /// The locations seen from this place; a place that says nothing is the process's own. So is that of whoever comes
    /// over HTTP: what is read on this machine is not theirs to choose.
    pub(crate) fn locations(&self, own: &Locations, actor: &Actor) -> Locations {
        let mut locations = own.clone();
        let said = self.working_directory.as_ref().filter(|_| actor.via.is_here());
        let Some(working_directory) = said else { return locations };
        locations.working_directory.clone_from(working_directory);
        locations.workspace = self.workspace.clone().or_else(|| Some(working_directory.clone()));
        locations.config.clone_from(&self.config);
        locations.workspace_trust =
            if self.trust_workspace { WorkspaceTrust::AsTheyAre } else { WorkspaceTrust::Recorded };
        locations
    }
}

/// A policy and the files it was made of.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) loaded: Loaded,
    pub(crate) policy: PolicySet,
    /// Files are broken, so this is not the policy that counts.
    pub(crate) is_blind: bool,
}

impl Opened {
    /// For whoever takes something back while the files cannot be read.
    pub(crate) fn blind() -> Result<Self, ControlError> {
        let loaded = Loaded::nothing();
        let policy = PolicySet::compile(&loaded.input)?;
        Ok(Self { loaded, policy, is_blind: true })
    }

    /// What becomes of changes of a server's definitions.
    pub(crate) fn changes_of(&self, server: &str) -> Changes {
        let found = self.loaded.definitions.iter().find(|one| one.input.name == server);
        if found.is_some_and(|one| one.follows_changes) { Changes::Follow } else { Changes::Wait }
    }

    /// What `lint` finds here and did not find before.
    pub(crate) fn new_findings(&self, before: &Self) -> Vec<Remark> {
        let known = toolwarden_advice::lint(&before.loaded.input);
        let is_known = |finding: &Finding| {
            known.iter().any(|known| known.code == finding.code && known.message == finding.message)
        };
        let found = toolwarden_advice::lint(&self.loaded.input);
        let is_new = |finding: &&Finding| finding.severity != Severity::Note && !is_known(finding);
        found.iter().filter(is_new).map(Remark::from).collect()
    }

    /// What is wrong with files that are used all the same.
    pub(crate) fn remarks(&self) -> Vec<Remark> {
        let findings = self.loaded.findings.iter();
        findings.filter(|finding| finding.severity != Severity::Note).map(Remark::from).collect()
    }
}

/// Loads and compiles the policy that counts at these locations.
pub(crate) fn open(locations: &Locations, catalogs: &[String], store: &Records) -> Result<Opened, ControlError> {
    let mut loaded = read(locations, store)?;
    for argument in catalogs {
        catalog::apply(argument, &locations.working_directory, &mut loaded.input)
            .map_err(|error| ControlError::BadInput(error.to_string()))?;
    }
    let policy = PolicySet::compile(&loaded.input)?;
    Ok(Opened { loaded, policy, is_blind: false })
}

/// The same, with servers of the process's own, and the tools of all of them as far as they were seen.
pub(crate) fn open_as_seen(
    locations: &Locations,
    store: &Records,
    own: Vec<ServerInput>,
) -> Result<Opened, ControlError> {
    let mut loaded = read(locations, store)?;
    for mut server in own {
        server.enabled = true;
        records::lay_over(store, &mut server);
        loaded.input.servers.push(server);
    }
    pins::fill(locations, &mut loaded.input)?;
    let policy = PolicySet::compile(&loaded.input)?;
    Ok(Opened { loaded, policy, is_blind: false })
}

fn read(locations: &Locations, store: &Records) -> Result<Loaded, ControlError> {
    let mut loaded = load(locations, store).map_err(|refusal| ControlError::BadInput(refusal.to_string()))?;
    if loaded.shipped_rules {
        let origin = Origin::new(Layer::Shipped, shipped::RULES_SOURCE, 1, 1);
        loaded.input.base.rules.push(RuleFile { origin, text: shipped::RULES.to_owned() });
    }
    Ok(loaded)
}
