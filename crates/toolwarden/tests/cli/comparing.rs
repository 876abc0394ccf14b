//! `tools list|diff|accept` as a person meets them who looks for something: what is unknown is said to be, what
//! waits goes on waiting, and what is shown can be read.

use serde_json::{Value, json};

use crate::house::House;
use crate::server::{Server, eventually};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const PINS: &str = "home/.local/share/toolwarden/pins";

/// A server that lists what stands in a file of the workspace.
const SCRIPT: &str = r#"
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case $line in
    *'"initialize"'*) said='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}' ;;
    *'"tools/list"'*) said='"result":{"tools":'"$(cat tools.json)"'}' ;;
    *'"notifications/'*) continue ;;
    *) said='"error":{"code":-32601,"message":"unknown"}' ;;
  esac
  printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"','"$said"'}'
done
"#;

fn config(more: &str) -> String {
    format!(
        "[auto_run]\nmode = \"run_everything\"\n[servers.notes]\ncommand = \"/bin/sh\"\nargs = [\"-c\", '''{SCRIPT}''']\n{more}"
    )
}

fn tool(name: &str, description: &str) -> Value {
    json!({ "name": name, "description": description, "inputSchema": { "type": "object" } })
}

fn offers(house: &House, tools: &[Value]) {
    house.write("space/tools.json", &json!(tools).to_string());
}

/// The server listed `echo` and `slow`, and lists this now.
fn after(house: &House, later: &[Value]) -> Server {
    house.write(CONFIG, &config(""));
    offers(house, &[tool("echo", "Says it."), tool("slow", "Waits.")]);
    let server = Server::start(house);
    offers(house, later);
    server.tools();
    server
}

/// The versions that wait of a tool.
fn waiting(house: &House, definition: &str) -> Vec<String> {
    let json = house.json(&["tools", "diff", definition]);
    let versions = json.pointer("/definitions/0/waiting").and_then(Value::as_array).cloned().unwrap_or_default();
    versions.iter().filter_map(|one| Some(one.get("version")?.as_str()?.to_owned())).collect()
}

fn said(house: &House, arguments: &[&str]) -> (i32, String) {
    let ran = house.run(arguments);
    (ran.code, format!("{}{}", ran.out, ran.err))
}

#[test]
fn gate_12_what_is_unknown_is_said_to_be_unknown_and_what_is_accepted_that_nothing_waits() {
    let house = House::new();
    let server = after(&house, &[tool("echo", "Shouts it."), tool("slow", "Waits.")]);
    server.stop();
    let no_server = "nothing was seen of a server called `nope`; seen are: notes";
    for command in [vec!["tools", "diff", "nope"], vec!["tools", "diff", "nope:x"], vec!["tools", "list", "nope"]] {
        let (code, words) = said(&house, &command);
        assert!(code == 2 && words.contains(no_server), "{command:?}: {code} {words}");
    }
    for command in [vec!["tools", "accept", "nope"], vec!["tools", "accept", "nope:x"]] {
        let (code, words) = said(&house, &command);
        assert!(code == 2 && words.contains(no_server), "{command:?}: {code} {words}");
    }
    for command in [["tools", "diff", "notes:nope"], ["tools", "accept", "notes:nope"]] {
        let (code, words) = said(&house, &command);
        let expected = "nothing was seen of notes called `nope`; seen are: server/launch, echo, slow";
        assert!(code == 2 && words.contains(expected), "{command:?}: {code} {words}");
    }
    let (code, words) = said(&house, &["tools", "diff", "notes:slow"]);
    assert_eq!((code, words.as_str()), (0, "notes:slow: nothing waits (1 other definition of notes does)\n"));
    let (code, words) = said(&house, &["tools", "accept", "notes:echo", "--version", "ffff"]);
    let version = waiting(&house, "notes:echo").concat();
    let expected = format!("no version ffff of notes:echo waits; waiting: {version}\n");
    assert!(code == 2 && version.len() == 32 && words.ends_with(&expected), "{words}");
    assert_eq!(house.run(&["tools", "accept", "notes:echo"]).code, 0);
    assert_eq!(said(&house, &["tools", "diff", "notes:slow"]), (0, "notes:slow: nothing waits\n".to_owned()));
    assert_eq!(said(&house, &["tools", "diff", "notes"]), (0, "notes: nothing waits\n".to_owned()));
}

#[test]
fn gate_12_what_was_not_accepted_goes_on_waiting_beside_what_was() {
    let house = House::new();
    let server = after(&house, &[tool("echo", "Shouts it.")]);
    offers(&house, &[tool("echo", "Sings it.")]);
    server.tools();
    let versions = waiting(&house, "notes:echo");
    let diff = house.run(&["tools", "diff", "notes:echo"]).out;
    let ([first, second], 1) = (versions.as_slice(), diff.matches("offered now").count()) else {
        unreachable!("two versions wait, and one of them is offered: {diff}")
    };
    assert!(diff.contains(&format!("version {second}, offered now")), "{diff}");
    let all = house.run(&["tools", "diff", "notes"]).out;
    assert!(!all.contains("Accept all") && all.contains(&format!("accept notes:echo --version {first}")), "{all}");
    let accepted = house.run(&["tools", "accept", "notes:echo", "--version", first]);
    assert!(accepted.code == 0 && accepted.out.contains("another version of notes:echo waits"), "{}", accepted.out);
    let diff = house.run(&["tools", "diff", "notes:echo"]).out;
    assert!(diff.contains("- description: Shouts it.") && diff.contains("+ description: Sings it."), "{diff}");
    assert_eq!(waiting(&house, "notes:echo"), std::slice::from_ref(second));
    server.stop();
}

#[test]
fn json_tells_the_state_after_an_acceptance_and_the_digest_that_accepts_all() {
    let house = House::new();
    let server = after(&house, &[tool("echo", "Shouts it."), tool("late", "Comes later.")]);
    server.stop();
    let shown = house.json(&["tools", "diff", "notes"]);
    let digest = shown.pointer("/waiting/notes").and_then(Value::as_str).unwrap_or_default().to_owned();
    assert!(house.json(&["tools", "diff", "notes:echo"]).pointer("/waiting/notes").is_none(), "it was not shown whole");
    let accepted = house.json(&["tools", "accept", "notes", "--version", &digest]);
    let seen: Vec<Value> = accepted.as_array().cloned().unwrap_or_default();
    let states: Vec<String> = seen
        .iter()
        .map(|one| {
            let part = |key: &str| one.get(key).cloned().unwrap_or_default().to_string();
            [part("name"), part("standing"), part("accepted"), part("waiting")].join(" ")
        })
        .collect();
    assert_eq!(states, [r#""echo" "accepted" 2 []"#, r#""late" "accepted" 1 []"#]);
}

#[test]
fn servers_that_are_no_longer_configured_and_tools_that_are_no_longer_listed_are_marked() {
    let house = House::new();
    let server = after(&house, &[tool("echo", "Says it.")]);
    let standing = |name: &str| {
        let listed = house.run(&["tools", "list"]).out;
        listed.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned()
    };
    assert!(eventually(|| standing("notes:slow").contains(" gone ")), "{}", standing("notes:slow"));
    assert!(standing("notes:echo").contains(" accepted "));
    offers(&house, &[tool("echo", "Says it."), tool("slow", "Waits.")]);
    server.tools();
    assert!(eventually(|| standing("notes:slow").contains(" accepted ")), "{}", standing("notes:slow"));
    offers(&house, &[tool("slow", "Waits.")]);
    server.tools();
    server.stop();
    assert!(standing("notes:echo").contains(" gone "), "it is kept when the gateway stops: {}", standing("notes:echo"));
    house.write(CONFIG, "");
    assert!(standing("notes:echo").contains(" not configured "), "{}", standing("notes:echo"));
}

#[test]
fn gate_12_whoever_follows_takes_over_what_waited_before() {
    let house = House::new();
    let server = after(&house, &[tool("echo", "Shouts it."), tool("late", "Comes later.")]);
    server.stop();
    assert!(house.run(&["tools", "diff"]).out.contains("notes:late is new"));
    house.write(CONFIG, &config("definitions = \"follow\"\n"));
    let server = Server::start(&house);
    let shown = server.tools();
    assert!(shown.contains("Shouts it.") && shown.contains("Comes later."), "{shown}");
    assert!(house.run(&["tools", "diff"]).out.starts_with("nothing waits"));
    server.stop();
}

/// The pins of a server that was seen, as a file of the house.
fn pins_of(house: &House, server: &str) -> String {
    let files = std::fs::read_dir(house.path(PINS)).into_iter().flatten().flatten();
    let name = |file: std::fs::DirEntry| file.file_name().into_string().ok();
    let found = files.filter_map(name).find(|name| name.starts_with(&format!("{server}-")));
    format!("{PINS}/{}", found.unwrap_or_default())
}

#[test]
fn a_record_that_cannot_be_read_is_said_once_and_bars_no_other_server() {
    let house = House::new();
    let other = "[servers.other]\ncommand = \"/bin/true\"\n";
    house.write(CONFIG, &config(other));
    offers(&house, &[tool("echo", "Says it.")]);
    let server = Server::start(&house);
    let path = pins_of(&house, "notes");
    let sound = house.read(&path);
    house.write(&path, "{");
    let next = "move it away: then everything the server offers is accepted as found when it is next seen";
    let errors = || house.read("server.log").matches(next).count();
    assert!(eventually(|| errors() > 0), "{}", house.read("server.log"));
    // Long enough for it to be looked at again.
    std::thread::park_timeout(std::time::Duration::from_secs(2));
    assert_eq!(errors(), 1, "{}", house.read("server.log"));
    let (code, words) = said(&house, &["tools", "list", "other"]);
    assert!(code == 0 && words.contains("other:server/launch"), "{words}");
    let (code, words) = said(&house, &["tools", "list", "notes"]);
    assert!(code == 1 && words.contains(next), "{words}");
    let (code, words) = said(&house, &["tools", "list"]);
    assert!(code == 1 && words.contains(next) && words.contains("other:server/launch"), "{words}");
    house.write(&path, &sound);
    assert!(eventually(|| house.run(&["tools", "list"]).code == 0));
    assert!(std::fs::remove_file(house.path(&path)).is_ok());
    let words = "what was accepted of notes is gone";
    assert!(eventually(|| house.read("server.log").contains(words)), "{}", house.read("server.log"));
    server.stop();
}

#[test]
fn a_comparison_is_lines_and_parameters_not_escapes_and_pointers() {
    let house = House::new();
    house.write(CONFIG, &config(""));
    let with =
        |description: &str, schema: Value| json!({ "name": "echo", "description": description, "inputSchema": schema });
    let before = json!({
        "type": "object",
        "properties": { "text": { "type": "string", "description": "What to say" }, "pace": { "type": "integer" },
                        "mode": { "enum": ["low"] } },
        "required": ["pace", "text"]
    });
    let later = json!({
        "type": "object",
        "properties": { "text": { "type": "string", "description": "What to shout" },
                        "key": { "type": "string", "description": "The private key" }, "mode": { "enum": ["low", "high"] } },
        "required": ["text", "key"]
    });
    offers(&house, &[with("Says it.\nOnce.\u{1b}\nNo more.", before)]);
    let server = Server::start(&house);
    offers(&house, &[with("Says it.\nTwice.\u{7}\nNo more.", later)]);
    server.tools();
    let diff = house.run(&["tools", "diff", "notes:echo"]).out;
    let lines: Vec<&str> = diff.lines().skip(1).take_while(|line| !line.is_empty()).collect();
    let expected = [
        "  - description:",
        "  -   …",
        "  -   Once.\\u{1b}",
        "  -   …",
        "  + description:",
        "  +   …",
        "  +   Twice.\\u{7}",
        "  +   …",
        "  + parameter key (string, required): The private key",
        "  - parameter pace (integer, required)",
        "  - parameter text (string, required): What to say",
        "  + parameter text (string, required): What to shout",
        "  + inputSchema/properties/mode/enum/1: high",
    ];
    assert_eq!(lines, expected, "{diff}");
    let log = house.read("server.log");
    let words = "notes:echo changed and waits for a person; see `toolwarden tools diff notes:echo`";
    assert!(log.contains(words), "{log}");
    let json = house.run(&["tools", "diff", "notes:echo", "--json"]).out;
    assert!(json.contains("inputSchema/properties/pace/type") && !json.contains("told"), "{json}");
    server.stop();
}

#[test]
fn lists_have_headings_and_columns_as_wide_as_what_stands_in_them() {
    let house = House::new();
    let long = "A description\nthat goes on ".to_owned() + &"and on ".repeat(30);
    let server =
        after(&house, &[tool("echo", "Shouts it."), tool("slow", "Waits."), tool("a_tool_of_a_long_name", &long)]);
    server.stop();
    let listed = house.run(&["tools", "list"]).out;
    let lines: Vec<&str> = listed.lines().collect();
    let column = |line: &str, word: &str| line.find(word);
    let [heading, launch, long, echo, ..] = lines.as_slice() else { unreachable!("four lines: {listed}") };
    assert_eq!(heading.split_whitespace().collect::<Vec<_>>(), ["DEFINITION", "STANDING", "ACCEPTED", "DESCRIPTION"]);
    assert_eq!(column(heading, "STANDING"), column(launch, "accepted"), "{listed}");
    assert_eq!(column(heading, "ACCEPTED"), column(echo, "first seen"), "{listed}");
    assert_eq!(column(heading, "DESCRIPTION"), column(launch, "/bin/sh -c"), "{listed}");
    assert!(long.starts_with("notes:a_tool_of_a_long_name") && long.contains("A description that"), "{listed}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80) && long.ends_with('…'), "{listed}");
    let servers = house.run(&["servers", "list"]).out;
    let heading = servers.lines().next().unwrap_or_default();
    assert_eq!(heading.split("  ").filter(|part| !part.is_empty()).count(), 4, "{servers}");
    assert!(heading.starts_with("NAME ") && heading.ends_with("CONFIGURED IN"), "{servers}");
}
