//! Changes of what the store holds: checked, told, recorded, versioned, and refused where they are stale, broken,
//! shadowed, or not theirs to make.

use serde_json::{Value, json};
use toolwarden_control::operations::{
    AdminSet, AdminShow, ModesDelete, ModesSet, PolicyDiff, PolicyHistory, PolicyRecords, PolicyRollback, RolesList,
    RolesSet, RulesAdd, RulesRemove, ServersAdd, ServersRemove, ServersSwitch, SessionsList, SessionsMode, SettingsGet,
    SettingsSet, ToolsSet, admin_set, modes_delete, modes_set, policy_diff, policy_history, policy_rollback,
    roles_list, roles_set, rules_add, servers_add, servers_remove, servers_switch, sessions_mode, settings_get,
    settings_set, tools_set,
};
use toolwarden_control::operations::{AllowlistAdd, Nothing, allowlist_add};
use toolwarden_control::{Actor, ControlError, Role, Terms, Via};

use crate::engines::{Engine, on_both};
use crate::{Office, office_on};

on_both!(
    gate_16_a_change_makes_a_version_says_what_it_allows_and_can_be_undone,
    a_change_made_on_an_older_version_is_refused_with_both_sides,
    fifty_writers_of_one_list_and_one_mode_lose_nothing,
    what_cannot_be_used_is_refused_before_anything_happened,
    roles_start_from_what_is_shipped_and_can_be_reset,
    servers_modes_rules_and_controls_come_and_go,
    a_file_that_comes_first_is_named_and_nothing_is_written,
    a_user_changes_what_is_theirs_and_nothing_else,
    mode_8_a_session_is_put_in_another_mode_by_whose_it_is_and_that_is_recorded,
);

fn object(value: &Value) -> serde_json::Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn setting(key: &str, value: Value) -> settings_set::Request {
    settings_set::Request { key: key.to_owned(), value: Some(value), ..settings_set::Request::default() }
}

async fn version(office: &Office) -> u64 {
    office.run::<PolicyRecords>(Nothing {}).await.map_or(u64::MAX, |found| found.version)
}

async fn gate_16_a_change_makes_a_version_says_what_it_allows_and_can_be_undone(engine: Engine) {
    let office = office_on(engine).await;
    let done = office.run::<SettingsSet>(setting("a.b", json!(true))).await;
    assert!(done.is_ok_and(|done| done.changed && done.version == 1 && done.widens.len() == 1));
    // The same again is no version.
    let done = office.run::<SettingsSet>(setting("a.b", json!(true))).await;
    assert!(done.is_ok_and(|done| !done.changed && done.version == 1));
    let terms = Terms { dry_run: true, ..Terms::default() };
    let tried = office.run::<SettingsSet>(settings_set::Request { terms, ..setting("c", json!(1)) }).await;
    assert!(tried.is_ok_and(|done| done.changed && done.version == 2));
    assert_eq!(version(&office).await, 1, "a trial changes nothing");
    let terms = Terms { reason: Some("why not".to_owned()), ..Terms::default() };
    let off = tools_set::Request { tool: "gw:read".to_owned(), enabled: Some(false), terms, ..Default::default() };
    assert!(office.run::<ToolsSet>(off).await.is_ok_and(|set| !set.enabled && set.done.widens.is_empty()));
    let history = office.run::<PolicyHistory>(policy_history::Request::default()).await;
    let rows = history.map(|history| history.versions).unwrap_or_default();
    let shown: Vec<_> = rows.iter().map(|row| (row.version, row.summary.as_str(), row.reason.as_deref())).collect();
    assert_eq!(shown, [(2, "switch `gw:read` off", Some("why not")), (1, "set `a.b` to true", None)]);
    assert!(rows.iter().all(|row| row.author == "ada" && row.door == "control"));
    let back = policy_rollback::Request { version: 1, ..policy_rollback::Request::default() };
    let back = office.run::<PolicyRollback>(back).await;
    assert!(back.as_ref().is_ok_and(|done| done.version == 3 && done.widens.len() == 1), "{back:?}");
    let diff = office.run::<PolicyDiff>(policy_diff::Request { from: Some(1), to: Some(3) }).await;
    assert!(diff.is_ok_and(|diff| diff.changes.is_empty()));
    let diff = office.run::<PolicyDiff>(policy_diff::Request { from: Some(1), to: Some(2) }).await;
    let changes = diff.map(|diff| diff.changes).unwrap_or_default();
    let names: Vec<_> = changes.into_iter().map(|change| (change.name, change.after)).collect();
    assert_eq!(names, [("gw:read".to_owned(), Some(json!({"enabled": false})))]);
    assert_eq!(
        office.details().await,
        ["go back to version 1", "switch `gw:read` off", "nothing changed: set `a.b` to true", "set `a.b` to true"]
    );
}

async fn a_change_made_on_an_older_version_is_refused_with_both_sides(engine: Engine) {
    let office = office_on(engine).await;
    let mode = |tool: &str, if_version: Option<u64>| modes_set::Request {
        slug: "review".to_owned(),
        allow_tools: vec![tool.to_owned()],
        terms: Terms { if_version, ..Terms::default() },
        ..modes_set::Request::default()
    };
    assert!(office.run::<ModesSet>(mode("gw:read", Some(0))).await.is_ok());
    assert!(office.run::<ModesSet>(mode("gw:write", Some(1))).await.is_ok());
    let refused = office.run::<ModesSet>(mode("gw:other", Some(1))).await;
    let Err(ControlError::Conflict { message, sides }) = refused else { unreachable!("{refused:?}") };
    assert!(message.contains("made on version 1") && message.contains("at version 2"), "{message}");
    assert_eq!(sides.now, Some(json!({"allowed_tools": ["gw:read", "gw:write"]})));
    assert_eq!(sides.yours, Some(json!({"allowed_tools": ["gw:read", "gw:write", "gw:other"]})));
    assert_eq!(version(&office).await, 2);
}

async fn fifty_writers_of_one_list_and_one_mode_lose_nothing(engine: Engine) {
    let office = std::sync::Arc::new(office_on(engine).await);
    let writers: Vec<_> = (0..50)
        .map(|number| {
            let office = office.clone();
            tokio::spawn(async move {
                let entry = format!("s{number}:t");
                let list = allowlist_add::Request { entry: entry.clone(), ..allowlist_add::Request::default() };
                let mode = modes_set::Request {
                    slug: "review".to_owned(),
                    allow_tools: vec![entry],
                    ..modes_set::Request::default()
                };
                office.run::<AllowlistAdd>(list).await.is_ok() && office.run::<ModesSet>(mode).await.is_ok()
            })
        })
        .collect();
    for writer in writers {
        assert!(writer.await.unwrap_or(false));
    }
    let records = office.run::<PolicyRecords>(Nothing {}).await.map(|found| found.records).unwrap_or_default();
    let count = |kind: &str, key: &str| {
        let found = records.iter().find(|record| record.kind == kind);
        found.and_then(|record| record.content.get(key)?.as_array().map(Vec::len))
    };
    assert_eq!(count("user", "mcp_allowlist"), Some(50));
    assert_eq!(count("mode", "allowed_tools"), Some(50));
    assert_eq!(version(&office).await, 100);
}

async fn what_cannot_be_used_is_refused_before_anything_happened(engine: Engine) {
    let office = office_on(engine).await;
    let mode = modes_set::Request { slug: "no slug!".to_owned(), ..modes_set::Request::default() };
    assert!(office.run::<ModesSet>(mode).await.is_err_and(|error| error.fault().is_input()));
    let rules = |text: &str| rules_add::Request {
        name: "r".to_owned(),
        text: text.to_owned(),
        ..rules_add::Request::default()
    };
    for wrong in ["permit(", "forbid (principal, action, resource) when { context.hour >= 22 };"] {
        let refused = office.run::<RulesAdd>(rules(wrong)).await;
        assert!(refused.is_err_and(|error| error.code() == "policy_refused"), "{wrong}");
    }
    let child = modes_set::Request {
        slug: "child".to_owned(),
        extends: Some("nobody".to_owned()),
        ..modes_set::Request::default()
    };
    let refused = office.run::<ModesSet>(child).await;
    assert!(refused.as_ref().is_err_and(|error| error.to_string().contains("nobody")), "{refused:?}");
    let back = policy_rollback::Request { version: 999, ..policy_rollback::Request::default() };
    assert!(office.run::<PolicyRollback>(back).await.is_err_and(|error| error.code() == "not_found"));
    let diff = office.run::<PolicyDiff>(policy_diff::Request { from: Some(999), to: None }).await;
    assert!(diff.is_err_and(|error| error.code() == "not_found"));
    let role = roles_set::Request {
        name: "r".to_owned(),
        allow: vec!["a*b".to_owned()],
        scope: Some("pm".to_owned()),
        ..roles_set::Request::default()
    };
    assert!(office.run::<RolesSet>(role).await.is_err_and(|error| error.code() == "policy_refused"));
    for key in ["", "a..b", "mcp.tool.x.enabeld"] {
        assert!(office.run::<SettingsSet>(setting(key, json!(false))).await.is_err(), "{key}");
    }
    assert!(office.run::<SettingsSet>(setting("mcp.tool.x.enabled", json!("off"))).await.is_err());
    let scope = |tool: &str, scope: &str| tools_set::Request {
        tool: tool.to_owned(),
        scope: Some(scope.to_owned()),
        ..tools_set::Request::default()
    };
    assert!(office.run::<ToolsSet>(scope("gw:read", "everywhere")).await.is_err());
    assert!(office.run::<ToolsSet>(scope("read", "pm")).await.is_err(), "a scope is of one server's tool");
    let controls = object(&json!({"enabeld": true}));
    let admin = admin_set::Request { controls, ..admin_set::Request::default() };
    assert!(office.run::<AdminSet>(admin).await.is_err_and(|error| error.code() == "policy_refused"));
    assert_eq!(office.records().await, 0);
    assert_eq!(office.details().await, Vec::<String>::new());
}

async fn roles_start_from_what_is_shipped_and_can_be_reset(engine: Engine) {
    let office = office_on(engine).await;
    let role = roles_set::Request {
        name: "sandbox".to_owned(),
        allow: vec!["db.read".to_owned()],
        drop: vec!["api.call".to_owned(), "db.*".to_owned()],
        ..roles_set::Request::default()
    };
    let set = office.run::<RolesSet>(role).await;
    assert!(set.as_ref().is_ok_and(|set| set.name == "worker" && !set.done.widens.is_empty()), "{set:?}");
    let show = || roles_list::Request { name: Some("worker".to_owned()) };
    let shown = office.run::<RolesList>(show()).await.ok().and_then(|found| found.roles.into_iter().next());
    let Some(shown) = shown else { unreachable!("there is a worker") };
    assert!(shown.allow.contains(&"db.read".to_owned()) && !shown.allow.contains(&"api.call".to_owned()));
    assert!(!shown.disallow.contains(&"db.*".to_owned()) && shown.disallow.contains(&"node.*".to_owned()));
    assert_eq!((shown.version, shown.source.as_str()), (1, "stored role `worker`"));
    let reset = roles_set::Request { name: "worker".to_owned(), reset: true, ..roles_set::Request::default() };
    assert!(office.run::<RolesSet>(reset.clone()).await.is_ok_and(|set| set.done.changed));
    assert!(office.run::<RolesSet>(reset).await.is_err_and(|error| error.code() == "not_found"));
    let missing = roles_list::Request { name: Some("nobody".to_owned()) };
    assert!(office.run::<RolesList>(missing).await.is_err_and(|error| error.code() == "not_found"));
}

async fn servers_modes_rules_and_controls_come_and_go(engine: Engine) {
    let office = office_on(engine).await;
    let add = |replace: bool| servers_add::Request {
        name: "docs".to_owned(),
        definition: object(&json!({"url": "https://example.com/mcp", "headers": {"X-Key": "s3cret", "Y": "${env:Y}"}})),
        replace,
        ..servers_add::Request::default()
    };
    assert!(office.run::<ServersAdd>(add(false)).await.is_ok_and(|added| added.name == "docs"));
    assert!(office.run::<ServersAdd>(add(false)).await.is_err(), "another one is not replaced by accident");
    let off = |enabled| servers_switch::Request { name: "docs".to_owned(), enabled, ..Default::default() };
    assert!(office.run::<ServersSwitch>(off(false)).await.is_ok_and(|done| done.changed));
    assert!(office.run::<ServersAdd>(add(true)).await.is_ok_and(|added| !added.done.changed), "it stays off");
    let records = office.run::<PolicyRecords>(Nothing {}).await;
    let content = records.ok().and_then(|found| found.records.into_iter().next()).map(|record| record.content);
    let headers = content.as_ref().and_then(|content| content.get("headers"));
    assert_eq!(headers, Some(&json!({"X-Key": "…", "Y": "${env:Y}"})), "secrets stay where they are");
    assert!(office.run::<ServersSwitch>(off(true)).await.is_ok_and(|done| !done.widens.is_empty()));
    let gone = servers_remove::Request { name: "docs".to_owned(), ..servers_remove::Request::default() };
    assert!(office.run::<ServersRemove>(gone.clone()).await.is_ok());
    assert!(office.run::<ServersRemove>(gone).await.is_err_and(|error| error.code() == "not_found"));
    let rule = "@id(\"r\")\nforbid(principal, action, resource);".to_owned();
    let rules = rules_add::Request { name: "r".to_owned(), text: rule, ..rules_add::Request::default() };
    assert!(office.run::<RulesAdd>(rules).await.is_ok_and(|done| done.changed && done.widens.is_empty()));
    let name = |name: &str| modes_delete::Request { name: name.to_owned(), ..modes_delete::Request::default() };
    assert!(office.run::<RulesRemove>(name("r")).await.is_ok_and(|done| !done.widens.is_empty()));
    let mode = modes_set::Request { slug: "m".to_owned(), any_tool: true, ..modes_set::Request::default() };
    assert!(office.run::<ModesSet>(mode).await.is_ok());
    assert!(office.run::<ModesDelete>(name("m")).await.is_ok());
    assert!(office.run::<ModesDelete>(name("m")).await.is_err_and(|error| error.code() == "not_found"));
    let controls = object(&json!({"enabled": true, "blocked": ["rm"]}));
    let admin = admin_set::Request { controls, ..admin_set::Request::default() };
    assert!(office.run::<AdminSet>(admin).await.is_ok());
    let shown = office.run::<AdminShow>(Nothing {}).await;
    assert!(
        shown.is_ok_and(|shown| shown.controls.is_some_and(|controls| controls.get("enabled") == Some(&json!(true))))
    );
    let nothing = admin_set::Request { replace: true, ..admin_set::Request::default() };
    assert!(office.run::<AdminSet>(nothing).await.is_ok_and(|set| !set.done.widens.is_empty()));
    assert!(office.run::<AdminShow>(Nothing {}).await.is_ok_and(|shown| shown.controls.is_none()));
    assert_eq!(office.records().await, 0);
}

async fn a_file_that_comes_first_is_named_and_nothing_is_written(engine: Engine) {
    let office = office_on(engine).await;
    let config = "[servers.docs]\nurl = \"https://example.com/mcp\"\nenabled = false\ntools.x = { enabled = false }\n\
                  [modes.review]\nname = \"R\"\n[roles.pm]\nallow = [\"db.*\"]\n";
    office.config(config);
    let shadowed = |outcome: Result<(), ControlError>, line: &str| {
        let message = outcome.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(message.contains(line), "{line}: {message}");
    };
    let mode = modes_set::Request { slug: "review".to_owned(), ..modes_set::Request::default() };
    shadowed(office.run::<ModesSet>(mode).await.map(drop), "toolwarden.toml:5");
    let role = roles_set::Request { name: "pm".to_owned(), explain: Some(true), ..roles_set::Request::default() };
    shadowed(office.run::<RolesSet>(role).await.map(drop), "toolwarden.toml:7");
    let definition = object(&json!({"url": "https://example.com"}));
    let server = servers_add::Request { name: "DOCS".to_owned(), definition, ..servers_add::Request::default() };
    shadowed(office.run::<ServersAdd>(server).await.map(drop), "toolwarden.toml:1");
    let on = servers_switch::Request { name: "docs".to_owned(), enabled: true, ..Default::default() };
    shadowed(office.run::<ServersSwitch>(on).await.map(drop), "toolwarden.toml:1");
    assert_eq!(office.records().await, 0);
    // A tool nobody has may be a slip.
    let off = |tool: &str| tools_set::Request {
        tool: tool.to_owned(),
        enabled: Some(false),
        terms: Terms { dry_run: true, ..Terms::default() },
        ..tools_set::Request::default()
    };
    for (tool, is_known) in [("dosc:x", false), ("docs:x", true), ("x", true), ("*:x", true)] {
        let tried = office.run::<ToolsSet>(off(tool)).await;
        let is_told = |set: tools_set::Outcome| set.done.findings.iter().any(|finding| finding.code == "unknown_tool");
        assert!(tried.is_ok_and(|set| is_told(set) != is_known), "{tool}");
    }
    // A tool that a file switches off stays off, and that is said.
    let on = tools_set::Request { tool: "docs:X".to_owned(), enabled: Some(true), ..tools_set::Request::default() };
    let set = office.run::<ToolsSet>(on).await;
    assert!(set.is_ok_and(|set| set.still_off_by.iter().any(|source| source.contains("toolwarden.toml:4"))));
    // So does one that is switched off in other words.
    let switch = |tool: &str, enabled| tools_set::Request {
        tool: tool.to_owned(),
        enabled: Some(enabled),
        ..tools_set::Request::default()
    };
    for (off, on) in [("docs__X", "docs:X"), ("docs:X", "docs__X"), ("docs:X", "docs.x"), ("X", "docs__X")] {
        assert!(office.run::<ToolsSet>(switch(off, false)).await.is_ok(), "{off}");
        let set = office.run::<ToolsSet>(switch(on, true)).await;
        let stored = |set: &tools_set::Outcome| set.still_off_by.iter().any(|source| source.contains("stored tool"));
        assert!(set.as_ref().is_ok_and(stored), "{off} {on}: {set:?}");
        assert!(office.run::<ToolsSet>(switch(off, true)).await.is_ok(), "{off}");
    }
    // What only takes something back is done although the file is broken; anything else is not.
    office.config("[[[");
    let off = tools_set::Request { tool: "docs:y".to_owned(), enabled: Some(false), ..tools_set::Request::default() };
    assert!(office.run::<ToolsSet>(off).await.is_ok_and(|set| set.done.changed));
    let on = tools_set::Request { tool: "docs:y".to_owned(), enabled: Some(true), ..tools_set::Request::default() };
    assert!(office.run::<ToolsSet>(on).await.is_err());
}

async fn a_user_changes_what_is_theirs_and_nothing_else(engine: Engine) {
    let mut office = office_on(engine).await;
    office.actor =
        Actor { user: "bob".to_owned(), via: Via::Token, roles: vec![Role::User], groups: Vec::new(), token: None };
    let forbidden = |outcome: Result<(), ControlError>| {
        assert!(outcome.as_ref().is_err_and(|error| error.code() == "forbidden"), "{outcome:?}");
    };
    assert!(office.run::<SettingsSet>(setting("auto_run.mode", json!("ask_every_time"))).await.is_ok());
    let got = settings_get::Request { key: Some("auto_run.mode".to_owned()), ..settings_get::Request::default() };
    let mode = office.run::<SettingsGet>(got).await.ok().and_then(|found| Some(found.settings.first()?.value.clone()));
    assert_eq!(mode, Some(json!("ask_every_time")));
    let entry = |user: Option<&str>| allowlist_add::Request {
        entry: "gw:read".to_owned(),
        user: user.map(str::to_owned),
        ..allowlist_add::Request::default()
    };
    assert!(office.run::<AllowlistAdd>(entry(None)).await.is_ok_and(|added| added.place == "stored lists of bob"));
    forbidden(office.run::<AllowlistAdd>(entry(Some("ada"))).await.map(drop));
    let others = settings_set::Request { user: Some("ada".to_owned()), ..setting("auto_run.mode", json!("yolo")) };
    forbidden(office.run::<SettingsSet>(others).await.map(drop));
    forbidden(office.run::<SettingsSet>(setting("x", json!(true))).await.map(drop));
    let server = |user: Option<&str>, definition: Value| servers_add::Request {
        name: "mine".to_owned(),
        user: user.map(str::to_owned),
        definition: object(&definition),
        ..servers_add::Request::default()
    };
    forbidden(office.run::<ServersAdd>(server(None, json!({"url": "https://example.com"}))).await.map(drop));
    forbidden(office.run::<ServersAdd>(server(Some("ada"), json!({"url": "https://example.com"}))).await.map(drop));
    forbidden(office.run::<ServersAdd>(server(Some("bob"), json!({"command": "sh"}))).await.map(drop));
    let widened = server(Some("bob"), json!({"url": "https://example.com", "share": "all"}));
    assert!(office.run::<ServersAdd>(widened).await.is_err_and(|error| error.code() == "policy_refused"));
    let own = office.run::<ServersAdd>(server(Some("bob"), json!({"url": "https://example.com"}))).await;
    assert!(own.is_ok_and(|added| added.name == "bob.mine"));
    forbidden(office.run::<PolicyRollback>(policy_rollback::Request::default()).await.map(drop));
    // Nor by a name that is as good as one of another's.
    office.actor = Actor::owner("ada", Via::ControlSocket);
    let same =
        servers_add::Request { name: "BOB.mine".to_owned(), ..server(None, json!({"url": "https://a.example"})) };
    let taken = office.run::<ServersAdd>(same).await;
    assert!(taken.as_ref().is_err_and(|error| error.to_string().contains("as good as")), "{taken:?}");
}

async fn mode_8_a_session_is_put_in_another_mode_by_whose_it_is_and_that_is_recorded(engine: Engine) {
    let mut office = office_on(engine).await;
    let ids = |found: Result<toolwarden_control::operations::sessions_list::Outcome, ControlError>| {
        found.map(|found| found.sessions.into_iter().map(|one| one.id).collect::<Vec<_>>()).unwrap_or_default()
    };
    assert_eq!(ids(office.run::<SessionsList>(Nothing {}).await), ["one", "two"]);
    let wish =
        |id: &str, mode: Option<&str>| sessions_mode::Request { id: id.to_owned(), mode: mode.map(str::to_owned) };
    office.actor =
        Actor { user: "bob".to_owned(), via: Via::Token, roles: vec![Role::User], groups: Vec::new(), token: None };
    assert_eq!(ids(office.run::<SessionsList>(Nothing {}).await), ["two"]);
    let others = office.run::<SessionsMode>(wish("one", Some("review"))).await;
    assert!(others.is_err_and(|error| error.code() == "not_found"), "what is another's is not there");
    let own = office.run::<SessionsMode>(wish("two", Some("review"))).await;
    assert_eq!(own.ok().and_then(|session| session.mode), Some("review".to_owned()));
    let unknown = office.run::<SessionsMode>(wish("two", Some("unknown"))).await;
    assert!(unknown.is_err_and(|error| error.code() == "bad_input"));
    office.actor = Actor::owner("ada", Via::ControlSocket);
    assert!(office.run::<SessionsMode>(wish("two", None)).await.is_ok());
    assert_eq!(
        office.details().await,
        [
            "session two: mode none instead of none",
            "nothing changed: session two: mode unknown instead of none",
            "session two: mode review instead of none",
        ]
    );
}
