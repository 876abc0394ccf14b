//! Random calls: MCP tools and other operations, command lines, URLs, arguments, and what surrounds them.

use std::sync::Arc;

use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Call, Door, Operation};
use toolwarden_policy::{Definition, Launcher, Query, Transport};

use crate::generate_lines::{line, pick as pick_of};
use crate::tape::Tape;

pub const TOOLS: [&str; 13] = [
    "get",
    "db.read",
    "api.call",
    "web.fetch",
    "artifact.get",
    "db.write",
    "Get",
    "DB.Read",
    "skills.list",
    "sandbox.allowed_images.add",
    "bad:name",
    "a/b",
    "line\nbreak",
];

pub const SHELL_ENTRIES: [&str; 15] = [
    "git:status",
    "git",
    "npm:install*",
    "ls",
    "ls:",
    "echo",
    "cat",
    "grep",
    "cargo test",
    "rm",
    "*",
    "",
    "git:p*main",
    "./git",
    "find",
];

const URLS: [&str; 17] = [
    "https://a.test/",
    "https://evil.test../",
    "custom://EVIL.test./",
    "http://evil.test/x",
    "https://sub.evil.test/",
    "https://EVIL.test/",
    "https://evil.test./",
    "https://notevil.test/",
    "https://evil.test@a.test/",
    "https://a@evil.test:8443/",
    "https://example.com/a",
    "ftp://a.test/",
    "file:///etc/passwd",
    "not a url",
    "",
    "https://",
    "https://127.0.0.1/",
];

/// What an argument may name, and what it may run; most of it harmless.
const NAMED: [&str; 34] = [
    "src/main.rs",
    "/w",
    "/home/ann/.config/toolwarden/toolwarden.toml",
    "~/.config/toolwarden",
    "$HOME/.config/toolwarden/x",
    "file:///home/ann/.config/toolwarden",
    "file://localhost/home/ann/%2Econfig/toolwarden",
    "../home/ann/.config/toolwarden",
    "/home//ann/x/../.config/./toolwarden/y",
    "/HOME/ANN/.CONFIG/Toolwarden",
    ".config/toolwarden",
    "elsewhere/.config/toolwarden/x",
    "/home/ann/.config",
    "/home/ann",
    "/home",
    "/",
    "~",
    "/home/ann/.config/toolwarden2",
    "/home/ann/.config/other",
    "toolwarden",
    "echo x > ~/.config/toolwarden/x",
    "see /home/ann/.config/toolwarden.",
    "open('/home/ann/.config/toolwarden/x')",
    "%252fhome%252fann%252f.config%252ftoolwarden",
    "toolwarden allow db:get",
    "toolwarden explain db:get",
    "sh -c 'toolwarden trust .'",
    "toolwarden is a gate",
    "don't; toolwarden approvals approve 1",
    "rm -rf ~/.config",
    "allow",
    "the .config directory",
    "~/.config/tool\"\"warden",
    "..",
];

/// What an entry over arguments may let through, and what only looks so.
const SPOTS: [&str; 21] = [
    "\"src\"",
    "\"src/a/b\"",
    "\"src/../a\"",
    "\"src-evil/a\"",
    "\"./src/a\"",
    "\"/src/a\"",
    "\"src/%2e%2e/a\"",
    "\"src/\\uff0e\\uff0e/a\"",
    "\"https://a.test/x\"",
    "\"https://A.test:443\"",
    "\"a.test\"",
    "\"https://a.test@b.test/\"",
    "\"https://a.test:8443/\"",
    "\"https://a.test./\"",
    "\"src/.a\"",
    "{\"in\":5}",
    "{\"in\":0.5e1}",
    "{\"in\":\"5\"}",
    "{\"in\":5,\"at\":1}",
    "[\"src/a\"]",
    "{}",
];

/// A call and the door it comes in by.
pub fn call(tape: &mut Tape<'_>) -> (Call, Door) {
    let door = tape.pick(Door::Mcp, &[Door::Mcp, Door::Explain, Door::Decide]);
    let call = match tape.byte() % 16 {
        0..=10 => tool_call(tape),
        11 | 12 => Call::operation(server(tape), operation(tape), arguments(tape)),
        13 | 14 => Call::shell(line(tape), tape.chance(30).then(|| tape.pick("/w/sub", &["/w", "/"]).into())),
        _ => Call::fetch(pick_of(tape, &URLS)),
    };
    (call, door)
}

fn tool_call(tape: &mut Tape<'_>) -> Call {
    if tape.chance(8) {
        return own_tool(tape);
    }
    let server = server(tape);
    let tool = match tape.chance(70) {
        true => tape.pick("get", &["db.read", "api.call", "artifact.get", "db.write", "get", "web.fetch"]),
        false => tape.pick(
            "GET",
            &["Api.Call", "unlisted", "help.me", "resources/read"].iter().chain(&TOOLS).copied().collect::<Vec<_>>(),
        ),
    };
    Call::mcp(server, tool, arguments(tape))
}

/// Toolwarden's own tools, by name, in any case.
fn own_tool(tape: &mut Tape<'_>) -> Call {
    let server = tape.pick("builtin", &["builtin", "Builtin"]);
    let tool = tape.pick("shell.run", &["web.fetch", "Shell.Run", "WEB.fetch", "get"]);
    let mut members = vec![format!("\"command\":{}", quoted(&line(tape)))];
    members.push(format!("\"url\":{}", quoted(pick_of(tape, &URLS))));
    if tape.chance(30) {
        members.push("\"cwd\":\"/w/sub\"".to_owned());
    }
    Call::mcp(server, tool, document(&format!("{{{}}}", members.join(","))))
}

fn server(tape: &mut Tape<'_>) -> &'static str {
    match tape.chance(70) {
        true => tape.pick("db", &["web", "db", "web", "cursor-ide-browser"]),
        false => tape.pick(
            "DB",
            &["Db", "Cursor-IDE-Browser", "builtin", "custom-user-tools", "ghost", "WEB", "\u{ff44}b", "b:d"],
        ),
    }
}

fn operation(tape: &mut Tape<'_>) -> Operation {
    tape.pick(Operation::ReadResource, &[Operation::ReadResource, Operation::GetPrompt, Operation::Complete])
}

fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

pub fn document(text: &str) -> Option<Arc<Document>> {
    Document::parse(text.to_owned(), Limits::DEFAULT).ok().map(Arc::new)
}

/// An object of a few known keys; now and then nothing, or no object.
pub fn arguments(tape: &mut Tape<'_>) -> Option<Arc<Document>> {
    if !tape.chance(92) {
        return tape.chance(10).then(|| document("[]")).flatten();
    }
    let mut members: Vec<String> = Vec::new();
    let mut add = |tape: &mut Tape<'_>, percent: u32, key: &str, simplest: &str, others: &[&str]| {
        if tape.chance(percent) {
            members.push(format!("\"{key}\":{}", tape.pick(simplest, others)));
        }
    };
    add(tape, 75, "task_id", "\"t1\"", &["\"t1\"", "\"t1\"", "\"t2\"", "1"]);
    for key in ["run_id", "job_id", "project_id"] {
        add(tape, 40, key, "\"t1\"", &["\"t1\"", "\"t2\""]);
    }
    add(tape, 50, "k", "\"v\"", &["\"w\"", "5", "5.0", "50e-1", "[5]", "null"]);
    add(tape, 60, "n", "2", &["7", "7", "\"x\"", "7.0", "0.7E+1", "2.5", "null", "1e300"]);
    add(tape, 50, "table", "\"findings\"", &["\"findings.a\"", "\"other\"", "5", "5e0"]);
    add(tape, 6, "deep", "[[[[1]]]]", &[]);
    add(
        tape,
        6,
        "big",
        "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"",
        &[],
    );
    add(tape, 30, "spot", "\"src/a\"", &SPOTS);
    if tape.chance(12) {
        members.push(naming(tape));
    }
    document(&format!("{{{}}}", members.join(",")))
}

/// A member that may name something of ours: as a text, a key, in a list, deeper.
fn naming(tape: &mut Tape<'_>) -> String {
    let (one, two) = (quoted(pick_of(tape, &NAMED)), quoted(pick_of(tape, &NAMED)));
    match tape.byte() % 5 {
        0 | 1 => format!("\"path\":{one}"),
        2 => format!("\"args\":[{one},{two}]"),
        3 => format!("\"command\":{one},\"arguments\":[{two}]"),
        _ => format!("\"deeper\":{{\"a\":[{{{one}:null}}]}}"),
    }
}

/// What is known around the call.
pub fn surrounded(tape: &mut Tape<'_>, door: Door, ask: impl FnOnce(Transport) -> Query) -> Query {
    let changed =
        tape.chance(10).then(|| tape.pick(Definition::Changed, &[Definition::New, Definition::ServerChanged]));
    let launcher = tape.pick(Launcher::Elsewhere, &[Launcher::Caged]);
    let seen = tape.texts(50, &["reads_untrusted", "reads_private"]);
    let workspace = tape.chance(70).then(|| "/w".into());
    let query = ask(Transport::new(door, workspace)).with_launcher(launcher).with_seen(seen);
    let query = changed.map_or(query.clone(), |definition| query.clone().with_definition(definition));
    // Only `explain` is asked before anybody chose arguments.
    if door == Door::Explain && tape.chance(20) { query.without_arguments() } else { query }
}
