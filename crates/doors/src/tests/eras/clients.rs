//! Clients of both eras, over HTTP and over a pipe, that note what each of their calls hears.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use toolwarden_conversations::Scope;
use toolwarden_gateway::{Credential, Gateway};
use toolwarden_mcp::sse::{Decoder, Item};
use toolwarden_mcp::{Era, headers};

use super::super::house::House;
use super::puppet::Wire;
use super::{Noise, Plan, Reaction, Step};
use crate::{serve_request, stdio};

/// What one call heard.
#[derive(Debug)]
pub(super) struct Heard {
    tag: String,
    era: Era,
    steps: Vec<Step>,
    reaction: Reaction,
    noise: Option<Noise>,
    messages: Vec<String>,
    last: Option<Value>,
}

impl Heard {
    /// Where a legacy server has one line for everything, it cannot say for which of a session's calls it
    /// asks: then it is the session that counts.
    pub(super) fn check(&self, wire: Wire) {
        let own = match (wire, self.era) {
            (Wire::Oldest, Era::Legacy) => self.tag.trim_end_matches(|letter: char| letter.is_ascii_digit()).to_owned(),
            _ => format!("{};", self.tag),
        };
        for message in &self.messages {
            assert!(!message.contains("wrong"), "nobody may hear this: {message}\n{self:?}");
            let others = message
                .match_indices("tag-")
                .filter(|(place, _)| !message.get(*place..).is_some_and(|rest| rest.starts_with(&own)));
            assert_eq!(others.count(), 0, "it heard of another call: {message}\n{self:?}");
        }
        if self.reaction == Reaction::GiveUp {
            return;
        }
        let last = self.last.as_ref();
        assert!(last.is_some(), "it has no answer: {self:?}");
        // What a server did not break, and no client refused, ends as it should.
        let breaks = |step: &Step| matches!(step, Step::AnswerForeign | Step::Junk);
        let is_plain = !self.steps.iter().any(breaks);
        let is_willing = self.reaction != Reaction::Awkward || !self.steps.contains(&Step::Ask);
        if is_plain && is_willing {
            let text = last.and_then(|last| last.pointer("/result/content/0/text")).and_then(Value::as_str);
            assert_eq!(text, Some(format!("done {};", self.tag).as_str()), "{self:?}");
        }
    }
}

pub(super) struct Client {
    gateway: Arc<Gateway>,
    era: Era,
    on_pipe: bool,
    common: bool,
}

const CAPABILITIES: &str = r#"{"elicitation":{}}"#;

impl Client {
    pub(super) fn new(house: &House, era: Era, on_pipe: bool, common: bool) -> Self {
        Self { gateway: house.gateway.clone(), era, on_pipe, common }
    }

    pub(super) async fn converse(self, number: usize, calls: &[Plan]) -> Vec<Heard> {
        let heard = |(place, plan): (usize, &Plan)| Heard {
            tag: format!("tag-{number}-{place}"),
            era: self.era,
            steps: plan.steps.clone(),
            reaction: plan.reaction,
            noise: plan.noise,
            messages: Vec::new(),
            last: None,
        };
        let mut calls: Vec<Heard> = calls.iter().enumerate().map(heard).collect();
        if self.on_pipe {
            self.over_pipe(&mut calls).await;
            return calls;
        }
        let session = if self.era == Era::Legacy { self.open().await } else { None };
        let calling = calls.into_iter().enumerate().map(|(place, heard)| self.over_http(place, heard, session.clone()));
        join_all(calling).await
    }

    fn call(&self, id: u64, heard: &Heard, back: Option<(&Value, &Value)>) -> Value {
        let steps: Vec<String> = heard.steps.iter().map(|step| format!("{step:?}")).collect();
        let name = if self.common { "notes__act" } else { "act" };
        let mut params = json!({"name": name, "arguments": {"tag": format!("{};", heard.tag), "steps": steps},
            "_meta": {"progressToken": id}});
        if let (Era::Modern, Some(params)) = (self.era, params.as_object_mut()) {
            let capabilities: Value = serde_json::from_str(CAPABILITIES).unwrap_or_default();
            params.insert(
                "_meta".to_owned(),
                json!({"progressToken": id,
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": capabilities}),
            );
            if let Some((state, responses)) = back {
                params.insert("requestState".to_owned(), state.clone());
                params.insert("inputResponses".to_owned(), responses.clone());
            }
        }
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    }

    fn request(&self, method: Method, message: &Value, session: Option<&HeaderValue>) -> Request<Full<Bytes>> {
        self.request_of(method, message.to_string(), message, session)
    }

    /// The same with a text that need not be a message.
    fn request_of(
        &self,
        method: Method,
        text: String,
        message: &Value,
        session: Option<&HeaderValue>,
    ) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::from(text));
        *request.method_mut() = method;
        *request.uri_mut() = http::Uri::from_static(if self.common { "/mcp" } else { "/mcp/notes" });
        let fixed = [
            (http::header::HOST, "localhost"),
            (http::header::CONTENT_TYPE, "application/json"),
            (http::header::ACCEPT, "application/json, text/event-stream"),
        ];
        for (name, value) in fixed {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        if let Some(session) = session {
            request.headers_mut().insert(headers::SESSION, session.clone());
        }
        if self.era == Era::Modern {
            let name = message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
            request.headers_mut().insert(headers::VERSION, HeaderValue::from_static("2026-07-28"));
            request.headers_mut().insert(headers::METHOD, HeaderValue::from_static("tools/call"));
            request.headers_mut().insert(headers::NAME, headers::encode(name));
        }
        request
    }

    fn hello() -> Value {
        let capabilities: Value = serde_json::from_str(CAPABILITIES).unwrap_or_default();
        json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25",
            "capabilities": capabilities, "clientInfo": {"name": "t", "version": "1"}}})
    }

    async fn open(&self) -> Option<HeaderValue> {
        let opened = serve_request(&self.gateway, self.request(Method::POST, &Self::hello(), None)).await;
        let session = opened.headers().get(headers::SESSION).cloned();
        assert!(session.is_some(), "no session was opened");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        serve_request(&self.gateway, self.request(Method::POST, &ready, session.as_ref())).await;
        session
    }

    /// One call over HTTP, with all its rounds.
    async fn over_http(&self, place: usize, mut heard: Heard, session: Option<HeaderValue>) -> Heard {
        // The same ids for every client.
        let mut id = place as u64 + 1;
        let mut back: Option<(Value, Value)> = None;
        let mut awkward = heard.reaction == Reaction::Awkward;
        if let Some(noise) = heard.noise {
            let noise = self.request_of(Method::POST, noise.message(), &Value::Null, session.as_ref());
            serve_request(&self.gateway, noise).await;
        }
        for _ in 0..20 {
            let message = self.call(id, &heard, back.as_ref().map(|(state, responses)| (state, responses)));
            let response = serve_request(&self.gateway, self.request(Method::POST, &message, session.as_ref())).await;
            let is_stream = response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
            let mut body = response.into_body();
            let mut decoder = Decoder::new(1 << 20);
            let mut last = None;
            while let Some(Ok(frame)) = body.frame().await {
                let Ok(data) = frame.into_data() else { continue };
                let mut texts = Vec::new();
                if is_stream {
                    decoder.feed(data);
                    while let Ok(Some(item)) = decoder.next() {
                        if let Item::Event(event) = item {
                            texts.extend(event.data);
                        }
                    }
                } else {
                    texts.push(data);
                }
                if heard.reaction == Reaction::GiveUp && is_stream && !texts.is_empty() {
                    heard.messages.extend(texts.iter().map(|text| String::from_utf8_lossy(text).into_owned()));
                    self.give_up(id, session.as_ref()).await;
                    // Closing the stream is how a modern client gives up.
                    return heard;
                }
                for text in texts {
                    let said = self.hear(&mut heard, &text, session.as_ref()).await;
                    last = said.filter(|said| said.get("method").is_none()).or(last);
                }
            }
            heard.last = last;
            let result = heard.last.as_ref().and_then(|last| last.get("result"));
            let Some(asks) = result.filter(|it| it.get("resultType") == Some(&json!("input_required"))) else { break };
            let state = asks.get("requestState").cloned().unwrap_or_default();
            let form = |_: &String| reaction(heard.reaction, &heard.tag);
            let asked = asks.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
            let responses: HashMap<String, Value> = asked.keys().map(|key| (key.clone(), form(key))).collect();
            let responses = if std::mem::take(&mut awkward) { json!({}) } else { json!(responses) };
            back = Some((state, responses));
            id += 100;
        }
        heard
    }

    async fn give_up(&self, id: u64, session: Option<&HeaderValue>) {
        if self.era == Era::Legacy {
            let stop = self.request(Method::POST, &cancel(id), session);
            serve_request(&self.gateway, stop).await;
        }
    }

    /// Notes a message; answers it where it is a question.
    async fn hear(&self, heard: &mut Heard, text: &[u8], session: Option<&HeaderValue>) -> Option<Value> {
        let message: Value = serde_json::from_slice(text).ok()?;
        heard.messages.push(message.to_string());
        if message.get("method") == Some(&json!("elicitation/create")) {
            let answer = answer_to(&message, heard.reaction);
            serve_request(&self.gateway, self.request(Method::POST, &answer, session)).await;
        }
        Some(message)
    }

    /// All calls over one pipe. What names no call must be said by nobody.
    async fn over_pipe(&self, calls: &mut [Heard]) {
        let (client, server) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(server);
        let gateway = self.gateway.clone();
        let scope = if self.common { Scope::All } else { Scope::One("notes".into()) };
        let serving = tokio::spawn(async move {
            let client = stdio::Client { scope, credential: &Credential::Local, mode: None };
            let never = std::future::pending();
            let _ = stdio::serve(&gateway, client, (input, output), never, stdio::nothing_to_catch_up).await;
        });
        let (read, mut write) = tokio::io::split(client);
        let mut lines = BufReader::new(read).lines();
        let mut outgoing: Vec<Value> = Vec::new();
        if self.era == Era::Legacy {
            let hello =
                format!("{}\n{}\n", Self::hello(), json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
            assert!(write.write_all(hello.as_bytes()).await.is_ok());
            let _ = lines.next_line().await;
        }
        for noise in calls.iter().filter_map(|heard| heard.noise) {
            assert!(write.write_all(format!("{}\n", noise.message()).as_bytes()).await.is_ok());
        }
        outgoing.extend(calls.iter().enumerate().map(|(place, heard)| self.call(place as u64 + 1, heard, None)));
        let mut open = calls.len();
        while open > 0 {
            for message in outgoing.drain(..) {
                assert!(write.write_all(format!("{message}\n").as_bytes()).await.is_ok());
            }
            let Ok(Some(line)) = lines.next_line().await else { break };
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            assert!(!line.contains("wrong"), "nobody may hear this: {line}");
            let number = message
                .get("id")
                .and_then(Value::as_u64)
                .or(message.pointer("/params/progressToken").and_then(Value::as_u64));
            let by_id = number.and_then(|number| usize::try_from((number.max(1) - 1) % 100).ok());
            let by_tag = calls.iter().position(|heard| line.contains(&format!("{};", heard.tag)));
            let Some(heard) = by_id.or(by_tag).and_then(|place| calls.get_mut(place)) else { continue };
            heard.messages.push(line.clone());
            if heard.reaction == Reaction::GiveUp {
                // Said once; what was on its way before may still come.
                if heard.last.replace(Value::Null).is_none() {
                    outgoing.extend(by_id.map(|place| cancel(place as u64 + 1)));
                    open -= 1;
                }
                continue;
            }
            if message.get("method") == Some(&json!("elicitation/create")) {
                outgoing.push(answer_to(&message, heard.reaction));
            } else if message.get("method").is_none() {
                let asks = message.pointer("/result/resultType") == Some(&json!("input_required"));
                if asks {
                    let state = message.pointer("/result/requestState").cloned().unwrap_or_default();
                    let keys = message
                        .pointer("/result/inputRequests")
                        .and_then(Value::as_object)
                        .cloned()
                        .unwrap_or_default();
                    let responses: HashMap<String, Value> =
                        keys.keys().map(|key| (key.clone(), reaction(heard.reaction, &heard.tag))).collect();
                    let id = number.unwrap_or(1) + 100;
                    outgoing.push(self.call(id, heard, Some((&state, &json!(responses)))));
                } else {
                    heard.last = Some(message);
                    open -= 1;
                }
            }
        }
        for message in outgoing {
            let _ = write.write_all(format!("{message}\n").as_bytes()).await;
        }
        drop(write);
        serving.abort();
    }
}

fn cancel(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
}

fn reaction(reaction: Reaction, tag: &str) -> Value {
    match reaction {
        Reaction::Decline => json!({"action": "decline"}),
        Reaction::Accept | Reaction::Awkward | Reaction::GiveUp => {
            json!({"action": "accept", "content": {"tag": format!("{tag};")}})
        }
    }
}

/// The answer says for which call the question was.
fn answer_to(question: &Value, how: Reaction) -> Value {
    let id = question.get("id").cloned().unwrap_or_default();
    let message = question.pointer("/params/message").and_then(Value::as_str).unwrap_or_default();
    let tag = message.find("tag-").and_then(|place| message.get(place..)).unwrap_or_default().trim_end_matches(';');
    match how {
        Reaction::Awkward => json!({"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}}),
        how => json!({"jsonrpc": "2.0", "id": id, "result": reaction(how, tag)}),
    }
}

impl Noise {
    /// What a client says that it has no right to say.
    pub(super) fn message(self) -> String {
        match self {
            Self::AnswerUnasked => {
                json!({"jsonrpc": "2.0", "id": "tw-77", "result": {"action": "accept", "content": {"tag": "wrong"}}})
                    .to_string()
            }
            Self::CancelForeign => {
                json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}).to_string()
            }
            Self::Malformed => "{\"jsonrpc\":\"2.0\",\"id\":5,\"id\":6}".to_owned(),
            Self::UnknownMethod => json!({"jsonrpc": "2.0", "id": 555, "method": "puppet/strings"}).to_string(),
        }
    }
}
