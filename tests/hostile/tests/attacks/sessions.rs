//! What belongs to one client, in the hands of another: sessions, streams, requests, questions, tasks.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use toolwarden_hostile::child::Child;
use toolwarden_hostile::client::legacy;
use toolwarden_hostile::house::{OPEN, Session, TWO, hello};
use toolwarden_hostile::server::honest;
use toolwarden_hostile::{Ask, Given, Heard, House, Said, Server, Tried, attacks, outcome};

use crate::CHILD;

attacks! {
    session_of_another_principal: Sessions, "A client uses the session of somebody in another mode.";
    session_at_another_door: Sessions, "A session of one server is used at the common door.";
    session_that_is_guessed: Sessions, "A client makes up a session id.";
    session_fixation: Sessions, "A client opens a session under an id it chose, for somebody else to walk into.";
    session_after_its_end: Sessions, "A session is used after it was closed.";
    two_session_ids_in_one_header: Sessions, "Two session ids stand in one header, the own one first.";
    session_ended_by_another: Sessions, "A client closes the session of somebody else.";
    stream_of_another_session: Sessions, "A client resumes the stream of another session by a guessed event id.";
    sessions_without_end: Limits, "A client opens sessions until there is no room.";
    foreign_cancel: Owners, "A client cancels requests of another session by their numbers on the wire.";
    foreign_cancel_at_a_server: Owners, "A client cancels a request of another session by its id.";
    foreign_answer: Owners, "A client answers what a server asked another session.";
    request_id_reused: Routes, "A client sends a second request under the id of one that is on its way.";
    same_id_on_a_shared_child: Routes, "Two clients use the same id on one child, and one waits for the other's answer.";
    same_progress_token_on_a_shared_child: Routes, "Two clients use the same progress token on one child.";
    shared_child_of_another_principal: Owners, "A client hopes for what a child of another principal remembers.";
    task_of_another_is_read: Owners, "A client asks for the task of another.";
    task_of_another_is_cancelled: Owners, "A client cancels the task of another.";
    task_result_of_another: Owners, "A client fetches the result of another's task.";
    task_of_another_is_answered: Owners, "A client answers what the task of another asked.";
    task_of_another_is_listened_to: Owners, "A client subscribes to news of another's task.";
    tasks_of_others_in_a_list: Owners, "A client lists all tasks of a server.";
    task_given_to_two: Owners, "A server gives a caller the task of another caller.";
}

const ALICE: &str = "/mcp/notes?mode=alice";
const BOB: &str = "/mcp/notes?mode=bob";

/// A call with a stolen or made-up session id, which must find no session.
async fn with_id(path: &str, change: impl Fn(&Session, &Session) -> String) -> Tried {
    let server = Server::honest().await?;
    let house = House::two_before(&server).await?;
    let (alice, bob) = (house.session(ALICE).await?, house.session(BOB).await?);
    let body = legacy("7", "tools/call", r#""name":"safe","arguments":{}"#);
    let got = house.send(&Ask::post(path, body).with("Mcp-Session-Id", &change(&alice, &bob))).await?;
    outcome(server.saw("safe"), got.status == 404 && server.calls().is_empty(), got)
}

async fn session_of_another_principal() -> Tried {
    with_id(BOB, |alice, _| alice.id.clone()).await
}

async fn session_at_another_door() -> Tried {
    let server = Server::honest().await?;
    let house = House::two_before(&server).await?;
    let session = house.session(ALICE).await?;
    let list = Ask::post("/mcp?mode=alice", legacy("7", "tools/list", "")).with("Mcp-Session-Id", &session.id);
    let got = house.send(&list).await?;
    outcome(got.has("safe"), got.status == 404, got)
}

async fn session_that_is_guessed() -> Tried {
    with_id(ALICE, |_, _| "0".repeat(96)).await
}

async fn session_fixation() -> Tried {
    let server = Server::honest().await?;
    let house = House::two_before(&server).await?;
    let chosen = "chosen-by-the-attacker";
    let opened = house.send(&hello(ALICE, "2025-11-25", "{}").with("Mcp-Session-Id", chosen)).await?;
    let victim = Ask::post(ALICE, legacy("7", "tools/call", r#""name":"safe","arguments":{}"#));
    let got = house.send(&victim.with("Mcp-Session-Id", chosen)).await?;
    let is_fixed = opened.header("mcp-session-id").as_deref() == Some(chosen);
    outcome(server.saw("safe") || is_fixed, got.status == 404 && server.calls().is_empty(), got)
}

async fn session_after_its_end() -> Tried {
    let server = Server::honest().await?;
    let house = House::two_before(&server).await?;
    let session = house.session(ALICE).await?;
    house.send(&Ask::delete(ALICE).with("Mcp-Session-Id", &session.id)).await?;
    let got = house.send(&session.call("7", "safe")).await?;
    outcome(server.saw("safe"), got.status == 404 && server.calls().is_empty(), got)
}

async fn two_session_ids_in_one_header() -> Tried {
    let server = Server::honest().await?;
    let house = House::two_before(&server).await?;
    let (alice, bob) = (house.session(ALICE).await?, house.session(BOB).await?);
    let joined = format!("{}, {}", bob.id, alice.id);
    let ask = Ask::post(BOB, legacy("7", "tools/call", r#""name":"safe","arguments":{}"#));
    let got = house.send(&ask.with("Mcp-Session-Id", &joined)).await?;
    outcome(server.saw("safe"), got.status == 404 && server.calls().is_empty(), got)
}

async fn session_ended_by_another() -> Tried {
    let server = Server::honest().await?;
    let house = House::two_before(&server).await?;
    let alice = house.session(ALICE).await?;
    let got = house.send(&Ask::delete(BOB).with("Mcp-Session-Id", &alice.id)).await?;
    let told = server.heard().iter().any(|heard| heard.method == "DELETE");
    outcome(told, got.status == 404 && !told, got)
}

async fn stream_of_another_session() -> Tried {
    let child = Child::new(CHILD, "legacy unasked")?;
    let house = House::build(&Given::new(&[TWO, &child.table("notes")])).await?;
    let (alice, bob) = (house.session(ALICE).await?, house.session(BOB).await?);
    let members = r#""name":"safe","arguments":{"who":"alice"},"_meta":{"progressToken":"p"}"#;
    let own = house.send(&alice.ask("7", "tools/call", members)).await?;
    let id = own.body.lines().find_map(|line| line.strip_prefix("id: ")).ok_or_else(|| format!("no events: {own}"))?;
    let mut stolen =
        house.listen(&bob.get().with("Last-Event-ID", &format!("{}.0", id.split('.').next().unwrap_or("s1")))).await?;
    let heard = stolen.until(|said| said.contains("done") || said.contains("no stream of this session")).await?;
    outcome(stolen.text.contains("\"done"), heard && stolen.text.contains("no stream"), &stolen.text)
}

async fn sessions_without_end() -> Tried {
    let server = Server::honest().await?;
    let given = Given::new(&[OPEN, &server.table("notes")]).set(|settings| settings.most_sessions = 3);
    let house = House::build(&given).await?;
    for _ in 0..3 {
        house.session("/mcp/notes").await?;
    }
    let got = house.send(&hello("/mcp/notes", "2025-11-25", "{}")).await?;
    outcome(got.header("mcp-session-id").is_some(), got.status == 503, got)
}

fn cancel(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
}

async fn foreign_cancel() -> Tried {
    let child = Child::new(CHILD, "legacy hold")?;
    let house = House::build(&Given::new(&[OPEN, &child.table("notes")])).await?;
    // Two sessions of one principal share a child.
    let (victim, attacker) = (house.session("/mcp/notes").await?, house.session("/mcp/notes").await?);
    let mut waiting = house.listen(&victim.call("77", "safe")).await?;
    if !child.hears("tools/call").await {
        return Err("the call did not arrive".into());
    }
    for number in 1..20 {
        house.send(&attacker.post(cancel(&number.to_string()))).await?;
    }
    house.send(&attacker.call("78", "safe")).await?;
    // A weak gateway takes the call off its list, or the server ends it: either way it did not go on.
    let is_lost = |said: &str| said.contains("cancelled by") || said.contains("ended while the call was on its way");
    waiting.until(|said| said.contains("went on") || is_lost(said)).await?;
    let said = &waiting.text;
    outcome(is_lost(said), said.contains("went on") && !child.told().contains("requestId"), said)
}

async fn foreign_cancel_at_a_server() -> Tried {
    let release = Arc::new(Notify::new());
    let held = release.clone();
    let server = Server::calls_answered(move |heard| honest(heard).after(held.clone())).await?;
    let house = House::two_before(&server).await?;
    let (alice, bob) = (house.session(ALICE).await?, house.session(BOB).await?);
    let mut waiting = house.listen(&alice.call("77", "safe")).await?;
    if !server.sees("tools/call").await {
        return Err("the call did not arrive".into());
    }
    let got = house.send(&bob.post(cancel("77"))).await?;
    // Servers are told aside; nothing comes of it where the cancel counts for nothing.
    let _ = tokio::time::timeout(Duration::from_millis(500), server.sees("requestId")).await;
    release.notify_one();
    let done = waiting.hears("done").await?;
    outcome(server.saw("requestId"), done && got.status == 202 && !server.saw("requestId"), got)
}

/// A server that asks each caller under the same id, and waits for the answer in its session.
fn asking(heard: &Heard) -> Said {
    let question = r#"{"jsonrpc":"2.0","id":"q1","method":"elicitation/create","params":{"message":"Delete everything?","requestedSchema":{"type":"object","properties":{}}}}"#;
    let events = [format!("data: {question}\n\n").into()];
    match heard.method.as_str() {
        "tools/call" => Said::pieces(
            "text/event-stream",
            futures_util::StreamExt::chain(futures_util::stream::iter(events), futures_util::stream::pending()),
        ),
        _ => honest(heard),
    }
}

async fn foreign_answer() -> Tried {
    let server = Server::start(asking).await?;
    let house = House::two_before(&server).await?;
    let alice = house.session_of(ALICE, "2025-11-25", r#"{"elicitation":{}}"#).await?;
    let bob = house.session(BOB).await?;
    let mut asked = house.listen(&alice.call("7", "safe")).await?;
    if !asked.hears("Delete everything?").await? {
        return Err(format!("nothing was asked: {}", asked.text).into());
    }
    let got = house.send(&bob.post(r#"{"jsonrpc":"2.0","id":"q1","result":{"action":"accept","content":{}}}"#)).await?;
    outcome(server.saw("accept"), got.status == 202 && !server.saw("accept"), got)
}

async fn request_id_reused() -> Tried {
    let release = Arc::new(Notify::new());
    let held = release.clone();
    let server = Server::calls_answered(move |heard| honest(heard).after(held.clone())).await?;
    let house = House::open_before(&server).await?;
    let session = house.session("/mcp/notes").await?;
    let _first = house.listen(&session.call("7", "safe")).await?;
    if !server.sees("\"safe\"").await {
        return Err("the call did not arrive".into());
    }
    let mut second = house.listen(&session.call("7", "danger")).await?;
    // A second call that is on its way waits as the first does.
    tokio::select! {
        _ = server.sees("\"danger\"") => {}
        _ = second.hears("still on its way") => {}
    }
    let refused = second.text.contains("still on its way");
    outcome(server.saw("danger"), refused && !server.saw("danger"), &second.text)
}

/// Two clients of one principal call one child under the same id and token; what the second is told.
async fn two_on_a_child() -> Result<String, toolwarden_hostile::Fault> {
    let child = Child::new(CHILD, "legacy pair")?;
    let house = House::build(&Given::new(&[OPEN, &child.table("notes")])).await?;
    let (alice, bob) = (house.session("/mcp/notes").await?, house.session("/mcp/notes").await?);
    let members = |who: &str| format!(r#""name":"safe","arguments":{{"who":"{who}"}},"_meta":{{"progressToken":7}}"#);
    let _first = house.listen(&alice.ask("7", "tools/call", &members("alice"))).await?;
    if !child.hears("alice").await {
        return Err("the first call did not arrive".into());
    }
    let got = house.send(&bob.ask("7", "tools/call", &members("bob"))).await?;
    Ok(got.body)
}

async fn same_id_on_a_shared_child() -> Tried {
    let said = two_on_a_child().await?;
    outcome(said.contains("secret of alice"), said.contains("secret of bob") && !said.contains("secret of alice"), said)
}

async fn same_progress_token_on_a_shared_child() -> Tried {
    let said = two_on_a_child().await?;
    outcome(said.contains("progress of alice"), said.contains("progress of bob") && !said.contains("alice"), said)
}

async fn shared_child_of_another_principal() -> Tried {
    let child = Child::new(CHILD, "legacy count")?;
    let house = House::build(&Given::new(&[TWO, &child.table("notes")])).await?;
    let (alice, bob) = (house.session(ALICE).await?, house.session(BOB).await?);
    house.send(&alice.call("1", "safe")).await?;
    let got = house.send(&bob.call("1", "safe")).await?;
    outcome(got.has("call 2 of"), got.has("call 1 of"), got)
}

const LEGACY_TASK: &str = r#"{"task":{"taskId":"t1","status":"working"}}"#;
const MODERN_TASK: &str = r#"{"resultType":"task","taskId":"t1","status":"working"}"#;

/// Alice makes a task in a session, Bob asks for it in his.
async fn legacy_task(method: &str, members: &str) -> Tried {
    let server = Server::calls_answered(|heard| Said::result(heard, LEGACY_TASK)).await?;
    let house = House::two_before(&server).await?;
    let (alice, bob) = (house.session(ALICE).await?, house.session(BOB).await?);
    let made = house.send(&alice.ask("1", "tools/call", r#""name":"safe","arguments":{},"task":{"ttl":1000}"#)).await?;
    let got = house.send(&bob.ask("2", method, members)).await?;
    let arrived = server.calls().iter().any(|call| call.method == method);
    outcome(arrived, made.has("t1") && got.has("no such task") && !arrived, got)
}

/// The same in the modern era.
async fn modern_task(method: &str, name: &str, members: &str) -> Tried {
    let server = Server::calls_answered(|heard| Said::result(heard, MODERN_TASK)).await?;
    let house = House::two_before(&server).await?;
    let made = house.send(&Ask::call(ALICE, "safe")).await?;
    let knows_tasks = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    let got = house.send(&Ask::able(BOB, method, name, members, knows_tasks)).await?;
    let arrived = server.calls().iter().any(|call| call.method == method);
    outcome(arrived, made.has("t1") && got.has("no such task") && !arrived, got)
}

async fn task_of_another_is_read() -> Tried {
    legacy_task("tasks/get", r#""taskId":"t1""#).await
}

async fn task_of_another_is_cancelled() -> Tried {
    modern_task("tasks/cancel", "t1", r#""taskId":"t1""#).await
}

async fn task_result_of_another() -> Tried {
    legacy_task("tasks/result", r#""taskId":"t1""#).await
}

async fn task_of_another_is_answered() -> Tried {
    modern_task("tasks/update", "t1", r#""taskId":"t1","inputResponses":{}"#).await
}

async fn task_of_another_is_listened_to() -> Tried {
    modern_task("subscriptions/listen", "", r#""notifications":{"taskIds":["t1"]}"#).await
}

async fn tasks_of_others_in_a_list() -> Tried {
    let server = Server::start(|heard| match heard.method.as_str() {
        "tools/call" => Said::result(heard, LEGACY_TASK),
        "tasks/list" => Said::result(heard, r#"{"tasks":[{"taskId":"t1","status":"working"}]}"#),
        _ => honest(heard),
    });
    let server = server.await?;
    let house = House::two_before(&server).await?;
    let (alice, bob) = (house.session(ALICE).await?, house.session(BOB).await?);
    house.send(&alice.ask("1", "tools/call", r#""name":"safe","arguments":{},"task":{"ttl":1000}"#)).await?;
    let got = house.send(&bob.ask("2", "tasks/list", "")).await?;
    outcome(got.has("t1"), got.has(r#""tasks":[]"#), got)
}

async fn task_given_to_two() -> Tried {
    let server = Server::calls_answered(|heard| Said::result(heard, MODERN_TASK)).await?;
    let house = House::two_before(&server).await?;
    house.send(&Ask::call(ALICE, "safe")).await?;
    let got = house.send(&Ask::call(BOB, "safe")).await?;
    outcome(got.has("working"), got.has("belongs to another caller") && !got.has("working"), got)
}
