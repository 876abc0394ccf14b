//! The directories whose workspace files a person trusted.

use serde::{Deserialize, Serialize};
use toolwarden_sources::trust;

use super::Nothing;
use crate::clerk::blocking;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct TrustList;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub directories: Vec<Trusted>,
}

/// One trusted directory and the files that count.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Trusted {
    pub directory: String,
    pub files: Vec<String>,
}

impl Operation for TrustList {
    const PATH: &'static str = "/api/v1/trust";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Files;
    const FOR: Role = Role::Admin;
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        let locations = clerk.parts.locations.clone();
        let trusted = blocking(move || Ok(trust::list(&locations)?)).await?;
        let row = |(directory, trusted): (String, trust::TrustedDirectory)| Trusted {
            directory,
            files: trusted.files.into_keys().collect(),
        };
        Ok(Outcome { directories: trusted.into_iter().map(row).collect() })
    }
}
