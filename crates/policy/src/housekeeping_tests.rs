//! Nothing that acts for a caller passes as housekeeping.

use super::{METHODS, housekeeping};

#[test]
fn only_the_fixed_list_leaves_without_a_permit() {
    let for_callers = ["tools/call", "resources/read", "resources/subscribe", "prompts/get", "completion/complete"];
    for method in for_callers.into_iter().chain(["tasks/get", "tasks/cancel", "logging/setLevel", "x", ""]) {
        assert!(housekeeping("s".into(), method, None).is_err(), "{method}");
    }
    let sent = housekeeping("s".into(), "tools/list", None);
    assert_eq!(
        sent.map(|sent| (sent.server().to_string(), sent.method().map(str::to_owned))),
        Ok(("s".into(), Some("tools/list".into())))
    );
}

#[test]
fn everything_on_the_list_greets_lists_listens_or_ends_something() {
    for method in METHODS {
        let is_harmless = match method {
            "initialize" | "notifications/initialized" | "server/discover" | "ping" => true,
            "subscriptions/listen" => true,
            "notifications/cancelled" | "resources/unsubscribe" => true,
            other => other.ends_with("/list"),
        };
        assert!(is_harmless, "{method}");
    }
}
