//! States open for whom and what they were sealed for, once, and not for ever.

use std::sync::Arc;

use toolwarden_core::json::{Document, Limits, Part};
use toolwarden_core::{Caller, Keyring};
use toolwarden_vault::FileKeyring;

use super::{Asks, Bound, Carried, MOST_ROUNDS, MOST_USED, MOST_USED_BY_ONE, States, Unusable};

fn params(text: &str) -> Part {
    let document = Document::parse(text, Limits::DEFAULT);
    assert!(document.is_ok(), "{text}");
    document.map(|document| Part::whole(Arc::new(document))).unwrap_or_else(|_| unreachable!("asserted"))
}

fn server(own: &str) -> Carried {
    Carried::Server(own.to_owned())
}

/// With the questions `q1` and `q"2`.
fn asks(carried: Carried) -> Asks {
    Asks { carried, questions: vec!["q1".to_owned(), "q\"2".to_owned()] }
}

struct Desk {
    keyring: FileKeyring,
    states: States,
    ada: Caller,
    _directory: tempfile::TempDir,
}

fn desk() -> Result<Desk, Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let keyring = FileKeyring::open(directory.path())?;
    let states = States::new(&keyring);
    Ok(Desk { keyring, states, ada: Caller::local_person("ada"), _directory: directory })
}

impl Desk {
    fn sealed(&self, call: &Part, carried: Carried) -> String {
        let bound = Bound {
            caller: &self.ada,
            server: "notes",
            definition: 1,
            method: "tools/call",
            params: Some(call),
            approval: None,
        };
        self.states.seal(&self.keyring, bound, 1, asks(carried)).unwrap_or_default()
    }

    fn why(&self, caller: &Caller, server: &str, method: &str, call: &str) -> &'static str {
        let call = params(call);
        let bound = Bound { caller, server, definition: 1, method, params: Some(&call), approval: None };
        match self.states.open(&self.keyring, bound) {
            Ok(Some(opened)) => match self.states.consume(&opened, caller) {
                Ok(()) => "opened",
                Err(_) => "used",
            },
            Ok(None) => "nothing",
            Err(Unusable(why)) => why,
        }
    }
}

#[test]
fn a_state_opens_once_for_its_call() -> Result<(), Box<dyn std::error::Error>> {
    let desk = desk()?;
    let call = params(r#"{"name":"t","arguments":{"n":1},"_meta":{"io.modelcontextprotocol/logLevel":"info"}}"#);
    let state = desk.sealed(&call, server("inner \u{e4} \""));
    let again = format!(
        r#"{{"arguments":{{"n":1}},"name":"t","requestState":"{state}","inputResponses":{{}},"_meta":{{"progressToken":2}}}}"#
    );
    let foreign = "it is not one this gateway gave to you";
    let other = "it belongs to another call";
    assert_eq!(desk.why(&Caller::person("eve"), "notes", "tools/call", &again), foreign);
    assert_eq!(desk.why(&Caller::agent("worker", Some("ada".to_owned())), "notes", "tools/call", &again), foreign);
    assert_eq!(desk.why(&desk.ada, "other", "tools/call", &again), other);
    assert_eq!(desk.why(&desk.ada, "notes", "prompts/get", &again), other);
    for changed in ["\"n\":1.0", "\"n\":2", "\"n\":\"1\"", "\"n\":1,\"m\":null"] {
        assert_eq!(desk.why(&desk.ada, "notes", "tools/call", &again.replace("\"n\":1", changed)), other, "{changed}");
    }
    let flipped: String = state.chars().rev().collect();
    assert_eq!(desk.why(&desk.ada, "notes", "tools/call", &again.replace(&state, &flipped)), foreign);
    let short = state.get(..state.len() - 4).unwrap_or_default();
    assert_eq!(desk.why(&desk.ada, "notes", "tools/call", &again.replace(&state, short)), foreign);
    assert_eq!(desk.why(&desk.ada, "notes", "tools/call", r#"{"name":"t","requestState":"inner"}"#), foreign);
    assert_eq!(desk.why(&desk.ada, "notes", "tools/call", r#"{"name":"t","requestState":7}"#), foreign);
    assert_eq!(desk.why(&desk.ada, "notes", "tools/call", r#"{"name":"t"}"#), "nothing");
    assert_eq!(desk.why(&desk.ada, "notes", "tools/call", &again), "opened");
    assert_eq!(desk.why(&desk.ada, "notes", "tools/call", &again), "it was used before");
    Ok(())
}

#[test]
fn the_inner_state_comes_back_byte_for_byte() -> Result<(), Box<dyn std::error::Error>> {
    let desk = desk()?;
    for inner in ["", "plain", "\u{0}\n\"\\ \u{1f600}"] {
        let call = params(r#"{"name":"t"}"#);
        let state = desk.sealed(&call, server(inner));
        let back = params(&format!(r#"{{"name":"t","requestState":"{state}"}}"#));
        let bound = Bound {
            caller: &desk.ada,
            server: "notes",
            definition: 1,
            method: "tools/call",
            params: Some(&back),
            approval: None,
        };
        let opened = desk.states.open(&desk.keyring, bound).ok().flatten().map(|opened| opened.carried);
        assert_eq!(opened, Some(server(inner)));
    }
    Ok(())
}

#[test]
fn two_at_once_open_a_state_once() -> Result<(), Box<dyn std::error::Error>> {
    let desk = desk()?;
    let state = desk.sealed(&params(r#"{"name":"t"}"#), Carried::Again);
    let back = params(&format!(r#"{{"name":"t","requestState":"{state}"}}"#));
    let bound = Bound {
        caller: &desk.ada,
        server: "notes",
        definition: 1,
        method: "tools/call",
        params: Some(&back),
        approval: None,
    };
    let first = desk.states.open(&desk.keyring, bound).ok().flatten();
    let second = desk.states.open(&desk.keyring, bound).ok().flatten();
    let (Some(first), Some(second)) = (first, second) else { return Err("not opened".into()) };
    assert!(desk.states.consume(&first, &desk.ada).is_ok());
    assert!(desk.states.consume(&second, &desk.ada).is_err());
    Ok(())
}

#[test]
fn states_end_with_the_gateway_and_after_many_rounds() -> Result<(), Box<dyn std::error::Error>> {
    let desk = desk()?;
    let call = params(r#"{"name":"t"}"#);
    let state = desk.sealed(&call, Carried::Again);
    let next = States::new(&desk.keyring as &dyn Keyring);
    let back = params(&format!(r#"{{"name":"t","requestState":"{state}"}}"#));
    let bound = Bound {
        caller: &desk.ada,
        server: "notes",
        definition: 1,
        method: "tools/call",
        params: Some(&back),
        approval: None,
    };
    assert!(matches!(next.open(&desk.keyring, bound), Err(Unusable(why)) if why.contains("restarted")));
    let otherwise = desk.states.open(&desk.keyring, Bound { definition: 2, ..bound });
    assert!(matches!(otherwise, Err(Unusable(why)) if why.contains("reached otherwise")), "{otherwise:?}");
    assert!(desk.states.seal(&desk.keyring, bound, MOST_ROUNDS, asks(Carried::Again)).is_ok());
    assert!(desk.states.seal(&desk.keyring, bound, MOST_ROUNDS + 1, asks(Carried::Again)).is_err());
    Ok(())
}

#[tokio::test]
async fn states_expire() -> Result<(), Box<dyn std::error::Error>> {
    let mut desk = desk()?;
    desk.states.life = std::time::Duration::from_millis(5);
    let state = desk.sealed(&params(r#"{"name":"t"}"#), Carried::Again);
    let back = format!(r#"{{"name":"t","requestState":"{state}"}}"#);
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    assert_eq!(desk.why(&desk.ada, "notes", "tools/call", &back), "it has expired; make the call again");
    Ok(())
}

fn opened(number: usize) -> super::Opened {
    super::Opened { number: number as u64, round: 1, carried: Carried::Again, approval: None }
}

/// What a refused use says.
fn said(used: &Result<(), Unusable>) -> &'static str {
    match used {
        Err(Unusable(why)) => why,
        _ => "used",
    }
}

#[test]
fn one_principal_does_not_use_up_the_states_of_others() -> Result<(), Box<dyn std::error::Error>> {
    let desk = desk()?;
    for number in 0..MOST_USED_BY_ONE {
        assert!(desk.states.consume(&opened(number), &desk.ada).is_ok());
    }
    let why = said(&desk.states.consume(&opened(MOST_USED), &desk.ada));
    let minutes = super::LIFE.as_secs() / 60;
    assert!(why.starts_with(&format!("{MOST_USED_BY_ONE} of yours")) && why.contains(&format!("{minutes} minutes")));
    assert!(desk.states.consume(&opened(MOST_USED + 1), &Caller::person("bob")).is_ok());
    assert_eq!(said(&desk.states.consume(&opened(0), &Caller::person("bob"))), "it was used before");
    Ok(())
}

/// Whoever is refused costs the others nothing: nothing is looked through for it.
#[test]
fn refusing_costs_the_same_however_many_were_used() -> Result<(), Box<dyn std::error::Error>> {
    let desk = desk()?;
    for number in 0..MOST_USED {
        let who = Caller::person(format!("user-{}", number / MOST_USED_BY_ONE));
        assert_eq!(said(&desk.states.consume(&opened(number), &who)), "used");
    }
    assert!(said(&desk.states.consume(&opened(MOST_USED), &desk.ada)).starts_with(&format!("{MOST_USED} of all")));
    let since = tokio::time::Instant::now();
    for _ in 0..20_000 {
        assert!(desk.states.consume(&opened(MOST_USED), &desk.ada).is_err());
    }
    assert!(since.elapsed() < std::time::Duration::from_secs(4), "{:?}", since.elapsed());
    Ok(())
}

#[tokio::test]
async fn what_was_used_is_forgotten_when_it_has_expired() -> Result<(), Box<dyn std::error::Error>> {
    let mut desk = desk()?;
    desk.states.life = std::time::Duration::from_millis(5);
    assert!(desk.states.consume(&opened(1), &desk.ada).is_ok());
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    desk.states.life = super::LIFE;
    assert!(desk.states.consume(&opened(2), &desk.ada).is_ok());
    let used = desk.states.lock();
    assert_eq!((used.numbers.len(), used.order.len(), used.counts.values().sum::<usize>()), (1, 1, 1));
    Ok(())
}

/// REVIEW-4: an approval is of the call that was shown, and answers are no part of that.
#[test]
fn review_4_answers_count_with_the_state_of_their_questions_alone() -> Result<(), Box<dyn std::error::Error>> {
    let desk = desk()?;
    let call = params(r#"{"name":"t"}"#);
    let open = |members: &str| desk.why(&desk.ada, "notes", "tools/call", &format!(r#"{{"name":"t"{members}}}"#));
    let missing = "it is missing";
    for unsolicited in [
        r#","inputResponses":{}"#,
        r#","inputResponses":{"q1":{"action":"accept"}}"#,
        r#","inputResponses":[]"#,
        r#","inputResponses":"text""#,
        r#","inputResponses":{"q1":1},"requestState":null"#,
        r#","input\u0052esponses":{"q1":1}"#,
    ] {
        let why = open(unsolicited);
        assert!(why.starts_with(missing), "{unsolicited}: {why}");
    }
    for (answers, expected) in [
        ("{}", "opened"),
        ("null", "opened"),
        (r#"{"q1":1}"#, "opened"),
        (r#"{"\u00711":1,"q\"2":2}"#, "opened"),
        (r#"{"q1":1,"other":2}"#, "refused"),
        (r#"{"Q1":1}"#, "refused"),
        (r#"{"":1}"#, "refused"),
        ("[]", "refused"),
        (r#""q1""#, "refused"),
        ("7", "refused"),
    ] {
        let state = desk.sealed(&call, server("own"));
        let why = open(&format!(r#","inputResponses":{answers},"requestState":"{state}""#));
        let is_as_expected = match expected {
            "opened" => why == "opened",
            _ => why.contains("questions of this state alone"),
        };
        assert!(is_as_expected, "{answers}: {why}");
    }
    let state = desk.sealed(&call, server("own"));
    assert_eq!(open(&format!(r#","requestState":"{state}""#)), "opened", "a state without answers asks again");
    Ok(())
}
