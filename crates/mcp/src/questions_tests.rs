//! Questions of servers: what may be shown, and how.

use toolwarden_core::json::{Document, Limits};

use super::{Asks, Unaskable, labelled, read};

fn asked(method: &str, params: &str) -> Result<Asks, Unaskable> {
    asked_at(&["gate.example.com"], method, params)
}

fn asked_at(own: &[&str], method: &str, params: &str) -> Result<Asks, Unaskable> {
    let own: Vec<String> = own.iter().map(|own| (*own).to_owned()).collect();
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
        "https://[fec0::1]/",
        "https://[::ffff:0:10.0.0.1]/",
        "https://[::ffff:10.0.0.1]/",
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
fn gate_18_no_address_of_the_gateway_itself_is_opened_however_it_is_written() {
    let opens = |own: &str, url: &str| {
        let params = format!(r#"{{"mode":"url","message":"m","url":"{url}"}}"#);
        asked_at(&[own], "elicitation/create", &params)
    };
    for (own, urls) in [
        ("gate.example.com:8443", ["https://gate.example.com:8443/x", "https://Gate.Example.COM.:9/x"]),
        ("GATE.example.com.", ["https://gate.example.com/", "https://gate.example.com..:443/"]),
        ("https://gate.example.com:8443/mcp", ["https://gate.example.com/", "https://gate%2Eexample.com/"]),
        ("g\u{e4}te.example", ["https://xn--gte-qla.example/", "https://G\u{c4}TE.example:1/"]),
        ("93.184.216.34:8443", ["https://93.184.216.34/", "https://0x5db8d822:8443/"]),
        ("[2606:2800:220:1::1]:443", ["https://[2606:2800:220:1::1]/", "https://[2606:2800:0220:0001:0::1]:8443/"]),
        ("2606:2800:220:1::1", ["https://[2606:2800:220:1::1]/", "https://[2606:2800:220:1:0:0:0:1]:1/"]),
    ] {
        for url in urls {
            assert_eq!(opens(own, url), Err(Unaskable::Address), "{own} {url}");
        }
        assert!(opens(own, "https://gate.example.org:8443/").is_ok(), "{own}");
        assert!(opens(own, "https://93.184.216.35/").is_ok(), "{own}");
    }
}

/// Names, titles and descriptions of fields that ask for a secret, between bars.
const GUILTY: [&str; 10] = [
    "password | PASSWORD | Pass-Word | pass word | userPassword2 | p a s s w o r d | p.a.s.s.w.o.r.d",
    "pAsSwOrD | passwords | passw0rd | p@$$w0rd | p\u{e1}ssword | pa\u{300}ssword | pass\u{ad}word",
    "pass\u{200b}word | \u{ff50}\u{ff41}\u{ff53}\u{ff53}\u{ff57}\u{ff4f}\u{ff52}\u{ff44}",
    "\u{440}\u{430}ssw\u{43e}rd | \u{420}\u{410}SSW\u{41e}RD | p\u{3b1}ssw\u{3bf}rd",
    "\u{1d429}\u{1d41a}\u{1d42c}\u{1d42c}word | passwd | pwd | pass phrase | passcode | token | Token",
    "TOKEN | your_token | accessToken | access tokens | authtoken | bearer-token | token2 | githubToken",
    "t0ken | \u{442}oken | API key | apiKey | APIKey | api_keys | API-KEY | x-api-key | secret",
    "clientSecret | clientsecret | Secrets | secret_answer | private key | credentials | credit card",
    "Card Number | CVV | cvv2 | card cvc | SSN | otp | OTP code | PIN | recovery codes",
    "Paste the token from your settings page. | The password you sign in with | Enter your API key here",
];

/// Those that only sound like it.
const INNOCENT: [&str; 7] = [
    "tokenizer | Tokenizer | max_tokens | maxTokens | Max tokens | max_token | token_count",
    "token limit | nextPageToken | Tokens to spend | tokenize | secretary | Secretary's name",
    "secretariat | secretly | passenger | passengers | compass | compass words | Compass Word | author",
    "authority | shipping | opinion | pin this note | pinned | hotpot | api keyword",
    "passage | pass | passing grade | class | keyboard | monkey | private keyboard | business card",
    "number | code | cardinal number | credit | The name of the author, as on the passport",
    "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442} | \u{540d}\u{524d}",
];

#[test]
fn gate_18_a_secret_is_known_by_its_words() {
    for (table, expected) in [(&GUILTY[..], true), (&INNOCENT[..], false)] {
        for text in table.iter().flat_map(|line| line.split(" | ")) {
            assert_eq!(super::secrets::are_asked_by(text), expected, "{text}");
        }
    }
}

#[test]
fn forms_do_not_ask_for_secrets() {
    let form = |properties: &str| {
        let schema = format!(r#"{{"message":"m","requestedSchema":{{"type":"object","properties":{properties}}}}}"#);
        asked("elicitation/create", &schema)
    };
    for properties in [
        r#"{"name":{"type":"string"},"shipping":{"type":"string","title":"Opinion"}}"#,
        r#"{"n":{"type":"integer","description":"Most tokens of the answer"}}"#,
        // Nothing can be typed where one ticks or chooses.
        r#"{"save":{"type":"boolean","description":"Pay with the credit card on file?"}}"#,
        r#"{"way":{"type":"string","enum":["a","b"],"description":"How the password was lost"}}"#,
    ] {
        assert_eq!(form(properties), Ok(Asks::Form), "{properties}");
    }
    for properties in [
        r#"{"password":{"type":"string"}}"#,
        r#"{"api_key":{"type":"string"}}"#,
        r#"{"x":{"type":"string","title":"Your API key"}}"#,
        r#"{"pass\u0077ord":{"type":"string"}}"#,
        r#"{"x":{"type":"string","format":"password"}}"#,
        r#"{"CVV":{"type":"string"}}"#,
        r#"{"x":{"type":"string","description":"Paste your access token"}}"#,
        r#"{"x":{"description":"The password of your account"}}"#,
        r#"{"token":{"type":"string"}}"#,
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
    // What a model is asked stays as it is; who asks stands beside it, and no server says so for itself.
    let sampling = r#"{"messages":[],"_meta":{"toolwarden/server":"bank","a":1}}"#;
    assert_eq!(
        shown(&Asks::Sampling, sampling, "shop"),
        r#"{"messages":[],"_meta":{"toolwarden/server":"shop","a":1}}"#
    );
    assert_eq!(
        shown(&Asks::Sampling, r#"{"messages":[],"_meta":7}"#, "shop"),
        r#"{"messages":[],"_meta":{"toolwarden/server":"shop"}}"#
    );
    assert_eq!(shown(&Asks::Roots, "{}", "shop"), "{}");
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
