//! Records of the store: they count like sections of the config, files of the same name come first, and what either
//! side switches off is off.

use serde_json::json;
use toolwarden_core::records::{Kind, Place as Spot};
use toolwarden_core::{Layer, ToolIdentity};
use toolwarden_policy::input::{Declared, Launch, Scope};
use toolwarden_sources::records::{admin_controls, check, label, lists_of};
use toolwarden_sources::{Loaded, earlier};

use crate::home::{Home, Outcome};

fn server(name: &str) -> Spot {
    Spot::of_house(Kind::Server, name)
}

fn is_on(loaded: &Loaded, name: &str) -> Option<bool> {
    loaded.input.servers.iter().find(|server| server.name == name).map(|server| server.enabled)
}

#[test]
fn gate_16_what_is_stored_counts_with_its_version() -> Outcome {
    let home = Home::new()?;
    home.store.borrow_mut().version = 7;
    home.keep(Spot::of_house(Kind::Mode, "review"), json!({"name": "Review", "allowed_tools": ["gh:read"]}));
    home.keep(Spot::of_house(Kind::Role, "reader"), json!({"scope": "pm", "allow": ["db.read"]}));
    home.keep(Spot::of_house(Kind::Rule, "night"), json!({"text": "forbid(principal, action, resource);"}));
    home.keep(server("gh"), json!({"url": "https://example.com/mcp", "tools": {"read": {"scope": "pm"}}}));
    home.keep(Spot::of_house(Kind::Tool, "gh:write"), json!({"enabled": false, "scope": "both"}));
    home.keep(admin_controls(), json!({"enabled": true, "blocked": ["rm"]}));
    let input = home.load()?.input;
    assert_eq!(input.version, 7);
    let mode = input.base.modes.iter().find(|mode| mode.slug == "review").ok_or("no mode")?;
    let tools: Vec<_> = mode.allowed_tools.iter().flatten().map(|tool| tool.value.clone()).collect();
    assert_eq!(tools, [ToolIdentity::new("gh", "read")]);
    assert_eq!(mode.origin.to_string(), "stored mode `review`");
    assert!(input.base.roles.iter().any(|role| role.name.value == "reader"));
    assert!(input.base.rules.iter().any(|rules| rules.origin.to_string() == "stored rule `night`:1"));
    let gh = input.servers.iter().find(|server| server.name == "gh").ok_or("no server")?;
    assert_eq!((gh.declared, &gh.launch), (Declared::ByOperator, &Launch::Url("https://example.com/mcp".to_owned())));
    assert_eq!(gh.tools.get("write").and_then(|tool| tool.scope), Some(Scope::Both));
    let switch = input.base.settings.get("mcp.tool.gh:write.enabled").ok_or("no switch")?;
    assert_eq!((&switch.value, switch.origin.to_string()), (&json!(false), "stored tool `gh:write`".to_owned()));
    assert!(input.base.admin.is_some_and(|admin| admin.enabled && admin.blocked.len() == 1));
    Ok(())
}

#[test]
fn a_file_that_defines_the_same_comes_first_and_off_stays_off() -> Outcome {
    let home = Home::new()?;
    home.write(
        "config/toolwarden.toml",
        "[servers.gh]\nurl = \"https://file.example/mcp\"\n[modes.review]\nallowed_servers = [\"gh\"]\n\
         [roles.sandbox]\nallow = [\"db.read\"]\n",
    )?;
    home.keep(server("GH"), json!({"url": "https://store.example/mcp", "enabled": false}));
    home.keep(Spot::of_house(Kind::Mode, "review"), json!({"allowed_servers": ["other"]}));
    home.keep(Spot::of_house(Kind::Role, "worker"), json!({"allow": ["*"]}));
    let loaded = home.load()?;
    assert_eq!(loaded.input.servers.len(), 1);
    assert_eq!(is_on(&loaded, "gh"), Some(false));
    let mode = loaded.input.base.modes.iter().find(|mode| mode.slug == "review").ok_or("no mode")?;
    assert_eq!(mode.origin.layer, Layer::Config);
    assert_eq!(loaded.input.base.roles.len(), 1, "`sandbox` is another name of `worker`");
    let shown = home.shown(&loaded.findings).join("\n");
    for said in ["stored server `GH`", "stored mode `review`", "stored role `worker`"] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    Ok(())
}

#[test]
fn gate_8_a_users_own_server_is_theirs_alone() -> Outcome {
    let home = Home::new()?;
    home.keep(Spot::of_user(Kind::Server, "anna", "docs"), json!({"url": "https://example.com/mcp"}));
    let input = home.load()?.input;
    let server = input.servers.first().ok_or("no server")?;
    assert_eq!((server.name.as_str(), server.owner.as_deref()), ("anna.docs", Some("anna")));
    assert_eq!(server.declared, Declared::ByUser);
    // What is hers switches nothing that is the operator's.
    home.write("config/toolwarden.toml", "[servers.\"anna.docs\"]\ncommand = \"true\"\n")?;
    home.keep(Spot::of_user(Kind::Server, "anna", "docs"), json!({"url": "https://example.com/mcp", "enabled": false}));
    let loaded = home.load()?;
    assert_eq!((loaded.input.servers.len(), is_on(&loaded, "anna.docs")), (1, Some(true)));
    Ok(())
}

#[test]
fn gate_8_how_far_the_gateway_goes_for_a_users_server_is_not_the_users_to_say() -> Outcome {
    let url = "https://example.com/mcp";
    for (key, more) in [
        ("timeout", json!({"url": url, "timeout": "3650d"})),
        ("limits", json!({"url": url, "limits": {"in_flight": 100_000}})),
        ("limits", json!({"url": url, "tools": {"x": {"limits": {"response_bytes": 9_000_000_000_u64}}}})),
        ("task_scoped", json!({"url": url, "tools": {"x": {"task_scoped": true}}})),
        ("share", json!({"url": url, "share": "all"})),
        ("command", json!({"command": "sh"})),
    ] {
        let home = Home::new()?;
        let spot = Spot::of_user(Kind::Server, "anna", "docs");
        let said = check(&spot, &more);
        assert!(said.iter().any(|finding| finding.is_error() && finding.message.contains(key)), "{key}: {said:?}");
        // Where it is in the store all the same, nobody else's policy suffers.
        home.keep(spot, more);
        home.keep(server("gh"), json!({"url": url}));
        let names: Vec<_> = home.load()?.input.servers.into_iter().map(|server| server.name).collect();
        assert_eq!(names, ["gh"], "{key}");
    }
    let home = Home::new()?;
    let tools = json!({"x": {"scope": "pm", "labels": ["sends_out"], "review": "human", "enabled": false}});
    home.keep(Spot::of_user(Kind::Server, "anna", "docs"), json!({"url": url, "tools": tools}));
    let input = home.load()?.input;
    assert_eq!(input.servers.first().and_then(|server| server.limits.in_flight), Some(64));
    Ok(())
}

#[test]
fn a_switch_counts_however_the_name_is_written() -> Outcome {
    for (name, switch) in [("gh", "GH"), ("GH", "gh")] {
        let home = Home::new()?;
        home.keep(server(name), json!({"url": "https://example.com/mcp"}));
        home.keep(server(switch), json!({"enabled": false}));
        assert_eq!(is_on(&home.load()?, name), Some(false), "{name} {switch}");
    }
    Ok(())
}

#[test]
fn a_switch_alone_needs_no_server() -> Outcome {
    let home = Home::new()?;
    home.keep(server("gh"), json!({"enabled": false}));
    assert_eq!(home.load()?.input.servers.len(), 0);
    home.write("config/toolwarden.toml", "[servers.gh]\ncommand = \"true\"\n")?;
    assert_eq!(is_on(&home.load()?, "gh"), Some(false));
    Ok(())
}

#[test]
fn perm_3_a_record_that_cannot_be_read_stops_loading() -> Outcome {
    for (place, content) in [
        (lists_of("anna"), json!({"blocks": "all"})),
        (Spot::of_house(Kind::Role, "r"), json!({"alow": []})),
        (Spot::of_house(Kind::Tool, "a:b"), json!({"enabled": "no"})),
        (Spot::of_house(Kind::Tool, "a:b"), json!({"scope": "everywhere"})),
        (Spot::of_house(Kind::Rule, "r"), json!("permit")),
        (server("gh"), json!({"url": "https://example.com", "comand": "x"})),
        (admin_controls(), json!({"enabled": 1})),
    ] {
        let home = Home::new()?;
        assert!(check(&place, &content).iter().any(toolwarden_sources::Finding::is_error), "{place}");
        home.keep(place.clone(), content);
        let refused = home.load().err().map(|refusal| refusal.to_string()).unwrap_or_default();
        assert!(refused.contains(&label(&place)), "{place}: {refused}");
    }
    Ok(())
}

#[test]
fn mode_6_a_stored_mode_that_is_wrong_is_refused_alone() -> Outcome {
    let home = Home::new()?;
    home.keep(Spot::of_house(Kind::Mode, "bad"), json!({"allowed_tools": ["nonsense"]}));
    let loaded = home.load()?;
    let mode = loaded.input.base.modes.iter().find(|mode| mode.slug == "bad").ok_or("no mode")?;
    assert_eq!(mode.faults, ["`nonsense` is not `server:tool`"]);
    Ok(())
}

#[test]
fn files_of_an_earlier_version_become_records_once() -> Outcome {
    let home = Home::new()?;
    assert_eq!(earlier::read(&home.locations)?, []);
    home.write("data/lists.json", r#"{"users": {"me": {"blocks": ["a:b"]}}}"#)?;
    home.write("data/settings.json", r#"{"mcp.tool.x.enabled": false}"#)?;
    for (place, content) in earlier::read(&home.locations)? {
        home.keep(place, content);
    }
    assert_eq!(home.user("me").blocks, ["a:b"]);
    assert!(home.load()?.input.base.settings.contains_key("mcp.tool.x.enabled"));
    earlier::put_away(&home.locations)?;
    assert_eq!(earlier::read(&home.locations)?, []);
    assert!(home.path("data/lists.taken-over").exists());
    home.write("data/lists.json", "{\"users\": 1}")?;
    assert!(earlier::read(&home.locations).is_err(), "what it forbids must not be lost");
    Ok(())
}
