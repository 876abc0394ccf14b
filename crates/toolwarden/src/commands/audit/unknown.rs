//! A filter by a server or a tool that nobody knows finds nothing, which must not be taken for an answer.

use toolwarden_control::operations::{AuditQuery, audit_query};
use toolwarden_control::{Selection, most_alike, or_nearest};
use toolwarden_core::name::shown;
use toolwarden_core::{BUILTIN_SERVER, CUSTOM_TOOLS_SERVER};
use toolwarden_pins as pins;
use toolwarden_policy::input::ServerInput;

use crate::clerk::Desk;
use crate::wire;
use toolwarden_cli::RowArguments;

/// What is said beside an answer without rows. Where policy or record cannot be asked nothing is said: it is a hint.
pub(super) fn hint(desk: &Desk, arguments: &RowArguments) -> Option<String> {
    let (of_tool, tool) = arguments.tool.as_deref().and_then(|tool| tool.split_once(':')).unzip();
    let server = arguments.server.as_deref().or(of_tool).filter(|server| *server != "*")?;
    let tool = tool.filter(|tool| *tool != "*");
    let named = Selection { server: Some(server.to_owned()), ..Selection::default() };
    let named = Selection { tool: tool.map(|tool| format!("{server}:{tool}")), ..named };
    let request = audit_query::Request { selection: named, limit: Some(1), after: None };
    if !desk.ask::<AuditQuery>(request).ok()?.rows.is_empty() || [BUILTIN_SERVER, CUSTOM_TOOLS_SERVER].contains(&server)
    {
        return None;
    }
    let mut input = wire::load_here(desk).ok()?.ok()?.input;
    pins::fill(desk.locations(), &mut input).ok()?;
    unknown(&input.servers, server, tool)
}

fn unknown(servers: &[ServerInput], server: &str, tool: Option<&str>) -> Option<String> {
    let Some(known) = servers.iter().find(|known| known.name.eq_ignore_ascii_case(server)) else {
        let help = or_nearest(server, servers.iter().map(|known| known.name.as_str()), "see `toolwarden servers list`");
        return Some(format!("warning: no record and no configured server is called `{}`; {help}", shown(server)));
    };
    let tool = tool?;
    let listed = known.catalog.as_ref()?;
    if listed.iter().any(|known| known.name.eq_ignore_ascii_case(tool)) {
        return None;
    }
    let close = most_alike(servers, known.owner.as_deref(), (&known.name, tool));
    let help = close.map_or_else(
        || format!("see `toolwarden tools list {}`", shown(&known.name)),
        |close| format!("did you mean `{close}`?"),
    );
    Some(format!(
        "warning: no record names `{}:{}`, and its server lists no such tool; {help}",
        shown(server),
        shown(tool)
    ))
}
