//! Held calls that are followed as tasks: tasks in the hands of others, after their tool was forbidden, and moved in the
//! database.

use std::time::Duration;

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};
use toolwarden_hostile::client::Got;
use toolwarden_hostile::house::eventually;
use toolwarden_hostile::server::{Heard, tool, with_tools};
use toolwarden_hostile::{Ask, Fault, Given, House, Server, Tried, Who, attacks, outcome};

attacks! {
    task_of_a_held_call_is_read_by_another: Owners, "An agent asks for the task of a held call that another agent of the same user made.";
    task_of_a_held_call_is_given_up_by_another: Owners, "An agent gives up the task of another agent's held call.";
    task_of_a_call_that_nobody_approved: Approvals, "An agent asks again and again for the task of a call that waits.";
    task_after_the_tool_was_forbidden: Switches, "The task of an approved call is asked for after its tool was switched off.";
    task_given_to_another_in_the_database: Seals, "Somebody who can write to the database gives an agent the task of another.";
    task_for_who_knows_none: Ladder, "A client that does not know tasks asks for one.";
}

const PATH: &str = "/mcp/notes";
const ABLE: &str = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
const LOOKS: u32 = 300;

fn given(server: &Server, more: &str) -> Given {
    let scopes = "tools.danger.scope = \"both\"\ntools.safe.scope = \"both\"\n";
    let role = "[roles.pm]\nallow = [\"notes:*\"]\n";
    Given::new(&[&server.table("notes"), more, scopes, role]).allowing(&["notes:safe"]).asking()
}

async fn house() -> Result<(Server, House), Fault> {
    let tools = ["safe", "danger"].map(tool);
    let server = Server::start(move |heard: &Heard| with_tools(heard, &tools)).await?;
    let house = House::build(&given(&server, "")).await?;
    Ok((server, house))
}

/// A call that is held, its approval and its task.
async fn held(house: &House, who: Who) -> Result<(String, String), Fault> {
    let members = r#""name":"danger","arguments":{"n":1}"#;
    let got = house.send(&who.asks(Ask::able(PATH, "tools/call", "danger", members, ABLE))).await?;
    let ids = got.text_of("toolwarden/approval").zip(got.text_of("taskId"));
    ids.ok_or_else(|| format!("it is no task: {got}").into())
}

fn about(who: Who, method: &str, task: &str, capabilities: &str) -> Ask {
    who.asks(Ask::able(PATH, method, task, &format!(r#""taskId":"{task}""#), capabilities))
}

/// Asks for a task until it says this, or long enough.
async fn until(house: &House, who: Who, task: &str, words: &str) -> Result<Got, Fault> {
    let mut got = house.send(&about(who, "tasks/get", task, ABLE)).await?;
    for _ in 0..LOOKS {
        if got.has(words) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        got = house.send(&about(who, "tasks/get", task, ABLE)).await?;
    }
    Ok(got)
}

const RESULT: &str = r#""status":"completed""#;
const NONE: &str = "no such task";

async fn task_of_a_held_call_is_read_by_another() -> Tried {
    let (_server, house) = house().await?;
    let (id, task) = held(&house, Who::Agent).await?;
    house.answers(&id, true).await?;
    until(&house, Who::Agent, &task, RESULT).await?;
    let got = house.send(&about(Who::OtherAgent, "tasks/get", &task, ABLE)).await?;
    outcome(got.has(RESULT), got.has(NONE) && !got.has("content"), got)
}

async fn task_of_a_held_call_is_given_up_by_another() -> Tried {
    let (server, house) = house().await?;
    let (id, task) = held(&house, Who::Agent).await?;
    let got = house.send(&about(Who::OtherAgent, "tasks/cancel", &task, ABLE)).await?;
    let is_there = house.answers(&id, true).await.is_ok();
    let done = if is_there { until(&house, Who::Agent, &task, RESULT).await?.has(RESULT) } else { false };
    outcome(!done, got.has(NONE) && done && server.calls().len() == 1, got)
}

async fn task_of_a_call_that_nobody_approved() -> Tried {
    let (server, house) = house().await?;
    let (_, task) = held(&house, Who::Agent).await?;
    for method in ["tasks/get", "tasks/update", "tasks/get"] {
        house.send(&about(Who::Agent, method, &task, ABLE)).await?;
    }
    // Whatever an agent says of its own call is no answer.
    let answers = r#","inputResponses":{"answer":{"action":"accept","content":{"answer":"allow once"}}}"#;
    let members = format!(r#""taskId":"{task}"{answers}"#);
    house.send(&Who::Agent.asks(Ask::able(PATH, "tasks/update", &task, &members, ABLE))).await?;
    // A call that was approved, with other arguments, is no help.
    let other = r#""name":"danger","arguments":{"n":2}"#;
    let got = house.send(&Who::Agent.asks(Ask::able(PATH, "tools/call", "danger", other, ABLE))).await?;
    let id = got.text_of("toolwarden/approval").ok_or("an approval")?;
    house.answers(&id, true).await?;
    // One call is made: the approved one, or, without the guard, the first.
    if !eventually(|| !server.calls().is_empty()).await {
        return Err("no call was made".into());
    }
    let got = house.send(&about(Who::Agent, "tasks/get", &task, ABLE)).await?;
    let ran = server.calls().iter().any(|call| call.text.contains(r#""n":1"#));
    outcome(ran || got.has(RESULT), got.has("working") && !ran, got)
}

async fn task_after_the_tool_was_forbidden() -> Tried {
    let (server, house) = house().await?;
    let Ok((id, task)) = held(&house, Who::Agent).await else {
        // Without a judge nothing is held.
        let got = house.send(&about(Who::Agent, "tasks/get", "tw-", ABLE)).await?;
        return outcome(!server.calls().is_empty(), false, got);
    };
    house.judge_by(&given(&server, "disabled_tools = [\"danger\"]\n"))?;
    house.answers(&id, true).await?;
    let got = until(&house, Who::Agent, &task, "Unknown tool").await?;
    let ran = !server.calls().is_empty();
    outcome(ran, got.has("Unknown tool") && !ran, got)
}

async fn task_given_to_another_in_the_database() -> Tried {
    let (_server, house) = house().await?;
    let (id, task) = held(&house, Who::Agent).await?;
    held(&house, Who::OtherAgent).await?;
    house.answers(&id, true).await?;
    until(&house, Who::Agent, &task, RESULT).await?;
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(&house.database()).await?;
    let moves = "UPDATE held_tasks SET caller_mark = (SELECT other.caller_mark FROM held_tasks other WHERE other.id <> $1) \
                 WHERE id = $1";
    let moved = sqlx::query(AssertSqlSafe(moves.to_owned())).bind(&task).execute(&mut connection).await?;
    connection.close().await?;
    if moved.rows_affected() != 1 {
        return Err("nothing was moved".into());
    }
    let got = house.send(&about(Who::OtherAgent, "tasks/get", &task, ABLE)).await?;
    outcome(got.has(RESULT), !got.has(RESULT) && !got.has("content"), got)
}

async fn task_for_who_knows_none() -> Tried {
    let (_server, house) = house().await?;
    let members = r#""name":"danger","arguments":{}"#;
    let got = house.send(&Who::Agent.asks(Ask::able(PATH, "tools/call", "danger", members, "{}"))).await?;
    let (_, task) = held(&house, Who::Agent).await?;
    let asked = house.send(&about(Who::Agent, "tasks/get", &task, "{}")).await?;
    outcome(got.has("taskId") || asked.has("working"), asked.has("-32021") && !got.has("taskId"), asked)
}
