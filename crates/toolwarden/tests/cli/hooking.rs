//! Webhooks of a running gateway: told of held calls, signed, until they take it; and what they answer.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::approving::{call, held, notes, state};
use crate::house::House;
use crate::server::{Server, eventually, exchange};

const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";
const SECRET: &str = "a secret of sixteen bytes and more";

/// A receiver that keeps what it gets, and answers with the first of these statuses that is left; then 200.
struct Receiver {
    address: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    fn open(statuses: &'static [u16]) -> Self {
        let Ok(listener) = TcpListener::bind("127.0.0.1:0") else { unreachable!("a port is free") };
        let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
        let heard: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = heard.clone();
        std::thread::spawn(move || {
            let mut statuses = statuses.iter();
            for mut stream in listener.incoming().flatten() {
                let mut text = Vec::new();
                let mut piece = [0; 4096];
                while !is_whole(&text) {
                    match stream.read(&mut piece) {
                        Ok(0) | Err(_) => break,
                        Ok(count) => text.extend(piece.iter().take(count)),
                    }
                }
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(String::from_utf8_lossy(&text).into_owned());
                let status = statuses.next().copied().unwrap_or(200);
                let location = "location: http://127.0.0.1:1/\r\n";
                let _ = write!(stream, "HTTP/1.1 {status} Said\r\n{location}content-length: 0\r\n\r\n");
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn is_whole(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

/// Deliveries are tried again after seconds.
fn in_time(check: impl Fn() -> bool) -> bool {
    (0..6).any(|_| eventually(&check))
}

fn header(request: &str, name: &str) -> String {
    let found = request.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
    });
    found.unwrap_or_default()
}

fn body(request: &str) -> Value {
    let body = request.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    serde_json::from_str(body).unwrap_or_default()
}

/// As an integration would make it, by the published rule.
fn signature(secret: &str, id: &str, time: &str, body: &str) -> String {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return String::new() };
    mac.update(format!("{id}.{time}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

fn house(receiver: &Receiver, more: &str) -> House {
    let address = &receiver.address;
    let hook = format!("[control.webhooks.ops]\nurl = \"http://{address}/t0ken-in-path\"\nsecret = \"{SECRET}\"\n");
    crate::approving::house(&format!("{hook}{more}"))
}

#[test]
fn review_3_a_webhook_is_told_signed_and_again_until_it_takes_the_message() {
    let receiver = Receiver::open(&[500, 307]);
    let house = house(&receiver, "user = \"bob\"\n");
    let server = Server::start(&house);
    call(&server, "mine");
    let id = held(&house);
    assert!(in_time(|| receiver.heard().len() >= 3), "{:?}", receiver.heard());
    let heard = receiver.heard();
    let ids: Vec<_> = heard.iter().map(|request| header(request, "webhook-id")).collect();
    assert!(ids.iter().all(|one| Some(one) == ids.first() && one.starts_with(&id)), "{ids:?}");
    for request in &heard {
        let (time, body) = (header(request, "webhook-timestamp"), request.split_once("\r\n\r\n"));
        let body = body.map(|(_, body)| body).unwrap_or_default();
        let expected = signature(SECRET, &header(request, "webhook-id"), &time, body);
        assert_eq!(header(request, "webhook-signature"), expected);
    }
    let told = heard.last().map(|request| body(request)).unwrap_or_default();
    assert_eq!(told.pointer("/data/id"), Some(&json!(id)), "{told}");
    assert!(told.pointer("/data/arguments").is_none() && !told.to_string().contains("mine"), "{told}");
    // The link is bob's: it shows the call, and he answers.
    let url = told.pointer("/data/url").and_then(Value::as_str).unwrap_or_default().to_owned();
    let path = url.find("/approve/").and_then(|at| url.get(at..)).unwrap_or_default();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", server.address());
    let page = exchange(server.connect(), &request);
    assert!(page.contains("given to bob") && page.contains("mine"), "{page}");
    assert_eq!(state(&house, &id), "held");
    // Taken once, it is told no more.
    assert!(in_time(|| house.json(&["audit", "query"]).to_string().contains("webhook_delivered")));
    crate::approving::pause(std::time::Duration::from_secs(3));
    assert_eq!(receiver.heard().len(), 3, "{:?}", receiver.heard());
    let log = house.read("server.log");
    assert!(log.contains("does not take its message"), "{log}");
    assert!(!log.contains("t0ken-in-path") && !log.contains(SECRET), "{log}");
}

#[test]
fn review_3_an_integration_answers_in_its_persons_name_once_and_signed() {
    let receiver = Receiver::open(&[]);
    let house = house(&receiver, "user = \"bob\"\nanswers = true\nstates = [\"held\", \"approved\"]\n");
    let server = Server::start(&house);
    call(&server, "mine");
    let id = held(&house);
    assert!(in_time(|| receiver.heard().len() == 1), "{:?}", receiver.heard());
    let now = || {
        let date = std::process::Command::new("date").arg("+%s").output();
        let date = date.map(|date| String::from_utf8_lossy(&date.stdout).trim().parse().unwrap_or(0));
        date.unwrap_or(0_i64)
    };
    let post = |name: &str, secret: &str, message: &str, time: i64, body: &str| {
        let signed = signature(secret, message, &time.to_string(), body);
        let request = format!(
            "POST /approve/hooks/{name} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nConnection: close\r\n\
             webhook-id: {message}\r\nwebhook-timestamp: {time}\r\nwebhook-signature: {signed}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            server.address(),
            body.len()
        );
        let answer = exchange(server.connect(), &request);
        (answer.split(' ').nth(1).unwrap_or_default().to_owned(), answer)
    };
    let yes = json!({ "id": id, "answer": "approve", "note": "fine" }).to_string();
    // Forged, old, of the future, for a name that is none, and not what it should be.
    assert_eq!(post("ops", "another secret of bytes", "m1", now(), &yes).0, "401");
    assert_eq!(post("ops", SECRET, "m2", now() - 3_600, &yes).0, "401");
    assert_eq!(post("ops", SECRET, "m3", now() + 3_600, &yes).0, "401");
    assert_eq!(post("other", SECRET, "m4", now(), &yes).0, "404");
    assert_eq!(post("ops", SECRET, "m5", now(), "{\"id\":1}").0, "422");
    let more = json!({ "id": id, "answer": "approve", "scope": "server" }).to_string();
    assert_eq!(post("ops", SECRET, "m6", now(), &more).0, "422");
    assert_eq!(state(&house, &id), "held");
    assert!(!notes(&server).contains("mine"));
    let (status, said) = post("ops", SECRET, "m7", now(), &yes);
    assert_eq!(status, "200", "{said}");
    assert_eq!(post("ops", SECRET, "m7", now(), &yes).0, "409", "the same message counts once");
    assert!(call(&server, "mine").contains("wrote plan"));
    assert!(in_time(|| state(&house, &id) == "succeeded"));
    // The same words, signed anew: the call ran, and does not run again by it.
    assert_eq!(post("ops", SECRET, "m8", now(), &yes).0, "403");
    assert!(call(&server, "mine").contains("Held by Toolwarden"));
    let no = json!({ "id": held(&house), "answer": "deny", "note": "not again" }).to_string();
    assert_eq!(post("ops", SECRET, "m9", now(), &no).0, "200");
    assert!(call(&server, "mine").contains("not again"));
    let told = |state: &str| receiver.heard().iter().any(|heard| heard.contains(&format!("approval.{state}")));
    assert!(in_time(|| told("held") && told("approved")), "{:?}", receiver.heard());
    let rows = house.json(&["audit", "query"]).to_string();
    assert!(rows.contains("\"webhook\"") && rows.contains("bob"), "{rows}");
}

#[test]
fn review_3_a_message_outlives_the_gateway_that_could_not_deliver_it() {
    let receiver = Receiver::open(&[500, 500, 500]);
    let house = house(&receiver, "");
    let server = Server::start(&house);
    call(&server, "mine");
    assert!(in_time(|| !receiver.heard().is_empty()));
    assert!(std::process::Command::new("kill").args(["-9", &server.pid().to_string()]).status().is_ok());
    server.code();
    let before = receiver.heard().len();
    let _server = Server::start(&house);
    assert!(in_time(|| receiver.heard().len() > before + 1), "{:?}", receiver.heard().len());
    let first = receiver.heard().first().map(|one| header(one, "webhook-id"));
    assert_eq!(receiver.heard().last().map(|one| header(one, "webhook-id")), first, "the same message");
}

#[test]
fn a_webhook_that_cannot_be_used_is_said_before_anything_starts() {
    let receiver = Receiver::open(&[]);
    for (more, words) in
        [("format = \"xml\"\n", "json"), ("answers = true\n", "`user`"), ("states = [\"new\"]\n", "held")]
    {
        let house = house(&receiver, more);
        let refused = house.run(&["serve", "--listen", "127.0.0.1:0"]);
        assert!(refused.code == 2 && refused.err.contains(words), "{more}: {} {}", refused.code, refused.err);
        assert!(!refused.err.contains(SECRET), "{}", refused.err);
    }
}

/// One webhook that nobody answers at keeps no other from its messages.
#[test]
fn review_3_a_webhook_that_is_down_keeps_no_other_from_its_messages() {
    let receiver = Receiver::open(&[]);
    let house = house(&receiver, "");
    // It takes connections, and says nothing.
    let Ok(silent) = TcpListener::bind("127.0.0.1:0") else { unreachable!("a port is free") };
    let address = silent.local_addr().map(|address| address.to_string()).unwrap_or_default();
    let dead = format!("[control.webhooks.dead]\nurl = \"http://{address}/\"\nsecret = \"{SECRET}\"\n");
    house.write(CONFIG, &format!("{dead}{}", house.read(CONFIG)));
    let server = Server::start(&house);
    for number in 0..5 {
        call(&server, &format!("call {number}"));
    }
    // Five deliveries to the silent one would take most of a minute.
    assert!(in_time(|| receiver.heard().len() == 5), "{}", receiver.heard().len());
}

#[test]
fn a_webhook_that_is_written_otherwise_waits_for_a_restart_and_that_is_said() {
    let receiver = Receiver::open(&[]);
    let house = house(&receiver, "user = \"bob\"\nanswers = true\n");
    let _server = Server::start(&house);
    house.write(CONFIG, &house.read(CONFIG).replace(SECRET, "another secret of sixteen bytes"));
    let said = || house.run(&["doctor", "--listen", "127.0.0.1:0"]).out;
    assert!(in_time(|| said().contains("[control.webhooks] changed")), "{}", said());
}
