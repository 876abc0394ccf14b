//! A hostile child: what it says on its pipes, what it takes from its surroundings, what it leaves behind.

use toolwarden_hostile::child::Child;
use toolwarden_hostile::client::calling;
use toolwarden_hostile::house::{OPEN, eventually};
use toolwarden_hostile::{Ask, Given, House, Tried, attacks, logs, outcome};

use crate::CHILD;

attacks! {
    answer_nobody_waits_for: Answers, "A child answers a request that was never made, before it answers the real one.";
    progress_nobody_asked_for: Routes, "A child tells of progress to a caller that named no token.";
    message_of_an_unlisted_kind: Methods, "A child sends a message of a kind no revision has.";
    cancellation_for_everybody: Routes, "A child takes back a question, and every client but the asked one is told.";
    log_of_another_client: Routes, "A child logs what it does for one client, and another listens.";
    question_of_a_child: Questions, "A child that may ask for forms asks for a model's words.";
    line_without_end: Limits, "A child writes a line without end.";
    answer_of_a_child_nested_without_end: Limits, "A child's answer is nested deeper than it may be.";
    environment_of_the_gateway: Children, "A child looks for secrets in the environment of the gateway.";
    process_that_stays: Children, "A child starts a process that is to outlive it.";
    method_that_forges_a_log_line: Logs, "A child asks for something whose name breaks the line of the log and writes one of its own.";
    child_that_does_not_end: Children, "A child stays when its input is closed.";
    log_that_drives_the_terminal: Logs, "A child's log wipes the screen and claims an approval.";
}

/// What a modern client gets of a child's answer.
async fn answered(plan: &'static str, planted: &str, words: &str) -> Tried {
    let child = Child::new(CHILD, plan)?;
    let given = Given::new(&[OPEN, &child.table("notes")]);
    let house = House::build(&given.set(|settings| settings.call.silence = std::time::Duration::from_secs(2))).await?;
    let got = house.send(&Ask::call("/mcp/notes", "safe")).await?;
    outcome(got.has(planted), got.has(words) && !got.has(planted), got)
}

async fn answer_nobody_waits_for() -> Tried {
    answered("modern stranger", "planted", "done").await
}

async fn progress_nobody_asked_for() -> Tried {
    answered("modern unasked", "unasked progress", "done").await
}

/// What another client of a shared child hears beside the calls of the first. News everybody may hear comes last.
async fn overheard(plan: &'static str, planted: &str) -> Tried {
    let child = Child::new(CHILD, plan)?;
    let house = House::build(&Given::new(&[OPEN, &child.table("notes")])).await?;
    let (caller, listener) = (house.session("/mcp/notes").await?, house.session("/mcp/notes").await?);
    let mut news = house.listen(&listener.get()).await?;
    let members = r#""name":"safe","arguments":{"who":"alice"}"#;
    house.send(&caller.ask("7", "tools/call", members)).await?;
    let heard = news.hears("list_changed").await?;
    outcome(news.text.contains(planted), heard && !news.text.contains(planted), &news.text)
}

async fn message_of_an_unlisted_kind() -> Tried {
    overheard("legacy unlisted", "planted").await
}

async fn cancellation_for_everybody() -> Tried {
    overheard("legacy cancels", "planted").await
}

async fn log_of_another_client() -> Tried {
    overheard("legacy logs", "secret of alice").await
}

async fn question_of_a_child() -> Tried {
    let child = Child::new(CHILD, "legacy asks")?;
    let house = House::build(&Given::new(&[OPEN, &child.table("notes")])).await?;
    let able = r#"{"elicitation":{},"sampling":{}}"#;
    let session = house.session_of("/mcp/notes", "2025-11-25", able).await?;
    let mut got = house.listen(&session.call("7", "safe")).await?;
    got.until(|said| said.contains("sampling/createMessage") || said.contains("it was declined")).await?;
    let asked = got.text.contains("sampling/createMessage");
    outcome(asked, !asked && got.text.contains("it was declined"), &got.text)
}

async fn line_without_end() -> Tried {
    answered("modern long", "aaaaaaaa", "-32603").await
}

async fn answer_of_a_child_nested_without_end() -> Tried {
    answered("modern deep", "\"deep\"", "-32603").await
}

async fn environment_of_the_gateway() -> Tried {
    // The test's own environment stands for the gateway's: cargo puts this into it.
    answered("modern environment", "CARGO_MANIFEST_DIR=", "\"text\":").await
}

async fn process_that_stays() -> Tried {
    stays("modern forks").await
}

async fn child_that_does_not_end() -> Tried {
    stays("modern stays").await
}

/// Whether a process that a child noted is there after the gateway ended everything.
async fn stays(plan: &'static str) -> Tried {
    let child = Child::new(CHILD, plan)?;
    let house = House::build(&Given::new(&[OPEN, &child.table("notes")])).await?;
    let got = house.send(&Ask::modern("/mcp/notes", "tools/call", "safe", &calling("safe"))).await?;
    let told = child.told();
    let started = told.lines().find_map(|line| line.strip_prefix("started ")).map(str::trim);
    let started = started.ok_or_else(|| format!("nothing was started: {got}"))?.to_owned();
    house.gateway.close().await;
    let is_alive = || {
        let state = std::fs::read_to_string(format!("/proc/{started}/stat")).unwrap_or_default();
        !state.is_empty() && !state.contains(") Z")
    };
    let has_ended = if toolwarden_core::weak::is(toolwarden_core::Weakness::Children) {
        !is_alive()
    } else {
        eventually(|| !is_alive()).await
    };
    if !has_ended {
        std::process::Command::new("kill").arg(&started).status()?;
    }
    outcome(!has_ended, has_ended, got)
}

async fn log_that_drives_the_terminal() -> Tried {
    logs::listen();
    let child = Child::new(CHILD, "modern errors")?;
    let house = House::build(&Given::new(&[OPEN, &child.table("notes")])).await?;
    house.send(&Ask::call("/mcp/notes", "safe")).await?;
    if !eventually(|| logs::said().contains("Toolwarden: approved")).await {
        return Err("nothing was logged".into());
    }
    let said = logs::said();
    let is_raw = said.contains('\u{1b}') || said.contains('\u{202e}');
    outcome(is_raw, !is_raw && said.contains("\\u{1b}"), said.escape_debug())
}

async fn method_that_forges_a_log_line() -> Tried {
    logs::listen();
    let child = Child::new(CHILD, "legacy misnamed")?;
    let house = House::build(&Given::new(&[OPEN, &child.table("notes")])).await?;
    let session = house.session("/mcp/notes").await?;
    house.send(&session.call("7", "safe")).await?;
    if !eventually(|| logs::said().contains("Toolwarden: approved")).await {
        return Err(format!("nothing was logged: {}", logs::said()).into());
    }
    let is_forged = logs::said().lines().any(|line| line.starts_with("Toolwarden: approved"));
    outcome(is_forged, !is_forged, logs::said().escape_debug())
}
