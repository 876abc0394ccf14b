//! What a server asks of a client, read before anybody is shown it (GATE-18): a form, an address to
//! open, a model's words, or the client's roots.
//!
//! Refuses addresses a server has no business with and forms that ask for secrets. What is shown
//! begins with the server's name, so that no server can speak as somebody else.

mod address;
mod secrets;

use std::borrow::Cow;

use toolwarden_core::json::{Kind, Value, unescape};
use toolwarden_core::{Weakness, name, weak};

use crate::compose::{object_with, quoted};

/// Most text of one question.
const LONGEST: usize = 256 * 1024;

/// Where the params of a question to a model say which server asks it. What a server writes there gives way.
const META_SERVER: &str = "toolwarden/server";

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asks {
    Form,
    /// To open an address; its host.
    Url(String),
    Sampling,
    Roots,
}

impl Asks {
    /// The client capability it needs, and the mode of it where there are several.
    #[must_use]
    pub fn capability(&self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Form => ("elicitation", Some("form")),
            Self::Url(_) => ("elicitation", Some("url")),
            Self::Sampling => ("sampling", None),
            Self::Roots => ("roots", None),
        }
    }

    /// Whether a client that declared these capabilities can be asked.
    #[must_use]
    pub fn is_offered(&self, declared: Option<Value<'_>>) -> bool {
        if weak::is(Weakness::Questions) {
            return true;
        }
        let (name, mode) = self.capability();
        let Some(offered) = declared.and_then(|all| all.get(name)).filter(|it| it.kind() == Kind::Object) else {
            return false;
        };
        let has = |mode: &str| offered.get(mode).is_some_and(|inner| inner.kind() == Kind::Object);
        match mode {
            None => true,
            // Nothing said means forms.
            Some("form") => has("form") || !has("url"),
            Some(mode) => has(mode),
        }
    }
}

/// Why a question is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unaskable {
    #[error("it asks for something no client knows")]
    Unknown,
    #[error("its question is too long")]
    TooLong,
    #[error("its question cannot be read")]
    Malformed,
    #[error("its form asks for a secret; forms must not")]
    Secret,
    #[error("its form has characters that change how it is read")]
    Misleading,
    #[error("the address it wants opened is not one a server may ask for: https, a public host, no credentials")]
    Address,
}

/// Reads a question. `own` are the names this gateway is called by.
///
/// # Errors
/// It must not be passed on, whoever asks.
pub fn read(method: &str, params: Option<Value<'_>>, own: &[String]) -> Result<Asks, Unaskable> {
    if params.is_some_and(|params| params.raw().len() > weak::limit(LONGEST)) {
        return Err(Unaskable::TooLong);
    }
    match method {
        "sampling/createMessage" => Ok(Asks::Sampling),
        "roots/list" => Ok(Asks::Roots),
        "elicitation/create" => {
            let text = |key: &str| params.and_then(|params| params.get(key)).and_then(Value::as_str);
            text("message").ok_or(Unaskable::Malformed)?;
            match params.and_then(|params| params.get("mode")).map(Value::as_str) {
                None => form(params),
                Some(Some(mode)) if mode == "form" => form(params),
                Some(Some(mode)) if mode == "url" => {
                    let url = text("url").ok_or(Unaskable::Malformed)?;
                    address::public_host(&url, own).map(Asks::Url).ok_or(Unaskable::Address)
                }
                Some(_) => Err(Unaskable::Malformed),
            }
        }
        _ => Err(Unaskable::Unknown),
    }
}

fn form(params: Option<Value<'_>>) -> Result<Asks, Unaskable> {
    let properties = params.and_then(|params| params.get("requestedSchema")?.get("properties"));
    let asks_secret = |(key, property): (&str, Value<'_>)| {
        let text = |key: &str| property.get(key).and_then(Value::as_str);
        // Where one chooses or ticks, nothing can be given away: a description may speak of anything.
        let is_choice = text("type").as_deref() == Some("boolean")
            || ["enum", "oneOf"].iter().any(|key| property.get(key).is_some());
        let description = text("description").filter(|_| !is_choice);
        let words = [Some(unescape(key)), text("title"), description];
        words.into_iter().flatten().any(|words| secrets::are_asked_by(&words))
            || text("format").as_deref() == Some("password")
    };
    let asks_secret = properties.into_iter().flat_map(Value::entries).any(asks_secret);
    let misleads = params.and_then(|params| params.get("requestedSchema")).is_some_and(misleads);
    match (asks_secret, misleads) {
        _ if weak::is(Weakness::Questions) => Ok(Asks::Form),
        (true, _) => Err(Unaskable::Secret),
        (_, true) => Err(Unaskable::Misleading),
        (false, false) => Ok(Asks::Form),
    }
}

/// Whether a text in it moves the cursor or turns the direction of what is read.
fn misleads(value: Value<'_>) -> bool {
    let inner = || value.items().any(misleads);
    let member = |(key, value): (&str, Value<'_>)| unescape(key).contains(is_hidden) || misleads(value);
    value.as_str().is_some_and(|text| text.contains(is_hidden)) || inner() || value.entries().any(member)
}

/// The params as a client is shown them: its message says who asks, and where an address leads.
///
/// What a model is asked stays as it is: its words are no message to a person, and a line put before them would
/// be answered, too. Who asks stands beside them.
#[must_use]
pub fn labelled(asks: &Asks, params: Option<Value<'_>>, server: &str) -> Option<String> {
    let params = params?;
    if weak::is(Weakness::Questions) {
        return Some(params.raw().to_owned());
    }
    let message = match asks {
        Asks::Form | Asks::Url(_) => params.get("message").and_then(Value::as_str),
        Asks::Sampling => {
            let meta = params.get("_meta").filter(|meta| meta.kind() == Kind::Object);
            let meta = object_with(meta, &[(META_SERVER, Some(&quoted(&name::shown(server))))]);
            return Some(object_with(Some(params), &[("_meta", Some(&meta))]));
        }
        Asks::Roots => None,
    };
    let Some(message) = message else { return Some(params.raw().to_owned()) };
    let (server, words) = (name::shown(server), readable(&message));
    let message = match asks {
        Asks::Url(host) => format!("Server \"{server}\" asks you to open {host}: {words}"),
        _ => format!("Server \"{server}\" asks: {words}"),
    };
    Some(object_with(Some(params), &[("message", Some(&quoted(&message)))]))
}

/// Lines stay; what moves the cursor or turns the direction of text does not.
fn is_hidden(character: char) -> bool {
    name::is_deceptive(character) && !matches!(character, '\n' | '\t')
}

fn readable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    text.chars().map(|character| if is_hidden(character) { '\u{fffd}' } else { character }).collect()
}

#[cfg(test)]
#[path = "questions_tests.rs"]
mod tests;
