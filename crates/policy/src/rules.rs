//! Access rules in Cedar: default deny, forbid wins, an error denies (GATE-10), `@hold` asks (CORE-4).
//!
//! Cedar scans every policy it is given, so rules are sliced first: only those whose scope fits the
//! principal and the tool are evaluated. A slice without conditions is answered without Cedar.

mod absent;
mod arguments;
mod comparisons;
mod facts;
mod mentions;
mod parse;
mod scope;
mod slice;
mod validate;

use cedar_policy::{Authorizer, Decision as CedarDecision, PolicyId, Response};
use toolwarden_core::Reason;

pub use cedar_policy::Effect;
pub(crate) use facts::Facts;
pub use parse::Rule;
pub(crate) use scope::ACTION;
pub(crate) use slice::Slices;

use crate::finding::Finding;
use crate::input::RuleFile;
use crate::servers::Servers;
use crate::verdict::{RuleRef, Step};
use arguments::FactsError;
use scope::Kind;
use slice::{Constant, Slice};

/// All rules, compiled.
#[derive(Debug)]
pub struct Rules {
    rules: Vec<Rule>,
    slices: Slices,
    authorizer: Authorizer,
    any_depends_on_time: bool,
    on_labels_met: OnLabelsMet,
}

/// Which rules look at the flow labels a caller has met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnLabelsMet {
    None,
    /// Only rules on tools that have a label themselves.
    OfLabelled,
    OfAny,
}

impl Rules {
    /// Parses rule files and indexes what they hold.
    ///
    /// # Errors
    /// Every text that is not Cedar, with its place.
    pub fn compile(files: &[RuleFile]) -> Result<Self, Vec<Finding>> {
        let rules = parse::parse(files)?;
        let slices = Slices::index(&rules);
        let any_depends_on_time = rules.iter().any(|rule| rule.needs.depends_on_time());
        let looking: Vec<&Rule> = rules.iter().filter(|rule| rule.needs.depends_on_labels_met()).collect();
        let on_labels_met = match looking.as_slice() {
            [] => OnLabelsMet::None,
            rules if rules.iter().all(|rule| rule.scope.names_a_label()) => OnLabelsMet::OfLabelled,
            _ => OnLabelsMet::OfAny,
        };
        Ok(Self { rules, slices, authorizer: Authorizer::new(), any_depends_on_time, on_labels_met })
    }

    /// Whether the answer to a call may depend on the flow labels met before; `have_labels`: whether any tool has one.
    pub(crate) fn may_depend_on_labels_met(&self, have_labels: bool) -> bool {
        match self.on_labels_met {
            OnLabelsMet::None => false,
            OnLabelsMet::OfLabelled => have_labels,
            OnLabelsMet::OfAny => true,
        }
    }

    /// Whether the answer to this call may.
    pub(crate) fn depend_on_labels_met(&self, facts: &Facts<'_>) -> bool {
        self.slices.for_call(&self.rules, facts).needs().depends_on_labels_met()
    }

    /// Checks every rule against the schema, typed where the tool it names is known.
    #[must_use]
    pub fn validate(&self, servers: &Servers) -> Vec<Finding> {
        validate::validate(&self.rules, servers)
    }

    /// The rules, in the order they were read.
    #[must_use]
    pub fn all(&self) -> &[Rule] {
        &self.rules
    }

    /// What the rules say about a call.
    pub(crate) fn judge(&self, facts: &Facts<'_>) -> Step {
        let slice = self.slices.for_call(&self.rules, facts);
        match slice.constant() {
            Some(constant) => self.constant_step(constant),
            None => self.evaluate(&slice, facts),
        }
    }

    /// Whether any rule looks at the clock at all.
    pub(crate) fn may_depend_on_time(&self) -> bool {
        self.any_depends_on_time
    }

    /// Whether the answer to this call may change by the clock alone.
    pub(crate) fn depend_on_time(&self, facts: &Facts<'_>) -> bool {
        self.slices.for_call(&self.rules, facts).needs().depends_on_time()
    }

    /// What the whole set says, unsliced: the slow way that slicing must agree with.
    #[cfg(test)]
    pub(crate) fn judge_unsliced(&self, facts: &Facts<'_>) -> Step {
        let everything: Vec<u32> = (0..u32::try_from(self.rules.len()).unwrap_or(u32::MAX)).collect();
        let whole = Slice::build_unsimplified(&self.rules, &everything);
        let needs = self.needs_by_cedar(facts);
        self.evaluate(&whole.needing(needs), facts)
    }

    /// What the rules at hand mention. Cedar says which are: it is asked for every rule's head alone.
    #[cfg(test)]
    fn needs_by_cedar(&self, facts: &Facts<'_>) -> mentions::Needs {
        let head = |rule: &Rule| {
            let mut json = rule.policy.to_json().ok()?;
            let members = json.as_object_mut()?;
            members.insert("effect".to_owned(), "permit".into());
            members.insert("conditions".to_owned(), serde_json::Value::Array(Vec::new()));
            cedar_policy::Policy::from_json(Some(rule.policy.id().clone()), json).ok()
        };
        let heads = cedar_policy::PolicySet::from_policies(self.rules.iter().filter_map(head)).unwrap_or_default();
        let mut needs = mentions::Needs::default();
        let Ok((request, entities)) = facts.request(&needs) else { return needs };
        let response = self.authorizer.is_authorized(&request, &heads, &entities);
        response.diagnostics().reason().filter_map(|id| self.rule(id)).for_each(|rule| needs.unite(&rule.needs));
        needs
    }

    /// Whether a call could pass the rules with some arguments: denied whatever they are = hidden.
    pub(crate) fn may_pass(&self, facts: &Facts<'_>) -> bool {
        let slice = self.slices.for_call(&self.rules, facts);
        if let Some(constant) = slice.constant() {
            return !self.constant_step(constant).denies();
        }
        let Ok(response) = self.ask(slice.independent(), &slice, facts) else { return false };
        let errors = response.diagnostics().errors().next().is_some();
        let forbidden = response.decision() == CedarDecision::Deny
            && response.diagnostics().reason().filter_map(|id| self.rule(id)).any(|rule| rule.hold.is_none());
        if errors || forbidden {
            return false;
        }
        let permitted = || {
            let permits = self.ask(slice.independent_permits(), &slice, facts);
            permits.is_ok_and(|response| response.decision() == CedarDecision::Allow)
        };
        slice.has_dependent_permit() || permitted()
    }

    fn evaluate(&self, slice: &Slice, facts: &Facts<'_>) -> Step {
        let response = match self.ask(slice.all(), slice, facts) {
            Ok(response) => response,
            Err(error) => return self.unusable(slice, facts, &error),
        };
        if let Some(error) = response.diagnostics().errors().next() {
            let cedar_policy::AuthorizationError::PolicyEvaluationError(inner) = error;
            let step = Step::because(Reason::RuleError).by(self.rule(inner.policy_id()).map(Rule::reference));
            return step.noting(inner.inner().to_string());
        }
        match response.decision() {
            CedarDecision::Allow => Step::PASS.by(self.first(&response).map(Rule::reference)),
            CedarDecision::Deny => self.denied(&response, slice, facts),
        }
    }

    /// WORK-2: a call that a rule at hand cannot look at is denied, by the first rule that would.
    fn unusable(&self, slice: &Slice, facts: &Facts<'_>, error: &FactsError) -> Step {
        let rules = slice.indexes().iter().filter_map(|index| self.rules.get(*index as usize));
        let first = rules.into_iter().find(|rule| facts.request(&rule.needs).is_err());
        Step::because(Reason::RuleError).by(first.map(Rule::reference)).noting(error.to_string())
    }

    /// CORE-4: held where every forbid that applies says `@hold` and a permit exists.
    fn denied(&self, response: &Response, slice: &Slice, facts: &Facts<'_>) -> Step {
        let forbids: Vec<&Rule> = response.diagnostics().reason().filter_map(|id| self.rule(id)).collect();
        let hard = forbids.iter().filter(|rule| rule.hold.is_none()).min_by_key(|rule| rule.index);
        if let Some(rule) = hard {
            return Step::because(Reason::RuleForbid).by(Some(rule.reference()));
        }
        let permitted =
            self.ask(slice.permits(), slice, facts).is_ok_and(|again| again.decision() == CedarDecision::Allow);
        match forbids.iter().min_by_key(|rule| rule.index) {
            Some(rule) if permitted => held(rule),
            _ => Step::because(Reason::RuleNoPermit),
        }
    }

    fn constant_step(&self, constant: &Constant) -> Step {
        let reference = |index: &u32| self.rules.get(*index as usize).map(Rule::reference);
        match constant {
            Constant::Permit(index) => Step::PASS.by(reference(index)),
            Constant::Forbid(index) => Step::because(Reason::RuleForbid).by(reference(index)),
            Constant::Hold(index) => self.rules.get(*index as usize).map_or(Step::because(Reason::RuleError), held),
            Constant::NoPermit => Step::because(Reason::RuleNoPermit),
        }
    }

    fn ask(
        &self,
        policies: &cedar_policy::PolicySet,
        slice: &Slice,
        facts: &Facts<'_>,
    ) -> Result<Response, FactsError> {
        let (request, entities) = facts.request(slice.needs())?;
        Ok(self.authorizer.is_authorized(&request, policies, &entities))
    }

    fn first(&self, response: &Response) -> Option<&Rule> {
        response.diagnostics().reason().filter_map(|id| self.rule(id)).min_by_key(|rule| rule.index)
    }

    fn rule(&self, id: &PolicyId) -> Option<&Rule> {
        let index: usize = AsRef::<str>::as_ref(id).parse().ok()?;
        self.rules.get(index)
    }
}

fn held(rule: &Rule) -> Step {
    let why = rule.hold.clone().unwrap_or_default();
    Step::because(Reason::RuleHold).by(Some(rule.reference())).noting(why)
}

impl Rule {
    /// The rule as written.
    #[must_use]
    pub fn text(&self) -> String {
        self.policy.to_string()
    }

    /// Whether evaluating it may fail, which denies: by arithmetic, by what a text is read as, or by an
    /// argument or address that it cannot look at.
    #[must_use]
    pub fn may_fail(&self) -> bool {
        let operators = ["+", "-", "*", "neg", "ip", "decimal", "datetime", "duration", "offset"];
        self.needs.depends_on_arguments() || operators.iter().any(|operator| self.conditions_have(operator))
    }

    /// Whether it looks at labels anywhere but, as a forbid, in its head.
    #[must_use]
    pub fn may_open_by_label(&self) -> bool {
        let in_head = self.effect == Effect::Permit && self.scope.names_a_label();
        in_head || ["labels", Kind::Label.type_name()].iter().any(|name| self.conditions_have(name))
    }

    /// Whether it forbids by the name of a server or tool, rather than by labels or whatever is called.
    #[must_use]
    pub fn forbids_by_name(&self) -> bool {
        self.effect == Effect::Forbid && (self.scope.names_a_tool_or_server() || self.conditions_have("resource"))
    }

    /// Whether an operator, attribute, variable or type is in the conditions, however it is spelt there. True where that
    /// cannot be told, and for a text that says the same.
    fn conditions_have(&self, name: &str) -> bool {
        let conditions = self.policy.to_json().ok().and_then(|json| json.get("conditions").map(ToString::to_string));
        conditions.is_none_or(|text| text.contains(&format!("\"{name}\"")))
    }

    /// The rule as it counts: without its annotations, its name and its place.
    #[must_use]
    pub fn body(&self) -> Option<serde_json::Value> {
        let mut json = self.policy.to_json().ok()?;
        json.as_object_mut()?.remove("annotations");
        Some(json)
    }

    /// The rule as explanations show it.
    pub(crate) fn reference(&self) -> RuleRef {
        RuleRef { text: self.name.clone(), origin: self.origin.clone() }
    }
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
