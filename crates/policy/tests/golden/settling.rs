//! CORE-3, CORE-4 and CORE-5: mandatory holds, who pays, and judging again at payment time.

use toolwarden_core::{ApprovalNeeds, Call, Decision, Door, Payer, Payment};
use toolwarden_policy::input::{AutoRunMode, RuleFile, ToolInput};
use toolwarden_policy::{Definition, Launcher, PolicyInput, Query, Verdict, decide, settle};

use crate::kit::{asked, compile, files_allow, judged, now, origin, person, plain, server, sourced, with_tool};

#[expect(clippy::disallowed_methods, reason = "the test pays")]
fn pay(input: &PolicyInput, query: &Query, payer: Payer) -> Decision {
    let policy = compile(input);
    match decide(&policy, query) {
        Verdict::Hold(pending) => settle(&policy, *pending, &Payment::by(payer, "test"), now()).decision(),
        other => other.decision(),
    }
}

/// Who of all payers turns this hold into an allow.
fn who_pays(input: &PolicyInput, query: &Query) -> Vec<&'static str> {
    let pays = |payer: &Payer| pay(input, query, *payer) == Decision::Allow;
    Payer::ALL.into_iter().filter(pays).map(Payer::as_str).collect()
}

fn mcp() -> Query {
    asked(&person(), Call::mcp("s", "t", None), Door::Explain)
}

fn shell(command: &str) -> Query {
    asked(&person(), Call::shell(command, None), Door::Explain)
}

#[test]
fn core_3_the_sandbox_and_the_classifier_pay_only_where_settings_say() {
    let mut input = plain();
    assert_eq!(who_pays(&input, &mcp()), ["person"]);
    assert_eq!(who_pays(&input, &shell("npm test")), ["person"]);
    input.base.auto_run.auto_review = true;
    assert_eq!(who_pays(&input, &mcp()), ["person", "classifier"]);
    let fetch = asked(&person(), Call::fetch("https://example.com"), Door::Explain);
    assert_eq!(who_pays(&input, &fetch), ["person", "classifier"]);
    input.base.auto_run.sandbox_resolves = true;
    assert_eq!(who_pays(&input, &shell("npm test")), ["person", "classifier"]);
    let caged = shell("npm test").with_launcher(Launcher::Caged);
    assert_eq!(who_pays(&input, &caged), ["person", "classifier", "sandbox"]);
    // Never for MCP or fetch, and never for a deletion.
    assert_eq!(who_pays(&input, &mcp().with_launcher(Launcher::Caged)), ["person", "classifier"]);
    let deletion = shell("rm x").with_launcher(Launcher::Caged);
    assert_eq!(who_pays(&input, &deletion), ["person"]);
    // A mode may switch auto-review off for itself.
    input
        .base
        .modes
        .push(toolwarden_policy::input::ModeInput { auto_review: Some(false), ..crate::kit::mode("careful") });
    let careful = mcp().asked_by(crate::kit::person_in("careful"));
    assert_eq!(who_pays(&input, &careful), ["person"]);
}

#[test]
fn core_3_where_it_is_said_how_persons_answer_a_machine_does_not() {
    let mut input = plain();
    input.base.auto_run.auto_review = true;
    input.base.approvers.everywhere = vec!["bob".to_owned()];
    assert_eq!(who_pays(&input, &mcp()), ["person", "classifier"]);
    let mut second = input.clone();
    second.base.approvers.second_person = sourced(&["S:*"]);
    assert_eq!(who_pays(&second, &mcp()), ["second_person"]);
    let mut named = input.clone();
    let entry = sourced(&["s:T"]).into_iter().next();
    named.base.approvers.rules.extend(entry.map(|entry| (entry, ApprovalNeeds::default())));
    assert_eq!(who_pays(&named, &mcp()), ["person"]);
    input.base.approvers.second_person = sourced(&["other:*"]);
    assert_eq!(who_pays(&input, &mcp()), ["person", "classifier"]);
}

#[test]
fn review_4_a_held_call_says_who_may_answer_it() {
    let mut input = plain();
    input.base.approvers.everywhere = vec!["bob".to_owned()];
    input.base.approvers.second_person = sourced(&["s:*"]);
    let Verdict::Hold(pending) = decide(&compile(&input), &mcp()) else { unreachable!("held") };
    let expected = ApprovalNeeds { approvers: vec!["bob".to_owned()], second_person: true, reason: false };
    assert_eq!(pending.needs(), &expected);
}

#[test]
fn perm_1_instructions_are_the_local_users_alone_and_unite() {
    let mut input = plain();
    let file = |allow: &[&str], block: &[&str], broken| toolwarden_policy::input::PermissionsInput {
        allow_instructions: Some(sourced(allow)),
        block_instructions: Some(sourced(block)),
        broken,
        ..Default::default()
    };
    input.local.files = vec![file(&["a"], &["b"], false), file(&["c"], &[], false), file(&["x"], &["x"], true)];
    let ask = |caller: toolwarden_core::Caller| mcp().asked_by(caller.into());
    let local = ask(toolwarden_core::Caller::local_person(input.local.user.clone()));
    let policy = compile(&input);
    let found = policy.instructions(&local);
    let of = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let wanted = toolwarden_policy::Instructions { allow: of(&["a", "c"]), block: of(&["b"]) };
    assert_eq!(found, Some(&wanted));
    assert_eq!(policy.with_user(8, &input.local.user, &Default::default()).instructions(&local), Some(&wanted));
    let own_agent = ask(toolwarden_core::Caller::agent("worker", Some(input.local.user.clone())));
    assert_eq!(policy.instructions(&own_agent), Some(&wanted));
    for other in [
        toolwarden_core::Caller::agent("worker", Some("somebody".to_owned())),
        toolwarden_core::Caller::agent("worker", None),
        toolwarden_core::Caller::local_person("somebody"),
    ] {
        assert_eq!(policy.instructions(&ask(other.clone())), None, "{other:?}");
    }
    input.base.admin = Some(toolwarden_policy::input::AdminInput { enabled: true, ..Default::default() });
    assert_eq!(compile(&input).instructions(&local), None, "ALLOW-10");
}

#[test]
fn perm_3_with_a_broken_file_the_classifier_pays_nothing() {
    let mut input = plain();
    input.base.auto_run.auto_review = true;
    input.local.files.push(toolwarden_policy::input::PermissionsInput { broken: true, ..Default::default() });
    assert_eq!(who_pays(&input, &mcp()), ["person"]);
}

#[test]
fn core_4_mandatory_asks_survive_every_mode_and_allowlist() {
    let mut input = plain();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    files_allow(&mut input, &["*:*"], &[]);
    input.base.auto_run.ask = sourced(&["S:T"]);
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "hold mandatory_ask");
    assert_eq!(who_pays(&input, &mcp()), ["person"]);
    input.base.auto_run.ask.clear();
    input.servers.push(with_tool(server("s"), "t", ToolInput { human_review: true, ..ToolInput::default() }));
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "hold human_review");
    assert_eq!(who_pays(&input, &mcp()), ["person"]);
}

#[test]
fn core_4_hold_rules() {
    let run = |rules: &str| {
        let mut input = plain();
        input.base.auto_run.mode = AutoRunMode::RunEverything;
        input.base.rules.push(RuleFile { origin: origin(toolwarden_core::Layer::Config), text: rules.to_owned() });
        judged(&compile(&input), &person(), "s", "t", Some(r#"{"path":"/etc/x"}"#))
    };
    let hold = r#"@hold("look first") forbid(principal, action, resource) when { context.args.hasTag("/path") };"#;
    let hard = "forbid(principal, action, resource in Mcp::Server::\"s\");";
    assert_eq!(run(hold), "hold rule_hold");
    assert_eq!(run(&format!("{hold}\n{hard}")), "deny rule_forbid");
    assert_eq!(run(r#"@hold("x") forbid(principal, action, resource == Mcp::Tool::"s:t");"#), "hold rule_hold");
    assert_eq!(
        run(r#"@hold("x") forbid(principal, action, resource == Mcp::Tool::"s:other");"#),
        "allow run_everything"
    );
    assert_eq!(run("forbid(principal, action, resource) when { context.arguments.missing == 1 };"), "deny rule_error");
    // Without a permit there is nothing to hold for.
    let mut input = plain();
    input.base.rules = vec![RuleFile { origin: origin(toolwarden_core::Layer::Config), text: hold.to_owned() }];
    assert_eq!(judged(&compile(&input), &person(), "s", "t", Some(r#"{"path":"x"}"#)), "deny rule_no_permit");
    assert_eq!(judged(&compile(&input), &person(), "s", "t", None), "deny rule_no_permit");
}

#[test]
fn gate_12_a_changed_definition_is_lifted_by_acceptance_only() {
    let mut input = plain();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    for definition in [Definition::Changed, Definition::New] {
        let query = mcp().with_definition(definition);
        assert_eq!(who_pays(&input, &query), ["accept"]);
        // Where the call would be held anyway, accepting the definition does not approve the call.
        let mut held = input.clone();
        held.base.auto_run.mode = AutoRunMode::UseAllowlist;
        assert!(who_pays(&held, &query).is_empty());
        assert_eq!(decide(&compile(&held), &query).explanation().payers, [Payer::Accept]);
    }
}

#[test]
fn gate_20_flow_labels_hold_what_sends_out() {
    let mut input = plain();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    let label = |name: &str| ToolInput { labels: vec![name.to_owned()], ..ToolInput::default() };
    input.servers.push(with_tool(server("s"), "t", label("sends_out")));
    let policy = compile(&input);
    let seen = |labels: &[&str]| {
        let seen: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        crate::kit::answer(&policy, &mcp().with_seen(seen))
    };
    assert_eq!(seen(&[]), "allow run_everything");
    assert_eq!(seen(&["reads_private"]), "allow run_everything");
    assert_eq!(seen(&["reads_untrusted", "reads_private"]), "hold rule_hold");
    let seen = vec!["reads_untrusted".to_owned(), "reads_private".to_owned()];
    let other = mcp().with_seen(seen).with_call(Call::mcp("s", "other", None));
    assert_eq!(crate::kit::answer(&policy, &other), "allow run_everything");
}

#[test]
fn core_5_what_has_become_denied_stays_denied() {
    let before = compile(&plain());
    let Verdict::Hold(pending) = decide(&before, &mcp()) else { unreachable!("held") };
    let mut input = plain();
    input.servers.push(with_tool(server("s"), "t", ToolInput { enabled: Some(false), ..ToolInput::default() }));
    #[expect(clippy::disallowed_methods, reason = "the test pays")]
    let payment = Payment::by(Payer::Person, "test");
    assert_eq!(settle(&compile(&input), *pending, &payment, now()).decision(), Decision::Deny);
}

#[test]
fn self_1_no_line_changes_toolwarden_unasked() {
    let mut input = plain();
    input.base.auto_run.mode = AutoRunMode::RunEverything;
    input.base.auto_run.delete_protection = false;
    input.base.protected_paths = vec!["/home/ada/.config/toolwarden".into()];
    input.base.home = Some("/home/ada".into());
    let policy = compile(&input);
    for (command, expected) in [
        ("toolwarden allow x:y", "hold self_protection"),
        ("toolwarden explain x:y", "allow run_everything"),
        ("sudo toolwarden trust .", "hold self_protection"),
        ("echo x > ~/.config/toolwarden/toolwarden.toml", "hold self_protection"),
        ("cp evil /home/ada/.config/toolwarden/toolwarden.toml", "hold self_protection"),
        ("rm -rf /home/ada/.config", "hold self_protection"),
        ("cat /home/ada/.config/toolwarden/toolwarden.toml", "allow run_everything"),
    ] {
        assert_eq!(crate::kit::judged_shell(&policy, &person(), command), expected, "{command}");
    }
}
