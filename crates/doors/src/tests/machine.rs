//! A stand-in of a classifier's API: it remembers what it is asked, and answers as it is told.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use toolwarden_classifier::{Kind, Settings};
use toolwarden_core::Secret;

pub(super) const KEY: &str = "sk-very-secret-key";

/// How it answers.
#[derive(Debug, Clone)]
pub(super) enum Says {
    /// This verdict, in the form it is asked for.
    Verdict(&'static str),
    /// This status, with an allowing answer all the same.
    Status(u16),
    /// This text in the place of the answer; `MARK` is the mark of the question.
    Text(&'static str),
    /// A whole body of this type.
    Body(&'static str, String),
    /// This verdict, once the test lets it.
    Later(&'static str, Arc<Notify>),
    Nothing,
}

#[derive(Clone)]
pub(super) struct Machine {
    url: String,
    says: Arc<Mutex<Says>>,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Machine {
    pub(super) async fn start(says: Says) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let Ok(listener) = listener else { unreachable!("{listener:?}") };
        let url = listener.local_addr().map(|address| format!("http://{address}/v1")).unwrap_or_default();
        let machine = Self { url, says: Arc::new(Mutex::new(says)), asked: Arc::default() };
        let serving = machine.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let machine = serving.clone();
                let service = service_fn(move |request| {
                    let machine = machine.clone();
                    async move { Ok::<_, Infallible>(machine.respond(request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        machine
    }

    /// A classifier that asks it.
    pub(super) fn settings(&self) -> Settings {
        let kind = Kind::OpenAi { url: Some(self.url.clone()), key: Some(Secret::new(KEY.to_owned())) };
        Settings { patience: Duration::from_secs(30), ..Settings::new(kind, "small-model") }
    }

    pub(super) fn says(&self, says: Says) {
        *self.says.lock().unwrap_or_else(PoisonError::into_inner) = says;
    }

    /// Everything it was asked.
    pub(super) fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it was asked so often.
    pub(super) async fn is_asked(&self, times: usize) {
        for _ in 0..1000 {
            if self.asked().len() >= times {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let body = request.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let mark = text(&body).rsplit(' ').next().unwrap_or_default().trim_end_matches('.').to_owned();
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        let says = self.says.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let verdict = |word: &str| json!({ "verdict": word, "reason": "so it seems", "mark": mark }).to_string();
        let (status, kind, body) = match says {
            Says::Verdict(word) => (200, "application/json", completion(&verdict(word))),
            Says::Status(status) => (status, "application/json", completion(&verdict("allow"))),
            Says::Text(text) => (200, "application/json", completion(&text.replace("MARK", &mark))),
            Says::Body(kind, body) => (200, kind, body),
            Says::Later(word, when) => {
                when.notified().await;
                (200, "application/json", completion(&verdict(word)))
            }
            Says::Nothing => std::future::pending().await,
        };
        let mut response = Response::new(Full::new(Bytes::from(body)));
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
        response.headers_mut().insert("content-type", http::HeaderValue::from_static(kind));
        if let (300..400, Ok(there)) = (status, http::HeaderValue::try_from(format!("{}/other", self.url))) {
            response.headers_mut().insert("location", there);
        }
        response
    }
}

/// The question's text.
pub(super) fn text(asked: &Value) -> String {
    asked.pointer("/messages/1/content").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn completion(text: &str) -> String {
    let message = json!({ "role": "assistant", "content": text });
    json!({ "choices": [{ "index": 0, "finish_reason": "stop", "message": message }] }).to_string()
}
