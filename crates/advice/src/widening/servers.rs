//! Servers by name: added, enabled, started otherwise; their tools: listed, switched on, less narrowed.

use std::collections::BTreeSet;

use toolwarden_policy::PolicySet;
use toolwarden_policy::input::{Declared, LimitsInput, Scope};
use toolwarden_policy::rules::Rule;
use toolwarden_policy::servers::{Narrowed, Server, ServerState, Tool};

use super::{Found, limits};

pub(super) fn compare(before: &PolicySet, after: &PolicySet, found: &mut Found) {
    let rules = Depending::on(after);
    let (old_limits, new_limits) = (before.base().limits, after.base().limits);
    for new in after.servers().sorted() {
        match before.servers().get(&new.name) {
            Some(old) => Pair { old, new, rules, old_limits, new_limits }.compare(found),
            // One that is off is refused by name, where it was unknown before.
            None if new.state != ServerState::Enabled => {}
            None => found.add("server_added", format!("the server `{}` is new", new.name), Some(&new.origin)),
        }
    }
    for old in before.servers().sorted() {
        if after.servers().get(&old.name).is_none() && narrows_while_known(old, before, rules) {
            let what = format!("the server `{}` is gone, and with it what narrowed calls by that name", old.name);
            found.add("server_removed", what, Some(&old.origin));
        }
    }
}

/// What the rules look at, so that names or labels alone can matter.
#[derive(Clone, Copy)]
struct Depending {
    names: bool,
    labels: bool,
}

impl Depending {
    fn on(policy: &PolicySet) -> Self {
        let rules = policy.base().rules.all();
        Self { names: rules.iter().any(Rule::forbids_by_name), labels: rules.iter().any(Rule::may_open_by_label) }
    }
}

/// Where a client executes, and at explain, a server nobody knows is judged as if an operator had declared
/// it with nothing said about its tools. Whether knowing this one was stricter.
fn narrows_while_known(server: &Server, policy: &PolicySet, rules: Depending) -> bool {
    let is_plain = |narrowed: &Narrowed| {
        narrowed.human_review.is_none()
            && narrowed.result_review.is_none()
            && narrowed.task_scoped.is_empty()
            && narrowed.settings.is_empty()
            && narrowed.labels.is_empty()
            && narrowed.limits == LimitsInput::default()
    };
    let has_limits = server.limits("") != LimitsInput::default();
    let tool = |name: &str| server.tool(name).is_some_and(|tool| tool.schema.is_some() || tool.input.is_some());
    let folded = server.name.to_ascii_lowercase();
    let is_twin =
        |other: &&std::sync::Arc<Server>| other.name.to_ascii_lowercase() == folded && other.name != server.name;
    rules.names
        || server.state != ServerState::Enabled
        || server.declared != Declared::ByOperator
        || !server.default_enabled
        || has_limits
        || server.switched_off_names().next().is_some()
        || !is_plain(server.narrowed(""))
        || server.narrowed_names().any(|name| !is_plain(server.narrowed(name)))
        || server.known_tools().any(|name| tool(name) || server.has_twin(name))
        || policy.servers().sorted().iter().any(is_twin)
}

/// One server before and after.
struct Pair<'a> {
    old: &'a Server,
    new: &'a Server,
    rules: Depending,
    /// Those of the gateway.
    old_limits: LimitsInput,
    new_limits: LimitsInput,
}

impl Pair<'_> {
    fn compare(&self, found: &mut Found) {
        let (old, new) = (self.old, self.new);
        if old.owner != new.owner {
            // Whoever had it may be judged as if nobody had: where clients execute, what is unknown may run.
            self.add("server_owner_changed", "is there for others than before", found);
        }
        if new.state != ServerState::Enabled {
            return;
        }
        if old.state != ServerState::Enabled {
            self.add("server_enabled", "is enabled", found);
        }
        if old.launch != new.launch {
            self.add("server_launch_changed", "is started or reached otherwise", found);
        }
        if new.declared == Declared::ByOperator && old.declared != Declared::ByOperator {
            self.add("server_declared", "counts as declared by an operator", found);
        }
        if new.default_enabled && !old.default_enabled {
            self.add("server_enabled", "is on by default", found);
        }
        self.tools(found);
        self.switches(found);
        let names: BTreeSet<&str> = old.narrowed_names().chain(new.narrowed_names()).collect();
        // The empty name stands for tools nobody configured.
        for tool in names.into_iter().chain([""]) {
            self.narrowings(tool, found);
        }
    }

    fn add(&self, code: &'static str, what: &str, found: &mut Found) {
        found.add(code, format!("the server `{}` {what}", self.new.name), Some(&self.new.origin));
    }

    fn add_tool(&self, code: &'static str, tool: &str, what: &str, found: &mut Found) {
        let tool = if tool.is_empty() { "*" } else { tool };
        found.add(code, format!("`{}:{tool}` {what}", self.new.name), Some(&self.new.origin));
    }

    /// What is known by its exact name: lists, schemas, scopes.
    fn tools(&self, found: &mut Found) {
        let (old, new) = (self.old, self.new);
        let names: BTreeSet<&str> = old.known_tools().chain(new.known_tools()).collect();
        for name in names.into_iter().filter(|name| new.switched_off(name).is_none()) {
            let (was, is) = (old.tool(name), new.tool(name));
            let listed = |tool: Option<&Tool>| tool.is_some_and(|tool| tool.definition.is_some());
            if (was.is_none() && is.is_some()) || (listed(is) && !listed(was)) {
                self.add_tool("tool_added", name, "is newly known", found);
            }
            if was.is_some() && is.is_none() && (self.rules.names || old.has_twin(name)) {
                self.add_tool("tool_removed", name, "is gone, and other spellings of it are judged as they are", found);
            }
            let schema = |tool: Option<&Tool>| {
                tool.and_then(|tool| tool.definition.as_ref()).and_then(|tool| tool.input_schema.clone())
            };
            if schema(was).is_some() && schema(was) != schema(is) {
                self.add_tool("schema_changed", name, "takes other arguments", found);
            }
            if is_wider(old.scope(name), new.scope(name)) {
                self.add_tool("scope_widened", name, "has another scope", found);
            }
        }
    }

    fn switches(&self, found: &mut Found) {
        for (name, origin) in self.old.switched_off_names().filter(|(name, _)| self.new.switched_off(name).is_none()) {
            found.add("tool_on", format!("`{}:{name}` is switched on", self.new.name), Some(origin));
        }
    }

    /// What narrows a tool however it is spelt.
    fn narrowings(&self, tool: &str, found: &mut Found) {
        if self.new.switched_off(tool).is_some() {
            return;
        }
        let (old, new) = (self.old.narrowed(tool), self.new.narrowed(tool));
        let lacks = |old: &[String], new: &[String]| old.iter().any(|text| !new.contains(text));
        if old.human_review.is_some() && new.human_review.is_none() {
            self.add_tool("review_removed", tool, "no longer needs a person's review", found);
        }
        if old.result_review.is_some() && new.result_review.is_none() {
            self.add_tool("review_removed", tool, "shows its results without a person's review", found);
        }
        if lacks(&old.task_scoped, &new.task_scoped) {
            self.add_tool("task_scope_removed", tool, "is bound to fewer ids", found);
        }
        if lacks(&old.settings, &new.settings) {
            self.add_tool("setting_removed", tool, "needs fewer settings", found);
        }
        if lacks(&old.labels, &new.labels) {
            self.add_tool("label_removed", tool, "lost a flow label", found);
        }
        if self.rules.labels && lacks(&new.labels, &old.labels) {
            self.add_tool("label_added", tool, "has a label that a rule may open it by", found);
        }
        if limits::are_raised((self.old.limits(tool), self.old_limits), (self.new.limits(tool), self.new_limits)) {
            self.add_tool("limit_raised", tool, "has higher limits", found);
        }
    }
}

/// No scope is refused to every role; both is open to all of them.
fn is_wider(old: Option<Scope>, new: Option<Scope>) -> bool {
    new.is_some() && old != new && old != Some(Scope::Both)
}
