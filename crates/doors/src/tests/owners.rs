//! A server that one user installed, through the real door with real tokens: for everybody else every byte is as if it
//! were not there (GATE-8).

use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use toolwarden_conversations::Scope;
use toolwarden_core::token::{Bearer, Claims, NewToken, TOKEN_BYTES};
use toolwarden_core::{Clock, Keyring};
use toolwarden_gateway::Identities;
use toolwarden_mcp::headers;
use toolwarden_store::state::{Author, Feed};
use toolwarden_store::{Database, Location, State};
use toolwarden_vault::FileKeyring;

use super::doors::META;
use super::house::{Given, House, Noon};
use super::pipe::Pipe;
use super::recorder::{Recorder, Speaks};
use crate::{AnswerBody, serve_request};

const SERVER: &str = "bob.notes";
const OWNED: Given = Given { owned: &[(SERVER, "bob")], ..Given::OPEN };
const ROLE: &str = "[roles.pm]\nallow = [\"bob.notes:*\", \"notes:*\"]\n";
const HELLO: &str = r#"{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;

/// Who asks: their number is their token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Bob = 1,
    AgentOfBob,
    Eve,
    AgentOfEve,
    AgentOfNobody,
    /// Without any token: the local person, `ada`.
    Anonymous,
}

const OTHERS: [Who; 4] = [Who::Eve, Who::AgentOfEve, Who::AgentOfNobody, Who::Anonymous];
const WITH_TOKENS: [Who; 5] = [Who::Bob, Who::AgentOfBob, Who::Eve, Who::AgentOfEve, Who::AgentOfNobody];

impl Who {
    fn token(self) -> NewToken {
        NewToken::of_random(&[self as u8; TOKEN_BYTES])
    }

    fn claims(self) -> Claims {
        let person = |user: &str| Claims { user: Some(user.to_owned()), ..Claims::of(Bearer::Person) };
        let agent = |user: Option<&str>| Claims {
            role: Some("pm".to_owned()),
            user: user.map(str::to_owned),
            task: Some("t1".to_owned()),
            job: Some("j1".to_owned()),
            ..Claims::of(Bearer::Agent)
        };
        match self {
            Self::Bob => person("bob"),
            Self::AgentOfBob => agent(Some("bob")),
            Self::Eve | Self::Anonymous => person("eve"),
            Self::AgentOfEve => agent(Some("eve")),
            Self::AgentOfNobody => agent(None),
        }
    }
}

struct Stage {
    house: House,
    own: Recorder,
    /// Where the tokens are.
    _directory: tempfile::TempDir,
}

/// Everybody's `notes`, and behind it whatever else is written.
fn text(notes: &Recorder, more: &str) -> String {
    let config = Given::OPEN.config;
    let scope = "tools.write.scope = \"both\"\n";
    format!("{config}{ROLE}[servers.notes]\nurl = \"{}\"\n{scope}{more}", notes.url)
}

fn owned(own: &Recorder) -> String {
    format!("[servers.\"{SERVER}\"]\nurl = \"{}\"\ntools.write.scope = \"both\"\n", own.url)
}

/// Tokens of everybody, in a store of their own.
async fn identities(directory: &std::path::Path) -> Option<Identities> {
    let keyring: Arc<dyn Keyring> = Arc::new(FileKeyring::open(&directory.join("keys")).ok()?);
    let database = Database::open(&Location::File(directory.join("state.sqlite"))).await.ok()?;
    let state = State::over(database, keyring);
    let author = Author { user: "ada".to_owned(), door: "cli".to_owned(), time: Noon.now() };
    for who in WITH_TOKENS {
        let token = who.token();
        state.issue_token(&author, &token.id, token.digest, &who.claims()).await.ok()?;
    }
    let feed = Arc::new(Feed::start(state.clone()).await.ok()?);
    Some(Identities::of(feed, state, "ada".to_owned(), None).with_anonymous(Some(true)))
}

async fn stage(speaks: Speaks, has_it: bool) -> Stage {
    let built = async {
        let (notes, own) = (Recorder::start(speaks).await.ok()?, Recorder::start(speaks).await.ok()?);
        let directory = tempfile::tempdir().ok()?;
        let identities = identities(directory.path()).await?;
        let more = if has_it { owned(&own) } else { String::new() };
        let house = House::known_to(&OWNED, &text(&notes, &more), notes, identities).await?;
        Some(Stage { house, own, _directory: directory })
    };
    let Some(stage) = built.await else { unreachable!("the house is built") };
    stage
}

/// A request of somebody at a path, answered by the real door.
async fn post(
    house: &House,
    who: Who,
    path: &str,
    text: &str,
    more: &[(HeaderName, HeaderValue)],
) -> http::Response<AnswerBody> {
    let mut request = Request::new(Full::from(text.to_owned()));
    *request.method_mut() = if text.is_empty() { Method::GET } else { Method::POST };
    *request.uri_mut() = path.parse().unwrap_or_default();
    let accepts = if text.is_empty() { "text/event-stream" } else { "application/json, text/event-stream" };
    for (name, value) in [
        (http::header::HOST, "localhost"),
        (http::header::CONTENT_TYPE, "application/json"),
        (http::header::ACCEPT, accepts),
    ] {
        request.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if who != Who::Anonymous {
        let bearer = format!("Bearer {}", who.token().text.reveal_to_upstream());
        request.headers_mut().extend(HeaderValue::try_from(bearer).map(|bearer| (AUTHORIZATION, bearer)));
    }
    request.headers_mut().extend(more.iter().cloned());
    serve_request(&house.gateway, request).await
}

/// A modern request, with the headers that mirror it.
fn modern(method: &str, mut params: Value) -> (String, Vec<(HeaderName, HeaderValue)>) {
    let name = ["name", "uri", "taskId"].iter().find_map(|key| params.get(key)?.as_str().map(str::to_owned));
    let meta: Value = serde_json::from_str(&format!("{{{META}}}")).unwrap_or_default();
    if let (Some(params), Some(meta)) = (params.as_object_mut(), meta.get("_meta")) {
        params.insert("_meta".to_owned(), meta.clone());
    }
    let text = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
    let mirrored = HeaderValue::try_from(method).unwrap_or(HeaderValue::from_static("?"));
    let mut more = vec![(headers::VERSION, HeaderValue::from_static("2026-07-28")), (headers::METHOD, mirrored)];
    more.extend(name.map(|name| (headers::NAME, headers::encode(&name))));
    (text, more)
}

async fn whole(response: http::Response<AnswerBody>) -> String {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let mut named: Vec<String> = parts.headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
    // Ids of sessions are random.
    named.retain(|line| !line.starts_with("mcp-session-id"));
    named.sort();
    format!("{} {named:?} {}", parts.status, String::from_utf8_lossy(&body))
}

async fn ask(house: &House, who: Who, path: &str, method: &str, params: Value) -> String {
    let (text, more) = modern(method, params);
    whole(post(house, who, path, &text, &more).await).await
}

/// Everything somebody can say to a server at its own door, and of it at the common one.
async fn everything(house: &House, who: Who) -> Vec<String> {
    let mut said = Vec::new();
    let own = format!("/mcp/{SERVER}");
    for path in [own.as_str(), "/mcp/Bob.Notes", "/mcp"] {
        let exposed = |name: &str| if path == "/mcp" { format!("bob_notes__{name}") } else { name.to_owned() };
        let uri = if path == "/mcp" { format!("toolwarden://{SERVER}/note://a") } else { "note://a".to_owned() };
        let reference = json!({ "type": "ref/prompt", "name": exposed("hello") });
        for (method, params) in [
            ("server/discover", json!({})),
            ("tools/list", json!({})),
            ("prompts/list", json!({})),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("tools/call", json!({ "name": exposed("write"), "arguments": {} })),
            ("tools/call", json!({ "name": exposed("nothing"), "arguments": {} })),
            ("prompts/get", json!({ "name": exposed("hello") })),
            ("resources/read", json!({ "uri": uri })),
            ("completion/complete", json!({ "ref": reference, "argument": { "name": "a", "value": "b" } })),
        ] {
            said.push(format!("{path} {method} {}", ask(house, who, path, method, params).await));
        }
        said.push(format!("{path} initialize {}", whole(post(house, who, path, HELLO, &[]).await).await));
        if path != "/mcp" {
            let foreign = [(headers::SESSION, HeaderValue::from_static("of-nobody"))];
            let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
            said.push(format!("{path} session {}", whole(post(house, who, path, list, &foreign).await).await));
            said.push(format!("{path} stream {}", whole(post(house, who, path, "", &foreign).await).await));
        }
    }
    said
}

#[tokio::test]
async fn gate_8_a_server_of_one_user_is_not_there_for_anybody_else_byte_by_byte() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let (with, without) = (stage(speaks, true).await, stage(speaks, false).await);
        for who in OTHERS {
            let (said, expected) = (everything(&with.house, who).await, everything(&without.house, who).await);
            for (said, expected) in said.iter().zip(&expected) {
                assert_eq!(said, expected, "{speaks:?} {who:?}");
            }
            assert_eq!(said.len(), expected.len());
        }
        assert_eq!(with.own.all(), Vec::new(), "{speaks:?}: nobody reached it");
        for path in ["/readyz", "/metrics"] {
            let page = whole(post(&with.house, Who::Eve, path, "", &[]).await).await;
            assert!(page.contains("notes") && !page.contains(SERVER), "{page}");
        }
    }
}

#[tokio::test]
async fn gate_8_its_owner_sees_it_and_calls_it_and_so_do_the_owners_agents() {
    for speaks in [Speaks::Legacy, Speaks::Modern] {
        let Stage { house, own, _directory } = stage(speaks, true).await;
        for who in [Who::Bob, Who::AgentOfBob] {
            let place = format!("{speaks:?} {who:?}");
            let listed = ask(&house, who, "/mcp", "tools/list", json!({})).await;
            assert!(listed.contains("bob_notes__write") && listed.contains("notes__write"), "{place}: {listed}");
            for (path, name) in [("/mcp", "bob_notes__write"), ("/mcp/bob.notes", "write")] {
                let said = ask(&house, who, path, "tools/call", json!({ "name": name, "arguments": {} })).await;
                assert!(said.contains("done"), "{place} {path}: {said}");
            }
        }
        assert_eq!(own.calls().len(), 4, "{speaks:?}");
        // A tool without a scope stays closed to agents.
        let other = json!({ "name": "other", "arguments": {} });
        let said = ask(&house, Who::AgentOfBob, "/mcp/bob.notes", "tools/call", other.clone()).await;
        assert!(said.contains("Unknown tool: other"), "{said}");
        assert!(ask(&house, Who::Bob, "/mcp/bob.notes", "tools/call", other).await.contains("done"));
    }
}

/// The next message of a stream.
async fn frame(body: &mut AnswerBody) -> String {
    let next = tokio::time::timeout(std::time::Duration::from_secs(10), body.frame()).await;
    let data: Bytes =
        next.ok().flatten().and_then(Result::ok).and_then(|frame| frame.into_data().ok()).unwrap_or_default();
    String::from_utf8_lossy(&data).into_owned()
}

/// A user's server takes no name from one that comes later for everybody, and tells nobody by it that it is there.
#[tokio::test]
async fn gate_8_its_common_name_makes_way_for_everybodys() {
    let Stage { house, own, _directory } = stage(Speaks::Legacy, true).await;
    assert!(ask(&house, Who::Bob, "/mcp", "tools/list", json!({})).await.contains("bob_notes__write"));
    let notes = house.recorder.clone();
    let everybodys = format!("[servers.bob_notes]\nurl = \"{}\"\ntools.write.scope = \"both\"\n", notes.url);
    house.take_over(&OWNED, &text(&notes, &format!("{}{everybodys}", owned(&own))));
    for who in [Who::Eve, Who::Bob] {
        let listed = ask(&house, who, "/mcp", "tools/list", json!({})).await;
        assert!(listed.contains("\"bob_notes__write"), "{who:?}: {listed}");
        assert_eq!(listed.contains("bob_notes-2__write"), who == Who::Bob, "{who:?}: {listed}");
        let call = json!({ "name": "bob_notes__write", "arguments": {} });
        assert!(ask(&house, who, "/mcp", "tools/call", call).await.contains("done"));
    }
    assert_eq!((notes.calls().len(), own.calls().len()), (2, 0));
}

#[tokio::test]
async fn gate_8_only_its_owner_hears_that_it_came_and_went() {
    let Stage { house, own, _directory } = stage(Speaks::Legacy, false).await;
    // The local person is another user.
    let mut pipe = Pipe::open(&house, Scope::All, super::doors::Speech::Legacy).await;
    let list = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {} });
    pipe.say(&list(1)).await;
    assert_eq!(pipe.hear().await.get("id"), Some(&json!(1)));
    assert!(ask(&house, Who::Bob, "/mcp", "tools/list", json!({})).await.contains("notes__write"));
    let (text_of, more) = modern("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true } }));
    let mut bobs = post(&house, Who::Bob, "/mcp", &text_of, &more).await.into_body();
    assert!(frame(&mut bobs).await.contains("acknowledged"));
    let notes = house.recorder.clone();
    for (id, more) in [(2, owned(&own)), (3, String::new())] {
        house.take_over(&OWNED, &text(&notes, &more));
        let heard = frame(&mut bobs).await;
        assert!(heard.contains("tools/list_changed"), "{id}: {heard}");
        let listed = ask(&house, Who::Bob, "/mcp", "tools/list", json!({})).await;
        assert_eq!(listed.contains("bob_notes__"), id == 2, "{listed}");
        pipe.say(&list(id)).await;
        let heard = pipe.hear().await;
        assert_eq!(heard.get("id"), Some(&json!(id)), "nothing is news to others: {heard}");
    }
}

#[tokio::test]
async fn gate_8_a_server_that_gets_another_owner_is_gone_for_the_former_one() {
    let Stage { house, own, _directory } = stage(Speaks::Legacy, true).await;
    let call = || json!({ "name": "write", "arguments": {} });
    assert!(ask(&house, Who::Bob, "/mcp/bob.notes", "tools/call", call()).await.contains("done"));
    let of_eve = Given { owned: &[(SERVER, "eve")], ..Given::OPEN };
    house.take_over(&of_eve, &text(&house.recorder.clone(), &owned(&own)));
    assert!(ask(&house, Who::Bob, "/mcp/bob.notes", "tools/call", call()).await.contains("no server is called"));
    assert!(ask(&house, Who::Eve, "/mcp/bob.notes", "tools/call", call()).await.contains("done"));
    assert_eq!(own.calls().len(), 2);
}
