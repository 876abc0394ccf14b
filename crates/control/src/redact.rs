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

/// A value that only refers to a secret says nothing.
fn hide(value: &mut Value) {
    let refers = value.as_str().is_some_and(|text| text.starts_with("${") && text.ends_with('}'));
    if !refers {
        *value = Value::String(HIDDEN.to_owned());
    }
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
