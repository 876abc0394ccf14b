//! Real clients and real servers with the gateway between them: each sees what it would see without it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::house::{FOLLOWED, House, MAY_ASK, PERMISSIVE};
use crate::pairs_table::{
    COMMON_LEGACY, COMMON_MODERN, Door, ONE_BOTH_ERAS, ONE_NODE, PIPE_COMMON, PIPE_COMMON_MODERN, PIPE_ONE, Rows,
};
use crate::peers::{
    Client, Listening, Seen, Target, ask, everything_over_http, fixture_command, fixture_of, fixture_over_http,
    server_command, server_table,
};
use crate::processes::run;

/// What the memory server remembers.
const MEMORY: &str = "{\"type\":\"entity\",\"name\":\"gate\",\"entityType\":\"thing\",\"observations\":[\"shut\"]}\n";

/// The servers of one test, reachable without the gateway.
struct Servers {
    targets: BTreeMap<&'static str, Target>,
    _listening: Vec<Listening>,
}

impl Servers {
    fn start(house: &House, names: impl Iterator<Item = &'static str>) -> Self {
        let mut servers = Self { targets: BTreeMap::new(), _listening: Vec::new() };
        for name in names {
            if !servers.targets.contains_key(name) {
                let target = servers.target(house, name);
                servers.targets.insert(name, target);
            }
        }
        servers
    }

    fn target(&mut self, house: &House, name: &str) -> Target {
        match name {
            "everything-http" => self.listen(everything_over_http(house, "streamableHttp")),
            "everything-sse" => self.listen(everything_over_http(house, "sse")),
            "modern" | "legacy" => self.listen(fixture_of(house, "http", name)),
            "modern-child" | "legacy-child" => {
                let era = ["--era".to_owned(), name.trim_end_matches("-child").to_owned()];
                Target::Command(fixture_command(house).into_iter().chain(era).collect())
            }
            "fixture" => self.listen(fixture_over_http(house)),
            "fixture-child" => Target::Command(fixture_command(house)),
            "everything" => Target::Command(server_command("everything", &["stdio"])),
            "filesystem" => Target::Command(server_command("filesystem", &[&house.shown("space")])),
            "memory" => {
                let file = format!("MEMORY_FILE_PATH={}", house.shown("memory.jsonl"));
                let words = ["env".to_owned(), file].into_iter().chain(server_command("memory", &[]));
                Target::Command(words.collect())
            }
            other => Target::Command(server_command(other, &[])),
        }
    }

    fn listen(&mut self, listening: Listening) -> Target {
        let target = Target::Url(listening.url.clone());
        self._listening.push(listening);
        target
    }

    fn config(&self) -> String {
        let table = |(name, target): (&&str, &Target)| format!("{}{MAY_ASK}{FOLLOWED}", server_table(name, target));
        let tables = self.targets.iter().map(table);
        format!("{PERMISSIVE}{}", tables.collect::<String>())
    }
}

/// The tool that is called on a server, and its arguments.
fn call(house: &House, server: &str) -> (&'static str, Value) {
    match server {
        "everything" => ("echo", json!({"message": "Grüße über die Leitung"})),
        "everything-http" | "everything-sse" => ("get-sum", json!({"a": 2, "b": 40})),
        "filesystem" => ("read_text_file", json!({"path": house.shown("space/note.txt")})),
        "memory" => ("read_graph", json!({})),
        "git" => ("git_log", json!({"repo_path": house.shown("space/repository"), "max_count": 1})),
        "time" => ("convert_time", json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"})),
        _ => ("test_echo", json!({"number": 1.50, "text": "a\u{2028}b", "nested": {"list": [null, true]}})),
    }
}

/// A repository whose one commit is the same in every run.
fn make_repository(house: &House) {
    house.write("space/repository/file.txt", "text\n");
    for arguments in [
        ["init", "--quiet", ".", "--initial-branch=main"].as_slice(),
        &["add", "file.txt"],
        &["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "--quiet", "-m", "First"],
    ] {
        let mut command = house.command("git");
        command.args(arguments).current_dir(house.path("space/repository"));
        let ran = run(&mut command, Duration::from_secs(20));
        assert_eq!(ran.code, 0, "{}", ran.err);
    }
}

/// What of a client's report must be the same. Dates are times; the common door is a server of its own name,
/// whose tools carry their server's.
fn comparable(seen: &Seen, door: Door, prefix: &str) -> Value {
    let mut report = seen.0.clone();
    let tools: Vec<String> = seen.tools();
    if let Some(report) = report.as_object_mut() {
        let own = tools.iter().filter_map(|tool| tool.strip_prefix(prefix));
        report.insert("tools".to_owned(), own.collect());
        if door.is_common() {
            report.remove("server");
            report.remove("protocol");
            if let Some(result) = report.get_mut("result").and_then(Value::as_object_mut) {
                without_server(result);
            }
        }
    }
    if let Some(result) = report.get_mut("result") {
        *result = serde_json::from_str(&without_dates(&result.to_string())).unwrap_or_default();
    }
    report
}

/// What must be the same where the gateway stands between two eras. A tool that runs only as a task of the
/// older form cannot be offered to a modern client.
fn across(report: &mut Value) {
    let Some(report) = report.as_object_mut() else { return };
    // The Python client knows its server's name only where it asked for it.
    for own in ["protocol", "client", "mode", "server"] {
        report.remove(own);
    }
    if let Some(result) = report.get_mut("result").and_then(Value::as_object_mut) {
        without_server(result);
        // The Inspector leaves it in the results of whoever knows tasks, as the gateway does.
        if result.get("resultType").is_some_and(|kind| kind == "complete") {
            result.remove("resultType");
        }
    }
    if let Some(tools) = report.get_mut("tools").and_then(Value::as_array_mut) {
        tools.retain(|tool| tool != "simulate-research-query");
    }
}

/// A modern result says which server it is from; behind the common door that may be left out or be ours.
fn without_server(result: &mut Map<String, Value>) {
    let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) else { return };
    meta.remove("io.modelcontextprotocol/serverInfo");
    if meta.is_empty() {
        result.remove("_meta");
    }
}

/// `2026-11-16` becomes `D`, so that midnight may come between two runs; days of the week likewise.
fn without_dates(text: &str) -> String {
    let mut text = text.to_owned();
    for day in ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"] {
        text = text.replace(day, "DAY");
    }
    let is_date = |word: &str| {
        let pattern = "dddd-dd-dd";
        word.len() == pattern.len()
            && word.chars().zip(pattern.chars()).all(|(letter, kind)| letter.is_ascii_digit() == (kind == 'd'))
    };
    let words = text.split_inclusive(|letter: char| !letter.is_ascii_digit() && letter != '-');
    let mut kept = String::new();
    for word in words {
        let (body, end) = word.split_at(word.trim_end_matches(|letter: char| !letter.is_ascii_digit()).len());
        kept.push_str(if is_date(body) { "DATE" } else { body });
        kept.push_str(end);
    }
    kept
}

/// Lets every client of the table call its server, with and without the gateway.
pub fn meet(door: Door, rows: Rows) {
    let rows: Vec<_> = rows.iter().map(|(client, server)| (*client, *client, *server)).collect();
    meet_beside(door, &rows);
}

/// The same where another client says what is seen without the gateway.
pub fn meet_beside(door: Door, rows: &[(Client, Client, &'static str)]) {
    let house = House::new("");
    make_repository(&house);
    house.write("memory.jsonl", MEMORY);
    let servers = Servers::start(&house, rows.iter().map(|(_, _, server)| *server));
    house.configure(&servers.config());
    let gateway = (!matches!(door, Door::PipeOne | Door::PipeCommon)).then(|| house.serve());
    let base = gateway.as_ref().map(|gateway| gateway.url("")).unwrap_or_default();
    let mut failures = Vec::new();
    for (client, beside, server) in rows {
        if let Err(failure) = compare(&house, &servers, (door, &base), (*client, *beside), server) {
            failures.push(failure);
        }
    }
    if let Some(gateway) = gateway {
        gateway.stop();
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
    house.audited();
}

/// What a client sees without the gateway. None of them speaks the oldest HTTP transport by itself; the same
/// server over pipes says the same.
fn directly(house: &House, client: Client, options: &[&str], server: &str, target: &Target) -> Seen {
    match server {
        "everything-sse" => ask(house, client, options, &Target::Command(server_command("everything", &["stdio"]))),
        _ => ask(house, client, options, target),
    }
}

fn compare(
    house: &House,
    servers: &Servers,
    (door, base): (Door, &str),
    (client, beside): (Client, Client),
    server: &str,
) -> Result<(), String> {
    let Some(target) = servers.targets.get(server) else { return Err(format!("no server {server}")) };
    let (tool, arguments) = call(house, server);
    let arguments = arguments.to_string();
    // Calls made past the gateway have no intent.
    let record = house.read("record");
    let direct = directly(house, beside, &["--tool", tool, "--args", &arguments], server, target);
    house.write("record", &record);
    let prefix = if door.is_common() { format!("{server}__") } else { String::new() };
    let named = format!("{prefix}{tool}");
    let through = ask(house, client, &["--tool", &named, "--args", &arguments], &door.target(base, server));
    let (mut wanted, mut got) = (comparable(&direct, door, ""), comparable(&through, door, &prefix));
    if direct.at("/protocol") != through.at("/protocol") || client != beside {
        // A client of both eras meets a server of one: the gateway speaks its newer one.
        across(&mut wanted);
        across(&mut got);
    }
    let is_sound = wanted.get("error").is_none() && wanted.get("result").is_some();
    if wanted == got && is_sound && direct.tools().iter().any(|name| name == tool) {
        return Ok(());
    }
    Err(format!("{client:?} calls {server} at {door:?}{}", difference(&wanted, &got)))
}

/// The members that two reports do not agree on.
fn difference(wanted: &Value, got: &Value) -> String {
    let keys = [wanted, got].into_iter().filter_map(Value::as_object).flat_map(Map::keys);
    let keys: BTreeSet<&String> = keys.filter(|key| wanted.get(*key) != got.get(*key)).collect();
    let shown = |value: Option<&Value>| value.map_or("nothing".to_owned(), Value::to_string);
    let lines = keys.into_iter().map(|key| {
        format!("\n  {key}\n    directly: {}\n    through:  {}", shown(wanted.get(key)), shown(got.get(key)))
    });
    lines.collect()
}

#[test]
fn clients_reach_node_servers_at_their_own_doors() {
    meet(Door::One, ONE_NODE);
}

#[test]
fn clients_of_both_eras_reach_servers_at_their_own_doors() {
    meet(Door::One, ONE_BOTH_ERAS);
}

#[test]
fn legacy_clients_reach_all_servers_at_the_common_door() {
    meet(Door::Common, COMMON_LEGACY);
}

#[test]
fn modern_clients_reach_all_servers_at_the_common_door() {
    meet(Door::Common, COMMON_MODERN);
}

#[test]
fn clients_reach_one_server_over_pipes() {
    meet(Door::PipeOne, PIPE_ONE);
}

#[test]
fn clients_reach_all_servers_over_pipes() {
    meet(Door::PipeCommon, PIPE_COMMON);
}

#[test]
fn modern_clients_reach_all_servers_over_pipes() {
    meet(Door::PipeCommon, PIPE_COMMON_MODERN);
}
