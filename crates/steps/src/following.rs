//! Which callers can follow a held call as a task, and how that is said to clients.
//!
//! A modern client says so with each request; a legacy one asks for a task. Nobody else is given one.

use toolwarden_conversations::Scope;
use toolwarden_core::json::{Document, Kind, Limits, Part, Value};
use toolwarden_core::{Weakness, weak};
use toolwarden_mcp::compose::object_with;
use toolwarden_mcp::ladder::TASKS_EXTENSION as TASKS;
use toolwarden_mcp::{Era, Version};
use toolwarden_review::TASK_PREFIX;

use crate::gateway::Gateway;
use crate::resolve::Asked;
use crate::settings::Hold;

const EXTENSIONS: &str = "extensions";

/// Whether a task is, by its id, one that the gateway itself made.
#[must_use]
pub fn is_of_gateway(task: &str) -> bool {
    task.starts_with(TASK_PREFIX)
}

/// Whether a client said that it knows tasks.
#[must_use]
pub fn declares_tasks(declared: Option<Value<'_>>) -> bool {
    let tasks = declared.and_then(|declared| declared.get(EXTENSIONS)?.get(TASKS));
    tasks.is_some_and(|tasks| tasks.kind() == Kind::Object)
}

/// Whether the caller of this call can follow it as a task while it is held.
pub(crate) fn can_follow(asked: &Asked) -> bool {
    if asked.is_for_task || &*asked.method != "tools/call" || asked.state.is_some() {
        return false;
    }
    if asked.arrival.version.era() == Era::Modern {
        return declares_tasks(asked.declared()) || weak::is(Weakness::Ladder);
    }
    // A legacy client asks for one, and only of a server that makes some itself.
    let params = asked.query.call.params.as_ref();
    let asks = params.is_some_and(|params| params.value().get("task").is_some());
    let link = asked.arrival.session.as_ref().and_then(|session| session.link(&asked.upstream));
    asks && asked.arrival.version >= Version::V2025_11_25
        && asked.arrival.scope != Scope::All
        && link.is_some_and(|link| link.era() == Era::Legacy)
}

/// What a modern client is told that a server offers: tasks, too, where the gateway may make some.
#[must_use]
pub fn with_tasks(gateway: &Gateway, said: &str) -> Option<String> {
    if gateway.desk.is_none() || gateway.settings.hold == Hold::Deny {
        return None;
    }
    let said = Document::parse(said, Limits::again(said.len())).ok()?;
    let capabilities = said.root().get("capabilities")?;
    let extensions = capabilities.get(EXTENSIONS);
    if extensions.is_some_and(|extensions| extensions.get(TASKS).is_some()) {
        return None;
    }
    let extensions = object_with(extensions, &[(TASKS, Some("{}"))]);
    let capabilities = object_with(Some(capabilities), &[(EXTENSIONS, Some(&extensions))]);
    Some(object_with(Some(said.root()), &[("capabilities", Some(&capabilities))]))
}

/// A client's capabilities without tasks; none where it has none.
pub(crate) fn without_tasks(capabilities: &str) -> Option<String> {
    let capabilities = Part::composed(capabilities.to_owned()).ok()?;
    let extensions = capabilities.value().get(EXTENSIONS)?;
    extensions.get(TASKS)?;
    let extensions = object_with(Some(extensions), &[(TASKS, None)]);
    Some(object_with(Some(capabilities.value()), &[(EXTENSIONS, Some(&extensions))]))
}
