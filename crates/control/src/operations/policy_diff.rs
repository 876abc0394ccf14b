//! What changed between two versions, record by record, and what the later one allows that the former did not.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolwarden_advice::widens;
use toolwarden_core::Records;
use toolwarden_core::records::{Place as Spot, Record};
use toolwarden_store::state::{Change, StateError};

use crate::redact::redacted;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct PolicyDiff;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// None = the one before `to`.
    pub from: Option<u64>,
    /// None = what counts now.
    pub to: Option<u64>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    pub from: u64,
    pub to: u64,
    pub changes: Vec<View>,
    /// What `to` allows that `from` did not, with the files as they are now.
    pub widens: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct View {
    pub kind: String,
    pub owner: String,
    pub name: String,
    pub before: Option<Value>,
    pub after: Option<Value>,
}

impl Operation for PolicyDiff {
    const PATH: &'static str = "/api/v1/policy/diff";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::State;
    const FOR: Role = Role::Auditor;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let state = clerk.state()?;
        let now = state.records().await?;
        let to = request.to.unwrap_or(now.version);
        let from = request.from.unwrap_or(to.saturating_sub(1));
        if from > now.version {
            return Err(StateError::NoVersion(from).into());
        }
        if from > to {
            return Err(ControlError::BadInput("the earlier version comes first".to_owned()));
        }
        let changes = state.changes(from, to).await?;
        let after = back(&now, &state.changes(to, now.version).await?);
        let before = back(&after, &changes);
        // A version that cannot be read with the files of today is still shown.
        let widens = match (clerk.opened(before).await, clerk.opened(after).await) {
            (Ok(before), Ok(after)) => widens(&before.policy, &after.policy).iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        Ok(Outcome { from, to, changes: changes.into_iter().map(view).map(differing).collect(), widens })
    }
}

/// Records as they were before these changes.
fn back(records: &Records, changes: &[Change]) -> Records {
    let mut records = records.clone();
    for Change { place, former, .. } in changes {
        match former {
            Some(content) => {
                records.by_place.insert(place.clone(), Record { version: 0, content: content.clone() });
            }
            None => {
                records.by_place.remove(place);
            }
        }
    }
    records
}

/// A change without the members that are the same on both sides.
fn differing(mut view: View) -> View {
    if let (Some(before), Some(after)) = (&mut view.before, &mut view.after) {
        drop_same(before, after);
    }
    view
}

fn drop_same(before: &mut Value, after: &mut Value) {
    let (Value::Object(before), Value::Object(after)) = (before, after) else { return };
    let same: Vec<String> =
        before.iter().filter(|(key, value)| after.get(*key) == Some(value)).map(|(key, _)| key.clone()).collect();
    for key in same {
        before.remove(&key);
        after.remove(&key);
    }
    for (key, value) in before.iter_mut() {
        if let Some(other) = after.get_mut(key) {
            drop_same(value, other);
        }
    }
}

pub(super) fn view(change: Change) -> View {
    let Spot { kind, owner, name } = change.place;
    let side = |content: Option<Value>| content.map(|content| redacted(kind, &content));
    View { kind: kind.as_str().to_owned(), owner, name, before: side(change.former), after: side(change.latter) }
}
