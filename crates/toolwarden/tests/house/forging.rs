//! The lint that keeps payments and outbound messages where they belong, tried on code that breaks it.

use std::fs;
use std::process::Command;

use crate::workspace::{read, root};

const FORGERY: &str = r#"//! Code that must not pass: it pays for a hold and lets a message out by itself.
pub fn pay() -> toolwarden_core::Payment { toolwarden_core::Payment::by(toolwarden_core::Payer::Person, "forged") }
pub fn send() -> toolwarden_core::Outbound { toolwarden_core::Outbound::release("s".into(), toolwarden_core::Content::Method { method: "tools/call".into(), params: None }) }
"#;

const HONEST: &str = "//! Code that passes.\npub fn payer(payment: &toolwarden_core::Payment) -> toolwarden_core::Payer { payment.payer() }\n";

/// Runs clippy with our clippy.toml on a crate that holds only this text.
fn clippy(name: &str, text: &str) -> (bool, String) {
    let target = std::env::temp_dir().join(format!("toolwarden-forging-{name}-{}", std::process::id()));
    let directory = target.join(name);
    assert!(fs::create_dir_all(directory.join("src")).is_ok());
    let core = root().join("crates/core");
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\ntoolwarden-core = {{ path = {core:?} }}\n[lints.clippy]\ndisallowed_methods = \"deny\"\n"
    );
    assert!(fs::write(directory.join("Cargo.toml"), manifest).is_ok());
    assert!(fs::write(directory.join("Cargo.lock"), read("Cargo.lock")).is_ok());
    assert!(fs::write(directory.join("src/lib.rs"), text).is_ok());
    let output = Command::new("cargo")
        .args(["clippy", "--offline", "--quiet"])
        .current_dir(&directory)
        .env("CLIPPY_CONF_DIR", root())
        .env("CARGO_TARGET_DIR", target.join("target"))
        .output();
    let result = output.map(|output| (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()));
    let _ = fs::remove_dir_all(&target);
    assert!(result.is_ok(), "cargo clippy could not be run");
    result.unwrap_or_default()
}

#[test]
fn the_lint_refuses_forged_payments_and_messages() {
    let (passed, said) = clippy("forged", FORGERY);
    assert!(!passed, "{said}");
    for name in ["toolwarden_core::Payment::by", "toolwarden_core::Outbound::release"] {
        assert!(said.contains(&format!("use of a disallowed method `{name}`")), "{said}");
    }
}

#[test]
fn the_lint_lets_honest_code_pass() {
    let (passed, said) = clippy("honest", HONEST);
    assert!(passed, "{said}");
}
