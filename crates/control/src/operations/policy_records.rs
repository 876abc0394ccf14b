//! Everything people decided that is in the store, for whoever judges beside a running server. Secrets of servers
//! are left out: no judgement needs them.

use serde::{Deserialize, Serialize};
use toolwarden_core::Records;
use toolwarden_core::records::{Kind as Sort, Place as Spot, Record};

use super::Nothing;
use crate::redact::redacted;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct PolicyRecords;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    pub version: u64,
    pub records: Vec<View>,
    /// Servers of the running gateway that are in no file and no record.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct View {
    pub kind: String,
    pub owner: String,
    pub name: String,
    pub version: u64,
    pub content: serde_json::Value,
}

impl Operation for PolicyRecords {
    const PATH: &'static str = "/api/v1/policy/records";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::Admin;
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        let records = clerk.records().await?;
        let view = |(spot, record): (&Spot, &Record)| View {
            kind: spot.kind.as_str().to_owned(),
            owner: spot.owner.clone(),
            name: spot.name.clone(),
            version: record.version,
            content: redacted(spot.kind, &record.content),
        };
        let own = clerk.parts.servers.as_ref().map(|servers| servers.own()).unwrap_or_default();
        let own = own.into_iter().map(|server| server.name).collect();
        Ok(Outcome { version: records.version, records: records.by_place.iter().map(view).collect(), own })
    }
}

impl Outcome {
    /// The records themselves; none where one is of a kind this version does not know, and so could not obey.
    #[must_use]
    pub fn into_records(self) -> Option<Records> {
        let record = |view: View| {
            let spot = Spot { kind: Sort::parse(&view.kind)?, owner: view.owner, name: view.name };
            Some((spot, Record { version: view.version, content: view.content }))
        };
        let by_place = self.records.into_iter().map(record).collect::<Option<_>>()?;
        Some(Records { version: self.version, by_place })
    }
}
