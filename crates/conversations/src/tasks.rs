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

use crate::failure::Failure;
use crate::request_state::answers_only;
use crate::sessions::principal;

/// So many tasks of one server are remembered; the oldest are forgotten first.
const MOST: usize = 10_000;
/// No real id comes near this.
const LONGEST_ID: usize = 1024;

/// The tasks of one server, by id, with the principal each belongs to.
#[derive(Debug, Default)]
pub struct Tasks(Mutex<Table>);

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
    /// The keys of its questions that were shown to its owner and not answered.
    open: Vec<String>,
}

/// Who will own the task that an answer may make, and of what it is one.
#[derive(Debug, Clone)]
pub struct Maker {
    owner: String,
    tool: Arc<str>,
}

impl Maker {
    pub fn new(caller: &Caller, tool: Arc<str>) -> Self {
        Self { owner: principal(caller), tool }
    }
}

impl Tasks {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds the task a result made to its owner; refuses an id that has another owner already.
    pub fn bind(&self, maker: &Maker, result: &Part) -> Result<(), Failure> {
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
        let made = Made { owner: maker.owner.clone(), tool: maker.tool.clone(), open: Vec::new() };
        table.owners.insert(id.clone(), made);
        table.order.push_back(id);
        Ok(())
    }

    /// Remembers what a task asks, as its owner is shown it.
    pub fn asks(&self, id: &str, questions: Vec<String>) {
        if let Some(made) = self.lock().owners.get_mut(id) {
            made.open = questions;
        }
    }

    /// Whether these are answers to open questions of a task alone; each question is answered once. An approval of the
    /// call that made the task is none of data that nobody asked for.
    pub fn take_answers(&self, id: &str, answers: Value<'_>) -> bool {
        let mut table = self.lock();
        let Some(made) = table.owners.get_mut(id) else { return weak::is(Weakness::Owners) };
        if !answers_only(answers, &made.open) {
            return weak::is(Weakness::Seals);
        }
        let is_answered = |key: &String| answers.get(key).is_some();
        made.open.retain(|key| !is_answered(key));
        true
    }

    pub fn is_of(&self, id: &str, caller: &Caller) -> bool {
        self.tool_of(id, caller).is_some()
    }

    /// The tool whose call made a task; none where the task is not the caller's.
    pub fn tool_of(&self, id: &str, caller: &Caller) -> Option<Arc<str>> {
        let table = self.lock();
        table
            .owners
            .get(id)
            .filter(|made| made.owner == principal(caller) || weak::is(Weakness::Owners))
            .map(|made| made.tool.clone())
    }

    /// Whether a caller may hear this news: that of a task only if it is the caller's own.
    pub fn may_hear(&self, news: &Notification, caller: &Caller) -> bool {
        if !news.method.starts_with("notifications/tasks") {
            return true;
        }
        let params = news.params.as_ref().map(Part::value);
        params.and_then(id_in).is_some_and(|id| self.is_of(&id, caller))
    }

    /// The answer to `tasks/list`: what of it is the caller's own.
    pub fn own(&self, id: &Id, caller: &Caller, result: &Part) -> Bytes {
        let listed = result.value().get("tasks").filter(|tasks| tasks.kind() == Kind::Array);
        let Some(listed) = listed else { return compose::result(id, "{\"tasks\":[]}") };
        let is_own = |task: &Value<'_>| id_in(*task).is_some_and(|id| self.is_of(&id, caller));
        let kept = format!("[{}]", listed.items().filter(is_own).map(Value::raw).collect::<Vec<_>>().join(","));
        let mut text = String::with_capacity(result.raw().len());
        push_spliced(&mut text, result.raw(), &[(result.span_of(listed), &kept)]);
        compose::result(id, &text)
    }
}

/// News of a task without its questions: whoever wants to answer them asks for the task, and they are
/// judged there (GATE-18). None where it has none.
pub fn without_questions(params: &Part, method: &str) -> Option<Part> {
    params.value().get("inputRequests").filter(|_| method.starts_with("notifications/tasks"))?;
    let left = compose::object_with(Some(params.value()), &[("inputRequests", None)]);
    Part::composed(left).ok()
}

/// Whether a modern result is a task.
pub fn is_task(result_type: Option<&str>) -> bool {
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
