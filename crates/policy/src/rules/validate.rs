//! Checking rules before anyone relies on them: against the schema, typed where a rule names a tool
//! whose definition is known.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::str::FromStr;
use std::sync::LazyLock;

use cedar_policy::{Effect, PolicySet, Schema, ValidationMode, Validator};
use serde_json::Value;

use super::absent::escaped_by_absence;
use super::parse::Rule;
use super::scope::{Kind, Part};
use crate::finding::Finding;
use crate::servers::Servers;

/// The schema, with a place for the arguments of one tool.
const SCHEMA: &str = include_str!("../../rules/schema.cedarschema");
const ARGUMENTS_PLACE: &str = "arguments: {}";
const UNTYPED_RECORD: &str = "{}";

/// How deep a tool's schema is followed.
const DEEPEST_TYPE: usize = 8;

pub(super) fn validate(rules: &[Rule], servers: &Servers) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut by_schema: BTreeMap<String, Vec<&Rule>> = BTreeMap::new();
    for rule in rules {
        if !rule.scope.applies_to_action {
            let message =
                format!("rule `{}` names another action than `mcp.tool.invoke`, so it never applies", rule.name);
            findings.push(Finding::error("rule_never_applies", rule.origin.clone(), message));
            continue;
        }
        match arguments_type(rule, servers) {
            Typed::Known(record) => by_schema.entry(record).or_default().push(rule),
            Typed::NotNeeded => by_schema.entry(UNTYPED_RECORD.to_owned()).or_default().push(rule),
            Typed::Unknown => findings.push(untyped(rule)),
        }
        findings.extend(names_nothing(rule, servers));
        findings.extend(escaped_by_absence(rule, schema_of(rule, servers)));
    }
    findings.extend(rules.iter().filter_map(|rule| shadowed(rule, rules)));
    for (record, rules) in by_schema {
        findings.extend(check(&record, &rules));
    }
    findings
}

enum Typed {
    Known(String),
    NotNeeded,
    Unknown,
}

/// The record type of `context.arguments` for a rule.
fn arguments_type(rule: &Rule, servers: &Servers) -> Typed {
    // What looks at something nobody knows is checked like what looks at no arguments, and fails.
    if !rule.needs.mentions_typed_arguments() || !rule.policy.to_string().contains("arguments") {
        return Typed::NotNeeded;
    }
    schema_of(rule, servers).map_or(Typed::Unknown, |schema| Typed::Known(record(schema, 0)))
}

/// The input schema of the one tool a rule names.
fn schema_of<'a>(rule: &Rule, servers: &'a Servers) -> Option<&'a Value> {
    let Part::Equals(named) = &rule.scope.resource else { return None };
    let (server, tool) = named.id.split_once(':')?;
    // What one user's server lists is not what the operator's rules stand or fall with.
    let server = servers.get(server).filter(|server| server.owner.is_none())?;
    server.tool(tool)?.definition.as_ref()?.input_schema.as_ref()
}

fn untyped(rule: &Rule) -> Finding {
    let message = format!(
        "the arguments rule `{}` looks at cannot be checked, because it names no tool whose definition is known",
        rule.name
    );
    Finding::warning("rule_untyped", rule.origin.clone(), message)
        .suggesting("name one tool with `resource == Mcp::Tool::\"server:tool\"` and give its definition with `--catalog`, or use `context.args.hasTag(\"/name\") && context.args.getTag(\"/name\") == ..`; a call that lacks an argument the rule reads is denied")
}

/// A rule that changes nothing, because an unconditional rule decides all its calls.
fn shadowed(rule: &Rule, rules: &[Rule]) -> Option<Finding> {
    let decides = |other: &&Rule| {
        let covers =
            other.scope.principal.covers(&rule.scope.principal) && other.scope.resource.covers(&rule.scope.resource);
        let stronger = match (other.effect, rule.effect) {
            // A forbid that asks nobody beats permits, and makes further forbids needless.
            (Effect::Forbid, _) => other.hold.is_none(),
            (Effect::Permit, Effect::Permit) => true,
            (Effect::Permit, Effect::Forbid) => false,
        };
        let is_first =
            other.index < rule.index || rule.has_conditions || other.scope != rule.scope || other.effect != rule.effect;
        other.index != rule.index
            && !other.has_conditions
            && other.scope.applies_to_action
            && covers
            && stronger
            && is_first
    };
    let other = rules.iter().find(decides)?;
    let message =
        format!("rule `{}` changes nothing: `{}` at {} decides all its calls", rule.name, other.name, other.origin);
    Some(
        Finding::note("rule_shadowed", rule.origin.clone(), message)
            .suggesting("remove one of the two, or narrow the other"),
    )
}

/// A rule whose head names a server or tool nobody has.
fn names_nothing(rule: &Rule, servers: &Servers) -> Option<Finding> {
    let named = rule.scope.resource.named()?;
    let known = match named.kind {
        Kind::Server => servers.get(&named.id).is_some(),
        Kind::Tool => named.id.split_once(':').is_some_and(|(server, tool)| {
            servers.get(server).is_some_and(|server| !server.listed || server.tool(tool).is_some())
        }),
        _ => true,
    };
    let message =
        format!("rule `{}` names {} \"{}\", which no server here has", rule.name, named.kind.type_name(), named.id);
    (!known).then(|| Finding::warning("rule_matches_nothing", rule.origin.clone(), message))
}

fn check(record: &str, rules: &[&Rule]) -> Vec<Finding> {
    let schema = match schema(record) {
        Ok(schema) => schema,
        Err(error) => {
            let internal = |rule: &&Rule| {
                Finding::error(
                    "rule_schema",
                    rule.origin.clone(),
                    format!("the tool's schema has no Cedar form: {error}"),
                )
            };
            return rules.iter().map(internal).collect();
        }
    };
    let policies = PolicySet::from_policies(rules.iter().map(|rule| rule.policy.clone())).unwrap_or_default();
    let result = Validator::new(schema).validate(&policies, ValidationMode::Strict);
    let place = |id: &cedar_policy::PolicyId| {
        let index: Option<u32> = AsRef::<str>::as_ref(id).parse().ok();
        rules.iter().find(|rule| Some(rule.index) == index)
    };
    let name = |rule: &Rule, text: String| {
        text.replace(&format!("for policy `{}`", rule.index), &format!("for rule `{}`", rule.name))
    };
    let errors = result.validation_errors().filter_map(|error| {
        let rule = place(error.policy_id())?;
        Some(Finding::error("rule_invalid", rule.origin.clone(), name(rule, error.to_string())))
    });
    let warnings = result.validation_warnings().filter_map(|warning| {
        let rule = place(warning.policy_id())?;
        Some(Finding::warning("rule_suspicious", rule.origin.clone(), name(rule, warning.to_string())))
    });
    errors.chain(warnings).collect()
}

/// The schema of rules that look at no typed argument, parsed once: it is needed at every change.
static UNTYPED: LazyLock<Result<Schema, String>> =
    LazyLock::new(|| Schema::from_str(SCHEMA).map_err(|error| error.to_string()));

fn schema(record: &str) -> Result<Schema, String> {
    if record == UNTYPED_RECORD {
        return UNTYPED.clone();
    }
    let text = SCHEMA.replace(ARGUMENTS_PLACE, &format!("arguments: {record}"));
    Schema::from_str(&text).map_err(|error| error.to_string())
}

/// A JSON Schema object as a Cedar record. Properties Cedar cannot express are left out, so a rule
/// that mentions one is refused rather than misread.
fn record(schema: &Value, depth: usize) -> String {
    let mut text = String::from("{");
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(property_type) = cedar_type(property, depth + 1) {
            let optional = if required.contains(&name.as_str()) { "" } else { "?" };
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{optional}: {property_type}, ", quoted(name));
        }
    }
    text.push('}');
    text
}

fn cedar_type(schema: &Value, depth: usize) -> Option<String> {
    if depth > DEEPEST_TYPE {
        return None;
    }
    match schema.get("type")?.as_str()? {
        "string" => Some("String".to_owned()),
        // A number with a fraction denies the call where a rule looks at it (WORK-2).
        "integer" | "number" => Some("Long".to_owned()),
        "boolean" => Some("Bool".to_owned()),
        "array" => cedar_type(schema.get("items")?, depth + 1).map(|item| format!("Set<{item}>")),
        "object" => Some(record(schema, depth)),
        _ => None,
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.escape_debug())
}

#[cfg(test)]
#[path = "findings_tests.rs"]
mod tests;
