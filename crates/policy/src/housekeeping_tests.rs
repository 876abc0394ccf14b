//! Nothing that acts for a caller passes as housekeeping.

use super::housekeeping;

#[test]
fn only_the_fixed_list_leaves_without_a_permit() {
    for method in ["tools/call", "resources/read", "prompts/get", "completion/complete", "tasks/get", "x", ""] {
        assert!(housekeeping("s".into(), method, None).is_err(), "{method}");
    }
    let sent = housekeeping("s".into(), "tools/list", None);
    assert_eq!(
        sent.map(|sent| (sent.server().to_string(), sent.method().map(str::to_owned))),
        Ok(("s".into(), Some("tools/list".into())))
    );
}
