//! Selections become filters; what no row can match is refused.

use super::Selection;

fn selection(tool: Option<&str>, server: Option<&str>) -> Selection {
    Selection { tool: tool.map(str::to_owned), server: server.map(str::to_owned), ..Selection::default() }
}

#[test]
fn a_tool_and_its_server_agree_or_are_refused() {
    let names = |tool, server| selection(tool, server).filter().ok().map(|filter| (filter.server, filter.tool));
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(names(Some("a:b"), None), Some((text("a"), text("b"))));
    assert_eq!(names(Some("*:b"), Some("a")), Some((text("a"), text("b"))));
    assert_eq!(names(None, Some("a")), Some((text("a"), None)));
    assert_eq!(names(Some("a:b"), Some("c")), None);
    for alone in ["b", ":b", "a:", ""] {
        assert_eq!(names(Some(alone), None), None, "{alone:?}");
    }
}

#[test]
fn words_no_row_has_are_refused_with_the_known_ones() {
    let wrong = Selection { decision: Some("allowed".to_owned()), ..Selection::default() };
    let said = wrong.filter().err().map(|error| error.to_string()).unwrap_or_default();
    assert_eq!(said, "there is no decision `allowed`; one of: allow, hold, deny");
}
