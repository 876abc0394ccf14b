//! Each finding appears where it should, with its place, and nowhere in a clean policy.

use toolwarden_core::{Layer, Origin, Sourced, ToolIdentity};
use toolwarden_policy::input::{
    AdminInput, AutoRunMode, Declared, Launch, ModeInput, PermissionsInput, PolicyInput, RoleInput, RuleFile, Scope,
    ServerInput, ToolDefinition, ToolInput, UserInput,
};

use super::lint;

fn at(line: u32) -> Origin {
    Origin::new(Layer::UserFile, "file", line, 1)
}

fn texts(texts: &[&str]) -> Vec<Sourced<String>> {
    (1..).zip(texts).map(|(line, text)| Sourced::new((*text).to_owned(), at(line))).collect()
}

fn server(name: &str, tools: &[&str]) -> ServerInput {
    let schema = serde_json::json!({"type": "object", "properties": {"task_id": {"type": "string"}}});
    let definition = |name: &&str| ToolDefinition {
        name: (*name).to_owned(),
        description: None,
        input_schema: Some(schema.clone()),
        output_schema: None,
    };
    ServerInput {
        launch: Launch::Url(format!("https://{name}.example")),
        catalog: Some(tools.iter().map(definition).collect()),
        ..ServerInput::new(name, at(90), Declared::ByOperator)
    }
}

/// Findings as `severity code place`; a policy without rules says so once, which is left out here.
fn codes(input: &PolicyInput) -> Vec<String> {
    lint(input)
        .iter()
        .filter(|finding| finding.code != "no_rules")
        .map(|finding| format!("{} {} {}", finding.severity.as_str(), finding.code, finding.origin))
        .collect()
}

fn with_list(mcp: &[&str], terminal: &[&str]) -> PolicyInput {
    let mut input =
        PolicyInput { servers: vec![server("github", &["create_issue", "get_me"])], ..PolicyInput::default() };
    input.local.files.push(PermissionsInput {
        mcp_allowlist: Some(texts(mcp)),
        terminal_allowlist: Some(texts(terminal)),
        ..PermissionsInput::default()
    });
    input
}

#[test]
fn clean_policies_have_no_findings() {
    assert!(codes(&PolicyInput::default()).is_empty());
    assert!(codes(&with_list(&["github:create_issue", "*:get_me"], &["ls", "git:status"])).is_empty());
}

#[test]
fn allow_3_and_shadowed_and_unknown_entries() {
    for (list, expected) in [
        (&["nonsense"][..], "warning invalid_entry file:1"),
        (&["github:*", "github:get_me"], "note shadowed_entry file:2"),
        (&["github:get_me", "github:*"], "note shadowed_entry file:1"),
        (&["githup:get_me"], "warning unknown_server file:1"),
        (&["github:get_mee"], "warning unknown_tool file:1"),
        (&["*:*"], "warning everything_entry file:1"),
    ] {
        assert_eq!(codes(&with_list(list, &[])), [expected], "{list:?}");
    }
    let close = lint(&with_list(&["githup:get_me"], &[]));
    let close = close.iter().find(|finding| finding.code == "unknown_server");
    assert_eq!(close.and_then(|finding| finding.suggestion.as_deref()), Some("did you mean `github`?"));
}

#[test]
fn shell_2_terminal_entries() {
    for (list, expected) in [
        (&["*"][..], "warning invalid_entry file:1"),
        (&[""], "warning invalid_entry file:1"),
        (&["ls", "ls:-la"], "note shadowed_entry file:2"),
        (&["git"], "note whole_command file:1"),
        (&["sudo"], "warning never_matches file:1"),
    ] {
        assert_eq!(codes(&with_list(&[], list)), [expected], "{list:?}");
    }
}

#[test]
fn mode_6_shapes() {
    let tools = |pairs: &[(&str, &str)]| -> Vec<Sourced<ToolIdentity>> {
        (1..)
            .zip(pairs)
            .map(|(line, (server, tool))| Sourced::new(ToolIdentity::new(*server, *tool), at(line)))
            .collect()
    };
    let base = ModeInput::unrestricted("m", "M", at(50));
    for (mode, expected) in [
        (
            ModeInput {
                allowed_servers: Some(texts(&["github"])),
                disallowed_servers: texts(&["x", "GitHub"]),
                ..base.clone()
            },
            "error mode_conflict file:2",
        ),
        (ModeInput { disallowed_servers: texts(&["github"]), ..base.clone() }, "warning deny_list_on_open_mode file:1"),
        (ModeInput { allowed_servers: Some(texts(&["gitlab"])), ..base.clone() }, "warning unknown_server file:1"),
        (
            ModeInput { allowed_servers: Some(texts(&["github"])), allowed_tools: Some(Vec::new()), ..base.clone() },
            "warning server_without_tool file:1",
        ),
        (
            ModeInput {
                allowed_servers: Some(Vec::new()),
                allowed_tools: Some(tools(&[("github", "get_me")])),
                ..base.clone()
            },
            "warning tool_without_server file:1",
        ),
        (
            ModeInput {
                allowed_servers: Some(texts(&["github"])),
                disallowed_tools: tools(&[("github", "gone")]),
                ..base.clone()
            },
            "warning unknown_tool file:1",
        ),
        (
            ModeInput {
                allowed_servers: Some(texts(&["github"])),
                groups: Some(vec!["command".to_owned()]),
                ..base.clone()
            },
            "warning command_without_builtin file:50",
        ),
        (ModeInput { extends: texts(&["nowhere"]).pop(), ..base.clone() }, "error mode_refused file:50"),
    ] {
        let mut input = with_list(&[], &[]);
        input.base.modes = vec![mode];
        let found = codes(&input);
        assert!(found.iter().any(|code| code == expected), "{expected}: {found:?}");
    }
    let named = tools(&[("github", "get_me")]);
    let mut input = with_list(&[], &[]);
    input.base.modes =
        vec![ModeInput { disallowed_servers: texts(&["gitlab"]), allowed_tools: Some(named), ..base.clone() }];
    assert!(!codes(&input).iter().any(|code| code.contains("deny_list_on_open_mode")), "it lists what it may use");
    let mut input = with_list(&[], &[]);
    input.servers.push(server("admin-server", &[]));
    input.base.modes = vec![base];
    assert_eq!(codes(&input), ["note mode_without_groups file:50", "warning admin_server_reachable file:90"]);
}

#[test]
fn gate_5_role_patterns() {
    let role = |allow: &[&str], disallow: &[&str]| RoleInput {
        name: Sourced::new("r".to_owned(), at(70)),
        scope: Some(Scope::Pm),
        allow: Some(texts(allow)),
        disallow: Some(texts(disallow)),
        conditions: Vec::new(),
        explain: None,
    };
    for (role, expected) in [
        (role(&["get_me"], &["get_*"]), "warning never_matches file:1"),
        (role(&["get_*", "get_me"], &[]), "note shadowed_pattern file:2"),
        (role(&["nothing.*"], &[]), "warning matches_nothing file:1"),
        (role(&["elsewhere:x"], &[]), "warning matches_nothing file:1"),
        (role(&[], &["github:get_mee"]), "warning matches_nothing file:1"),
        (role(&[], &["elsewhere:x", "github:get_*", "db.*"]), "warning matches_nothing file:1"),
        (role(&["a*b"], &[]), "error bad_pattern file:1"),
        (RoleInput { scope: None, ..role(&["get_me"], &[]) }, "error role_scope file:70"),
    ] {
        let mut input = with_list(&[], &[]);
        input.base.roles = vec![role];
        assert_eq!(codes(&input), [expected]);
    }
}

#[test]
fn gate_11_task_scope_without_the_field() {
    let mut input = with_list(&[], &[]);
    let scoped = ToolInput { origin: Some(at(33)), task_scoped: vec!["run_id".to_owned()], ..ToolInput::default() };
    if let Some(server) = input.servers.first_mut() {
        server.tools.insert("get_me".to_owned(), scoped);
    }
    assert_eq!(codes(&input), ["error task_scope_field file:33"]);
}

#[test]
fn review_3_entries_over_arguments_are_looked_at_by_themselves() {
    let entry = r#"github:get_me where {"/n":{"equals":1}}"#;
    assert!(codes(&with_list(&[entry], &[])).is_empty());
    assert_eq!(codes(&with_list(&[entry, "github:*"], &[])), ["note shadowed_entry file:1"]);
    assert_eq!(codes(&with_list(&[&entry.replace("get_me", "get_you")], &[])), ["warning unknown_tool file:1"]);
    assert_eq!(codes(&with_list(&[&entry.replace("equals", "like")], &[])), ["warning invalid_entry file:1"]);
    let mut input = with_list(&[], &[]);
    input.base.auto_run.ask = texts(&[entry]);
    assert_eq!(codes(&input), ["warning invalid_entry file:1"], "it would ask for nothing");
}

#[test]
fn self_6_an_ask_entry_that_protects_nothing_is_a_finding() {
    let mut input = with_list(&[], &[]);
    input.base.auto_run.ask = texts(&["nosuch:*"]);
    assert_eq!(codes(&input), ["warning unknown_server file:1"]);
    input.servers.clear();
    assert_eq!(codes(&input), ["warning unknown_server file:1"], "also where no server is configured");
    input.base.auto_run.ask = texts(&["*:delete", "builtin:shell.run"]);
    assert!(codes(&input).is_empty(), "{:?}", codes(&input));
}

#[test]
fn self_6_switches_that_name_no_tool_are_findings() {
    let found = |key: &str, value: serde_json::Value, is_listed: bool| {
        let mut input = with_list(&[], &[]);
        if !is_listed {
            input.servers.push(ServerInput { catalog: None, ..server("other", &[]) });
        }
        input.base.settings.insert(key.to_owned(), Sourced::new(value, at(1)));
        codes(&input)
    };
    let list = |name: &str, is_listed| found("mcp.tools.disabled", serde_json::json!([name]), is_listed);
    let switch =
        |name: &str, is_listed| found(&format!("mcp.tool.{name}.enabled"), serde_json::json!(false), is_listed);
    for name in ["github:get_mee", "get_mee", "raed_note", "github_get_me", "gihub__get_me", "nosuch:pay", "nosuch.pay"]
    {
        let expected = if name.starts_with("nosuch:") { UNKNOWN_SERVER } else { UNKNOWN_TOOL };
        assert_eq!(list(name, true), [expected], "{name}");
        assert_eq!(switch(name, true), [expected], "{name}");
    }
    for name in ["get_me", "GET_ME", "github__get_me", "GitHub.get_me", "github:GET_ME", "shell.run", "web.fetch"] {
        assert_eq!([list(name, true), switch(name, true)].concat(), Vec::<String>::new(), "{name}");
    }
    // A server that nobody asked yet may have it, unless it is a slip.
    assert_eq!(list("pay", false), Vec::<String>::new());
    assert_eq!(list("get_mee", false), [UNKNOWN_TOOL]);
    // What is switched on restricts nothing.
    assert_eq!(found("mcp.tool.raed_note.enabled", serde_json::json!(true), true), Vec::<String>::new());
}

const UNKNOWN_TOOL: &str = "warning unknown_tool file:1";
const UNKNOWN_SERVER: &str = "warning unknown_server file:1";

#[test]
fn self_6_settings_that_nothing_reads_are_findings() {
    let found = |key: &str| {
        let mut input = with_list(&[], &[]);
        let tool = ToolInput { requires_setting: Some("team.may_deploy".to_owned()), ..ToolInput::default() };
        input.servers.iter_mut().for_each(|server| {
            server.tools.insert("get_me".to_owned(), tool.clone());
        });
        input.base.settings.insert(key.to_owned(), Sourced::new(serde_json::json!(true), at(1)));
        codes(&input)
    };
    for key in ["team.may_deply", "gateway.hold", "protections.mcp", "disabled_tools"] {
        assert_eq!(found(key), ["warning unused_setting file:1"], "{key}");
    }
    for key in ["team.may_deploy", "auto_run.auto_review", "agents.project_manager.sandbox.allow_add_to_allowed_images"]
    {
        assert_eq!(found(key), Vec::<String>::new(), "{key}");
    }
}

#[test]
fn self_6_restrictions_of_tools_that_nobody_lists_are_findings() {
    let unknown = "warning unknown_tool file:1";
    let mut input = with_list(&[], &[]);
    input.base.auto_run.ask = texts(&["github:get_mee"]);
    assert_eq!(codes(&input), [unknown]);
    let mut input = with_list(&[], &[]);
    input.base.auto_run.ask = texts(&["github:*"]);
    input.base.approvers.second_person = texts(&["github:get_mee"]);
    assert_eq!(codes(&input), [unknown]);
    let mut input = with_list(&[], &[]);
    input.base.approvers.rules =
        texts(&["github:get_mee"]).into_iter().map(|text| (text, Default::default())).collect();
    assert_eq!(codes(&input), [unknown]);
    let mut input = with_list(&[], &[]);
    let off = serde_json::json!(["github:get_mee", "github:get_me"]);
    input.base.settings.insert("mcp.tools.disabled".to_owned(), Sourced::new(off, at(1)));
    assert_eq!(codes(&input), [unknown]);
    let mut input = with_list(&[], &[]);
    input.servers.iter_mut().for_each(|server| server.disabled_tools = texts(&["get_mee", "GET_ME"]));
    assert_eq!(codes(&input), [unknown]);
    let suggestion = lint(&input)
        .into_iter()
        .filter(|finding| finding.code == "unknown_tool")
        .find_map(|finding| finding.suggestion);
    assert_eq!(suggestion.as_deref(), Some("did you mean `get_me`?"));
    let mut input = with_list(&[], &[]);
    let tool = || ToolInput { origin: Some(at(1)), human_review: true, ..ToolInput::default() };
    for server in &mut input.servers {
        for name in ["get_mee", "Get_Me", "resources/read"] {
            server.tools.insert(name.to_owned(), tool());
        }
    }
    assert_eq!(codes(&input), [unknown]);
    // Of a server that nobody asked yet nothing can be said.
    input.servers.iter_mut().for_each(|server| server.catalog = None);
    assert!(codes(&input).is_empty(), "{:?}", codes(&input));
}

#[test]
fn review_4_a_second_person_for_calls_that_need_nobody_is_a_finding() {
    let mut input = with_list(&[], &[]);
    input.base.approvers.second_person = texts(&["github:get_me"]);
    assert_eq!(codes(&input), ["warning second_person_not_asked file:1"]);
    input.base.auto_run.ask = texts(&["github:*"]);
    assert!(codes(&input).is_empty(), "{:?}", codes(&input));
}

#[test]
fn allow_9_a_gate_that_is_off_without_a_chosen_mode_is_a_finding() {
    let mut input = with_list(&[], &[]);
    input.base.auto_run.mcp_allowlists = false;
    assert_eq!(codes(&input), ["warning gate_off_without_mode [features]"]);
    input.base.auto_run.mode_is_chosen = true;
    assert!(codes(&input).is_empty());
}

#[test]
fn review_1_review_2_and_perm_2_notes() {
    let mut input = with_list(&["github:*"], &[]);
    input.base.auto_run.auto_review = true;
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    assert_eq!(codes(&input), ["warning auto_review_run_everything [auto_run]"]);
    let mut input = with_list(&["github:*"], &[]);
    input.users.insert(
        String::new(),
        UserInput { mcp_allowlist: vec![Sourced::new("github:*".to_owned(), at(8))], ..UserInput::default() },
    );
    assert_eq!(codes(&input), ["note replaced_list file:8"]);
    let mut input = with_list(&[], &[]);
    input
        .local
        .files
        .push(PermissionsInput { block_instructions: Some(texts(&["never delete"])), ..PermissionsInput::default() });
    assert_eq!(codes(&input), ["note block_instructions_steer file:1"]);
    let mut input = with_list(&["github:*"], &[]);
    input.base.admin = Some(AdminInput { enabled: true, ..AdminInput::default() });
    assert_eq!(codes(&input), ["note replaced_list file:1"]);
}

/// ALLOW-8: switching the protection off says what runs unasked from then on.
#[test]
fn allow_8_browser_protection_that_is_off_is_said() {
    let mut input = PolicyInput::default();
    assert!(!lint(&input).iter().any(|finding| finding.code == "browser_protection_off"));
    input.base.auto_run.browser_protection = false;
    input.base.auto_run.browser_servers = vec!["cursor-ide-browser".to_owned(), "mine".to_owned()];
    let said: Vec<String> = lint(&input)
        .into_iter()
        .filter(|finding| finding.code == "browser_protection_off")
        .map(|finding| finding.message)
        .collect();
    assert_eq!(
        said,
        ["browser protection is off: every tool of cursor-ide-browser, mine runs unasked, even in ask_every_time"]
    );
    // A user's own switch, too.
    let mut input = PolicyInput::default();
    let mut ada = UserInput::default();
    ada.protections.browser = Some(false);
    input.users.insert("ada".to_owned(), ada);
    let mut own = lint(&input).into_iter().filter(|finding| finding.code == "browser_protection_off");
    assert!(own.next().is_some_and(|finding| finding.message.starts_with("browser protection of ada is off: ")));
}

#[test]
fn gate_10_rules_and_mode_7_conflicts_are_findings_too() {
    let mut input = with_list(&[], &[]);
    input.base.rules = vec![RuleFile { origin: at(1), text: "permit(principal, action, resource)".to_owned() }];
    assert_eq!(codes(&input), ["error rule_syntax file:1"]);
    let mut input = with_list(&[], &[]);
    input.servers.push(ServerInput { launch: Launch::Nothing, ..server("GitHub", &[]) });
    assert_eq!(codes(&input), ["error server_conflict file:90", "error server_conflict file:90"]);
}
