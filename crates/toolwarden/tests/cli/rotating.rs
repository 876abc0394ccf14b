//! `vault status` and `vault rotate-key`: calls go on, gateways agree, and whoever is killed is followed by another.

use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use toolwarden_test_postgres::Cluster;

use crate::house::House;
use crate::server::{Server, eventually, exchange};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const KEY: &str = "home/.config/toolwarden/master.key";
const SOCKET: &str = "home/.local/share/toolwarden/control.sock";

/// A house whose notes agents may read.
fn house(more: &str) -> House {
    let house = House::new();
    let program = env!("CARGO_BIN_EXE_toolwarden");
    house.write(
        CONFIG,
        &format!(
            "{more}[auto_run]\nmode = \"run_everything\"\n[servers.notes]\ncommand = \"{program}\"\n\
             args = [\"demo-server\"]\ntools.read_note.scope = \"both\"\n[roles.worker]\nallow = [\"notes:*\"]\n"
        ),
    );
    house
}

fn issue(house: &House) -> String {
    let issued = house.json(&["tokens", "issue", "--role", "worker", "--task", "t1", "--job", "j1", "--user", "ada"]);
    issued.get("token").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn read(server: &Server, token: &str) -> String {
    server.call_as(token, "read_note", &json!({ "name": "welcome" }))
}

fn is_read(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 200") && answer.contains("kept by the demo server")
}

/// The roots with their states and how many values each sealed.
fn roots(house: &House) -> Vec<(String, u64)> {
    let status = house.json(&["vault", "status"]);
    let rows = status.get("roots").and_then(Value::as_array).cloned().unwrap_or_default();
    let number = |row: &Value, name: &str| row.get(name).and_then(Value::as_u64).unwrap_or_default();
    let sealed = |row: &Value| ["records", "changes", "tokens"].map(|name| number(row, name)).iter().sum();
    let state = |row: &Value| row.get("state").and_then(Value::as_str).unwrap_or_default().to_owned();
    rows.iter().map(|row| (state(row), sealed(row))).collect()
}

/// Everything is under this root, the ones before it are retired, and the record is whole.
fn assert_over(house: &House, root: usize, values: u64) {
    let mut expected = vec![("retired".to_owned(), 0); root - 1];
    expected.push(("current".to_owned(), values));
    assert_eq!(roots(house), expected);
    assert_eq!(house.json(&["vault", "status"]).get("rotation"), Some(&Value::Null));
    let verified = house.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.out, verified.err);
}

/// The keys that signed the server's record.
fn signers(house: &House) -> BTreeSet<String> {
    let entries = std::fs::read_dir(house.path("home/.local/share/toolwarden/journal/serve-1"));
    let texts = entries.into_iter().flatten().flatten().filter_map(|entry| std::fs::read_to_string(entry.path()).ok());
    let text: String = texts.collect();
    text.split("\"public_key\":\"").skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

/// Where an unfinished rotation stands.
fn rotation(house: &House) -> Option<(u64, String)> {
    let status = house.json(&["vault", "status"]);
    let rotation = status.get("rotation")?;
    assert!(rotation.is_null() || rotation.get("resume") == Some(&json!("toolwarden vault rotate-key")), "{status}");
    Some((rotation.get("root")?.as_u64()?, rotation.get("state")?.as_str()?.to_owned()))
}

/// Asks the server for one step, as a script would.
fn step(house: &House, request: &Value) -> Value {
    posted(&exchange(UnixStream::connect(house.path(SOCKET)), &post("/api/v1/vault/rotate_key", request)))
}

fn post(path: &str, request: &Value) -> String {
    let body = request.to_string();
    format!(
        "POST {path} HTTP/1.1\r\nHost: toolwarden\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn posted(answer: &str) -> Value {
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    serde_json::from_str(body).unwrap_or_default()
}

fn begun(house: &House, arguments: &[&str]) -> Child {
    let started = Command::new(env!("CARGO_BIN_EXE_toolwarden"))
        .args(arguments)
        .current_dir(house.path("space"))
        .env_clear()
        .env("HOME", house.path("home"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    assert!(started.is_ok(), "{started:?}");
    let Ok(started) = started else { unreachable!("asserted") };
    started
}

fn kill(mut process: Child) {
    // It may have ended already.
    let _ = process.kill();
    assert!(process.wait().is_ok());
}

/// Calls again and again while something is done; how many calls there were, and what the bad ones answered.
fn calling(servers: &[(&Server, &str)], work: impl FnOnce()) -> (usize, Vec<String>) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let calls = |server: &Server, token: &str| {
            let (mut number, mut bad) = (0, Vec::new());
            while !over.load(Ordering::Relaxed) {
                let answer = read(server, token);
                number += 1;
                if !is_read(&answer) {
                    bad.push(answer);
                }
            }
            (number, bad)
        };
        let callers: Vec<_> = servers.iter().map(|(server, token)| scope.spawn(move || calls(server, token))).collect();
        work();
        over.store(true, Ordering::Relaxed);
        let ended = callers.into_iter().map(|caller| caller.join().unwrap_or((0, vec!["it broke".to_owned()])));
        ended.fold((0, Vec::new()), |(number, bad), (more, worse)| (number + more, [bad, worse].concat()))
    })
}

#[test]
fn vault_4_calls_go_on_while_the_key_is_rotated() {
    let house = house("[audit]\ncheckpoints = \"200ms\"\n");
    let server = Server::start(&house);
    let token = issue(&house);
    assert!(is_read(&read(&server, &token)), "{}", read(&server, &token));
    assert_eq!(signers(&house).len(), 1);
    for root in 2..4 {
        let (calls, bad) = calling(&[(&server, &token)], || {
            let ran = house.run(&["vault", "rotate-key"]);
            assert!(
                ran.code == 0 && ran.out.contains(&format!("root {root} seals the store")),
                "{}{}",
                ran.out,
                ran.err
            );
            assert_eq!(ran.err, "", "nobody watches");
        });
        assert!(bad.is_empty() && calls > 0, "{calls}: {bad:?}");
        assert!(is_read(&read(&server, &token)));
        // One record, signed by a root after the other, is whole.
        assert!(eventually(|| signers(&house).len() == root), "{:?}", signers(&house));
        assert_over(&house, root, 1);
    }
    let log = house.read("server.log");
    assert!(log.contains("root 3 seals from now on") && !log.contains("ERROR"), "{log}");
    let record = house.json(&["audit", "query", "--kind", "event"]).to_string();
    assert!(record.contains("vault_rotate_key") && record.contains("root 3 is to seal"), "{record}");
    // What is kept opens for the next process, with and without a server.
    server.stop();
    assert_over(&house, 3, 1);
    let server = Server::start_with(&house, &[]);
    assert!(is_read(&read(&server, &token)), "{}", read(&server, &token));
    let other = issue(&house);
    assert!(is_read(&read(&server, &other)));
    assert_over(&house, 3, 2);
}

#[test]
fn vault_4_two_gateways_go_on_through_a_rotation() {
    let cluster = Cluster::start();
    assert!(cluster.is_ok(), "{cluster:?}");
    let Ok(cluster) = cluster else { unreachable!("asserted") };
    let store = format!("[store]\nurl = \"{}\"\n", cluster.url());
    let (one, other) = (house(&store), house(&store));
    let token = issue(&one);
    // Whoever shares a store needs the master key.
    assert!(std::fs::create_dir_all(other.path("home/.config/toolwarden")).is_ok());
    assert!(std::fs::copy(one.path(KEY), other.path(KEY)).is_ok());
    let (here, there) = (Server::start_with(&one, &[]), Server::start_with(&other, &[]));
    assert!(is_read(&read(&here, &token)) && is_read(&read(&there, &token)));
    let (calls, bad) = calling(&[(&here, &token), (&there, &token)], || {
        assert_eq!(one.run(&["vault", "rotate-key"]).code, 0);
    });
    assert!(bad.is_empty() && calls > 1, "{calls}: {bad:?}");
    // Issued at either, a token counts at the other.
    let (after, back) = (issue(&one), issue(&other));
    assert!(eventually(|| is_read(&read(&there, &after))), "{}", read(&there, &after));
    assert!(eventually(|| is_read(&read(&here, &back))), "{}", read(&here, &back));
    for house in [&one, &other] {
        assert_over(house, 2, 3);
        let log = house.read("server.log");
        assert!(log.contains("root 2 seals from now on") && !log.contains("ERROR"), "{log}");
    }
    // Both at once are one rotation; the second to ask helps with the first.
    let (calls, bad) = calling(&[(&here, &after), (&there, &back)], || {
        let mut first = begun(&one, &["vault", "rotate-key"]);
        assert!(eventually(|| rotation(&other).is_some()));
        let second = other.json(&["vault", "rotate-key"]);
        assert_eq!(second.get("root"), Some(&json!(3)), "{second}");
        assert!(first.wait().is_ok_and(|status| status.success()));
    });
    assert!(bad.is_empty() && calls > 1, "{calls}: {bad:?}");
    assert_over(&one, 3, 3);
    assert_over(&other, 3, 3);
}

#[test]
fn vault_4_a_killed_server_is_followed_by_one_that_goes_on() {
    let house = house("");
    let server = Server::start(&house);
    let token = issue(&house);
    assert_eq!(step(&house, &json!({})).get("state"), Some(&json!("waiting")));
    server.kill();
    assert_eq!(rotation(&house), Some((2, "waiting".to_owned())));
    let server = Server::start_with(&house, &[]);
    assert!(is_read(&read(&server, &token)));
    let sealing = step(&house, &json!({ "root": 2 }));
    assert_eq!((sealing.get("root"), sealing.get("state")), (Some(&json!(2)), Some(&json!("sealing"))), "{sealing}");
    server.kill();
    assert_eq!(roots(&house), [("former".to_owned(), 1), ("current".to_owned(), 0)]);
    let status = house.run(&["vault", "status"]);
    assert!(
        status.out.contains("root 2 seals, values to be sealed again: 1; `toolwarden vault rotate-key` goes on"),
        "{}",
        status.out
    );
    let server = Server::start_with(&house, &[]);
    assert!(is_read(&read(&server, &token)), "{}", read(&server, &token));
    // The same command goes on, and begins no other.
    assert_eq!(house.json(&["vault", "rotate-key"]).get("root"), Some(&json!(2)));
    assert!(is_read(&read(&server, &token)));
    assert_over(&house, 2, 1);
    // Who goes on with one that is over does nothing, and none that never was is gone on with.
    assert_eq!(step(&house, &json!({ "root": 2 })).get("state"), Some(&json!("done")));
    let refused = step(&house, &json!({ "root": 3 }));
    assert_eq!(refused.pointer("/error/code"), Some(&json!("bad_input")), "{refused}");
    assert_over(&house, 2, 1);
}

#[test]
fn vault_4_killed_at_any_moment_nothing_is_lost() {
    let house = house("");
    let tokens: Vec<String> = {
        let server = Server::start(&house);
        let request = json!({ "role": "worker", "task": "t1", "job": "j1", "user": "ada", "place": {} });
        let issue = || exchange(UnixStream::connect(house.path(SOCKET)), &post("/api/v1/tokens/issue", &request));
        let issued: Vec<Value> = (0..350).map(|_| posted(&issue())).collect();
        let text = |issued: &Value| issued.get("token").and_then(Value::as_str).unwrap_or_default().to_owned();
        assert!(issued.iter().all(|issued| text(issued).starts_with("tw_")), "{:?}", issued.first());
        server.stop();
        issued.iter().map(text).collect()
    };
    let (first, last) = (tokens.first().cloned().unwrap_or_default(), tokens.last().cloned().unwrap_or_default());
    // The command by itself, killed while its root waits.
    let rotating = begun(&house, &["vault", "rotate-key"]);
    assert!(eventually(|| rotation(&house).is_some()));
    kill(rotating);
    assert_eq!(rotation(&house), Some((2, "waiting".to_owned())));
    // Then servers, in the middle of sealing again, a little later each time.
    for round in 0..40_u64 {
        let server = Server::start_with(&house, &[]);
        if rotation(&house).is_some_and(|(_, state)| state == "waiting") {
            step(&house, &json!({ "root": 2 }));
        }
        let connected = UnixStream::connect(house.path(SOCKET));
        let sent = connected.and_then(|mut stream| {
            let request = post("/api/v1/vault/rotate_key", &json!({ "root": 2 }));
            std::io::Write::write_all(&mut stream, request.as_bytes())?;
            // Held while the server works: one who asks no more is not worked for.
            std::thread::park_timeout(std::time::Duration::from_millis(round));
            Ok(stream)
        });
        assert!(sent.is_ok(), "{sent:?}");
        server.kill();
        let found = roots(&house);
        assert_eq!(found.iter().map(|(_, sealed)| sealed).sum::<u64>(), 350, "{found:?}");
        assert_eq!(found.len(), 2, "no second rotation: {found:?}");
        let server = Server::start_with(&house, &[]);
        assert!(is_read(&read(&server, &first)) && is_read(&read(&server, &last)));
        server.kill();
        if rotation(&house).is_none() {
            break;
        }
    }
    if rotation(&house).is_some() {
        assert_eq!(house.json(&["vault", "rotate-key"]).get("root"), Some(&json!(2)));
    }
    assert_over(&house, 2, 350);
    let server = Server::start_with(&house, &[]);
    assert!(tokens.iter().step_by(50).all(|token| is_read(&read(&server, token))));
}

#[test]
fn vault_4_another_key_rotates_nothing() {
    let house = House::new();
    assert_eq!(house.run(&["tokens", "issue", "--person"]).code, 0);
    let key = house.read(KEY);
    let other = key.replace(|digit: char| digit.is_ascii_hexdigit() && !"toolwarden-key-1:".contains(digit), "7");
    assert_ne!(key, other);
    house.write(KEY, &other);
    for command in [&["vault", "status"][..], &["vault", "rotate-key"]] {
        let ran = house.run(command);
        assert!(ran.code == 1 && ran.err.contains("nothing was changed"), "{command:?}: {}{}", ran.out, ran.err);
        assert!(!ran.err.contains(key.trim()) && !ran.err.contains(other.trim()));
    }
    house.write(KEY, &key);
    assert_over(&house, 1, 1);
    // Without a server, too.
    let rotated = house.json(&["vault", "rotate-key"]);
    assert_eq!((rotated.get("root"), rotated.get("sealed_again")), (Some(&json!(2)), Some(&json!(1))), "{rotated}");
    assert_over(&house, 2, 1);
}

#[test]
fn vault_4_status_says_where_the_key_comes_from() {
    let house = House::new();
    house.write(CONFIG, "[vault]\nkey = \"file:keys/mine.key\"\n");
    let ran = house.run(&["vault", "status"]);
    assert!(ran.code == 0 && ran.err.is_empty(), "{}", ran.err);
    assert!(ran.out.starts_with("backend  file\n") && ran.out.contains("~~/home/.config/toolwarden/keys/mine.key"));
    assert!(
        ran.out.contains(
            "ROOT  STATE    RECORDS  CHANGES  TOKENS  APPROVALS\n1     current  0        0        0       0\n"
        ),
        "{}",
        ran.out
    );
    let key = house.read("home/.config/toolwarden/keys/mine.key");
    let secret = key.trim().rsplit(':').next().unwrap_or_default().to_owned();
    assert!(secret.len() >= 32 && !ran.out.contains(&secret));
    let house = House::new();
    house.write(CONFIG, "[vault]\nkey = \"plaintext\"\n");
    let ran = house.run(&["vault", "status"]);
    assert!(ran.code == 0 && ran.out.starts_with("backend  basic_text\n"), "{}", ran.out);
    assert!(ran.err.contains("warning: ") && ran.err.contains("whoever can read the database"), "{}", ran.err);
    let status = house.json(&["vault", "status"]);
    assert_eq!((status.get("backend"), status.get("protected")), (Some(&json!("basic_text")), Some(&json!(false))));
    assert!(status.get("warning").is_some_and(Value::is_string), "{status}");
    assert_eq!(house.run(&["vault", "rotate-key"]).code, 0, "no key protects it, and it rotates all the same");
    // Another source opens nothing of it.
    house.write(CONFIG, "");
    let ran = house.run(&["vault", "status"]);
    assert!(ran.code == 1 && ran.err.contains("basic_text"), "{}", ran.err);
}
