//! What webhooks are told: everything needed to find the call, arguments only where that was chosen, and no markup.

use serde_json::{Value, json};
use toolwarden_control::ApprovalView;
use toolwarden_core::{ApprovalNeeds, ApprovalState, HeldCaller, Secret};

use super::body;
use crate::webhook::{Format, Webhook, WebhookError, WebhookParts};

fn view() -> ApprovalView {
    ApprovalView {
        id: "abc".to_owned(),
        state: ApprovalState::Held,
        server: "notes".to_owned(),
        tool: "write`<!channel>".to_owned(),
        arguments: json!({ "text": "h1dden <b> ```" }),
        sent: r#"{"name":"write","arguments":{"text":"h1dden <b> ```"}}"#.to_owned(),
        laid_out: "{\n  \"text\": \"h1dden <b> ```\"\n}".to_owned(),
        besides: None,
        claims: Some("It claims h1dden things".to_owned()),
        result: None,
        caller: HeldCaller { is_agent: true, user: Some("ada".to_owned()), ..HeldCaller::default() },
        reason: "not_in_allowlist".to_owned(),
        message: "no allowlist entry matches".to_owned(),
        rule: None,
        held_at: "2027-01-15T08:00:00Z".to_owned(),
        expires_at: "2027-01-16T08:00:00Z".to_owned(),
        changed_at: "2027-01-15T08:00:00Z".to_owned(),
        needs: ApprovalNeeds::default(),
        narrowed: Vec::new(),
        offers: Vec::new(),
        answer: None,
        machine_opinion: None,
        digest: String::new(),
        followed: false,
    }
}

fn parts(format: Format, arguments: bool) -> WebhookParts {
    WebhookParts {
        name: "ops".to_owned(),
        url: Secret::new("https://hooks.example/s3cret".to_owned()),
        secret: Some(Secret::new("0123456789abcdef".to_owned())),
        format,
        user: None,
        groups: Vec::new(),
        states: vec![ApprovalState::Held],
        arguments,
        answers: false,
    }
}

fn said(format: Format, arguments: bool) -> Value {
    let Ok(webhook) = Webhook::new(parts(format, arguments)) else { unreachable!("it can be used") };
    let text = body(&webhook, &view(), ApprovalState::Held, Some("https://gate.example/approve/abc"));
    serde_json::from_str(&text).unwrap_or_default()
}

#[test]
fn a_webhook_is_told_which_call_waits_and_where_to_look_at_it() {
    let told = said(Format::Json, false);
    assert_eq!(told.get("type"), Some(&json!("approval.held")));
    for (place, expected) in [
        ("/data/id", json!("abc")),
        ("/data/server", json!("notes")),
        ("/data/caller/user", json!("ada")),
        ("/data/reason", json!("not_in_allowlist")),
        ("/data/url", json!("https://gate.example/approve/abc")),
    ] {
        assert_eq!(told.pointer(place), Some(&expected), "{place}: {told}");
    }
}

#[test]
fn arguments_and_claims_leave_the_house_only_where_that_was_chosen() {
    for format in [Format::Json, Format::Slack] {
        let told = said(format, false).to_string();
        assert!(!told.contains("h1dden"), "{told}");
        assert!(said(format, true).to_string().contains("h1dden"));
    }
}

#[test]
fn what_callers_write_is_no_markup_for_slack() {
    let told = said(Format::Slack, true);
    let text = told.to_string();
    assert!(!text.contains("<!channel>") && !text.contains("<b>"), "{text}");
    // Code ends where we end it.
    let blocks = told.get("blocks").and_then(Value::as_array).cloned().unwrap_or_default();
    let texts = blocks.iter().filter_map(|block| block.pointer("/text/text")?.as_str());
    for text in texts.filter(|text| text.contains("```")) {
        assert_eq!(text.matches("```").count(), 2, "{text}");
    }
    assert!(told.get("text").and_then(Value::as_str).is_some_and(|text| text.matches('`').count() == 4), "{told}");
    assert!(text.contains("https://gate.example/approve/abc") && text.contains("\"button\""), "{text}");
}

#[test]
fn what_cannot_be_trusted_or_used_is_refused_without_being_repeated() {
    let refused = |change: fn(&mut WebhookParts)| {
        let mut parts = parts(Format::Json, false);
        change(&mut parts);
        Webhook::new(parts).err()
    };
    assert!(matches!(refused(|parts| parts.secret = None), Some(WebhookError::NoSecret)));
    let short = refused(|parts| parts.secret = Some(Secret::new("short".to_owned())));
    assert!(matches!(short, Some(WebhookError::ShortSecret)));
    for wrong in ["whsec_AAAAAAAA", "whsec_this is no base64 at all"] {
        let mut parts = parts(Format::Json, false);
        parts.secret = Some(Secret::new(wrong.to_owned()));
        assert!(matches!(Webhook::new(parts), Err(WebhookError::ShortSecret)), "{wrong}");
    }
    let plain = refused(|parts| parts.url = Secret::new("http://hooks.example/s3cret".to_owned()));
    assert!(matches!(plain, Some(WebhookError::Plain(place)) if place == "hooks.example:80"));
    assert!(matches!(refused(|parts| parts.answers = true), Some(WebhookError::NoUser)));
    assert!(matches!(refused(|parts| parts.url = Secret::new("nowhere".to_owned())), Some(WebhookError::Net(_))));
    let kept = format!("{:?}", Webhook::new(parts(Format::Json, false)));
    assert!(!kept.contains("s3cret") && !kept.contains("0123456789abcdef"), "{kept}");
}

/// Texts that are too long for Slack are refused by it, and then nobody is told.
#[test]
fn nothing_a_caller_writes_makes_a_message_that_slack_refuses() {
    let mut long = view();
    (long.tool, long.server, long.message) = ("<".repeat(5_000), "&".repeat(5_000), "`".repeat(9_000));
    (long.laid_out, long.caller.user) = ("<".repeat(9_000), Some(">".repeat(5_000)));
    let Ok(webhook) = Webhook::new(parts(Format::Slack, true)) else { unreachable!("it can be used") };
    let text = body(&webhook, &long, ApprovalState::Held, Some("https://gate.example/approve/abc"));
    let told: Value = serde_json::from_str(&text).unwrap_or_default();
    let blocks = told.get("blocks").and_then(Value::as_array).cloned().unwrap_or_default();
    assert_eq!(blocks.len(), 4);
    for text in blocks.iter().filter_map(|block| block.pointer("/text/text")?.as_str()) {
        assert!(text.chars().count() <= 3_000, "{}", text.len());
    }
}
