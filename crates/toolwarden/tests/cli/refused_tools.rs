//! A rule that does not fit the tools a server lists: they are refused, and everything says so and why.

use serde_json::Value;

use crate::house::House;
use crate::server::{Server, eventually};
use crate::terminal::Terminal;

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const RULE: &str = "@id(\"no-big-notes\")\nforbid (principal, action, resource == Mcp::Tool::\"notes:read_note\")\n\
                    when { context.arguments.size > 1000 };\n";

#[test]
fn gate_10_a_rule_that_does_not_fit_a_tool_is_named_wherever_its_server_is() {
    let house = House::new();
    house.write(CONFIG, "[rules]\nfiles = [\"../../r.cedar\"]\n").write("home/r.cedar", "// none\n");
    // Its tools are seen.
    Server::start(&house).stop();
    house.write("home/r.cedar", RULE);
    let server = Server::start_with(&house, &[]);
    let names_it = |text: &str| text.contains("no-big-notes") && text.contains("r.cedar:1");
    let log = house.read("server.log");
    let line = log.lines().find(|line| line.contains("ERROR")).unwrap_or_default();
    assert!(names_it(line) && line.contains("server=notes"), "{log}");
    let listed = house.json(&["servers", "list"]);
    let detail = listed.pointer("/0/detail").and_then(Value::as_str).unwrap_or_default();
    assert!(names_it(detail) && detail.contains("`toolwarden rules check`"), "{listed}");
    assert!(listed.pointer("/0/tools_refused").and_then(Value::as_str).is_some_and(names_it), "{listed}");
    let shown = house.run(&["servers", "show", "notes"]).out;
    assert!(names_it(&shown) && !shown.contains("first client"), "{shown}");
    assert!(house.json(&["servers", "show", "notes"]).get("tools_refused").is_some());
    let page = server.page("/readyz");
    assert!(page.contains("\"servers_with_refused_tools\":[\"notes\"]"), "{page}");
    let doctor = house.run(&["doctor"]).out;
    assert!(!doctor.contains("judges by the policy of these files"), "{doctor}");
    let lines: Vec<&str> = doctor.lines().filter(|line| line.starts_with("PROBLEM  server notes now")).collect();
    assert!(lines.len() == 1 && lines.iter().all(|line| names_it(line)), "{doctor}");
    // A rule that fits lets them be used again.
    house.write("home/r.cedar", &RULE.replace("context.arguments.size > 1000", "context.arguments.name == \"x\""));
    assert!(eventually(|| server.tools().contains("read_note")), "{}", house.read("server.log"));
    assert!(!house.run(&["servers", "list"]).out.contains("refused"));
    assert!(server.page("/readyz").contains("\"servers_with_refused_tools\":[]"));
    server.stop();
}

#[test]
fn a_server_on_a_terminal_puts_no_colours_into_what_is_told_elsewhere() {
    let house = House::new();
    house.write(CONFIG, "[rules]\nfiles = [\"../../r.cedar\"]\n").write("home/r.cedar", "// none\n");
    let terminal = Terminal::start(&house, "serve --demo --listen 127.0.0.1:0", (200, 50));
    terminal.shows("is listening");
    house.write("home/r.cedar", "forbid (principal, action, resource) when {\n");
    terminal.shows("the former policy stays in force");
    let in_log = terminal.all();
    assert!(in_log.contains("rule_syntax") && !in_log.contains("u{1b}"), "{in_log}");
    let doctor = house.run(&["doctor"]).out;
    let told = doctor.lines().find(|line| line.contains("keeps its former policy")).unwrap_or_default();
    assert!(!told.is_empty() && !doctor.contains("u{1b}") && !doctor.contains('\u{1b}'), "{doctor}");
}
