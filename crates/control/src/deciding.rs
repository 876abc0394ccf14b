//! A change of what the store holds: read as the whole policy it would make, said what it newly allows, recorded,
//! and then in force as the next version. What could not be used is refused before anything happened.

use serde::{Deserialize, Serialize};
use toolwarden_advice::widens;
use toolwarden_core::Records;
use toolwarden_core::name::shown;
use toolwarden_core::records::{Kind, Place as Spot};
use toolwarden_sources::{Locations, records};
use toolwarden_store::state::Draft;

use crate::clerk::{Clerk, blocking};
use crate::error::{ControlError, Sides};
use crate::place::{self, Opened};
use crate::redact::redacted;
use crate::{Actor, Remark};

/// What every change can say besides what it changes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Terms {
    /// Why, for the history.
    pub reason: Option<String>,
    /// Only say what it would do.
    pub dry_run: bool,
    /// The version of the record it was made on; 0 where there was none. Another one refuses it.
    pub if_version: Option<u64>,
}

/// What became of a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// The version that counts now, or would.
    pub version: u64,
    pub changed: bool,
    pub dry_run: bool,
    /// What it newly allows.
    pub widens: Vec<String>,
    pub findings: Vec<Remark>,
    /// Why a running server does not act on it.
    pub not_in_force: Option<String>,
}

/// One change on its way.
pub(crate) struct Deciding<'a> {
    pub(crate) actor: &'a Actor,
    /// The operation's name in the record.
    pub(crate) operation: &'static str,
    pub(crate) terms: &'a Terms,
    /// The record it is about, for `if_version`.
    pub(crate) about: Option<&'a Spot>,
    /// It was written down already, because a file may have been changed as well.
    pub(crate) is_recorded: bool,
    /// It only takes something back, so it is done although files are broken.
    pub(crate) narrows: bool,
}

impl Clerk {
    /// Changes records: `edit` writes into the draft, seeing the policy as it is, and says in words what it does.
    pub(crate) async fn decide(
        &self,
        deciding: &Deciding<'_>,
        edit: impl FnOnce(&mut Draft<'_>, &Opened) -> Result<String, ControlError>,
    ) -> Result<Done, ControlError> {
        let mut draft = self.state()?.change().await?;
        let before = self.before(draft.before().clone(), deciding.narrows).await?;
        let words = edit(&mut draft, &before)?;
        self.settle(deciding, draft, &before, &words).await
    }

    /// Checks a draft, records and commits it.
    pub(crate) async fn settle(
        &self,
        deciding: &Deciding<'_>,
        draft: Draft<'_>,
        before: &Opened,
        words: &str,
    ) -> Result<Done, ControlError> {
        let Deciding { actor, operation, terms, about, is_recorded, .. } = deciding;
        if let (Some(expected), Some(spot)) = (terms.if_version, about) {
            refuse_stale(&draft, spot, expected)?;
        }
        let mut done = Done { version: draft.before().version, dry_run: terms.dry_run, ..Done::default() };
        if !draft.changes_anything() {
            draft.abandon().await?;
            if !terms.dry_run {
                self.nothing_changed(actor, operation, words).await?;
            }
            return Ok(done);
        }
        refuse_broken(&draft)?;
        done.version = draft.after().version;
        done.changed = true;
        if !before.is_blind {
            let after = self.opened(draft.after()).await?;
            refuse_faulty_modes(&draft, &after)?;
            done.widens = widens(&before.policy, &after.policy).iter().map(ToString::to_string).collect();
            done.findings = after.remarks();
            done.findings.extend(after.new_findings(before));
        }
        if terms.dry_run {
            draft.abandon().await?;
            return Ok(done);
        }
        // Where the files are broken nobody can tell what it widens once they are repaired.
        if before.is_blind || !done.widens.is_empty() {
            self.must_not_answer_itself(actor).await?;
        }
        if !is_recorded {
            self.record_version(actor, operation, words, done.version).await?;
        }
        let committed = draft.commit(&self.author(actor), words, terms.reason.as_deref()).await;
        if let Err(error) = committed {
            self.record(actor, operation, &format!("failed: {words}")).await?;
            return Err(error.into());
        }
        self.caught_up().await;
        done.not_in_force = self.changes().announce(self.author(actor)).await;
        Ok(done)
    }

    /// The policy as it is.
    pub(crate) async fn before(&self, records: Records, narrows: bool) -> Result<Opened, ControlError> {
        match self.opened(records).await {
            Err(ControlError::BadInput(_) | ControlError::Policy(_)) if narrows => Opened::blind(),
            opened => opened,
        }
    }

    /// The policy these records make here, with the tools of servers that were seen.
    pub(crate) async fn opened(&self, records: Records) -> Result<Opened, ControlError> {
        let locations: Locations = self.parts.locations.clone();
        let own = self.parts.servers.as_ref().map(|servers| servers.own()).unwrap_or_default();
        blocking(move || place::open_as_seen(&locations, &records, own)).await
    }

    /// The policy that counts at other locations.
    pub(crate) async fn opened_at(&self, locations: Locations) -> Result<Opened, ControlError> {
        let records = self.records().await?;
        let own = self.parts.servers.as_ref().map(|servers| servers.own()).unwrap_or_default();
        blocking(move || place::open_as_seen(&locations, &records, own)).await
    }
}

/// Both sides are shown: whoever wrote first, and whoever is refused.
fn refuse_stale(draft: &Draft<'_>, spot: &Spot, expected: u64) -> Result<(), ControlError> {
    let now = draft.before().get(spot);
    let found = now.map_or(0, |record| record.version);
    if found == expected {
        return Ok(());
    }
    let shown_side = |content: Option<&serde_json::Value>| content.map(|content| redacted(spot.kind, content));
    Err(ControlError::Conflict {
        message: format!(
            "the {spot} was changed meanwhile: this was made on version {expected}, and it is at version {found}"
        ),
        sides: Box::new(Sides {
            found,
            now: shown_side(now.map(|record| &record.content)),
            yours: shown_side(draft.get(spot)),
        }),
    })
}

/// Each record by itself, so that a fault is said of the record that has it.
fn refuse_broken(draft: &Draft<'_>) -> Result<(), ControlError> {
    let after = draft.after();
    let written = after.by_place.iter().filter(|(_, record)| record.version == after.version);
    let findings: Vec<_> = written.flat_map(|(spot, record)| records::check(spot, &record.content)).collect();
    if !findings.iter().any(toolwarden_sources::Finding::is_error) {
        return Ok(());
    }
    Err(ControlError::Policy(findings.iter().map(Remark::from).collect()))
}

/// A mode that would be refused as a whole protects nobody: whoever writes it is told.
fn refuse_faulty_modes(draft: &Draft<'_>, after: &Opened) -> Result<(), ControlError> {
    let records = draft.after();
    let written = records.of(Kind::Mode).filter(|(_, record)| record.version == records.version);
    for (spot, _) in written {
        let mode = after.policy.base().modes.get(&spot.name);
        if let Some(mode) = mode.filter(|mode| !mode.faults.is_empty()) {
            let faults: Vec<String> = mode.faults.iter().map(|fault| shown(fault).into_owned()).collect();
            let message = format!("the mode `{}` could not be used: {}", shown(&spot.name), faults.join("; "));
            return Err(ControlError::BadInput(message));
        }
    }
    Ok(())
}

/// A word of a person, bounded: it goes into the record and the history.
pub(crate) fn short(text: &str) -> String {
    const MOST: usize = 200;
    let text = shown(text);
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}
