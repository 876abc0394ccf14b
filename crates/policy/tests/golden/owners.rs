//! GATE-8: a server that one user installed is there for that user, and for nobody else.

use std::sync::Arc;

use toolwarden_core::{Call, Caller, Door, Operation, ToolIdentity};
use toolwarden_policy::input::{AutoRunMode, Declared, Scope, ToolInput};
use toolwarden_policy::{FlatName, Message, PolicyInput, PolicySet, admit, decide, is_visible, resolve_flat_name};

use crate::kit::{agent, answer, asked, compile, listing, person, plain, server, sourced, with_tool};

/// Of `ada`, who is the local person.
const OWN: &str = "ada.notes";

fn input() -> PolicyInput {
    let mut input = plain();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    let mut owned = listing(server(OWN), &["read", "web.fetch", "twin", "Twin"]);
    (owned.declared, owned.owner) = (Declared::ByUser, Some("ada".to_owned()));
    input.servers = vec![listing(server("db"), &["db.read"]), owned];
    input
}

fn without() -> PolicyInput {
    let mut input = input();
    input.servers.retain(|server| server.owner.is_none());
    input
}

fn other_person() -> Arc<Caller> {
    Arc::new(Caller::person("eve"))
}

/// Everybody whose server it is not.
fn others() -> Vec<Arc<Caller>> {
    let mut agent = (*agent("pm")).clone();
    agent.user = Some("eve".to_owned());
    let mut nobodys = agent.clone();
    nobodys.user = None;
    let folded = Caller::person("ADA");
    vec![other_person(), Arc::new(agent), Arc::new(nobodys), Arc::new(folded)]
}

/// Everything the judge says of a server: to calls at every door, to lists, to messages.
fn said(policy: &PolicySet, caller: &Arc<Caller>, server: &str) -> Vec<String> {
    let mut said = Vec::new();
    for door in [Door::Mcp, Door::Decide, Door::Explain] {
        for tool in ["read", "web.fetch", "TWIN", "nothing", "a/b"] {
            let query = asked(caller, Call::mcp(server, tool, None), door).traced();
            said.push(format!("{:?} {}", decide(policy, &query).explanation(), is_visible(policy, &query)));
        }
        for operation in [Operation::ReadResource, Operation::GetPrompt, Operation::Complete] {
            let query = asked(caller, Call::asked(server, operation, None), door).traced();
            said.push(format!("{:?} {}", decide(policy, &query).explanation(), is_visible(policy, &query)));
            let message = Message::Listed { method: "tools/list".to_owned() };
            said.push(format!("{:?}", admit(policy, &query, message).err()));
        }
    }
    said
}

#[test]
fn gate_8_a_server_of_one_user_is_unknown_to_everybody_else_in_every_word() {
    let (policy, none) = (compile(&input()), compile(&without()));
    for caller in others() {
        for spelt in [OWN, "ADA.notes", "Ada.Notes"] {
            assert_eq!(said(&policy, &caller, spelt), said(&none, &caller, spelt), "{caller:?} {spelt}");
        }
    }
    let query = asked(&other_person(), Call::mcp(OWN, "read", None), Door::Mcp);
    assert_eq!(answer(&policy, &query), "deny unknown_tool");
    assert_ne!(said(&policy, &person(), OWN), said(&none, &person(), OWN));
}

#[test]
fn gate_8_its_owner_calls_it_and_agents_of_the_owner_once_its_tools_have_a_scope() {
    let ask = |input: &PolicyInput, caller: &Arc<Caller>, tool: &str| {
        answer(&compile(input), &asked(caller, Call::mcp(OWN, tool, None), Door::Mcp))
    };
    assert_eq!(ask(&input(), &person(), "read"), "allow run_everything");
    // Neither a pattern without a server nor a preset scope reaches it.
    assert_eq!(ask(&input(), &agent("pm"), "web.fetch"), "deny role_not_allowed");
    let mut named = input();
    let mut role = toolwarden_policy::input::RoleInput {
        name: sourced(&["pm"]).swap_remove(0),
        scope: None,
        allow: Some(sourced(&["ada.notes:*"])),
        disallow: None,
        conditions: Vec::new(),
        explain: None,
    };
    named.base.roles.push(role.clone());
    assert_eq!(ask(&named, &agent("pm"), "web.fetch"), "deny scope_missing");
    // The same where somebody forgot to say who declared it.
    named.servers.iter_mut().for_each(|server| server.declared = Declared::ByOperator);
    assert_eq!(ask(&named, &agent("pm"), "web.fetch"), "deny scope_missing");
    role.allow = Some(sourced(&["web.*"]));
    let mut bare = named.clone();
    bare.base.roles = vec![role];
    assert_eq!(ask(&bare, &agent("pm"), "web.fetch"), "deny role_not_allowed");
    let scope = ToolInput { scope: Some(Scope::Pm), ..ToolInput::default() };
    let scoped = named.servers.pop().map(|server| with_tool(server, "web.fetch", scope));
    named.servers.extend(scoped);
    assert_eq!(ask(&named, &agent("pm"), "web.fetch"), "allow run_everything");
}

#[test]
fn gate_8_names_without_a_server_find_what_the_user_knows() {
    let policy = compile(&input());
    let found = |user: Option<&str>| resolve_flat_name(&policy, "mcp__ada.notes__READ", "given", user);
    assert_eq!(found(Some("ada")), FlatName::One(ToolIdentity::new(OWN, "read")));
    for user in [Some("eve"), Some("ADA"), None] {
        assert_eq!(found(user), FlatName::One(ToolIdentity::new(OWN, "READ")), "as it is written: {user:?}");
    }
}

#[test]
fn gate_8_what_folds_to_the_same_name_cannot_both_register() {
    let query = |caller: Arc<Caller>, name: &str| asked(&caller, Call::mcp(name, "read", None), Door::Mcp);
    for (name, owner) in [("ADA.notes", None), (OWN, None), (OWN, Some("eve")), ("Ada.Notes", Some("eve"))] {
        let mut input = input();
        let mut rival = listing(server(OWN), &["read"]);
        (rival.name, rival.owner) = (name.to_owned(), owner.map(str::to_owned));
        input.servers.push(rival);
        let policy = compile(&input);
        for caller in [person(), other_person()] {
            for asked in [OWN, name] {
                let said = answer(&policy, &query(caller.clone(), asked));
                assert!(
                    ["deny server_conflict", "deny unknown_tool"].contains(&said.as_str()),
                    "{name} {owner:?}: {said}"
                );
            }
        }
    }
}

#[test]
fn gate_8_what_it_says_it_always_allows_is_nobodys_list() {
    let mut input = input();
    input.base.auto_run.mode = AutoRunMode::UseAllowlist;
    input.servers.iter_mut().for_each(|server| server.always_allow = sourced(&["read", "db.read"]));
    let policy = compile(&input);
    let ask = |server: &str, tool: &str| answer(&policy, &asked(&person(), Call::mcp(server, tool, None), Door::Mcp));
    assert_eq!(ask("db", "db.read"), "allow allowlist_match");
    assert_eq!(ask(OWN, "read"), "hold not_in_allowlist");
}
