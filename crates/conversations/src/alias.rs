//! Names behind the common door: `server__tool`, and URIs that carry their server.
//!
//! An alias has single inner underscores only, so that the first `__` is where the server ends. Names
//! are never split to find out what they mean: the alias is looked up, then the tool as listed.

use std::borrow::Cow;

use bytes::Bytes;
use toolwarden_core::{Digest, Weakness, weak};
use toolwarden_mcp::Notification;
use toolwarden_mcp::compose::{self, push_spliced};

/// Longest name shown to clients.
const LONGEST: usize = 128;
const SEPARATOR: &str = "__";
const SCHEME: &str = "toolwarden://";
/// Pages that tools show.
const PAGES: &str = "ui://";

/// How a server is called behind the common door.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias(String);

/// Letters, digits, dashes and single inner underscores.
fn plain(name: &str) -> String {
    if weak::is(Weakness::Names) {
        return name.to_owned();
    }
    let mut alias = String::new();
    for character in name.chars() {
        match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' => alias.push(character),
            _ if !alias.ends_with('_') => alias.push('_'),
            _ => {}
        }
    }
    let trimmed = alias.trim_matches('_');
    if trimmed.is_empty() {
        "server".to_owned()
    } else {
        trimmed.chars().take(48).collect::<String>().trim_matches('_').to_owned()
    }
}

impl Alias {
    /// The alias of a server beside others; unique whatever the case.
    pub fn among(name: &str, others: &[Self]) -> Self {
        let plain = plain(name);
        let is_taken = |alias: &str| others.iter().any(|other| other.0.eq_ignore_ascii_case(alias));
        let mut alias = plain.clone();
        let mut number = 2;
        while is_taken(&alias) && !weak::is(Weakness::Names) {
            alias = format!("{plain}-{number}");
            number += 1;
        }
        Self(alias)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name clients see of a tool or prompt.
    pub fn expose(&self, name: &str) -> String {
        let whole = format!("{}{SEPARATOR}{name}", self.0);
        if whole.len() <= LONGEST {
            return whole;
        }
        let mark: String = Digest::of_bytes(name.as_bytes()).to_string().chars().take(8).collect();
        let room = LONGEST - self.0.len() - SEPARATOR.len() - mark.len() - 1;
        let start: String = name
            .chars()
            .scan(0, |size, next| {
                *size += next.len_utf8();
                (*size <= room).then_some(next)
            })
            .collect();
        format!("{}{SEPARATOR}{start}_{mark}", self.0)
    }

    /// The server's own name of what clients see; none where it is another server's. Shortened names
    /// are found among the names the server listed.
    pub fn reveal<'a>(&self, exposed: &'a str, listed: impl FnOnce() -> Vec<String>) -> Option<Cow<'a, str>> {
        let name = exposed.strip_prefix(&self.0)?.strip_prefix(SEPARATOR)?;
        if !may_be_shortened(exposed) {
            return Some(name.into());
        }
        let listed = listed();
        if listed.iter().any(|own| own == name) {
            return Some(name.into());
        }
        let full = listed.into_iter().find(|own| self.expose(own) == exposed);
        Some(full.map_or(name.into(), Cow::Owned))
    }

    /// The URI clients see of a resource. Web addresses stay: clients may fetch them themselves. Pages of
    /// tools keep their scheme: clients go by it.
    pub fn expose_uri(&self, uri: &str) -> String {
        if is_web(uri) {
            return uri.to_owned();
        }
        match uri.strip_prefix(PAGES) {
            Some(rest) => format!("{PAGES}{}/{rest}", self.0),
            None => format!("{SCHEME}{}/{uri}", self.0),
        }
    }

    /// The server's own URI of what clients see.
    pub fn reveal_uri<'a>(&self, exposed: &'a str) -> Option<Cow<'a, str>> {
        let own = |rest: &'a str| rest.strip_prefix(&self.0)?.strip_prefix('/');
        match exposed.strip_prefix(PAGES) {
            Some(rest) => own(rest).map(|rest| Cow::Owned(format!("{PAGES}{rest}"))),
            None => exposed.strip_prefix(SCHEME).and_then(own).map(Cow::Borrowed),
        }
    }

    /// News of a resource under the name it has behind the common door; none where it names none.
    pub fn renamed(&self, news: &Notification) -> Option<Bytes> {
        let params = news.params.as_ref()?;
        let place = params.value().get("uri")?;
        let shown = compose::quoted(&self.expose_uri(&place.as_str()?));
        let mut text = String::with_capacity(params.raw().len() + shown.len());
        push_spliced(&mut text, params.raw(), &[(params.span_of(place), &shown)]);
        Some(compose::to_client(None, &news.method, Some(&text)))
    }
}

/// Shortened names are nearly as long as names may be, and end with a mark.
fn may_be_shortened(exposed: &str) -> bool {
    let mark = exposed.rsplit_once('_').map_or("", |(_, mark)| mark);
    exposed.len() + 4 > LONGEST && mark.len() == 8 && mark.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub fn is_web(uri: &str) -> bool {
    uri.starts_with("http://") || uri.starts_with("https://")
}

#[cfg(test)]
#[path = "alias_tests.rs"]
mod tests;
