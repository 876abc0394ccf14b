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

/// A member of what the API answered.
fn member(answer: &(String, String), name: &str) -> String {
    let body = answer.1.split("\r\n\r\n").last().unwrap_or_default();
    let found: Value = body.find('{').and_then(|at| serde_json::from_str(body.get(at..)?).ok()).unwrap_or_default();
    found.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn secret(answer: &(String, String)) -> String {
    member(answer, "token")
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
        assert!(refused.0 == "403" && refused.1.contains("right `user`"), "{scope}: {refused:?}");
        assert!(!refused.1.contains("toolwarden tokens"), "no command for an agent: {refused:?}");
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
    assert!(link.0 == "403" && link.1.contains("give nobody a link"), "{link:?}");
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

/// A token, and the call it made.
struct Member {
    id: String,
    secret: String,
    call: Value,
    held: String,
}

/// An administrator's token, two tokens that it issued, one that the first of these issued, and one of another person
/// that it gave another secret. Each of them made a call, which is held.
fn family(house: &House, server: &Server) -> Vec<Member> {
    let issue_with = |secret_of_issuer: &str| {
        let body = json!({ "person": true, "rights": ["admin"] }).to_string();
        let answer = ask(server, Some(secret_of_issuer), "POST", "/api/v1/tokens/issue", &body);
        (member(&answer, "id"), secret(&answer))
    };
    let root = issue(house, &["--person", "--right", "admin"]);
    let (first, second) = (issue_with(&root.1), issue_with(&root.1));
    let grandchild = issue_with(&first.1);
    let (bobs, _) = issue(house, &["--person", "--user", "bob", "--right", "admin"]);
    let body = json!({ "id": bobs }).to_string();
    let rotated = secret(&ask(server, Some(&root.1), "POST", "/api/v1/tokens/rotate", &body));
    let tokens = [root, first, second, grandchild, (bobs, rotated)];
    let mut members = Vec::new();
    for (number, (id, secret)) in tokens.into_iter().enumerate() {
        assert!(!secret.is_empty());
        let call = json!({ "name": format!("plan-{number}"), "text": "smuggled" });
        let said = server.call_as(&secret, "write_note", &call);
        let all = house.json(&["approvals", "list"]);
        let ids = all.as_array().into_iter().flatten().filter_map(|row| row.get("id")?.as_str());
        let held = ids.into_iter().find(|id| said.contains(id)).map(str::to_owned);
        assert!(held.is_some(), "{said}");
        members.push(Member { id, secret, call, held: held.unwrap_or_default() });
    }
    members
}

#[test]
fn self_5_tokens_of_one_credential_answer_none_of_each_others_calls() {
    let house = house(OPEN);
    let server = Server::start(&house);
    let members = family(&house, &server);
    let post = |token: &str, path: &str, body: &Value| {
        ask(&server, Some(token), "POST", &format!("/api/v1/{path}"), &body.to_string())
    };
    for caller in &members {
        for other in &members {
            let what = format!("{} answers {}", other.id, caller.id);
            for (path, body) in [
                ("approvals/approve", json!({ "id": caller.held })),
                ("approvals/approve", json!({ "id": caller.held, "scope": "session" })),
                ("approvals/approve", json!({ "id": caller.held, "scope": "server" })),
                ("approvals/deny", json!({ "id": caller.held })),
                ("approvals/link", json!({ "id": caller.held, "user": "carol" })),
                ("grants/issue", json!({ "entry": "notes:write_note", "token": caller.id, "calls": 1 })),
                ("allowlist/add", json!({ "entry": "notes:write_note" })),
                ("settings/set", json!({ "key": "auto_run.mode", "value": "run_everything" })),
            ] {
                let refused = post(&other.secret, path, &body);
                assert_eq!(refused.0, "403", "{what} {path} {body}: {refused:?}");
            }
            // Grants for a user do not count for calls of the credential that issued them.
            for user in [None, Some("bob")] {
                let body = json!({ "entry": "notes:write_note", "user": user, "calls": 9 });
                assert_eq!(post(&other.secret, "grants/issue", &body).0, "200");
            }
            let own = format!("Origin: http://{}\r\n", server.address());
            let body = format!("token={}&next={}", other.secret, caller.held);
            let (_, page) = crate::linking::open(&server, "POST", "/approve/login", &own, &body);
            let (mark, login) = (crate::linking::hidden(&page, "mark"), crate::linking::hidden(&page, "login"));
            let answer = format!("mark={mark}&login={login}&answer=approve");
            let at = format!("/approve/{}", caller.held);
            let (_, said) = crate::linking::open(&server, "POST", &at, &own, &answer);
            assert!(said.contains("does not answer it"), "{what}: {said}");
            assert_eq!(state(&house, &caller.held), "held", "{what}");
        }
        let said = server.call_as(&caller.secret, "write_note", &caller.call);
        assert!(said.contains("Held by Toolwarden"), "{said}");
    }
    assert!(!notes(&server).contains("smuggled"));
    // A token that was issued by command is another credential, and so is the person at the machine.
    let (_, unrelated) = issue(&house, &["--person", "--right", "approver"]);
    for (number, caller) in members.iter().enumerate() {
        match number % 2 {
            0 => assert_eq!(post(&unrelated, "approvals/approve", &json!({ "id": caller.held })).0, "200"),
            _ => assert_eq!(house.run(&["approvals", "approve", &caller.held]).code, 0),
        }
        assert!(server.call_as(&caller.secret, "write_note", &caller.call).contains("wrote plan"));
    }
}

#[test]
fn self_5_an_approval_does_not_count_for_whoever_was_shown_the_secret_since() {
    let scene = scene(&[]);
    let (_, admin) = issue(&scene.house, &["--person", "--right", "admin"]);
    assert_eq!(scene.post(&admin, "approvals/approve", &json!({ "id": scene.held })).0, "200");
    let rotated = secret(&scene.post(&admin, "tokens/rotate", &json!({ "id": scene.token.0 })));
    assert!(!rotated.is_empty());
    let said = scene.server.call_as(&rotated, "write_note", &write());
    assert!(!said.contains("wrote plan"), "{said}");
    assert!(!notes(&scene.server).contains("smuggled"));
}

#[test]
fn self_5_a_token_does_not_answer_its_call_by_changing_the_policy() {
    for rights in [&["user"][..], &["admin"]] {
        let scene = scene(rights);
        let token = scene.token.1.clone();
        let changes = [
            ("settings/set", json!({ "key": "auto_run.mode", "value": "run_everything" })),
            ("settings/set", json!({ "key": "auto_run.protections.mcp", "value": false })),
            ("allowlist/add", json!({ "entry": "notes:write_note" })),
            ("allowlist/add", json!({ "entry": "*:*" })),
        ];
        let try_all = |when: &str| {
            for (path, body) in &changes {
                // A protection that is off already is not widened by switching it off.
                let answer = scene.post(&token, path, body);
                let is_refused = answer.0 == "403" && answer.1.contains("not permitted");
                assert!(is_refused || body.to_string().contains("protections"), "{when} {path} {body}: {answer:?}");
            }
        };
        try_all("held");
        scene.stays_held("a changed policy");
        // What only takes something away is done.
        let narrower = json!({ "key": "auto_run.mode", "value": "ask_every_time" });
        assert_eq!(scene.post(&token, "settings/set", &narrower).0, "200");
        assert_eq!(scene.house.run(&["approvals", "deny", &scene.held]).code, 0);
        try_all("denied");
        assert!(!notes(&scene.server).contains("smuggled"));
        // Another credential of the same person may.
        let (_, other) = issue(&scene.house, &["--person", "--right", "user"]);
        let wider = json!({ "key": "auto_run.mode", "value": "run_everything" });
        assert_eq!(scene.post(&other, "settings/set", &wider).0, "200");
    }
}

#[test]
fn self_5_a_token_changes_no_policy_unseen_while_files_are_broken() {
    let scene = scene(&["admin"]);
    scene.house.write("home/.config/toolwarden/toolwarden.toml", "[auto_run\n");
    let controls = json!({ "controls": { "enabled": true, "enable_run_everything": true } });
    let answer = scene.post(&scene.token.1, "admin/set", &controls);
    assert!(answer.0 == "403" && answer.1.contains("not permitted"), "{answer:?}");
}

#[test]
fn gate_3_held_calls_of_a_revoked_token_wait_for_nobody() {
    let scene = scene(&[]);
    let other = issue(&scene.house, &["--person"]);
    scene.server.call_as(&other.1, "write_note", &json!({ "name": "other", "text": "x" }));
    assert_eq!(scene.house.run(&["tokens", "revoke", &scene.token.0]).code, 0);
    assert_eq!(state(&scene.house, &scene.held), "cancelled");
    let recorded = scene.house.run(&["audit", "query", "--json", "--kind", "event"]).out;
    assert!(recorded.contains("approval_cancelled") && recorded.contains("its token was revoked"), "{recorded}");
    let refused = scene.house.run(&["approvals", "approve", &scene.held]);
    assert!(refused.code != 0 && refused.err.contains("cancelled"), "{}", refused.err);
    // Those of others stay.
    assert!(!held(&scene.house).is_empty());
    assert!(!notes(&scene.server).contains("smuggled"));
}

#[test]
fn self_5_a_call_that_could_not_be_kept_counts_like_a_held_one() {
    let house = house("[gateway]\nanonymous_loopback = true\nhold = \"deny\"\n");
    let server = Server::start(&house);
    let (token, other) =
        (issue(&house, &["--person", "--right", "user"]), issue(&house, &["--person", "--right", "user"]));
    let add = |secret: &str| {
        let entry = json!({ "entry": "notes:write_note" }).to_string();
        ask(&server, Some(secret), "POST", "/api/v1/allowlist/add", &entry)
    };
    let said = server.call_as(&token.1, "write_note", &write());
    assert!(said.contains("Denied by Toolwarden"), "{said}");
    let refused = add(&token.1);
    assert!(refused.0 == "403" && refused.1.contains("does not answer its own calls"), "{refused:?}");
    assert!(!notes(&server).contains("smuggled"));
    // Another credential of the same user may.
    assert_eq!(add(&other.1).0, "200");
    assert!(!server.call_as(&token.1, "write_note", &write()).contains("Denied by Toolwarden"));
}
