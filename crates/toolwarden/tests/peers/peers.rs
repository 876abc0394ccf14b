//! The programs nobody here wrote, and the fixture server: how tests start them and what they said.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::house::{House, root};
use crate::processes::{Program, run};

/// How long a client may take.
const CLIENT: Duration = Duration::from_secs(90);

/// Where a client connects to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    Url(String),
    Command(Vec<String>),
}

/// A client and the era it is told to speak; the empty mode is for clients that know but one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Client {
    pub name: &'static str,
    pub mode: &'static str,
}

/// The line of JSON a client printed.
#[derive(Debug, Clone)]
pub struct Seen(pub Value);

impl Seen {
    pub fn tools(&self) -> Vec<String> {
        let tools = self.0.get("tools").and_then(Value::as_array).into_iter().flatten();
        tools.filter_map(|tool| tool.as_str().map(str::to_owned)).collect()
    }

    pub fn at(&self, pointer: &str) -> &Value {
        self.0.pointer(pointer).unwrap_or(&Value::Null)
    }

    /// The text of the call's result.
    pub fn text(&self) -> &str {
        self.at("/result/content/0/text").as_str().unwrap_or_default()
    }
}

/// The directory of the installed programs. A test without them fails: skipping would look like passing.
pub fn installed() -> PathBuf {
    let output = Command::new(root().join("tests/peers/install")).arg("--check").output();
    let (ok, said) = output.map_or((false, String::new()), |output| {
        (output.status.success(), String::from_utf8_lossy(&output.stdout).trim().to_owned())
    });
    assert!(ok && Path::new(&said).is_dir(), "the real MCP programs are not installed: run `make peers`");
    PathBuf::from(said)
}

/// `tests/peers/run NAME` in a test's home.
pub fn peer(house: &House, name: &str) -> Command {
    let mut command = house.command(root().join("tests/peers/run"));
    command.arg(name).env("TOOLWARDEN_PEERS", installed());
    command
}

/// The command line of a server that a client or the gateway starts.
pub fn server_command(name: &str, arguments: &[&str]) -> Vec<String> {
    let run = root().join("tests/peers/run").to_string_lossy().into_owned();
    [run, name.to_owned()].into_iter().chain(arguments.iter().map(|one| (*one).to_owned())).collect()
}

/// Runs a client: it connects, lists the tools, and does what `options` say.
pub fn ask(house: &House, client: Client, options: &[&str], target: &Target) -> Seen {
    let mut command = peer(house, client.name);
    if !client.mode.is_empty() {
        command.args(["--mode", client.mode]);
    }
    command.args(options);
    match target {
        Target::Url(url) => command.arg(url),
        Target::Command(words) => command.arg("--").args(words),
    };
    let ran = run(&mut command, CLIENT);
    let line = ran.out.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let parsed = serde_json::from_str(line);
    assert!(parsed.is_ok(), "{client:?} at {target:?} printed no JSON\n{}", ran.err);
    Seen(parsed.unwrap_or_default())
}

/// The fixture server's program, which stands beside ours.
pub fn fixture_program() -> String {
    let path = Path::new(env!("CARGO_BIN_EXE_toolwarden")).with_file_name("toolwarden-fixture-server");
    assert!(path.is_file(), "the fixture server is not built: run `cargo build -p toolwarden-fixture-server`");
    path.to_string_lossy().into_owned()
}

/// The fixture server as a child that speaks over its pipes, with a record in the test's home.
pub fn fixture_command(house: &House) -> Vec<String> {
    vec![fixture_program(), "stdio".to_owned(), "--record".to_owned(), house.shown("record")]
}

/// A server in the background and where it listens.
pub struct Listening {
    pub url: String,
    _program: Program,
}

/// The fixture server over HTTP, with a record in the test's home.
pub fn fixture_over_http(house: &House) -> Listening {
    fixture_of(house, "http", "both")
}

/// The fixture server as one that speaks one era, over `http` or over `sse`.
pub fn fixture_of(house: &House, transport: &str, era: &str) -> Listening {
    let mut command = house.command(fixture_program());
    let command = command.args([transport, "--port", "0", "--era", era, "--record"]).arg(house.path("record"));
    let program = Program::start(command);
    let line = program.line_with("listening on ").unwrap_or_default();
    let url = line.trim_start_matches("listening on ").to_owned();
    assert!(url.starts_with("http://"), "the fixture server did not start\n{}", program.log());
    Listening { url, _program: program }
}

/// The reference server over HTTP. It cannot say which port the system chose, so it is given a free one,
/// and another if somebody was faster.
pub fn everything_over_http(house: &House, transport: &str) -> Listening {
    for _ in 0..5 {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_or(0, |address| address.port());
        let mut command = peer(house, "everything");
        let program = Program::start(command.arg(transport).env("PORT", port.to_string()));
        if program.line_with("on port").is_some() {
            let path = if transport == "sse" { "sse" } else { "mcp" };
            return Listening { url: format!("http://127.0.0.1:{port}/{path}"), _program: program };
        }
    }
    unreachable!("the reference server found no free port")
}

/// A `[servers.NAME]` table; lines that follow belong to it.
pub fn server_table(name: &str, target: &Target) -> String {
    // A JSON string is a TOML string.
    let quoted = |text: &str| Value::from(text).to_string();
    match target {
        Target::Url(url) => format!("[servers.{name}]\nurl = {}\n", quoted(url)),
        Target::Command(words) => {
            let arguments: Vec<String> = words.iter().skip(1).map(|word| quoted(word)).collect();
            let program = words.first().map(String::as_str).unwrap_or_default();
            let peers = installed().to_string_lossy().into_owned();
            format!(
                "[servers.{name}]\ncommand = {}\nargs = [{}]\nenv = {{ TOOLWARDEN_PEERS = {} }}\n",
                quoted(program),
                arguments.join(", "),
                quoted(&peers)
            )
        }
    }
}
