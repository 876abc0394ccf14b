//! Mandatory holds (CORE-2, CORE-4): no mode, allowlist or "always" answer lets these calls through.
//!
//! Gives every hold that applies, strictest first: what only an acceptance can lift stands before
//! what a person can lift.

use toolwarden_core::{Operation, Reason, Weakness, weak};

use crate::allowlist::Twin;
use crate::query::Definition;
use crate::self_protection::self_protection;
use crate::subject::Subject;
use crate::verdict::Step;

pub(crate) fn mandatory_holds(subject: &Subject<'_>, of_rules: Option<Step>) -> Vec<Step> {
    if weak::is(Weakness::Holds) {
        return Vec::new();
    }
    if is_never_held(subject) {
        return [self_protection(subject), ask(subject), human_review(subject), of_rules]
            .into_iter()
            .flatten()
            .collect();
    }
    let holds = [definition(subject), self_protection(subject), ask(subject), human_review(subject), of_rules];
    holds.into_iter().flatten().collect()
}

/// Whether a call cannot wait for anybody (MODE-4): what would hold it denies it.
pub(crate) fn is_never_held(subject: &Subject<'_>) -> bool {
    matches!(subject.operation(), Operation::GetPrompt | Operation::Complete)
}

/// The deny that takes the place of a hold nobody can be asked about.
pub(crate) fn cannot_be_held(hold: &Step) -> Step {
    Step::because(Reason::CannotBeHeld).by(hold.rule.clone()).noting(hold.reason().map_or("", Reason::code))
}

fn definition(subject: &Subject<'_>) -> Option<Step> {
    match subject.query.definition {
        Definition::Accepted => None,
        Definition::Changed => Some(Step::because(Reason::DefinitionChanged)),
        Definition::ServerChanged => {
            Some(Step::because(Reason::DefinitionChanged).noting("what its server says of itself changed"))
        }
        Definition::New => Some(Step::because(Reason::DefinitionNew)),
    }
}

/// Deny sides ignore case, twins included.
fn ask(subject: &Subject<'_>) -> Option<Step> {
    let rule = subject.policy.base().ask.find(subject.names.server_name, subject.names.tool_name, Twin::None)?;
    Some(Step::because(Reason::MandatoryAsk).by(Some(rule.clone())))
}

fn human_review(subject: &Subject<'_>) -> Option<Step> {
    let rule = subject.names.server?.narrowed(subject.names.tool_name).human_review.clone()?;
    Some(Step::because(Reason::HumanReview).by(Some(rule)))
}
