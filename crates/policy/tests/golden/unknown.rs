//! CORE-1, CORE-6 and ALLOW-11: names that are unknown, ambiguous, reserved or spelt otherwise.

use std::sync::Arc;

use toolwarden_core::{Call, Caller, Door, ToolIdentity};
use toolwarden_policy::input::{AutoRunMode, Launch};
use toolwarden_policy::{FlatName, PolicyInput, decide, is_visible, resolve_flat_name};

use crate::kit::{agent, answer, asked, compile, listing, person, plain, server};

fn input() -> PolicyInput {
    let mut input = plain();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    input.servers = vec![
        listing(server("GitHub"), &["create_issue", "web.search", "Twin", "twin"]),
        listing(server("my_server"), &["a_tool"]),
        listing(server("my"), &["server_a_tool", "x"]),
    ];
    input
}

fn ask(input: &PolicyInput, caller: &Arc<Caller>, door: Door, server: &str, tool: &str) -> String {
    answer(&compile(input), &asked(caller, Call::mcp(server, tool, None), door))
}

#[test]
fn core_6_unknown_names_at_each_door() {
    for (door, caller, server, tool, expected) in [
        (Door::Mcp, person(), "GitHub", "create_issue", "allow run_everything"),
        (Door::Mcp, person(), "github", "create_issue", "deny unknown_tool"),
        (Door::Mcp, person(), "GitHub", "nothing", "deny unknown_tool"),
        (Door::Mcp, person(), "elsewhere", "x", "deny unknown_tool"),
        (Door::Explain, person(), "elsewhere", "x", "allow run_everything"),
        (Door::Explain, agent("pm"), "elsewhere", "web.search", "allow run_everything"),
        (Door::Decide, person(), "elsewhere", "x", "allow run_everything"),
        (Door::Decide, agent("pm"), "elsewhere", "web.search", "deny unknown_tool"),
        (Door::Decide, agent("pm"), "github", "WEB.search", "allow run_everything"),
        (Door::Explain, person(), "GITHUB", "TWIN", "deny name_ambiguous"),
        (Door::Explain, person(), "GITHUB", "Twin", "allow run_everything"),
        (Door::Explain, person(), "GitHub", "a/b", "deny name_reserved"),
        (Door::Mcp, person(), "GitHub", "resources/read", "deny name_reserved"),
    ] {
        assert_eq!(ask(&input(), &caller, door, server, tool), expected, "{door:?} {server}:{tool}");
    }
}

#[test]
fn mode_7_two_definitions_of_one_name_switch_it_off() {
    let mut input = input();
    let mut rival = server("my");
    rival.launch = Launch::Url("https://elsewhere.example/mcp".to_owned());
    input.servers.push(rival);
    assert_eq!(ask(&input, &person(), Door::Mcp, "my", "x"), "deny server_conflict");
    // Names that differ only in case or Unicode form cannot both register either.
    let mut input = self::input();
    input.servers.push(listing(server("github"), &["create_issue"]));
    assert_eq!(ask(&input, &person(), Door::Mcp, "GitHub", "create_issue"), "deny server_conflict");
    assert_eq!(ask(&input, &person(), Door::Mcp, "github", "create_issue"), "deny server_conflict");
}

#[test]
fn core_1_disabled_servers() {
    let mut input = input();
    input.servers.iter_mut().for_each(|server| server.enabled = false);
    assert_eq!(ask(&input, &person(), Door::Mcp, "my", "x"), "deny server_disabled");
}

#[test]
fn allow_11_names_without_a_server() {
    let policy = compile(&input());
    let one = |server: &str, tool: &str| FlatName::One(ToolIdentity::new(server, tool));
    for (name, expected) in [
        ("mcp_GitHub_create_issue", one("GitHub", "create_issue")),
        ("mcp__GitHub__create_issue", one("GitHub", "create_issue")),
        ("mcp_github_create_issue", one("GitHub", "create_issue")),
        ("mcp__my_server__a_tool", one("my_server", "a_tool")),
        ("mcp__my__x", one("my", "x")),
        ("mcp_new_some_tool", one("new", "some_tool")),
        ("mcp__new__some_tool", one("new", "some_tool")),
        ("plain_name", one("given", "plain_name")),
        ("mcp_", one("given", "mcp_")),
        ("mcp_nothing", one("given", "mcp_nothing")),
    ] {
        assert_eq!(resolve_flat_name(&policy, name, "given", None), expected, "{name}");
    }
    // Two tools of one server that differ from it in case are several, too, and so is one of them beside another server's.
    assert!(
        matches!(resolve_flat_name(&policy, "mcp_GitHub_TWIN", "given", None), FlatName::Several(both) if both.len() == 2)
    );
    // `my` + `server_a_tool` and `my_server` + `a_tool` are written alike.
    assert!(
        matches!(resolve_flat_name(&policy, "mcp_my_server_a_tool", "given", None), FlatName::Several(both) if both.len() == 2)
    );
}

#[test]
fn core_1_the_trace_lists_every_stage_and_the_first_deny_is_reported() {
    let mut caller = (*agent("worker")).clone();
    caller.mode = Some("nowhere".to_owned());
    let query = asked(&caller.into(), Call::mcp("GitHub", "db.drop", None), Door::Explain).traced();
    let verdict = decide(&compile(&input()), &query);
    let explanation = verdict.explanation();
    assert_eq!(explanation.reason.code(), "mode_not_issued");
    let stages: Vec<String> =
        explanation.trace.iter().map(|(stage, step)| format!("{} {}", stage.as_str(), step.outcome.as_str())).collect();
    insta::assert_snapshot!("trace", stages.join("\n"));
}

#[test]
fn mode_5_lists_show_what_could_be_called() {
    let policy = compile(&input());
    let sees = |caller: &Arc<Caller>, tool: &str| {
        is_visible(&policy, &asked(caller, Call::mcp("GitHub", tool, None), Door::Mcp))
    };
    assert!(sees(&person(), "create_issue"));
    assert!(sees(&agent("pm"), "web.search"));
    assert!(!sees(&agent("pm"), "create_issue"));
    assert!(!sees(&person(), "unlisted"));
}
