//! Clients and servers of different eras with the gateway between them: calls, questions, progress, giving up, news.

use serde_json::{Value, json};

use crate::house::{House, MAY_ASK, PERMISSIVE};
use crate::pairs::{meet, meet_beside};
use crate::pairs_table::{
    ACROSS_COMMON, ACROSS_ONE, ACROSS_PIPE, Door, OLDEST_CLIENTS, OLDEST_SERVERS, PYTHON_LEGACY, PYTHON_MODERN, TS1,
    TS2_LEGACY, TS2_MODERN,
};
use crate::peers::{
    Client, Listening, Seen, Target, ask, everything_over_http, fixture_command, fixture_of, server_command,
    server_table,
};

#[test]
fn each_era_reaches_servers_of_the_other() {
    meet_beside(Door::One, ACROSS_ONE);
}

#[test]
fn each_era_reaches_servers_of_the_other_at_the_common_door() {
    meet_beside(Door::Common, ACROSS_COMMON);
}

#[test]
fn each_era_reaches_servers_of_the_other_over_pipes() {
    meet_beside(Door::PipeOne, ACROSS_PIPE);
    meet_beside(Door::PipeCommon, ACROSS_PIPE);
}

#[test]
fn servers_of_the_oldest_transport_are_reached() {
    meet(Door::One, OLDEST_SERVERS);
}

#[test]
fn clients_of_the_oldest_transport_reach_servers() {
    meet_beside(Door::OldestOne, OLDEST_CLIENTS);
    meet_beside(Door::OldestCommon, OLDEST_CLIENTS);
}

/// A form, progress, giving up and news for a client of the oldest transport, at servers of both eras.
#[test]
fn clients_of_the_oldest_transport_are_asked_and_told() {
    for (client, era) in [(TS1, "legacy"), (PYTHON_LEGACY, "modern")] {
        with_era(era, |house, base, names| {
            for name in names {
                let target = Door::OldestOne.target(base, name);
                is_asked(house, client, name, "", &target);
                progresses(house, client, "", &target);
                gives_up(house, client, "", &target);
                hears(house, client, name, "", &target);
            }
        });
    }
}

const LEGACY: [Client; 3] = [TS1, TS2_LEGACY, PYTHON_LEGACY];
const MODERN: [Client; 2] = [TS2_MODERN, PYTHON_MODERN];

/// A gateway before the fixture in one era, under the names `http`, `child` and, in the older era, `sse`.
fn with_era(era: &str, test: impl Fn(&House, &str, &[&str])) {
    let house = House::new("");
    let mut running: Vec<(&str, Listening)> = vec![("http", fixture_of(&house, "http", era))];
    if era == "legacy" {
        running.push(("sse", fixture_of(&house, "sse", era)));
    }
    let words = ["--era".to_owned(), era.to_owned()];
    let child = Target::Command(fixture_command(&house).into_iter().chain(words).collect());
    let mut config = format!("{PERMISSIVE}{}{MAY_ASK}", server_table("child", &child));
    for (name, server) in &running {
        config.push_str(&format!("{}{MAY_ASK}", server_table(name, &Target::Url(server.url.clone()))));
    }
    house.configure(&config);
    let gateway = house.serve();
    let mut names: Vec<&str> = vec!["child"];
    names.extend(running.iter().map(|(name, _)| *name));
    test(&house, &gateway.url(""), &names);
    gateway.stop();
    house.audited();
}

/// Lets clients do something at every server, at its own door and at the common one.
fn everywhere(clients: &[Client], base: &str, names: &[&str], act: impl Fn(Client, &str, &str, &Target)) {
    for (place, name) in names.iter().enumerate() {
        for client in clients {
            act(*client, name, "", &Door::One.target(base, name));
        }
        // One of them also at the common door, each time another.
        if let Some(client) = clients.get(place % clients.len()) {
            act(*client, name, &format!("{name}__"), &Door::Common.target(base, name));
        }
    }
}

fn put(house: &House, client: Client, tool: &str, options: &[&str], target: &Target) -> Seen {
    let mut words = vec!["--tool", tool];
    words.extend(options);
    let seen = ask(house, client, &words, target);
    assert!(seen.at("/error").is_null() || !seen.at("/cancelled").is_null(), "{client:?} at {target:?}: {}", seen.0);
    seen
}

/// A form that is filled in, one that is declined, and a model.
fn is_asked(house: &House, client: Client, name: &str, prefix: &str, target: &Target) {
    let form = format!("{prefix}test_elicitation");
    for (answer, said) in [("accept", "The user answered accept"), ("decline", "decline")] {
        let options = ["--args", r#"{"message": "Who?"}"#, "--elicit", answer];
        let seen = put(house, client, &form, &options, target);
        assert_eq!(seen.at("/elicited"), &json!([format!("Server \"{name}\" asks: Who?")]), "{}", seen.0);
        assert!(seen.text().contains(said), "{client:?} at {target:?}: {}", seen.0);
    }
    let sample = format!("{prefix}test_sampling");
    let options = ["--args", r#"{"prompt": "Speak."}"#, "--sample", "Spoken."];
    let seen = put(house, client, &sample, &options, target);
    assert!(seen.text().contains("Spoken."), "{client:?} at {target:?}: {}", seen.0);
}

fn is_asked_twice(house: &House, client: Client, prefix: &str, target: &Target) {
    let rounds = format!("{prefix}test_input_required_result_multi_round");
    let seen = put(house, client, &rounds, &["--elicit", "accept"], target);
    assert_eq!(seen.at("/elicited").as_array().map(Vec::len), Some(2), "{client:?} at {target:?}: {}", seen.0);
    assert!(seen.at("/result/isError") != &json!(true) && !seen.text().is_empty(), "{}", seen.0);
}

fn progresses(house: &House, client: Client, prefix: &str, target: &Target) {
    let delay = format!("{prefix}test_delay");
    let seen = put(house, client, &delay, &["--args", r#"{"milliseconds": 450}"#, "--progress"], target);
    let reported = seen.at("/progress").as_array().map_or(0, Vec::len);
    assert!(reported >= 4, "{client:?} at {target:?}: {}", seen.0);
    assert_eq!(seen.text(), "Waited 450 ms.", "{client:?} at {target:?}");
}

fn gives_up(house: &House, client: Client, prefix: &str, target: &Target) {
    let before = house.read("record");
    house.write("record", "");
    let delay = format!("{prefix}test_delay");
    let options = ["--args", r#"{"milliseconds": 30000}"#, "--cancel-after", "700"];
    let seen = put(house, client, &delay, &options, target);
    assert_eq!(seen.at("/cancelled"), &json!(true), "{client:?} at {target:?}: {}", seen.0);
    house.await_record("cancelled test_delay");
    assert_eq!(house.recorded(), ["tools/call test_delay", "cancelled test_delay"], "{client:?} {target:?}");
    house.write("record", &format!("{before}{}", house.read("record")));
}

fn hears(house: &House, client: Client, name: &str, prefix: &str, target: &Target) {
    let own = "test://watched-resource".to_owned();
    let uri = if prefix.is_empty() { own } else { format!("toolwarden://{name}/{own}") };
    for (tool, news) in [
        ("test_trigger_resource_change", json!({"method": "notifications/resources/updated", "uri": uri})),
        ("test_trigger_tool_change", json!({"method": "notifications/tools/list_changed"})),
    ] {
        let tool = format!("{prefix}{tool}");
        let seen = put(house, client, &tool, &["--watch", &uri], target);
        assert_eq!(seen.at("/news"), &Value::Array(vec![news]), "{client:?} at {target:?}: {}", seen.0);
    }
}

#[test]
fn legacy_clients_are_asked_by_modern_servers() {
    with_era("modern", |house, base, names| {
        everywhere(&LEGACY, base, names, |client, name, prefix, target| {
            is_asked(house, client, name, prefix, target);
            is_asked_twice(house, client, prefix, target);
        });
    });
}

#[test]
fn modern_clients_are_asked_by_legacy_servers() {
    with_era("legacy", |house, base, names| {
        everywhere(&MODERN, base, names, |client, name, prefix, target| {
            is_asked(house, client, name, prefix, target);
            is_asked_twice(house, client, prefix, target);
        });
    });
}

/// The same at a server nobody here wrote: the reference server, over each of its transports.
#[test]
fn a_reference_server_asks_and_reports_to_modern_clients() {
    let house = House::new("");
    let (http, sse) = (everything_over_http(&house, "streamableHttp"), everything_over_http(&house, "sse"));
    let child = Target::Command(server_command("everything", &["stdio"]));
    let servers = [("child", child), ("http", Target::Url(http.url.clone())), ("sse", Target::Url(sse.url.clone()))];
    let tables: String = servers.iter().map(|(name, target)| server_table(name, target)).collect();
    house.configure(&format!("{PERMISSIVE}{tables}"));
    let gateway = house.serve();
    for (client, (name, _)) in MODERN.iter().cycle().zip(&servers) {
        let target = Door::One.target(&gateway.url(""), name);
        let seen = put(&house, *client, "trigger-elicitation-request", &["--elicit", "accept"], &target);
        let asked = seen.at("/elicited/0").as_str().unwrap_or_default();
        assert!(asked.starts_with(&format!("Server \"{name}\" asks: ")), "{client:?} at {name}: {}", seen.0);
        assert!(seen.text().contains("User provided the requested information"), "{}", seen.0);
        let options = ["--args", r#"{"duration": 1, "steps": 3}"#, "--progress"];
        let seen = put(&house, *client, "trigger-long-running-operation", &options, &target);
        assert_eq!(seen.at("/progress").as_array().map(Vec::len), Some(3), "{client:?} at {name}: {}", seen.0);
    }
    gateway.stop();
    house.audited();
}

#[test]
fn progress_crosses_to_modern_clients() {
    with_era("legacy", |house, base, names| {
        everywhere(&MODERN, base, names, |client, _, prefix, target| progresses(house, client, prefix, target));
    });
}

#[test]
fn progress_crosses_to_legacy_clients() {
    with_era("modern", |house, base, names| {
        everywhere(&LEGACY, base, names, |client, _, prefix, target| progresses(house, client, prefix, target));
    });
}

#[test]
fn giving_up_crosses_from_modern_clients() {
    with_era("legacy", |house, base, names| {
        everywhere(&MODERN, base, names, |client, _, prefix, target| gives_up(house, client, prefix, target));
    });
}

#[test]
fn giving_up_crosses_from_legacy_clients() {
    with_era("modern", |house, base, names| {
        everywhere(&LEGACY, base, names, |client, _, prefix, target| gives_up(house, client, prefix, target));
    });
}

#[test]
fn news_cross_to_modern_clients() {
    with_era("legacy", |house, base, names| {
        everywhere(&MODERN, base, names, |client, name, prefix, target| hears(house, client, name, prefix, target));
    });
}

#[test]
fn news_cross_to_legacy_clients() {
    with_era("modern", |house, base, names| {
        everywhere(&LEGACY, base, names, |client, name, prefix, target| hears(house, client, name, prefix, target));
    });
}
