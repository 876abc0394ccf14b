//! What a running server tells of itself: to Prometheus, to whoever asks whether it is ready, to doctor, in its log.

use std::io::{BufRead, BufReader, Read, Write};

use serde_json::Value;

use crate::house::House;
use crate::server::{Server, eventually};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

#[test]
fn a_refused_policy_is_seen_everywhere_until_the_next_good_one() {
    let house = House::new();
    house.write(CONFIG, "");
    let server = Server::start(&house);
    let doctor = || house.run(&["doctor", "--listen", "127.0.0.1:0"]).out;
    assert!(server.page("/readyz").contains("\"refused\":null"));
    assert!(server.page("/metrics").contains("toolwarden_policy_is_current 1\n"));
    assert!(doctor().contains("judges by the policy of these files"), "{}", doctor());

    house.write(CONFIG, "[gateway]\nlistens = \"127.0.0.1:1\"\n");
    assert!(eventually(|| server.page("/metrics").contains("toolwarden_policy_is_current 0\n")));
    let ready = server.page("/readyz");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("\"refused\":{\"since\""), "{ready}");
    assert!(!ready.contains("listens"), "why is for those who may know: {ready}");
    let page = server.page("/metrics");
    assert!(page.contains("toolwarden_policy_reloads_total{result=\"refused\"} 1\n"), "{page}");
    assert!(!page.contains("listens"), "{page}");
    let told = doctor();
    assert!(told.contains("keeps its former policy since") && told.contains("listens"), "{told}");
    assert!(house.read("server.log").contains("the former policy stays in force"));

    house.write(CONFIG, "[gateway]\n");
    assert!(eventually(|| server.page("/metrics").contains("toolwarden_policy_is_current 1\n")));
    assert!(server.page("/readyz").contains("\"refused\":null"));
    assert!(doctor().contains("judges by the policy of these files"), "{}", doctor());
    server.stop();
}

#[test]
fn children_are_counted_while_they_run() {
    let house = House::new();
    let server = Server::start(&house);
    let page = server.page("/metrics");
    assert!(page.contains("toolwarden_server_lines{server=\"notes\"} 1\n"), "{page}");
    assert!(page.contains("toolwarden_build_info{version=\""), "{page}");
    assert!(eventually(|| server.page("/metrics").contains("toolwarden_journal_undelivered_records ")));
    server.stop();
}

/// The log of a server in front of a child that says hostile things on both its outputs, read by lines.
fn hostile_log(house: &House, format: &[(&str, &str)], config: &str) -> String {
    let said = r"x\n2026-01-01T00:00:00.000000Z  INFO forged\033[2J\302\233\342\200\256";
    let child = format!(
        "[servers.bad]\ncommand = \"sh\"\nenv = {{ KEY = \"pl4nted-s3cret\" }}\nargs = [\"-c\", '''printf \"{said}\" >&2; read -r line; printf '{{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{{\"code\":-1,\"message\":\"{said}\"}}}}\\n'; exit 1''']\n"
    );
    house.write(CONFIG, &format!("{config}{child}"));
    // Its last words come after its answer.
    let closely = [format, &[("TOOLWARDEN_LOG", "info,toolwarden::server=debug")]].concat();
    let server = Server::start_with(house, &closely);
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    server.post("/mcp/bad", body);
    assert!(eventually(|| house.read("server.log").contains("forged")), "{}", house.read("server.log"));
    server.stop();
    house.read("server.log")
}

#[test]
fn the_log_is_lines_of_json_where_config_or_environment_say_so() {
    for (format, config) in [
        (vec![], "[telemetry]\nlog = \"json\"\n"),
        (vec![("TOOLWARDEN_LOG_FORMAT", "json")], "[telemetry]\nlog = \"text\"\n"),
    ] {
        let house = House::new();
        let log = hostile_log(&house, &format, config);
        for line in log.lines() {
            let event: Value = serde_json::from_str(line).unwrap_or_default();
            let keys: Vec<&str> = event.as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
            assert_eq!(keys, ["time", "level", "target", "message", "fields"], "{line}");
        }
        assert!(!log.contains("pl4nted-s3cret"), "{log}");
        assert!(!log.chars().any(|one| one.is_control() && one != '\n'), "{log:?}");
    }
}

#[test]
fn the_log_is_lines_of_text_else_and_nobody_forges_one() {
    let house = House::new();
    let log = hostile_log(&house, &[], "");
    let is_event = |line: &str| {
        let mut words = line.split_whitespace();
        words.next().is_some_and(|time| time.ends_with('Z'))
            && words.next().is_some_and(|level| ["DEBUG", "INFO", "WARN", "ERROR"].contains(&level))
            && words.next() != Some("forged")
    };
    assert!(log.lines().all(is_event), "{log}");
    assert!(!log.chars().any(|one| one.is_control() && one != '\n'), "{log:?}");
    assert!(!log.contains("pl4nted-s3cret"), "{log}");
}

#[test]
fn a_format_that_is_none_is_refused() {
    let house = House::new();
    house.write(CONFIG, "[telemetry]\nlog = \"xml\"\n");
    let ran = house.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.code == 2 && ran.err.contains("toolwarden.toml:2") && ran.err.contains("json"), "{}", ran.err);
}

/// A collector that answers one request after the other; what it got.
fn collector() -> (String, std::sync::mpsc::Receiver<String>) {
    let Ok(listener) = std::net::TcpListener::bind("127.0.0.1:0") else { unreachable!("a port is free") };
    let address = listener.local_addr().map(|at| at.to_string());
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|read| read > 0) {}
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            let mut body = vec![0; length.unwrap_or_default()];
            let _ = reader.read_exact(&mut body);
            let _ = reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}");
            let _ = sender.send(format!("{head}{}", String::from_utf8_lossy(&body)));
        }
    });
    (address.unwrap_or_default(), received)
}

#[test]
fn spans_reach_the_collector_before_the_server_has_ended() {
    for section in ["telemetry", "audit"] {
        let (address, received) = collector();
        let house = House::new();
        let config = format!(
            "[{section}]\notlp = \"http://{address}/base\"\n[telemetry{}]\notlp_headers = {{ x-token = \"${{env:TOKEN}}\" }}\n",
            if section == "telemetry" { "_" } else { "" }
        );
        house.write(CONFIG, &config.replace("[telemetry_]\n", ""));
        house.run(&["allow", "notes:read_note"]);
        let server = Server::start_with(&house, &[("TOKEN", "pl4nted-s3cret")]);
        server.read_note();
        server.stop();
        let got = received.recv_timeout(std::time::Duration::from_secs(10)).unwrap_or_default();
        assert!(
            got.starts_with("POST /base/v1/traces HTTP/1.1\r\n") && got.contains("x-token: pl4nted-s3cret"),
            "{got}"
        );
        assert!(got.contains("\"name\":\"tools/call\"") && got.contains("read_note"), "{got}");
        let log = house.read("server.log");
        assert!(!log.contains("pl4nted-s3cret"), "{log}");
    }
}

#[test]
fn a_collector_that_cannot_be_is_refused_at_the_start() {
    for (config, said) in [
        ("[telemetry]\notlp = \"http://u:pl4nted@h\"\n", "its address cannot be used"),
        ("[telemetry]\notlp = \"http://a\"\n[audit]\notlp = \"http://b\"\n", "differ"),
        ("[telemetry]\notlp = \"http://a\"\notlp_headers = { k = \"${env:NOBODY_SET_THIS}\" }\n", "has no value here"),
    ] {
        let house = House::new();
        house.write(CONFIG, config);
        let ran = house.run(&["serve", "--demo", "--listen", "127.0.0.1:0"]);
        assert!(ran.code == 2 && ran.err.contains(said) && !ran.err.contains("pl4nted"), "{}: {}", ran.code, ran.err);
    }
}
