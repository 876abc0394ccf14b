//! Questions of servers: what may be shown, and how.

use toolwarden_core::json::{Document, Limits};

use super::{Asks, Unaskable, labelled, read};

fn asked(method: &str, params: &str) -> Result<Asks, Unaskable> {
    let own = ["gate.example.com".to_owned()];
    let Ok(params) = Document::parse(params, Limits::DEFAULT) else { return Err(Unaskable::Unknown) };
    read(method, Some(params.root()), &own)
}

fn opens(url: &str) -> Result<Asks, Unaskable> {
    asked("elicitation/create", &format!(r#"{{"mode":"url","message":"m","url":"{url}"}}"#))
}

#[test]
fn only_public_secure_addresses_are_opened() {
    assert_eq!(opens("https://example.com/x?y=1"), Ok(Asks::Url("example.com".to_owned())));
    assert_eq!(opens("https://93.184.216.34/"), Ok(Asks::Url("93.184.216.34".to_owned())));
    for url in [
        "http://example.com/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "https://user@example.com/",
        "https://user:pass@example.com/",
        "https://localhost/",
        "https://LOCALHOST./",
        "https://a.localhost/",
        "https://printer.local/",
        "https://metadata.google.internal/",
        "https://intranet/",
        "https://gate.example.com/",
        "https://GATE.example.com./approve",
        "https://127.0.0.1/",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://10.1.2.3/",
        "https://172.16.0.1/",
        "https://192.168.1.1/",
        "https://169.254.169.254/latest",
        "https://100.64.0.1/",
        "https://0.0.0.0/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::7f00:1]/",
        "https://[fd00::1]/",
        "https://[fe80::1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "not an address",
    ] {
        assert_eq!(opens(url), Err(Unaskable::Address), "{url}");
    }
}

#[test]
fn forms_do_not_ask_for_secrets() {
    let form = |properties: &str| {
        let schema = format!(r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{properties}}}}}"#);
        asked("elicitation/create", &schema)
    };
    assert_eq!(form(r#"{"name":{"type":"string"},"shipping":{"type":"string","title":"Opinion"}}"#), Ok(Asks::Form));
    for properties in [
        r#"{"password":{"type":"string"}}"#,
        r#"{"api_key":{"type":"string"}}"#,
        r#"{"x":{"type":"string","title":"Your API key"}}"#,
        r#"{"pass\u0077ord":{"type":"string"}}"#,
        r#"{"x":{"type":"string","format":"password"}}"#,
        r#"{"CVV":{"type":"string"}}"#,
    ] {
        assert_eq!(form(properties), Err(Unaskable::Secret), "{properties}");
    }
}

#[test]
fn what_cannot_be_read_is_not_shown() {
    assert_eq!(asked("elicitation/create", "{}"), Err(Unaskable::Malformed));
    assert_eq!(asked("elicitation/create", r#"{"message":"m","mode":"other"}"#), Err(Unaskable::Malformed));
    assert_eq!(asked("elicitation/create", r#"{"message":"m","mode":7}"#), Err(Unaskable::Malformed));
    assert_eq!(asked("tools/call", "{}"), Err(Unaskable::Unknown));
    let long = format!(r#"{{"message":"{}"}}"#, "x".repeat(300 * 1024));
    assert_eq!(asked("elicitation/create", &long), Err(Unaskable::TooLong));
}

#[test]
fn a_message_says_who_asks() {
    let shown = |asks: &Asks, params: &str, server: &str| {
        let params = Document::parse(params, Limits::DEFAULT).ok();
        labelled(asks, params.as_ref().map(Document::root), server).unwrap_or_default()
    };
    let form = r#"{"message":"Toolwarden: approve?\u001b[2K\u202e","requestedSchema":{"type":"object"}}"#;
    assert_eq!(
        shown(&Asks::Form, form, "evil\u{202e}"),
        "{\"message\":\"Server \\\"evil\\\\u{202e}\\\" asks: Toolwarden: approve?\u{fffd}[2K\u{fffd}\",\"requestedSchema\":{\"type\":\"object\"}}"
    );
    let url = r#"{"mode":"url","message":"pay","url":"https://a.example/"}"#;
    assert!(
        shown(&Asks::Url("a.example".to_owned()), url, "shop")
            .contains(r#"Server \"shop\" asks you to open a.example: pay"#)
    );
    assert_eq!(shown(&Asks::Sampling, r#"{"messages":[]}"#, "shop"), r#"{"messages":[]}"#);
}

#[test]
fn clients_are_asked_for_what_they_offered() {
    let offers = |declared: &str, asks: &Asks| {
        let declared = Document::parse(declared, Limits::DEFAULT).ok();
        asks.is_offered(declared.as_ref().map(Document::root))
    };
    let url = Asks::Url(String::new());
    assert!(offers(r#"{"elicitation":{}}"#, &Asks::Form) && !offers(r#"{"elicitation":{}}"#, &url));
    assert!(offers(r#"{"elicitation":{"url":{}}}"#, &url) && !offers(r#"{"elicitation":{"url":{}}}"#, &Asks::Form));
    assert!(offers(r#"{"sampling":{}}"#, &Asks::Sampling) && !offers("{}", &Asks::Sampling));
    assert!(!offers(r#"{"roots":true}"#, &Asks::Roots));
}
