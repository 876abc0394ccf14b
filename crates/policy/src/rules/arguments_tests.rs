//! WORK-2: rules see a number's value, not its spelling; a value they need and cannot hold denies.

use std::collections::BTreeSet;

use proptest::prelude::{ProptestConfig, prop, proptest};
use toolwarden_core::json::{Document, Limits};
use toolwarden_core::{Caller, Door, Layer, Origin, Reason};

use super::super::{Facts, Rules};
use crate::hosts::Address;
use crate::input::RuleFile;
use crate::verdict::{Outcome, Step};

fn rules(text: &str) -> Rules {
    let file = RuleFile { origin: Origin::new(Layer::Config, "rules.cedar", 1, 1), text: text.to_owned() };
    match Rules::compile(&[file]) {
        Ok(rules) => rules,
        Err(findings) => unreachable!("{findings:?} {text}"),
    }
}

fn judged(rules: &Rules, arguments: &str, address: Address) -> Step {
    let document = Document::parse(arguments, Limits::DEFAULT);
    assert!(document.is_ok(), "{arguments}");
    let caller = Caller::person("ada");
    let facts = Facts {
        caller: &caller,
        roles: [None, None],
        mode: None,
        server: "bank",
        tool: "pay",
        labels: &[],
        arguments: document.as_ref().ok().map(Document::root),
        operation: "tools/call",
        commands: BTreeSet::new(),
        address,
        time: jiff::Timestamp::UNIX_EPOCH,
        seen: &[],
        door: Door::Explain,
    };
    let (sliced, whole) = (rules.judge(&facts), rules.judge_unsliced(&facts));
    assert_eq!(sliced.outcome, whole.outcome, "{arguments}");
    sliced
}

fn outcome(condition: &str, effect: &str, arguments: &str) -> Outcome {
    let everyone = if effect == "permit" { "" } else { "permit (principal, action, resource);\n" };
    let rules = rules(&format!("{everyone}{effect} (principal, action, resource) when {{ {condition} }};"));
    judged(&rules, arguments, Address::None).outcome
}

/// Conditions over the number at `/n`, in every way a rule can look at it.
const OVER_A_NUMBER: [&str; 14] = [
    "context.arguments has n && context.arguments.n > 1000",
    "context.arguments has n && context.arguments.n <= 1000",
    "context.arguments.n == 5000",
    "!(context.arguments has n) || context.arguments.n != 5000",
    "context.arguments == {n: 5000}",
    "context.arguments.set.contains(5000)",
    "context.arguments.set == [5000]",
    "context.arguments.deep.n > 1000",
    "context.arguments has deep.n && context.arguments.deep.n > 1000",
    "{x: context.arguments}.x.n > 1000",
    "(if context.arguments has n then context.arguments else context.arguments).n > 1000",
    "context.args.hasTag(\"/n\") && context.args.getTag(\"/n\") == \"5000\"",
    "context.args.hasTag(\"/set/0\") && context.args.getTag(\"/set/0\") like \"5*\"",
    "context.args.hasTag(context.args.getTag(\"/name\")) && context.args.getTag(context.args.getTag(\"/name\")) == \"5000\"",
];

const EFFECTS: [&str; 3] = ["permit", "forbid", "@hold(\"h\") forbid"];

fn arguments(number: &str) -> String {
    format!("{{\"n\":{number},\"set\":[{number}],\"deep\":{{\"n\":{number}}},\"name\":\"/n\"}}")
}

/// The same value with its point moved by `shift`, and zeros behind it.
fn respelt(whole: i64, shift: usize, zeros: usize, sign: &str) -> String {
    let text = whole.unsigned_abs().to_string();
    let padded = format!("{}{text}", "0".repeat(shift + 1));
    let (before, behind) = padded.split_at(padded.len() - shift);
    let before = before.trim_start_matches('0');
    let before = if before.is_empty() { "0" } else { before };
    let minus = if whole < 0 { "-" } else { "" };
    format!("{minus}{before}.{behind}{}0e{sign}{shift}", "0".repeat(zeros))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn work_2_no_spelling_of_a_number_changes_an_answer(
        whole in prop::sample::select(&[0, 1, 999, 1000, 1001, 5000, -5000, i64::MAX, i64::MIN][..]),
        shift in 0_usize..25, zeros in 0_usize..3, sign in prop::sample::select(&["", "+", "00"][..]),
        condition in prop::sample::select(&OVER_A_NUMBER[..]), effect in prop::sample::select(&EFFECTS[..]),
    ) {
        let other = respelt(whole, shift, zeros, sign);
        let plain = outcome(condition, effect, &arguments(&whole.to_string()));
        assert_eq!(plain, outcome(condition, effect, &arguments(&other)), "{condition} {whole} {other}");
    }
}

#[test]
fn work_2_a_number_a_rule_needs_and_cannot_hold_is_a_deny() {
    for condition in OVER_A_NUMBER {
        for effect in EFFECTS {
            for number in ["5000.5", "null", "99999999999999999999", "1e999999999", "-1e400", "1e-5"] {
                let found = outcome(condition, effect, &arguments(number));
                assert_eq!(found, Outcome::Because(Reason::RuleError), "{effect} {condition} {number}");
            }
        }
    }
    let tag = "context.args.hasTag(\"/n\") && context.args.getTag(\"/n\") == \"5000\"";
    for value in ["1e99999999999999999999", "[5000]", "{\"n\":5000}", "[]", "{}"] {
        let found = outcome(tag, "forbid", &format!("{{\"n\":{value}}}"));
        assert_eq!(found, Outcome::Because(Reason::RuleError), "{value}");
    }
}

#[test]
fn work_2_a_text_a_rule_needs_and_cannot_have_is_a_deny() {
    let conditions = [
        "context.args.hasTag(\"/deep/n\") && context.args.getTag(\"/deep/n\") == \"5000\"",
        "context.args.hasTag(\"/deep/n\") && context.args.getTag(\"/deep/n\") like \"5*\"",
        "context.args.hasTag(\"/deep/n\")",
        "!context.args.hasTag(\"/deep/n\")",
    ];
    let unfit = [
        r#"{"deep":{"n":null}}"#,
        r#"{"deep":{"n":5000.5}}"#,
        r#"{"deep":{"n":99999999999999999999}}"#,
        r#"{"deep":{"n":{"n":5000}}}"#,
        // A value on the way that has no members: a server may read an object in it.
        r#"{"deep":null}"#,
        r#"{"deep":5000}"#,
        r#"{"deep":true}"#,
        r#"{"deep":"{\"n\":5000}"}"#,
        r#""{\"deep\":{\"n\":5000}}""#,
        "5000",
        "true",
    ];
    for condition in conditions {
        for effect in EFFECTS {
            for arguments in unfit {
                let found = outcome(condition, effect, arguments);
                assert_eq!(found, Outcome::Because(Reason::RuleError), "{effect} {condition} {arguments}");
            }
        }
        // Left out is left out, and other places do not matter.
        for absent in ["null", "{}", r#"{"deep":{}}"#, r#"{"other":null,"deep":{"m":0.5}}"#] {
            let found = outcome(condition, "forbid", absent);
            let expected =
                if condition.starts_with('!') { Outcome::Because(Reason::RuleForbid) } else { Outcome::Pass };
            assert_eq!(found, expected, "{condition} {absent}");
        }
    }
}

#[test]
fn work_2_an_argument_of_another_kind_than_it_is_compared_with_is_a_deny() {
    let denied = Outcome::Because(Reason::RuleError);
    for (condition, unfit) in [
        (
            "context.arguments has r && context.arguments.r == \"admin\"",
            &["[\"admin\"]", "{\"x\":\"admin\"}", "7", "true", "[]"][..],
        ),
        ("\"admin\" == context.arguments.r", &["[\"admin\"]", "{}", "7"]),
        ("context.arguments.r != \"admin\"", &["[\"admin\"]", "7"]),
        ("if context.arguments has r then context.arguments.r == \"admin\" else true", &["[\"admin\"]", "1"]),
        ("context.arguments.r == 7", &["\"7\"", "[7]", "true", "{}"]),
        ("context.arguments.r == -7", &["\"-7\"", "[-7]"]),
        ("context.arguments.r == true", &["\"true\"", "1", "[true]"]),
        ("context.arguments.r == [7]", &["7", "\"7\"", "{}"]),
        ("context.arguments.r.contains(5)", &["[[5]]", "[\"5\"]", "[1,{}]", "5"]),
        ("context.arguments.r.containsAny([\"bad\", \"worse\"])", &["[[\"bad\"]]", "[1]"]),
        ("[\"bad\", \"worse\"].contains(context.arguments.r)", &["[\"bad\"]", "1"]),
        ("[\"bad\"].containsAll(context.arguments.r)", &["[[\"bad\"]]", "[1]"]),
        ("context.arguments.r == principal.user", &["[\"ada\"]", "1"]),
        ("context.arguments.r == context.arguments.other", &["[\"text\"]", "1", "{}"]),
        ("context.arguments.other == context.arguments.r", &["[\"text\"]"]),
        ("context.arguments.r == -context.arguments.seven", &["\"-7\"", "[-7]"]),
        ("context.arguments.r == {a: 1}", &["[{\"a\":1}]", "\"a\"", "1"]),
        ("context.arguments.r == principal.groups", &["\"ops\"", "{}"]),
        ("context.arguments.r == resource.labels", &["\"sends_out\"", "{}"]),
        ("context.arguments.r == context.seen", &["\"sends_out\"", "7"]),
        ("context.arguments.r == context.commands", &["\"ls\"", "true"]),
    ] {
        for effect in EFFECTS {
            for value in unfit {
                let found = outcome(condition, effect, &format!("{{\"r\":{value},\"other\":\"text\",\"seven\":7}}"));
                assert_eq!(found, denied, "{effect} {condition} {value}");
            }
        }
    }
    for (condition, value, is_met) in [
        ("context.arguments has r && context.arguments.r == \"admin\"", "\"admin\"", true),
        ("context.arguments has r && context.arguments.r == \"admin\"", "\"guest\"", false),
        ("context.arguments.r == 7", "7.0", true),
        ("[\"bad\", 1].contains(context.arguments.r)", "1", true),
        ("[\"bad\", 1].contains(context.arguments.r)", "\"good\"", false),
        ("context.arguments.r.contains(5)", "[5]", true),
        ("context.arguments.r.contains(5)", "[]", false),
        ("context.arguments.r == context.arguments.other", "\"text\"", true),
        ("context.arguments.r == principal.user", "\"ada\"", true),
        ("context.arguments.r == -context.arguments.seven", "-7", true),
        ("context.arguments.r == {a: 1}", "{\"a\":1.0}", true),
        ("context.arguments.r == context.seen", "[]", true),
        ("context.arguments.r == context.seen", "[\"sends_out\"]", false),
    ] {
        let expected = if is_met { Outcome::Because(Reason::RuleForbid) } else { Outcome::Pass };
        let found = outcome(condition, "forbid", &format!("{{\"r\":{value},\"other\":\"text\",\"seven\":7}}"));
        assert_eq!(found, expected, "{condition} {value}");
    }
}

#[test]
fn work_2_a_list_where_a_rule_means_an_object_is_a_deny() {
    let over =
        |pointer: &str| format!("context.args.hasTag(\"{pointer}\") && context.args.getTag(\"{pointer}\") == \"5000\"");
    for (pointer, arguments) in [
        ("/a/b", r#"{"a":[{"b":5000}]}"#),
        ("/a/b", r#"{"a":[]}"#),
        ("/a/b", r#"{"a":[[{"b":5000}]]}"#),
        ("/a/b/c", r#"{"a":{"b":[{"c":5000}]}}"#),
        ("/a/b/c", r#"{"a":[{"b":{"c":5000}}]}"#),
        ("/a/b", r#"[{"a":{"b":5000}}]"#),
        ("/a", r#"[{"a":5000}]"#),
        // Parts that are no index, whatever they look like.
        ("/a/-", r#"{"a":[5000]}"#),
        ("/a/00", r#"{"a":[5000]}"#),
        ("/a/1e0", r#"{"a":[1,5000]}"#),
        ("/a/+1", r#"{"a":[1,5000]}"#),
        ("/a/", r#"{"a":[5000]}"#),
        ("/a/0/b", r#"{"a":[[{"b":5000}]]}"#),
    ] {
        for effect in EFFECTS {
            for condition in
                [over(pointer), format!("context.args.hasTag(\"{pointer}\")"), format!("!({})", over(pointer))]
            {
                let found = outcome(&condition, effect, arguments);
                assert_eq!(found, Outcome::Because(Reason::RuleError), "{effect} {condition} {arguments}");
            }
        }
    }
    for (pointer, arguments, is_found) in [
        ("/a/b", r#"{"a":{"b":5000}}"#, true),
        ("/a/0", r#"{"a":[5000]}"#, true),
        ("/a/10/b", r#"{"a":[0,1,2,3,4,5,6,7,8,9,{"b":5e3}]}"#, true),
        ("/a/0", r#"{"a":{"0":5000}}"#, true),
        // What is not there is absent.
        ("/a/b", r#"{"a":{}}"#, false),
        ("/a/b", r#"{"c":[{"b":5000}]}"#, false),
        ("/a/1", r#"{"a":[5000]}"#, false),
        ("/a/0/b", r#"{"a":[{"c":5000}]}"#, false),
    ] {
        let expected = if is_found { Outcome::Because(Reason::RuleForbid) } else { Outcome::Pass };
        assert_eq!(outcome(&over(pointer), "forbid", arguments), expected, "{pointer} {arguments}");
    }
    // A rule on the list itself beside one on a member of it cannot both be meant.
    let both = format!("({}) || ({})", over("/a/0"), over("/a/b"));
    assert_eq!(outcome(&both, "forbid", r#"{"a":[{"b":5000}]}"#), Outcome::Because(Reason::RuleError));
}

#[test]
fn work_2_the_deny_names_the_rule_and_the_argument() {
    let rules = rules(
        "permit (principal, action, resource);\n@id(\"other\") forbid (principal, action, resource) when { context.arguments has x };\n@id(\"limit\")\nforbid (principal, action, resource) when { context.arguments has pay.sum && context.arguments.pay.sum > 10 };",
    );
    let step = judged(&rules, r#"{"x/~":1,"pay":{"sum":1.5}}"#, Address::None);
    assert_eq!(step.reason(), Some(Reason::RuleError));
    assert_eq!(step.rule.map(|rule| rule.text.to_string()).as_deref(), Some("limit"));
    let detail = step.detail.unwrap_or_default();
    assert!(detail.contains("`/pay/sum`") && detail.contains("fraction") && !detail.contains("1.5"), "{detail}");
    let compared = "context.arguments[\"a/b\"].c == 1 && context.arguments == {x: 1}";
    let rules = self::rules(&format!("forbid (principal, action, resource) when {{ {compared} }};"));
    for (arguments, pointer) in [(r#"{"a/b":{"c":"1"}}"#, "`/a~1b/c`"), ("[]", "``")] {
        let detail = judged(&rules, arguments, Address::None).detail.unwrap_or_default();
        assert!(detail.contains(pointer) && detail.contains("another kind"), "{detail}");
    }
}

#[test]
fn work_2_a_value_no_rule_looks_at_does_not_matter() {
    let condition = "context.arguments has n && context.arguments.n > 1000";
    for other in ["1.5", "null", "1e400", "[null, 0.5]", "{\"n\":null}"] {
        assert_eq!(outcome(condition, "forbid", &format!("{{\"n\":1,\"m\":{other}}}")), Outcome::Pass, "{other}");
        let mode = "context has mode && context.mode == \"x\"";
        assert_eq!(outcome(mode, "forbid", &format!("{{\"n\":{other}}}")), Outcome::Pass, "{other}");
        for condition in [condition, "context.args.hasTag(\"/k\")"] {
            let either = format!("context.operation == \"other\" || ({condition})");
            assert_eq!(
                outcome(&either, "forbid", &format!("{{\"n\":1,\"m\":{other}}}")),
                Outcome::Pass,
                "{either} {other}"
            );
        }
    }
    // Nor what another rule looks at, whose head does not fit.
    let rules = rules(
        "permit (principal, action, resource);\nforbid (principal, action, resource == Mcp::Tool::\"other:tool\") when { context.arguments has n && context.arguments.n > 1 };",
    );
    assert_eq!(judged(&rules, "{\"n\":1.5}", Address::None).outcome, Outcome::Pass);
}

#[test]
fn work_2_values_of_another_type_never_pass_by_accident() {
    let above = "context.arguments has n && context.arguments.n > 1000";
    for value in ["\"5000\"", "true", "[5000]", "{\"n\":5000}"] {
        let found = outcome(above, "forbid", &format!("{{\"n\":{value}}}"));
        assert_eq!(found, Outcome::Because(Reason::RuleError), "{value}");
    }
    // Arguments that are no object at all, and none.
    for whole in ["[]", "5", "\"n\"", "[{\"n\":5000}]", "\"{\\\"n\\\":5000}\""] {
        for condition in [above, "context.arguments == {n: 5000}"] {
            assert_eq!(outcome(condition, "forbid", whole), Outcome::Because(Reason::RuleError), "{condition} {whole}");
        }
    }
    assert_eq!(outcome(above, "forbid", "null"), Outcome::Pass, "the same as none");
    // A name written with escapes is the same name.
    assert_eq!(outcome(above, "forbid", "{\"\\u006e\":5e3}"), Outcome::Because(Reason::RuleForbid));
}

#[test]
fn work_1_what_rules_look_at_is_bounded() {
    let many = format!("{{\"n\":1,\"set\":[{}1]}}", "1,".repeat(50_000));
    assert_eq!(
        outcome("context.arguments.n > 0", "forbid", &many),
        Outcome::Because(Reason::RuleForbid),
        "not looked at"
    );
    for condition in ["context.arguments.set.contains(7)", "context.args.hasTag(context.args.getTag(\"/n\"))"] {
        assert_eq!(outcome(condition, "forbid", &many), Outcome::Because(Reason::RuleError), "{condition}");
    }
    for (lists, expected) in [(63, Reason::RuleForbid), (64, Reason::RuleError), (100, Reason::RuleError)] {
        let deep = format!("{{\"n\":{}1{}}}", "[".repeat(lists), "]".repeat(lists));
        assert_eq!(outcome("context.arguments has n", "forbid", &deep), Outcome::Because(expected), "{lists}");
    }
}

#[test]
fn work_2_what_is_compared_as_a_whole_is_there_as_a_whole() {
    let (met, unmet, unfit) =
        (Outcome::Because(Reason::RuleForbid), Outcome::Pass, Outcome::Because(Reason::RuleError));
    for (condition, value, expected) in [
        ("context.arguments.r == {a: {b: 5000}}", r#"{"a":{"b":5e3}}"#, &met),
        ("context.arguments.r == {a: {b: 5000}}", r#"{"a":{"b":1}}"#, &unmet),
        ("context.arguments.r == {a: {b: 5000}}", r#"{"a":{"b":5000.5}}"#, &unfit),
        ("context.arguments.r.contains({a: {b: 1}})", r#"[{"a":{"b":1}}]"#, &met),
        ("context.arguments.r.contains({a: {b: 1}})", r#"[{"a":{"b":2}}]"#, &unmet),
        ("context.arguments.r.contains({a: {b: 1}})", r#"[{"a":{"b":null}}]"#, &unfit),
        ("{x: context}.x.arguments.r > 1000", "5000", &met),
        ("{x: context}.x.arguments.r > 1000", "1", &unmet),
        ("{x: context}.x.args.hasTag(\"/r\")", "1", &met),
        ("{x: context}.x.args.hasTag(\"/s\")", "1", &unmet),
        ("{x: context}.x.args.hasTag(\"/s\")", "null", &unfit),
    ] {
        let found = outcome(condition, "forbid", &format!("{{\"r\":{value}}}"));
        assert_eq!(&found, expected, "{condition} {value}");
    }
}

#[test]
fn work_2_a_text_is_what_it_says_however_it_is_spelt() {
    for (value, text, is_same) in [
        ("\"v\"", "v", true),
        ("\"\\u0076\"", "v", true),
        ("\"w\"", "v", false),
        ("\"\\\"v\\\"\"", "v", false),
        ("true", "true", true),
        ("\"true\"", "true", true),
        ("\"5e3\"", "5000", false),
    ] {
        let condition = format!("context.args.hasTag(\"/k\") && context.args.getTag(\"/k\") == \"{text}\"");
        let expected = if is_same { Outcome::Because(Reason::RuleForbid) } else { Outcome::Pass };
        assert_eq!(outcome(&condition, "forbid", &format!("{{\"k\":{value}}}")), expected, "{value}");
    }
}

#[test]
fn work_2_an_address_that_cannot_be_read_is_a_deny_where_a_rule_needs_it() {
    let by_host = rules(
        "permit (principal, action, resource);\nforbid (principal, action, resource) when { context has host && context.host == \"evil.test\" };",
    );
    let judge = |url: &str| judged(&by_host, "{}", Address::read(url)).outcome;
    for url in ["https://evil.test/", "https://EVIL.test./", "https://evil\u{3002}test../", "custom://EVIL.test."] {
        assert_eq!(judge(url), Outcome::Because(Reason::RuleForbid), "{url}");
    }
    assert_eq!(judge("https://good.test"), Outcome::Pass);
    assert_eq!(judge("https://"), Outcome::Because(Reason::RuleError));
    let by_url = rules(
        "permit (principal, action, resource);\nforbid (principal, action, resource) when { context has url && context.url like \"https://evil.test/*\" };",
    );
    assert_eq!(
        judged(&by_url, "{}", Address::read("https://evil.test./x")).outcome,
        Outcome::Because(Reason::RuleForbid)
    );
    let other = rules("permit (principal, action, resource);");
    assert_eq!(judged(&other, "{}", Address::Unreadable).outcome, Outcome::Pass, "no rule looks at it");
    let by_port = rules(
        "permit (principal, action, resource);\nforbid (principal, action, resource) when { context has port && context.arguments.n == context.port };",
    );
    for (number, expected) in [
        ("443", Outcome::Because(Reason::RuleForbid)),
        ("80", Outcome::Pass),
        ("\"443\"", Outcome::Because(Reason::RuleError)),
    ] {
        let found = judged(&by_port, &format!("{{\"n\":{number}}}"), Address::read("https://good.test"));
        assert_eq!(found.outcome, expected, "{number}");
    }
}
