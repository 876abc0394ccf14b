//! Adding a deny never loosens an answer, whichever of the deny sides it is added to.

use proptest::prelude::{prop_assert, proptest};
use proptest::test_runner::TestCaseError;
use toolwarden_core::{Sourced, ToolIdentity};
use toolwarden_policy::input::{ModeInput, RoleInput};
use toolwarden_policy::shipped::ROLES;
use toolwarden_policy::{Query, decide};

use crate::ask::{cases, compile};
use crate::generate::{queries, world};
use crate::generate_rules::{permit_all, print};
use crate::naive::World;
use crate::rule::{Effect, Rule, What};
use crate::tape::{here, sourced};

/// No answer under `stricter` is looser than under `world`.
fn never_looser(world: &World, stricter: &World, queries: &[Query]) -> Result<(), TestCaseError> {
    let (before, after) = (compile(world)?, compile(stricter)?);
    for query in queries {
        let (old, new) = (decide(&before, query), decide(&after, query));
        prop_assert!(new.decision() >= old.decision(), "{:?}\n{:?}\n{:?}", old.explanation(), new.explanation(), query);
    }
    Ok(())
}

fn change(world: &World, change: impl FnOnce(&mut World)) -> World {
    let mut changed = world.clone();
    change(&mut changed);
    changed
}

fn in_every_mode(world: &World, deny: impl Fn(&mut ModeInput)) -> World {
    change(world, |world| world.input.base.modes.iter_mut().for_each(&deny))
}

/// A shipped role's list is replaced by what is configured, so the shipped patterns are repeated.
fn role_disallows(world: &mut World, pattern: &str) {
    let roles = &mut world.input.base.roles;
    for shipped in &ROLES {
        if !roles.iter().any(|role| role.name.value == shipped.name) {
            let name = sourced(shipped.name);
            roles.push(RoleInput {
                name,
                scope: None,
                allow: None,
                disallow: None,
                conditions: Vec::new(),
                explain: None,
            });
        }
    }
    for role in roles {
        let shipped = ROLES.iter().find(|shipped| shipped.name == role.name.value);
        let inherited = || shipped.map(|shipped| shipped.disallow.iter().map(|text| sourced(text)).collect());
        let mut list: Vec<Sourced<String>> = role.disallow.take().or_else(inherited).unwrap_or_default();
        list.push(sourced(pattern));
        role.disallow = Some(list);
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_server_disallowed_in_modes(world in world(), queries in queries(40)) {
        let stricter = in_every_mode(&world, |mode| mode.disallowed_servers.push(sourced("DB")));
        never_looser(&world, &stricter, &queries)?;
    }

    #[test]
    fn a_tool_disallowed_in_modes(world in world(), queries in queries(40)) {
        let tool = || Sourced::new(ToolIdentity::new("Db", "GET"), here());
        let stricter = in_every_mode(&world, |mode| mode.disallowed_tools.push(tool()));
        never_looser(&world, &stricter, &queries)?;
    }

    #[test]
    fn a_pattern_disallowed_by_roles(world in world(), queries in queries(40)) {
        let stricter = change(&world, |world| role_disallows(world, "Db.*"));
        never_looser(&world, &stricter, &queries)?;
    }

    #[test]
    fn a_tool_switched_off(world in world(), queries in queries(40)) {
        let stricter = change(&world, |world| {
            let off = Sourced::new(serde_json::Value::Bool(false), here());
            world.input.base.settings.insert("mcp.tool.Get.enabled".to_owned(), off);
            world.input.servers.iter_mut().for_each(|server| server.disabled_tools.push(sourced("API.call")));
        });
        never_looser(&world, &stricter, &queries)?;
    }

    #[test]
    fn a_tool_blocked_by_its_users(world in world(), queries in queries(40)) {
        let stricter = change(&world, |world| {
            world.input.users.values_mut().for_each(|user| user.blocks.push(sourced("DB:*")));
        });
        never_looser(&world, &stricter, &queries)?;
    }

    #[test]
    fn a_rule_that_forbids_or_holds(world in world(), queries in queries(40)) {
        let forbid = Rule { effect: Effect::Forbid, what: What::Server("db"), ..permit_all() };
        let hold = Rule { effect: Effect::Hold, what: What::Server("web"), ..permit_all() };
        let stricter = change(&world, |world| {
            world.rules.extend([forbid, hold]);
            world.input.base.rules = print(&world.rules);
        });
        never_looser(&world, &stricter, &queries)?;
    }

    #[test]
    fn a_command_or_domain_the_admin_refuses(world in world(), queries in queries(40)) {
        let stricter = change(&world, |world| {
            if let Some(admin) = &mut world.input.base.admin {
                admin.blocked.push(sourced("git"));
                admin.sandboxing.denied_domains.push(sourced("a.test"));
                admin.delete_file_protection = true;
                admin.browser_protection = true;
            }
        });
        never_looser(&world, &stricter, &queries)?;
    }

    #[test]
    fn an_entry_to_ask_about_and_protections(world in world(), queries in queries(40)) {
        let stricter = change(&world, |world| {
            let auto_run = &mut world.input.base.auto_run;
            auto_run.ask.extend([sourced("DB:*"), sourced("*:Shell.Run")]);
            (auto_run.mcp_protection, auto_run.browser_protection, auto_run.delete_protection) = (true, true, true);
        });
        never_looser(&world, &stricter, &queries)?;
    }

    #[test]
    fn a_server_that_is_disabled(world in world(), queries in queries(40)) {
        let stricter = change(&world, |world| {
            world.input.servers.iter_mut().filter(|server| server.name == "db").for_each(|server| server.enabled = false);
        });
        never_looser(&world, &stricter, &queries)?;
    }
}
