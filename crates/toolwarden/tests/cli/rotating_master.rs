//! `vault rotate-key --master`: another master key while gateways go on, from data directories whose first root is the former
//! key; and what happens where that is interrupted.

use serde_json::{Value, json};

use crate::house::House;
use crate::identifying::{house, is_read, issue};
use crate::server::Server;

const KEY: &str = "home/.config/toolwarden/master.key";
const CONFIG: &str = "home/.config/toolwarden/toolwarden.toml";

fn status(house: &House, name: &str) -> String {
    house.json(&["vault", "status"]).get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn token(house: &House) -> String {
    issue(house, &["--role", "worker", "--task", "t1", "--job", "j1", "--user", "ada"]).1
}

fn reads(server: &Server, token: &str) -> bool {
    is_read(&server.call_as(token, "read_note", &json!({ "name": "welcome" })))
}

/// Puts a file in the place of another, as a backup does.
fn put(house: &House, from: &str, to: &str) {
    assert!(std::fs::copy(house.path(from), house.path(to)).is_ok(), "{from} to {to}");
}

#[test]
fn self_7_the_master_key_is_rotated_while_a_gateway_runs() {
    let house = house();
    let server = Server::start(&house);
    let token = token(&house);
    let (former, mark) = (house.read(KEY), status(&house, "mark"));
    let rotated = house.json(&["vault", "rotate-key", "--master"]);
    assert_eq!(rotated.pointer("/master/former").and_then(Value::as_str), Some(mark.as_str()), "{rotated}");
    let now = status(&house, "mark");
    assert!(rotated.pointer("/master/mark").and_then(Value::as_str) == Some(now.as_str()) && now != mark, "{rotated}");
    // The former key was the first root: another one seals now, and the key that is left beside opens no list.
    assert_eq!(rotated.get("root").and_then(Value::as_u64), Some(2), "{rotated}");
    assert_ne!(house.read(KEY), former);
    let kept = format!("{KEY}.{mark}");
    assert_eq!(house.read(&kept), former);
    assert!(reads(&server, &token), "calls go on");
    server.stop();
    let server = Server::start(&house);
    assert!(reads(&server, &token), "and after a restart");
    assert_eq!(house.run(&["vault", "rotate-key"]).code, 0, "a root is rotated under the new key");
    server.stop();
    assert_eq!(house.run(&["audit", "verify"]).code, 0, "what former roots signed is checked");
    // Without a gateway, too.
    let again = house.run(&["vault", "rotate-key", "--master"]);
    assert!(again.code == 0 && again.out.contains("delete it once no backup"), "{}{}", again.out, again.err);
    put(&house, &kept, KEY);
    let refused = house.run(&["tokens", "list"]);
    assert!(refused.code != 0 && refused.err.contains("sealed by the master key"), "{}", refused.err);
}

#[test]
fn self_7_a_rotation_of_the_master_key_that_is_interrupted_loses_nothing() {
    let house = house();
    let token = token(&house);
    put(&house, KEY, "former");
    // Before the rows: the key that was to follow lies beside, and counts for nothing.
    assert_eq!(house.run(&["vault", "rotate-key", "--master"]).code, 0);
    put(&house, KEY, "latter");
    // After the rows, and before the file was in its place.
    put(&house, "former", KEY);
    put(&house, "latter", &format!("{KEY}.next"));
    let server = Server::start(&house);
    assert!(reads(&server, &token));
    assert_eq!(house.read(KEY), house.read("latter"), "it is in its place now");
    assert!(!house.path(&format!("{KEY}.next")).exists());
    server.stop();
    // A key that is to follow, of a rotation whose rows were never stored.
    put(&house, "former", &format!("{KEY}.next"));
    let server = Server::start(&house);
    assert!(reads(&server, &token));
    assert_eq!(house.read(KEY), house.read("latter"));
}

#[test]
fn self_7_a_master_key_that_is_kept_elsewhere_is_not_replaced() {
    let house = house();
    house.write(CONFIG, &format!("[vault]\nkey = \"plaintext\"\n{}", house.read(CONFIG)));
    let mark = status(&house, "mark");
    let refused = house.run(&["vault", "rotate-key", "--master"]);
    assert!(refused.code != 0 && refused.err.contains("file:PATH"), "{}", refused.err);
    assert_eq!(status(&house, "mark"), mark);
}
