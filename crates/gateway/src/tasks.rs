//! Tasks that servers made: each belongs to whoever's call made it (GATE-19).
//!
//! Remembered for as long as the gateway runs. A task nobody is known to own is nobody's: after a
//! restart, or when very many others were made since, its server keeps it but no caller reaches it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use toolwarden_core::json::{Kind, Part, Value};
use toolwarden_core::{Caller, Weakness, weak};
use toolwarden_mcp::compose::{self, push_spliced};
use toolwarden_mcp::{Id, Notification};

use crate::refusal::Failure;
use crate::resolve::{Asked, What};
use crate::sessions::principal;

/// So many tasks of one server are remembered; the oldest are forgotten first.
const MOST: usize = 10_000;
/// No real id comes near this.
const LONGEST_ID: usize = 1024;

/// The tasks of one server, by id, with the principal each belongs to.
#[derive(Debug, Default)]
pub(crate) struct Tasks(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    owners: HashMap<String, Made>,
    /// The oldest first.
    order: VecDeque<String>,
}

/// What made a task.
#[derive(Debug)]
struct Made {
    owner: String,
    tool: Arc<str>,
}

/// Who will own the task that an answer may make, and of what it is one.
#[derive(Debug, Clone)]
pub(crate) struct Maker {
    owner: String,
    tool: Arc<str>,
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds the task a result made to its owner; refuses an id that has another owner already.
    pub(crate) fn bind(&self, maker: &Maker, result: &Part) -> Result<(), Failure> {
        let Some(id) = made_in(result.value()) else { return Ok(()) };
        if id.len() > LONGEST_ID {
            return Err(Failure::Protocol("the id of its task is too long".to_owned()));
        }
        let mut table = self.lock();
        match table.owners.get(&id) {
            Some(known) if known.owner == maker.owner => return Ok(()),
            Some(_) if weak::is(Weakness::Owners) => {}
            Some(_) => return Err(Failure::Protocol("it gave a task that belongs to another caller".to_owned())),
            None => {}
        }
        if table.order.len() >= MOST
            && let Some(oldest) = table.order.pop_front()
        {
            table.owners.remove(&oldest);
        }
        let made = Made { owner: maker.owner.clone(), tool: maker.tool.clone() };
        table.owners.insert(id.clone(), made);
        table.order.push_back(id);
        Ok(())
    }

    pub(crate) fn is_of(&self, id: &str, caller: &Caller) -> bool {
        self.tool_of(id, caller).is_some()
    }

    /// The tool whose call made a task; none where the task is not the caller's.
    pub(crate) fn tool_of(&self, id: &str, caller: &Caller) -> Option<Arc<str>> {
        let table = self.lock();
        table
            .owners
            .get(id)
            .filter(|made| made.owner == principal(caller) || weak::is(Weakness::Owners))
            .map(|made| made.tool.clone())
    }

    /// Whether a caller may hear this news: that of a task only if it is the caller's own.
    pub(crate) fn may_hear(&self, news: &Notification, caller: &Caller) -> bool {
        if !news.method.starts_with("notifications/tasks") {
            return true;
        }
        let params = news.params.as_ref().map(Part::value);
        params.and_then(id_in).is_some_and(|id| self.is_of(&id, caller))
    }

    /// The answer to `tasks/list`: what of it is the caller's own.
    pub(crate) fn own(&self, asked: &Asked, result: &Part) -> Bytes {
        let id = asked.id.clone().unwrap_or_else(|| Id::number(0));
        let listed = result.value().get("tasks").filter(|tasks| tasks.kind() == Kind::Array);
        let Some(listed) = listed else { return compose::result(&id, "{\"tasks\":[]}") };
        let is_own = |task: &Value<'_>| id_in(*task).is_some_and(|id| self.is_of(&id, &asked.arrival.caller));
        let kept = format!("[{}]", listed.items().filter(is_own).map(Value::raw).collect::<Vec<_>>().join(","));
        let mut text = String::with_capacity(result.raw().len());
        push_spliced(&mut text, result.raw(), &[(result.span_of(listed), &kept)]);
        compose::result(&id, &text)
    }
}

/// Who will own the task, if the answer to this message may make one. A legacy server makes one when
/// asked to; a modern one when it likes.
pub(crate) fn maker_of(asked: &Asked) -> Option<Maker> {
    let is_modern = asked.arrival.version.era() == toolwarden_mcp::Era::Modern;
    let asks = || asked.query.call.params.as_ref().is_some_and(|params| params.value().get("task").is_some());
    let maker = || Maker { owner: principal(&asked.arrival.caller), tool: asked.query.call.tool.clone() };
    (matches!(asked.what, What::Call) && (is_modern || asks())).then(maker)
}

/// News of a task without its questions: whoever wants to answer them asks for the task, and they are
/// judged there (GATE-18). None where it has none.
pub(crate) fn without_questions(params: &Part, method: &str) -> Option<Part> {
    params.value().get("inputRequests").filter(|_| method.starts_with("notifications/tasks"))?;
    let left = compose::object_with(Some(params.value()), &[("inputRequests", None)]);
    Part::composed(left).ok()
}

/// Whether a modern result is a task.
pub(crate) fn is_task(result_type: Option<&str>) -> bool {
    result_type == Some("task")
}

/// The id of the task a result made: beside its type in the modern era, in `task` in the legacy one.
fn made_in(result: Value<'_>) -> Option<String> {
    let kind = result.get("resultType").and_then(|kind| kind.as_str());
    if is_task(kind.as_deref()) {
        return id_in(result);
    }
    id_in(result.get("task")?)
}

fn id_in(task: Value<'_>) -> Option<String> {
    task.get("taskId")?.as_str().map(std::borrow::Cow::into_owned)
}
