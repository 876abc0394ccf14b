//! `[vault]`, `[sandbox]`, `[rules]` and `[settings]`.

use std::collections::BTreeMap;

use toolwarden_core::{Sourced, name};

use super::{ConfigFile, Standing};
use crate::readers::known::Section;
use crate::report::Report;
use crate::tree::{Node, Place, Value};

/// `[vault]`.
#[derive(Debug, Clone, Default)]
pub struct VaultSection {
    pub key: Option<String>,
    /// Variables that `${env:N}` in a workspace file may name (VAULT-6).
    pub workspace_env: Vec<String>,
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

const PLAIN_VAULT_KEYS: [&str; 6] = ["auto", "keyring", "passphrase", "memory", "plaintext", "file:PATH, env:NAME"];

pub(super) fn read_vault(report: &mut Report, standing: Standing, node: &Node) -> VaultSection {
    let mut section = VaultSection::default();
    for (key, value) in report.keys(Section::Vault, "vault", node) {
        match key.text.as_str() {
            "key" | "workspace_env" if standing == Standing::Workspace => {
                let message = format!("`{}` counts only in the user's own config", key.text);
                report.warning(key.place, "not_counted", message);
            }
            "key" => section.key = read_vault_key(report, value),
            "workspace_env" => section.workspace_env = report.plain_texts(&key.text, value).unwrap_or_default(),
            _ => report.unread(key),
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

/// Every key of `[sandbox]` is refused until there is a sandbox, but for values that ask for none.
pub(super) fn check_sandbox(report: &mut Report, node: &Node) {
    for (key, _) in report.keys(Section::Sandbox, "sandbox", node) {
        report.unread(key);
    }
}

pub(super) fn read_rules(report: &mut Report, node: &Node) -> RulesSection {
    let mut section = RulesSection::default();
    for (key, value) in report.keys(Section::Rules, "rules", node) {
        match key.text.as_str() {
            "files" => section.files = report.texts(&key.text, value).unwrap_or_default(),
            "shipped" => section.shipped = report.boolean(&key.text, value).unwrap_or(true),
            _ => report.unread(key),
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

/// Refuses settings that begin like a section of the config: nothing reads them, and whoever wrote `"gateway.hold"` there
/// relies on it (SELF-6). A tool may ask for one all the same.
pub(super) fn refuse_misplaced(report: &mut Report, config: &ConfigFile) {
    let sections = Section::Config.names();
    let tools = || config.servers.iter().flat_map(|server| server.input.tools.values());
    for (key, setting) in &config.settings {
        let first = key.split('.').next().unwrap_or_default().trim().to_ascii_lowercase();
        // What switches tools, and what is written like it, is looked at where it is compiled.
        let is_asked_for = first == "auto_run" || tools().any(|tool| tool.requires_setting.as_ref() == Some(key));
        if !sections.contains(&first.as_str()) || is_asked_for {
            continue;
        }
        let message = format!(
            "nothing reads the setting `{}`: what belongs to `[{first}]` is written there, outside of `[settings]`",
            name::shown(key)
        );
        report.error(Place { line: setting.origin.line, column: setting.origin.column }, "setting_unknown", message);
    }
}
