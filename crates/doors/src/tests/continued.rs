//! Calls that go on in further rounds: each round is judged, checked and counted as of now.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwarden_core::{Bearer, Caller, Claims, Keyring, NewToken, Secret, TOKEN_BYTES};
use toolwarden_gateway::{Credential, Hold, Identities};
use toolwarden_store::state::{Author, Feed, Tokens};
use toolwarden_store::{Database, Location, State};
use toolwarden_vault::FileKeyring;

use super::doors::{Speech, walk};
use super::held_in_client::text;
use super::held_tasks::one;
use super::house::{Given, House, Noon};
use super::pipe::Pipe;
use super::recorder::{Recorder, Speaks};

const ASKS: &str = r#"{"resultType":"input_required","inputRequests":{"name":{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}},"requestState":"theirs"}"#;
const DONE: &str = r#"{"resultType":"complete","content":[{"type":"text","text":"done"}]}"#;
const MAY_ASK: &str = "may_ask = [\"elicitation\"]";
const LOOKED_AT: &str = "may_ask = [\"elicitation\"]\ntools.write = { review = \"result\" }";
const OPEN: Given = Given { server: MAY_ASK, hold: Some(Hold::Return), allowlist: &["notes:*"], ..Given::OPEN };

fn called() -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "write", "arguments": {}}})
}

fn answer(question: &Value) -> Value {
    let id = question.get("id").cloned().unwrap_or_default();
    json!({"jsonrpc": "2.0", "id": id, "result": {"action": "accept", "content": {"name": "x"}}})
}

/// The next question of the server.
async fn question(pipe: &mut Pipe) -> Value {
    let asked = pipe.hear_besides(&["tools", "prompts", "resources"]).await;
    assert_eq!(asked.get("method"), Some(&json!("elicitation/create")), "{asked}");
    asked
}

/// Between two rounds a person has to look at results: what the second one gives is kept for them.
#[tokio::test]
async fn core_5_a_second_round_is_checked_by_the_policy_that_judged_it() {
    let house = House::before(&OPEN, Speaks::Modern).await;
    let Some(house) = house else { unreachable!("a house is built") };
    house.recorder.answers(ASKS);
    let mut pipe = Pipe::open_as(&house, one(), Speech::Legacy, &json!({"elicitation": {}})).await;
    pipe.say(&called()).await;
    let asked = question(&mut pipe).await;
    house.judge_by(&Given { server: LOOKED_AT, ..OPEN });
    house.recorder.answers(DONE);
    pipe.say(&answer(&asked)).await;
    let said = pipe.hear_besides(&["tools", "prompts", "resources"]).await;
    assert!(said.pointer("/result/_meta/toolwarden~1approval").is_some(), "{said}");
    assert!(!said.to_string().contains("\"done\""), "{said}");
    assert_eq!(house.recorder.calls().len(), 2);
}

struct Limited {
    house: House,
    state: State,
    token: NewToken,
    claims: Claims,
    _directory: tempfile::TempDir,
}

/// A gateway that knows one token, good for so many calls.
async fn limited(most: u64) -> Option<Limited> {
    let directory = tempfile::tempdir().ok()?;
    let keyring: Arc<dyn Keyring> = Arc::new(FileKeyring::open(&directory.path().join("keys")).ok()?);
    let database = Database::open(&Location::File(directory.path().join("state.sqlite"))).await.ok()?;
    let state = State::over(database, keyring);
    let token = NewToken::of_random(&[7; TOKEN_BYTES]);
    let claims = Claims { user: Some("ada".to_owned()), max_calls: Some(most), ..Claims::of(Bearer::Person) };
    let author = Author { user: "ada".to_owned(), door: "cli".to_owned(), time: toolwarden_core::Clock::now(&Noon) };
    state.issue_token(&author, &token.id, token.digest, &claims).await.ok()?;
    let feed = Arc::new(Feed::start(state.clone()).await.ok()?);
    let identities = Identities::of(feed, state.clone(), "ada".to_owned(), None);
    let recorder = Recorder::start(Speaks::Modern).await.ok()?;
    let config = format!("{}\n[servers.notes]\nurl = \"{}\"\n{MAY_ASK}\n", OPEN.config, recorder.url);
    let house = House::known_to(&OPEN, &config, recorder, identities).await?;
    house.recorder.answers(ASKS);
    Some(Limited { house, state, token, claims, _directory: directory })
}

impl Limited {
    async fn counted(&self) -> u64 {
        let mut tokens = Tokens::default();
        assert!(self.state.catch_up_tokens(&mut tokens).await.is_ok());
        tokens.by_id.get(&self.token.id).map_or(u64::MAX, |token| token.calls)
    }

    fn caller(&self) -> Caller {
        let mut caller = Caller::of_token(&self.token.id, &self.claims, "ada");
        caller.token.digest = Some(self.token.digest.to_string());
        caller
    }
}

#[tokio::test]
async fn gate_3_every_round_of_a_call_counts_as_one() {
    let Some(limited) = limited(3).await else { unreachable!("a house is built") };
    let mut more = json!({});
    for round in 1..=3 {
        let text = text(&json!({}), &json!({"elicitation": {"form": {}}}), &more);
        let said = walk(&limited.house, limited.caller(), one(), Speech::Modern, &text).await;
        let said: Value = serde_json::from_str(&said).unwrap_or_default();
        let state = said.pointer("/result/requestState").cloned().unwrap_or_default();
        assert!(state.is_string(), "{round}: {said}");
        assert_eq!((limited.counted().await, limited.house.recorder.calls().len()), (round, round as usize));
        more =
            json!({"requestState": state, "inputResponses": {"name": {"action": "accept", "content": {"name": "x"}}}});
    }
    limited.house.recorder.answers(DONE);
    let text = text(&json!({}), &json!({"elicitation": {"form": {}}}), &more);
    let said = walk(&limited.house, limited.caller(), one(), Speech::Modern, &text).await;
    assert!(said.contains("credential_exhausted") && !said.contains("\"done\""), "{said}");
    assert_eq!(limited.house.recorder.calls().len(), 3);
}

#[tokio::test]
async fn gate_3_every_bridged_round_of_a_call_counts_as_one() {
    let Some(limited) = limited(2).await else { unreachable!("a house is built") };
    let credential = Credential::Token(Secret::new(limited.token.text.reveal_to_upstream().to_owned()));
    let capable = json!({"elicitation": {}});
    let mut pipe = Pipe::open_with(&limited.house, one(), Speech::Legacy, &capable, credential).await;
    pipe.say(&called()).await;
    for round in 1..=2 {
        let asked = question(&mut pipe).await;
        assert_eq!((limited.counted().await, limited.house.recorder.calls().len()), (round, round as usize));
        pipe.say(&answer(&asked)).await;
    }
    let said = pipe.hear().await;
    assert!(said.to_string().contains("credential_exhausted"), "{said}");
    assert_eq!(limited.house.recorder.calls().len(), 2);
}
