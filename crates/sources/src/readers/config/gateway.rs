//! `[gateway]`, `[control]` and `[store]`: checked here, used by the program's doors.

use std::time::Duration;

use toolwarden_core::{ApprovalNeeds, ApprovalState, Secret, Sourced, name};
use toolwarden_policy::input::LimitsInput;
use toolwarden_policy::{is_call, known_methods};

use super::Standing;
use super::addresses;
use super::servers::read_limits;
use super::webhooks;
use crate::readers::known::Section;
use crate::report::{Report, misspelt};
use crate::tree::{Node, Place};

/// `[gateway]`.
#[derive(Debug, Clone, Default)]
pub struct GatewaySection {
    pub listen: Option<String>,
    pub public_url: Option<String>,
    pub tls: Option<TlsFiles>,
    pub allowed_hosts: Vec<String>,
    pub anonymous_loopback: Option<bool>,
    /// `wait`, `return` or `deny`.
    pub hold: Option<String>,
    /// How long a caller waits for an answer, where it waits.
    pub hold_time: Option<Duration>,
    /// Further methods that may pass.
    pub methods: Vec<String>,
    pub limits: LimitsInput,
    /// How long calls on their way may take after the order to stop.
    pub grace: Option<Duration>,
}

/// `tls = { cert, key }`, paths as written.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    pub cert: Option<String>,
    pub key: Option<String>,
}

/// `[control]`.
#[derive(Debug, Clone, Default)]
pub struct ControlSection {
    /// Users and groups who may approve; empty = every person for their own calls.
    pub approvers: Vec<String>,
    /// `server:tool` patterns that need a second person.
    pub second_person: Vec<Sourced<String>>,
    /// `[control.approve."server:tool"]`.
    pub approve: Vec<(Sourced<String>, ApprovalNeeds)>,
    pub confirm_file_widening: Option<bool>,
    /// How long a held call waits for its answer.
    pub hold_expires: Option<Duration>,
    /// How long an approved call may take until it is made.
    pub approval_expires: Option<Duration>,
    /// `[control.webhooks.NAME]`.
    pub webhooks: Vec<WebhookSection>,
}

/// `[control.webhooks.NAME]`: who is told of held calls elsewhere.
#[derive(Debug, Clone)]
pub struct WebhookSection {
    pub name: String,
    /// An address can be a secret in itself.
    pub url: Secret,
    pub secret: Option<Secret>,
    /// `json` or `slack`.
    pub format: String,
    /// The one person it reaches.
    pub user: Option<String>,
    pub groups: Vec<String>,
    pub states: Vec<ApprovalState>,
    pub arguments: bool,
    pub answers: bool,
}

/// `[store]`.
#[derive(Debug, Clone, Default)]
pub struct StoreSection {
    /// May carry a password.
    pub url: Option<Secret>,
    pub max_stale: Option<Duration>,
}

pub(super) fn read_gateway(report: &mut Report, node: &Node) -> GatewaySection {
    let mut section = GatewaySection::default();
    for (key, value) in report.keys(Section::Gateway, "gateway", node) {
        let what = key.text.as_str();
        match what {
            "listen" => section.listen = report.text(what, value),
            "public_url" => section.public_url = addresses::public_url(report, value),
            "tls" => section.tls = Some(read_tls(report, value)),
            "allowed_hosts" => section.allowed_hosts = addresses::allowed_hosts(report, value),
            "anonymous_loopback" => section.anonymous_loopback = report.boolean(what, value),
            "hold" => section.hold = report.word(what, value, &["wait", "return", "deny"]),
            "hold_time" => section.hold_time = report.duration(what, value),
            "methods" => section.methods = read_methods(report, value),
            "limits" => section.limits = read_limits(report, value),
            "grace" => section.grace = report.duration(what, value),
            _ => report.unread(key),
        }
    }
    section
}

/// Methods of other revisions that pass with their server. One that the gateway knows is judged by its own row.
fn read_methods(report: &mut Report, node: &Node) -> Vec<String> {
    let methods = report.texts("methods", node).unwrap_or_default();
    for method in &methods {
        let text = method.value.as_str();
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/_-.".contains(letter);
        // In another spelling, a server may take it for the one that is known.
        let is_misspelt = known_methods().any(|known| known != text && known.eq_ignore_ascii_case(text.trim()));
        let is_decided = is_call(text) || is_misspelt;
        if is_decided || text.is_empty() || !text.chars().all(is_plain) {
            let place = Place { line: method.origin.line, column: method.origin.column };
            report.error(place, "bad_method", format!("`{}` cannot be added to `methods`", name::shown(text)));
            report.help("name methods that Toolwarden does not know, without patterns");
        } else if let Some(near) = misspelt(text, &known_methods().collect::<Vec<_>>()).filter(|near| *near != text) {
            let place = Place { line: method.origin.line, column: method.origin.column };
            report.warning(place, "unknown_method", format!("Toolwarden knows no method `{}`", name::shown(text)));
            report.help(format!("`{near}` needs no entry in `methods`"));
        }
    }
    methods.into_iter().map(|method| method.value).collect()
}

fn read_tls(report: &mut Report, node: &Node) -> TlsFiles {
    let mut files = TlsFiles::default();
    for (key, value) in report.keys(Section::Tls, "tls", node) {
        match key.text.as_str() {
            "cert" => files.cert = report.text(&key.text, value),
            "key" => files.key = report.text(&key.text, value),
            _ => report.unread(key),
        }
    }
    if files.cert.is_none() || files.key.is_none() {
        report.error(node.place, "missing_key", "`tls` needs both `cert` and `key`");
    }
    files
}

pub(super) fn read_control(report: &mut Report, node: &Node) -> ControlSection {
    let mut section = ControlSection::default();
    for (key, value) in report.keys(Section::Control, "control", node) {
        let what = key.text.as_str();
        match what {
            "approvers" => section.approvers = read_approvers(report, value),
            "second_person" => section.second_person = report.texts(what, value).unwrap_or_default(),
            "approve" => section.approve = read_approve(report, value),
            "confirm_file_widening" => section.confirm_file_widening = report.boolean(what, value),
            "hold_expires" => section.hold_expires = time_to_answer(report, what, value),
            "approval_expires" => section.approval_expires = time_to_answer(report, what, value),
            "webhooks" => section.webhooks = webhooks::read(report, value),
            _ => report.unread(key),
        }
    }
    section
}

/// Somebody who can be nobody would leave calls that no one may answer.
fn read_approvers(report: &mut Report, node: &Node) -> Vec<String> {
    let approvers = report.texts("approvers", node).unwrap_or_default();
    for approver in &approvers {
        let text = approver.value.as_str();
        if let Err(fault) = name::check_written(text.strip_prefix("group:").unwrap_or(text)) {
            let place = Place { line: approver.origin.line, column: approver.origin.column };
            let message = format!("`{}` in `approvers` is no user or group: {fault}", name::shown(text));
            report.error(place, "bad_name", message);
            report.help("write the name of a user, or `group:NAME`");
        }
    }
    approvers.into_iter().map(|approver| approver.value).collect()
}

/// A time in which somebody can read a call and answer it, and the caller come back.
fn time_to_answer(report: &mut Report, what: &str, node: &Node) -> Option<Duration> {
    const LEAST: Duration = Duration::from_secs(10);
    let time = report.duration(what, node)?;
    if time < LEAST {
        report.error(node.place, "out_of_range", format!("`{what}` is too short for anybody to answer a call in"));
        report.help("10s at least");
        return None;
    }
    Some(time)
}

/// Who may answer calls of single tools, and how.
fn read_approve(report: &mut Report, node: &Node) -> Vec<(Sourced<String>, ApprovalNeeds)> {
    let mut rules = Vec::new();
    for (entry, node) in report.table("approve", node) {
        let mut needs = ApprovalNeeds::default();
        for (key, value) in report.keys(Section::Approve, &entry.text, node) {
            let what = key.text.as_str();
            match what {
                "approvers" => needs.approvers = read_approvers(report, value),
                "second_person" => needs.second_person = report.boolean(what, value).unwrap_or(true),
                "reason" => needs.reason = report.boolean(what, value).unwrap_or(true),
                _ => report.unread(key),
            }
        }
        rules.push((Sourced::new(entry.text.clone(), report.origin(entry.place)), needs));
    }
    rules
}

/// Where state is kept is the person's choice, not a workspace's.
pub(super) fn read_store(report: &mut Report, standing: Standing, node: &Node) -> StoreSection {
    let mut section = StoreSection::default();
    for (key, value) in report.keys(Section::Store, "store", node) {
        match key.text.as_str() {
            "url" | "max_stale" if standing == Standing::Workspace => {
                let message = format!("`{}` counts only in the user's own config", key.text);
                report.warning(key.place, "not_counted", message);
            }
            "url" => section.url = read_store_url(report, value),
            "max_stale" => section.max_stale = report.duration(&key.text, value),
            _ => report.unread(key),
        }
    }
    section
}

/// The text is not repeated in the message: it may carry a password.
fn read_store_url(report: &mut Report, node: &Node) -> Option<Secret> {
    let url = report.text("url", node)?;
    let known = ["sqlite:", "postgres://", "postgresql://", "${"].iter().any(|start| url.starts_with(start));
    if !known {
        report.error(node.place, "unknown_value", "`url` must begin with `sqlite:` or `postgres://`");
    }
    known.then(|| Secret::new(url))
}
