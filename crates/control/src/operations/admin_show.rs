//! The controls of a team's administrator that count, and where they are.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use toolwarden_core::Sourced;
use toolwarden_core::name::shown;
use toolwarden_policy::input::AdminInput;
use toolwarden_sources::records::{admin_controls, label};
use toolwarden_sources::{SourceKind, SourceState};

use super::Nothing;
use crate::clerk::blocking;
use crate::place;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

/// The operation.
#[derive(Debug)]
pub struct AdminShow;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// None where there are none.
    pub controls: Option<Map<String, Value>>,
    pub source: Option<String>,
    /// The version of the record, for `if_version`; 0 where it is none.
    pub version: u64,
}

impl Operation for AdminShow {
    const PATH: &'static str = "/api/v1/admin";
    const KIND: Kind = Kind::Read;
    const NEEDS: Needs = Needs::Policy;
    const FOR: Role = Role::Viewer;
    type Request = Nothing;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, _actor: &Actor, _request: Nothing) -> Result<Outcome, ControlError> {
        let (locations, store) = (clerk.parts.locations.clone(), clerk.records().await?);
        blocking(move || {
            let opened = place::open(&locations, &[], &store)?;
            let loaded = &opened.loaded;
            let file = loaded
                .sources
                .iter()
                .find(|source| source.kind == SourceKind::Admin && source.state == SourceState::Used);
            let spot = admin_controls();
            let source = match file {
                Some(file) => shown(&file.path.to_string_lossy()).into_owned(),
                None => label(&spot),
            };
            let controls = loaded.input.base.admin.as_ref().map(view);
            let version = store.get(&spot).map_or(0, |record| record.version);
            Ok(Outcome { source: controls.is_some().then_some(source), controls, version })
        })
        .await
    }
}

fn view(admin: &AdminInput) -> Map<String, Value> {
    let texts = |list: &[Sourced<String>]| -> Vec<String> { list.iter().map(|text| text.value.clone()).collect() };
    let controls = json!({
        "enabled": admin.enabled,
        "allowed": texts(&admin.allowed),
        "blocked": texts(&admin.blocked),
        "disable_mcp_auto_run": admin.disable_mcp_auto_run,
        "delete_file_protection": admin.delete_file_protection,
        "enable_run_everything": admin.enable_run_everything,
        "mcp_tool_allowlist": texts(&admin.mcp_tool_allowlist),
        "browser_protection": admin.browser_protection,
        "sandboxing_controls": {
            "required": admin.sandboxing.required,
            "denied_domains": texts(&admin.sandboxing.denied_domains),
        },
    });
    controls.as_object().cloned().unwrap_or_default()
}
