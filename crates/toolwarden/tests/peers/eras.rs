//! Clients and servers of different eras: what a client sees does not depend on which door it came in by.

use crate::house::{House, PERMISSIVE};
use crate::pairs::meet;
use crate::pairs_table::{Door, PIPE_TO_HTTP, TS2_AUTO, TS2_LEGACY, TS2_MODERN};
use crate::peers::{Target, ask, server_command, server_table};

#[test]
fn modern_clients_over_a_pipe_reach_one_server_over_http() {
    meet(Door::PipeOne, PIPE_TO_HTTP);
}

#[test]
fn modern_clients_over_a_pipe_reach_servers_over_http() {
    meet(Door::PipeCommon, PIPE_TO_HTTP);
}

/// A server that speaks only the older revisions is asked once whether it knows the newer one; after that
/// clients of both eras share a child.
#[test]
fn a_legacy_child_is_not_started_for_every_modern_request() {
    let house = House::new("");
    let script = format!("echo started >> '{}'; exec \"$@\"", house.shown("starts"));
    let words = ["sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()];
    let server = Target::Command(words.into_iter().chain(server_command("everything", &["stdio"])).collect());
    house.configure(&format!("{PERMISSIVE}{}", server_table("everything", &server)));
    let gateway = house.serve();
    let door = Target::Url(gateway.url("/mcp/everything"));
    for client in [TS2_MODERN, TS2_AUTO, TS2_LEGACY, TS2_MODERN] {
        let seen = ask(&house, client, &["--tool", "echo", "--args", r#"{"message": "hi"}"#], &door);
        assert_eq!(seen.text(), "Echo: hi", "{client:?}: {}", seen.0);
    }
    gateway.stop();
    // One to find out, one for everybody: these clients cannot be asked anything.
    let starts = house.read("starts").lines().count();
    assert!(starts <= 2, "the server was started {starts} times for four clients");
    house.audited();
}
