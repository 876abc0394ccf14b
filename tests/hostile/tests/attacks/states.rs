//! Texts the gateway gave out, brought back edited, late, twice, elsewhere or by somebody else.

use toolwarden_hostile::client::calling;
use toolwarden_hostile::house::{OPEN, TWO};
use toolwarden_hostile::server::{in_turn, tool, with_tools};
use toolwarden_hostile::{Ask, Fault, Given, Heard, House, Said, Server, Tried, attacks, outcome};

attacks! {
    state_edited: Seals, "A client edits the state a server gave it.";
    state_cut_short: Seals, "A client cuts the end off a state.";
    state_made_up: Seals, "A client makes up a state of its own.";
    state_used_twice: Seals, "A client brings the same state back a second time.";
    state_of_another_principal: Seals, "A client brings back the state of somebody else's exchange.";
    state_for_another_tool: Seals, "A state of one tool's exchange is used for another tool.";
    state_for_other_arguments: Seals, "A state is brought back with other arguments than those it was given for.";
    state_for_a_number_in_other_writing: Seals, "A state is brought back with the number 10 written as 1e1.";
    state_of_a_former_gateway: Seals, "A state of a gateway that was restarted is brought back.";
    cursor_made_up: Seals, "A client makes up a cursor.";
    cursor_edited: Seals, "A client edits the cursor of a list.";
    cursor_of_another_list: Seals, "A cursor of the list of tools is used for the list of prompts.";
    cursor_of_another_principal: Seals, "A client uses the cursor of another's list.";
    rounds_without_end: Limits, "A server asks again and again, in one exchange without end.";
}

const ALICE: &str = "/mcp/notes?mode=alice";
const BOB: &str = "/mcp/notes?mode=bob";
const ABLE: &str = r#"{"elicitation":{}}"#;
const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}}},"requestState":"inner"}"#;
const DONE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#;
const ANSWER: &str = r#""inputResponses":{"q":{"action":"accept","content":{}}}"#;

/// A call that brings a state back.
fn again(path: &str, tool: &str, arguments: &str, state: &str) -> Ask {
    let members = format!(r#""name":"{tool}","arguments":{arguments},{ANSWER},"requestState":"{state}""#);
    Ask::able(path, "tools/call", tool, &members, ABLE)
}

/// A server that asks first, a gateway before it, and the state that Alice got.
async fn asked(arguments: &str) -> Result<(Server, House, String), Fault> {
    let server = Server::calls_answered(in_turn(vec![ASKS.to_owned(), DONE.to_owned()])).await?;
    let house = House::two_before(&server).await?;
    let members = format!(r#""name":"safe","arguments":{arguments}"#);
    let got = house.send(&Ask::able(ALICE, "tools/call", "safe", &members, ABLE)).await?;
    let state = got.text_of("requestState").ok_or_else(|| format!("no state: {got}"))?;
    Ok((server, house, state))
}

/// Tries a second round with something else than was given.
async fn second_round(given: &str, ask: impl Fn(&str) -> Ask) -> Tried {
    let (server, house, state) = asked(given).await?;
    let before = server.calls().len();
    let got = house.send(&ask(&state)).await?;
    let arrived = server.calls().len() > before;
    outcome(arrived, got.has("`requestState` cannot be used") && !arrived, got)
}

/// A text with its plain words changed where it has some, and one letter of it where it is sealed.
fn edited(sealed: &str, from: &str, to: &str) -> String {
    let plain = toolwarden_mcp::headers::base64(sealed).unwrap_or_default();
    let text = String::from_utf8_lossy(&plain);
    if text.contains(from) {
        return toolwarden_mcp::headers::to_base64(text.replace(from, to).as_bytes());
    }
    let (start, end) = sealed.split_at_checked(40).unwrap_or((sealed, ""));
    let rest: String = end.chars().skip(1).collect();
    format!("{start}{}{rest}", if end.starts_with('A') { 'B' } else { 'A' })
}

async fn state_edited() -> Tried {
    second_round("{}", |state| again(ALICE, "safe", "{}", &edited(state, "inner", "other"))).await
}

async fn state_cut_short() -> Tried {
    let (server, house, state) = asked("{}").await?;
    let plain = toolwarden_mcp::headers::base64(&state).unwrap_or_default();
    // A text without a seal is cut where it still is one: after the part that says what it is bound to.
    let text = String::from_utf8_lossy(&plain).into_owned();
    let short = match text.find("\"carried\"") {
        Some(_) => toolwarden_mcp::headers::to_base64(text.replace("inner", "").as_bytes()),
        None => state.chars().take(state.len() - 4).collect(),
    };
    let got = house.send(&again(ALICE, "safe", "{}", &short)).await?;
    let arrived = server.calls().len() > 1;
    outcome(arrived, got.has("`requestState` cannot be used") && !arrived, got)
}

async fn state_made_up() -> Tried {
    let plain = r#"{"run":"","number":1,"server":"notes","definition":1,"call":"","round":1,"expires":9999999,"carried":{"Server":"made up"}}"#;
    let made_up = toolwarden_mcp::headers::to_base64(plain.as_bytes());
    second_round("{}", |_| again(ALICE, "safe", "{}", &made_up)).await
}

async fn state_used_twice() -> Tried {
    let (server, house, state) = asked("{}").await?;
    house.send(&again(ALICE, "safe", "{}", &state)).await?;
    let got = house.send(&again(ALICE, "safe", "{}", &state)).await?;
    outcome(server.calls().len() == 3, got.has("used before") && server.calls().len() == 2, got)
}

async fn state_of_another_principal() -> Tried {
    second_round("{}", |state| again(BOB, "safe", "{}", state)).await
}

async fn state_for_another_tool() -> Tried {
    second_round("{}", |state| again(ALICE, "danger", "{}", state)).await
}

async fn state_for_other_arguments() -> Tried {
    second_round(r#"{"path":"/tmp/a"}"#, |state| again(ALICE, "safe", r#"{"path":"/etc/passwd"}"#, state)).await
}

async fn state_for_a_number_in_other_writing() -> Tried {
    second_round(r#"{"n":10}"#, |state| again(ALICE, "safe", r#"{"n":1e1}"#, state)).await
}

async fn state_of_a_former_gateway() -> Tried {
    let (_, _, state) = asked("{}").await?;
    second_round("{}", |_| again(ALICE, "safe", "{}", &state)).await
}

/// A server with more tools and prompts than one page holds.
fn many(heard: &Heard) -> Said {
    let tools: Vec<_> = (0..700).map(|number| tool(&format!("t{number}"))).collect();
    if heard.method == "prompts/list" {
        let prompts: Vec<_> = (0..700).map(|number| serde_json::json!({ "name": format!("t{number}") })).collect();
        return Said::result(heard, &serde_json::json!({ "prompts": prompts, "resultType": "complete" }).to_string());
    }
    with_tools(heard, &tools)
}

/// A list asked for with a cursor it was not given for.
async fn with_cursor(path: &str, method: &str, change: impl Fn(String) -> String) -> Tried {
    let server = Server::start(many).await?;
    let house = House::build(&Given::new(&[TWO, &server.table("notes")])).await?;
    let first = house.send(&Ask::modern("/mcp?mode=alice", "tools/list", "", "")).await?;
    let cursor = change(first.text_of("nextCursor").ok_or_else(|| format!("no cursor: {first}"))?);
    let got = house.send(&Ask::modern(path, method, "", &format!(r#""cursor":"{cursor}""#))).await?;
    outcome(got.has("\"name\""), got.has("not one of this list"), got)
}

async fn cursor_made_up() -> Tried {
    let made_up = toolwarden_mcp::headers::to_base64(br#"{"After":"notes__t600"}"#);
    with_cursor("/mcp?mode=alice", "tools/list", |_| made_up.clone()).await
}

async fn cursor_edited() -> Tried {
    with_cursor("/mcp?mode=alice", "tools/list", |cursor| edited(&cursor, "t499", "t600")).await
}

async fn cursor_of_another_list() -> Tried {
    with_cursor("/mcp?mode=alice", "prompts/list", |cursor| cursor).await
}

async fn cursor_of_another_principal() -> Tried {
    with_cursor("/mcp?mode=bob", "tools/list", |cursor| cursor).await
}

async fn rounds_without_end() -> Tried {
    let server = Server::calls_answered(|heard| Said::result(heard, ASKS)).await?;
    let house = House::build(&Given::new(&[OPEN, &server.table("notes")])).await?;
    let mut got = house.send(&Ask::able("/mcp/notes", "tools/call", "safe", &calling("safe"), ABLE)).await?;
    for _ in 0..20 {
        let Some(state) = got.text_of("requestState") else { break };
        got = house.send(&again("/mcp/notes", "safe", "{}", &state)).await?;
    }
    outcome(server.calls().len() == 21, got.has("asked more than 16 times"), got)
}
