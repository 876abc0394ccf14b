//! What must hold whatever the policy: nothing from nothing, same answers to same questions, tracing
//! changes nothing, answers last as long as they say, what is hidden is denied.

use jiff::{SignedDuration, Timestamp};
use proptest::collection::vec;
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use toolwarden_core::{Call, CallKind, Decision, Operation, Reason, Stage};
use toolwarden_policy::input::PolicyInput;
use toolwarden_policy::{PolicySet, Query, decide, is_visible};

use crate::ask::{cases, compile, engine};
use crate::generate::{queries, world};
use crate::generate_calls::arguments;
use crate::naive::{World, naive};
use crate::naive_names::is_valid;
use crate::tape::Tape;

/// The same call with other arguments, or none.
fn with_arguments(query: &Query, tape: Option<&mut Tape<'_>>) -> Query {
    let call = &query.call;
    let arguments = tape.and_then(arguments);
    let call = match call.kind {
        CallKind::Mcp { operation } if operation != Operation::CallTool => {
            Call::operation(call.server.clone(), operation, arguments)
        }
        CallKind::Mcp { .. } | CallKind::Shell { .. } | CallKind::Fetch { .. } => {
            Call::mcp(call.server.clone(), call.tool.clone(), arguments)
        }
    };
    query.clone().with_call(call)
}

/// Denied for a reason that no arguments can change.
fn denied_whatever_the_arguments(world: &World, query: &Query) -> bool {
    let answer = naive(world, query);
    let rules_look = world.rules.iter().any(crate::rule::Rule::looks_at_arguments);
    let looks = match answer.stage {
        Stage::Names | Stage::Context | Stage::Server | Stage::Mode | Stage::RoleDisallow | Stage::Scope => false,
        Stage::Switch => answer.reason == Reason::DomainDenied,
        Stage::RoleAllow => answer.reason == Reason::RoleCondition,
        Stage::Setting => false,
        Stage::TaskScope => answer.reason != Reason::TaskUnbound,
        Stage::Rules => rules_look,
        Stage::Schema | Stage::Limits | Stage::MandatoryHold | Stage::AutoRun | Stage::Review => true,
    };
    answer.decision == Decision::Deny && !looks
}

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(time)
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn an_empty_policy_allows_nothing(queries in queries(60)) {
        let policy = PolicySet::compile(&PolicyInput::default());
        prop_assert!(policy.is_ok());
        for (query, policy) in queries.iter().zip(policy.iter().cycle()) {
            prop_assert_eq!(decide(policy, query).decision(), Decision::Deny);
        }
    }

    #[test]
    fn without_rules_nothing_is_allowed(world in world(), queries in queries(60)) {
        let mut world = world;
        world.input.base.rules.clear();
        let policy = compile(&world)?;
        for query in &queries {
            prop_assert_eq!(decide(&policy, query).decision(), Decision::Deny);
        }
    }

    #[test]
    fn the_same_question_has_the_same_answer(world in world(), queries in queries(30)) {
        let (one, other) = (compile(&world)?, compile(&world)?);
        for query in &queries {
            let answer = decide(&one, query);
            let again = decide(&one, query);
            prop_assert_eq!(answer.explanation(), again.explanation());
            prop_assert_eq!(engine(&one, query), engine(&other, query));
        }
    }

    #[test]
    fn tracing_changes_nothing(world in world(), queries in queries(30)) {
        let policy = compile(&world)?;
        for query in &queries {
            let traced = decide(&policy, &query.clone().traced());
            prop_assert_eq!(engine(&policy, query), crate::ask::of(traced.explanation()));
            let stages: Vec<Stage> = traced.explanation().trace.iter().map(|(stage, _)| *stage).collect();
            let expected = match traced.decision() {
                // What cannot wait for a person is denied by what would hold it.
                Decision::Deny if traced.explanation().reason == Reason::CannotBeHeld => 14,
                Decision::Deny => 13,
                Decision::Allow | Decision::Hold => 15,
            };
            prop_assert_eq!(stages, Stage::ALL.into_iter().take(expected).collect::<Vec<_>>());
        }
    }

    #[test]
    fn answers_last_as_long_as_they_say(world in world(), queries in queries(20), steps in vec(any::<u32>(), 12)) {
        let policy = compile(&world)?;
        for query in &queries {
            let verdict = decide(&policy, query);
            let explanation = verdict.explanation();
            let end = explanation.valid_until.unwrap_or_else(|| later(query.time, 20 * 86_400));
            let length = end.as_second() - query.time.as_second();
            for step in &steps {
                let time = later(query.time, i64::from(*step) % length.max(1));
                let then = engine(&policy, &query.clone().at(time));
                prop_assert_eq!(crate::ask::of(explanation), then, "at {} of {:?}", time, query);
            }
        }
    }

    #[test]
    fn what_is_hidden_is_denied_whatever_the_arguments(world in world(), queries in queries(25), tapes in vec(vec(any::<u8>(), 24), 8)) {
        let policy = compile(&world)?;
        for query in &queries {
            let listed = with_arguments(query, None);
            if is_visible(&policy, &listed) {
                continue;
            }
            for tape in &tapes {
                let asked = with_arguments(query, Some(&mut Tape::new(tape)));
                prop_assert_eq!(decide(&policy, &asked).decision(), Decision::Deny, "{:?}", asked);
            }
        }
    }

    #[test]
    fn what_is_denied_whatever_the_arguments_is_hidden(world in world(), queries in queries(40)) {
        let policy = compile(&world)?;
        for query in &queries {
            let listed = with_arguments(query, None);
            if denied_whatever_the_arguments(&world, &listed) && engine(&policy, &listed) == naive(&world, &listed) {
                prop_assert!(!is_visible(&policy, &listed), "{:?} {:?}", naive(&world, &listed), listed);
            }
        }
    }

    #[test]
    fn invalid_names_match_nothing(world in world(), queries in queries(40), bad in 0_u8..6) {
        let policy = compile(&world)?;
        let bad = match bad { 0 => "", 1 => " \t", 2 => "a:b", 3 => "db.*", 4 => "line\nbreak", _ => "\u{202e}get" };
        for query in &queries {
            for call in [Call::mcp(bad, "get", None), Call::mcp("db", bad, None), Call::mcp(bad, bad, None)] {
                prop_assert!(!is_valid(&call.server) || !is_valid(&call.tool));
                let answer = engine(&policy, &query.clone().with_call(call));
                prop_assert!(answer.decision != Decision::Allow, "{:?}", answer);
                prop_assert!(answer.candidates.is_empty());
            }
        }
    }
}
