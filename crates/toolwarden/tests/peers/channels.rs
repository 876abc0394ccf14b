//! Held calls of real clients, answered by every channel there is besides the client: the API, the command line, a link.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::house::House;
use crate::pairs_table::{PYTHON_LEGACY, TS2_MODERN};
use crate::peers::{Client, Seen, Target, ask, fixture_over_http, server_table};

const TOOL: &str = "test_simple_text";

/// How a person answers.
#[derive(Debug, Clone, Copy)]
enum Channel {
    Api,
    Command,
    Link,
}

/// A gateway with one server, and a person who may answer.
struct Scene<'a> {
    house: &'a House,
    address: String,
    door: Target,
    approver: String,
}

impl Scene<'_> {
    fn toolwarden(&self, words: &[&str]) -> Value {
        let ran = self.house.command(env!("CARGO_BIN_EXE_toolwarden")).args(words).arg("--json").output();
        serde_json::from_slice(&ran.map(|output| output.stdout).unwrap_or_default()).unwrap_or_default()
    }

    fn call(&self, client: Client, agent: &str) -> Seen {
        let header = format!("Authorization: Bearer {agent}");
        ask(self.house, client, &["--tool", TOOL, "--args", "{}", "--header", &header], &self.door)
    }

    /// One exchange with the gateway, as a browser or a program has it.
    fn said(&self, head: &str, body: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(&self.address) else { unreachable!("it listens") };
        let request = format!(
            "{head}\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let mut answer = Vec::new();
        let _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut answer));
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn answer(&self, channel: Channel, id: &str, word: &str) {
        match channel {
            Channel::Command => drop(self.toolwarden(&["approvals", word, id])),
            Channel::Api => {
                let head = format!(
                    "POST /api/v1/approvals/{word} HTTP/1.1\r\nAuthorization: Bearer {}\r\nContent-Type: application/json",
                    self.approver
                );
                let said = self.said(&head, &json!({ "id": id }).to_string());
                assert!(said.starts_with("HTTP/1.1 200"), "{said}");
            }
            Channel::Link => {
                let link = self.toolwarden(&["approvals", "link", id, "--user", "bob"]);
                let url = link.get("url").and_then(Value::as_str).unwrap_or_default().to_owned();
                let path = url.find("/approve/").and_then(|at| url.get(at..)).unwrap_or_default();
                let page = self.said(&format!("GET {path} HTTP/1.1"), "");
                let mark = page.split("name=\"mark\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
                let head = format!(
                    "POST {path} HTTP/1.1\r\nOrigin: http://{}\r\nContent-Type: application/x-www-form-urlencoded",
                    self.address
                );
                let said = self.said(&head, &format!("mark={}&answer={word}", mark.unwrap_or_default()));
                assert!(said.starts_with("HTTP/1.1 200"), "{said}");
            }
        }
    }
}

fn is_refused(seen: &Seen) -> bool {
    seen.at("/result/isError") == &json!(true)
}

#[test]
fn review_3_by_every_channel_an_approval_is_one_call_and_a_denial_none() {
    for client in [TS2_MODERN, PYTHON_LEGACY] {
        let house = House::new("");
        let fixture = fixture_over_http(&house);
        house.configure(&server_table("http", &Target::Url(fixture.url.clone())));
        let gateway = house.serve();
        let url = gateway.url("/mcp/http");
        let address = url.split('/').nth(2).unwrap_or_default().to_owned();
        let mut scene = Scene { house: &house, address, door: Target::Url(url), approver: String::new() };
        let token = |scene: &Scene<'_>, words: &[&str]| {
            let issued = scene.toolwarden(&[&["tokens", "issue", "--person"], words].concat());
            issued.get("token").and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        scene.approver = token(&scene, &["--user", "bob", "--right", "approver"]);
        let calls = || house.recorded().iter().filter(|line| line.ends_with(TOOL)).count();
        for (place, channel) in [Channel::Api, Channel::Command, Channel::Link].into_iter().enumerate() {
            // Somebody else each time: what was denied before stays denied.
            let agent = token(&scene, &["--user", &format!("user{place}")]);
            let held = |scene: &Scene<'_>| {
                let found = scene.toolwarden(&["approvals", "list"]);
                found.pointer("/0/id").and_then(Value::as_str).unwrap_or_default().to_owned()
            };
            assert!(is_refused(&scene.call(client, &agent)), "{client:?} {channel:?}");
            assert_eq!(calls(), place, "{client:?} {channel:?}: nothing ran");
            scene.answer(channel, &held(&scene), "approve");
            let seen = scene.call(client, &agent);
            assert!(!is_refused(&seen) && seen.at("/error").is_null(), "{client:?} {channel:?}: {}", seen.0);
            assert_eq!(calls(), place + 1, "{client:?} {channel:?}");
            assert!(is_refused(&scene.call(client, &agent)), "{client:?} {channel:?}: once");
            scene.answer(channel, &held(&scene), "deny");
            assert!(is_refused(&scene.call(client, &agent)), "{client:?} {channel:?}");
            assert_eq!(calls(), place + 1, "{client:?} {channel:?}: a denial is no call");
        }
        gateway.stop();
        house.audited();
    }
}
