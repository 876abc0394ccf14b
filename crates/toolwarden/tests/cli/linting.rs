//! `lint`, `modes validate` and `rules check`: findings with place, what, and what to do.

use crate::house::{House, PERMISSIONS};
use crate::server::Server;

#[test]
fn lint_finds_what_is_wrong_here() {
    let house = House::new();
    house.write("home/.cursor/permissions.json", "{\n  \"mcpAllowlist\": [\"githup:x\", \"github:*\", \"github:y\", \"oops\"],\n  \"terminalAllowlist\": [\"git\", \"sudo\"],\n  \"mcpAllowList\": []\n}\n");
    house.write("home/.config/toolwarden/toolwarden.toml", "[servers.github]\ncommand = \"gh\"\n[modes.open]\nname = \"Open\"\ndisallowed_servers = [\"github\"]\n[roles.r]\nscope = \"pm\"\nallow = [\"db.*\"]\ndisallow = [\"db.*\"]\n");
    insta::assert_snapshot!("lint", house.shown(&["lint"]));
}

#[test]
fn lint_of_a_clean_place_and_of_single_files() {
    let house = House::new();
    assert_eq!(house.shown(&["lint"]), "$ toolwarden lint\nno findings\n[exit 0]\n");
    house.write("space/permissions.json", PERMISSIONS);
    house.write("space/broken.roomodes", "customModes: 7\n");
    house.write("space/x.cedar", "permit(principal, action, resource)");
    let texts = [
        house.shown(&["lint", "permissions.json"]),
        house.shown(&["lint", "broken.roomodes", "x.cedar"]),
        house.shown(&["lint", "missing.toml"]),
    ];
    insta::assert_snapshot!("lint_files", texts.join("\n"));
}

#[test]
fn a_broken_config_is_refused_by_explain_and_explained_by_lint() {
    let house = House::new();
    house.write(
        "home/.config/toolwarden/toolwarden.toml",
        "[auto_run]\nmode = \"yollo\"\n[servers.x]\ncomand = \"y\"\n",
    );
    assert_eq!(house.run(&["explain", "a:b"]).code, 2);
    let lint = house.run(&["lint"]);
    assert_eq!(lint.code, 1);
    insta::assert_snapshot!("lint_broken_config", lint.out);
}

#[test]
fn perm_3_a_broken_permissions_file_grants_nothing_and_is_shown() {
    let house = House::new();
    house.run(&["allow", "mine:x"]);
    house.write("home/.cursor/permissions.json", "{\"mcpAllowlist\": [\"mine:x\"");
    assert_eq!(house.decision(&["explain", "mine:x"]), "hold not_in_allowlist");
    let lint = house.run(&["lint"]);
    assert_eq!(lint.code, 1);
    assert!(lint.out.contains("permissions.json:1:"), "{}", lint.out);
    // And it is not edited either.
    assert_eq!(house.run(&["allow", "other:x"]).code, 2);
}

#[test]
fn modes_validate_names_both_places_of_a_conflict() {
    let house = House::new();
    house.write("space/new.yaml", "customModes:\n  - slug: a\n    name: A\n    groups: [mcp]\n    mcpRestrictions:\n      allowedServers: [docs]\n      disallowedServers: [docs]\n  - slug: b\n    name: B\n    groups: [mcp]\n  - slug: c\n    name: C\n    groups: [mcp]\n    extends: nowhere\n");
    insta::assert_snapshot!("modes_validate", house.shown(&["modes", "validate", "new.yaml"]));
    house.write("home/.config/toolwarden/modes.yaml", &house.read("space/new.yaml"));
    assert_eq!(house.decision(&["explain", "docs:x", "--mode", "a"]), "deny mode_refused");
    assert_eq!(house.decision(&["explain", "docs:x", "--mode", "b"]), "hold not_in_allowlist");
    assert_eq!(house.run(&["modes", "validate"]).code, 1);
}

#[test]
fn rules_check_types_arguments_from_a_catalog() {
    let house = House::new();
    house.write("c.toml", "[servers.gh]\ncommand = \"gh\"\n");
    house.write("space/gh.json", r#"{"tools":[{"name":"issue","inputSchema":{"type":"object","properties":{"title":{"type":"string"}},"required":["title"]}}]}"#);
    house.write(
        "space/r.cedar",
        "permit (principal, action, resource == Mcp::Tool::\"gh:issue\")\nwhen { context.arguments.titel == \"x\" };\n",
    );
    let config = house.path("c.toml").to_string_lossy().into_owned();
    let untyped = house.run(&["--config", &config, "rules", "check", "r.cedar"]);
    assert_eq!((untyped.code, untyped.out.contains("rule_untyped")), (0, true), "{}", untyped.out);
    let typed = house.run(&["--config", &config, "rules", "check", "r.cedar", "--catalog", "gh.json"]);
    assert_eq!((typed.code, typed.out.contains("titel")), (1, true), "{}", typed.out);
}

#[test]
fn mode_6_a_misspelt_restriction_refuses_its_mode() {
    let house = House::new();
    for key in ["mcp_restrictions", "mcprestrictions", "mcpRestriction", "Restrictions"] {
        house.write(
            "home/.config/toolwarden/modes.yaml",
            &format!("customModes:\n  - slug: m\n    name: M\n    groups: [mcp]\n    {key}: {{allowedServers: [a]}}\n"),
        );
        assert_eq!(house.decision(&["explain", "prod:deploy", "--mode", "m"]), "deny mode_refused", "{key}");
        assert_eq!(house.run(&["modes", "validate"]).code, 1, "{key}");
    }
}

#[test]
fn names_of_servers_that_commands_refuse_are_findings_of_files() {
    let house = House::new();
    house.write("c.toml", "[servers.\"bad name\"]\ncommand = \"x\"\n[servers.good-name]\ncommand = \"x\"\n");
    let config = house.path("c.toml").to_string_lossy().into_owned();
    let said = house.run(&["--config", &config, "lint"]).out;
    assert!(said.contains("awkward_name") && said.contains("`bad name`"), "{said}");
    assert_eq!(said.matches("awkward_name").count(), 1, "{said}");
}

#[test]
fn self_6_lint_knows_the_tools_that_a_gateway_has_seen() {
    let house = House::new();
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let config = "home/.config/toolwarden/toolwarden.toml";
    let servers = format!("[servers.notes]\ncommand = \"{program}\"\nargs = [\"demo-server\"]\n");
    house.write(config, &format!("[auto_run]\nask = [\"notes:wirte_note\"]\n{servers}"));
    assert_eq!(house.run(&["lint"]).out, "no findings\n", "nobody knows its tools yet");
    drop(Server::start(&house));
    let said = house.run(&["lint"]).out;
    assert!(said.contains("unknown_tool") && said.contains("did you mean `notes:write_note`?"), "{said}");
    // What every gateway has built in is no unknown tool.
    let disabled = house.run(&["tools", "disable", "web.fetch"]);
    assert_eq!((disabled.code, disabled.err.as_str()), (0, ""));
    assert!(house.run(&["tools", "disable", "notes:wirte_note"]).err.contains("no server is known to have"));
}

/// README's walk: what is shipped with a role is not what whoever adds to it wrote.
#[test]
fn gate_5_patterns_a_role_is_shipped_with_are_no_findings() {
    let house = House::new();
    let program = env!("CARGO_BIN_EXE_toolwarden");
    let servers = format!("[servers.notes]\ncommand = \"{program}\"\nargs = [\"demo-server\"]\n");
    house.write("home/.config/toolwarden/toolwarden.toml", &servers);
    drop(Server::start(&house));
    let set = ["roles", "set", "worker", "--allow", "notes:read_note", "--allow", "notes:raed_note"];
    assert_eq!(house.run(&set).code, 0);
    let said = house.run(&["lint"]).out;
    assert_eq!(said.matches("matches no known tool").count(), 1, "{said}");
    assert!(said.contains("`notes:raed_note` matches no known tool"), "{said}");
}
