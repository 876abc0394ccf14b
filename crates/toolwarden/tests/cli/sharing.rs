//! Protection that real processes share (WORK-3): a second `toolwarden stdio`, a second gateway, another client name, a
//! rotated token or a killed process is no fresh start. What reaches the server is written down by the server's own line.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use toolwarden_test_postgres::Cluster;

use crate::house::House;
use crate::identifying::issue;
use crate::server::{Server, eventually};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const KEY: &str = "home/.config/toolwarden/master.key";
const PM: [&str; 4] = ["--role", "pm", "--user", "ada"];

/// A house whose server reads what is private and untrusted, and sends what is written; with a record of what reaches it.
fn house(store: &str, limits: &str) -> House {
    let house = House::new();
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let record = house.path("reached").display().to_string();
    house.write(
        CONFIG,
        &format!(
            "{store}[auto_run]\nmode = \"run_everything\"\n[servers.notes]\ncommand = \"/bin/sh\"\n\
             args = [\"-c\", \"tee -a '{record}' | '{program}' demo-server\"]\nlabels = [\"reads_untrusted\"]\n{limits}\
             tools.read_note = {{ scope = \"both\", labels = [\"reads_private\"] }}\n\
             tools.write_note = {{ scope = \"pm\", labels = [\"sends_out\"] }}\n\
             [roles.pm]\nallow = [\"notes:*\"]\n"
        ),
    );
    house
}

/// Calls of a tool that reached the server.
fn reached(house: &House, tool: &str) -> usize {
    house.read("reached").lines().filter(|line| line.contains("tools/call") && line.contains(tool)).count()
}

/// A client that started a process of its own.
pub struct Pipe {
    process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl Pipe {
    pub fn start(house: &House, token: Option<&str>, client: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolwarden"));
        command.args(["stdio", "--server", "notes"]).current_dir(house.path("space")).env_clear();
        command.env("HOME", house.path("home")).env("PATH", "/usr/bin:/bin");
        command.envs(token.map(|token| ("TOOLWARDEN_TOKEN", token)));
        let process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut process) = process else { unreachable!("{:?}", process.err()) };
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            unreachable!("they are pipes")
        };
        let mut pipe = Self { process, input, lines: BufReader::new(output).lines(), next: 0 };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                            "clientInfo": { "name": client, "version": "1" } });
        let said = pipe.ask("initialize", &hello);
        assert!(said.contains("serverInfo"), "{said}");
        pipe.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        pipe
    }

    fn say(&mut self, message: &Value) {
        assert!(writeln!(self.input, "{message}").is_ok());
    }

    pub fn ask(&mut self, method: &str, params: &Value) -> String {
        self.next += 1;
        let id = self.next;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = |line: &String| line.contains(&format!("\"id\":{id}"));
        self.lines.by_ref().map_while(Result::ok).find(answer).unwrap_or_default()
    }

    fn read(&mut self) -> String {
        self.ask("tools/call", &json!({ "name": "read_note", "arguments": { "name": "welcome" } }))
    }

    fn write(&mut self) -> String {
        self.ask("tools/call", &json!({ "name": "write_note", "arguments": { "name": "x", "text": "y" } }))
    }

    /// Ends it as nothing else would.
    fn kill(mut self) {
        assert!(self.process.kill().is_ok() && self.process.wait().is_ok());
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn is_read(answer: &str) -> bool {
    answer.contains("kept by the demo server")
}

#[test]
fn work_3_a_second_process_with_the_same_token_sheds_no_labels() {
    let house = house("", "");
    let (id, token) = issue(&house, &PM);
    let (mut first, mut second) =
        (Pipe::start(&house, Some(&token), "one"), Pipe::start(&house, Some(&token), "another"));
    assert!(!second.write().contains("rule_hold"), "nothing was read yet");
    assert_eq!(reached(&house, "write_note"), 1);
    let read = first.read();
    assert!(is_read(&read), "{read}");
    // Killed at once: what was met is not lost with the process.
    first.kill();
    let held = second.write();
    assert!(held.contains("rule_hold"), "{held}");
    let mut third = Pipe::start(&house, Some(&token), "a third");
    assert!(third.write().contains("rule_hold"));
    // Another secret of the same token.
    let rotated = house.json(&["tokens", "rotate", &id]);
    let rotated = rotated.get("token").and_then(Value::as_str).unwrap_or_default().to_owned();
    assert!(rotated.starts_with("tw_") && rotated != token);
    let mut fourth = Pipe::start(&house, Some(&rotated), "one");
    assert!(fourth.write().contains("rule_hold"));
    assert_eq!(reached(&house, "write_note"), 1, "{}", house.read("reached"));
    // Another token has met nothing.
    let (_, other) = issue(&house, &PM);
    assert!(!Pipe::start(&house, Some(&other), "one").write().contains("rule_hold"));
}

#[test]
fn work_3_what_was_rejected_in_one_process_is_not_asked_in_another() {
    let house = House::new();
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let config = format!("[servers.notes]\ncommand = \"{program}\"\nargs = [\"demo-server\"]\n");
    house.write(CONFIG, &format!("{config}tools.write_note.scope = \"pm\"\n[roles.pm]\nallow = [\"notes:*\"]\n"));
    let (id, token) = issue(&house, &PM);
    let write = |pipe: &mut Pipe, text: &str| {
        pipe.ask("tools/call", &json!({ "name": "write_note", "arguments": { "name": "x", "text": text } }))
    };
    for text in ["one", "two", "three"] {
        let mut pipe = Pipe::start(&house, Some(&token), "one");
        let held = write(&mut pipe, text);
        assert!(held.contains("Held by Toolwarden"), "{held}");
        let waiting = house.json(&["approvals", "list"]);
        let held = waiting.pointer("/0/id").and_then(Value::as_str).unwrap_or_default().to_owned();
        assert_eq!(house.run(&["approvals", "deny", &held]).code, 0, "{waiting}");
        pipe.kill();
    }
    let mut another = Pipe::start(&house, Some(&token), "another");
    assert!(write(&mut another, "one").contains("rejected"));
    let refused = write(&mut another, "four");
    assert!(refused.contains("rejected_often"), "{refused}");
    let rotated = house.json(&["tokens", "rotate", &id]);
    let rotated = rotated.get("token").and_then(Value::as_str).unwrap_or_default().to_owned();
    let refused = write(&mut Pipe::start(&house, Some(&rotated), "one"), "five");
    assert!(refused.contains("rejected_often"), "{refused}");
    assert_eq!(house.json(&["approvals", "list", "--state", "held"]).as_array().map(Vec::len), Some(0));
}

#[test]
fn work_3_without_a_token_another_client_name_is_no_fresh_start() {
    let house = house("", "");
    let mut first = Pipe::start(&house, None, "one");
    assert!(is_read(&first.read()));
    drop(first);
    for client in ["one", "another", ""] {
        let held = Pipe::start(&house, None, client).write();
        assert!(held.contains("rule_hold"), "{client}: {held}");
    }
    assert_eq!(reached(&house, "write_note"), 0);
}

#[test]
fn work_3_a_second_process_gets_no_minute_of_its_own() {
    let house = house("", "limits = { per_minute = 4 }\n");
    let (_, token) = issue(&house, &PM);
    let mut pipes: Vec<Pipe> = ["a", "b", "c"].map(|client| Pipe::start(&house, Some(&token), client)).into();
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.extend(pipes.iter_mut().map(Pipe::read));
    }
    let made = answers.iter().filter(|answer| is_read(answer)).count();
    assert_eq!((made, reached(&house, "read_note")), (4, 4), "{answers:?}");
    assert!(answers.iter().all(|answer| is_read(answer) || answer.contains("calls_per_minute")), "{answers:?}");
    pipes.into_iter().for_each(Pipe::kill);
    assert!(Pipe::start(&house, Some(&token), "a").read().contains("calls_per_minute"));
    assert_eq!(reached(&house, "read_note"), 4);
}

#[test]
fn work_3_two_gateways_on_one_database_share_labels_and_minutes() {
    let cluster = Cluster::start();
    assert!(cluster.is_ok(), "{cluster:?}");
    let Ok(mut cluster) = cluster else { unreachable!("asserted") };
    let store = format!("[store]\nurl = \"{}\"\nmax_stale = \"60s\"\n", cluster.url());
    let houses = ["", ""].map(|_| house(&store, "limits = { per_minute = 5 }\n"));
    let [one, other] = &houses;
    assert_eq!(one.run(&["tokens", "list"]).code, 0);
    assert!(std::fs::copy(one.path(KEY), other.path(KEY)).is_ok());
    let (_, token) = issue(one, &PM);
    let (here, there) = (Server::start(one), Server::start(other));
    let read = |server: &Server| server.call_as(&token, "read_note", &json!({ "name": "welcome" }));
    let write = |server: &Server| server.call_as(&token, "write_note", &json!({ "name": "x", "text": "y" }));
    let sent = write(&there);
    assert!(sent.starts_with("HTTP/1.1 200") && !sent.contains("rule_hold"), "{sent}");
    assert!(is_read(&read(&here)));
    let held = write(&there);
    assert!(held.contains("rule_hold"), "{held}");
    assert_eq!((reached(one, "write_note"), reached(other, "write_note")), (0, 1));
    // Two of five are made; the rest is one minute of both.
    let answers: Vec<String> = (0..6).map(|number| read(if number % 2 == 0 { &here } else { &there })).collect();
    assert_eq!(answers.iter().filter(|answer| is_read(answer)).count(), 3, "{answers:?}");
    assert_eq!(reached(one, "read_note") + reached(other, "read_note"), 4);
    assert!(cluster.stop().is_ok());
    let (before, said) = (reached(one, "tools/call") + reached(other, "tools/call"), [write(&here), read(&there)]);
    assert!(said.iter().all(|said| !is_read(said) && !said.contains("\"isError\":false")), "{said:?}");
    assert!(said.iter().any(|said| said.contains("labels_unknown") || said.contains("calls_per_minute")), "{said:?}");
    assert_eq!(reached(one, "tools/call") + reached(other, "tools/call"), before);
    assert!(cluster.restart().is_ok());
    assert!(eventually(|| write(&here).contains("rule_hold")), "{}", write(&here));
    assert_eq!(reached(one, "write_note"), 0);
}

#[test]
fn allow_12_what_another_process_takes_away_is_gone_for_the_next_call_of_a_pipe() {
    let house = house("", "");
    let mut pipe = Pipe::start(&house, None, "one");
    // Several times, because a change that is only looked for at an interval is sometimes seen in time.
    for round in 0..4 {
        assert!(is_read(&pipe.read()), "round {round}");
        assert_eq!(house.run(&["tools", "disable", "notes:read_note"]).code, 0);
        let said = pipe.read();
        assert!(said.contains("tool_disabled"), "round {round}: {said}");
        assert_eq!(house.run(&["tools", "enable", "notes:read_note"]).code, 0);
    }
    // The same for a file.
    assert!(is_read(&pipe.read()));
    house.write(CONFIG, &house.read(CONFIG).replace("run_everything", "ask_every_time"));
    let said = pipe.read();
    assert!(said.contains("ask_every_time"), "{said}");
    assert!(eventually(|| reached(&house, "read_note") >= 5));
    assert_eq!(reached(&house, "read_note"), 5, "{}", house.read("reached"));
}

#[test]
fn gate_3_a_revoked_tokens_next_call_at_a_pipe_is_refused() {
    let house = house("", "");
    for round in 1..=4 {
        let (id, token) = issue(&house, &PM);
        let mut pipe = Pipe::start(&house, Some(&token), "one");
        assert!(is_read(&pipe.read()), "round {round}");
        assert_eq!(house.run(&["tokens", "revoke", &id]).code, 0);
        let said = pipe.read();
        assert!(!is_read(&said), "round {round}: {said}");
        drop(pipe);
        assert!(eventually(|| reached(&house, "read_note") >= round));
        assert_eq!(reached(&house, "read_note"), round, "{}", house.read("reached"));
    }
}
