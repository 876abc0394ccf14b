//! Held calls answered in real clients: the person behind each is asked, and what they say is what happens.

use serde_json::{Value, json};

use crate::house::House;
use crate::pairs_table::{PYTHON_LEGACY, PYTHON_MODERN, TS1, TS2_LEGACY, TS2_MODERN};
use crate::peers::{Client, Seen, Target, ask, fixture_over_http, server_table};

const CLIENTS: [Client; 5] = [TS1, TS2_LEGACY, TS2_MODERN, PYTHON_LEGACY, PYTHON_MODERN];
const TOOL: &str = "test_simple_text";
const ALLOW: &str = r#"{"answer": "allow once"}"#;
const DENY: &str = r#"{"answer": "deny"}"#;

/// The token of a person, issued by command.
fn token(house: &House, more: &[&str]) -> String {
    let mut command = house.command(env!("CARGO_BIN_EXE_toolwarden"));
    let issued = command.args(["tokens", "issue", "--person", "--json"]).args(more).output();
    let issued = issued.map(|output| output.stdout).unwrap_or_default();
    let issued: Value = serde_json::from_slice(&issued).unwrap_or_default();
    issued.get("token").and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Makes the call, with a person behind the client who answers so.
fn call(house: &House, client: Client, door: &Target, token: &str, answer: &[&str]) -> Seen {
    let header = format!("Authorization: Bearer {token}");
    let options = [&["--tool", TOOL, "--args", "{}", "--header", &header], answer].concat();
    ask(house, client, &options, door)
}

fn calls(house: &House) -> usize {
    house.recorded().iter().filter(|line| line.ends_with(TOOL)).count()
}

fn was_asked(seen: &Seen) -> bool {
    let asked = seen.at("/elicited").as_array().cloned().unwrap_or_default();
    assert!(asked.len() <= 1, "once: {}", seen.0);
    asked.iter().any(|message| message.as_str().is_some_and(|message| message.starts_with("Toolwarden asks")))
}

fn is_refused(seen: &Seen) -> bool {
    seen.at("/result/isError") == &json!(true)
}

#[test]
fn review_6_persons_answer_in_their_clients_and_the_call_runs_once_or_not_at_all() {
    for client in CLIENTS {
        let house = House::new("");
        let fixture = fixture_over_http(&house);
        house.configure(&server_table("http", &Target::Url(fixture.url.clone())));
        let gateway = house.serve();
        let door = Target::Url(gateway.url("/mcp/http"));
        let (trusted, other) = (token(&house, &["--may-answer"]), token(&house, &[]));
        let seen = call(&house, client, &door, &trusted, &["--elicit", "accept", "--content", ALLOW]);
        assert!(was_asked(&seen) && !is_refused(&seen) && seen.at("/error").is_null(), "{client:?}: {}", seen.0);
        assert_eq!(calls(&house), 1, "{client:?}");
        // A token that was not trusted with answers: the client is not asked, whatever it offers.
        let seen = call(&house, client, &door, &other, &["--elicit", "accept", "--content", ALLOW]);
        assert!(!was_asked(&seen) && is_refused(&seen), "{client:?}: {}", seen.0);
        // A client that cannot be asked.
        let seen = call(&house, client, &door, &trusted, &[]);
        assert!(!was_asked(&seen) && is_refused(&seen), "{client:?}: {}", seen.0);
        // Dismissed: the call stays held. Then refused; and what was refused is not asked again.
        let seen = call(&house, client, &door, &trusted, &["--elicit", "cancel"]);
        assert!(was_asked(&seen) && is_refused(&seen), "{client:?}: {}", seen.0);
        let seen = call(&house, client, &door, &trusted, &["--elicit", "accept", "--content", DENY]);
        assert!(was_asked(&seen) && is_refused(&seen), "{client:?}: {}", seen.0);
        let seen = call(&house, client, &door, &trusted, &["--elicit", "accept", "--content", ALLOW]);
        assert!(!was_asked(&seen) && is_refused(&seen), "{client:?}: {}", seen.0);
        assert_eq!(calls(&house), 1, "{client:?}: {:?}", house.recorded());
        gateway.stop();
        house.audited();
    }
}

#[test]
fn review_8_real_clients_wait_while_a_person_answers_elsewhere() {
    for client in [TS2_LEGACY, TS2_MODERN, PYTHON_LEGACY, PYTHON_MODERN] {
        let house = House::new("");
        let fixture = fixture_over_http(&house);
        let table = server_table("http", &Target::Url(fixture.url.clone()));
        house.configure(&format!("[gateway]\nhold = \"wait\"\n{table}"));
        let gateway = house.serve();
        let door = Target::Url(gateway.url("/mcp/http"));
        let seen = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| ask(&house, client, &["--tool", TOOL, "--args", "{}"], &door));
            approve(&house);
            waiting.join().ok()
        });
        let Some(seen) = seen else { unreachable!("the client ends") };
        assert!(!is_refused(&seen) && seen.at("/error").is_null(), "{client:?}: {}", seen.0);
        assert_eq!(calls(&house), 1, "{client:?}");
        gateway.stop();
        house.audited();
    }
}

/// Approves the call that waits, as soon as one does.
fn approve(house: &House) {
    let toolwarden = |words: &[&str]| {
        let ran = house.command(env!("CARGO_BIN_EXE_toolwarden")).args(words).output();
        ran.map(|output| output.stdout).unwrap_or_default()
    };
    for _ in 0..500 {
        let held: Value = serde_json::from_slice(&toolwarden(&["approvals", "list", "--json"])).unwrap_or_default();
        if let Some(id) = held.pointer("/0/id").and_then(Value::as_str) {
            toolwarden(&["approvals", "approve", id]);
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(50));
    }
}
