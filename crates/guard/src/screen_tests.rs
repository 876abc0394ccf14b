//! What is found and what is not: planted fakes against ordinary texts, hidden characters against writing.

use toolwarden_core::json::Part;
use toolwarden_sources::{HiddenText, Pattern, Screening, ScreeningRules};

use super::{Screen, Seen};

fn screen(secrets: Screening, hidden: HiddenText, patterns: &[(&str, &str)]) -> Option<Screen> {
    let pattern = |(name, regex): &(&str, &str)| {
        Some(Pattern { name: (*name).to_owned(), regex: regex::Regex::new(regex).ok()? })
    };
    let patterns: Option<Vec<Pattern>> = patterns.iter().map(pattern).collect();
    Screen::of(&ScreeningRules { secrets, hidden, patterns: patterns? })
}

fn look(screen: &Screen, text: &str) -> Seen {
    let quoted = serde_json::Value::from(text).to_string();
    Part::composed(quoted).map(|said| screen.look(&said)).unwrap_or_default()
}

fn kinds(screen: &Screen, text: &str) -> Vec<String> {
    look(screen, text).findings.counts().keys().cloned().collect()
}

/// Letters by lot, the same ones every time. No fake stands in this file for other scanners to find.
struct Lot(u64);

impl Lot {
    fn draw(&mut self, from: &str, count: usize) -> String {
        let letters: Vec<char> = from.chars().collect();
        let mut draw = || {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            letters.get(usize::try_from(self.0 >> 33).unwrap_or(0) % letters.len()).copied().unwrap_or('a')
        };
        (0..count).map(|_| draw()).collect()
    }
}

const CAPITALS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const BASE64: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/";
const URL64: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
const HEX: &str = "0123456789abcdef";

/// A fake of every kind: its kind, the secret, a text around it.
fn planted(lot: &mut Lot) -> Vec<(&'static str, String, String)> {
    let mut all = Vec::new();
    let tokens = [
        ("aws-access-key", "AKIA", CAPITALS, 16),
        ("aws-access-key", "ASIA", CAPITALS, 16),
        ("github-token", "ghp_", LETTERS, 36),
        ("github-token", "ghs_", LETTERS, 36),
        ("github-token", "github_pat_", LETTERS, 82),
        ("gitlab-token", "glpat-", URL64, 20),
        ("slack-token", "xoxb-1234567890-", LETTERS, 24),
        ("slack-token", "hooks.slack.com/services/T00000000/B00000000/", LETTERS, 24),
        ("stripe-key", "sk_live_", LETTERS, 24),
        ("stripe-key", "rk_test_", LETTERS, 24),
        ("openai-key", "sk-proj-", URL64, 64),
        ("openai-key", "sk-", LETTERS, 48),
        ("anthropic-key", "sk-ant-api03-", URL64, 93),
        ("google-key", "AIza", URL64, 35),
        ("npm-token", "npm_", LETTERS, 36),
        ("pypi-token", "pypi-AgEIcHlwaS5vcmc", URL64, 100),
        ("api-token", "hf_", LETTERS, 34),
    ];
    for (kind, start, letters, length) in tokens {
        all.push((kind, format!("{start}{}", lot.draw(letters, length)), "the token is {} and it works".to_owned()));
    }
    let contexts = [
        ("aws-secret-key", BASE64, 40, "aws_secret_access_key = {}\nregion = eu-west-1"),
        ("bearer-token", URL64, 40, "curl -H 'Authorization: Bearer {}' https://api.example.com"),
        ("basic-credentials", LETTERS, 24, "> Authorization: Basic {}"),
        ("url-password", LETTERS, 14, "postgres://app:{}@db.internal:5432/app"),
        ("assigned-secret", LETTERS, 32, "{\"client_id\":\"app\",\"client_secret\":\"{}\"}"),
        ("assigned-secret", HEX, 32, "export DATADOG_API_KEY={}"),
        ("assigned-secret", LETTERS, 24, "api_key: '{}'"),
        ("assigned-secret", LETTERS, 40, "  auth-token = \"{}\"  # rotate"),
        ("assigned-secret", BASE64, 86, "AccountName=a;AccountKey={};EndpointSuffix=core"),
        ("password", LETTERS, 12, "DB_PASSWORD={}\nDB_HOST=x"),
        ("password", LETTERS, 12, "{\\\"password\\\": \\\"{}\\\"}"),
        ("high-entropy", LETTERS, 43, "it printed {} twice"),
        ("high-entropy", BASE64, 44, "value [{}]"),
    ];
    for (kind, letters, length, around) in contexts {
        all.push((kind, lot.draw(letters, length), around.to_owned()));
    }
    let jwt = format!("eyJ{}.eyJ{}.{}", lot.draw(URL64, 33), lot.draw(URL64, 60), lot.draw(URL64, 43));
    all.push(("jwt", jwt, "session={}; path=/".to_owned()));
    for title in ["RSA PRIVATE KEY", "PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"] {
        let lines: Vec<String> = (0..5).map(|_| lot.draw(BASE64, 64)).collect();
        let block = format!("-----BEGIN {title}-----\n{}\n-----END {title}-----", lines.join("\n"));
        all.push(("private-key", block, "found:\n{}\n".to_owned()));
    }
    all
}

#[test]
fn planted_secrets_are_found_and_redacted() {
    let Some(screen) = screen(Screening::Redact, HiddenText::Pass, &[]) else { unreachable!("the screen is made") };
    let mut lot = Lot(7);
    let (mut all, mut found, mut missed) = (0, 0, Vec::new());
    for _ in 0..40 {
        for (kind, secret, around) in planted(&mut lot) {
            let text = around.replace("{}", &secret);
            let seen = look(&screen, &text);
            all += 1;
            // What is shown has nothing of it left, whatever it was taken for.
            let part: String = secret.chars().skip(secret.len() / 2).take(10).collect();
            let is_gone = seen.changed.as_ref().is_some_and(|shown| !shown.contains(&part));
            let is_named = seen.findings.counts().contains_key(kind);
            assert!(!format!("{:?}{}", seen.findings, seen.findings.mark()).contains(&part), "{kind}");
            if is_gone && is_named {
                found += 1;
            } else {
                missed.push(format!("{kind}: {text} -> {:?}", seen.findings));
            }
        }
    }
    // The task asks for 0.9.
    assert!(found * 100 >= all * 97, "{found} of {all}:\n{}", missed.join("\n"));
}

#[test]
fn ordinary_texts_are_left_alone() {
    let Some(screen) = screen(Screening::Redact, HiddenText::Neutralise, &[]) else {
        unreachable!("the screen is made")
    };
    let corpus = include_str!("screen/ordinary.txt");
    let mut texts: Vec<String> = corpus.split("\n====\n").map(str::to_owned).collect();
    let mut lot = Lot(11);
    for _ in 0..20 {
        texts.push(format!("commit {}\nAuthor: Ada", lot.draw(HEX, 40)));
        texts.push(format!("\"integrity\": \"sha512-{}==\"", lot.draw(BASE64, 86)));
        texts.push(format!("golang.org/x/net v0.1.0 h1:{}=", lot.draw(BASE64, 43)));
        texts.push(format!("image: app@sha256:{}", lot.draw(HEX, 64)));
        texts.push(format!("![x](data:image/png;base64,iVBORw0KGgo{})", lot.draw(BASE64, 90)));
        let lines: Vec<String> = (0..6).map(|_| lot.draw(BASE64, 64)).collect();
        let (lines, last) = (lines.join("\n"), lot.draw(BASE64, 40));
        texts.push(format!("-----BEGIN CERTIFICATE-----\n{lines}\n{last}\n-----END CERTIFICATE-----"));
        texts.push(format!("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{} ada@host", lot.draw(BASE64, 43)));
        texts.push(format!(
            "id {}-{}-4{}-a{}-{}",
            lot.draw(HEX, 8),
            lot.draw(HEX, 4),
            lot.draw(HEX, 3),
            lot.draw(HEX, 3),
            lot.draw(HEX, 12)
        ));
    }
    let flagged: Vec<String> = texts
        .iter()
        .map(|text| (text, look(&screen, text)))
        .filter(|(_, seen)| !seen.is_clean())
        .map(|(text, seen)| format!("{text}\n-> {}", seen.findings))
        .collect();
    // The task asks for 0.05 at most.
    assert!(
        texts.len() > 200 && flagged.len() * 100 <= texts.len() * 2,
        "{} of {}:\n{}",
        flagged.len(),
        texts.len(),
        flagged.join("\n")
    );
}

#[test]
fn the_files_of_this_repository_are_left_alone() {
    let Some(screen) = screen(Screening::Redact, HiddenText::Pass, &[]) else { unreachable!("the screen is made") };
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let (mut lines, mut flagged) = (0, Vec::new());
    for file in [
        "Cargo.lock",
        "README.md",
        "ARCHITECTURE.md",
        "docs/config.md",
        "crates/mcp/src/compose.rs",
        "crates/core/src/secret.rs",
        "crates/shell/src/lib.rs",
    ] {
        let text = std::fs::read_to_string(format!("{root}/{file}")).unwrap_or_default();
        assert!(!text.is_empty(), "{file}");
        lines += text.lines().count();
        let seen = look(&screen, &text);
        flagged.extend((!seen.is_clean()).then(|| format!("{file}: {}", seen.findings)));
    }
    assert!(lines > 3000 && flagged.is_empty(), "{flagged:?}");
}

#[test]
fn a_clean_value_is_not_written_anew_and_of_others_only_texts_with_findings_are()
-> Result<(), Box<dyn std::error::Error>> {
    let screen = screen(Screening::Redact, HiddenText::Neutralise, &[("ticket", "T-[0-9]{4}")]).ok_or("no screen")?;
    let clean = r#"{ "a" : 1E5 , "b":"x\u0041\/é" ,"c":[ "T-1" , {} ]}"#;
    let seen = screen.look(&Part::composed(clean.to_owned())?);
    assert!(seen.is_clean() && seen.changed.is_none() && !seen.is_marked && !seen.is_withheld);
    let dirty =
        r#"{ "a" : 1E5 , "b":"x\u0041\/é" ,"c":[ "see \u0054-1234\u001b[1m" , {} ], "d/e":{"f":"\u202eT-9999"}}"#;
    let seen = screen.look(&Part::composed(dirty.to_owned())?);
    let shown = r#"{ "a" : 1E5 , "b":"x\u0041\/é" ,"c":[ "see [redacted: ticket]\\u{1b}[1m" , {} ], "d/e":{"f":"\\u{202e}[redacted: ticket]"}}"#;
    assert_eq!(seen.changed.as_deref(), Some(shown));
    assert_eq!(seen.findings.to_string(), "terminal-escape (1), text-direction (1), ticket (2)");
    let places: Vec<_> = seen.findings.told().iter().map(|finding| (finding.place.as_str(), finding.length)).collect();
    assert_eq!(places, [("/c/0", 6), ("/c/0", 1), ("/d~1e/f", 6), ("/d~1e/f", 3)]);
    // A part of a larger text is spliced by its own places.
    let message = Part::composed(format!(r#"{{"jsonrpc":"2.0","result":{dirty}}}"#))?;
    let result = message.member("result").ok_or("no result")?;
    assert_eq!(screen.look(&result).changed.as_deref(), Some(shown));
    Ok(())
}

#[test]
fn a_name_that_is_a_secret_cannot_be_replaced_so_nothing_is_shown() -> Result<(), Box<dyn std::error::Error>> {
    let said = Part::composed(r#"{"a":{"T-1234":{"b":"T-5678"}}}"#.to_owned())?;
    let patterns = [("ticket", "T-[0-9]{4}")];
    for (mode, withheld, marked) in
        [(Screening::Mark, false, true), (Screening::Redact, true, false), (Screening::Withhold, true, false)]
    {
        let seen = screen(mode, HiddenText::Pass, &patterns).ok_or("no screen")?.look(&said);
        assert_eq!((seen.is_withheld, seen.is_marked, seen.changed), (withheld, marked, None));
        assert!(!seen.findings.mark().contains("1234"), "{}", seen.findings.mark());
    }
    Ok(())
}

#[test]
fn a_member_is_found_by_its_name_as_in_a_text() -> Result<(), Box<dyn std::error::Error>> {
    let screen = screen(Screening::Redact, HiddenText::Pass, &[("account", "^4[0-9]{15}$")]).ok_or("no screen")?;
    let mut lot = Lot(11);
    let (key, chosen, basic) = (format!("a1{}", lot.draw(LETTERS, 16)), "Tr0ub4dor&3x", lot.draw(BASE64, 24));
    let said = format!(
        r#"{{"structuredContent":{{"api_key":"{key}","old":{{"Access-Token":["{key}","{key}"]}},"db_password":"{chosen}","headers":{{"Authorization":"Basic {basic}"}},"card":4111111111111111}}}}"#
    );
    let seen = screen.look(&Part::composed(said)?);
    let shown = r#"{"structuredContent":{"api_key":"[redacted: assigned-secret]","old":{"Access-Token":["[redacted: assigned-secret]","[redacted: assigned-secret]"]},"db_password":"[redacted: password]","headers":{"Authorization":"Basic [redacted: basic-credentials]"},"card":"[redacted: account]"}}"#;
    assert_eq!(seen.changed.as_deref(), Some(shown));
    // Names of other things, values that are none, other numbers.
    let clean = format!(
        r#"{{"page_token":"{key}","token_count":"{key}","api_key":"your-key-goes-here-1","password":"changeme","n":411,"properties":{{"password":{{"type":"string"}}}}}}"#
    );
    let seen = screen.look(&Part::composed(clean)?);
    assert!(seen.is_clean(), "{:?}", seen.findings);
    Ok(())
}

#[test]
fn what_the_protocol_carries_and_encoded_files_are_not_touched() -> Result<(), Box<dyn std::error::Error>> {
    let screen = screen(Screening::Redact, HiddenText::Neutralise, &[]).ok_or("no screen")?;
    let mut lot = Lot(3);
    let (drawn, file) = (lot.draw(LETTERS, 43), lot.draw(BASE64, 9000));
    let untouched = format!(
        r#"{{"requestState":"{drawn}","task":{{"taskId":"{drawn}"}},"nextCursor":"{drawn}","inputRequests":{{"q":{{"params":{{"mode":"url","url":"https://a.example/?s={drawn}"}}}}}},"content":[{{"type":"image","data":"{drawn}","mimeType":"image/png"}},{{"data":"{file}","mimeType":"image/png"}}],"_meta":{{"io.modelcontextprotocol/subscriptionId":"{drawn}"}}}}"#
    );
    assert!(screen.look(&Part::composed(untouched)?).is_clean());
    // The same elsewhere, and what calls itself a file and is none.
    let token = format!("ghp_{}", lot.draw(LETTERS, 36));
    for text in [
        format!(r#"{{"content":[{{"requestState":"{drawn}"}}]}}"#),
        format!(r#"{{"content":[{{"data":"{file} {token}","mimeType":"image/png"}}]}}"#),
        format!(r#"{{"contents":[{{"uri":"x://y","blob":"{token}"}}]}}"#),
    ] {
        let seen = screen.look(&Part::composed(text.clone())?);
        assert!(seen.changed.is_some_and(|shown| !shown.contains(&token) && !shown.contains(&drawn)), "{text}");
    }
    Ok(())
}

#[test]
fn hidden_characters_are_found() -> Result<(), Box<dyn std::error::Error>> {
    let screen = screen(Screening::Off, HiddenText::Neutralise, &[]).ok_or("no screen")?;
    for (text, kind) in [
        ("\u{1b}[31mred\u{1b}[0m", "terminal-escape"),
        ("\u{1b}]8;;http://evil.example\u{7}click\u{1b}]8;;\u{7}", "terminal-escape"),
        ("\u{9b}31m", "terminal-escape"),
        ("a\u{8}b", "control-character"),
        ("a\u{7f}", "control-character"),
        ("if admin\u{202e} } \u{2066}", "text-direction"),
        ("user\u{200e}name", "text-direction"),
        ("pay\u{200b}pal", "invisible-character"),
        ("pay\u{200d}pal", "invisible-character"),
        ("می\u{200c}\u{200c}خواهم", "invisible-character"),
        ("a\u{2062}b\u{3164}c\u{ad}d", "invisible-character"),
        ("mid\u{feff}dle", "invisible-character"),
        ("hi\u{E0069}\u{E0067}\u{E006E}", "tag-character"),
        ("🏴\u{E0069}\u{E0067}\u{E006E}\u{E007F}", "tag-character"),
        ("😀\u{fe0f}\u{fe01}\u{fe02}", "variation-selector"),
        ("😀\u{E0100}\u{E0151}\u{E0162}", "variation-selector"),
        ("a\u{fe0f}b", "variation-selector"),
    ] {
        assert!(kinds(&screen, text).iter().any(|found| found == kind), "{text:?}: {:?}", kinds(&screen, text));
        let shown = look(&screen, text).changed.unwrap_or_default();
        let shown: String = serde_json::from_str(&shown)?;
        assert!(shown.contains("\\u{") && kinds(&screen, &shown).is_empty(), "{text:?}: {shown}");
    }
    Ok(())
}

#[test]
fn writing_is_not_hiding() -> Result<(), Box<dyn std::error::Error>> {
    let screen = screen(Screening::Off, HiddenText::Neutralise, &[]).ok_or("no screen")?;
    for text in [
        "plain\ttext\r\nwith lines",
        "naïve café — “quotes” … 日本語 中文 한국어 Ελληνικά Кириллица",
        "می\u{200c}خواهم کتاب\u{200c}ها را",
        "क्\u{200d}ष र्\u{200d}य ന്\u{200d} ශ්\u{200d}රී",
        "👨\u{200d}👩\u{200d}👧\u{200d}👦 👩🏽\u{200d}💻 🏳\u{fe0f}\u{200d}🌈 ❤\u{fe0f}\u{200d}🔥",
        "⚠\u{fe0f} ✔\u{fe0e} 1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3} ©\u{fe0f}",
        "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F} Scotland",
        "葛\u{E0100}城 邉\u{E0101}",
        "\u{feff}id,name\n1,a",
        "מחיר 5\u{200f} ₪ עבור ABC\u{200e} שלום\u{200f}",
        "e\u{301} combining",
    ] {
        assert!(look(&screen, text).is_clean(), "{text:?}: {:?}", kinds(&screen, text));
    }
    Ok(())
}

#[test]
fn texts_made_to_cost_time_are_looked_through() -> Result<(), Box<dyn std::error::Error>> {
    let screen = screen(Screening::Redact, HiddenText::Neutralise, &[("ticket", "T-[0-9]{4}")]).ok_or("no screen")?;
    // That the test ends says that none of them costs its square.
    for unit in [
        "key",
        "key=",
        "password=",
        "token:\"",
        "-----BEGIN PRIVATE KEY",
        "-----BEGIN PRIVATE KEY-----",
        "eyJ",
        "eyJaaaaaaaaaaaa.",
        "https://a:b",
        "Bearer ",
        "AKIA",
        "a-",
        "A1b2",
        "\u{200b}",
        "\u{1F3F4}",
        "T-1234",
    ] {
        let text = unit.repeat(128 * 1024 / unit.len());
        let seen = look(&screen, &text);
        assert!(seen.is_clean() || seen.changed.is_some(), "{unit}");
    }
    Ok(())
}
