//! Webhooks as the config has them, with secrets filled in; and what integrations answer.

use std::sync::Arc;

use anyhow::Result;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Request, Response, StatusCode};
use toolwarden_control::Clerk;
use toolwarden_core::{Secret, name};
use toolwarden_notices::{Answers, Format, NotAnswered, Signed, Webhook, WebhookParts};
use toolwarden_sources::WebhookSection;

use super::filled;
use crate::environment::SystemClock;
use crate::output::BadInput;

/// Where integrations answer, below the page of held calls.
pub const HOOKS_PATH: &str = "/approve/hooks/";

/// The webhooks of a config.
///
/// # Errors
/// One cannot be used, or a secret has no value here.
pub fn of(sections: &[WebhookSection]) -> Result<Vec<Webhook>> {
    let one = |section: &WebhookSection| -> Result<Webhook> {
        let bad = |why: String| BadInput(format!("[control.webhooks.{}]: {why}", section.name));
        let fill = |secret: &Secret| {
            // Only the person's own config has a say here, so it may read the environment.
            let text = filled(secret.reveal_to_upstream(), true);
            text.map(Secret::new).map_err(|missing| bad(format!("`{missing}` has no value here")))
        };
        let parts = WebhookParts {
            name: section.name.clone(),
            url: fill(&section.url)?,
            secret: section.secret.as_ref().map(fill).transpose()?,
            format: if section.format == "slack" { Format::Slack } else { Format::Json },
            user: section.user.clone(),
            groups: section.groups.clone(),
            states: section.states.clone(),
            arguments: section.arguments,
            answers: section.answers,
        };
        Ok(Webhook::new(parts).map_err(|error| bad(error.to_string()))?)
    };
    sections.iter().map(one).collect()
}

/// Takes what an integration answers; says what became of it.
pub async fn answer(answers: Arc<Answers>, clerk: Arc<Clerk>, request: Request<Bytes>) -> Response<Bytes> {
    let (parts, body) = request.into_parts();
    let name = parts.uri.path().strip_prefix(HOOKS_PATH).unwrap_or_default();
    let signed = Signed {
        id: header(&parts.headers, "webhook-id"),
        time: header(&parts.headers, "webhook-timestamp"),
        signature: header(&parts.headers, "webhook-signature"),
    };
    if parts.method != http::Method::POST {
        return said(StatusCode::METHOD_NOT_ALLOWED, "error", "answers are posted");
    }
    match answers.take((&clerk, &SystemClock), name, signed, &body).await {
        Ok(approval) => said(StatusCode::OK, "state", approval.state.as_str()),
        Err(why) => {
            let status = match &why {
                NotAnswered::NoSuch => StatusCode::NOT_FOUND,
                NotAnswered::NotSigned(_) => StatusCode::UNAUTHORIZED,
                NotAnswered::Repeated => StatusCode::CONFLICT,
                NotAnswered::Unreadable => StatusCode::UNPROCESSABLE_ENTITY,
                why if why.is_passing() => StatusCode::SERVICE_UNAVAILABLE,
                NotAnswered::Control(_) => StatusCode::FORBIDDEN,
            };
            tracing::warn!("an answer by the webhook `{}` does not count: {why}", name::shown(name));
            said(status, "error", &why.to_string())
        }
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn said(status: StatusCode, name: &str, words: &str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(serde_json::json!({ name: words }).to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
