//! `[auto_run]`: how far auto-run goes when nothing narrower speaks (ALLOW-6 to ALLOW-8, CORE-4).

use toolwarden_core::{Entry, Sourced, name};
use toolwarden_policy::input::{AutoRunInput, AutoRunMode};

use super::{ConfigFile, Standing};
use crate::readers::known::Section;
use crate::report::Report;
use crate::tree::{Node, Place};

/// A file whose `alwaysAllow` counts, as the person wrote it.
pub type AlwaysAllowFile = Sourced<String>;

const MODES: [&str; 5] = ["ask_every_time", "use_allowlist", "run_everything", "yolo", "full_yolo"];

pub(super) fn read(report: &mut Report, standing: Standing, node: &Node, config: &mut ConfigFile) {
    let auto_run = &mut config.auto_run;
    for (key, value) in report.keys(Section::AutoRun, "auto_run", node) {
        let what = key.text.as_str();
        match what {
            "mode" => {
                auto_run.mode_is_chosen = true;
                let word = report.word(what, value, &MODES);
                // An unreadable mode must not be a wider one.
                auto_run.mode = word.as_deref().and_then(AutoRunMode::parse).unwrap_or(AutoRunMode::AskEveryTime);
            }
            "auto_review" => auto_run.auto_review = report.boolean(what, value) == Some(true),
            "ask" => auto_run.ask = read_ask(report, value),
            "protections" => read_protections(report, value, auto_run),
            "browser_servers" => {
                auto_run.browser_servers = browser_servers(report, value);
            }
            "default_mode" => auto_run.default_mode = report.sourced_text(what, value),
            "require_mode" => auto_run.require_mode = report.boolean(what, value).unwrap_or(true),
            "allow_always_allow" if standing == Standing::Workspace => {
                report.warning(key.place, "not_counted", "`allow_always_allow` counts only in the user's own config");
            }
            "allow_always_allow" => {
                config.always_allow_files = report.texts(what, value).unwrap_or_default();
            }
            _ => report.unread(key),
        }
    }
}

/// An invalid `ask` entry would silently not ask.
fn read_ask(report: &mut Report, node: &Node) -> Vec<Sourced<String>> {
    let entries = report.texts("ask", node).unwrap_or_default();
    for entry in &entries {
        if let Err(fault) = Entry::parse_restricting(&entry.value) {
            let place = Place { line: entry.origin.line, column: entry.origin.column };
            report.error(place, "invalid_entry", format!("invalid `ask` entry `{}`", name::shown(&entry.value)));
            report.help(fault.to_string());
        }
    }
    entries
}

/// A name that no server has would protect nothing.
fn browser_servers(report: &mut Report, node: &Node) -> Vec<String> {
    let names = report.texts("browser_servers", node).unwrap_or_default();
    for server in &names {
        if let Err(fault) = name::check_written(&server.value) {
            let place = Place { line: server.origin.line, column: server.origin.column };
            let message = format!("`{}` in `browser_servers` names no server: {fault}", name::shown(&server.value));
            report.error(place, "invalid_name", message);
        }
    }
    names.into_iter().map(|server| server.value).collect()
}

fn read_protections(report: &mut Report, node: &Node, auto_run: &mut AutoRunInput) {
    for (key, value) in report.keys(Section::Protections, "protections", node) {
        let protection = match key.text.as_str() {
            "mcp" => &mut auto_run.mcp_protection,
            "browser" => &mut auto_run.browser_protection,
            "delete" => &mut auto_run.delete_protection,
            _ => {
                report.unread(key);
                continue;
            }
        };
        *protection = report.boolean(&key.text, value).unwrap_or(true);
    }
}
