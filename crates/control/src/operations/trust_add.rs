//! Trusts the workspace files of a directory, as they are now (PERM-4).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolwarden_advice::widens;
use toolwarden_core::name::shown;
use toolwarden_sources::{Locations, trust};

use crate::clerk::blocking;
use crate::place::{Opened, Place};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Remark, Role};

/// The operation.
#[derive(Debug)]
pub struct TrustAdd;

/// A directory; the same for trusting and forgetting.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub place: Place,
    /// As typed: seen from the place's working directory.
    pub directory: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub directory: String,
    /// The files that count from now on.
    pub files: Vec<String>,
    pub findings: Vec<Remark>,
    /// What is allowed in the directory now and was not before.
    pub widens: Vec<String>,
    /// Entries that no longer count there, because the files replace the lists they are in.
    pub lost: Vec<String>,
    /// Why a running server does not act on it.
    pub not_in_force: Option<String>,
}

impl Request {
    /// Where the policy of the directory itself counts.
    fn inside(&self, own: &Locations, actor: &Actor) -> Locations {
        let mut locations = self.place.locations(own, actor);
        let directory = locations.working_directory.join(&self.directory);
        locations.working_directory.clone_from(&directory);
        locations.workspace = Some(directory);
        locations
    }

    /// What is asked, for the record.
    pub(super) fn words(&self, verb: &str) -> String {
        let base = self.place.working_directory.clone().unwrap_or_default();
        // Without `.` in it.
        let directory: PathBuf = base.join(&self.directory).components().collect();
        format!("{verb} {}", shown(&directory.to_string_lossy()))
    }
}

impl Operation for TrustAdd {
    const PATH: &'static str = "/api/v1/trust/add";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        clerk.must_not_answer_itself(actor).await?;
        let inside = request.inside(&clerk.parts.locations, actor);
        let before = before(clerk, &inside).await;
        let locations = request.place.locations(&clerk.parts.locations, actor);
        let (words, now) = (request.words("trust"), clerk.parts.clock.now());
        // What cannot be trusted is not put on record as trusted.
        let (places, directory) = (locations.clone(), request.directory.clone());
        let tried = blocking(move || Ok(trust::read(&places, &directory)?)).await;
        let ready = clerk.tried(actor, "trust_add", &words, tried).await?;
        let change = move || Ok(trust::keep(&locations, ready, now)?);
        let (trusted, not_in_force) = clerk.change(actor, "trust_add", &words, change).await?;
        let after = clerk.opened_at(inside).await.ok();
        let (widens, lost) = match (&before, &after) {
            (Some(before), Some(after)) => {
                (widens(&before.policy, &after.policy), widens(&after.policy, &before.policy))
            }
            _ => (Vec::new(), Vec::new()),
        };
        // Of what is lost only entries: a restriction is what the files are trusted for.
        let lost = lost.iter().filter(|lost| lost.code == "entry_added");
        Ok(Outcome {
            directory: trusted.directory.to_string_lossy().into_owned(),
            files: trusted.files,
            findings: trusted.findings.iter().map(Remark::from).collect(),
            widens: widens.iter().map(ToString::to_string).collect(),
            lost: lost.map(|lost| lost.to_string().replace(" is newly in ", " of ")).collect(),
            not_in_force,
        })
    }
}

/// The policy in the directory before it is trusted; an untrusted config there is refused, and one's own counts. None
/// where files are broken: nobody can tell what it allowed.
async fn before(clerk: &Clerk, inside: &Locations) -> Option<Opened> {
    if let Ok(opened) = clerk.opened_at(inside.clone()).await {
        return Some(opened);
    }
    let own = &clerk.parts.locations;
    let (workspace, working_directory) = (inside.workspace.clone(), own.home.clone());
    let own = Locations { workspace, working_directory, ..own.clone() };
    clerk.opened_at(own).await.ok()
}
