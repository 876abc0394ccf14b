//! What servers tell by themselves: news of a watched resource and of the list of tools, at every door.

use serde_json::json;

use crate::house::{House, PERMISSIVE};
use crate::pairs_table::{Door, TS1, TS2_LEGACY, TS2_MODERN};
use crate::peers::{Client, Target, ask, fixture_command, fixture_over_http, server_table};

const WATCHED: &str = "test://watched-resource";

/// Something that changes at the server: the tool that changes it, and what the server tells then.
#[derive(Debug, Clone, Copy)]
enum Change {
    Resource,
    Tools,
}

impl Change {
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Resource => ("test_trigger_resource_change", "notifications/resources/updated"),
            Self::Tools => ("test_trigger_tool_change", "notifications/tools/list_changed"),
        }
    }
}

type Rows<'a> = &'a [(Client, Door, Change)];

/// Lets clients watch a fixture server, called `http` or `child` after how it is reached.
fn hear(server: &'static str, rows: Rows<'_>) {
    let house = House::new("");
    let fixture = fixture_over_http(&house);
    let target = match server {
        "http" => Target::Url(fixture.url.clone()),
        _ => Target::Command(fixture_command(&house)),
    };
    house.configure(&format!("{PERMISSIVE}{}", server_table(server, &target)));
    let gateway = house.serve();
    let told = rows.iter().map(|(client, door, change)| {
        let (tool, news) = change.names();
        let (tool, uri) = match door.is_common() {
            true => (format!("{server}__{tool}"), format!("toolwarden://{server}/{WATCHED}")),
            false => (tool.to_owned(), WATCHED.to_owned()),
        };
        let options = ["--watch", &uri, "--tool", &tool];
        let seen = ask(&house, *client, &options, &door.target(&gateway.url(""), server));
        let wanted = match change {
            Change::Resource => json!([{"method": news, "uri": uri}]),
            Change::Tools => json!([{"method": news}]),
        };
        let failure = format!("{client:?} at {door:?}: told {}, not {wanted}; {}", seen.at("/news"), seen.at("/error"));
        (*seen.at("/news") == wanted, failure)
    });
    let failures: Vec<String> = told.filter(|(heard, _)| !heard).map(|(_, failure)| failure).collect();
    gateway.stop();
    assert!(failures.is_empty(), "{failures:#?}");
    house.audited();
}

#[test]
fn news_of_a_child_reach_every_door() {
    hear(
        "child",
        &[
            (TS1, Door::One, Change::Resource),
            (TS2_MODERN, Door::One, Change::Tools),
            (TS2_LEGACY, Door::Common, Change::Tools),
            (TS2_MODERN, Door::Common, Change::Resource),
            (TS1, Door::PipeOne, Change::Resource),
            (TS2_MODERN, Door::PipeCommon, Change::Resource),
        ],
    );
}

#[test]
fn news_of_a_server_over_http_reach_clients() {
    hear(
        "http",
        &[
            (TS1, Door::One, Change::Resource),
            (TS2_LEGACY, Door::One, Change::Tools),
            (TS2_MODERN, Door::One, Change::Resource),
            (TS2_MODERN, Door::Common, Change::Resource),
        ],
    );
}

#[test]
fn news_of_a_resource_carry_the_name_it_has_behind_the_common_door() {
    hear("child", &[(TS1, Door::Common, Change::Resource), (TS2_LEGACY, Door::PipeCommon, Change::Resource)]);
}

#[test]
fn news_of_a_server_over_http_reach_legacy_clients_at_the_common_door() {
    hear("http", &[(TS1, Door::Common, Change::Tools), (TS2_LEGACY, Door::Common, Change::Resource)]);
}

#[test]
fn news_of_a_server_over_http_reach_legacy_clients_over_pipes() {
    hear("http", &[(TS1, Door::PipeOne, Change::Resource), (TS2_LEGACY, Door::PipeCommon, Change::Tools)]);
}
