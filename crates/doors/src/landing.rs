//! The small page for people who open the gateway in a browser: what this is, and where to go. It tells nothing about
//! this installation.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Method, Response};

use crate::body::AnswerBody;

const ROOT: &str = "Toolwarden, the gate between AI agents and the tools they call.\n\n\
    /mcp            MCP, all servers\n\
    /mcp/SERVER     MCP, one server\n\
    /api/v1/        the API, for people with a token (docs/api.md)\n\
    /approve/ID     the page of one held call\n\
    /healthz        whether it runs\n\n\
    Add http://ADDRESS/mcp to an MCP client, or run `toolwarden --help`.\n";
const APPROVE: &str = "Pages of held calls are at /approve/ID.\n\n\
    `toolwarden approvals list` shows the calls that wait, with their ids; `toolwarden approvals watch` answers them in a\n\
    terminal. `toolwarden approvals link ID --user NAME` gives one person a link to one call; webhooks send such links.\n\
    Whoever logs in needs a person's token with the right `user` (calls of that user) or `approver` (those of others).\n";

/// The page at a path; none where there is no such page.
pub(crate) fn page(method: &Method, path: &str) -> Option<Response<AnswerBody>> {
    let text = match path {
        "/" => ROOT,
        "/approve" | "/approve/" => APPROVE,
        _ => return None,
    };
    if method != Method::GET && method != Method::HEAD {
        return None;
    }
    let mut response = Response::new(AnswerBody::Whole(Some(Bytes::from_static(text.as_bytes()))));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    Some(response)
}
