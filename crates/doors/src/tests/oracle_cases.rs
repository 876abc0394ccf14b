//! One way to meet each reason for which a call does not run: a policy, a caller, a call.

use jiff::Timestamp;
use toolwarden_core::{Caller, Reason, Standing};
use toolwarden_policy::input::AdminInput;

use super::house::{Given, ada};

/// A call that must be refused for one reason.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) reason: Reason,
    pub(super) given: Given,
    pub(super) caller: Caller,
    pub(super) tool: &'static str,
    pub(super) arguments: &'static str,
}

const OPEN: &str = "[auto_run]\nmode = \"run_everything\"\n";

/// A call of the local person that would run, but for what the config says.
fn person(reason: Reason, config: &'static str) -> Case {
    let given = Given { config, ..Given::default() };
    Case { reason, given, caller: ada(), tool: "write", arguments: "{}" }
}

fn moded(reason: Reason, config: &'static str) -> Case {
    let mut case = person(reason, config);
    case.caller.mode = Some("m".to_owned());
    case
}

/// A call of an agent that would run, but for what the config says.
fn agent(reason: Reason, server: &'static str, config: &'static str, role: &str) -> Case {
    let mut case = person(reason, config);
    case.given.server = server;
    case.caller = Caller::agent(role, Some("ada".to_owned()));
    case.caller.context.task = Some("t1".to_owned());
    case.caller.context.job = Some("j1".to_owned());
    case
}

const PM: &str = "[auto_run]\nmode = \"run_everything\"\n[roles.r]\nscope = \"pm\"\nallow = [\"*\"]\n";
const SANDBOX: &str = "[auto_run]\nmode = \"run_everything\"\n[roles.r]\nscope = \"sandbox\"\nallow = [\"*\"]\n";
const BOTH: &str = "tools.\"write\" = { scope = \"both\" }";

pub(super) fn cases() -> Vec<Case> {
    let mut cases = names_and_servers();
    cases.extend(modes());
    cases.extend(credentials());
    cases.extend(roles());
    cases.extend(rules_and_arguments());
    cases.extend(holds());
    cases
}

fn names_and_servers() -> Vec<Case> {
    let on_server = |reason, server| {
        let mut case = person(reason, OPEN);
        case.given.server = server;
        case
    };
    let mut blocked = person(Reason::UserBlocked, OPEN);
    blocked.given.blocks = &["notes:write"];
    let rivals = "[auto_run]\nmode = \"run_everything\"\n[servers.Notes]\ncommand = \"other\"\n";
    vec![
        Case { tool: "nothing", ..person(Reason::UnknownTool, OPEN) },
        Case { tool: "odd/name", ..person(Reason::NameReserved, OPEN) },
        on_server(Reason::ServerDisabled, "enabled = false"),
        person(Reason::ServerConflict, rivals),
        on_server(Reason::ToolDisabled, "tools.\"write\" = { enabled = false }"),
        blocked,
    ]
}

fn modes() -> Vec<Case> {
    let mut not_issued = agent(Reason::ModeNotIssued, BOTH, PM, "r");
    not_issued.caller.mode = Some("m".to_owned());
    not_issued.caller.token.modes = vec!["other".to_owned()];
    let mut opt_in = person(Reason::ModeServerOptIn, OPEN);
    opt_in.given.server = "default_enabled = false";
    let mut unknown = person(Reason::ModeUnknown, OPEN);
    unknown.caller.mode = Some("nobody-defined-this".to_owned());
    vec![
        not_issued,
        opt_in,
        unknown,
        moded(
            Reason::ModeRefused,
            "[auto_run]\nmode = \"run_everything\"\n[modes.m]\nallowed_servers = [\"notes\"]\ndisallowed_servers = [\"notes\"]\n",
        ),
        person(Reason::ModeRequired, "[auto_run]\nmode = \"run_everything\"\nrequire_mode = true\n"),
        moded(Reason::ModeGroup, "[auto_run]\nmode = \"run_everything\"\n[modes.m]\ngroups = [\"read\"]\n"),
        moded(Reason::ModeServer, "[auto_run]\nmode = \"run_everything\"\n[modes.m]\nallowed_servers = []\n"),
        moded(
            Reason::ModeTool,
            "[auto_run]\nmode = \"run_everything\"\n[modes.m]\ndisallowed_tools = [\"notes:write\"]\n",
        ),
        moded(
            Reason::ModeWindow,
            "[auto_run]\nmode = \"run_everything\"\n[modes.m]\ndays = [\"sun\"]\nhours = [\"01:00-02:00\"]\ntime_zone = \"UTC\"\n",
        ),
        moded(
            Reason::ModeCondition,
            "[auto_run]\nmode = \"run_everything\"\n[modes.m]\nconditions = { project = [\"p\"] }\n",
        ),
    ]
}

fn credentials() -> Vec<Case> {
    let mut expired = agent(Reason::CredentialExpired, BOTH, PM, "r");
    expired.caller.token.expires_at = Some(Timestamp::UNIX_EPOCH);
    let mut exhausted = agent(Reason::CredentialExhausted, BOTH, PM, "r");
    exhausted.caller.token.calls_left = Some(0);
    let mut revoked = agent(Reason::CredentialRevoked, BOTH, PM, "r");
    revoked.caller.token.standing = Standing::Revoked;
    let mut unverified = agent(Reason::CredentialUnverified, BOTH, PM, "r");
    unverified.caller.token.standing = Standing::Unknown;
    let mut contextless = agent(Reason::ContextMissing, BOTH, SANDBOX, "r");
    contextless.caller.context.task = None;
    vec![expired, exhausted, revoked, unverified, contextless, agent(Reason::RoleUnknown, BOTH, PM, "nobody")]
}

fn roles() -> Vec<Case> {
    let with = |reason, role: &'static str| agent(reason, BOTH, role, "r");
    let setting = "tools.\"write\" = { scope = \"both\", requires_setting = \"notes.writable\" }";
    let scoped = "tools.\"write\" = { scope = \"both\", task_scoped = [\"task_id\"] }";
    let mut mismatch = agent(Reason::TaskIdMismatch, scoped, SANDBOX, "r");
    mismatch.arguments = r#"{"task_id":"t2"}"#;
    let mut unbound =
        agent(Reason::TaskUnbound, "tools.\"write\" = { scope = \"both\", task_scoped = [\"run_id\"] }", SANDBOX, "r");
    unbound.arguments = r#"{"run_id":"x"}"#;
    let mut task_tool = agent(Reason::TaskToolMissing, "", OPEN, "worker");
    task_tool.tool = "api.call";
    vec![
        with(
            Reason::RoleDisallowed,
            "[auto_run]\nmode = \"run_everything\"\n[roles.r]\nscope = \"pm\"\nallow = [\"*\"]\ndisallow = [\"write\"]\n",
        ),
        with(
            Reason::RoleNotAllowed,
            "[auto_run]\nmode = \"run_everything\"\n[roles.r]\nscope = \"pm\"\nallow = [\"other\"]\n",
        ),
        with(
            Reason::RoleCondition,
            "[auto_run]\nmode = \"run_everything\"\n[roles.r]\nscope = \"pm\"\nallow = [\"*\"]\nconditions = { \"write\" = { table = [\"a\"] } }\n",
        ),
        task_tool,
        agent(Reason::ScopeMissing, "", PM, "r"),
        agent(Reason::ScopeMismatch, "tools.\"write\" = { scope = \"sandbox\" }", PM, "r"),
        agent(Reason::SettingOff, setting, PM, "r"),
        agent(Reason::TaskIdMissing, scoped, SANDBOX, "r"),
        mismatch,
        unbound,
    ]
}

fn rules_and_arguments() -> Vec<Case> {
    let ruled = |reason, rules| {
        let mut case = person(reason, OPEN);
        case.given.rules = Some(rules);
        case
    };
    let limited = |reason, server, arguments| {
        let mut case = person(reason, OPEN);
        case.given.server = server;
        case.arguments = arguments;
        case
    };
    vec![
        ruled(Reason::RuleForbid, "permit(principal, action, resource);\nforbid(principal, action, resource);"),
        ruled(Reason::RuleNoPermit, "permit(principal, action, resource) when { false };"),
        ruled(
            Reason::RuleError,
            "permit(principal, action, resource);\nforbid(principal, action, resource) when { context.arguments.missing == 1 };",
        ),
        Case { tool: "strict", arguments: r#"{"n":"text"}"#, ..person(Reason::SchemaViolation, OPEN) },
        limited(Reason::RequestTooLarge, "limits = { request_bytes = 10 }", r#"{"text":"longer than ten bytes"}"#),
        limited(Reason::RequestTooDeep, "limits = { depth = 4 }", r#"{"a":{"b":{"c":{"d":{"e":1}}}}}"#),
    ]
}

fn holds() -> Vec<Case> {
    let mut disabled = person(Reason::AutoRunDisabled, OPEN);
    disabled.given.admin = Some(AdminInput { enabled: true, disable_mcp_auto_run: true, ..AdminInput::default() });
    let mut ruled = person(Reason::RuleHold, OPEN);
    ruled.given.rules =
        Some("permit(principal, action, resource);\n@hold(\"a person looks\")\nforbid(principal, action, resource);");
    let mut reviewed = person(Reason::HumanReview, OPEN);
    reviewed.given.server = "tools.\"write\" = { review = \"human\" }";
    let mut no_user = agent(Reason::NoUser, BOTH, SANDBOX, "r");
    no_user.caller.user = None;
    vec![
        disabled,
        ruled,
        reviewed,
        no_user,
        Case { tool: "odd*name", ..person(Reason::InvalidName, OPEN) },
        person(Reason::MandatoryAsk, "[auto_run]\nmode = \"run_everything\"\nask = [\"notes:write\"]\n"),
        person(Reason::Protected, "[auto_run]\nmode = \"run_everything\"\nprotections = { mcp = true }\n"),
        person(Reason::AskEveryTime, "[auto_run]\nmode = \"ask_every_time\"\n"),
        person(Reason::AllowlistGateOff, "[auto_run]\nmode = \"ask_every_time\"\n[features]\nmcp_allowlists = false\n"),
        person(Reason::NotInAllowlist, ""),
    ]
}
