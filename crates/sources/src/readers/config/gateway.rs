//! `[gateway]`, `[control]`, `[store]` and `[audit]`: checked here, used by the program's doors.

use std::time::Duration;

use toolwarden_core::{ApprovalNeeds, ApprovalState, Secret, Sourced};
use toolwarden_policy::input::LimitsInput;

use super::Standing;
use super::servers::read_limits;
use super::telemetry::read_collector;
use super::webhooks;
use crate::report::Report;
use crate::tree::Node;

/// `[gateway]`.
#[derive(Debug, Clone, Default)]
pub struct GatewaySection {
    pub listen: Option<String>,
    pub public_url: Option<String>,
    pub tls: Option<TlsFiles>,
    pub behind_proxy: Option<bool>,
    pub trusted_proxies: Vec<String>,
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
    pub listen: Option<String>,
    pub tls: Option<TlsFiles>,
    pub oidc: Option<OidcLogin>,
    /// Users and groups who may approve; empty = every person for their own calls.
    pub approvers: Vec<String>,
    /// `server:tool` patterns that need a second person.
    pub second_person: Vec<Sourced<String>>,
    /// `[control.approve."server:tool"]`.
    pub approve: Vec<(Sourced<String>, ApprovalNeeds)>,
    /// `session` or `passkey`.
    pub approve_with: Option<String>,
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

/// `oidc = { issuer, client_id, client_secret, scopes, groups_claim }`.
#[derive(Debug, Clone, Default)]
pub struct OidcLogin {
    pub issuer: Option<String>,
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    pub groups_claim: Option<String>,
}

/// `[store]`.
#[derive(Debug, Clone, Default)]
pub struct StoreSection {
    /// May carry a password.
    pub url: Option<Secret>,
    pub max_stale: Option<Duration>,
}

/// `[audit]`.
#[derive(Debug, Clone, Default)]
pub struct AuditSection {
    /// `os`, `100ms`, `always` or `store`.
    pub sync: Option<String>,
    pub anchor: Option<String>,
    pub redaction: Vec<String>,
    pub retention: Option<Duration>,
    pub checkpoints: Option<Duration>,
    /// The same as `[telemetry] otlp`.
    pub otlp: Option<String>,
}

const GATEWAY_KEYS: [&str; 12] = [
    "listen",
    "public_url",
    "tls",
    "behind_proxy",
    "trusted_proxies",
    "allowed_hosts",
    "anonymous_loopback",
    "hold",
    "hold_time",
    "methods",
    "limits",
    "grace",
];
const CONTROL_KEYS: [&str; 11] = [
    "listen",
    "tls",
    "oidc",
    "approvers",
    "second_person",
    "approve",
    "approve_with",
    "confirm_file_widening",
    "hold_expires",
    "approval_expires",
    "webhooks",
];

pub(super) fn read_gateway(report: &mut Report, node: &Node) -> GatewaySection {
    let mut section = GatewaySection::default();
    for (key, value) in report.table("gateway", node) {
        let what = key.text.as_str();
        match what {
            "listen" => section.listen = report.text(what, value),
            "public_url" => section.public_url = report.text(what, value),
            "tls" => section.tls = Some(read_tls(report, value)),
            "behind_proxy" => section.behind_proxy = report.boolean(what, value),
            "trusted_proxies" => section.trusted_proxies = report.plain_texts(what, value).unwrap_or_default(),
            "allowed_hosts" => section.allowed_hosts = report.plain_texts(what, value).unwrap_or_default(),
            "anonymous_loopback" => section.anonymous_loopback = report.boolean(what, value),
            "hold" => section.hold = report.word(what, value, &["wait", "return", "deny"]),
            "hold_time" => section.hold_time = report.duration(what, value),
            "methods" => section.methods = report.plain_texts(what, value).unwrap_or_default(),
            "limits" => section.limits = read_limits(report, value),
            "grace" => section.grace = report.duration(what, value),
            _ => report.unknown_key(key, &GATEWAY_KEYS),
        }
    }
    section
}

fn read_tls(report: &mut Report, node: &Node) -> TlsFiles {
    let mut files = TlsFiles::default();
    for (key, value) in report.table("tls", node) {
        match key.text.as_str() {
            "cert" => files.cert = report.text(&key.text, value),
            "key" => files.key = report.text(&key.text, value),
            _ => report.unknown_key(key, &["cert", "key"]),
        }
    }
    if files.cert.is_none() || files.key.is_none() {
        report.error(node.place, "missing_key", "`tls` needs both `cert` and `key`");
    }
    files
}

pub(super) fn read_control(report: &mut Report, node: &Node) -> ControlSection {
    let mut section = ControlSection::default();
    for (key, value) in report.table("control", node) {
        let what = key.text.as_str();
        match what {
            "listen" => section.listen = report.text(what, value),
            "tls" => section.tls = Some(read_tls(report, value)),
            "oidc" => section.oidc = Some(read_oidc(report, value)),
            "approvers" => section.approvers = report.plain_texts(what, value).unwrap_or_default(),
            "second_person" => section.second_person = report.texts(what, value).unwrap_or_default(),
            "approve" => section.approve = read_approve(report, value),
            "approve_with" => section.approve_with = report.word(what, value, &["session", "passkey"]),
            "confirm_file_widening" => section.confirm_file_widening = report.boolean(what, value),
            "hold_expires" => section.hold_expires = report.duration(what, value),
            "approval_expires" => section.approval_expires = report.duration(what, value),
            "webhooks" => section.webhooks = webhooks::read(report, value),
            _ => report.unknown_key(key, &CONTROL_KEYS),
        }
    }
    section
}

/// Who may answer calls of single tools, and how.
fn read_approve(report: &mut Report, node: &Node) -> Vec<(Sourced<String>, ApprovalNeeds)> {
    let mut rules = Vec::new();
    for (entry, node) in report.table("approve", node) {
        let mut needs = ApprovalNeeds::default();
        for (key, value) in report.table(&entry.text, node) {
            let what = key.text.as_str();
            match what {
                "approvers" => needs.approvers = report.plain_texts(what, value).unwrap_or_default(),
                "second_person" => needs.second_person = report.boolean(what, value).unwrap_or(true),
                "reason" => needs.reason = report.boolean(what, value).unwrap_or(true),
                _ => report.unknown_key(key, &["approvers", "second_person", "reason"]),
            }
        }
        rules.push((Sourced::new(entry.text.clone(), report.origin(entry.place)), needs));
    }
    rules
}

fn read_oidc(report: &mut Report, node: &Node) -> OidcLogin {
    let mut login = OidcLogin::default();
    for (key, value) in report.table("oidc", node) {
        let what = key.text.as_str();
        match what {
            "issuer" => login.issuer = report.text(what, value),
            "client_id" => login.client_id = report.text(what, value),
            "client_secret" => login.client_secret = report.text(what, value).map(Secret::new),
            "scopes" => login.scopes = report.plain_texts(what, value).unwrap_or_default(),
            "groups_claim" => login.groups_claim = report.text(what, value),
            _ => report.unknown_key(key, &["issuer", "client_id", "client_secret", "scopes", "groups_claim"]),
        }
    }
    login
}

/// Where state is kept is the person's choice, not a workspace's.
pub(super) fn read_store(report: &mut Report, standing: Standing, node: &Node) -> StoreSection {
    let mut section = StoreSection::default();
    for (key, value) in report.table("store", node) {
        match key.text.as_str() {
            "url" | "max_stale" if standing == Standing::Workspace => {
                let message = format!("`{}` counts only in the user's own config", key.text);
                report.warning(key.place, "not_counted", message);
            }
            "url" => section.url = read_store_url(report, value),
            "max_stale" => section.max_stale = report.duration(&key.text, value),
            _ => report.unknown_key(key, &["url", "max_stale"]),
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

pub(super) fn read_audit(report: &mut Report, standing: Standing, node: &Node) -> AuditSection {
    let mut section = AuditSection::default();
    for (key, value) in report.table("audit", node) {
        let what = key.text.as_str();
        match what {
            "sync" => section.sync = report.word(what, value, &["os", "100ms", "always", "store"]),
            "anchor" => section.anchor = report.text(what, value),
            "redaction" => section.redaction = report.plain_texts(what, value).unwrap_or_default(),
            "retention" => section.retention = report.duration(what, value),
            "checkpoints" => section.checkpoints = report.duration(what, value),
            "otlp" => section.otlp = read_collector(report, standing, key, value),
            _ => report.unknown_key(key, &["sync", "anchor", "redaction", "retention", "checkpoints", "otlp"]),
        }
    }
    section
}
