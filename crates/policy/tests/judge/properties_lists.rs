//! Lists: their order never matters, and under an admin's control no user's list matters at all.

use proptest::prelude::{any, prop_assert_eq, proptest};
use toolwarden_core::Sourced;
use toolwarden_policy::decide;
use toolwarden_policy::input::{AdminInput, AutoRunMode, PermissionsInput};

use crate::ask::{cases, compile, engine};
use crate::generate::{queries, world};
use crate::naive::{Naive, World};
use crate::tape::sourced;

fn turn<T>(list: &mut [T], by: u8) {
    list.reverse();
    if !list.is_empty() {
        list.rotate_left(usize::from(by) % list.len());
    }
}

fn turn_maybe<T>(list: &mut Option<Vec<T>>, by: u8) {
    if let Some(list) = list {
        turn(list, by);
    }
}

/// The same policy with every list in another order.
fn turned(world: &World, by: u8) -> World {
    let mut world = world.clone();
    let base = &mut world.input.base;
    turn(&mut base.auto_run.ask, by);
    turn(&mut base.modes, by);
    turn(&mut base.roles, by);
    turn(&mut base.rules, by);
    if let Some(admin) = &mut base.admin {
        turn(&mut admin.allowed, by);
        turn(&mut admin.blocked, by);
        turn(&mut admin.mcp_tool_allowlist, by);
        turn(&mut admin.sandboxing.denied_domains, by);
    }
    for mode in &mut base.modes {
        turn_maybe(&mut mode.allowed_servers, by);
        turn_maybe(&mut mode.allowed_tools, by);
        turn(&mut mode.disallowed_servers, by);
        turn(&mut mode.disallowed_tools, by);
    }
    for role in &mut base.roles {
        turn_maybe(&mut role.allow, by);
        turn_maybe(&mut role.disallow, by);
        turn(&mut role.conditions, by);
    }
    turn(&mut world.input.servers, by);
    for server in &mut world.input.servers {
        turn_maybe(&mut server.catalog, by);
        turn(&mut server.disabled_tools, by);
        turn(&mut server.always_allow, by);
    }
    for user in world.input.users.values_mut() {
        turn(&mut user.mcp_allowlist, by);
        turn(&mut user.terminal_allowlist, by);
        turn(&mut user.blocks, by);
    }
    turn(&mut world.input.local.files, by);
    for file in world.input.local.files.iter_mut().chain(world.input.local.workspaces.values_mut()) {
        turn_maybe(&mut file.mcp_allowlist, by);
        turn_maybe(&mut file.terminal_allowlist, by);
    }
    world
}

/// Which of several equally wide entries is named may depend on the order.
fn without_rule(answer: Naive) -> Naive {
    Naive { rule: None, ..answer }
}

/// Admin-controlled, nobody asks every time, and run-everything is not the admin's wish.
fn controlled(world: &World) -> World {
    let mut world = world.clone();
    let base = &mut world.input.base;
    let admin = base.admin.get_or_insert_with(AdminInput::default);
    (admin.enabled, admin.enable_run_everything) = (true, false);
    base.auto_run.mode = AutoRunMode::UseAllowlist;
    world.input.users.values_mut().for_each(|user| user.auto_run_mode = Some(AutoRunMode::UseAllowlist));
    world
}

/// The same with everything users could say in favour of running.
fn eager(world: &World) -> World {
    let mut world = world.clone();
    let everything = || vec![sourced("*:*"), sourced("db:get")];
    let commands = || -> Vec<Sourced<String>> { ["git", "ls", "echo", "rm", "npm", "cat", "grep"].map(sourced).into() };
    world.input.base.auto_run.mode = AutoRunMode::RunEverything;
    world.input.base.auto_run.mcp_allowlists = false;
    world.input.base.auto_run.auto_review = false;
    for name in ["ann", "bob", "cid", "eve"] {
        let user = world.input.users.entry(name.to_owned()).or_default();
        user.auto_run_mode = Some(AutoRunMode::RunEverything);
        user.mcp_allowlist = everything();
        user.terminal_allowlist = commands();
    }
    world.input.servers.iter_mut().for_each(|server| server.always_allow = vec![sourced("*"), sourced("get")]);
    world.input.local.files = vec![PermissionsInput {
        mcp_allowlist: Some(everything()),
        terminal_allowlist: Some(commands()),
        ..PermissionsInput::default()
    }];
    world
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn order_never_matters(world in world(), queries in queries(40), by in any::<u8>()) {
        let (policy, turned) = (compile(&world)?, compile(&turned(&world, by))?);
        for query in &queries {
            let (one, other) = (engine(&policy, query), engine(&turned, query));
            prop_assert_eq!(without_rule(one), without_rule(other), "{:?}", query);
        }
    }

    #[test]
    fn under_admin_control_users_cannot_loosen(world in world(), queries in queries(40)) {
        let world = controlled(&world);
        let (before, after) = (compile(&world)?, compile(&eager(&world))?);
        for query in &queries {
            prop_assert_eq!(decide(&before, query).decision(), decide(&after, query).decision(), "{:?}", query);
        }
    }
}
