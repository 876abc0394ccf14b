//! What starts or reaches a server, as a text that can be pinned and compared (MODE-7).
//!
//! Values of the environment can hold code as well as secrets, so they count, but only as marks that
//! nobody can read; values of headers are credentials and do not count. Arguments and addresses are for
//! people to compare, so that of them only what looks secret is a mark.

use std::collections::BTreeMap;

use serde_json::json;
use toolwarden_core::Keyring;
use toolwarden_policy::input::Launch;
use toolwarden_sources::ServerDefinition;

use crate::veil::Veil;

/// The definition as it is written: placeholders are not filled in.
pub(super) fn text(definition: &ServerDefinition, keyring: &dyn Keyring) -> String {
    let connection = &definition.connection;
    let veil = Veil::new(keyring);
    let environment: BTreeMap<&str, String> =
        connection.env.iter().map(|(name, value)| (name.as_str(), veil.mark(value.reveal_to_upstream()))).collect();
    let headers: Vec<&str> = connection.headers.keys().map(String::as_str).collect();
    let reached = match &definition.input.launch {
        Launch::Command { command, arguments } => {
            json!({ "command": veil.words(command), "args": veil.arguments(arguments) })
        }
        Launch::Url(url) => json!({ "url": veil.words(url) }),
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
