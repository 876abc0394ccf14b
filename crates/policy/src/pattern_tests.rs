//! GATE-5: the pattern grammar and what patterns reach.

use toolwarden_core::{Layer, Origin, Sourced};

use super::{Case, Pattern, PatternFault, Patterns, Reach};

fn patterns(case: Case, texts: &[&str]) -> Patterns {
    let sourced: Vec<_> =
        texts.iter().map(|text| Sourced::new((*text).to_owned(), Origin::record(Layer::Config, "test"))).collect();
    Patterns::compile(case, &sourced).0
}

#[test]
fn gate_5_patterns_match_across_dots() {
    let list = patterns(Case::Exact, &["db.*", "web.fetch", "files:read", "git:commit.*"]);
    for (server, tool, reach, expected) in [
        ("s", "db.read", Reach::WithBare, Some("db.*")),
        ("s", "db.a.b.c", Reach::WithBare, Some("db.*")),
        ("s", "db.", Reach::WithBare, Some("db.*")),
        ("s", "db", Reach::WithBare, None),
        ("s", "dbx.read", Reach::WithBare, None),
        ("s", "DB.read", Reach::WithBare, None),
        ("s", "web.fetch", Reach::WithBare, Some("web.fetch")),
        ("s", "web.fetcher", Reach::WithBare, None),
        ("s", "db.read", Reach::OnlyNamed, None),
        ("files", "read", Reach::OnlyNamed, Some("files:read")),
        ("Files", "read", Reach::OnlyNamed, None),
        ("git", "commit.sign", Reach::OnlyNamed, Some("git:commit.*")),
    ] {
        assert_eq!(list.find(server, tool, reach).map(|rule| &*rule.text), expected, "{server}:{tool}");
    }
}

#[test]
fn allow_5_deny_sides_ignore_case() {
    let list = patterns(Case::Folded, &["DB.*", "Files:Read"]);
    assert!(list.find("s", "db.Read", Reach::WithBare).is_some());
    assert!(list.find("FILES", "READ", Reach::OnlyNamed).is_some());
}

#[test]
fn gate_5_texts_that_are_no_pattern() {
    for (text, fault) in [
        ("d*b", PatternFault::Wildcard),
        ("*.read", PatternFault::Wildcard),
        ("**", PatternFault::Wildcard),
        ("a:b:c", PatternFault::Separator),
    ] {
        assert_eq!(Pattern::parse(text), Err(fault), "{text}");
    }
    assert!(matches!(Pattern::parse(""), Err(PatternFault::Name(_))));
    assert!(matches!(Pattern::parse("*:x"), Err(PatternFault::Name(_))));
    assert!(Pattern::parse("*").is_ok());
}
