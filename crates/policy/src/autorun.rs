//! The soft gate: may this happen without a human? The first match of ALLOW-7 or SHELL-1 decides.

pub(crate) mod command;

use toolwarden_core::{CallKind, MemberBeside, Operation, Reason, Weakness, name, weak};

use crate::input::AutoRunMode;
use crate::lists::Effective;
use crate::subject::{Arguments, Subject};
use crate::verdict::{RuleRef, Step};

/// Why an entry of the user's own would not help.
const ADMIN_LIST_COUNTS: &str = "the admin record's list counts, not your own";

/// Bytes that a call may carry beside its arguments where an entry over arguments is to cover it. Clients put ids of
/// their own there; more is data that the entry says nothing of.
const MOST_BESIDE_ARGUMENTS: usize = 256;

/// What auto-run found.
#[derive(Debug)]
pub(crate) struct AutoRun {
    pub(crate) step: Step,
    /// Entries that would let this call run unasked.
    pub(crate) candidates: Vec<String>,
}

impl AutoRun {
    fn because(reason: Reason) -> Self {
        Step::because(reason).into()
    }
}

impl From<Step> for AutoRun {
    fn from(step: Step) -> Self {
        Self { step, candidates: Vec::new() }
    }
}

pub(crate) fn auto_run(subject: &Subject<'_>) -> AutoRun {
    if weak::is(Weakness::AutoRun) {
        return AutoRun::because(Reason::RunEverything);
    }
    match &subject.query.call.kind {
        CallKind::Mcp { operation: Operation::GetPrompt | Operation::Complete } => AutoRun::because(Reason::NeverHeld),
        CallKind::Mcp { .. } => mcp(subject),
        CallKind::Shell { .. } => command::shell(subject),
        CallKind::Fetch { url } => fetch(subject, url),
    }
}

/// ALLOW-7, line by line.
fn mcp(subject: &Subject<'_>) -> AutoRun {
    let base = subject.policy.base();
    let settings = &base.auto_run;
    let admin = base.admin.as_ref();
    let (server, tool) = (subject.names.server_name, subject.names.tool_name);

    if let Some(fault) = name::check(server).and_then(|()| name::check(tool)).err() {
        return Step::because(Reason::InvalidName).noting(fault.to_string()).into();
    }
    if admin.is_some_and(|admin| admin.auto_run_disabled) {
        return AutoRun::because(Reason::AutoRunDisabled);
    }
    // The browser protection takes hold on any spelling, the exemption only on the exact one, so a
    // look-alike stays under both protections (ALLOW-8).
    let looks_like_browser = settings.browser_servers.iter().any(|browser| browser.eq_ignore_ascii_case(server));
    let is_browser = settings.browser_servers.iter().any(|browser| browser == server);
    let protections = subject.policy.protections(subject.caller);
    if looks_like_browser && protections.browser {
        return Step::because(Reason::Protected).noting("browser protection").into();
    }
    if !is_browser && protections.mcp {
        return Step::because(Reason::Protected).noting("MCP protection").into();
    }
    let Some(mode) = mode(subject) else { return AutoRun::because(Reason::NoUser) };
    if is_browser {
        return AutoRun::because(Reason::BrowserExempt);
    }
    if !settings.mcp_allowlists && admin.is_none() {
        let on = mode.is_chosen && mode.own != AutoRunMode::AskEveryTime;
        return AutoRun::because(if on { Reason::GateOffAutoRun } else { Reason::AllowlistGateOff });
    }
    if mode.runs_everything && admin.is_none() {
        return AutoRun::because(Reason::RunEverything);
    }
    if mode.own == AutoRunMode::AskEveryTime {
        return AutoRun::because(Reason::AskEveryTime);
    }
    match_allowlist(subject, &mode)
}

fn match_allowlist(subject: &Subject<'_>, mode: &ModeOfCaller) -> AutoRun {
    let (server, tool) = (subject.names.server_name, subject.names.tool_name);
    let is_resource = subject.operation() == Operation::ReadResource;
    let found = effective(subject).and_then(|lists| {
        if is_resource {
            return lists.mcp.find_whole_server(server);
        }
        let twin = subject.names.server.map_or(crate::allowlist::Twin::None, |server| server.twin(tool));
        lists.mcp.find(server, tool, twin)
    });
    if let Some(rule) = found {
        return Step::because(Reason::AllowlistMatch).by(Some(rule.clone())).into();
    }
    if let Some(rule) = narrowed(subject) {
        return Step::because(Reason::NarrowedMatch).by(Some(rule)).into();
    }
    let admin = subject.policy.base().admin.as_ref();
    if admin.is_some_and(|admin| admin.enable_run_everything) && mode.runs_everything {
        return AutoRun::because(Reason::AdminRunEverything);
    }
    let candidate = if is_resource { format!("{server}:*") } else { format!("{server}:{tool}") };
    match admin {
        Some(_) => Step::because(Reason::NotInAllowlist).noting(ADMIN_LIST_COUNTS).into(),
        None => AutoRun { step: Step::because(Reason::NotInAllowlist), candidates: vec![candidate] },
    }
}

/// An entry of the same list that asks for certain arguments (REVIEW-3).
fn narrowed(subject: &Subject<'_>) -> Option<RuleRef> {
    let Arguments::Known(arguments) = subject.arguments else { return None };
    let lists = effective(subject).filter(|_| subject.operation() == Operation::CallTool)?;
    let beside: usize = subject.query.call.beside_arguments().iter().map(MemberBeside::bytes).sum();
    if beside > MOST_BESIDE_ARGUMENTS {
        return None;
    }
    lists.narrow.find(subject.names.server_name, subject.names.tool_name, arguments).cloned()
}

/// SHELL-1 without an allowlist.
fn fetch(subject: &Subject<'_>, url: &str) -> AutoRun {
    let admin = subject.policy.base().admin.as_ref();
    let is_web = url::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if !is_web {
        return AutoRun::because(Reason::UrlUnparsable);
    }
    if admin.is_some_and(|admin| admin.auto_run_disabled) {
        return AutoRun::because(Reason::AutoRunDisabled);
    }
    let Some(mode) = mode(subject) else { return AutoRun::because(Reason::NoUser) };
    if mode.runs_everything && admin.is_none() {
        return AutoRun::because(Reason::RunEverything);
    }
    if mode.own == AutoRunMode::AskEveryTime {
        return AutoRun::because(Reason::AskEveryTime);
    }
    AutoRun::because(Reason::FetchReview)
}

/// The caller's auto-run mode, and whether it really runs everything.
struct ModeOfCaller {
    own: AutoRunMode,
    /// The user or the config named it; the default alone switches nothing on (ALLOW-6).
    is_chosen: bool,
    /// Not under auto-review, which turns it into use-allowlist (REVIEW-1).
    runs_everything: bool,
}

fn mode(subject: &Subject<'_>) -> Option<ModeOfCaller> {
    let own = subject.policy.auto_run_mode(subject.caller)?;
    let reviewed = subject.policy.auto_review(subject.chosen_mode());
    let is_chosen = subject.policy.auto_run_is_chosen(subject.caller);
    Some(ModeOfCaller { own, is_chosen, runs_everything: own == AutoRunMode::RunEverything && !reviewed })
}

fn effective<'a>(subject: &Subject<'a>) -> Option<Effective<'a>> {
    Effective::of(subject.policy, subject.query)
}
