//! Secrets of servers, wherever a definition has them.

use serde_json::json;
use toolwarden_core::records::Kind;

use super::redacted;

#[test]
fn vault_6_what_looks_like_a_secret_is_not_shown_wherever_it_stands() {
    let server = json!({
        "url": "https://user:hush1@example.com/mcp?key=hush2",
        "command": "serve",
        "args": ["--token", "hush3", "--api-key=hush4", "plain"],
        "env": { "A": "hush5", "B": "${env:B}" },
        "headers": { "Authorization": "Bearer hush6", "X-Key": "Bearer ${env:C}", "X-Both": "${env:D}hush8${env:E}" },
        "auth": { "client_id": "id", "client_secret": "hush7" },
    });
    let shown = redacted(Kind::Server, &server).to_string();
    assert!(!shown.contains("hush"), "{shown}");
    for kept in ["example.com/mcp", "plain", "${env:B}", "…${env:C}", "${env:D}…${env:E}", "\"id\""] {
        assert!(shown.contains(kept), "{kept}: {shown}");
    }
}
