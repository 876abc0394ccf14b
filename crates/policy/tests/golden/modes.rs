//! MODE-1 to MODE-4 and MODE-11 as a table: mode × server × tool → decision.

use std::fmt::Write;

use toolwarden_core::Sourced;
use toolwarden_policy::PolicyInput;
use toolwarden_policy::input::{AutoRunMode, ModeInput, Window};

use crate::kit::{
    compile, judged, judged_fetch, judged_shell, listing, mode, origin, person, person_in, plain, server, sourced,
    tools,
};

const CALLS: [(&str, &str); 9] = [
    ("weather-server", "get_forecast"),
    ("weather-server", "admin_function"),
    ("docs-server", "search_docs"),
    ("docs-server", "resources/read"),
    ("docs-server", "prompts/get"),
    ("admin-server", "reset"),
    ("admin-server", "resources/read"),
    ("database-admin", "drop"),
    ("other-server", "anything"),
];

/// Seed 001: its two modes, its four servers, and modes around them.
fn policy() -> PolicyInput {
    let mut input = plain();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    input.servers = vec![
        listing(server("weather-server"), &["get_forecast", "admin_function"]),
        listing(server("docs-server"), &["search_docs"]),
        listing(server("database-admin"), &["drop"]),
        listing(server("other-server"), &["anything"]),
    ];
    let mut admin = listing(server("admin-server"), &["reset"]);
    admin.default_enabled = false;
    input.servers.push(admin);
    input.base.modes = modes();
    input
}

fn groups(names: &[&str]) -> Option<Vec<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

fn modes() -> Vec<ModeInput> {
    let secure = ModeInput {
        groups: groups(&["read", "mcp"]),
        allowed_servers: Some(sourced(&["weather-server", "docs-server"])),
        disallowed_servers: sourced(&["admin-server"]),
        allowed_tools: Some(tools(&[("weather-server", "get_forecast"), ("docs-server", "search_docs")])),
        disallowed_tools: tools(&[("weather-server", "admin_function")]),
        ..mode("secure-mode")
    };
    let production = ModeInput {
        groups: groups(&["read", "edit", "mcp"]),
        allowed_servers: Some(sourced(&["docs-server", "weather-server"])),
        disallowed_servers: sourced(&["admin-server", "database-admin"]),
        ..mode("production-mode")
    };
    let open = mode("open-mode");
    let no_mcp = ModeInput { groups: groups(&["read", "command"]), ..mode("no-mcp") };
    let nothing = ModeInput { allowed_servers: Some(Vec::new()), ..mode("nothing-mode") };
    let no_tools = ModeInput { allowed_tools: Some(Vec::new()), ..mode("no-tools-mode") };
    let deny_case = ModeInput {
        disallowed_servers: sourced(&["WEATHER-server"]),
        disallowed_tools: tools(&[("Docs-Server", "SEARCH_docs")]),
        ..mode("deny-ignores-case")
    };
    let allow_case =
        ModeInput { allowed_servers: Some(sourced(&["Weather-Server", "docs-server"])), ..mode("allow-is-exact") };
    let admin = ModeInput { allowed_servers: Some(sourced(&["admin-server"])), ..mode("admin-mode") };
    let admin_tools =
        ModeInput { allowed_tools: Some(tools(&[("admin-server", "reset")])), ..mode("admin-by-tool-only") };
    let child = ModeInput {
        extends: extends("production-mode"),
        disallowed_servers: sourced(&["docs-server"]),
        ..mode("child-narrows")
    };
    let widening = ModeInput {
        extends: extends("production-mode"),
        groups: groups(&["mcp", "command"]),
        allowed_servers: Some(sourced(&["other-server", "admin-server", "docs-server"])),
        ..mode("child-cannot-widen")
    };
    let opening = ModeInput {
        extends: extends("open-mode"),
        allowed_servers: Some(sourced(&["admin-server"])),
        ..mode("child-cannot-open")
    };
    let circle = ModeInput { extends: extends("circle-b"), ..mode("circle-a") };
    let circle_b = ModeInput { extends: extends("circle-a"), ..mode("circle-b") };
    let orphan = ModeInput { extends: extends("nowhere"), ..mode("orphan") };
    let conflict = ModeInput {
        allowed_servers: Some(sourced(&["docs-server"])),
        disallowed_servers: sourced(&["Docs-Server"]),
        ..mode("conflict")
    };
    vec![
        secure,
        production,
        open,
        no_mcp,
        nothing,
        no_tools,
        deny_case,
        allow_case,
        admin,
        admin_tools,
        child,
        widening,
        opening,
        circle,
        circle_b,
        orphan,
        conflict,
    ]
}

fn extends(parent: &str) -> Option<Sourced<String>> {
    sourced(&[parent]).pop()
}

#[test]
fn mode_2_mode_server_tool_table() {
    let policy = compile(&policy());
    let mut table = String::new();
    let mut slugs: Vec<Option<&str>> = vec![None];
    let sorted = policy.base().modes.sorted();
    slugs.extend(sorted.iter().map(|mode| Some(mode.slug.as_str())));
    slugs.push(Some("unheard-of"));
    for slug in slugs {
        let caller = slug.map_or_else(person, person_in);
        let _ = writeln!(table, "\n{}", slug.unwrap_or("(no mode)"));
        for (server, tool) in CALLS {
            let _ = writeln!(
                table,
                "  {:<32} {}",
                format!("{server}:{tool}"),
                judged(&policy, &caller, server, tool, None)
            );
        }
        let _ = writeln!(table, "  {:<32} {}", "shell git status", judged_shell(&policy, &caller, "git status"));
        let _ = writeln!(
            table,
            "  {:<32} {}",
            "fetch https://example.com",
            judged_fetch(&policy, &caller, "https://example.com")
        );
    }
    insta::assert_snapshot!("modes", table);
}

#[test]
fn mode_11_windows_and_conditions() {
    let mut input = policy();
    let window = Window {
        origin: origin(toolwarden_core::Layer::Config),
        days: vec!["thu".to_owned()],
        hours: vec!["00:00-01:00".to_owned()],
        time_zone: "UTC".to_owned(),
    };
    // The tests' clock stands at a Thursday's midnight.
    input.base.modes.push(ModeInput { window: Some(window.clone()), ..mode("now") });
    input
        .base
        .modes
        .push(ModeInput { window: Some(Window { days: vec!["fri".to_owned()], ..window }), ..mode("later") });
    input
        .base
        .modes
        .push(ModeInput { conditions: [("user".to_owned(), vec!["a*".to_owned()])].into(), ..mode("mine") });
    input
        .base
        .modes
        .push(ModeInput { conditions: [("project".to_owned(), vec!["P1".to_owned()])].into(), ..mode("project") });
    input
        .base
        .modes
        .push(ModeInput { conditions: [("colour".to_owned(), vec!["red".to_owned()])].into(), ..mode("odd") });
    let policy = compile(&input);
    for (slug, expected) in [
        ("now", "allow run_everything"),
        ("later", "deny mode_window"),
        ("mine", "allow run_everything"),
        ("project", "deny mode_condition"),
        ("odd", "deny mode_refused"),
    ] {
        assert_eq!(judged(&policy, &person_in(slug), "docs-server", "search_docs", None), expected, "{slug}");
    }
}

#[test]
fn mode_8_agents_have_the_modes_of_their_token() {
    let mut input = policy();
    input.servers.push(listing(server("gw"), &["web.search"]));
    let policy = compile(&input);
    let with = |issued: &[&str], asked: Option<&str>| {
        let mut caller = (*crate::kit::agent("pm")).clone();
        caller.token.modes = issued.iter().map(|mode| (*mode).to_owned()).collect();
        caller.mode = asked.map(str::to_owned);
        judged(&policy, &caller.into(), "gw", "web.search", None)
    };
    assert_eq!(with(&[], None), "allow run_everything");
    assert_eq!(with(&[], Some("open-mode")), "deny mode_not_issued");
    assert_eq!(with(&["open-mode"], Some("open-mode")), "allow run_everything");
    assert_eq!(with(&["secure-mode"], None), "deny mode_server");
    assert_eq!(with(&["secure-mode"], Some("open-mode")), "deny mode_not_issued");
    assert_eq!(with(&["secure-mode", "open-mode"], None), "deny mode_required");
    assert_eq!(with(&["gone"], None), "deny mode_unknown");
}

#[test]
fn mode_8_default_and_required_modes() {
    let mut input = policy();
    input.base.auto_run.require_mode = true;
    assert_eq!(judged(&compile(&input), &person(), "docs-server", "search_docs", None), "deny mode_required");
    input.base.auto_run.default_mode = sourced(&["production-mode"]).pop();
    let policy = compile(&input);
    assert_eq!(judged(&policy, &person(), "docs-server", "search_docs", None), "allow run_everything");
    assert_eq!(judged(&policy, &person(), "other-server", "anything", None), "deny mode_server");
}
