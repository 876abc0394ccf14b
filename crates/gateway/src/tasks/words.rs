//! Tasks in the words of both eras. What is told of a task is told here, whatever became of it.

use bytes::Bytes;
use toolwarden_core::json::{Document, Limits, Part, Value, unescape};
use toolwarden_core::{TaskQuestions, TaskStage};
use toolwarden_mcp::compose::{self, object_with, push_spliced, quoted};
use toolwarden_mcp::message::read_one;
use toolwarden_mcp::{Era, Id, Message};
use toolwarden_refusals::{Refusal, Shape, refuse};
use toolwarden_review::HeldTask;

/// How often clients are asked to look.
const POLL_MS: u32 = 2_000;
const INTERNAL_ERROR: i64 = -32603;
const INVALID_PARAMS: i64 = -32602;
const RELATED: &str = "io.modelcontextprotocol/related-task";
const AT_ONCE: &str = "io.modelcontextprotocol/model-immediate-response";
pub(super) const ACKNOWLEDGED: &str = r#"{"resultType":"complete"}"#;
/// As deep as anything was accepted.
const DEEPEST: usize = 1024;

/// How far a task is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// And why it takes a while.
    Working(String),
    /// What its client is asked, as JSON.
    Asks(String),
    /// The same in the legacy era: on the stream of whoever asks for the result.
    AsksElsewhere,
    /// What the call gave, as JSON.
    Result(String),
    Error(String),
    /// Why it gave nothing, as a result.
    Refused(String),
    Cancelled,
}

impl Standing {
    /// Of a task that has ended.
    pub(super) fn ended(stage: &TaskStage) -> Self {
        match stage {
            TaskStage::Result(result) => Self::Result(result.clone()),
            TaskStage::Error(error) => Self::Error(error.clone()),
            TaskStage::Refused(result) => Self::Refused(result.clone()),
            _ => Self::Cancelled,
        }
    }

    /// Whether it is what the call gave.
    pub(super) fn gives(&self) -> bool {
        matches!(self, Self::Result(_) | Self::Error(_))
    }

    /// A legacy task with a result that is an error has failed.
    fn status(&self, era: Era) -> &'static str {
        match self {
            Self::Working(_) => "working",
            Self::Asks(_) | Self::AsksElsewhere => "input_required",
            Self::Result(result) | Self::Refused(result) if era == Era::Legacy && is_tool_error(result) => "failed",
            Self::Result(_) | Self::Refused(_) => "completed",
            Self::Error(_) => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

fn is_tool_error(result: &str) -> bool {
    let result = Part::composed(result.to_owned());
    result.is_ok_and(|result| result.value().get("isError").is_some_and(|flag| flag.raw() == "true"))
}

/// What the follower of a task is told that waits for a person: nothing has to be repeated.
pub(super) fn ask_to_approve(approval: &str) -> String {
    format!("ask the user to approve call {approval} in Toolwarden")
}

/// The answer to the call that became a task.
pub(super) fn made(task: &HeldTask, era: Era) -> String {
    let waits = format!("held for a person: {}", ask_to_approve(&task.approval));
    let members = members(task, &Standing::Working(waits), era);
    let approval = quoted(&task.approval);
    match era {
        Era::Modern => format!(r#"{{"resultType":"task",{members},"_meta":{{"toolwarden/approval":{approval}}}}}"#),
        Era::Legacy => {
            let words =
                format!("The call is held for a person as approval {}. It is made once they permit it.", task.approval);
            let words = quoted(&words);
            format!(r#"{{"task":{{{members}}},"_meta":{{"toolwarden/approval":{approval},"{AT_ONCE}":{words}}}}}"#)
        }
    }
}

/// The answer to whoever asks how far it is.
pub(super) fn shown(task: &HeldTask, standing: &Standing, era: Era) -> String {
    let members = members(task, standing, era);
    let given = match standing {
        Standing::Result(result) | Standing::Refused(result) => format!(r#","result":{result}"#),
        Standing::Error(error) => format!(r#","error":{error}"#),
        Standing::Asks(requests) => format!(r#","inputRequests":{requests}"#),
        Standing::Working(_) | Standing::AsksElsewhere | Standing::Cancelled => String::new(),
    };
    match era {
        Era::Modern => format!(r#"{{"resultType":"complete",{members}{given}}}"#),
        Era::Legacy => format!("{{{members}}}"),
    }
}

fn members(task: &HeldTask, standing: &Standing, era: Era) -> String {
    let (ttl, poll) = match era {
        Era::Modern => ("ttlMs", "pollIntervalMs"),
        Era::Legacy => ("ttl", "pollInterval"),
    };
    let lives = task.expires_at.duration_since(task.made_at).as_millis();
    let why = match standing {
        Standing::Working(why) => Some(why.clone()),
        ended if matches!(ended.status(era), "failed" | "cancelled") => reason(ended),
        _ => None,
    };
    let why = why.map(|why| format!(r#","statusMessage":{}"#, quoted(&why))).unwrap_or_default();
    format!(
        r#""taskId":{},"status":"{}"{why},"createdAt":"{}","lastUpdatedAt":"{}","{ttl}":{lives},"{poll}":{POLL_MS}"#,
        quoted(&task.id),
        standing.status(era),
        task.made_at,
        task.changed_at
    )
}

/// Why a task ended without what was asked for, in its own words.
fn reason(standing: &Standing) -> Option<String> {
    const LONGEST: usize = 1000;
    let said = match standing {
        Standing::Result(result) | Standing::Refused(result) => {
            let result = Part::composed(result.clone()).ok()?;
            let texts = result.value().get("content")?.items();
            let texts = texts.filter_map(|item| item.get("text")?.as_str().map(std::borrow::Cow::into_owned));
            texts.collect::<Vec<_>>().join(" ")
        }
        Standing::Error(error) => {
            Part::composed(error.clone()).ok()?.value().get("message")?.as_str().map(std::borrow::Cow::into_owned)?
        }
        Standing::Cancelled => "the task was cancelled".to_owned(),
        Standing::Working(_) | Standing::Asks(_) | Standing::AsksElsewhere => return None,
    };
    let short = said.get(..said.floor_char_boundary(LONGEST)).unwrap_or_default();
    (!short.is_empty()).then(|| short.to_owned())
}

/// A legacy client's answer to whoever asks for what the call gave.
pub(super) fn given(id: &Id, task: &HeldTask, standing: &Standing) -> Bytes {
    match standing {
        Standing::Result(result) | Standing::Refused(result) => {
            let Ok(result) = Part::composed(result.clone()) else { return unrecorded(id) };
            let related = format!(r#"{{"taskId":{}}}"#, quoted(&task.id));
            let meta = object_with(result.value().get("_meta"), &[(RELATED, Some(&related))]);
            compose::result(id, &object_with(Some(result.value()), &[("_meta", Some(&meta))]))
        }
        Standing::Error(error) => compose::raw_error(Some(id), error),
        _ => cancelled(id),
    }
}

pub(super) fn cancelled(id: &Id) -> Bytes {
    compose::error(Some(id), INVALID_PARAMS, "the task was cancelled", None)
}

pub(super) fn unrecorded(id: &Id) -> Bytes {
    compose::error(Some(id), INTERNAL_ERROR, "what the task gave is not handed over: it cannot be recorded", None)
}

/// A refusal as the call itself would have been answered with it.
pub(super) fn refused(refusal: &Refusal, era: Era) -> TaskStage {
    match outcome(&refusal_of(&Id::number(0), refusal, era, true)) {
        Some(Ok(result)) => TaskStage::Refused(result.raw().to_owned()),
        Some(Err(error)) => TaskStage::Error(error.raw().to_owned()),
        None => TaskStage::Error(lost()),
    }
}

/// What a client has to answer still, by key; none where that is nothing.
pub(super) fn unanswered(questions: &TaskQuestions) -> Option<String> {
    let requests = Part::composed(questions.requests.clone()).ok()?;
    let is_open = |key: &str| questions.answers.iter().all(|(answered, _)| *answered != unescape(key));
    let open = requests.value().entries().filter(|(key, _)| is_open(key));
    let open: Vec<String> = open.map(|(key, asks)| format!("{key}:{}", asks.raw())).collect();
    (!open.is_empty()).then(|| format!("{{{}}}", open.join(",")))
}

/// A message in the course of a legacy task, with the task it belongs to.
pub(super) fn related(message: &Bytes, task: &str) -> Option<Bytes> {
    let (key, id) = ("params", format!(r#"{{"taskId":{}}}"#, quoted(task)));
    let text = std::str::from_utf8(message).ok()?;
    let document = Document::parse(text, Limits { bytes: text.len(), depth: DEEPEST }).ok()?;
    let params = document.root().get(key);
    let meta = object_with(params.and_then(|params| params.get("_meta")), &[(RELATED, Some(&id))]);
    let params = object_with(params, &[("_meta", Some(&meta))]);
    Some(Bytes::from(object_with(Some(document.root()), &[(key, Some(&params))])))
}

pub(super) fn refusal(id: &Id, refusal: &Refusal, era: Era) -> Bytes {
    refusal_of(id, refusal, era, false)
}

fn refusal_of(id: &Id, refusal: &Refusal, era: Era, is_tool_call: bool) -> Bytes {
    let shape = Shape { id: Some(id.clone()), wants_answer: true, is_tool_call, era };
    refuse(&shape, refusal).map(|reply| reply.body).unwrap_or_default()
}

/// Of a call that ended, and nobody kept what it gave.
pub(super) fn lost() -> String {
    error(
        "the call was made, and what it gave is not there any more: it went to another request, or was lost with its \
         gateway; the record says how it ended",
    )
}

/// An error of the gateway's own, as JSON.
pub(super) fn error(words: &str) -> String {
    format!(r#"{{"code":{INTERNAL_ERROR},"message":{}}}"#, quoted(words))
}

/// What a response says.
pub(super) fn outcome(message: &[u8]) -> Option<Result<Part, Part>> {
    match read_one(message, Limits { bytes: message.len(), depth: DEEPEST }).ok()? {
        Message::Response(response) => Some(response.outcome),
        Message::Request(_) | Message::Notification(_) => None,
    }
}

/// A list of tasks with these before those it has; none where it has none to add, or is no list.
pub(super) fn with_tasks(body: &[u8], id: &Id, shown: &[String]) -> Option<Bytes> {
    let list = outcome(body)?.ok().filter(|_| !shown.is_empty())?;
    let theirs = list.value().get("tasks").map(|tasks| tasks.items().map(Value::raw).collect::<Vec<_>>().join(","));
    let theirs = theirs.unwrap_or_default();
    let separator = if theirs.is_empty() { "" } else { "," };
    let tasks = format!("[{}{separator}{theirs}]", shown.join(","));
    Some(compose::result(id, &object_with(Some(list.value()), &[("tasks", Some(&tasks))])))
}

/// A message with one id of a task in the place of another.
pub(super) fn renamed(message: &Bytes, from: &str, to: &str) -> Bytes {
    let limits = Limits { bytes: message.len(), depth: DEEPEST };
    let document = std::str::from_utf8(message)
        .ok()
        .and_then(|text| Document::parse(text, limits).ok().map(|document| (text, document)));
    let Some((text, document)) = document else { return message.clone() };
    let mut places = Vec::new();
    for holder in ["result", "params"].into_iter().filter_map(|key| document.root().get(key)) {
        let related = holder.get("_meta").and_then(|meta| meta.get(RELATED));
        let ids = [Some(holder), related].into_iter().flatten().filter_map(|one| one.get("taskId"));
        places.extend(ids.filter(|id| id.as_str().is_some_and(|id| id == from)).map(|id| id.span()));
    }
    if places.is_empty() {
        return message.clone();
    }
    places.sort_unstable_by_key(|place| place.start);
    let to = quoted(to);
    let splices: Vec<_> = places.into_iter().map(|place| (place, to.as_str())).collect();
    let mut renamed = String::with_capacity(text.len() + 64);
    push_spliced(&mut renamed, text, &splices);
    Bytes::from(renamed)
}
