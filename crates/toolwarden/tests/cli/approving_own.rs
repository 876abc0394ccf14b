//! The credential that made a call never answers it (SELF-5): over the API, at the page, by a link, by a grant, and with a
//! token that it issued or rotated.

use serde_json::{Value, json};

use crate::approving::{held, house, notes, state};
use crate::house::House;
use crate::identifying::{ask, issue};
use crate::server::Server;

const OPEN: &str = "[gateway]\nanonymous_loopback = true\n";

fn write() -> Value {
    json!({ "name": "plan", "text": "smuggled" })
}

/// A running house, and a held call of a token with these rights.
struct Scene {
    house: House,
    server: Server,
    /// The id and the secret of the token.
    token: (String, String),
    held: String,
}

fn scene(rights: &[&str]) -> Scene {
    let house = house(OPEN);
    let server = Server::start(&house);
    let given = rights.iter().flat_map(|&right| ["--right", right]);
    let token = issue(&house, &["--person"].into_iter().chain(given).collect::<Vec<_>>());
    let said = server.call_as(&token.1, "write_note", &write());
    let held = held(&house);
    assert!(said.contains(&held) && !held.is_empty(), "{said}");
    Scene { house, server, token, held }
}

impl Scene {
    fn post(&self, token: &str, path: &str, body: &Value) -> (String, String) {
        ask(&self.server, Some(token), "POST", &format!("/api/v1/{path}"), &body.to_string())
    }

    /// Nothing was answered, and the call made again reaches nobody.
    fn stays_held(&self, what: &str) {
        assert_eq!(state(&self.house, &self.held), "held", "{what}");
        let said = self.server.call_as(&self.token.1, "write_note", &write());
        assert!(said.contains("Held by Toolwarden"), "{what}: {said}");
        assert!(!notes(&self.server).contains("smuggled"), "{what}");
    }
}

#[test]
fn self_5_a_clients_token_answers_nothing_and_changes_nothing() {
    let scene = scene(&[]);
    let (id, token) = (&scene.held, &scene.token.1);
    for scope in ["once", "session", "narrowed", "tool", "server"] {
        let refused = scene.post(token, "approvals/approve", &json!({ "id": id, "scope": scope }));
        assert!(refused.0 == "403" && refused.1.contains("--right user"), "{scope}: {refused:?}");
    }
    for (path, body) in [
        ("approvals/deny", json!({ "id": id })),
        ("approvals/link", json!({ "id": id })),
        ("settings/set", json!({ "key": "auto_run.mode", "value": "run_everything" })),
        ("allowlist/add", json!({ "entry": "notes:write_note" })),
        ("grants/issue", json!({ "entry": "notes:write_note", "calls": 1 })),
        ("tokens/issue", json!({ "person": true, "rights": ["admin"] })),
        ("servers/add", json!({ "name": "evil", "url": "https://evil.example/mcp" })),
        ("tools/set", json!({ "tool": "notes:write_note", "scope": "both" })),
    ] {
        let refused = scene.post(token, path, &body);
        assert!(refused.0 == "403" && refused.1.contains("has no control rights"), "{path}: {refused:?}");
    }
    for path in ["approvals", "events", "status", "settings"] {
        let refused = ask(&scene.server, Some(token), "GET", &format!("/api/v1/{path}"), "");
        assert!(refused.0 == "403" && refused.1.contains("has no control rights"), "{path}: {refused:?}");
    }
    scene.stays_held("a token without rights");
    // The local person does, by command.
    assert_eq!(scene.house.run(&["approvals", "approve", id]).code, 0);
    assert!(scene.server.call_as(token, "write_note", &write()).contains("wrote plan"));
}

#[test]
fn self_5_no_right_lets_a_token_answer_its_own_call() {
    for rights in [&["user"][..], &["approver"], &["admin"], &["user", "approver", "admin"]] {
        let scene = scene(rights);
        let (id, (token_id, token)) = (scene.held.clone(), scene.token.clone());
        for (path, body) in [
            ("approvals/approve", json!({ "id": id })),
            ("approvals/approve", json!({ "id": id, "scope": "server" })),
            ("approvals/deny", json!({ "id": id })),
        ] {
            let refused = scene.post(&token, path, &body);
            assert!(refused.0 == "403" && refused.1.contains("does not answer it"), "{rights:?} {path}: {refused:?}");
        }
        // A grant that it issues counts for others alone.
        scene.post(&token, "grants/issue", &json!({ "entry": "notes:write_note", "calls": 1 }));
        scene.post(&token, "grants/issue", &json!({ "entry": "notes:*", "token": token_id, "calls": 1 }));
        scene.stays_held(&format!("{rights:?}"));
        // The same token with another secret is the same credential.
        let rotated = scene.house.json(&["tokens", "rotate", &token_id]);
        let rotated = rotated.get("token").and_then(Value::as_str).unwrap_or_default().to_owned();
        let refused = scene.post(&rotated, "approvals/approve", &json!({ "id": id }));
        assert!(refused.0 == "403" && refused.1.contains("does not answer it"), "{rights:?}: {refused:?}");
        assert_eq!(state(&scene.house, &id), "held");
        // Another token of the same user does, where it has the right.
        let (_, plain) = issue(&scene.house, &["--person"]);
        assert_eq!(scene.post(&plain, "approvals/approve", &json!({ "id": id })).0, "403");
        let (_, other) = issue(&scene.house, &["--person", "--right", "user"]);
        let done = scene.post(&other, "approvals/approve", &json!({ "id": id }));
        assert!(done.0 == "200", "{rights:?}: {done:?}");
        assert!(scene.server.call_as(&rotated, "write_note", &write()).contains("wrote plan"));
    }
}

#[test]
fn self_5_an_administrators_token_gets_round_its_own_call_by_no_other_credential() {
    let scene = scene(&["admin"]);
    let (id, token) = (scene.held.clone(), scene.token.1.clone());
    let secret = |answer: &(String, String)| {
        let body = answer.1.split("\r\n\r\n").last().unwrap_or_default();
        let found: Value = body.find('{').and_then(|at| serde_json::from_str(body.get(at..)?).ok()).unwrap_or_default();
        found.get("token").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    // A token that it issues, and one that this one issues.
    let child = secret(&scene.post(&token, "tokens/issue", &json!({ "person": true, "rights": ["admin"] })));
    assert!(!child.is_empty());
    let grandchild = secret(&scene.post(&child, "tokens/issue", &json!({ "person": true, "rights": ["approver"] })));
    assert!(!grandchild.is_empty());
    // One of another person that it gives another secret.
    let (bobs, _) = issue(&scene.house, &["--person", "--user", "bob", "--right", "approver"]);
    let stolen = secret(&scene.post(&token, "tokens/rotate", &json!({ "id": bobs })));
    assert!(!stolen.is_empty());
    for other in [&child, &grandchild, &stolen] {
        let refused = scene.post(other, "approvals/approve", &json!({ "id": id }));
        assert!(refused.0 == "403" && refused.1.contains("does not answer it"), "{refused:?}");
        scene.post(other, "grants/issue", &json!({ "entry": "notes:write_note", "calls": 1, "run": null }));
    }
    let link = scene.post(&token, "approvals/link", &json!({ "id": id, "user": "bob" }));
    assert!(link.0 == "403" && link.1.contains("gives nobody a link"), "{link:?}");
    // Nor does it get one that may answer in the client.
    for body in [
        json!({ "person": true, "may_answer": true }),
        json!({ "person": true, "rights": ["admin"], "may_answer": true }),
    ] {
        let refused = scene.post(&token, "tokens/issue", &body);
        assert!(refused.0 == "403" && refused.1.contains("good for more"), "{refused:?}");
    }
    let (trusted, _) = issue(&scene.house, &["--person", "--may-answer"]);
    assert_eq!(scene.post(&token, "tokens/rotate", &json!({ "id": trusted })).0, "403");
    scene.stays_held("an administrator's token");
    // One that ends gets none with rights that does not.
    let (_, short) = issue(&scene.house, &["--person", "--right", "admin", "--expires", "1h"]);
    assert_eq!(scene.post(&short, "tokens/issue", &json!({ "person": true, "rights": ["admin"] })).0, "403");
    assert_eq!(scene.post(&short, "tokens/issue", &json!({ "person": true })).0, "200");
}

#[test]
fn self_5_whoever_logs_in_at_the_page_with_the_calls_own_token_answers_nothing() {
    for rights in [&[][..], &["user"], &["approver"], &["admin"]] {
        let scene = scene(rights);
        let (id, token) = (scene.held.clone(), scene.token.1.clone());
        let own = format!("Origin: http://{}\r\n", scene.server.address());
        let body = format!("token={token}&next={id}");
        let (status, page) = crate::linking::open(&scene.server, "POST", "/approve/login", &own, &body);
        if rights.is_empty() {
            assert!(status == "403" && page.contains("has no control rights"), "{page}");
        } else {
            assert_eq!(status, "200", "{page}");
            let (mark, login) = (crate::linking::hidden(&page, "mark"), crate::linking::hidden(&page, "login"));
            let answer = format!("mark={mark}&login={login}&answer=approve");
            let (_, said) = crate::linking::open(&scene.server, "POST", &format!("/approve/{id}"), &own, &answer);
            assert!(said.contains("does not answer it"), "{rights:?}: {said}");
        }
        scene.stays_held(&format!("{rights:?}"));
    }
}
