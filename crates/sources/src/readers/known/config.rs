//! Keys of `toolwarden.toml`.

use super::Standing::{NotBuilt, Used};
use super::{Row, Unless};

const SANDBOX_MISSING: &str = "the sandbox";
const LOGIN_MISSING: &str = "login to servers by OAuth";
const PROXY_MISSING: &str = "serving behind a proxy";
const CONTROL_MISSING: &str = "a control side with its own address";

pub(super) const SECTIONS: [Row; 18] = [
    ("gateway", Used),
    ("control", Used),
    ("store", Used),
    ("audit", Used),
    ("telemetry", Used),
    ("vault", Used),
    ("auto_run", Used),
    ("sandbox", Used),
    ("classifier", Used),
    ("features", Used),
    ("rules", Used),
    ("screening", Used),
    ("settings", Used),
    ("servers", Used),
    ("modes", Used),
    ("roles", Used),
    ("identity", NotBuilt("identity by tokens of an issuer", Unless::Empty)),
    ("admin", Used),
];
pub(super) const GATEWAY: [Row; 12] = [
    ("listen", Used),
    ("public_url", Used),
    ("tls", Used),
    ("behind_proxy", NotBuilt(PROXY_MISSING, Unless::False)),
    ("trusted_proxies", NotBuilt(PROXY_MISSING, Unless::Empty)),
    ("allowed_hosts", Used),
    ("anonymous_loopback", Used),
    ("hold", Used),
    ("hold_time", Used),
    ("methods", Used),
    ("limits", Used),
    ("grace", Used),
];
pub(super) const TLS: [Row; 2] = [("cert", Used), ("key", Used)];
pub(super) const CONTROL: [Row; 12] = [
    ("listen", NotBuilt(CONTROL_MISSING, Unless::Never)),
    ("tls", NotBuilt(CONTROL_MISSING, Unless::Never)),
    ("grpc_listen", NotBuilt("gRPC", Unless::Never)),
    ("oidc", NotBuilt("login of people by OIDC", Unless::Never)),
    ("approvers", Used),
    ("second_person", Used),
    ("approve", Used),
    // A session is how approvals are given today; only the stronger demand is missing.
    ("approve_with", NotBuilt("approval with a passkey", Unless::Word("session"))),
    ("confirm_file_widening", Used),
    ("hold_expires", Used),
    ("approval_expires", Used),
    ("webhooks", Used),
];
pub(super) const APPROVE: [Row; 3] = [("approvers", Used), ("second_person", Used), ("reason", Used)];
pub(super) const WEBHOOK: [Row; 8] = [
    ("url", Used),
    ("secret", Used),
    ("format", Used),
    ("user", Used),
    ("groups", Used),
    ("states", Used),
    ("arguments", Used),
    ("answers", Used),
];
pub(super) const STORE: [Row; 2] = [("url", Used), ("max_stale", Used)];
pub(super) const AUDIT: [Row; 7] = [
    ("sync", Used),
    ("arguments", Used),
    ("anchor", NotBuilt("anchoring of the journal elsewhere", Unless::Never)),
    ("redaction", Used),
    ("retention", Used),
    ("checkpoints", Used),
    ("otlp", Used),
];
pub(super) const REDACTION: [Row; 2] = [("names", Used), ("patterns", Used)];
pub(super) const TELEMETRY: [Row; 3] = [("log", Used), ("otlp", Used), ("otlp_headers", Used)];
pub(super) const VAULT: [Row; 2] = [("key", Used), ("workspace_env", Used)];
pub(super) const AUTO_RUN: [Row; 8] = [
    ("mode", Used),
    ("auto_review", Used),
    ("ask", Used),
    ("protections", Used),
    ("browser_servers", Used),
    ("default_mode", Used),
    ("require_mode", Used),
    ("allow_always_allow", Used),
];
pub(super) const PROTECTIONS: [Row; 3] = [("mcp", Used), ("browser", Used), ("delete", Used)];
pub(super) const SANDBOX: [Row; 6] = [
    ("enabled", NotBuilt(SANDBOX_MISSING, Unless::False)),
    ("profile", NotBuilt(SANDBOX_MISSING, Unless::Never)),
    ("required", NotBuilt(SANDBOX_MISSING, Unless::False)),
    ("best_effort", NotBuilt(SANDBOX_MISSING, Unless::False)),
    ("resolves", NotBuilt(SANDBOX_MISSING, Unless::False)),
    ("profiles", NotBuilt(SANDBOX_MISSING, Unless::Empty)),
];
pub(super) const CLASSIFIER: [Row; 15] = [
    ("kind", Used),
    ("url", Used),
    ("model", Used),
    ("command", Used),
    ("api_key", Used),
    ("timeout", Used),
    ("budget", Used),
    ("at_once", Used),
    ("max_cost", Used),
    ("price_input", Used),
    ("price_output", Used),
    ("plain_http", Used),
    ("shadow", Used),
    ("allow_instructions", Used),
    ("block_instructions", Used),
];
pub(super) const FEATURES: [Row; 3] = [
    ("mcp_allowlists", Used),
    // Without a login no scope and no sign-in address leaves this machine, so `true` is what happens.
    ("mcp_oauth_scopes_enabled", NotBuilt(LOGIN_MISSING, Unless::True)),
    ("mcp_oauth_url_spam_guard", NotBuilt(LOGIN_MISSING, Unless::True)),
];
pub(super) const RULES: [Row; 2] = [("files", Used), ("shipped", Used)];
pub(super) const SCREENING: [Row; 1] = [("patterns", Used)];
pub(super) const PATTERN: [Row; 2] = [("name", Used), ("pattern", Used)];
pub(super) const SERVER: [Row; 24] = [
    ("command", Used),
    ("args", Used),
    ("env", Used),
    ("cwd", Used),
    ("url", Used),
    ("headers", Used),
    ("type", Used),
    ("transport", Used),
    ("timeout", Used),
    ("enabled", Used),
    ("default_enabled", Used),
    ("share", Used),
    ("auth", NotBuilt(LOGIN_MISSING, Unless::Never)),
    ("sandbox", NotBuilt(SANDBOX_MISSING, Unless::False)),
    ("may_ask", Used),
    ("private_network", Used),
    ("labels", Used),
    ("limits", Used),
    ("tools", Used),
    ("disabled_tools", Used),
    ("definitions", Used),
    ("screening", Used),
    ("hidden_text", Used),
    ("patterns", Used),
];
pub(super) const TOOL: [Row; 7] = [
    ("enabled", Used),
    ("scope", Used),
    ("task_scoped", Used),
    ("requires_setting", Used),
    ("review", Used),
    ("labels", Used),
    ("limits", Used),
];
pub(super) const LIMITS: [Row; 6] = [
    ("request_bytes", Used),
    ("response_bytes", Used),
    ("depth", Used),
    ("time", Used),
    ("in_flight", Used),
    ("per_minute", Used),
];
pub(super) const MODE: [Row; 12] = [
    ("name", Used),
    ("extends", Used),
    ("groups", Used),
    ("allowed_servers", Used),
    ("disallowed_servers", Used),
    ("allowed_tools", Used),
    ("disallowed_tools", Used),
    ("days", Used),
    ("hours", Used),
    ("time_zone", Used),
    ("conditions", Used),
    ("auto_review", Used),
];
pub(super) const MODE_TOOL: [Row; 2] = [("server", Used), ("tool", Used)];
pub(super) const ROLE: [Row; 5] =
    [("scope", Used), ("allow", Used), ("disallow", Used), ("conditions", Used), ("explain", Used)];
pub(super) const ADMIN_FILE: [Row; 1] = [("file", Used)];
