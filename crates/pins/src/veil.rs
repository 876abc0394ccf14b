//! Marks in the place of secrets, where people are shown what starts a server.
//!
//! A mark says that something is there, and changes with it. Whoever has no key can neither read nor
//! guess it.

use std::ops::Range;
use std::sync::LazyLock;

use toolwarden_core::{Digest, Keyring, Purpose};

use toolwarden_guard::screen::Secrets;

/// What every mark begins with. Texts that have it themselves are marked whole, so that none passes for a mark.
const MARK: &str = "mark ";
/// Nobody can look for two values of one mark without the key.
const DIGITS: usize = 12;
/// What stands there without a key.
const HIDDEN: &str = "…";

/// What names have in them whose values are secret.
const SECRET_NAMES: [&str; 7] = ["key", "token", "secret", "passw", "pwd", "passphrase", "credential"];

static SECRETS: LazyLock<Option<Secrets>> = LazyLock::new(Secrets::new);

pub(super) struct Veil<'a> {
    /// Without one, every mark is the same.
    keyring: Option<&'a dyn Keyring>,
}

/// An address, or another text, with nothing in the place of what looks secret in it.
#[must_use]
pub fn without_secrets(text: &str) -> String {
    Veil { keyring: None }.words(text)
}

/// The same for the arguments of a command.
#[must_use]
pub fn arguments_without_secrets(arguments: &[String]) -> Vec<String> {
    Veil { keyring: None }.arguments(arguments)
}

impl<'a> Veil<'a> {
    pub(super) fn new(keyring: &'a dyn Keyring) -> Self {
        Self { keyring: Some(keyring) }
    }

    /// The mark of a value.
    pub(super) fn mark(&self, value: &str) -> String {
        let Some(keyring) = self.keyring else { return HIDDEN.to_owned() };
        let digest = Digest::of_bytes(value.as_bytes());
        let keyed = Digest::from_bytes(keyring.mark(Purpose::Launch, digest.as_bytes()));
        let digits: String = keyed.to_string().chars().take(DIGITS).collect();
        format!("{MARK}{digits}")
    }

    /// Arguments of a command: what stands behind a name that means a secret is one, whatever it looks like.
    pub(super) fn arguments(&self, arguments: &[String]) -> Vec<String> {
        let mut is_value = false;
        let mut shown = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let is_option = argument.starts_with("--");
            shown.push(if is_value && !is_option { self.hidden(argument) } else { self.words(argument) });
            is_value = argument.starts_with('-') && is_name(argument) && means_secret(argument);
        }
        shown
    }

    /// A text with marks for what looks secret in it.
    pub(super) fn words(&self, text: &str) -> String {
        if text.contains(MARK) {
            return self.mark(text);
        }
        let (mut shown, mut rest) = (String::new(), text);
        // Several may stand before one value: `--env=API_KEY=..`.
        while let Some((name, value)) = rest.split_once('=').filter(|(name, _)| is_name(name)) {
            shown.push_str(name);
            shown.push('=');
            if means_secret(name) {
                return shown + &self.hidden(value);
            }
            rest = value;
        }
        shown + &self.address(rest).unwrap_or_else(|| self.without_secrets(rest))
    }

    /// An address: of what is secret in it as a rule, marks alone.
    fn address(&self, text: &str) -> Option<String> {
        let (scheme, rest) = text.split_once("://")?;
        if !is_name(scheme) || rest.contains(char::is_whitespace) {
            return None;
        }
        let (rest, fragment) = cut(rest, '#');
        let (place, query) = cut(rest, '?');
        let end = place.find('/').unwrap_or(place.len());
        let (authority, path) = place.split_at_checked(end)?;
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, host)) => (format!("{}@", self.hidden(user)), host),
            None => (String::new(), authority),
        };
        let mut shown = format!("{scheme}://{user}{host}{}", self.without_secrets(path));
        if let Some(query) = query {
            let members = query.split('&').map(|member| match member.split_once('=') {
                Some((name, value)) => format!("{}={}", self.without_secrets(name), self.hidden(value)),
                None => self.hidden(member),
            });
            shown.push('?');
            shown.push_str(&members.collect::<Vec<_>>().join("&"));
        }
        if let Some(fragment) = fragment {
            shown.push('#');
            shown.push_str(&self.hidden(fragment));
        }
        Some(shown)
    }

    /// A value that is secret by its place. Nothing, and the name of what is filled in later, can be shown.
    fn hidden(&self, value: &str) -> String {
        if value.is_empty() || is_placeholder(value) { value.to_owned() } else { self.mark(value) }
    }

    fn without_secrets(&self, text: &str) -> String {
        let Some(secrets) = &*SECRETS else { return self.mark(text) };
        let mut found: Vec<Range<usize>> = Vec::new();
        secrets.find(text, false, |_, place, _| found.push(place));
        found.sort_by_key(|place| place.start);
        let (mut shown, mut behind) = (String::with_capacity(text.len()), 0);
        for place in found {
            // Of places that overlap, the rest of the later one.
            let place = place.start.max(behind)..place.end;
            let (Some(before), Some(secret)) = (text.get(behind..place.start), text.get(place.clone())) else {
                continue;
            };
            shown.push_str(before);
            shown.push_str(&self.hidden(secret));
            behind = place.end;
        }
        shown.push_str(text.get(behind..).unwrap_or_default());
        shown
    }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+'))
}

fn means_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|word| name.contains(word))
}

/// Whether a value is `${NAME}` and nothing else: it says where the secret is, not what.
fn is_placeholder(value: &str) -> bool {
    let name = value.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'.')))
}

#[cfg(test)]
#[path = "veil_tests.rs"]
mod tests;
