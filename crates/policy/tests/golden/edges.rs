//! Edges of the stages that no other table reaches; each was found by changing the code (`make mutants`).

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use toolwarden_core::json::Part;
use toolwarden_core::{Call, Caller, Door, Layer, Stage};
use toolwarden_policy::input::{AdminInput, AutoRunMode, RuleFile, ToolInput};
use toolwarden_policy::{PolicyInput, Query, decide, is_visible, needs_labels_met};

use crate::kit::{
    USER, agent, answer, arguments, asked, asked_in, compile, files_allow, judged, judged_fetch, listing, now, origin,
    person, plain, server, sourced,
};

#[test]
fn mode_5_a_denied_address_does_not_hide_fetching() {
    let mut admin = AdminInput { enabled: true, allowed: sourced(&["ls"]), ..AdminInput::default() };
    admin.sandboxing.denied_domains = sourced(&["evil.example"]);
    let mut input = plain();
    input.base.admin = Some(admin);
    let policy = compile(&input);
    let query = asked(&person(), Call::fetch("https://evil.example/"), Door::Mcp);
    assert_eq!(judged_fetch(&policy, &person(), "https://evil.example/"), "deny domain_denied");
    assert!(is_visible(&policy, &query), "what may be fetched is not known when tools are listed");
}

#[test]
fn gate_10_rules_see_the_host_of_a_fetch_and_none_when_tools_are_listed() {
    let mut input = plain();
    let text = "forbid(principal, action, resource) when { context has host && context.host == \"evil.example\" };";
    input.base.rules.push(RuleFile { origin: origin(Layer::Config), text: text.to_owned() });
    let policy = compile(&input);
    assert_eq!(judged_fetch(&policy, &person(), "https://evil.example/"), "deny rule_forbid");
    assert_eq!(judged_fetch(&policy, &person(), "https://good.example/"), "hold fetch_review");
    assert!(is_visible(&policy, &asked(&person(), Call::fetch("https://evil.example/"), Door::Mcp)));
}

#[test]
fn gate_13_arguments_may_be_as_large_and_as_deep_as_the_limit() {
    let mut limited = listing(server("db"), &["read"]);
    limited.limits.request_bytes = Some(11);
    limited.limits.depth = Some(2);
    let mut input = plain();
    input.servers = vec![limited];
    let policy = compile(&input);
    let read = |json: &str| judged(&policy, &person(), "db", "read", Some(json));
    assert_eq!(read("{\"a\":\"123\"}"), "hold not_in_allowlist");
    assert_eq!(read("{\"a\":\"1234\"}"), "deny request_too_large");
    assert_eq!(read("{\"a\":[1]}"), "hold not_in_allowlist");
    assert_eq!(read("{\"a\":[[]]}"), "deny request_too_deep");
}

#[test]
fn gate_20_labels_met_are_needed_where_a_rule_asks_for_them() {
    let labelled = |name: &str, labels: &[&str]| {
        let mut server = listing(server(name), &["go"]);
        server.labels = labels.iter().map(|label| (*label).to_owned()).collect();
        server
    };
    let needs = |servers: &[(&str, &[&str])], called: &str, rules: &str| {
        let mut input = plain();
        input.servers = servers.iter().map(|(name, labels)| labelled(name, labels)).collect();
        if !rules.is_empty() {
            input.base.rules.push(RuleFile { origin: origin(Layer::Config), text: rules.to_owned() });
        }
        needs_labels_met(&compile(&input), &asked(&person(), Call::mcp(called, "go", None), Door::Mcp))
    };
    let flow: &[(&str, &[&str])] = &[("mail", &["sends_out"]), ("web", &["reads_untrusted"]), ("plain", &[])];
    assert!(needs(flow, "mail", ""), "the shipped rule on what sends out asks");
    assert!(!needs(flow, "plain", ""), "no rule concerns it");
    assert!(!needs(&[("mail", &[]), ("web", &[])], "mail", ""), "nothing has labels, so none was met");
    let asks = "forbid(principal, action, resource) when { context.seen.contains(\"reads_untrusted\") };";
    assert!(needs(flow, "plain", asks));
    assert!(needs(&[("plain", &[])], "plain", asks), "labels may have been met at servers that are gone");
}

#[test]
fn mode_11_an_answer_lasts_until_the_token_ends_and_not_beyond_a_rule_on_time() {
    let until = |caller: &Arc<Caller>, rules: &str| {
        let mut input = plain();
        input.servers = vec![listing(server("db"), &["db.read"])];
        if !rules.is_empty() {
            input.base.rules.push(RuleFile { origin: origin(Layer::Config), text: rules.to_owned() });
        }
        let query = asked(caller, Call::mcp("db", "db.read", None), Door::Mcp);
        decide(&compile(&input), &query).explanation().valid_until
    };
    let ending = |end: Timestamp| {
        let mut caller = agent("pm").as_ref().clone();
        caller.token.expires_at = Some(end);
        Arc::new(caller)
    };
    let later = now().checked_add(SignedDuration::from_secs(60)).unwrap_or_default();
    assert_eq!(until(&person(), ""), None, "nothing ends it");
    assert_eq!(until(&ending(later), ""), Some(later));
    assert_eq!(until(&ending(now()), ""), None, "an end that has come changes nothing any more");
    let on_time = "forbid(principal, action, resource) when { context.now < datetime(\"1960-01-01\") };";
    assert_eq!(until(&person(), on_time), Some(now()), "a rule may answer otherwise in the next moment");
    assert_eq!(until(&ending(later), on_time), Some(now()));
    let elsewhere = "forbid(principal, action, resource == Mcp::Tool::\"db:other\") when { context.now < datetime(\"1960-01-01\") };";
    assert_eq!(until(&person(), elsewhere), None, "a rule about another tool does not end it");
}

#[test]
fn core_4_what_cannot_wait_for_a_person_is_denied() {
    let prompt = r#"{"name":"p","arguments":{"a":"x"}}"#;
    let ask = |change: &dyn Fn(&mut PolicyInput), tool: &str| {
        let mut input = plain();
        input.base.auto_run.mode = AutoRunMode::RunEverything;
        input.servers = vec![listing(server("mail"), &["send"]), listing(server("other"), &["x"])];
        change(&mut input);
        judged(&compile(&input), &person(), "mail", tool, Some(prompt))
    };
    let rule = |text: &str| {
        let text = text.to_owned();
        move |input: &mut PolicyInput| {
            input.base.rules.push(RuleFile { origin: origin(Layer::Config), text: text.clone() })
        }
    };
    let review = |input: &mut PolicyInput| {
        let tool = ToolInput { human_review: true, ..ToolInput::default() };
        for server in &mut input.servers {
            server.tools.insert("prompts/get".to_owned(), tool.clone());
            server.tools.insert("completion/complete".to_owned(), tool.clone());
        }
    };
    for tool in ["prompts/get", "completion/complete"] {
        assert_eq!(ask(&|_| {}, tool), "allow never_held");
        let hold = rule("@hold(\"why\")\nforbid(principal, action, resource in Mcp::Server::\"mail\");");
        assert_eq!(ask(&hold, tool), "deny cannot_be_held");
        let elsewhere = rule("@hold(\"why\")\nforbid(principal, action, resource in Mcp::Server::\"other\");");
        assert_eq!(ask(&elsewhere, tool), "allow never_held");
        assert_eq!(ask(&|input| input.base.auto_run.ask = sourced(&["mail:*"]), tool), "deny cannot_be_held");
        assert_eq!(ask(&|input| input.base.auto_run.ask = sourced(&["mail:send"]), tool), "allow never_held");
        assert_eq!(ask(&review, tool), "deny cannot_be_held");
    }
}

#[test]
fn mode_5_tools_that_rules_deny_whatever_the_arguments_are_hidden() {
    let visible = |rules: &str| {
        let mut input = PolicyInput { version: 1, ..PolicyInput::default() };
        input.local.user = USER.to_owned();
        input.servers = vec![listing(server("db"), &["drop"])];
        input.base.rules.push(RuleFile { origin: origin(Layer::Config), text: rules.to_owned() });
        is_visible(&compile(&input), &asked(&person(), Call::mcp("db", "drop", None), Door::Mcp))
    };
    let permit = "permit(principal, action, resource);";
    let by_mode = "forbid(principal, action, resource) unless { context has mode };";
    let by_arguments = "forbid(principal, action, resource) when { context.args has \"/a\" };";
    let permit_by_arguments = "permit(principal, action, resource) when { context.args has \"/a\" };";
    let permit_by_mode = "permit(principal, action, resource) when { context has mode };";
    for (rules, expected) in [
        (permit.to_owned(), true),
        (format!("{permit} forbid(principal, action, resource);"), false),
        (format!("{permit} {by_mode}"), false),
        (format!("{permit} @hold(\"why\") {by_mode}"), true),
        (format!("{permit} {by_arguments}"), true),
        (format!("{permit} {by_arguments} {by_mode}"), false),
        (permit_by_arguments.to_owned(), true),
        (permit_by_mode.to_owned(), false),
        (format!("{permit_by_mode} {by_arguments}"), false),
        (format!("{permit_by_mode} {permit_by_arguments}"), true),
    ] {
        assert_eq!(visible(&rules), expected, "{rules}");
    }
}

/// A call as it came over the wire, with members beside its arguments.
fn received(server: &str, params: &str) -> Call {
    let params = arguments(params).map(Part::whole);
    params.and_then(|params| Call::received(server, params)).unwrap_or_else(|| Call::mcp(server, "?", None))
}

#[test]
fn gate_13_what_stands_beside_the_arguments_counts_for_the_limits() {
    let mut limited = listing(server("db"), &["read"]);
    limited.limits.request_bytes = Some(40);
    limited.limits.depth = Some(2);
    let mut input = plain();
    input.servers = vec![limited];
    let policy = compile(&input);
    let long = "x".repeat(60);
    // Exactly the limit: 40 bytes of arguments, two levels of them, in params that are larger and deeper.
    for (argument, expected) in [
        (format!("{{\"a\":\"{}\"}}", "y".repeat(32)), "hold not_in_allowlist"),
        (format!("{{\"a\":\"{}\"}}", "y".repeat(33)), "deny request_too_large"),
        ("{\"a\":[1]}".to_owned(), "hold not_in_allowlist"),
        ("{\"a\":[[]]}".to_owned(), "deny request_too_deep"),
    ] {
        let params = format!("{{\"name\":\"read\",\"arguments\":{argument}}}");
        let query = asked(&person(), received("db", &params), Door::Mcp);
        assert_eq!(answer(&policy, &query), expected, "{argument}");
    }
    for (beside, expected) in [
        (String::new(), "hold not_in_allowlist"),
        (",\"more\":[[]]".to_owned(), "hold not_in_allowlist"),
        (",\"more\":1".to_owned(), "hold not_in_allowlist"),
        (format!(",\"more\":\"{long}\""), "deny request_too_large"),
        (format!(",\"_meta\":{{\"vendor/id\":\"{long}\"}}"), "deny request_too_large"),
        (format!(",\"_meta\":\"{long}\""), "deny request_too_large"),
        // Bounded by its protocol's form, and no part of the call.
        (format!(",\"_meta\":{{\"traceparent\":\"{long}\"}}"), "hold not_in_allowlist"),
        (",\"more\":[[[]]]".to_owned(), "deny request_too_deep"),
        (",\"_meta\":{\"v\":[[[]]]}".to_owned(), "deny request_too_deep"),
        (",\"_meta\":{\"progressToken\":[[[[]]]]}".to_owned(), "hold not_in_allowlist"),
    ] {
        let params = format!("{{\"name\":\"read\",\"arguments\":{{\"a\":1}}{beside}}}");
        let query = asked(&person(), received("db", &params), Door::Mcp);
        assert_eq!(answer(&policy, &query), expected, "{beside}");
    }
}

/// `arguments` with an escape in it counts as a member beside them, too, but no call is larger than all it sends.
#[test]
fn gate_13_a_call_no_larger_than_the_limit_passes_however_its_keys_are_spelt() {
    let params = format!("{{\"name\":\"read\",\"\\u0061rguments\":{{\"a\":\"{}\"}}}}", "y".repeat(100));
    for (limit, expected) in [(params.len(), "hold not_in_allowlist"), (100, "deny request_too_large")] {
        let mut limited = listing(server("db"), &["read"]);
        limited.limits.request_bytes = Some(limit);
        let mut input = plain();
        input.servers = vec![limited];
        let query = asked(&person(), received("db", &params), Door::Mcp);
        assert_eq!(answer(&compile(&input), &query), expected, "{limit}");
    }
}

#[test]
fn review_3_an_entry_over_arguments_covers_no_call_with_much_beside_them() {
    let mut input = plain();
    input.servers = vec![listing(server("db"), &["read"])];
    files_allow(&mut input, &["db:read where {\"/table\":{\"equals\":\"notes\"}}"], &[]);
    let policy = compile(&input);
    for (beside, expected) in [
        (String::new(), "allow narrowed_match"),
        (",\"_meta\":{\"vendor/toolUseId\":\"toolu_0123456789\"}".to_owned(), "allow narrowed_match"),
        (format!(",\"_meta\":{{\"vendor/id\":\"{}\"}}", "x".repeat(300)), "hold not_in_allowlist"),
        (format!(",\"extra\":{{\"all\":\"{}\"}}", "x".repeat(300)), "hold not_in_allowlist"),
        (format!(",\"_meta\":[\"{}\"]", "x".repeat(300)), "hold not_in_allowlist"),
    ] {
        let params = format!("{{\"name\":\"read\",\"arguments\":{{\"table\":\"notes\"}}{beside}}}");
        let query = asked(&person(), received("db", &params), Door::Mcp);
        assert_eq!(answer(&policy, &query), expected, "{beside}");
    }
}

#[test]
fn review_3_an_entry_over_arguments_covers_calls_with_as_much_beside_them_as_the_bound() {
    let mut input = plain();
    input.servers = vec![listing(server("db"), &["read"])];
    files_allow(&mut input, &["db:read where {\"/table\":{\"equals\":\"notes\"}}"], &[]);
    let policy = compile(&input);
    let mut met = Vec::new();
    for length in 200..300 {
        let beside = "x".repeat(length);
        let params = format!("{{\"name\":\"read\",\"arguments\":{{\"table\":\"notes\"}},\"extra\":\"{beside}\"}}");
        let query = asked(&person(), received("db", &params), Door::Mcp);
        let bytes: usize = query.call.beside_arguments().iter().map(toolwarden_core::MemberBeside::bytes).sum();
        let expected = if bytes <= 256 { "allow narrowed_match" } else { "hold not_in_allowlist" };
        assert_eq!(answer(&policy, &query), expected, "{bytes}");
        met.push(bytes);
    }
    assert!(met.contains(&256) && met.contains(&257), "{met:?}");
}

/// The rule that decided a stage, and its reason, as the trace has them.
fn traced(policy: &toolwarden_policy::PolicySet, query: Query, stage: Stage) -> Vec<(Option<String>, Option<String>)> {
    let verdict = decide(policy, &query.traced());
    let steps = verdict.explanation().trace.iter().filter(|(of, _)| *of == stage);
    let said = |step: &toolwarden_policy::Step| {
        (step.reason().map(|reason| reason.code().to_owned()), step.rule.as_ref().map(|rule| rule.text.to_string()))
    };
    steps.map(|(_, step)| said(step)).collect()
}

#[test]
fn core_1_the_trace_of_what_nobody_can_be_asked_about_says_why() {
    let mut input = plain();
    input.servers = vec![listing(server("mail"), &["send"])];
    input.base.auto_run.ask = sourced(&["mail:*"]);
    let call = Call::operation("mail", toolwarden_core::Operation::GetPrompt, arguments("{\"name\":\"p\"}"));
    let query = asked(&person(), call, Door::Mcp);
    let steps = traced(&compile(&input), query, Stage::MandatoryHold);
    assert!(matches!(steps.as_slice(), [(Some(reason), _)] if reason == "cannot_be_held"), "{steps:?}");
}

#[test]
fn gate_10_the_trace_names_the_rule_that_permits() {
    let mut input = plain();
    input.servers = vec![listing(server("db"), &["read"])];
    input.base.rules.clear();
    for text in [
        "@id(\"second\") permit(principal, action, resource) when { context.now > datetime(\"1960-01-01\") };",
        "@id(\"third\") permit(principal, action, resource) when { context.now > datetime(\"1950-01-01\") };",
    ] {
        input.base.rules.push(RuleFile { origin: origin(Layer::Config), text: text.to_owned() });
    }
    let query = asked(&person(), Call::mcp("db", "read", arguments("{}")), Door::Mcp);
    let steps = traced(&compile(&input), query, Stage::Rules);
    assert!(matches!(steps.as_slice(), [(None, Some(rule))] if rule.contains("second")), "{steps:?}");
}

#[test]
fn mode_5_an_address_that_cannot_be_read_does_not_hide_fetching() {
    let mut input = plain();
    let text = "forbid(principal, action, resource) when { context has host && context.host == \"evil.example\" };";
    input.base.rules.push(RuleFile { origin: origin(Layer::Config), text: text.to_owned() });
    let policy = compile(&input);
    for url in ["", "no address", "https://"] {
        assert!(is_visible(&policy, &asked(&person(), Call::fetch(url), Door::Mcp)), "{url}");
        assert_eq!(judged_fetch(&policy, &person(), url), "deny rule_error", "{url}");
    }
}

#[test]
fn gate_7_a_preset_scope_is_of_servers_that_an_operator_declared() {
    let policy = compile(&plain());
    let scope = |door: Door| {
        let query = asked(&agent("pm"), Call::mcp("elsewhere", "web.search", None), door);
        traced(&policy, query, Stage::Scope)
    };
    let missing = (Some("scope_missing".to_owned()), None);
    for (door, expected) in [(Door::Explain, (None, None)), (Door::Decide, missing.clone()), (Door::Mcp, missing)] {
        assert_eq!(scope(door), [expected], "{door:?}");
    }
}

#[test]
fn shell_3_a_redirection_counts_from_the_directory_of_the_call() {
    let mut input = plain();
    files_allow(&mut input, &[], &["echo"]);
    let policy = compile(&input);
    for (command, directory, expected) in [
        ("echo x > out.txt", None, "allow allowlist_match"),
        ("echo x > ../out.txt", None, "hold not_in_allowlist"),
        ("echo x > ../out.txt", Some("sub"), "allow allowlist_match"),
        ("echo x > ../out.txt", Some("/srv/space/sub"), "allow allowlist_match"),
        ("echo x > ../../out.txt", Some("sub"), "hold not_in_allowlist"),
        ("echo x > out.txt", Some("/tmp"), "hold not_in_allowlist"),
    ] {
        let call = Call::shell(command, directory.map(Into::into));
        let query = asked_in("/srv/space", &person(), call, Door::Explain);
        assert_eq!(answer(&policy, &query), expected, "{command} in {directory:?}");
    }
}
