//! Auto-run: the first match wins (ALLOW-7, ALLOW-9, ALLOW-10, SHELL-1, PERM-2, PERM-3, REVIEW-1).

use std::path::Path;

use toolwarden_core::{Operation, Payer, Reason};
use toolwarden_policy::Launcher;
use toolwarden_policy::input::{AutoRunMode, OwnProtections, PermissionsInput};
use url::Url;

use crate::naive::{Case, Kind};
use crate::naive_allowlist::{sides, widest};
use crate::naive_context::Chosen;
use crate::naive_holds::{directory, needs_another_person};
use crate::naive_names::{is_valid, same};
use crate::naive_narrow;
use crate::naive_payers::payers_of;
use crate::naive_reader::{Line, read};
use crate::naive_self::{readers_stay_known, writers_stay_inside};
use crate::naive_shell::{self, is_entry};

/// What auto-run says.
#[derive(Debug)]
pub enum Auto {
    Allow { reason: Reason, rule: Option<String> },
    Hold { reason: Reason, candidates: Vec<String>, payers: Vec<Payer> },
}

fn allow(reason: Reason) -> Auto {
    Auto::Allow { reason, rule: None }
}

fn hold(reason: Reason, case: &Case<'_>) -> Auto {
    Auto::Hold { reason, candidates: Vec::new(), payers: payers(reason, case) }
}

pub fn auto_run(case: &Case<'_>) -> Auto {
    match &case.kind {
        Kind::Mcp(_) => mcp(case),
        Kind::Shell(command) => shell(case, command),
        Kind::Fetch(url) => fetch(case, url),
    }
}

fn mcp(case: &Case<'_>) -> Auto {
    if !is_valid(&case.named.server) || !is_valid(&case.named.tool) {
        return hold(Reason::InvalidName, case);
    }
    if is_disabled(case) {
        return hold(Reason::AutoRunDisabled, case);
    }
    if is_protected(case) {
        return hold(Reason::Protected, case);
    }
    if case.query.caller.user.is_none() {
        return hold(Reason::NoUser, case);
    }
    if case.input.base.auto_run.browser_servers.contains(&case.named.server) {
        return allow(Reason::BrowserExempt);
    }
    let mode = stored_mode(case);
    if case.admin().is_none() && !case.input.base.auto_run.mcp_allowlists {
        return if mode == AutoRunMode::AskEveryTime || !somebody_chose(case) {
            hold(Reason::AllowlistGateOff, case)
        } else {
            allow(Reason::GateOffAutoRun)
        };
    }
    if let Some(answer) = by_mode(case) {
        return answer;
    }
    let entries = mcp_entries(case);
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    if let Some(entry) = widest(&entries, case) {
        return Auto::Allow { reason: Reason::AllowlistMatch, rule: Some(entry.to_owned()) };
    }
    if let Some(entry) = entries.iter().find(|entry| case.admin().is_none() && naive_narrow::matches(entry, case)) {
        return Auto::Allow { reason: Reason::NarrowedMatch, rule: Some((*entry).to_owned()) };
    }
    let admin_runs = case.admin().is_some_and(|admin| admin.enable_run_everything);
    if admin_runs && effective_mode(case) == AutoRunMode::RunEverything {
        return allow(Reason::AdminRunEverything);
    }
    not_listed(case, mcp_candidates(case))
}

/// Run everything, unless admin-controlled; or ask every time.
fn by_mode(case: &Case<'_>) -> Option<Auto> {
    match effective_mode(case) {
        AutoRunMode::RunEverything if case.admin().is_none() => Some(allow(Reason::RunEverything)),
        AutoRunMode::AskEveryTime => Some(hold(Reason::AskEveryTime, case)),
        AutoRunMode::RunEverything | AutoRunMode::UseAllowlist => None,
    }
}

fn not_listed(case: &Case<'_>, candidates: Vec<String>) -> Auto {
    let candidates = if case.admin().is_some() { Vec::new() } else { candidates };
    Auto::Hold { reason: Reason::NotInAllowlist, candidates, payers: payers(Reason::NotInAllowlist, case) }
}

fn mcp_candidates(case: &Case<'_>) -> Vec<String> {
    let (server, tool) = (&case.named.server, &case.named.tool);
    match case.kind {
        Kind::Mcp(Operation::ReadResource) => vec![format!("{server}:*")],
        _ => vec![format!("{server}:{tool}")],
    }
}

fn shell(case: &Case<'_>, command: &str) -> Auto {
    let Some(line) = read(command) else { return hold(Reason::CommandUnparsable, case) };
    if is_disabled(case) {
        return hold(Reason::AutoRunDisabled, case);
    }
    if is_blocked(case, &line) {
        return hold(Reason::CommandBlocked, case);
    }
    let admin_protects = case.admin().is_some_and(|admin| admin.delete_file_protection);
    let own = own_protections(case).delete;
    if (own.unwrap_or(case.input.base.auto_run.delete_protection) || admin_protects) && naive_shell::deletes(&line) {
        return hold(Reason::DeleteProtection, case);
    }
    if case.query.caller.user.is_none() {
        return hold(Reason::NoUser, case);
    }
    if let Some(answer) = by_mode(case) {
        return answer;
    }
    let entries = terminal_entries(case);
    let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
    let directory = directory(case);
    let inside = naive_shell::stays_inside(&line, case.query.workspace(), Path::new(&directory));
    let inside = inside && writers_stay_inside(&line, Path::new(&directory), case);
    let inside = inside && readers_stay_known(&line, Path::new(&directory), case);
    let at_home = case.query.workspace().is_some_and(|workspace| workspace.join(&directory) == *workspace);
    let is_relative = |name: &str| name.contains('/') && !name.starts_with('/');
    let inside = inside && (at_home || !line.commands.iter().any(|command| command.name().is_some_and(is_relative)));
    if inside && naive_shell::covers(&entries, &line) {
        let first = line.commands.first();
        let rule =
            entries.iter().find(|entry| first.is_some_and(|first| naive_shell::entry_matches(entry, first, &line)));
        return Auto::Allow { reason: Reason::AllowlistMatch, rule: rule.map(|rule| (*rule).to_owned()) };
    }
    // No entry would help where a redirection or a writer leaves the workspace.
    not_listed(case, if inside { shell_candidates(&entries, &line) } else { Vec::new() })
}

/// What is missing, command by command; none when something no entry could allow is in the line.
fn shell_candidates(entries: &[&str], line: &Line) -> Vec<String> {
    let mut missing = Vec::new();
    for command in &line.commands {
        if !entries.iter().any(|entry| naive_shell::entry_matches(entry, command, line)) {
            match naive_shell::candidate(command, line) {
                Some(entry) if !missing.contains(&entry) => missing.push(entry),
                Some(_) => {}
                None => return Vec::new(),
            }
        }
    }
    missing
}

fn fetch(case: &Case<'_>, url: &str) -> Auto {
    let web = |url: &Url| matches!(url.scheme(), "http" | "https") && url.host().is_some();
    if !Url::parse(url).is_ok_and(|url| web(&url)) {
        return hold(Reason::UrlUnparsable, case);
    }
    if is_disabled(case) {
        return hold(Reason::AutoRunDisabled, case);
    }
    if case.query.caller.user.is_none() {
        return hold(Reason::NoUser, case);
    }
    by_mode(case).unwrap_or_else(|| hold(Reason::FetchReview, case))
}

/// The admin left nothing that could run by itself.
fn is_disabled(case: &Case<'_>) -> bool {
    case.admin().is_some_and(|admin| {
        !admin.enable_run_everything
            && !admin.allowed.iter().any(|entry| is_entry(&entry.value))
            && !admin.mcp_tool_allowlist.iter().any(|entry| sides(&entry.value).is_some())
    })
}

fn is_protected(case: &Case<'_>) -> bool {
    let auto_run = &case.input.base.auto_run;
    let server = &case.named.server;
    let own = own_protections(case);
    let mcp_protection =
        own.mcp.unwrap_or(auto_run.mcp_protection) || case.admin().is_some_and(|admin| admin.disable_mcp_auto_run);
    let browser_protection = own.browser.unwrap_or(auto_run.browser_protection)
        || case.admin().is_some_and(|admin| admin.browser_protection);
    let looks_like_browser = auto_run.browser_servers.iter().any(|browser| same(browser, server));
    let is_browser = auto_run.browser_servers.contains(server);
    (looks_like_browser && browser_protection) || (!is_browser && mcp_protection)
}

fn is_blocked(case: &Case<'_>, line: &Line) -> bool {
    let blocked = case.admin().map(|admin| admin.blocked.as_slice()).unwrap_or_default();
    let entries: Vec<&str> = blocked.iter().map(|entry| entry.value.as_str()).collect();
    naive_shell::is_blocked(&entries, line)
}

/// What the caller's user chose, where they chose.
fn own_protections(case: &Case<'_>) -> OwnProtections {
    let user = case.query.caller.user.as_ref().and_then(|user| case.input.users.get(user));
    user.map(|user| user.protections).unwrap_or_default()
}

/// The state the caller's user stored, else the configured one.
fn stored_mode(case: &Case<'_>) -> AutoRunMode {
    let user = case.query.caller.user.as_ref().and_then(|user| case.input.users.get(user));
    user.and_then(|user| user.auto_run_mode).unwrap_or(case.input.base.auto_run.mode)
}

/// ALLOW-6: the user stored a mode, or the config names one.
fn somebody_chose(case: &Case<'_>) -> bool {
    let of_user = case.query.caller.user.as_ref().and_then(|user| case.input.users.get(user)?.auto_run_mode);
    of_user.is_some() || case.input.base.auto_run.mode_is_chosen
}

fn auto_review(case: &Case<'_>) -> bool {
    let by_mode = match &case.mode {
        Chosen::Mode { chain, .. } => chain.iter().find_map(|mode| mode.auto_review),
        Chosen::None | Chosen::Denied(_) => None,
    };
    by_mode.unwrap_or(case.input.base.auto_run.auto_review)
}

/// Together with auto-review, run everything acts as use allowlist.
fn effective_mode(case: &Case<'_>) -> AutoRunMode {
    match stored_mode(case) {
        AutoRunMode::RunEverything if auto_review(case) => AutoRunMode::UseAllowlist,
        mode => mode,
    }
}

/// The permissions.json files that count for this caller (PERM-1): the user's, and that of the call's workspace.
fn files<'a>(case: &Case<'a>) -> Vec<&'a PermissionsInput> {
    if !is_local(case) {
        return Vec::new();
    }
    let local = &case.input.local;
    let mut found: Vec<&PermissionsInput> = local.files.iter().collect();
    // The token names the workspace; a token that names none leaves it to the transport.
    let bound = case.query.caller.token.workspace.clone().or_else(|| case.query.workspace().map(Path::to_path_buf));
    for (root, file) in &local.workspaces {
        if bound.as_ref() == Some(root) {
            found.push(file);
        }
    }
    found
}

/// The files are those of the operating-system user: the local person, and every token issued to that user.
fn is_local(case: &Case<'_>) -> bool {
    case.query.caller.user.as_ref() == Some(&case.input.local.user)
}

fn mcp_entries(case: &Case<'_>) -> Vec<String> {
    if let Some(admin) = case.admin() {
        return admin.mcp_tool_allowlist.iter().map(|entry| entry.value.clone()).collect();
    }
    let files = files(case);
    if files.iter().any(|file| file.broken || file.mcp_allowlist.is_some()) {
        let good = files.iter().filter(|file| !file.broken);
        return good.flat_map(|file| file.mcp_allowlist.iter().flatten()).map(|entry| entry.value.clone()).collect();
    }
    let user = case.query.caller.user.as_ref().and_then(|user| case.input.users.get(user));
    let mut entries: Vec<String> =
        user.iter().flat_map(|user| user.mcp_allowlist.iter()).map(|entry| entry.value.clone()).collect();
    if is_local(case) {
        for server in case.input.servers.iter().filter(|server| server.owner.is_none()) {
            entries.extend(server.always_allow.iter().map(|tool| format!("{}:{}", server.name, tool.value)));
        }
    }
    entries
}

fn terminal_entries(case: &Case<'_>) -> Vec<String> {
    if let Some(admin) = case.admin() {
        return admin.allowed.iter().map(|entry| entry.value.clone()).collect();
    }
    let files = files(case);
    if files.iter().any(|file| file.broken || file.terminal_allowlist.is_some()) {
        let good = files.iter().filter(|file| !file.broken);
        return good.flat_map(|file| file.terminal_allowlist.iter().flatten()).map(|e| e.value.clone()).collect();
    }
    let user = case.query.caller.user.as_ref().and_then(|user| case.input.users.get(user));
    user.iter().flat_map(|user| user.terminal_allowlist.iter()).map(|entry| entry.value.clone()).collect()
}

/// Who may pay for this hold at this moment (CORE-3, SANDBOX-3).
fn payers(reason: Reason, case: &Case<'_>) -> Vec<Payer> {
    let broken = files(case).iter().any(|file| file.broken);
    let classifier = auto_review(case) && case.admin().is_none() && !broken && !needs_another_person(case);
    let is_shell = matches!(case.kind, Kind::Shell(_));
    let sandbox = is_shell && case.input.base.auto_run.sandbox_resolves && case.query.launcher == Launcher::Caged;
    let may = |payer: &Payer| match payer {
        Payer::Sandbox => sandbox,
        Payer::Classifier => classifier,
        Payer::Person | Payer::SecondPerson | Payer::Accept => true,
    };
    payers_of(reason).into_iter().filter(may).collect()
}
