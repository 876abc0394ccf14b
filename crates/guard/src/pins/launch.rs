//! What starts or reaches a server, as a text that can be pinned and compared (MODE-7).
//!
//! Values of the environment can hold code as well as secrets, so they count, but only as marks that
//! nobody can read; values of headers are credentials and do not count.

use std::collections::BTreeMap;

use serde_json::json;
use toolwarden_core::{Digest, Keyring, Purpose};
use toolwarden_policy::input::Launch;
use toolwarden_sources::ServerDefinition;

/// The definition as it is written: placeholders are not filled in.
#[must_use]
pub fn text(definition: &ServerDefinition, keyring: &dyn Keyring) -> String {
    let connection = &definition.connection;
    let mark = |value: &toolwarden_core::Secret| {
        let digest = Digest::of_bytes(value.reveal_to_upstream().as_bytes());
        super::short(&Digest::from_bytes(keyring.mark(Purpose::Launch, digest.as_bytes())).to_string())
    };
    let environment: BTreeMap<&str, String> =
        connection.env.iter().map(|(name, value)| (name.as_str(), format!("mark {}", mark(value)))).collect();
    let headers: Vec<&str> = connection.headers.keys().map(String::as_str).collect();
    let reached = match &definition.input.launch {
        Launch::Command { command, arguments } => json!({ "command": command, "args": arguments }),
        Launch::Url(url) => json!({ "url": url }),
        Launch::Nothing => json!({}),
    };
    json!({
        "reached": reached,
        "cwd": connection.working_directory,
        "env": environment,
        "env_file": connection.env_file,
        "headers": headers,
    })
    .to_string()
}
