//! `*` stays within one component.

use super::{fits, leaves_base};

#[test]
fn a_star_is_any_text_within_one_component() {
    for (path, pattern, fit) in [
        ("rules/a.cedar", "rules/*.cedar", true),
        ("rules/a.cedar", "./rules/*.cedar", true),
        ("rules/a.cedar", "*/*", true),
        ("rules/a.cedar", "*", false),
        ("rules/deep/a.cedar", "rules/*.cedar", false),
        ("abcbc", "a*bc", true),
        ("abc", "a*b*c*", true),
        ("ab", "a*bc", false),
        ("aba", "ab*ba", false),
        ("", "*", true),
    ] {
        assert_eq!(fits(path, pattern), fit, "{path} {pattern}");
    }
}

#[test]
fn what_leads_out_of_the_base_is_told() {
    for (pattern, leaves) in [("a/*", false), ("./a", false), ("../a", true), ("a/../../b", true), ("/etc/*", true)] {
        assert_eq!(leaves_base(pattern), leaves, "{pattern}");
    }
}
