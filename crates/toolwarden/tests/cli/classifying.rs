//! The classifier of a real gateway: a program and a stand-in of an API, what persons are told, and a key that is nowhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use crate::approving::{call, house};
use crate::house::House;
use crate::server::{Server, eventually};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const KEY: &str = "sk-a-key-that-must-not-be-seen";

/// A program that gives the verdict which stands in a file at home.
fn with_program(house: &House, more: &str) {
    let script = "#!/bin/sh\nmark=$(cat | sed 's/.*\"mark\":\"\\([^\"]*\\)\".*/\\1/')\n\
                  printf '{\"verdict\":\"%s\",\"reason\":\"as the file says \\\\u001b[31m\",\"mark\":\"%s\"}' \
                  \"$(cat \"$HOME/verdict\")\" \"$mark\"\n";
    house.write("machine", script);
    let path = house.path("machine");
    assert!(std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).is_ok());
    let section = format!("[classifier]\nkind = \"command\"\ncommand = [\"{}\"]\ntimeout = \"30s\"\n", path.display());
    let config = house.read(CONFIG);
    house.write(CONFIG, &format!("{more}\n{section}{config}"));
}

#[test]
fn review_2_a_program_answers_and_persons_are_told_what_it_said() {
    let house = house("");
    with_program(&house, "[auto_run]\nauto_review = true\n");
    house.write("home/verdict", "allow");
    let server = Server::start(&house);
    assert!(call(&server, "mine").contains("wrote plan"), "{}", house.read("server.log"));
    assert!(server.call("read_note", &json!({ "name": "plan" })).contains("mine"));
    house.write("home/verdict", "hold");
    assert!(call(&server, "other").contains("Held by Toolwarden"));
    let list = house.json(&["approvals", "list"]);
    assert_eq!(list.pointer("/0/machine_opinion/verdict"), Some(&json!("hold")), "{list}");
    let id = list.pointer("/0/id").and_then(Value::as_str).unwrap_or_default().to_owned();
    let shown = house.run(&["approvals", "show", &id]).out;
    let line = shown.lines().find(|line| line.contains("a machine")).unwrap_or_default().to_owned();
    assert!(line.contains("would hold it (command)") && line.contains("as the file says"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert_eq!(house.run(&["approvals", "approve", &id]).code, 0);
    assert!(call(&server, "other").contains("wrote plan"));
    assert_eq!(house.json(&["approvals", "stats"]).pointer("/agreement/hold_approved"), Some(&json!(1)));
    assert!(house.run(&["approvals", "stats"]).out.contains("approved"));
    let counted = r#"toolwarden_classifier_agreement_total{verdict="hold",answer="approved"} 1"#;
    assert!(eventually(|| server.page("/metrics").contains(counted)), "{}", server.page("/metrics"));
    let metrics = server.page("/metrics");
    assert!(metrics.contains(r#"toolwarden_classifier_verdicts_total{verdict="allow",source="asked"} 1"#), "{metrics}");
    let rows = house.json(&["audit", "query"]);
    let rows: Vec<_> = rows.as_array().cloned().unwrap_or_default();
    let of = |row: &Value, name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let verdict = rows.iter().find(|row| of(row, "detail").starts_with("allow by command (prompt 1, asked)"));
    let verdict = verdict.map(|row| of(row, "approval_id")).unwrap_or_default();
    assert!(verdict.starts_with("classifier:"), "{rows:?}");
    // Its own words may quote arguments: they lie sealed with the call, not in the record.
    assert!(!rows.iter().any(|row| row.to_string().contains("as the file says")), "{rows:?}");
    let paid = rows.iter().find(|row| of(row, "kind") == "intent" && of(row, "approval_id") == verdict);
    assert_eq!(paid.map(|row| of(row, "reason")), Some("paid".to_owned()), "{rows:?}");
    assert_eq!(house.run(&["audit", "verify"]).code, 0);
}

#[test]
fn self_1_links_are_looked_up_again_when_a_classifier_settles_a_call() {
    let house = house("");
    with_program(&house, "[auto_run]\nauto_review = true\n");
    house.write("home/verdict", "allow");
    house.write("space/plain", "");
    house.write("home/.cursor/permissions.json", "{}");
    let link = house.path("space/link");
    assert!(std::os::unix::fs::symlink(house.path("space/plain"), &link).is_ok());
    let server = Server::start(&house);
    let write = |text: &str| server.call("write_note", &json!({ "name": link, "text": text }));
    assert!(write("harmless").contains("wrote"), "{}", house.read("server.log"));
    // While the classifier is asked, the link is turned to a file that nobody but a person lets agents change.
    let machine = house.read("machine");
    let target = house.path("home/.cursor/permissions.json");
    let turn = format!("ln -sfn {} {}\nprintf ", target.display(), link.display());
    house.write("machine", &machine.replacen("printf ", &turn, 1));
    let said = write("smuggled");
    assert!(!said.contains("wrote"), "{said}");
    assert!(std::fs::read_link(&link).is_ok_and(|found| found == target), "the classifier was asked");
    let notes = server.call("read_note", &json!({ "name": link }));
    assert!(!notes.contains("smuggled"), "{notes}");
}

/// An API that allows whatever it is asked; gives what it was sent.
fn api() -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0");
    let Ok(listener) = listener else { unreachable!("{listener:?}") };
    let url = listener.local_addr().map(|address| format!("http://{address}/v1")).unwrap_or_default();
    let heard = Arc::<Mutex<Vec<String>>>::default();
    let kept = heard.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(&mut stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head).unwrap_or(0) == 0 {
                    break;
                }
            }
            let length = head
                .to_lowercase()
                .split_once("content-length: ")
                .and_then(|(_, rest)| rest.lines().next().and_then(|line| line.trim().parse::<u64>().ok()));
            let mut body = String::new();
            let _ = reader.take(length.unwrap_or(0)).read_to_string(&mut body);
            let asked: Value = serde_json::from_str(&body).unwrap_or_default();
            let text = asked.pointer("/messages/1/content").and_then(Value::as_str).unwrap_or_default();
            let mark = text.rsplit(' ').next().unwrap_or_default().trim_end_matches('.');
            let said = json!({ "verdict": "allow", "reason": "fine", "mark": mark }).to_string();
            let message = json!({ "role": "assistant", "content": said });
            let answer = json!({ "choices": [{ "finish_reason": "stop", "message": message }] }).to_string();
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{head}{body}"));
            let length = answer.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let _ = stream.write_all(format!("{head}\r\ncontent-length: {length}\r\n\r\n{answer}").as_bytes());
        }
    });
    (url, heard)
}

/// Files below a directory that hold these bytes.
fn holding(directory: &Path, wanted: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(holding(&path, wanted));
        } else if let Ok(bytes) = std::fs::read(&path)
            && bytes.windows(wanted.len()).any(|window| window == wanted.as_bytes())
        {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn review_2_a_model_answers_and_its_key_is_nowhere() {
    let (url, heard) = api();
    let section = format!(
        "[auto_run]\nauto_review = true\n[classifier]\nkind = \"openai\"\nmodel = \"m-1\"\nurl = \"{url}\"\n\
         api_key = \"${{env:CLASSIFIER_KEY}}\"\ntimeout = \"30s\"\n"
    );
    let house = house(&section);
    let server = Server::start_with(&house, &[("CLASSIFIER_KEY", KEY), ("TOOLWARDEN_LOG", "debug")]);
    server.tools();
    assert!(call(&server, "mine").contains("wrote plan"), "{}", house.read("server.log"));
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert_eq!(heard.len(), 1);
    let heard = heard.join("");
    assert!(heard.to_lowercase().contains(&format!("authorization: bearer {KEY}")), "{heard}");
    assert_eq!(heard.matches(KEY).count(), 1, "in its header, and nowhere else");
    assert!(holding(&house.path(""), KEY).is_empty(), "{:?}", holding(&house.path(""), KEY));
    assert!(!holding(&house.path(""), "m-1").is_empty(), "the way this test looks does not work");
    let command = std::fs::read(format!("/proc/{}/cmdline", server.pid())).unwrap_or_default();
    assert!(!command.is_empty() && !String::from_utf8_lossy(&command).contains(KEY));
    for arguments in
        [&["audit", "query", "--json"][..], &["doctor", "--json", "--listen", "127.0.0.1:0"], &["approvals", "stats"]]
    {
        let ran = house.run(arguments);
        assert!(!ran.out.contains(KEY) && !ran.err.contains(KEY), "{arguments:?}");
    }
    drop(server);
    // Without its key it is not used, which is said, and calls are for persons.
    let server = Server::start(&house);
    assert!(call(&server, "other").contains("Held by Toolwarden"));
    assert!(house.read("server.log").contains("[classifier] is not used"), "{}", house.read("server.log"));
    let doctor = house.run(&["doctor", "--listen", "127.0.0.1:0"]);
    assert!(doctor.out.contains("`${env:CLASSIFIER_KEY}` has no value here"), "{}", doctor.out);
}

#[test]
fn review_1_auto_review_is_switched_by_command() {
    let house = house("");
    with_program(&house, "");
    house.write("home/verdict", "allow");
    let server = Server::start(&house);
    let doctor = |house: &House| house.run(&["doctor", "--listen", "127.0.0.1:0"]).out;
    assert!(call(&server, "first").contains("Held by Toolwarden"));
    assert!(doctor(&house).contains("is configured and never asked"), "{}", doctor(&house));
    let refused = house.run(&["settings", "set", "auto_run.auto_review", "perhaps"]);
    assert!(refused.code != 0 && refused.err.contains("true or false"), "{} {}", refused.out, refused.err);
    let set = house.run(&["settings", "set", "auto_run.auto_review", "true"]);
    assert_eq!(set.code, 0, "{}", set.err);
    assert!(eventually(|| call(&server, "second").contains("wrote plan")), "{}", house.read("server.log"));
    assert_eq!(house.run(&["settings", "get", "auto_run.auto_review"]).out.trim(), "true");
    assert!(doctor(&house).contains("is asked before persons are"), "{}", doctor(&house));
    assert_eq!(house.run(&["settings", "unset", "auto_run.auto_review"]).code, 0);
    assert!(eventually(|| call(&server, "third").contains("Held by Toolwarden")));
    // And for one mode alone.
    let made = house.run(&["modes", "set", "quick", "--groups", "mcp", "--auto-review", "on"]);
    assert_eq!(made.code, 0, "{}", made.err);
    let in_mode = |text: &str| server.called_in_mode("quick", "write_note", &json!({ "name": "plan", "text": text }));
    assert!(eventually(|| in_mode("fourth").contains("wrote plan")), "{}", in_mode("fourth"));
    assert!(call(&server, "fifth").contains("Held by Toolwarden"), "outside of it persons are asked");
    let off = house.run(&["modes", "set", "quick", "--auto-review", "inherit"]);
    assert_eq!(off.code, 0, "{}", off.err);
    assert!(eventually(|| in_mode("sixth").contains("Held by Toolwarden")), "{}", in_mode("sixth"));
}

#[test]
fn doctor_says_when_auto_review_has_nobody_to_ask() {
    let house = house("[auto_run]\nauto_review = true\n");
    let said = house.run(&["doctor", "--listen", "127.0.0.1:0"]).out;
    assert!(said.contains("no classifier is configured"), "{said}");
    let said = house.run(&["lint"]).out;
    assert!(said.contains("no classifier is configured"), "{said}");
    let relative = "[auto_run]\nauto_review = true\n[classifier]\nkind = \"command\"\ncommand = \"./machine\"\n";
    let house = self::house(relative);
    let said = house.run(&["doctor", "--listen", "127.0.0.1:0"]);
    assert!(said.out.contains("must be a whole path") && said.code != 0, "{}", said.out);
    // A workspace has no say in who allows.
    house.write("space/toolwarden.toml", "[classifier]\nkind = \"command\"\ncommand = \"/bin/true\"\n");
    assert_eq!(house.run(&["trust", "."]).code, 0);
    let said = house.run(&["lint"]).out;
    assert!(said.contains("counts only in the user's own config"), "{said}");
}
