//! `[vault]`, `[sandbox]`, `[rules]`, `[settings]` and `[identity.NAME]`.

use std::collections::BTreeMap;

use toolwarden_core::Sourced;

use super::Standing;
use crate::report::Report;
use crate::tree::{Node, Value};

/// `[vault]`.
#[derive(Debug, Clone, Default)]
pub struct VaultSection {
    pub key: Option<String>,
    /// Variables that `${env:N}` in a workspace file may name (VAULT-6).
    pub workspace_env: Vec<String>,
}

/// `[sandbox]`.
#[derive(Debug, Clone, Default)]
pub struct SandboxSection {
    pub enabled: Option<bool>,
    pub profile: Option<String>,
    pub required: Option<bool>,
    pub resolves: bool,
}

/// `[rules]`.
#[derive(Debug, Clone)]
pub struct RulesSection {
    /// Globs relative to the config's directory.
    pub files: Vec<Sourced<String>>,
    pub shipped: bool,
}

impl Default for RulesSection {
    fn default() -> Self {
        Self { files: Vec::new(), shipped: true }
    }
}

/// `[identity.NAME]`: one issuer of JSON web tokens.
#[derive(Debug, Clone, Default)]
pub struct IdentitySection {
    pub issuer: Option<String>,
    pub audience: Vec<String>,
    pub jwks_url: Option<String>,
    /// Claim names: `user`, `groups`, `role`.
    pub claims: BTreeMap<String, String>,
}

const PLAIN_VAULT_KEYS: [&str; 6] = ["auto", "keyring", "passphrase", "memory", "plaintext", "file:PATH, env:NAME"];

pub(super) fn read_vault(report: &mut Report, standing: Standing, node: &Node) -> VaultSection {
    let mut section = VaultSection::default();
    for (key, value) in report.table("vault", node) {
        match key.text.as_str() {
            "key" | "workspace_env" if standing == Standing::Workspace => {
                let message = format!("`{}` counts only in the user's own config", key.text);
                report.warning(key.place, "not_counted", message);
            }
            "key" => section.key = read_vault_key(report, value),
            "workspace_env" => section.workspace_env = report.plain_texts(&key.text, value).unwrap_or_default(),
            _ => report.unknown_key(key, &["key", "workspace_env"]),
        }
    }
    section
}

fn read_vault_key(report: &mut Report, node: &Node) -> Option<String> {
    let text = report.text("key", node)?;
    let rest = text.strip_prefix("file:").or_else(|| text.strip_prefix("env:"));
    let known = PLAIN_VAULT_KEYS.contains(&text.as_str()) || rest.is_some_and(|rest| !rest.is_empty());
    if !known {
        // Not repeated: somebody may have put the key itself here.
        report.error(node.place, "unknown_value", "`key` names where the key is kept");
        report.help(format!("one of: {}", PLAIN_VAULT_KEYS.join(", ")));
    }
    known.then_some(text)
}

pub(super) fn read_sandbox(report: &mut Report, node: &Node) -> SandboxSection {
    let mut section = SandboxSection::default();
    for (key, value) in report.table("sandbox", node) {
        let what = key.text.as_str();
        match what {
            "enabled" => section.enabled = report.boolean(what, value),
            "profile" => section.profile = report.text(what, value),
            "required" => section.required = report.boolean(what, value),
            "resolves" => section.resolves = report.boolean(what, value) == Some(true),
            _ => report.unknown_key(key, &["enabled", "profile", "required", "resolves"]),
        }
    }
    section
}

pub(super) fn read_rules(report: &mut Report, node: &Node) -> RulesSection {
    let mut section = RulesSection::default();
    for (key, value) in report.table("rules", node) {
        match key.text.as_str() {
            "files" => section.files = report.texts(&key.text, value).unwrap_or_default(),
            "shipped" => section.shipped = report.boolean(&key.text, value).unwrap_or(true),
            _ => report.unknown_key(key, &["files", "shipped"]),
        }
    }
    section
}

/// Tables inside become dots: `[settings.mcp] x = 1` is the setting `mcp.x`.
pub(super) fn read_settings(
    report: &mut Report,
    prefix: &str,
    node: &Node,
    settings: &mut BTreeMap<String, Sourced<serde_json::Value>>,
) {
    for (key, value) in report.table("settings", node) {
        let full = if prefix.is_empty() { key.text.clone() } else { format!("{prefix}.{}", key.text) };
        if matches!(value.value, Value::Table(_)) {
            read_settings(report, &full, value, settings);
            continue;
        }
        let setting = Sourced::new(value.to_json(), report.origin(key.place));
        if let Some(earlier) = settings.insert(full.clone(), setting) {
            let message = format!("the setting `{full}` is given twice, first at line {}", earlier.origin.line);
            report.error(key.place, "duplicate_key", message);
        }
    }
}

pub(super) fn read_identity(report: &mut Report, node: &Node) -> BTreeMap<String, IdentitySection> {
    let mut found = BTreeMap::new();
    for (name, inner) in report.table("identity", node) {
        let mut section = IdentitySection::default();
        for (key, value) in report.table(&name.text, inner) {
            let what = key.text.as_str();
            match what {
                "issuer" => section.issuer = report.text(what, value),
                "audience" => section.audience = report.text_or_texts(what, value).unwrap_or_default(),
                "jwks_url" => section.jwks_url = report.text(what, value),
                "claims" => section.claims = read_claims(report, value),
                _ => report.unknown_key(key, &["issuer", "audience", "jwks_url", "claims"]),
            }
        }
        if section.issuer.is_none() || section.audience.is_empty() {
            report.error(
                name.place,
                "missing_key",
                format!("`[identity.{}]` needs `issuer` and `audience`", name.text),
            );
        }
        found.insert(name.text.clone(), section);
    }
    found
}

fn read_claims(report: &mut Report, node: &Node) -> BTreeMap<String, String> {
    let mut claims = BTreeMap::new();
    for (key, value) in report.table("claims", node) {
        match key.text.as_str() {
            "user" | "groups" | "role" => {
                if let Some(claim) = report.text(&key.text, value) {
                    claims.insert(key.text.clone(), claim);
                }
            }
            _ => report.unknown_key(key, &["user", "groups", "role"]),
        }
    }
    claims
}
