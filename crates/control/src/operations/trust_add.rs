//! Trusts the workspace files of a directory, as they are now (PERM-4).

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_sources::trust;

use crate::place::Place;
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
    /// Why a running server does not act on it.
    pub not_in_force: Option<String>,
}

impl Request {
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
        let locations = request.place.locations(&clerk.parts.locations, actor);
        let (words, now) = (request.words("trust"), clerk.parts.clock.now());
        let change = move || Ok(trust::trust(&locations, &request.directory, now)?);
        let (trusted, not_in_force) = clerk.change(actor, "trust_add", &words, change).await?;
        Ok(Outcome {
            directory: trusted.directory.to_string_lossy().into_owned(),
            files: trusted.files,
            findings: trusted.findings.iter().map(Remark::from).collect(),
            not_in_force,
        })
    }
}
