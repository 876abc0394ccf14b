//! The page of a held call: a GET shows it, and changes nothing, so that whoever previews links does no harm; only a
//! POST of a form that was shown answers, by a person who logged in or by the one a link was given to.
//!
//! A login is for one call, and lies in its form: cookies would be sent to every port of this machine, where agents
//! serve pages too.

mod form;
mod html;

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderName, Method, Request, Response, StatusCode};
use toolwarden_control::operations::{
    ApprovalsApprove, ApprovalsDeny, ApprovalsShow, approvals_approve, approvals_deny, approvals_show,
};
use toolwarden_control::{Actor, ApprovalView, Clerk, ControlError, LINK_MARK};
use toolwarden_core::{AnswerScope, ApprovalState};

use axum::body::Bytes;

use self::form::{Form, Narrowed, Said};
use self::html::{Carried, Who};
use crate::peer::Peer;

/// Where it begins, at the address of the gateway.
pub const PAGE_PATH: &str = "/approve/";
const OPEN_ONE: &str = "Open the page of a held call: /approve/ID. `toolwarden approvals list` shows the IDs, and \
                        `toolwarden approvals link ID --user NAME` gives one person a link to one call.";
const STYLE: &str = include_str!("page/style.css");

/// Who is logged in, as the porch knows it.
pub trait Visitors: std::fmt::Debug + Send + Sync {
    /// A login for one held call, for whoever shows this token of a person; none where it is not good.
    fn log_in(&self, token: &str, id: &str) -> Option<String>;

    /// Whose login for this call that is, as long as it lasts and their token counts.
    fn visitor(&self, login: &str, id: &str) -> Option<Peer>;
}

/// Who is there, and how that is known.
struct Visitor {
    actor: Actor,
    /// What the form's mark is made with: the link, or the login.
    by: String,
    who: Who,
}

pub(crate) async fn answer(clerk: &Clerk, visitors: &dyn Visitors, request: Request<Bytes>) -> Response<Bytes> {
    let (parts, body) = request.into_parts();
    let place = parts.uri.path().strip_prefix(PAGE_PATH).unwrap_or_default();
    let (is_read, is_post) = (matches!(parts.method, Method::GET | Method::HEAD), parts.method == Method::POST);
    match place {
        "style.css" if is_read => styled(),
        "login" if is_post => log_in(clerk, visitors, &body).await,
        "login" | "" => shown(StatusCode::OK, html::notice(OPEN_ONE)),
        place if is_read || is_post => {
            let form = if is_post { Form::read(&body) } else { Ok(Form::default()) };
            let Ok(form) = form else { return misread() };
            let Some((visitor, id)) = visitor(clerk, visitors, form.login.as_deref(), place) else {
                if place.starts_with(LINK_MARK) {
                    return shown(StatusCode::NOT_FOUND, html::notice("This link is not good (any more)."));
                }
                return shown(StatusCode::UNAUTHORIZED, html::login(Some(place), None));
            };
            if is_post { answered(clerk, visitor, &id, form).await } else { looked_at(clerk, &visitor, &id).await }
        }
        _ => shown(StatusCode::METHOD_NOT_ALLOWED, html::notice("This page is looked at, or answered by its form.")),
    }
}

/// What no form of ours says: which answer was meant is not guessed.
fn misread() -> Response<Bytes> {
    let why =
        "Something was said twice, or is nothing that this page offers. Nothing was answered: look at the call again.";
    shown(StatusCode::UNPROCESSABLE_ENTITY, html::notice(why))
}

/// Whoever a link was given to, or who is logged in; and the held call the page is of.
fn visitor(clerk: &Clerk, visitors: &dyn Visitors, login: Option<&str>, place: &str) -> Option<(Visitor, String)> {
    if place.starts_with(LINK_MARK) {
        let (actor, id) = clerk.link(place)?;
        return Some((Visitor { actor, by: place.to_owned(), who: Who::Linked }, id));
    }
    logged_in(clerk, visitors, login?, place).map(|visitor| (visitor, place.to_owned()))
}

fn logged_in(clerk: &Clerk, visitors: &dyn Visitors, login: &str, id: &str) -> Option<Visitor> {
    let actor = visitors.visitor(login, id)?.at_page().actor(clerk);
    Some(Visitor { actor, by: login.to_owned(), who: Who::LoggedIn })
}

async fn looked_at(clerk: &Clerk, visitor: &Visitor, id: &str) -> Response<Bytes> {
    match viewed(clerk, visitor, id).await {
        Ok(view) => page_of(clerk, visitor, &view, (StatusCode::OK, None)),
        Err(error) => refused(&error),
    }
}

/// The call; with what a narrowed answer could ask for, where more than this one call can be answered.
async fn viewed(clerk: &Clerk, visitor: &Visitor, id: &str) -> Result<ApprovalView, ControlError> {
    let narrowed = visitor.who == Who::LoggedIn;
    let request = approvals_show::Request { id: id.to_owned(), narrowed };
    clerk.perform::<ApprovalsShow>(&visitor.actor, request).await
}

/// The form that was sent.
async fn answered(clerk: &Clerk, visitor: Visitor, id: &str, form: Form) -> Response<Bytes> {
    let wanted = clerk.form_mark(&visitor.by, id);
    // A mark is no secret worth timing: whoever can ask can be shown theirs.
    if wanted.is_none() || form.mark != wanted {
        let why = "This answer was not given by the form of this page. Look at the call again.";
        return shown(StatusCode::FORBIDDEN, html::notice(why));
    }
    if visitor.who == Who::Linked && form.scope.is_some_and(|scope| scope != AnswerScope::Once) {
        let why = "A link answers its one call, once. Nothing was answered.";
        return shown(StatusCode::UNPROCESSABLE_ENTITY, html::notice(why));
    }
    let (id, note) = (id.to_owned(), form.note);
    let outcome = match form.answer {
        Some(Said::Approve) => {
            let Narrowed { conditions, free } = form.narrowed;
            let request = approvals_approve::Request {
                id: id.clone(),
                scope: form.scope,
                note,
                conditions,
                free,
                ..approvals_approve::Request::default()
            };
            clerk.perform::<ApprovalsApprove>(&visitor.actor, request).await
        }
        Some(Said::Deny) => {
            let request = approvals_deny::Request { id: id.clone(), note, ..approvals_deny::Request::default() };
            clerk.perform::<ApprovalsDeny>(&visitor.actor, request).await
        }
        None => return shown(StatusCode::UNPROCESSABLE_ENTITY, html::notice("Neither yes nor no was said.")),
    };
    match outcome {
        Ok(outcome) => {
            let said = outcome.not_done.or(outcome.besides);
            page_of(clerk, &visitor, &outcome.approval, (StatusCode::OK, said.as_deref()))
        }
        Err(error @ (ControlError::BadInput(_) | ControlError::Forbidden(_))) => {
            // What it lacks, or who was faster: beside the call itself.
            match viewed(clerk, &visitor, &id).await {
                Ok(view) => {
                    let status = match (&error, view.state) {
                        (ControlError::Forbidden(_), _) => StatusCode::FORBIDDEN,
                        (_, ApprovalState::Held) => StatusCode::UNPROCESSABLE_ENTITY,
                        // Somebody was faster, or it waits no longer.
                        _ => StatusCode::CONFLICT,
                    };
                    page_of(clerk, &visitor, &view, (status, Some(&error.to_string())))
                }
                Err(error) => refused(&error),
            }
        }
        Err(error) => refused(&error),
    }
}

fn page_of(
    clerk: &Clerk,
    visitor: &Visitor,
    view: &ApprovalView,
    (status, said): (StatusCode, Option<&str>),
) -> Response<Bytes> {
    let Some(mark) = clerk.form_mark(&visitor.by, &view.id) else {
        return shown(StatusCode::SERVICE_UNAVAILABLE, html::notice("The key cannot be used just now."));
    };
    let carried = Carried { mark: &mark, login: (visitor.who == Who::LoggedIn).then_some(visitor.by.as_str()) };
    shown(status, html::call(view, (&visitor.actor.user, visitor.who), carried, said))
}

fn refused(error: &ControlError) -> Response<Bytes> {
    let status = match error {
        ControlError::Forbidden(_) => StatusCode::FORBIDDEN,
        ControlError::NotFound { .. } => StatusCode::NOT_FOUND,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    shown(status, html::notice(&error.to_string()))
}

/// Shows the call to whoever logs in, with a form that carries the login.
async fn log_in(clerk: &Clerk, visitors: &dyn Visitors, body: &[u8]) -> Response<Bytes> {
    let Ok(form) = Form::read(body) else { return misread() };
    let Some(id) = form.next.as_deref().filter(|next| is_id(next)) else {
        return shown(StatusCode::UNPROCESSABLE_ENTITY, html::notice(OPEN_ONE));
    };
    let login = form.token.as_deref().and_then(|token| visitors.log_in(token.trim(), id));
    match login.and_then(|login| logged_in(clerk, visitors, &login, id)) {
        Some(visitor) => looked_at(clerk, &visitor, id).await,
        None => {
            let why = "This token is not a person's, or not good (any more).";
            shown(StatusCode::UNAUTHORIZED, html::login(Some(id), Some(why)))
        }
    }
}

/// An id of a held call is letters and digits.
fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn styled() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(STYLE.as_bytes()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/css; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A page that loads nothing from elsewhere, runs nothing, is kept by nobody, and tells no other site where it was. Told
/// to tell nobody, browsers would not say from where its own form comes.
fn shown(status: StatusCode, page: String) -> Response<Bytes> {
    const POLICY: &str = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; \
                          base-uri 'none'";
    let mut response = Response::new(Bytes::from(page));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(HeaderName::from_static("x-robots-tag"), HeaderValue::from_static("noindex, nofollow"));
    response
}
