//! Sets the controls of a team's administrator in the store (ALLOW-10), where no file has any.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolwarden_core::name::shown;
use toolwarden_sources::records::admin_controls;
use toolwarden_sources::{SourceKind, SourceState};

use crate::deciding::{Done, Terms};
use crate::editing::{Editing, table};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct AdminSet;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// Keys of the admin record and their values; `null` takes one back.
    pub controls: Map<String, Value>,
    /// Instead of laying them over what is there.
    pub replace: bool,
    pub terms: Terms,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// As they are stored.
    pub controls: Map<String, Value>,
    pub done: Done,
}

impl Operation for AdminSet {
    const PATH: &'static str = "/api/v1/admin/set";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::Admin;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let names: Vec<_> = request.controls.keys().map(|key| shown(key)).collect();
        let words = format!("set admin controls: {}", names.join(", "));
        let terms = request.terms.clone();
        let editing =
            Editing { actor, operation: "admin_set", terms: &terms, spot: admin_controls(), words, narrows: true };
        let mut controls = Map::new();
        let done = clerk
            .edit_record(editing, |content, before| {
                let used = |source: &&toolwarden_sources::SourceStatus| {
                    source.kind == SourceKind::Admin && source.state == SourceState::Used
                };
                if let Some(file) = before.loaded.sources.iter().find(used) {
                    let path = shown(&file.path.to_string_lossy()).into_owned();
                    return Err(ControlError::BadInput(format!(
                        "the admin's controls are in {path}, which comes first: change them there"
                    )));
                }
                controls = if request.replace { Map::new() } else { table(content) };
                for (key, value) in request.controls {
                    match value {
                        Value::Null => controls.remove(&key),
                        value => controls.insert(key, value),
                    };
                }
                Ok((!controls.is_empty()).then(|| Value::Object(controls.clone())))
            })
            .await?;
        Ok(Outcome { controls, done })
    }
}
