//! The page of a held call: shown to whoever has a link or is logged in, answered by its form alone.

use serde_json::Value;

use crate::approving::{call, held, house, notes, state};
use crate::house::House;
use crate::identifying::issue;
use crate::server::{Server, eventually, exchange};

/// The path of a link for somebody.
fn link(house: &House, id: &str, user: &str) -> String {
    let link = house.json(&["approvals", "link", id, "--user", user]);
    let url = link.get("url").and_then(Value::as_str).unwrap_or_default();
    let path = url.find("/approve/").and_then(|at| url.get(at..)).unwrap_or_default();
    assert!(path.len() > 20, "{link}");
    path.to_owned()
}

/// A browser, as far as it counts: status and everything that came.
pub fn open(server: &Server, method: &str, path: &str, headers: &str, body: &str) -> (String, String) {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}Content-Type: application/x-www-form-urlencoded\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        server.address(),
        body.len()
    );
    let answer = exchange(server.connect(), &request);
    (answer.split(' ').nth(1).unwrap_or_default().to_owned(), answer)
}

fn look(server: &Server, path: &str, headers: &str) -> (String, String) {
    open(server, "GET", path, headers, "")
}

/// What the form of a page carries.
pub fn hidden(page: &str, name: &str) -> String {
    let after = page.split(&format!("name=\"{name}\" value=\"")).nth(1).unwrap_or_default();
    after.split('"').next().unwrap_or_default().to_owned()
}

fn mark(page: &str) -> String {
    hidden(page, "mark")
}

fn approve(mark: &str) -> String {
    format!("mark={mark}&answer=approve&note=fine")
}

#[test]
fn review_3_a_link_shows_the_call_and_its_form_answers_it_once() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "<script>alert(1)</script> \u{202e}mine");
    let id = held(&house);
    let path = link(&house, &id, "bob");
    // Whoever previews links looks, and looks again.
    for method in ["GET", "HEAD", "GET", "GET"] {
        let (status, page) = open(&server, method, &path, "User-Agent: Slackbot-LinkExpanding 1.0\r\n", "");
        assert_eq!(status, "200", "{page}");
        assert!(!page.contains("<script>alert"), "{page}");
    }
    let (_, page) = look(&server, &path, "");
    for words in
        ["write_note", "notes", "&lt;script&gt;", "not_in_allowlist", "given to bob", "no-store", "same-origin"]
    {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains('\u{202e}') && !page.contains("<title>write_note"), "{page}");
    assert_eq!(state(&house, &id), "held");
    // Answers that were not given by this page's form: none, a made-up one, and one of another call's page.
    call(&server, "other");
    let other = link(&house, &held(&house), "bob");
    let strange = mark(&look(&server, &other, "").1);
    for body in ["answer=approve".to_owned(), approve("00"), approve(&strange)] {
        assert_eq!(open(&server, "POST", &path, "", &body).0, "403", "{body}");
    }
    for evil in ["https://evil.example", "null", "http://127.0.0.1.evil.example"] {
        let origin = format!("Origin: {evil}\r\n");
        assert_eq!(open(&server, "POST", &path, &origin, &approve(&mark(&page))).0, "403", "{evil}");
    }
    // A link that was changed in one letter, and one that nobody gave.
    let last = path.chars().last().unwrap_or('A');
    let changed = format!("{}{}", path.trim_end_matches(last), if last == 'A' { 'B' } else { 'A' });
    for wrong in [changed.as_str(), "/approve/l.AAAA", "/approve/l."] {
        assert_eq!(open(&server, "POST", wrong, "", &approve(&mark(&page))).0, "404", "{wrong}");
    }
    assert_eq!(state(&house, &id), "held");
    assert!(!notes(&server).contains("mine"), "nothing ran");
    // More than once is not for links.
    let wide = format!("{}&scope=tool", approve(&mark(&page)));
    // As a browser sends it.
    let own = format!("Origin: http://{0}\r\nReferer: http://{0}{path}\r\n", server.address());
    for refused in [wide, format!("{}&scope=bogus", approve(&mark(&page))), format!("{}&note=x", approve(&mark(&page)))]
    {
        let (status, page) = open(&server, "POST", &path, &own, &refused);
        assert!(status == "422" && state(&house, &id) == "held", "{page}");
    }
    let (status, done) = open(&server, "POST", &path, &own, &approve(&mark(&page)));
    assert!(status == "200" && done.contains("approved (once) by bob"), "{done}");
    assert!(house.run(&["allowlist"]).out.find("write_note").is_none());
    let (status, again) = open(&server, "POST", &path, "", &format!("mark={}&answer=deny", mark(&page)));
    assert_eq!(status, "409");
    assert!(again.contains("was approved by bob") && state(&house, &id) == "approved", "{again}");
    assert!(call(&server, "<script>alert(1)</script> \u{202e}mine").contains("wrote plan"));
    assert!(eventually(|| state(&house, &id) == "succeeded"));
    // The same link once more: the call ran, and runs no second time by it.
    let (_, again) = open(&server, "POST", &path, "", &approve(&mark(&page)));
    assert!(again.contains("does not count"), "{again}");
    assert!(call(&server, "<script>alert(1)</script> \u{202e}mine").contains("Held by Toolwarden"));
    let rows = house.json(&["audit", "query"]).to_string();
    assert!(rows.contains("approval_approved") && rows.contains("\"link\""), "{rows}");
    assert!(!rows.contains("l."), "no link is in the record");
}

/// Other ports of this machine serve other programs, and what an agent started.
#[test]
fn review_3_a_page_of_another_port_posts_to_nothing_of_the_control_side() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "mine");
    let id = held(&house);
    let path = link(&house, &id, "bob");
    let (_, token) = issue(&house, &["--person", "--user", "carol", "--right", "admin"]);
    let form = approve(&mark(&look(&server, &path, "").1));
    let (host, port) =
        server.address().rsplit_once(':').map(|(host, port)| (host.to_owned(), port.to_owned())).unwrap_or_default();
    let other = if port == "9" { "10" } else { "9" };
    for strange in [
        format!("http://{host}:{other}"),
        format!("http://{host}"),
        format!("http://localhost:{other}"),
        format!("https://{host}:{port}"),
    ] {
        let origin = format!("Origin: {strange}\r\n");
        assert_eq!(open(&server, "POST", &path, &origin, &form).0, "403", "{strange}");
        let login = format!("token={token}&next={id}");
        assert_eq!(open(&server, "POST", "/approve/login", &origin, &login).0, "403", "{strange}");
        for (method, operation) in [("POST", "approvals/approve"), ("GET", "approvals/list"), ("GET", "events")] {
            let shown = format!("{origin}Authorization: Bearer {token}\r\n");
            let asked = open(&server, method, &format!("/api/v1/{operation}"), &shown, "");
            assert_eq!(asked.0, "403", "{strange} {operation}: {asked:?}");
        }
    }
    assert_eq!(state(&house, &id), "held");
    let own = format!("Origin: http://{}\r\n", server.address());
    assert_eq!(open(&server, "POST", &path, &own, &form).0, "200");
    assert_eq!(state(&house, &id), "approved");
}

#[test]
fn review_3_a_denial_by_link_reaches_the_agent_and_nothing_runs() {
    let house = house("");
    let server = Server::start(&house);
    call(&server, "mine");
    let id = held(&house);
    let path = link(&house, &id, "bob");
    let body = format!("mark={}&answer=deny&note=not+on+a+Friday", mark(&look(&server, &path, "").1));
    let (status, page) = open(&server, "POST", &path, "", &body);
    assert!(status == "200" && page.contains("denied"), "{page}");
    let said = call(&server, "mine");
    assert!(said.contains("not on a Friday") && !notes(&server).contains("mine"), "{said}");
}

#[test]
fn review_4_rules_on_approvers_count_for_links_and_pages_too() {
    let house = house("[control.approve.\"notes:write_note\"]\napprovers = [\"bob\", \"group:ops\"]\nreason = true\n");
    let server = Server::start(&house);
    call(&server, "mine");
    let id = held(&house);
    let refused = house.run(&["approvals", "link", &id, "--user", "eve"]);
    assert!(refused.code == 2 && refused.err.contains("not among those"), "{}", refused.err);
    assert_eq!(house.run(&["approvals", "link", &id, "--user", "eve", "--group", "ops"]).code, 0);
    let path = link(&house, &id, "bob");
    let shown = mark(&look(&server, &path, "").1);
    let (status, lacking) = open(&server, "POST", &path, "", &format!("mark={shown}&answer=approve"));
    assert!(status == "403" && lacking.contains("needs a note") && state(&house, &id) == "held", "{lacking}");
    open(&server, "POST", &path, "", &approve(&shown));
    assert_eq!(state(&house, &id), "approved");
    let late = house.run(&["approvals", "link", &id, "--user", "bob"]);
    assert!(late.code == 2 && late.err.contains("nobody can answer it any more"), "{}", late.err);
}

#[test]
fn review_3_whoever_logs_in_at_the_page_answers_with_the_rights_of_their_token() {
    let house = house("[gateway]\nanonymous_loopback = true\n");
    let server = Server::start(&house);
    let (token_id, bob) = issue(&house, &["--person", "--user", "bob", "--right", "approver"]);
    let (_, eve) = issue(&house, &["--person", "--user", "eve", "--right", "user"]);
    let (_, agent) = issue(&house, &["--role", "worker", "--task", "t", "--job", "j", "--user", "bob"]);
    call(&server, "mine");
    let id = held(&house);
    let path = format!("/approve/{id}");
    let (status, page) = look(&server, &path, "");
    assert!(status == "401" && page.contains("Log in") && !page.contains("write_note"), "{page}");
    // What opens the rest of the control side opens no page: browsers send no such header.
    assert_eq!(look(&server, &path, &format!("Authorization: Bearer {bob}\r\n")).0, "401");
    let own = format!("Origin: http://{}\r\n", server.address());
    let log_in =
        |token: &str, next: &str| open(&server, "POST", "/approve/login", &own, &format!("token={token}&next={next}"));
    for wrong in ["nonsense", &agent, ""] {
        let (status, page) = log_in(wrong, &id);
        assert!(status == "401" && !page.contains("write_note"), "{page}");
    }
    let (status, page) = log_in(&bob, &id);
    assert!(status == "200" && page.contains("You answer as bob") && page.contains("May this be called"), "{page}");
    // Bob's right is for answers; the lists of whoever called are not his.
    assert!(!page.contains("value=\"tool\"") && !page.contains("narrowed:"), "{page}");
    // Nothing that other ports of this machine would be sent, and not the token itself.
    assert!(!page.to_lowercase().contains("set-cookie") && !page.contains(&bob), "{page}");
    assert!(page.contains(&format!("action=\"{path}\"")), "{page}");
    assert_eq!(log_in(&bob, "//evil.example/").0, "422");
    // A login is for one call, and its own form.
    let login = hidden(&page, "login");
    let answer = |mark: &str, login: &str| format!("{}&login={login}", approve(mark));
    call(&server, "other");
    let other = held(&house);
    let (_, others) = log_in(&bob, &other);
    assert_eq!(open(&server, "POST", &path, &own, &answer(&mark(&page), &hidden(&others, "login"))).0, "401");
    assert_eq!(open(&server, "POST", &path, &own, &answer(&mark(&others), &login)).0, "403");
    assert_eq!(log_in(&eve, &id).0, "404", "another person sees nothing of it");
    assert_eq!(open(&server, "POST", &path, &own, &approve(&mark(&page))).0, "401");
    assert_eq!(open(&server, "POST", &path, &own, &format!("answer=approve&login={login}")).0, "403");
    let evil = "Origin: https://evil.example\r\n";
    assert_eq!(open(&server, "POST", &path, evil, &answer(&mark(&page), &login)).0, "403");
    assert_eq!(state(&house, &id), "held");
    let (status, done) = open(&server, "POST", &path, &own, &answer(&mark(&page), &login));
    assert!(status == "200" && done.contains("approved (once) by bob"), "{done}");
    assert!(call(&server, "mine").contains("wrote plan"));
    assert_eq!(house.run(&["tokens", "revoke", &token_id]).code, 0);
    let late = format!("mark={}&answer=deny&login={}", mark(&others), hidden(&others, "login"));
    let refused = || open(&server, "POST", &format!("/approve/{other}"), &own, &late).0 == "401";
    assert!(eventually(refused) && state(&house, &other) == "held", "a login ends with its token");
}

/// Whoever answers at the page can say "such calls, from now on", with how many earlier ones that would have let run.
#[test]
fn review_3_the_page_offers_a_narrowed_always() {
    let house = house("[gateway]\nanonymous_loopback = true\n");
    let server = Server::start(&house);
    call(&server, "mine");
    let id = held(&house);
    let shown = house.json(&["approvals", "show", &id]);
    let user = shown.pointer("/caller/user").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (_, own) = issue(&house, &["--person", "--user", &user, "--right", "user"]);
    let origin = format!("Origin: http://{}\r\n", server.address());
    let log_in = || open(&server, "POST", "/approve/login", &origin, &format!("token={own}&next={id}"));
    assert!(eventually(|| log_in().0 == "200"), "{user} {}", log_in().1);
    let (status, page) = log_in();
    let offers: Vec<String> = page
        .split("value=\"narrowed:")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(|value| format!("narrowed:{}", value.replace("&quot;", "\"")))
        .collect();
    assert!(status == "200" && !offers.is_empty() && page.contains("0 of 0 earlier calls"), "{page}");
    // By a link nothing but this one call can be answered.
    let (_, linked) = look(&server, &link(&house, &id, &user), "");
    assert!(!linked.contains("narrowed:"), "{linked}");
    let chosen = offers.iter().find(|offer| offer.contains("free\":[\"")).or(offers.first());
    let scope: String = url::form_urlencoded::byte_serialize(chosen.cloned().unwrap_or_default().as_bytes()).collect();
    let body = format!("mark={}&login={}&answer=approve&scope={scope}", mark(&page), hidden(&page, "login"));
    let (status, done) = open(&server, "POST", &format!("/approve/{id}"), &origin, &body);
    assert!(status == "200" && done.contains("approved (narrowed)"), "{done}");
    let entries = house.run(&["allowlist", "--json"]).out;
    assert!(entries.contains("write_note"), "{entries}");
}
