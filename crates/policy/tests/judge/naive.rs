//! The second evaluator: CORE-1 and CORE-2 read aloud, with linear scans and no cleverness.
//!
//! Written from REQUIREMENTS.md alone. It looks everything up anew for every question.

use toolwarden_core::{CallKind, Decision, Operation, Payer, Reason, Stage};
use toolwarden_policy::input::{PolicyInput, ServerInput};
use toolwarden_policy::{PolicyInput as Input, Query};

use crate::arguments::arguments_of;
use crate::naive_autorun::{Auto, auto_run};
use crate::naive_context::{self, Chosen, Role};
use crate::naive_names::{self, Named};
use crate::naive_payers::payers_of;
use crate::rule::Rule;
use crate::{naive_holds, naive_modes, naive_roles, naive_schema, naive_servers};

/// A policy, and its rules in the small language they were printed from.
#[derive(Debug, Clone, Default)]
pub struct World {
    pub input: Input,
    pub rules: Vec<Rule>,
}

/// What the naive evaluator answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naive {
    pub decision: Decision,
    pub stage: Stage,
    pub reason: Reason,
    /// The entry that allowed it.
    pub rule: Option<String>,
    pub candidates: Vec<String>,
    pub payers: Vec<Payer>,
}

/// What kind of call it turned out to be, once its names are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    Mcp(Operation),
    Shell(String),
    Fetch(String),
}

/// A question with everything looked up.
#[derive(Debug)]
pub struct Case<'a> {
    pub input: &'a PolicyInput,
    pub rules: &'a [Rule],
    pub query: &'a Query,
    pub named: Named,
    pub kind: Kind,
    /// Every definition of this server, in the order given.
    pub definitions: Vec<&'a ServerInput>,
    pub role: Option<Role<'a>>,
    pub mode: Chosen<'a>,
    pub arguments: serde_json::Value,
}

impl<'a> Case<'a> {
    pub fn new(world: &'a World, query: &'a Query) -> Self {
        let input = &world.input;
        let named = naive_names::name(input, query);
        let is_meant = |server: &&ServerInput| server.name == named.server && naive_names::is_there(server, query);
        let definitions = input.servers.iter().filter(is_meant).collect();
        let arguments = arguments_of(query);
        let kind = kind(query, &named, &arguments);
        let role = query.caller.role.as_deref().and_then(|role| naive_context::role(input, role));
        let mode = naive_context::mode(input, query);
        Self { input, rules: &world.rules, query, named, kind, definitions, role, mode, arguments }
    }

    pub fn is_agent(&self) -> bool {
        self.query.caller.is_agent()
    }

    /// The caller's role under its name and its alias; a person's role need not be one of ours.
    pub fn role_names(&self) -> Vec<&'a str> {
        match &self.role {
            Some(role) => [role.name].into_iter().chain(role.shipped.and_then(|role| role.alias)).collect(),
            None => self.query.caller.role.as_deref().into_iter().collect(),
        }
    }

    pub fn definition(&self) -> Option<&'a ServerInput> {
        self.definitions.first().copied()
    }

    pub fn tool_config(&self) -> Option<&'a toolwarden_policy::input::ToolInput> {
        self.definition().and_then(|server| server.tools.get(&self.named.tool))
    }

    /// What is written about the tool in any spelling: what narrows it ignores case.
    pub fn tool_configs(&self) -> Vec<&'a toolwarden_policy::input::ToolInput> {
        let tools = self.definition().into_iter().flat_map(|server| server.tools.iter());
        tools.filter(|(name, _)| name.eq_ignore_ascii_case(&self.named.tool)).map(|(_, tool)| tool).collect()
    }

    pub fn admin(&self) -> Option<&'a toolwarden_policy::input::AdminInput> {
        self.input.base.admin.as_ref().filter(|admin| admin.enabled)
    }
}

fn kind(query: &Query, named: &Named, arguments: &serde_json::Value) -> Kind {
    let argument = |key: &str| arguments.get(key).and_then(serde_json::Value::as_str).unwrap_or("").to_owned();
    match &query.call.kind {
        CallKind::Shell { command, .. } => Kind::Shell(command.clone()),
        CallKind::Fetch { url } => Kind::Fetch(url.clone()),
        // A shell call is the tool `builtin:shell.run` at every door, and so the other way round.
        CallKind::Mcp { operation: Operation::CallTool } if named.server == "builtin" => match named.tool.as_str() {
            "shell.run" => Kind::Shell(argument("command")),
            "web.fetch" => Kind::Fetch(argument("url")),
            _ => Kind::Mcp(Operation::CallTool),
        },
        CallKind::Mcp { operation } => Kind::Mcp(*operation),
    }
}

type Gate = fn(&Case<'_>) -> Option<Reason>;

/// Authorization, in the order of CORE-1.
const GATES: [(Stage, Gate); 13] = [
    (Stage::Names, naive_names::gate),
    (Stage::Context, naive_context::gate),
    (Stage::Server, naive_servers::known),
    (Stage::Switch, naive_servers::switch),
    (Stage::Mode, naive_modes::gate),
    (Stage::RoleDisallow, naive_roles::disallowed),
    (Stage::RoleAllow, naive_roles::allowed),
    (Stage::Scope, naive_roles::scope),
    (Stage::Setting, naive_roles::setting),
    (Stage::TaskScope, naive_roles::task_scope),
    (Stage::Rules, naive_holds::rules),
    (Stage::Schema, naive_schema::schema),
    (Stage::Limits, naive_schema::limits),
];

/// Judges one call.
pub fn naive(world: &World, query: &Query) -> Naive {
    let case = Case::new(world, query);
    for (stage, gate) in GATES {
        if let Some(reason) = gate(&case) {
            return plain(Decision::Deny, stage, reason);
        }
    }
    if matches!(case.kind, Kind::Mcp(Operation::GetPrompt | Operation::Complete)) {
        // Nobody can be asked, so what would ask denies.
        let asks = [Reason::SelfProtection, Reason::MandatoryAsk, Reason::HumanReview, Reason::RuleHold];
        return match naive_holds::mandatory(&case).iter().any(|reason| asks.contains(reason)) {
            true => plain(Decision::Deny, Stage::MandatoryHold, Reason::CannotBeHeld),
            false => plain(Decision::Allow, Stage::AutoRun, Reason::NeverHeld),
        };
    }
    let mandatory = naive_holds::mandatory(&case);
    let auto = auto_run(&case);
    let mut answer = match mandatory.first() {
        Some(strictest) => held_by(&mandatory, *strictest, &auto),
        None => from_auto_run(auto),
    };
    if naive_holds::needs_another_person(&case) {
        for payer in &mut answer.payers {
            if *payer == Payer::Person {
                *payer = Payer::SecondPerson;
            }
        }
    }
    answer
}

/// Held whatever auto-run says; the payer must be listed by every hold.
fn held_by(mandatory: &[Reason], strictest: Reason, auto: &Auto) -> Naive {
    let mut lists: Vec<Vec<Payer>> = mandatory.iter().map(|reason| payers_of(*reason)).collect();
    if let Auto::Hold { payers, .. } = auto {
        lists.push(payers.clone());
    }
    let mut payers = payers_of(strictest);
    payers.retain(|payer| lists.iter().all(|list| list.contains(payer)));
    if payers.is_empty() {
        payers = payers_of(strictest);
    }
    Naive { payers, ..plain(Decision::Hold, Stage::MandatoryHold, strictest) }
}

fn from_auto_run(auto: Auto) -> Naive {
    match auto {
        Auto::Allow { reason, rule } => Naive { rule, ..plain(Decision::Allow, Stage::AutoRun, reason) },
        Auto::Hold { reason, candidates, payers } => {
            Naive { candidates, payers, ..plain(Decision::Hold, Stage::AutoRun, reason) }
        }
    }
}

fn plain(decision: Decision, stage: Stage, reason: Reason) -> Naive {
    Naive { decision, stage, reason, rule: None, candidates: Vec::new(), payers: Vec::new() }
}
