//! A small HTTP server that stands for an API: it remembers what it is sent, and answers as it is told.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use toolwarden_classifier::{Classifier, Kind, Parts, Question, Settings};
use toolwarden_core::{Clock, Secret};
use toolwarden_vault::FileKeyring;

pub type Outcome = Result<(), Box<dyn std::error::Error>>;
pub const KEY: &str = "sk-very-secret-key";

/// One request as it came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub head: String,
    pub body: Value,
}

impl Seen {
    /// The question's text, wherever the API has it.
    pub fn text(&self) -> String {
        let of_openai = self.body.pointer("/messages/1/content");
        let found = of_openai.or_else(|| self.body.pointer("/messages/0/content"));
        found.and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub fn mark(&self) -> String {
        let text = self.text();
        text.rsplit(' ').next().unwrap_or_default().trim_end_matches('.').to_owned()
    }

    /// The call, between the lines that carry the mark.
    pub fn call(&self) -> Value {
        let (text, mark) = (self.text(), self.mark());
        let begin = format!("-----BEGIN CALL {mark}-----\n");
        let end = format!("\n-----END CALL {mark}-----");
        let data = text.split_once(&begin).and_then(|(_, rest)| rest.split_once(&end)).map(|(data, _)| data);
        serde_json::from_str(data.unwrap_or_default()).unwrap_or_default()
    }
}

type Answers = dyn Fn(&Seen) -> String + Send + Sync;

#[derive(Clone)]
pub struct StandIn {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl StandIn {
    /// Answers each request with what the function makes of it; with nothing, where that is empty.
    pub async fn answering(answers: impl Fn(&Seen) -> String + Send + Sync + 'static) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let (kept, answers): (_, Arc<Answers>) = (seen.clone(), Arc::new(answers));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, kept.clone(), answers.clone()));
            }
        });
        Ok(Self { url, seen })
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(mut stream: TcpStream, kept: Arc<Mutex<Vec<Seen>>>, answers: Arc<Answers>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    let (head, body) = loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break (head.to_owned(), body.to_owned());
            }
        }
        match stream.read(&mut piece).await? {
            0 => return Ok(()),
            count => bytes.extend(piece.iter().take(count)),
        }
    };
    let seen = Seen { head, body: serde_json::from_str(&body).unwrap_or_default() };
    let answer = answers(&seen);
    kept.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    if answer.is_empty() {
        std::future::pending::<()>().await;
    }
    stream.write_all(answer.as_bytes()).await
}

pub fn http(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// What a well-behaved machine would answer.
pub fn verdict(seen: &Seen, verdict: &str) -> String {
    json!({ "verdict": verdict, "reason": "because", "mark": seen.mark() }).to_string()
}

/// A chat completion with this text.
pub fn completion(text: &str) -> Value {
    json!({
        "id": "c-1",
        "object": "chat.completion",
        "choices": [{
            "index": 0,
            "finish_reason": "stop",
            "message": { "role": "assistant", "content": text, "refusal": null },
        }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 },
    })
}

/// A message with this input of the tool.
pub fn message(input: &str) -> String {
    format!(
        r#"{{"id":"m-1","type":"message","role":"assistant","content":[{{"type":"tool_use","id":"t-1","name":"give_verdict","input":{input}}}],"stop_reason":"tool_use","usage":{{"input_tokens":10,"output_tokens":5}}}}"#
    )
}

pub fn ok(body: &str) -> String {
    http("200 OK", "application/json", body)
}

/// A clock that stands where it is put.
#[derive(Debug)]
pub struct Standing(pub Mutex<i64>);

impl Clock for Standing {
    fn now(&self) -> Timestamp {
        let second = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Timestamp::from_second(1_700_481_600 + second).unwrap_or_default()
    }
}

impl Standing {
    pub fn put(&self, second: i64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = second;
    }
}

pub fn openai(url: &str) -> Settings {
    let kind = Kind::OpenAi { url: Some(format!("{url}/v1")), key: Some(Secret::new(KEY.to_owned())) };
    Settings { patience: std::time::Duration::from_secs(30), ..Settings::new(kind, "small-model") }
}

pub fn anthropic(url: &str) -> Settings {
    let kind = Kind::Anthropic { url: Some(url.to_owned()), key: Some(Secret::new(KEY.to_owned())) };
    Settings { kind, ..openai(url) }
}

pub struct Room {
    pub classifier: Classifier,
    pub clock: Arc<Standing>,
    _keys: tempfile::TempDir,
}

pub fn room(settings: Settings) -> Result<Room, Box<dyn std::error::Error>> {
    let keys = tempfile::tempdir()?;
    let keyring = Arc::new(FileKeyring::open(&keys.path().join("keys"))?);
    let clock = Arc::new(Standing(Mutex::new(0)));
    let classifier = Classifier::new(Parts { settings, keyring, clock: clock.clone(), ledger: None })?;
    Ok(Room { classifier, clock, _keys: keys })
}

/// A question that no other number has.
pub fn question(number: usize) -> Question {
    Question {
        server: "notes".to_owned(),
        tool: "write".to_owned(),
        method: "tools/call".to_owned(),
        claims: Some("Writes a note".to_owned()),
        arguments: format!("{{\"n\":{number}}}"),
        caller: "agent",
        role: Some("worker".to_owned()),
        reason: "not_in_allowlist".to_owned(),
        message: "no allowlist entry matches".to_owned(),
        allow: vec!["notes may be written".to_owned()],
        block: vec!["nothing is deleted".to_owned()],
        identity: "agent:worker:ada".to_owned(),
        digest: number.to_be_bytes().to_vec(),
        ..Question::default()
    }
}
