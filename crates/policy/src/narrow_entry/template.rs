//! An entry as a rule in Cedar: built as a tree, never as text, so that no value can end its own quotes.
//!
//! One `when` says that every argument is named, one more stands for each condition. Cedar compares; what an
//! argument counts as was derived before, because `like` would take `src-evil` and `src/../x` for paths below `src`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use cedar_policy::{
    Authorizer, Context, Decision, Entities, Entity, EntityUid, Policy, PolicyId, PolicySet, Request,
    RestrictedExpression, Schema, ValidationMode, Validator,
};
use serde_json::{Value, json};

use super::facts::Facts;
use super::{Demand, Likeness};
use crate::rules::ACTION;

const SCHEMA: &str = include_str!("../../rules/narrowed.cedarschema");
const LIKENESS: &str = "Mcp::Likeness";

pub(super) fn instantiate(server: &str, tool: &str, demands: &BTreeMap<String, Demand>) -> Option<Policy> {
    let names: Vec<Value> = demands.keys().map(|pointer| literal(pointer)).collect();
    let every_name = json!({ "containsAll": { "left": { "Set": names }, "right": of_context("names") } });
    let conditions = demands.iter().filter_map(|(pointer, demand)| match demand {
        Demand::Like(likeness, value) => Some(when(&like(*likeness, pointer, value))),
        Demand::Free => None,
    });
    let rule = json!({
        "effect": "permit",
        "principal": { "op": "All" },
        "action": { "op": "==", "entity": { "type": "Action", "id": ACTION } },
        "resource": { "op": "==", "entity": { "type": "Mcp::Tool", "id": format!("{server}:{tool}") } },
        "conditions": std::iter::once(when(&every_name)).chain(conditions).collect::<Vec<_>>(),
    });
    Policy::from_json(Some(PolicyId::new("narrowed")), rule).ok()
}

fn when(body: &Value) -> Value {
    json!({ "kind": "when", "body": body })
}

fn like(likeness: Likeness, pointer: &str, value: &str) -> Value {
    let operands = json!({ "left": of_context(likeness.as_str()), "right": literal(pointer) });
    let set = json!({ "getTag": operands });
    let contains = json!({ "contains": { "left": set, "right": literal(value) } });
    json!({ "&&": { "left": { "hasTag": operands }, "right": contains } })
}

fn of_context(attribute: &str) -> Value {
    json!({ ".": { "left": { "Var": "context" }, "attr": attribute } })
}

fn literal(text: &str) -> Value {
    json!({ "Value": text })
}

static CHECKER: LazyLock<Option<Validator>> = LazyLock::new(|| SCHEMA.parse::<Schema>().ok().map(Validator::new));

/// Whether the rule fits the schema, strictly.
pub(super) fn is_well_typed(rule: &Policy) -> bool {
    let passes =
        |checker: &Validator, rules: &PolicySet| checker.validate(rules, ValidationMode::Strict).validation_passed();
    let rules = PolicySet::from_policies([rule.clone()]);
    CHECKER.as_ref().zip(rules.ok().as_ref()).is_some_and(|(checker, rules)| passes(checker, rules))
}

/// Whether the rule lets a call through. What cannot be asked, or fails, does not.
pub(super) fn permits(rule: &Policy, (server, tool): (&str, &str), facts: &Facts) -> bool {
    ask(rule, &format!("{server}:{tool}"), facts).unwrap_or(false)
}

fn ask(rule: &Policy, tool: &str, facts: &Facts) -> Option<bool> {
    let text = |text: &String| RestrictedExpression::new_string(text.clone());
    let mut pairs = vec![("names".to_owned(), RestrictedExpression::new_set(facts.names.iter().map(text)))];
    let mut entities = Vec::new();
    for (likeness, of_kind) in Likeness::ALL.into_iter().zip(&facts.counts_as) {
        let uid = uid(LIKENESS, likeness.as_str())?;
        let tags = of_kind
            .iter()
            .map(|(pointer, texts)| (pointer.clone(), RestrictedExpression::new_set(texts.iter().map(text))));
        entities.push(Entity::new_with_tags(uid.clone(), [], [], tags).ok()?);
        pairs.push((likeness.as_str().to_owned(), RestrictedExpression::new_entity_uid(uid)));
    }
    let context = Context::from_pairs(pairs).ok()?;
    // Whose list the entry stands in says whose calls it is for; the rule asks for nobody.
    let request =
        Request::new(uid("Person", "")?, uid("Action", ACTION)?, uid("Mcp::Tool", tool)?, context, None).ok()?;
    let rules = PolicySet::from_policies([rule.clone()]).ok()?;
    let answer = Authorizer::new().is_authorized(&request, &rules, &Entities::from_entities(entities, None).ok()?);
    let failed = answer.diagnostics().errors().next().is_some();
    Some(answer.decision() == Decision::Allow && !failed)
}

fn uid(type_name: &str, id: &str) -> Option<EntityUid> {
    Some(EntityUid::from_type_name_and_id(type_name.parse().ok()?, cedar_policy::EntityId::new(id)))
}
