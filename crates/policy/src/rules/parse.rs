//! Rule files → rules, each with its place, scope, `@hold`, and what it needs to know of a call.

use std::str::FromStr;
use std::sync::Arc;

use cedar_policy::{Effect, ParseErrors, Policy, PolicyId, PolicySet};
use miette::Diagnostic;
use toolwarden_core::Origin;

use super::mentions::Needs;
use super::scope::RuleScope;
use crate::finding::Finding;
use crate::input::RuleFile;

/// One rule.
#[derive(Debug)]
pub struct Rule {
    pub index: u32,
    /// Its `@id`, or its number in its file.
    pub name: Arc<str>,
    pub origin: Origin,
    pub effect: Effect,
    /// The words of `@hold`, on a forbid.
    pub hold: Option<String>,
    pub(crate) policy: Policy,
    pub(crate) scope: RuleScope,
    pub(crate) needs: Needs,
    pub(crate) has_conditions: bool,
}

/// Parses every file.
pub(super) fn parse(files: &[RuleFile]) -> Result<Vec<Rule>, Vec<Finding>> {
    let mut rules = Vec::new();
    let mut faults = Vec::new();
    for file in files {
        match PolicySet::from_str(&file.text) {
            Ok(policies) => take(file, &policies, &mut rules, &mut faults),
            Err(errors) => faults.extend(describe(file, &errors)),
        }
    }
    if faults.is_empty() { Ok(rules) } else { Err(faults) }
}

fn take(file: &RuleFile, policies: &PolicySet, rules: &mut Vec<Rule>, faults: &mut Vec<Finding>) {
    if policies.num_of_templates() > 0 {
        let message = "templates are not used here: write `principal` and `resource` out".to_owned();
        faults.push(Finding::error("rule_template", file.origin.clone(), message));
        return;
    }
    let mut position = 0;
    for number in 0..policies.num_of_policies() {
        // The parser numbers policies in the order of the file.
        let Some(policy) = policies.policy(&PolicyId::new(format!("policy{number}"))) else { continue };
        let text = policy.to_string();
        let found = file.text.get(position..).and_then(|rest| rest.find(&text)).map_or(position, |at| position + at);
        position = found + text.len();
        let (line, column) = line_and_column(&file.text, found);
        let origin = Origin { line, column, ..file.origin.clone() };
        match rule(rules.len(), number, policy, origin.clone()) {
            Ok(rule) => rules.push(rule),
            Err(message) => faults.push(Finding::error("rule_unusable", origin, message)),
        }
    }
}

fn rule(index: usize, number: usize, policy: &Policy, origin: Origin) -> Result<Rule, String> {
    let index = u32::try_from(index).map_err(|_| "too many rules".to_owned())?;
    let hold = policy.annotation("hold").map(str::to_owned);
    if hold.is_some() && policy.effect() == Effect::Permit {
        return Err("`@hold` belongs on a forbid: on a permit it would change nothing".to_owned());
    }
    let name = policy.annotation("id").map_or_else(|| format!("rule {}", number + 1), str::to_owned);
    let needs = Needs::of(policy).map_err(|error| error.to_string())?;
    Ok(Rule {
        index,
        name: name.into(),
        origin,
        effect: policy.effect(),
        hold,
        policy: policy.new_id(PolicyId::new(index.to_string())),
        scope: RuleScope::of(policy),
        needs,
        has_conditions: policy.has_non_scope_constraint(),
    })
}

fn describe(file: &RuleFile, errors: &ParseErrors) -> Vec<Finding> {
    errors
        .iter()
        .map(|error| {
            let offset = error.labels().and_then(|mut labels| labels.next()).map_or(0, |label| label.offset());
            let (line, column) = line_and_column(&file.text, offset);
            let origin = Origin { line, column, ..file.origin.clone() };
            let finding = Finding::error("rule_syntax", origin, error.to_string());
            match error.help() {
                Some(help) => finding.suggesting(help.to_string()),
                None => finding,
            }
        })
        .collect()
}

fn line_and_column(text: &str, offset: usize) -> (u32, u32) {
    let before = text.get(..offset).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|character| *character != '\n').count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}
