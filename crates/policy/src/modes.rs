//! Modes, compiled: which servers and tools a mode permits, when, and in which context.
//!
//! Takes modes as written; gives one chain per mode, the mode and its ancestors, each of which must
//! agree, so that a child can only narrow. A mode with a fault is refused alone (MODE-6).

mod check;
mod strictness;
mod window;

use hashbrown::{HashMap, HashSet};
use toolwarden_core::{Caller, Layer, Origin, Reason, Sourced, ToolIdentity, name};

pub use check::conflicts;
pub(crate) use check::fits_any;
pub(crate) use window::CompiledWindow;

use crate::input::ModeInput;
use crate::verdict::{RuleRef, Step};

/// The modes Roo ships; they restrict nothing until somebody defines them (MODE-1).
pub const BUILT_IN: [(&str, &str); 5] = [
    ("architect", "Architect"),
    ("code", "Code"),
    ("ask", "Ask"),
    ("debug", "Debug"),
    ("orchestrator", "Orchestrator"),
];

/// How many ancestors a mode may have.
const LONGEST_CHAIN: usize = 16;

/// What a call needs of a mode's groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Mcp,
    Command,
    /// A fetch belongs to no group.
    None,
}

/// All compiled modes.
#[derive(Debug, Clone, Default)]
pub struct Modes {
    by_slug: HashMap<String, Mode>,
}

/// One compiled mode.
#[derive(Debug, Clone)]
pub struct Mode {
    pub slug: String,
    pub name: String,
    pub origin: Origin,
    /// How explanations name it, made once.
    pub(crate) rule: RuleRef,
    /// Why it is refused, where it is.
    pub faults: Vec<String>,
    /// Itself and its ancestors, the root last.
    chain: Vec<std::sync::Arc<Restrictions>>,
    /// Its own or an ancestor's word on auto-review.
    pub auto_review: Option<bool>,
}

/// What one mode of a chain says.
#[derive(Debug)]
struct Restrictions {
    rule: RuleRef,
    slug: String,
    groups: Option<HashSet<String>>,
    allowed_servers: Option<HashMap<String, Origin>>,
    disallowed_servers: HashMap<String, Origin>,
    allowed_tools: Option<HashMap<String, HashMap<String, Origin>>>,
    disallowed_tools: HashMap<String, HashMap<String, Origin>>,
    window: Option<CompiledWindow>,
    conditions: crate::input::Conditions,
}

/// What the mode is asked about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) group: Group,
    pub(crate) server: &'a str,
    /// None for resources, prompts and completion: they pass or fail with their server (MODE-4).
    pub(crate) tool: Option<&'a str>,
    pub(crate) default_enabled: bool,
    pub(crate) caller: &'a Caller,
    pub(crate) roles: [Option<&'a str>; 2],
    pub(crate) time: jiff::Timestamp,
}

impl Modes {
    /// Compiles modes; the later of two with one slug replaces the earlier.
    #[must_use]
    pub fn compile(inputs: &[ModeInput]) -> Self {
        let shipped = Origin::record(Layer::Shipped, "built-in mode");
        let built_in = BUILT_IN.map(|(slug, name)| ModeInput::unrestricted(slug, name, shipped.clone()));
        let by_slug: HashMap<&str, &ModeInput> =
            built_in.iter().chain(inputs).map(|mode| (mode.slug.as_str(), mode)).collect();
        let compiled: HashMap<&str, (std::sync::Arc<Restrictions>, Vec<String>)> =
            by_slug.iter().map(|(slug, mode)| (*slug, Restrictions::compile(mode))).collect();
        let modes = by_slug.values().map(|mode| (mode.slug.clone(), build(mode, &by_slug, &compiled))).collect();
        Self { by_slug: modes }
    }

    #[must_use]
    pub fn get(&self, slug: &str) -> Option<&Mode> {
        self.by_slug.get(slug)
    }

    /// Every mode, by slug.
    #[must_use]
    pub fn sorted(&self) -> Vec<&Mode> {
        let mut modes: Vec<_> = self.by_slug.values().collect();
        modes.sort_by(|left, right| left.slug.cmp(&right.slug));
        modes
    }
}

fn build(
    mode: &ModeInput,
    by_slug: &HashMap<&str, &ModeInput>,
    compiled: &HashMap<&str, (std::sync::Arc<Restrictions>, Vec<String>)>,
) -> Mode {
    let mut faults = Vec::new();
    let mut chain = Vec::new();
    let mut auto_review = None;
    let mut next = Some(mode.slug.as_str());
    while let Some(slug) = next {
        let Some((input, (restrictions, own_faults))) = by_slug.get(slug).zip(compiled.get(slug)) else {
            faults.push(format!("extends the unknown mode `{}`", name::shown(slug)));
            break;
        };
        if chain.len() >= LONGEST_CHAIN || chain.iter().any(|one: &std::sync::Arc<Restrictions>| one.slug == slug) {
            faults.push(format!("`extends` runs in a circle or too far at `{}`", name::shown(slug)));
            break;
        }
        if slug == mode.slug {
            faults.extend(own_faults.iter().cloned());
        } else if !own_faults.is_empty() {
            faults.push(format!("extends `{}`, which is refused", name::shown(slug)));
        }
        chain.push(restrictions.clone());
        auto_review = auto_review.or(input.auto_review);
        next = input.extends.as_ref().map(|parent| parent.value.as_str());
    }
    let rule = RuleRef::new(format!("mode {}", name::shown(&mode.slug)), &mode.origin);
    let (slug, name) = (mode.slug.clone(), mode.name.clone());
    Mode { slug, name, origin: mode.origin.clone(), rule, faults, chain, auto_review }
}

impl Restrictions {
    fn compile(mode: &ModeInput) -> (std::sync::Arc<Self>, Vec<String>) {
        let mut faults = mode.faults.clone();
        faults.extend(conflicts(mode).into_iter().map(|conflict| conflict.to_string()));
        let window = match mode.window.as_ref().map(CompiledWindow::compile).transpose() {
            Ok(window) => window,
            Err(fault) => {
                faults.push(fault.to_string());
                None
            }
        };
        faults.extend(check::unknown_conditions(mode));
        let restrictions = Self {
            rule: RuleRef::new(format!("mode {}", name::shown(&mode.slug)), &mode.origin),
            slug: mode.slug.clone(),
            groups: mode.groups.as_ref().map(|groups| groups.iter().cloned().collect()),
            allowed_servers: mode.allowed_servers.as_ref().map(|names| server_set(names, str::to_owned)),
            disallowed_servers: server_set(&mode.disallowed_servers, str::to_ascii_lowercase),
            allowed_tools: mode.allowed_tools.as_ref().map(|tools| tool_set(tools, str::to_owned)),
            disallowed_tools: tool_set(&mode.disallowed_tools, str::to_ascii_lowercase),
            window,
            conditions: mode.conditions.clone(),
        };
        (std::sync::Arc::new(restrictions), faults)
    }

    /// Whether this mode of the chain may be used here and now, for this kind of call.
    fn judge_use(&self, asked: &Asked<'_>) -> Option<Step> {
        if self.window.as_ref().is_some_and(|window| !window.contains(asked.time)) {
            return Some(Step::because(Reason::ModeWindow).by(Some(self.rule.clone())));
        }
        if let Some(key) = check::unmet_condition(&self.conditions, asked.caller, asked.roles) {
            let step = Step::because(Reason::ModeCondition).by(Some(self.rule.clone()));
            return Some(step.noting(format!("`{key}` does not fit")));
        }
        self.lacks(asked.group).then(|| Step::because(Reason::ModeGroup).by(Some(self.rule.clone())))
    }

    /// MODE-2 for the server.
    fn judge_server(&self, server: &str) -> Option<Step> {
        if self.allowed_servers.as_ref().is_some_and(|servers| !servers.contains_key(server)) {
            let step = Step::because(Reason::ModeServer).by(Some(self.rule.clone()));
            return Some(step.noting("not in allowedServers"));
        }
        let origin = self.disallowed_servers.get(&*name::folded(server))?;
        let rule = RuleRef::new(format!("disallowedServers: {}", name::shown(server)), origin);
        Some(Step::because(Reason::ModeServer).by(Some(rule)))
    }

    /// MODE-2 for the tool.
    fn judge_tool(&self, server: &str, tool: &str) -> Option<Step> {
        let allowed = |tools: &HashMap<String, HashMap<String, Origin>>| {
            tools.get(server).is_some_and(|names| names.contains_key(tool))
        };
        if self.allowed_tools.as_ref().is_some_and(|tools| !allowed(tools)) {
            let step = Step::because(Reason::ModeTool).by(Some(self.rule.clone()));
            return Some(step.noting("not in allowedTools"));
        }
        let origin = self.disallowed_tools.get(&*name::folded(server))?.get(&*name::folded(tool))?;
        let rule = RuleRef::new(format!("disallowedTools: {}", ToolIdentity::new(server, tool)), origin);
        Some(Step::because(Reason::ModeTool).by(Some(rule)))
    }

    fn lacks(&self, group: Group) -> bool {
        let has = |name: &str| self.groups.as_ref().is_none_or(|groups| groups.contains(name));
        match group {
            Group::Mcp => !has("mcp"),
            Group::Command => !has("command"),
            Group::None => false,
        }
    }
}

impl Mode {
    /// Whether the mode permits what is asked, in the order of CORE-1: groups, default availability,
    /// servers, tools. Every mode of the chain must agree.
    pub(crate) fn judge(&self, asked: &Asked<'_>) -> Step {
        let objection = self
            .first(|restrictions| restrictions.judge_use(asked))
            .or_else(|| self.judge_availability(asked))
            .or_else(|| self.first(|restrictions| restrictions.judge_server(asked.server)))
            .or_else(|| self.first(|restrictions| restrictions.judge_tool(asked.server, asked.tool?)));
        objection.unwrap_or_else(|| Step::PASS.by(Some(self.rule.clone())))
    }

    fn first(&self, judge: impl Fn(&Restrictions) -> Option<Step>) -> Option<Step> {
        self.chain.iter().find_map(|restrictions| judge(restrictions))
    }

    /// A server that is off by default must be named by the root of the chain: a child that named it
    /// alone would have more than its parent (MODE-3, MODE-11).
    fn judge_availability(&self, asked: &Asked<'_>) -> Option<Step> {
        let root_names = |root: &std::sync::Arc<Restrictions>| {
            root.allowed_servers.as_ref().is_some_and(|servers| servers.contains_key(asked.server))
        };
        let available = asked.default_enabled || self.chain.last().is_some_and(root_names);
        (!available).then(|| Step::because(Reason::ModeServerOptIn).by(Some(self.rule.clone())))
    }

    /// When the answer may change by itself.
    pub(crate) fn next_change(&self, time: jiff::Timestamp) -> Option<jiff::Timestamp> {
        let windows = self.chain.iter().filter_map(|restrictions| restrictions.window.as_ref());
        windows.filter_map(|window| window.next_edge(time)).min()
    }
}

fn server_set(names: &[Sourced<String>], form: fn(&str) -> String) -> HashMap<String, Origin> {
    names.iter().map(|name| (form(&name.value), name.origin.clone())).collect()
}

fn tool_set(tools: &[Sourced<ToolIdentity>], form: fn(&str) -> String) -> HashMap<String, HashMap<String, Origin>> {
    let mut set: HashMap<String, HashMap<String, Origin>> = HashMap::new();
    for tool in tools {
        set.entry(form(&tool.value.server)).or_default().insert(form(&tool.value.tool), tool.origin.clone());
    }
    set
}
