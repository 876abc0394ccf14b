//! What a client declares is cut to what its server may ask.

use toolwarden_core::Caller;
use toolwarden_core::json::{Document, Limits};

use super::MayAsk;

fn cut(words: Option<&[&str]>, capabilities: &str) -> String {
    cut_for(&Caller::local_person("ada"), words, capabilities)
}

fn cut_for(caller: &Caller, words: Option<&[&str]>, capabilities: &str) -> String {
    let words: Option<Vec<String>> = words.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
    let document = Document::parse(capabilities, Limits::DEFAULT);
    document.map(|document| MayAsk::from_config(words.as_deref()).cut(caller, document.root())).unwrap_or_default()
}

#[test]
fn gate_18_only_forms_unless_configured() {
    let all = r#"{"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{},"url":{}},"x":{"n":1e2}}"#;
    assert_eq!(cut(None, all), r#"{"elicitation":{"form":{}},"x":{"n":1e2}}"#);
    assert_eq!(cut(None, r#"{"elicitation":{}}"#), r#"{"elicitation":{}}"#);
    assert_eq!(cut(None, r#"{"elicitation":{"url":{}}}"#), "{}");
    assert_eq!(cut(Some(&[]), all), r#"{"x":{"n":1e2}}"#);
    assert_eq!(cut(Some(&["url"]), r#"{"elicitation":{"form":{},"url":{}}}"#), r#"{"elicitation":{"url":{}}}"#);
    assert_eq!(cut(Some(&["elicitation", "url", "sampling", "roots"]), all), all);
    assert_eq!(cut(Some(&["everything"]), all), r#"{"x":{"n":1e2}}"#);
}

#[test]
fn gate_18_roots_of_agents_are_never_passed_on() {
    let agent = Caller::agent("worker", None);
    let declared = r#"{"roots":{},"sampling":{}}"#;
    assert_eq!(cut_for(&agent, Some(&["sampling", "roots"]), declared), r#"{"sampling":{}}"#);
}
