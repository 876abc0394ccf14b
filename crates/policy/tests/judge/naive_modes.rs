//! Modes: which are refused, and what one permits (MODE-1..4, MODE-6, MODE-11).

use jiff::tz::TimeZone;
use toolwarden_core::{Operation, Reason, Sourced, ToolIdentity};
use toolwarden_policy::input::{ModeInput, PolicyInput, Window};

use crate::naive::{Case, Kind};
use crate::naive_context::Chosen;
use crate::naive_names::same;

/// The mode and its ancestors; none when any of them is refused or missing.
pub fn chain<'a>(input: &'a PolicyInput, slug: &str) -> Option<Vec<&'a ModeInput>> {
    let mut chain: Vec<&ModeInput> = Vec::new();
    let mut next = Some(slug);
    while let Some(slug) = next {
        if chain.iter().any(|mode| mode.slug == slug) {
            return None;
        }
        let shipped = ["architect", "code", "ask", "debug", "orchestrator"].contains(&slug);
        match input.base.modes.iter().find(|mode| mode.slug == slug) {
            Some(mode) if is_faulty(mode) => return None,
            Some(mode) => chain.push(mode),
            None if shipped => break,
            None => return None,
        }
        next = chain.last().and_then(|mode| mode.extends.as_ref()).map(|parent| parent.value.as_str());
    }
    Some(chain)
}

/// The same server or tool allowed and disallowed, or a fault its reader met.
fn is_faulty(mode: &ModeInput) -> bool {
    let servers = mode.allowed_servers.iter().flatten();
    let tools = mode.allowed_tools.iter().flatten();
    let both_servers = servers.clone().any(|server| names_server(&mode.disallowed_servers, &server.value));
    let both_tools = tools.clone().any(|tool| names_tool(&mode.disallowed_tools, &tool.value.server, &tool.value.tool));
    !mode.faults.is_empty() || both_servers || both_tools || mode.window.as_ref().is_some_and(is_broken)
}

fn is_broken(window: &Window) -> bool {
    TimeZone::get(&window.time_zone).is_err()
}

fn names_server(list: &[Sourced<String>], server: &str) -> bool {
    list.iter().any(|entry| same(&entry.value, server))
}

fn names_tool(list: &[Sourced<ToolIdentity>], server: &str, tool: &str) -> bool {
    list.iter().any(|entry| same(&entry.value.server, server) && same(&entry.value.tool, tool))
}

pub fn gate(case: &Case<'_>) -> Option<Reason> {
    let none = Vec::new();
    let chain = match &case.mode {
        Chosen::Mode { chain, .. } => chain,
        Chosen::None | Chosen::Denied(_) => &none,
    };
    let group = match case.kind {
        Kind::Mcp(_) => Some("mcp"),
        Kind::Shell(_) => Some("command"),
        Kind::Fetch(_) => None,
    };
    for mode in chain {
        if mode.window.as_ref().is_some_and(|window| !is_open(window, case.query.time)) {
            return Some(Reason::ModeWindow);
        }
        if !mode.conditions.iter().all(|(key, texts)| is_met(case, key, texts)) {
            return Some(Reason::ModeCondition);
        }
        if group.is_some_and(|group| !has_group(mode, group)) {
            return Some(Reason::ModeGroup);
        }
    }
    lists(case, chain)
}

/// Default availability, servers, tools: in the order of CORE-1.
fn lists(case: &Case<'_>, chain: &[&ModeInput]) -> Option<Reason> {
    if !is_default_enabled(case) && !opted_in(chain, &case.named.server) {
        return Some(Reason::ModeServerOptIn);
    }
    if chain.iter().any(|mode| !permits_server(mode, &case.named.server)) {
        return Some(Reason::ModeServer);
    }
    // Resources, prompts and completion pass or fail with their server.
    let is_tool = !matches!(case.kind, Kind::Mcp(Operation::ReadResource | Operation::GetPrompt | Operation::Complete));
    let permits = |mode: &&ModeInput| permits_tool(mode, &case.named.server, &case.named.tool);
    (is_tool && !chain.iter().all(permits)).then_some(Reason::ModeTool)
}

fn has_group(mode: &ModeInput, group: &str) -> bool {
    mode.groups.as_ref().is_none_or(|groups| groups.iter().any(|mine| mine == group))
}

fn is_default_enabled(case: &Case<'_>) -> bool {
    case.definition().is_none_or(|server| server.default_enabled)
}

/// The root ancestor must name it; ancestors with a list are asked by `permits_server`.
fn opted_in(chain: &[&ModeInput], server: &str) -> bool {
    // A last mode that extends one has a shipped mode as its root, which names nothing.
    let root = chain.last().filter(|mode| mode.extends.is_none()).and_then(|mode| mode.allowed_servers.as_ref());
    root.is_some_and(|list| list.iter().any(|entry| entry.value == server))
}

fn permits_server(mode: &ModeInput, server: &str) -> bool {
    let allowed = mode.allowed_servers.as_ref().is_none_or(|list| list.iter().any(|entry| entry.value == server));
    allowed && !names_server(&mode.disallowed_servers, server)
}

fn permits_tool(mode: &ModeInput, server: &str, tool: &str) -> bool {
    let named = |entry: &Sourced<ToolIdentity>| entry.value.server == server && entry.value.tool == tool;
    let allowed = mode.allowed_tools.as_ref().is_none_or(|list| list.iter().any(named));
    allowed && !names_tool(&mode.disallowed_tools, server, tool)
}

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];

/// Whether a window is open; hours past midnight belong to the day they began on.
pub fn is_open(window: &Window, time: jiff::Timestamp) -> bool {
    let Ok(zone) = TimeZone::get(&window.time_zone) else { return false };
    let local = time.to_zoned(zone);
    let minute = i32::from(local.hour()) * 60 + i32::from(local.minute());
    let today = usize::from(local.weekday().to_monday_zero_offset().unsigned_abs());
    let on = |day: usize| {
        let name = DAYS.get(day % 7).copied().unwrap_or("");
        window.days.is_empty() || window.days.iter().any(|mine| mine == name)
    };
    if window.hours.is_empty() {
        return on(today);
    }
    window.hours.iter().any(|range| {
        let Some((start, end)) = range.split_once('-') else { return false };
        let (start, end) = (minutes(start), minutes(end));
        if start < end {
            on(today) && start <= minute && minute < end
        } else {
            (on(today) && minute >= start) || (on(today + 6) && minute < end)
        }
    })
}

fn minutes(text: &str) -> i32 {
    let (hours, minutes) = text.split_once(':').unwrap_or((text, "0"));
    hours.parse().unwrap_or(0) * 60 + minutes.parse().unwrap_or(0)
}

fn is_met(case: &Case<'_>, key: &str, texts: &[String]) -> bool {
    let caller = &case.query.caller;
    let context = &caller.context;
    let single = |value: &Option<String>| value.iter().any(|value| fits(value, texts));
    match key {
        "task" => single(&context.task),
        "project" => single(&context.project),
        "run" => single(&context.run),
        "job" => single(&context.job),
        "session" => single(&context.session),
        "user" => single(&caller.user),
        "role" => case.role_names().iter().any(|role| fits(role, texts)),
        "group" => caller.groups.iter().any(|group| fits(group, texts)),
        _ => false,
    }
}

/// Equal to one of the texts; a trailing `*` matches any ending.
pub fn fits(value: &str, texts: &[String]) -> bool {
    texts.iter().any(|text| match text.strip_suffix('*') {
        Some(beginning) => value.starts_with(beginning),
        None => value == text,
    })
}
