//! What servers ask of the person and the model behind a client, and the progress they report.

use serde_json::{Value, json};

use crate::house::{House, MAY_ASK, PERMISSIVE};
use crate::pairs_table::{Door, PYTHON_LEGACY, PYTHON_MODERN, TS1, TS2_LEGACY, TS2_MODERN};
use crate::peers::{Client, Seen, Target, ask, fixture_command, fixture_over_http, server_table};

/// The words after a client's name that make it call a tool and answer questions.
struct Question {
    tool: &'static str,
    arguments: &'static str,
    answers: &'static [&'static str],
    /// Where the client says that it was asked.
    asked: &'static str,
}

const FORM: Question = Question {
    tool: "test_elicitation",
    arguments: r#"{"message": "Who are you?"}"#,
    answers: &["--elicit", "accept"],
    asked: "/elicited",
};
const REFUSED_FORM: Question = Question { answers: &["--elicit", "decline"], ..FORM };
const MODERN_FORM: Question = Question {
    tool: "test_input_required_result_elicitation",
    arguments: "{}",
    answers: &["--elicit", "accept"],
    asked: "/elicited",
};
const ROUNDS: Question = Question { tool: "test_input_required_result_multi_round", ..MODERN_FORM };
const SAMPLE: Question = Question {
    tool: "test_sampling",
    arguments: r#"{"prompt": "Say something."}"#,
    answers: &["--sample", "Something."],
    asked: "/sampled",
};
const MODERN_SAMPLE: Question = Question { tool: "test_input_required_result_sampling", arguments: "{}", ..SAMPLE };
const PROGRESS: Question = Question {
    tool: "test_delay",
    arguments: r#"{"milliseconds": 450}"#,
    answers: &["--progress"],
    asked: "/progress",
};

impl Question {
    fn put(&self, house: &House, client: Client, prefix: &str, target: &Target) -> Seen {
        let tool = format!("{prefix}{}", self.tool);
        let mut options = vec!["--tool", &tool, "--args", self.arguments];
        options.extend(self.answers);
        ask(house, client, &options, target)
    }
}

/// The fixture over HTTP and as a child, and a gateway in front of both.
fn with_both(rights: &str, test: impl Fn(&House, &Target, &[Target])) {
    let house = House::new("");
    let fixture = fixture_over_http(&house);
    let (http, child) = (Target::Url(fixture.url.clone()), Target::Command(fixture_command(&house)));
    let tables = [("http", &http), ("child", &child)];
    let tables = tables.map(|(name, target)| format!("{}{rights}", server_table(name, target)));
    house.configure(&format!("{PERMISSIVE}{}", tables.concat()));
    let gateway = house.serve();
    let doors = ["/mcp/http", "/mcp/child"].map(|door| Target::Url(gateway.url(door)));
    test(&house, &http, &doors);
    gateway.stop();
    house.audited();
}

/// The client is asked what it is asked without the gateway, and its answer arrives.
fn asks_alike(house: &House, direct: &Target, doors: &[Target], client: Client, question: &Question) {
    let record = house.read("record");
    let wanted = question.put(house, client, "", direct);
    house.write("record", &record);
    let asked = wanted.at(question.asked).as_array().is_some_and(|asked| !asked.is_empty());
    assert!(asked && wanted.at("/error").is_null(), "{client:?} {}: {}", question.tool, wanted.0);
    for (door, server) in doors.iter().zip(["http", "child"]) {
        let got = question.put(house, client, "", door);
        let wanted = labelled(&wanted, server);
        assert_eq!(got.0, wanted, "{client:?} {} at {door:?}", question.tool);
    }
}

/// What a client reports of forms that say which server asks (GATE-18).
fn labelled(seen: &Seen, server: &str) -> Value {
    let mut report = seen.0.clone();
    for message in report.get_mut("elicited").and_then(Value::as_array_mut).into_iter().flatten() {
        *message = format!("Server \"{server}\" asks: {}", message.as_str().unwrap_or_default()).into();
    }
    report
}

#[test]
fn forms_reach_the_person_and_answers_the_server() {
    with_both("", |house, direct, doors| {
        for client in [TS1, TS2_LEGACY, PYTHON_LEGACY] {
            asks_alike(house, direct, doors, client, &FORM);
        }
        asks_alike(house, direct, doors, TS2_LEGACY, &REFUSED_FORM);
        for client in [TS2_MODERN, PYTHON_MODERN] {
            asks_alike(house, direct, doors, client, &MODERN_FORM);
        }
        asks_alike(house, direct, doors, TS2_MODERN, &ROUNDS);
    });
}

#[test]
fn progress_arrives() {
    with_both("", |house, direct, doors| {
        for client in [TS1, TS2_LEGACY, TS2_MODERN, PYTHON_LEGACY, PYTHON_MODERN] {
            asks_alike(house, direct, doors, client, &PROGRESS);
        }
    });
}

#[test]
fn models_are_asked_only_where_that_is_permitted() {
    with_both(MAY_ASK, |house, direct, doors| {
        asks_alike(house, direct, doors, TS2_LEGACY, &SAMPLE);
        asks_alike(house, direct, doors, PYTHON_LEGACY, &SAMPLE);
        asks_alike(house, direct, doors, TS2_MODERN, &MODERN_SAMPLE);
        asks_alike(house, direct, doors, PYTHON_MODERN, &MODERN_SAMPLE);
    });
    with_both("", |house, _, doors| {
        let pairs = [(TS2_LEGACY, SAMPLE), (PYTHON_LEGACY, SAMPLE), (TS2_MODERN, MODERN_SAMPLE)];
        for (client, question) in pairs {
            for door in doors {
                let seen = question.put(house, client, "", door);
                assert_eq!(seen.at(question.asked), &Value::Null, "{client:?} at {door:?}: {}", seen.0);
                let refused = !seen.at("/error").is_null() || seen.at("/result/isError") == &json!(true);
                assert!(refused, "{client:?} at {door:?}: {}", seen.0);
            }
        }
    });
}

#[test]
fn forms_reach_the_person_through_the_common_doors() {
    with_both("", |house, direct, doors| {
        let common = doors.iter().find_map(|door| match door {
            Target::Url(url) => Some(Target::Url(url.replace("/mcp/http", "/mcp"))),
            Target::Command(_) => None,
        });
        let pipe = Door::PipeCommon.target("", "child");
        for (client, question) in [(TS2_LEGACY, FORM), (PYTHON_MODERN, MODERN_FORM)] {
            let record = house.read("record");
            let wanted = question.put(house, client, "", direct);
            house.write("record", &record);
            for (door, server) in [(common.as_ref(), "http"), (Some(&pipe), "child")] {
                let Some(door) = door else { continue };
                let got = question.put(house, client, &format!("{server}__"), door);
                let asked = labelled(&wanted, server).get("elicited").cloned().unwrap_or_default();
                assert_eq!(got.at("/elicited"), &asked, "{client:?} at {door:?}: {}", got.0);
                assert_eq!(got.text(), wanted.text(), "{client:?} at {door:?}: {}", got.0);
                assert!(!got.text().is_empty());
            }
        }
    });
}
