//! Roles, compiled: what an agent of a role may ever call (GATE-4 to GATE-7, GATE-11).
//!
//! Takes the shipped roles and what the config says over them; gives pattern lookups. A pattern
//! that is none, or a role without a side, is an error of the whole policy.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use toolwarden_core::{Layer, Origin, Sourced};

pub use crate::pattern::{Pattern, PatternFault};

use crate::finding::Finding;
use crate::input::{ArgumentCondition, RoleInput, Scope};
use crate::pattern::{Case, Patterns};
use crate::shipped::{self, ShippedRole};

/// One compiled role.
#[derive(Debug, Clone)]
pub struct Role {
    pub name: String,
    /// Another name of the same role.
    pub alias: Option<&'static str>,
    pub origin: Origin,
    pub side: Scope,
    /// Its agents read why something was denied, instead of "unknown tool" (MODE-5).
    pub explain: bool,
    pub(crate) allow: Patterns,
    pub(crate) disallow: Patterns,
    pub(crate) only_task_tools: Patterns,
    pub(crate) own_task: Patterns,
    pub(crate) conditional: Patterns,
    pub(crate) conditions: Vec<(Pattern, ArgumentCondition)>,
    pub(crate) settings: Vec<(Pattern, &'static str)>,
    /// The lists as written, for lint and display.
    pub allow_texts: Vec<Sourced<String>>,
    pub disallow_texts: Vec<Sourced<String>>,
}

/// All compiled roles, aliases included.
#[derive(Debug, Clone, Default)]
pub struct Roles {
    by_name: HashMap<String, std::sync::Arc<Role>>,
}

impl Roles {
    /// Compiles the shipped roles with what the config says over them.
    ///
    /// # Errors
    /// Every fault found: a bad pattern, a role without a side.
    pub fn compile(inputs: &[RoleInput]) -> Result<Self, Vec<Finding>> {
        let mut faults = Vec::new();
        let mut by_name = HashMap::new();
        let by_input: BTreeMap<&str, &RoleInput> =
            inputs.iter().map(|role| (canonical(&role.name.value), role)).collect();
        for (index, role) in inputs.iter().enumerate() {
            let same = |other: &&RoleInput| canonical(&other.name.value) == canonical(&role.name.value);
            if let Some(first) = inputs.iter().take(index).find(same) {
                let message =
                    format!("role `{}` is defined twice; the other place is {}", role.name.value, first.name.origin);
                faults.push(Finding::error("role_twice", role.name.origin.clone(), message));
            }
        }
        for shipped in &shipped::ROLES {
            let input = by_input.get(shipped.name).copied();
            let role = std::sync::Arc::new(Role::compile(Some(shipped), input, &mut faults));
            if let Some(alias) = shipped.alias {
                by_name.insert(alias.to_owned(), role.clone());
            }
            by_name.insert(shipped.name.to_owned(), role);
        }
        for (name, input) in by_input {
            if !by_name.contains_key(name) {
                let role = Role::compile(None, Some(input), &mut faults);
                by_name.insert(name.to_owned(), std::sync::Arc::new(role));
            }
        }
        if faults.is_empty() { Ok(Self { by_name }) } else { Err(faults) }
    }

    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Role> {
        self.by_name.get(name).map(AsRef::as_ref)
    }

    /// Every role once, by name.
    #[must_use]
    pub fn sorted(&self) -> Vec<&Role> {
        let mut roles: Vec<&Role> =
            self.by_name.iter().filter(|(name, role)| **name == role.name).map(|(_, role)| role.as_ref()).collect();
        roles.sort_by(|left, right| left.name.cmp(&right.name));
        roles
    }
}

/// `[roles.sandbox]` speaks of the shipped role that has this alias.
#[must_use]
pub fn canonical(name: &str) -> &str {
    shipped::ROLES.iter().find(|role| role.alias == Some(name)).map_or(name, |role| role.name)
}

impl Role {
    fn compile(shipped: Option<&ShippedRole>, input: Option<&RoleInput>, faults: &mut Vec<Finding>) -> Self {
        let home = Origin::record(Layer::Shipped, "shipped role");
        let sourced = |texts: &[&str]| -> Vec<Sourced<String>> {
            texts.iter().map(|text| Sourced::new((*text).to_owned(), home.clone())).collect()
        };
        let shipped_list = |list: fn(&ShippedRole) -> &'static [&'static str]| sourced(shipped.map_or(&[], list));
        let name = shipped.map(|role| role.name.to_owned()).or_else(|| input.map(|role| role.name.value.clone()));
        let origin = input.map_or_else(|| home.clone(), |role| role.name.origin.clone());
        let allow_texts = input.and_then(|role| role.allow.clone()).unwrap_or_else(|| shipped_list(|role| role.allow));
        let disallow_texts =
            input.and_then(|role| role.disallow.clone()).unwrap_or_else(|| shipped_list(|role| role.disallow));
        let mut compile = |case, texts: &[Sourced<String>]| {
            let (patterns, bad) = Patterns::compile(case, texts);
            faults.extend(bad.into_iter().map(|(origin, text, fault)| {
                Finding::error("bad_pattern", origin, format!("`{text}` is not a tool pattern: {fault}"))
            }));
            patterns
        };
        let role = Self {
            name: name.unwrap_or_default(),
            alias: shipped.and_then(|role| role.alias),
            origin: origin.clone(),
            side: input.and_then(|role| role.scope).or(shipped.map(|role| role.scope)).unwrap_or(Scope::Both),
            explain: input.and_then(|role| role.explain).unwrap_or(false),
            allow: compile(Case::Exact, &allow_texts),
            disallow: compile(Case::Folded, &disallow_texts),
            // What narrows a role is a deny side: another spelling does not escape it.
            only_task_tools: compile(Case::Folded, &shipped_list(|role| role.only_task_tools)),
            own_task: compile(Case::Folded, &shipped_list(|role| role.own_task)),
            conditional: compile(Case::Folded, &shipped_list(|role| role.conditional)),
            conditions: conditions(input, faults),
            settings: settings(shipped),
            allow_texts,
            disallow_texts,
        };
        if role.side == Scope::Both {
            let message = format!("role `{}` needs `scope = \"pm\"` or `scope = \"sandbox\"`", role.name);
            faults.push(Finding::error("role_scope", origin, message));
        }
        role
    }

    /// Every condition on arguments.
    pub fn conditions(&self) -> impl Iterator<Item = &ArgumentCondition> {
        self.conditions.iter().map(|(_, condition)| condition)
    }

    /// The conditions on the arguments of a tool, on whichever server.
    pub(crate) fn conditions_for<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
    ) -> impl Iterator<Item = &'a ArgumentCondition> {
        let fits = move |pattern: &Pattern| {
            pattern.server.as_ref().is_none_or(|named| named.eq_ignore_ascii_case(server))
                && pattern.matches_folded(tool)
        };
        self.conditions.iter().filter(move |(pattern, _)| fits(pattern)).map(|(_, condition)| condition)
    }

    /// The setting this role needs for a tool.
    pub(crate) fn setting_for(&self, tool: &str) -> Option<&'static str> {
        self.settings.iter().find(|(pattern, _)| pattern.matches_folded(tool)).map(|(_, setting)| *setting)
    }
}

fn conditions(input: Option<&RoleInput>, faults: &mut Vec<Finding>) -> Vec<(Pattern, ArgumentCondition)> {
    let mut compiled = Vec::new();
    for condition in input.map(|role| role.conditions.as_slice()).unwrap_or_default() {
        match Pattern::parse(&condition.tool.value) {
            Ok(pattern) => compiled.push((pattern, condition.clone())),
            Err(fault) => faults.push(Finding::error(
                "bad_pattern",
                condition.tool.origin.clone(),
                format!("`{}` is not a tool pattern: {fault}", condition.tool.value),
            )),
        }
    }
    compiled
}

fn settings(shipped: Option<&ShippedRole>) -> Vec<(Pattern, &'static str)> {
    let pairs = shipped.map(|role| role.settings).unwrap_or_default();
    pairs.iter().filter_map(|(tool, setting)| Pattern::parse(tool).ok().map(|pattern| (pattern, *setting))).collect()
}
