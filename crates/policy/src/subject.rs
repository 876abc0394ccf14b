//! One question with everything looked up that the stages need: names, mode, role, command line.

use toolwarden_core::json::{Part, Value};
use toolwarden_core::{CallKind, Caller, Door, Operation};

use crate::input::Declared;
use crate::modes::{Group, Mode};
use crate::pattern::Reach;
use crate::query::Query;
use crate::resolve::{Resolved, resolve};
use crate::roles::Role;
use crate::set::PolicySet;
use crate::shell::{self, ShellLine, Unparsable};

/// Whether the arguments are there to be looked at, or a list is being filtered.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arguments<'a> {
    Known(Option<Value<'a>>),
    Unknown,
}

/// Which mode the call is judged under.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ModeChoice<'a> {
    None,
    Chosen(&'a Mode),
    Refused(&'a Mode),
    Unknown(&'a str),
    NotIssued(&'a str),
    Required,
}

/// What the stages look at.
#[derive(Debug)]
pub(crate) struct Subject<'a> {
    pub(crate) policy: &'a PolicySet,
    pub(crate) query: &'a Query,
    pub(crate) caller: &'a Caller,
    pub(crate) names: Resolved<'a>,
    pub(crate) mode: ModeChoice<'a>,
    /// The caller's role, where it has one that is known.
    pub(crate) role: Option<&'a Role>,
    pub(crate) arguments: Arguments<'a>,
    /// The parsed command line of a shell call.
    pub(crate) line: Option<Result<ShellLine, Unparsable>>,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(policy: &'a PolicySet, query: &'a Query) -> Self {
        let arguments = Arguments::Known(query.call.arguments.as_ref().map(Part::value));
        let line = match &query.call.kind {
            CallKind::Shell { command, .. } => Some(shell::read(command)),
            CallKind::Mcp { .. } | CallKind::Fetch { .. } => None,
        };
        Self { line, ..Self::looked_up(policy, query, arguments) }
    }

    /// For filtering lists: the same question before anybody chose arguments.
    pub(crate) fn without_arguments(policy: &'a PolicySet, query: &'a Query) -> Self {
        Self::looked_up(policy, query, Arguments::Unknown)
    }

    fn looked_up(policy: &'a PolicySet, query: &'a Query, arguments: Arguments<'a>) -> Self {
        let caller = &*query.caller;
        let role = caller.role.as_deref().filter(|_| caller.is_agent());
        Self {
            policy,
            query,
            caller,
            names: resolve(policy, query),
            mode: choose_mode(policy, caller),
            role: role.and_then(|name| policy.base().roles.get(name)),
            arguments,
            line: None,
        }
    }

    pub(crate) fn operation(&self) -> Operation {
        self.query.call.requested_operation()
    }

    pub(crate) fn chosen_mode(&self) -> Option<&'a Mode> {
        match self.mode {
            ModeChoice::Chosen(mode) => Some(mode),
            _ => None,
        }
    }

    /// The caller's role by its name and, where it has one, its alias; a person may have one too. A
    /// role nobody knows keeps the name it was given.
    pub(crate) fn role_names(&self) -> [Option<&'a str>; 2] {
        let given = self.caller.role.as_deref();
        match given.and_then(|name| self.policy.base().roles.get(name)) {
            Some(role) => [Some(&role.name), role.alias],
            None => [given, None],
        }
    }

    pub(crate) fn group(&self) -> Group {
        match self.query.call.kind {
            CallKind::Mcp { .. } => Group::Mcp,
            CallKind::Shell { .. } => Group::Command,
            CallKind::Fetch { .. } => Group::None,
        }
    }

    /// Whether patterns without a server, and preset scopes, reach this tool. At explain a server
    /// nobody configured is judged as if an operator had declared it.
    pub(crate) fn reach(&self) -> Reach {
        match self.names.server.map(|server| server.declared) {
            Some(Declared::ByOperator) => Reach::WithBare,
            None if self.query.door == Door::Explain => Reach::WithBare,
            Some(Declared::ByWorkspace | Declared::ByUser) | None => Reach::OnlyNamed,
        }
    }

    pub(crate) fn labels(&self) -> &'a [String] {
        self.names.server.map(|server| server.narrowed(self.names.tool_name).labels.as_slice()).unwrap_or_default()
    }
}

/// MODE-8: an agent has exactly the modes of its token; a person may choose any.
fn choose_mode<'a>(policy: &'a PolicySet, caller: &'a Caller) -> ModeChoice<'a> {
    let settings = &policy.base().auto_run;
    let asked = caller.mode.as_deref();
    if let Some(slug) = asked.filter(|slug| caller.is_agent() && !caller.token.modes.iter().any(|mode| mode == slug)) {
        return ModeChoice::NotIssued(slug);
    }
    let issued = match caller.token.modes.as_slice() {
        [only] => Some(only.as_str()),
        // Several were issued and none was chosen: guessing one would be a choice nobody made.
        [_, _, ..] if asked.is_none() => return ModeChoice::Required,
        _ => None,
    };
    let default = || settings.default_mode.as_ref().map(|mode| mode.value.as_str());
    match asked.or(issued).or_else(default) {
        None if settings.require_mode => ModeChoice::Required,
        None => ModeChoice::None,
        Some(slug) => match policy.base().modes.get(slug) {
            None => ModeChoice::Unknown(slug),
            Some(mode) if mode.faults.is_empty() => ModeChoice::Chosen(mode),
            Some(mode) => ModeChoice::Refused(mode),
        },
    }
}
