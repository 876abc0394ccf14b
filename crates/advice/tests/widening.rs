//! GATE-16 as a table: single edits, what each newly allows, and that the way back allows nothing new.

#[expect(dead_code, reason = "the builders of the judge's tables; these need fewer of them")]
#[path = "../../policy/tests/golden/kit.rs"]
mod kit;

use toolwarden_advice::widens;
use toolwarden_core::{ApprovalNeeds, Layer, Origin, Sourced};
use toolwarden_policy::PolicyInput;
use toolwarden_policy::input::{
    AdminInput, ArgumentCondition, AutoRunMode, Declared, Launch, PermissionsInput, RoleInput, RuleFile, Scope,
    ServerInput, ToolDefinition, ToolInput, UserInput, Window,
};

use kit::{compile, listing, mode, origin, plain, server, sourced, tools, with_tool};

type Edit = fn(&mut PolicyInput);

/// A policy that has something of everything.
fn policy() -> PolicyInput {
    let mut input = plain();
    input.base.auto_run.ask = sourced(&["db:drop"]);
    input.base.auto_run.mcp_protection = true;
    input.base.auto_run.require_mode = true;
    input.base.limits.depth = Some(20);
    input.base.approvers.everywhere = vec!["ada".to_owned(), "group:ops".to_owned()];
    input.base.approvers.second_person = sourced(&["db:drop"]);
    let needs = ApprovalNeeds { approvers: vec!["bob".to_owned()], reason: true, ..ApprovalNeeds::default() };
    input.base.approvers.rules = sourced(&["web:*"]).into_iter().map(|entry| (entry, needs.clone())).collect();
    // It says nothing of persons, and keeps the classifier out.
    let silent = sourced(&["mail:*"]).into_iter().map(|entry| (entry, ApprovalNeeds::default()));
    input.base.approvers.rules.extend(silent);
    input.base.protected_paths = vec!["/home/ada/.config/toolwarden".into(), "/w/.roomodes".into()];
    input
        .base
        .settings
        .insert("mcp.tools.disabled".to_owned(), Sourced::new(serde_json::json!(["old", "db:odd"]), here()));
    input.base.admin = Some(AdminInput {
        enabled: true,
        allowed: sourced(&["ls"]),
        blocked: sourced(&["curl"]),
        mcp_tool_allowlist: sourced(&["db:*"]),
        ..AdminInput::default()
    });
    if let Some(admin) = &mut input.base.admin {
        admin.sandboxing.denied_domains = sourced(&["evil.test"]);
    }
    let mut strict = mode("strict");
    strict.allowed_servers = Some(sourced(&["db", "web"]));
    strict.disallowed_tools = tools(&[("db", "drop")]);
    strict.groups = Some(vec!["mcp".to_owned()]);
    strict.conditions.insert("user".to_owned(), vec!["ada".to_owned()]);
    strict.window = Some(Window {
        origin: here(),
        days: vec!["mon".to_owned(), "tue".to_owned()],
        hours: vec!["08:00-12:00".to_owned()],
        time_zone: "UTC".to_owned(),
    });
    input.base.modes.push(strict);
    input.base.roles.push(role());
    let forbid = "@id(\"no-drop\") forbid(principal, action, resource == Mcp::Tool::\"db:drop\");";
    input.base.rules.push(RuleFile { origin: here(), text: forbid.to_owned() });
    input.servers = vec![database(), server("web")];
    let user =
        UserInput { blocks: sourced(&["db:drop"]), mcp_allowlist: sourced(&["db:read"]), ..UserInput::default() };
    input.users.insert("bob".to_owned(), user);
    input
        .local
        .files
        .push(PermissionsInput { mcp_allowlist: Some(sourced(&["db:read"])), ..PermissionsInput::default() });
    input
}

fn role() -> RoleInput {
    let mut arguments = std::collections::BTreeMap::new();
    arguments.insert("table".to_owned(), vec!["a".to_owned()]);
    RoleInput {
        name: Sourced::new("scout".to_owned(), here()),
        scope: Some(Scope::Pm),
        allow: Some(sourced(&["db.*"])),
        disallow: Some(sourced(&["db.drop"])),
        conditions: vec![ArgumentCondition { tool: Sourced::new("db.write".to_owned(), here()), arguments }],
        explain: None,
    }
}

fn database() -> ServerInput {
    let narrowed = ToolInput {
        human_review: true,
        scope: Some(Scope::Pm),
        requires_setting: Some("feature.x".to_owned()),
        labels: vec!["sends_out".to_owned()],
        ..ToolInput::default()
    };
    let mut database = with_tool(listing(server("db"), &["read", "drop"]), "drop", narrowed);
    database.limits.request_bytes = Some(100);
    database.limits.per_minute = Some(10);
    database.disabled_tools = sourced(&["odd"]);
    database.default_enabled = false;
    let schema = serde_json::json!({"type": "object"});
    let typed = ToolDefinition { input_schema: Some(schema), ..ToolDefinition::named("typed") };
    database.catalog.get_or_insert_default().push(typed);
    database
}

fn here() -> Origin {
    origin(Layer::Config)
}

fn rule(input: &mut PolicyInput, text: &str) {
    input.base.rules.push(RuleFile { origin: here(), text: text.to_owned() });
}

fn with_database(input: &mut PolicyInput, edit: impl Fn(&mut ServerInput)) {
    input.servers.iter_mut().filter(|server| server.name == "db").for_each(edit);
}

fn with_drop(input: &mut PolicyInput, edit: impl Fn(&mut ToolInput)) {
    with_database(input, |server| server.tools.values_mut().for_each(&edit));
}

fn with_mode(input: &mut PolicyInput, edit: impl Fn(&mut toolwarden_policy::input::ModeInput)) {
    input.base.modes.iter_mut().for_each(edit);
}

fn with_role(input: &mut PolicyInput, edit: impl Fn(&mut RoleInput)) {
    input.base.roles.iter_mut().for_each(edit);
}

fn with_admin(input: &mut PolicyInput, edit: impl Fn(&mut AdminInput)) {
    input.base.admin.iter_mut().for_each(edit);
}

/// Edits that widen, with what they are called.
const WIDENINGS: &[(&str, Edit)] = &[
    ("mode_raised", |input| input.base.auto_run.mode = AutoRunMode::RunEverything),
    ("protection_off", |input| input.base.auto_run.delete_protection = false),
    ("protection_off", |input| input.base.auto_run.mcp_protection = false),
    ("protection_off", |input| input.base.auto_run.browser_protection = false),
    ("gate_off", |input| input.base.auto_run.mcp_allowlists = false),
    ("mode_not_required", |input| input.base.auto_run.require_mode = false),
    ("ask_removed", |input| input.base.auto_run.ask.clear()),
    ("payer_added", |input| input.base.auto_run.sandbox_resolves = true),
    ("place_unprotected", |input| drop(input.base.protected_paths.pop())),
    ("setting_on", |input| {
        input.base.settings.insert("feature.x".to_owned(), Sourced::new(serde_json::json!(true), here()));
    }),
    ("tool_on", |input| {
        input.base.settings.insert("mcp.tools.disabled".to_owned(), Sourced::new(serde_json::json!(["old"]), here()));
    }),
    ("admin_off", |input| input.base.admin = None),
    ("admin_off", |input| with_admin(input, |admin| admin.enabled = false)),
    ("entry_added", |input| with_admin(input, |admin| admin.allowed.extend(sourced(&["cat"])))),
    ("entry_added", |input| with_admin(input, |admin| admin.mcp_tool_allowlist.extend(sourced(&["web:get"])))),
    ("block_removed", |input| with_admin(input, |admin| admin.blocked.clear())),
    ("domain_removed", |input| with_admin(input, |admin| admin.sandboxing.denied_domains.clear())),
    ("mode_raised", |input| with_admin(input, |admin| admin.enable_run_everything = true)),
    ("block_removed", |input| input.users.values_mut().for_each(|user| user.blocks.clear())),
    ("entry_added", |input| input.users.values_mut().for_each(|user| user.mcp_allowlist.extend(sourced(&["db:*"])))),
    ("entry_added", |input| {
        let narrow = sourced(&[r#"db:drop where {"/table":{"equals":"x"}}"#]);
        input.users.values_mut().for_each(|user| user.mcp_allowlist.extend(narrow.clone()));
    }),
    ("entry_added", |input| {
        let list = sourced(&["db:read", r#"db:drop where {"/table":{"equals":"x"}}"#]);
        input.local.files.iter_mut().for_each(|file| file.mcp_allowlist = Some(list.clone()));
    }),
    ("entry_added", |input| input.users.values_mut().for_each(|user| user.terminal_allowlist.extend(sourced(&["ls"])))),
    ("mode_raised", |input| {
        input.users.values_mut().for_each(|user| user.auto_run_mode = Some(AutoRunMode::RunEverything));
    }),
    ("entry_added", |input| {
        input.local.files.iter_mut().for_each(|file| file.mcp_allowlist = Some(sourced(&["db:read", "*:*"])));
    }),
    ("mode_added", |input| input.base.modes.push(mode("open"))),
    ("mode_widened", |input| with_mode(input, |mode| mode.allowed_servers = Some(sourced(&["db", "web", "x"])))),
    ("mode_widened", |input| with_mode(input, |mode| mode.disallowed_tools.clear())),
    ("mode_widened", |input| with_mode(input, |mode| mode.groups = None)),
    ("mode_widened", |input| with_mode(input, |mode| mode.conditions.clear())),
    ("mode_widened", |input| with_mode(input, |mode| mode.window = None)),
    ("role_added", |input| {
        input.base.roles.push(RoleInput { name: Sourced::new("new".to_owned(), here()), ..role() });
    }),
    ("role_widened", |input| with_role(input, |role| role.allow = Some(sourced(&["db.*", "web.*"])))),
    ("disallow_removed", |input| with_role(input, |role| role.disallow = None)),
    ("condition_removed", |input| with_role(input, |role| role.conditions.clear())),
    ("permit_added", |input| {
        rule(input, "permit(principal, action, resource == Mcp::Tool::\"db:drop\");");
    }),
    ("forbid_removed", |input| drop(input.base.rules.pop())),
    ("server_added", |input| input.servers.push(server("new"))),
    ("server_removed", |input| drop(input.servers.remove(0))),
    ("server_enabled", |input| with_database(input, |server| server.default_enabled = true)),
    ("tool_on", |input| with_database(input, |server| server.disabled_tools.clear())),
    ("limit_raised", |input| with_database(input, |server| server.limits.request_bytes = Some(200))),
    ("approvers", |input| input.base.approvers.second_person.clear()),
    ("approvers", |input| input.base.approvers.everywhere.clear()),
    ("approvers", |input| input.base.approvers.everywhere.push("eve".to_owned())),
    ("approvers", |input| {
        input.base.approvers.rules.iter_mut().take(1).for_each(|(_, needs)| needs.approvers.push("ada".to_owned()))
    }),
    ("approvers", |input| input.base.approvers.rules.truncate(1)),
    ("approvers", |input| input.base.approvers.rules.iter_mut().for_each(|(_, needs)| needs.reason = false)),
    ("limit_raised", |input| with_database(input, |server| server.limits.request_bytes = None)),
    ("limit_raised", |input| with_database(input, |server| server.limits.per_minute = None)),
    ("limit_raised", |input| input.base.limits.depth = None),
    ("review_removed", |input| with_drop(input, |tool| tool.human_review = false)),
    ("setting_removed", |input| with_drop(input, |tool| tool.requires_setting = None)),
    ("label_removed", |input| with_drop(input, |tool| tool.labels.clear())),
    ("scope_widened", |input| with_drop(input, |tool| tool.scope = Some(Scope::Both))),
    ("tool_added", |input| {
        with_database(input, |server| server.catalog.get_or_insert_default().push(ToolDefinition::named("new")));
    }),
];

/// Changes of which neither way can be shown to narrow.
const BOTH_WAYS: &[(&str, Edit)] = &[
    ("auto_review_changed", |input| input.base.auto_run.auto_review = true),
    // A mode that names a server which is off by default makes it available.
    ("mode_widened", |input| with_mode(input, |mode| mode.allowed_servers = None)),
    ("default_mode_changed", |input| {
        input.base.auto_run.default_mode = Some(Sourced::new("strict".to_owned(), here()));
    }),
    ("browser_servers_changed", |input| input.base.auto_run.browser_servers.clear()),
    ("home_changed", |input| input.base.home = Some("/home/ada".into())),
    ("local_user_changed", |input| "bob".clone_into(&mut input.local.user)),
    ("role_scope_changed", |input| with_role(input, |role| role.scope = Some(Scope::Sandbox))),
    ("server_launch_changed", |input| {
        with_database(input, |server| server.launch = Launch::Url("https://x.test".to_owned()));
    }),
];

/// Changes that change nothing.
const NOTHING: &[(&str, Edit)] = &[
    ("rules in another order, with comments and names", |input| {
        input.base.rules.reverse();
        for file in &mut input.base.rules {
            file.text = file.text.replace("@id(\"no-drop\")", "// why\n@id(\"another\")\n");
        }
    }),
    ("servers in another order", |input| input.servers.reverse()),
    ("other words of a server", |input| {
        with_database(input, |server| {
            server.catalog.iter_mut().flatten().for_each(|tool| tool.description = Some("x".to_owned()));
        });
    }),
    ("an entry that another covers", |input| {
        with_admin(input, |admin| admin.mcp_tool_allowlist.extend(sourced(&["db:read"])));
    }),
    ("places of files", |input| {
        input.base.auto_run.ask = vec![Sourced::new("db:drop".to_owned(), origin(Layer::UserFile))];
    }),
    ("another version", |input| input.version = 9),
];

fn codes(before: &PolicyInput, after: &PolicyInput) -> Vec<&'static str> {
    widens(&compile(before), &compile(after)).iter().map(|widening| widening.code).collect()
}

fn edited(edit: Edit) -> PolicyInput {
    let mut input = policy();
    edit(&mut input);
    input
}

#[test]
fn gate_16_each_widening_is_named_and_the_way_back_gives_nothing() {
    for (number, (code, edit)) in WIDENINGS.iter().enumerate() {
        let (before, after) = (policy(), edited(*edit));
        let mut named = codes(&before, &after);
        // What is said of a server is also said of each tool that has a config of its own.
        named.dedup();
        assert_eq!(named, [*code], "edit {number}");
        let back = codes(&after, &before);
        // What is new on the way there is gone on the way back, where a rule forbids by name, and so the other way round.
        let expected: &[&str] = match *code {
            "server_removed" => &["server_added"],
            "server_added" => &["server_removed"],
            "tool_added" => &["tool_removed"],
            // Without a chosen mode nothing ran while the gate was off (ALLOW-9).
            "gate_off" => &["gate_on"],
            _ => &[],
        };
        let is_admin = *code == "admin_off" && back.iter().all(|code| *code == "entry_added");
        assert!(back == expected || is_admin, "edit {number} {code}: {back:?}");
    }
}

#[test]
fn gate_16_what_cannot_be_ordered_is_said_both_ways() {
    for (code, edit) in BOTH_WAYS {
        assert!(codes(&policy(), &edited(*edit)).contains(code), "{code}");
        assert!(codes(&edited(*edit), &policy()).contains(code), "{code}");
    }
}

#[test]
fn gate_16_what_changes_nothing_gives_nothing() {
    for (name, edit) in NOTHING {
        assert_eq!(codes(&policy(), &edited(*edit)), [""; 0], "{name}");
        assert_eq!(codes(&edited(*edit), &policy()), [""; 0], "{name}");
    }
}

#[test]
fn gate_16_a_forbid_that_becomes_a_hold_is_weaker() {
    let forbid = "forbid(principal, action, resource == Mcp::Tool::\"db:x\");";
    let with = |text: &str| {
        let mut input = policy();
        rule(&mut input, text);
        input
    };
    let (hard, hold) = (with(forbid), with(&format!("@hold(\"look\") {forbid}")));
    assert_eq!(codes(&hard, &hold), ["forbid_weakened"]);
    assert_eq!(codes(&hold, &hard), [""; 0]);
}

#[test]
fn gate_16_who_declares_a_server_decides_whom_patterns_reach() {
    let mut theirs = policy();
    theirs.servers.iter_mut().for_each(|server| server.declared = Declared::ByWorkspace);
    assert_eq!(codes(&theirs, &policy()), ["server_declared", "server_declared"]);
    assert_eq!(codes(&policy(), &theirs), [""; 0]);
    // `db.*` does not reach the server of a workspace, `web:db.read` does.
    let mut named = theirs.clone();
    with_role(&mut named, |role| role.allow = Some(sourced(&["db.*", "web:db.read"])));
    assert_eq!(codes(&theirs, &named), ["role_widened"]);
}

#[test]
fn gate_16_where_twins_are_listed_an_entry_opens_only_its_own() {
    let with = |entry: &str| {
        let mut input = plain();
        input.servers.push(listing(server("db"), &["get", "GET"]));
        kit::files_allow(&mut input, &[entry], &[]);
        input
    };
    let (small, large) = (with("db:get"), with("db:GET"));
    let judged = |input: &PolicyInput| kit::judged(&compile(input), &kit::person(), "db", "GET", None);
    assert_eq!((judged(&small).as_str(), judged(&large).as_str()), ("hold not_in_allowlist", "allow allowlist_match"));
    assert_eq!(codes(&small, &large), ["entry_added"]);
}

#[test]
fn gate_16_a_permit_that_fails_denies_and_its_end_widens() {
    let mut failing = plain();
    let text = "permit(principal, action, resource == Mcp::Tool::\"db:get\") when { context.arguments.n > 3 };";
    rule(&mut failing, text);
    let schema = serde_json::json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let mut typed = server("db");
    typed.catalog = Some(vec![ToolDefinition { input_schema: Some(schema), ..ToolDefinition::named("get") }]);
    failing.servers.push(typed);
    let mut without = failing.clone();
    without.base.rules.pop();
    assert_eq!(codes(&failing, &without), ["rules_changed"]);
    let mut plain_permit = without.clone();
    rule(&mut plain_permit, "permit(principal, action, resource == Mcp::Tool::\"db:get\");");
    assert_eq!(codes(&plain_permit, &without), [""; 0]);
}

#[test]
fn gate_16_a_label_is_wider_where_a_rule_opens_by_it() {
    for (text, expected) in [
        ("permit(principal, action, resource in Mcp::Label::\"open\");", &["label_added"][..]),
        ("permit(principal, action, resource) when { resource.labels.contains(\"open\") };", &["label_added"]),
        ("forbid(principal, action, resource) unless { resource.labels.contains(\"open\") };", &["label_added"]),
        ("forbid(principal, action, resource in Mcp::Label::\"open\");", &[]),
    ] {
        let mut before = policy();
        rule(&mut before, text);
        let mut after = before.clone();
        with_drop(&mut after, |tool| tool.labels.push("open".to_owned()));
        assert_eq!(codes(&before, &after), expected, "{text}");
    }
}

#[test]
fn gate_16_a_plain_server_may_go() {
    let mut with = plain();
    with.servers.push(listing(server("web"), &["get", "put"]));
    let mut less = with.clone();
    less.servers.iter_mut().for_each(|server| server.catalog.get_or_insert_default().truncate(1));
    assert_eq!(codes(&with, &plain()), [""; 0]);
    assert_eq!(codes(&with, &less), [""; 0]);
    assert_eq!(codes(&plain(), &with), ["server_added"]);
    assert_eq!(codes(&less, &with), ["tool_added"]);
}

#[test]
fn gate_16_a_widening_says_what_and_where() {
    let after = edited(|input| with_admin(input, |admin| admin.allowed.extend(sourced(&["cat"]))));
    let shown: Vec<String> = widens(&compile(&policy()), &compile(&after)).iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["`cat` is newly in the admin's list of commands (test:1)"]);
}

#[test]
fn gate_16_an_entry_over_arguments_widens_only_what_was_not_open() {
    let with = |entries: &[&str]| {
        let mut input = PolicyInput::default();
        kit::files_allow(&mut input, entries, &[]);
        input
    };
    let (one, two) = (r#"db:get where {"/n":{"equals":1}}"#, r#"db:get where {"/n":{"equals":2}}"#);
    assert_eq!(codes(&with(&[one]), &with(&[one, two])), ["entry_added"]);
    assert_eq!(codes(&with(&[one]), &with(&[two])), ["entry_added"]);
    assert_eq!(codes(&with(&[one]), &with(&["db:get"])), ["entry_added"]);
    for before in ["db:get", "db:*", "*:get"] {
        assert!(codes(&with(&[before]), &with(&[one])).is_empty(), "{before}");
    }
    assert_eq!(codes(&with(&["db:GET"]), &with(&[one])), ["entry_added"], "where there are twins");
    assert!(codes(&with(&[one, two]), &with(&[one])).is_empty());
}
