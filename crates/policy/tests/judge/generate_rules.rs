//! Random rules: mostly one permit for all, sometimes the shipped file, in one of ten policies a few of all kinds.

use toolwarden_policy::input::{RuleFile, ServerInput};
use toolwarden_policy::shipped::RULES;

use crate::rule::{Effect, Rule, What, When, Who};
use crate::tape::{Tape, here};

pub fn permit_all() -> Rule {
    Rule { effect: Effect::Permit, who: Who::Anyone, what: What::Anything, when: When::Always }
}

/// The shipped rule file in the small language.
pub fn shipped() -> Vec<Rule> {
    let flow = Rule { effect: Effect::Hold, who: Who::Anyone, what: What::Label("sends_out"), when: When::Flow };
    vec![Rule { who: Who::Persons, ..permit_all() }, Rule { who: Who::Agents, ..permit_all() }, flow]
}

pub fn rules(tape: &mut Tape<'_>, servers: &[ServerInput]) -> Vec<Rule> {
    match tape.byte() {
        0..=179 => vec![permit_all()],
        180..=229 => shipped(),
        _ => (0..=tape.byte() % 6).map(|_| rule(&mut tape.section(8), servers)).collect(),
    }
}

/// The rules as files of Cedar; the shipped ones as the shipped text.
pub fn print(rules: &[Rule]) -> Vec<RuleFile> {
    if rules == shipped() {
        return vec![RuleFile { origin: here(), text: RULES.to_owned() }];
    }
    let (first, second) = rules.split_at(rules.len().div_ceil(2));
    let text = |rules: &[Rule], from: usize| -> String {
        rules.iter().enumerate().map(|(at, rule)| rule.cedar(from + at)).collect()
    };
    let texts = [text(first, 0), text(second, first.len())];
    texts.into_iter().filter(|text| !text.is_empty()).map(|text| RuleFile { origin: here(), text }).collect()
}

fn rule(tape: &mut Tape<'_>, servers: &[ServerInput]) -> Rule {
    let effect = tape.pick(Effect::Permit, &[Effect::Permit, Effect::Permit, Effect::Forbid, Effect::Hold]);
    let who = tape.pick(
        Who::Anyone,
        &[
            Who::Anyone,
            Who::Anyone,
            Who::Persons,
            Who::Agents,
            Who::Role("scout"),
            Who::Role("worker"),
            Who::Role("sandbox"),
            Who::User("ann"),
            Who::Group("dev"),
            Who::Agent("tok-1"),
        ],
    );
    let what = tape.pick(
        What::Anything,
        &[
            What::Anything,
            What::Anything,
            What::Tool("db".to_owned(), "get".to_owned()),
            What::Server("web"),
            What::Label("sends_out"),
            What::Server("builtin"),
        ],
    );
    let when = tape.pick(
        When::Always,
        &[
            When::Always,
            When::Argument("k", "v"),
            When::Argument("k", "5"),
            When::Mode("m1"),
            When::Seen("reads_private"),
        ],
    );
    match tape.chance(30).then(|| typed_tool(servers)).flatten() {
        Some(what) => Rule { effect, who, what, when: tape.pick(When::Above(3), &[When::Overflow]) },
        None => Rule { effect, who, what, when },
    }
}

/// A tool whose schema says that `n` is an integer.
fn typed_tool(servers: &[ServerInput]) -> Option<What> {
    let unique = |server: &&ServerInput| {
        servers.iter().filter(|other| other.name.eq_ignore_ascii_case(&server.name)).count() == 1
    };
    let has_n = |schema: &serde_json::Value| schema.pointer("/properties/n/type").is_some();
    servers.iter().filter(unique).find_map(|server| {
        let listed = server.catalog.iter().flatten();
        let mut plain = listed.filter(|tool| !tool.name.contains([':', '/', '\n']));
        let tool = plain.find(|tool| tool.input_schema.as_ref().is_some_and(has_n))?;
        Some(What::Tool(server.name.clone(), tool.name.clone()))
    })
}
