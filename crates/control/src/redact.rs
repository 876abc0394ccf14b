//! Records as people and programs may see them: what a server is given to prove who asks stays where it is (VAULT-6).

use serde_json::Value;
use toolwarden_core::records::Kind;

/// What stands in the place of a secret.
const HIDDEN: &str = "…";

/// A record without the values of variables, headers and client secrets, and what of addresses and arguments looks like one.
pub(crate) fn redacted(kind: Kind, content: &Value) -> Value {
    let mut content = content.clone();
    if kind != Kind::Server {
        return content;
    }
    for table in ["env", "headers"] {
        if let Some(Value::Object(entries)) = content.get_mut(table) {
            entries.values_mut().for_each(hide);
        }
    }
    if let Some(Value::String(url)) = content.get_mut("url") {
        *url = toolwarden_pins::without_secrets(url);
    }
    if let Some(Value::Array(arguments)) = content.get_mut("args") {
        let texts: Vec<String> = arguments.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect();
        *arguments = toolwarden_pins::arguments_without_secrets(&texts).into_iter().map(Value::String).collect();
    }
    if let Some(Value::Object(auth)) = content.get_mut("auth") {
        auth.iter_mut().filter(|(key, _)| key.eq_ignore_ascii_case("client_secret")).for_each(|(_, value)| hide(value));
    }
    content
}

/// What refers to a secret says nothing, and whoever looks for its value must know where; everything else is hidden.
fn hide(value: &mut Value) {
    let text = value.as_str().unwrap_or_default();
    let (mut told, mut rest) = (String::new(), text);
    while let Some((before, name, after)) = reference(rest) {
        if !before.is_empty() {
            told.push_str(HIDDEN);
        }
        told.push_str(&format!("${{{name}}}"));
        rest = after;
    }
    if !rest.is_empty() || text.is_empty() {
        told.push_str(HIDDEN);
    }
    *value = Value::String(told);
}

/// The first `${env:NAME}` of a text, and what stands around it.
fn reference(text: &str) -> Option<(&str, &str, &str)> {
    let (before, after) = text.split_once("${")?;
    let (name, rest) = after.split_once('}')?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_:.-".contains(letter);
    name.chars().all(is_plain).then_some((before, name, rest))
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
