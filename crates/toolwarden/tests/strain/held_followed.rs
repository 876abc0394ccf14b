//! `kill -9` at every step of a held call that its caller follows as a task: it is made once or not at all, and whoever asks
//! for it afterwards, wherever, learns what became of it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::caller::{ECHO, ask_modern};
use crate::held_place::{Journaled, Place, Stop, journaled};
use crate::house::{Gateway, PATIENCE, report};
use crate::upstream::bad::SILENT;

/// Where the gateway is ended, and what becomes of the task.
struct Moment {
    name: &'static str,
    tool: &'static str,
    /// Whether somebody permitted the call before.
    is_approved: bool,
    stop: Option<Stop>,
    /// Calls that reach the server, over all starts.
    sent: u32,
    /// What is said of the task in the end: its state, and a word of what it gave.
    ends: (&'static str, &'static str),
}

const fn on(table: &'static str, write: &'static str, when: &'static str) -> Option<Stop> {
    Some(Stop { table, write, when })
}

const DONE: (&str, &str) = ("completed", "content");
const UNKNOWN: (&str, &str) = ("completed", "outcome_unknown");
const LOST: (&str, &str) = ("failed", "not there any more");

fn moments() -> Vec<Moment> {
    let moment = |name, stop, sent, ends| Moment { name, tool: ECHO, is_approved: true, stop, sent, ends };
    let to = |when| on("approvals", "UPDATE", when);
    vec![
        Moment {
            is_approved: false,
            ..moment("task is being made", on("held_tasks", "INSERT", "NEW.version = 0"), 1, DONE)
        },
        Moment { is_approved: false, ..moment("task waits", None, 1, DONE) },
        moment("task is being taken", to("OLD.state = 'approved' AND NEW.state = 'consumed'"), 1, DONE),
        moment("task recorded, not sent", to("OLD.state = 'consumed' AND NEW.state = 'dispatched'"), 0, UNKNOWN),
        Moment { tool: SILENT, ..moment("task on its way", None, 1, UNKNOWN) },
        moment("task is being kept", on("held_tasks", "UPDATE", "NEW.version > 0"), 1, LOST),
        moment("task kept", None, 1, DONE),
    ]
}

async fn follow(gateway: &Gateway, token: &str, tool: &str, number: &str) -> Result<Value> {
    let params = json!({ "name": tool, "arguments": { "number": number } });
    Ok(ask_modern(gateway.base(), token, "tools/call", &params).await?)
}

async fn got(gateway: &Gateway, token: &str, task: &str) -> Result<Value> {
    Ok(ask_modern(gateway.base(), token, "tasks/get", &json!({ "taskId": task })).await?)
}

fn status(said: &Value) -> &str {
    said.pointer("/result/status").and_then(Value::as_str).unwrap_or_default()
}

/// Looks until something is so.
async fn until<T, F: Future<Output = Result<Option<T>>>>(look: impl Fn() -> F) -> Result<T> {
    let looking = async {
        loop {
            if let Some(found) = look().await? {
                return anyhow::Ok(found);
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, looking).await.context("it never came")?
}

/// Asks for a task until it has ended.
async fn ended(gateway: &Gateway, token: &str, task: &str) -> Result<Value> {
    until(|| async {
        let said = got(gateway, token, task).await?;
        ensure!(said.pointer("/result/taskId").is_some(), "{said}");
        Ok((status(&said) != "working").then_some(said))
    })
    .await
}

/// One moment: the gateway is ended there, and started again. Gives the gateway.
async fn meets(place: &mut Place, first: Gateway, second: Option<&Gateway>, moment: &Moment) -> Result<Gateway> {
    let (token, number) = (place.tokens.agent.clone(), moment.name);
    let mut task = None;
    if moment.stop.is_none_or(|stop| stop.write != "INSERT") {
        let said = follow(&first, &token, moment.tool, number).await?;
        let made = said.pointer("/result/taskId").and_then(Value::as_str).map(str::to_owned);
        task = Some(made.with_context(|| said.to_string())?);
    }
    if let Some(stop) = moment.stop {
        place.stop_at(stop).await?;
    }
    match (&task, moment.is_approved) {
        (None, _) => {
            let (base, token, tool) = (first.base().to_owned(), token.clone(), moment.tool);
            let params = json!({ "name": tool, "arguments": { "number": number } });
            tokio::spawn(async move { ask_modern(&base, &token, "tools/call", &params).await });
        }
        (Some(_), true) => {
            let (id, _) = place.row().await?.context("an approval")?;
            place.answer(first.base(), &id, "approve").await?;
        }
        (Some(_), false) => {}
    }
    match (moment.stop, &task) {
        (Some(stop), _) => {
            place.stopped().await?;
            if (stop.table, stop.write) == ("held_tasks", "UPDATE") {
                // The call has ended, and the journal says so before the task does.
                let (id, _) = place.row().await?.context("an approval")?;
                let is_said = || async { Ok((journaled(&place.first, &id) == Journaled::Outcome).then_some(())) };
                until(is_said).await.context("the journal")?;
            }
        }
        (None, _) if moment.tool == SILENT => {
            until(|| async { Ok((place.seen(number) == 1).then_some(())) }).await?;
        }
        (None, Some(task)) if moment.is_approved => drop(ended(&first, &token, task).await?),
        (None, _) => {}
    }
    first.kill().await;
    place.let_go().await?;
    let first = place.first.serve().await;
    if task.is_none() {
        // Nobody was told of a task: the call, made again, is followed from now on.
        let said = follow(&first, &token, moment.tool, number).await?;
        task = said.pointer("/result/taskId").and_then(Value::as_str).map(str::to_owned);
    }
    let task = task.context("a task")?;
    if !moment.is_approved {
        let said = got(&first, &token, &task).await?;
        ensure!(status(&said) == "working" && place.seen(number) == 0, "{said}");
        let (id, _) = place.row().await?.context("an approval")?;
        place.answer(second.unwrap_or(&first).base(), &id, "approve").await?;
    }
    for gateway in [Some(&first), second].into_iter().flatten() {
        let said = ended(gateway, &token, &task).await.with_context(|| gateway.log())?;
        ensure!(status(&said) == moment.ends.0 && said.to_string().contains(moment.ends.1), "{said}");
        ensure!(!said.to_string().contains(HELD), "{said}");
        let foreign = got(gateway, &place.tokens.spent, &task).await?;
        ensure!(foreign.pointer("/error/code") == Some(&json!(-32602)), "{foreign}");
    }
    ensure!(place.seen(number) == moment.sent, "the server saw it {} times", place.seen(number));
    Ok(first)
}

const HELD: &str = "Held by Toolwarden";

async fn every_moment(on_postgres: bool) -> Result<()> {
    let mut place = Place::new(on_postgres).await?;
    let mut first = place.first.serve().await;
    let second = match &place.second {
        Some(second) => Some(second.serve().await),
        None => None,
    };
    for moment in &moments() {
        first = meets(&mut place, first, second.as_ref(), moment).await.context(moment.name)?;
    }
    first.stop().await;
    if let Some(second) = second {
        second.stop().await;
    }
    place.verifies().await?;
    report(&format!("{} tasks were followed to their end", moments().len()));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_8_a_killed_gateway_leaves_every_task_as_it_stands_on_a_file() -> Result<()> {
    every_moment(false).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn review_8_a_killed_gateway_leaves_every_task_as_it_stands_on_postgres() -> Result<()> {
    every_moment(true).await
}
