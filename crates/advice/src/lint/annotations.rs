//! Findings about annotations of rules: a misspelt `@hold` leaves a rule that denies where a person was to be asked.

use toolwarden_core::name;
use toolwarden_policy::Finding;
use toolwarden_policy::rules::Rules;

/// Those that say something here; others are for whoever reads the rule.
const KNOWN: [&str; 2] = ["hold", "id"];

/// One finding for each annotation that is nearly one of ours.
#[must_use]
pub fn annotations(rules: &Rules) -> Vec<Finding> {
    let mut findings = Vec::new();
    for rule in rules.all() {
        let text = rule.text();
        for written in names(&text) {
            let Some(meant) = KNOWN.into_iter().find(|known| is_nearly(written, known)) else { continue };
            let message = format!("`@{}` says nothing, so the rule counts without it", name::shown(written));
            findings.push(
                Finding::warning("misspelt_annotation", rule.origin.clone(), message)
                    .suggesting(format!("did you mean `@{meant}`?")),
            );
        }
    }
    findings
}

/// Short names are like many words: of these only another case is taken for a slip.
fn is_nearly(written: &str, known: &str) -> bool {
    let folded = written.to_ascii_lowercase();
    written != known && (folded == known || known.len() > 2 && strsim::damerau_levenshtein(&folded, known) <= 1)
}

/// The names of the annotations before a rule.
fn names(rule: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = unspaced(rule);
    while let Some(after) = rest.strip_prefix('@') {
        let end = after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(after.len());
        let Some((name, tail)) = after.split_at_checked(end) else { break };
        names.push(name);
        rest = unspaced(behind_value(unspaced(tail)));
    }
    names
}

/// What follows white space and comments.
fn unspaced(text: &str) -> &str {
    let mut rest = text.trim_start();
    while let Some(comment) = rest.strip_prefix("//") {
        rest = comment.split_once('\n').map_or("", |(_, next)| next).trim_start();
    }
    rest
}

/// What follows the value in parentheses, where there is one.
fn behind_value(text: &str) -> &str {
    let Some(inner) = text.strip_prefix('(') else { return text };
    let (mut is_text, mut is_escaped) = (false, false);
    for (at, letter) in inner.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_text => is_escaped = true,
            '"' => is_text = !is_text,
            ')' if !is_text => return inner.get(at + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

#[cfg(test)]
#[test]
fn annotations_are_found_before_a_rule_and_slips_named() {
    let rule = "// @not\n@id(\"a)\\\"@x\") @hodl(\"why\")\n@description\nforbid (principal, action, resource);";
    assert_eq!(names(rule), ["id", "hodl", "description"]);
    for (written, known, is_slip) in
        [("hodl", "hold", true), ("Hold", "hold", true), ("holds", "hold", true), ("hold", "hold", false)]
    {
        assert_eq!(is_nearly(written, known), is_slip, "{written}");
    }
    assert!(is_nearly("ID", "id") && !is_nearly("by", "id") && !is_nearly("why", "hold"));
}
