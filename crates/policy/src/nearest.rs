//! The nearest miss: what almost matched, for people who wonder why something did not.

use toolwarden_core::Reason;

use crate::lists::Effective;
use crate::query::Query;
use crate::set::PolicySet;
use crate::subject::{ModeChoice, Subject};
use crate::verdict::{Explanation, RuleRef};

/// What came closest to permitting a call that was held or denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestMiss {
    pub text: String,
    /// Where it stands, if it is written somewhere.
    pub rule: Option<RuleRef>,
}

/// The nearest miss for an explained call; none where nothing comes close.
#[must_use]
pub fn nearest_miss(policy: &PolicySet, query: &Query, explanation: &Explanation) -> Option<NearestMiss> {
    let subject = Subject::new(policy, query);
    let wanted = format!("{}:{}", subject.names.server_name, subject.names.tool_name);
    match explanation.reason {
        Reason::NotInAllowlist if subject.line.is_none() => {
            let lists = lists(policy, &subject)?;
            if let Some(rule) = lists.narrow.first_of(subject.names.server_name, subject.names.tool_name) {
                let text = format!("entry `{}`, which asks for other arguments", rule.text);
                return Some(NearestMiss { text, rule: Some(rule.clone()) });
            }
            let rule = closest(&wanted, lists.mcp.rules())?;
            Some(NearestMiss { text: format!("entry `{}`", rule.text), rule: Some(rule.clone()) })
        }
        Reason::NotInAllowlist => {
            let lists = lists(policy, &subject)?;
            let line = subject.line.as_ref()?.as_ref().ok()?;
            let command = line.commands.iter().find(|command| lists.terminal.covers(command).is_none())?;
            let words = command.text.replacen(' ', ":", 1);
            let rule = closest(&words, lists.terminal.rules())?;
            Some(NearestMiss { text: format!("entry `{}`", rule.text), rule: Some(rule.clone()) })
        }
        Reason::RoleNotAllowed => {
            let texts: Vec<RuleRef> =
                subject.role?.allow_texts.iter().map(|text| RuleRef::new(text.value.as_str(), &text.origin)).collect();
            let rule = closest(subject.names.tool_name, texts.iter())?;
            Some(NearestMiss { text: format!("pattern `{}`", rule.text), rule: Some(rule.clone()) })
        }
        Reason::ModeUnknown | Reason::ModeNotIssued => {
            let (ModeChoice::Unknown(slug) | ModeChoice::NotIssued(slug)) = subject.mode else { return None };
            let modes = policy.base().modes.sorted();
            let close = closest_text(slug, modes.iter().map(|mode| mode.slug.as_str()))?;
            Some(NearestMiss { text: format!("mode `{close}`"), rule: None })
        }
        Reason::RoleUnknown => {
            let roles = policy.base().roles.sorted();
            let close = closest_text(subject.caller.role.as_deref()?, roles.iter().map(|role| role.name.as_str()))?;
            Some(NearestMiss { text: format!("role `{close}`"), rule: None })
        }
        _ => None,
    }
}

fn lists<'a>(policy: &'a PolicySet, subject: &Subject<'_>) -> Option<Effective<'a>> {
    Effective::of(policy, subject.query)
}

fn closest<'a>(wanted: &str, rules: impl Iterator<Item = &'a RuleRef>) -> Option<&'a RuleRef> {
    rules
        .map(|rule| (similarity(wanted, &rule.text), rule))
        .filter(|(score, _)| *score >= 600)
        // Of two that are as near, always the same one: lists have no order.
        .max_by(|(score, rule), (other, another)| score.cmp(other).then_with(|| another.text.cmp(&rule.text)))
        .map(|(_, rule)| rule)
}

fn closest_text<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|text| (similarity(wanted, text), text))
        .filter(|(score, _)| *score >= 600)
        .max_by_key(|(score, _)| *score)
        .map(|(_, text)| text)
}

/// From 0 (nothing in common) to 1000 (the same), ASCII case ignored.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the score lies between 0 and 1000")]
fn similarity(left: &str, right: &str) -> u32 {
    (strsim::normalized_damerau_levenshtein(&left.to_ascii_lowercase(), &right.to_ascii_lowercase()) * 1000.0) as u32
}

#[cfg(test)]
#[test]
fn of_two_as_near_the_same_one_is_named_every_time() {
    use toolwarden_core::{Layer, Origin};
    let origin = Origin::record(Layer::Config, "test");
    let rules = ["notse:write_note", "notes:write_nte"].map(|text| RuleRef::new(text, &origin));
    let named = |rules: &[RuleRef]| closest("notes:write_note", rules.iter()).map(|rule| rule.text.to_string());
    let turned: Vec<RuleRef> = rules.iter().rev().cloned().collect();
    assert_eq!(named(&rules), named(&turned));
}
