//! The page of a held call: a GET shows it, and changes nothing, so that whoever previews links does no harm; only a
//! POST of a form that was shown answers, by a person who logged in or by the one a link was given to.

mod html;

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use toolwarden_control::operations::{
    ApprovalsApprove, ApprovalsDeny, ApprovalsShow, approvals_approve, approvals_deny, approvals_show,
};
use toolwarden_control::{Actor, ApprovalView, Clerk, ControlError, LINK_MARK};
use toolwarden_core::AnswerScope;

use axum::body::Bytes;

use self::html::{Form, Who};
use crate::peer::Peer;

/// Where it begins, at the address of the gateway.
pub const PAGE_PATH: &str = "/approve/";
const COOKIE_NAME: &str = "toolwarden_person";
/// As long as a login lasts; the session says so itself, too.
const LOGIN_SECONDS: u32 = 8 * 60 * 60;
const STYLE: &str = include_str!("page/style.css");

/// Who is logged in, as the porch knows it.
pub trait Visitors: std::fmt::Debug + Send + Sync {
    /// A session for whoever shows this token of a person; none where it is not good.
    fn log_in(&self, token: &str) -> Option<String>;

    /// Whose session that is, as long as their token counts.
    fn visitor(&self, session: &str) -> Option<Peer>;

    /// Whether browsers reach the page by TLS alone.
    fn is_secure(&self) -> bool;
}

/// Who is there, and how that is known.
struct Visitor {
    actor: Actor,
    /// What the form's mark is made with: the link, or the session.
    by: String,
    who: Who,
}

pub(crate) async fn answer(clerk: &Clerk, visitors: &dyn Visitors, request: Request<Bytes>) -> Response<Bytes> {
    let (parts, body) = request.into_parts();
    let place = parts.uri.path().strip_prefix(PAGE_PATH).unwrap_or_default();
    let (is_read, is_post) = (matches!(parts.method, Method::GET | Method::HEAD), parts.method == Method::POST);
    match place {
        "style.css" if is_read => styled(),
        "login" if is_post => log_in(visitors, &body),
        "logout" if is_post => logged_out(visitors),
        "login" | "logout" | "" => shown(StatusCode::OK, html::login(None, None)),
        place if is_read || is_post => {
            let Some((visitor, id)) = visitor(clerk, visitors, &parts.headers, place) else {
                if place.starts_with(LINK_MARK) {
                    return shown(StatusCode::NOT_FOUND, html::notice("This link is not good (any more)."));
                }
                return shown(StatusCode::UNAUTHORIZED, html::login(Some(place), None));
            };
            if is_post { answered(clerk, visitor, &id, &body).await } else { looked_at(clerk, visitor, &id).await }
        }
        _ => shown(StatusCode::METHOD_NOT_ALLOWED, html::notice("This page is looked at, or answered by its form.")),
    }
}

/// Whoever a link was given to, or who is logged in; and the held call the page is of.
fn visitor(clerk: &Clerk, visitors: &dyn Visitors, headers: &HeaderMap, place: &str) -> Option<(Visitor, String)> {
    if place.starts_with(LINK_MARK) {
        let (actor, id) = clerk.link(place)?;
        return Some((Visitor { actor, by: place.to_owned(), who: Who::Linked }, id));
    }
    let session = cookie(headers)?;
    let actor = visitors.visitor(&session)?.at_page().actor(clerk);
    Some((Visitor { actor, by: session, who: Who::LoggedIn }, place.to_owned()))
}

async fn looked_at(clerk: &Clerk, visitor: Visitor, id: &str) -> Response<Bytes> {
    match clerk.perform::<ApprovalsShow>(&visitor.actor, approvals_show::Request { id: id.to_owned() }).await {
        Ok(view) => page_of(clerk, &visitor, &view, None),
        Err(error) => refused(&error),
    }
}

/// The form that was sent.
async fn answered(clerk: &Clerk, visitor: Visitor, id: &str, body: &[u8]) -> Response<Bytes> {
    let form = Form::read(body);
    let wanted = clerk.form_mark(&visitor.by, id);
    // A mark is no secret worth timing: whoever can ask can be shown theirs.
    if wanted.is_none() || form.mark != wanted {
        let why = "This answer was not given by the form of this page. Look at the call again.";
        return shown(StatusCode::FORBIDDEN, html::notice(why));
    }
    let (id, note) = (id.to_owned(), form.note.clone());
    let outcome = match form.answer.as_deref() {
        Some("approve") => {
            let scope = if visitor.who == Who::Linked { Some(AnswerScope::Once) } else { form.scope };
            let request = approvals_approve::Request { id: id.clone(), scope, note, again: false };
            clerk.perform::<ApprovalsApprove>(&visitor.actor, request).await
        }
        Some("deny") => {
            let request = approvals_deny::Request { id: id.clone(), remember: false, note, take_back: false };
            clerk.perform::<ApprovalsDeny>(&visitor.actor, request).await
        }
        _ => return shown(StatusCode::UNPROCESSABLE_ENTITY, html::notice("Neither yes nor no was said.")),
    };
    match outcome {
        Ok(outcome) => {
            let said = outcome.not_done.or(outcome.besides);
            page_of(clerk, &visitor, &outcome.approval, said.as_deref())
        }
        Err(error @ (ControlError::BadInput(_) | ControlError::Forbidden(_))) => {
            // What it lacks, or who was faster: beside the call itself.
            let view = clerk.perform::<ApprovalsShow>(&visitor.actor, approvals_show::Request { id }).await;
            match view {
                Ok(view) => page_of(clerk, &visitor, &view, Some(&error.to_string())),
                Err(error) => refused(&error),
            }
        }
        Err(error) => refused(&error),
    }
}

fn page_of(clerk: &Clerk, visitor: &Visitor, view: &ApprovalView, said: Option<&str>) -> Response<Bytes> {
    let Some(mark) = clerk.form_mark(&visitor.by, &view.id) else {
        return shown(StatusCode::SERVICE_UNAVAILABLE, html::notice("The key cannot be used just now."));
    };
    shown(StatusCode::OK, html::call(view, &visitor.actor.user, visitor.who, &mark, said))
}

fn refused(error: &ControlError) -> Response<Bytes> {
    let status = match error {
        ControlError::Forbidden(_) => StatusCode::FORBIDDEN,
        ControlError::NotFound { .. } => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    shown(status, html::notice(&error.to_string()))
}

fn log_in(visitors: &dyn Visitors, body: &[u8]) -> Response<Bytes> {
    let form = Form::read(body);
    let next = form.next.as_deref().filter(|next| is_id(next));
    let session = form.token.as_deref().and_then(|token| visitors.log_in(token.trim()));
    let Some(session) = session else {
        let why = "This token is not a person's, or not good (any more).";
        return shown(StatusCode::UNAUTHORIZED, html::login(next, Some(why)));
    };
    let mut response = match next {
        Some(next) => elsewhere(&format!("{PAGE_PATH}{next}")),
        None => shown(StatusCode::OK, html::notice("You are logged in: open the page of a held call.")),
    };
    set_cookie(&mut response, visitors, &session, LOGIN_SECONDS);
    response
}

fn logged_out(visitors: &dyn Visitors) -> Response<Bytes> {
    let mut response = shown(StatusCode::OK, html::login(None, None));
    set_cookie(&mut response, visitors, "", 0);
    response
}

/// An id of a held call is letters and digits; nothing else is gone to after a login.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn set_cookie(response: &mut Response<Bytes>, visitors: &dyn Visitors, session: &str, seconds: u32) {
    let secure = if visitors.is_secure() { "; Secure" } else { "" };
    // Lax: a link in a message leads to the page, and no form of another site is sent with it.
    let text = format!("{COOKIE_NAME}={session}; Path={PAGE_PATH}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
    if let Ok(mut value) = HeaderValue::try_from(text) {
        value.set_sensitive(true);
        response.headers_mut().insert(SET_COOKIE, value);
    }
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE_NAME).map(|(_, value)| value.to_owned()).next()
}

fn elsewhere(path: &str) -> Response<Bytes> {
    let mut response = shown(StatusCode::SEE_OTHER, String::new());
    if let Ok(path) = HeaderValue::try_from(path) {
        response.headers_mut().insert(LOCATION, path);
    }
    response
}

fn styled() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(STYLE.as_bytes()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A page that loads nothing from elsewhere, runs nothing, is kept by nobody, and tells nobody where it was.
fn shown(status: StatusCode, page: String) -> Response<Bytes> {
    const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; \
                          base-uri 'none'";
    let mut response = Response::new(Bytes::from(page));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow"));
    response
}
