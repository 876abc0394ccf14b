//! What would let a call through, with the names of this call in it: commands to copy, and files to edit where no command
//! works.

use toolwarden_core::name::shown;
use toolwarden_core::{BUILTIN_SERVER, CallKind, CallerKind, Reason};
use toolwarden_policy::Query;
use toolwarden_sources::edit::{self, EditError};
use toolwarden_sources::{List, Locations};

use super::quoted;

/// The lines after "to allow" for one entry that would let the call run unasked.
pub(super) fn to_allow(locations: &Locations, query: &Query, candidate: &str) -> String {
    let (list, shell) = match query.call.kind {
        CallKind::Shell { .. } => (List::Terminal, "--shell "),
        _ => (List::Mcp, ""),
    };
    // Entries of an agent or another person go to their own list.
    let other = query.caller.user.as_deref().filter(|_| query.caller.kind != CallerKind::LocalPerson);
    let user = other.map(|user| format!("--user {} ", quoted(user))).unwrap_or_default();
    let command = format!("toolwarden allow {shell}{user}{}", quoted(candidate));
    match edit::obstacle(locations, other.unwrap_or(&locations.user), (list, candidate)) {
        Some(EditError::OnlyWorkspace { place, directory, .. }) => format!(
            "add \"{}\" to `{}` in {place}, which defines this list here, and run `toolwarden trust {}`",
            shown(candidate).replace('"', "\\\""),
            list.key(),
            quoted(&directory)
        ),
        Some(EditError::Broken { path, .. }) => {
            format!("repair {path} first (`toolwarden lint` says where it is broken), then: {command}")
        }
        _ => command,
    }
}

/// The command that changes what a call was denied for; none where there is none.
pub(super) fn command(query: &Query, reason: Reason) -> Option<String> {
    let (server, tool) = (&*query.call.server, &*query.call.tool);
    if server.is_empty() || server == BUILTIN_SERVER && reason == Reason::ServerDisabled {
        return None;
    }
    let named = quoted(&format!("{server}:{tool}"));
    let issued = || Some(&query.caller.token.modes).filter(|modes| modes.len() == 1).and_then(|modes| modes.first());
    let mode = || query.caller.mode.as_ref().or_else(issued).map_or_else(|| "SLUG".to_owned(), |mode| quoted(mode));
    Some(match reason {
        Reason::ScopeMissing => format!(
            "say which agents it is for: `toolwarden tools scope {named} pm|sandbox|both` (one of the three), or set `scope` \
             of the tool in the config"
        ),
        Reason::ScopeMismatch => {
            format!("change the tool's scope: `toolwarden tools scope {named} pm|sandbox|both` (one of the three)")
        }
        Reason::ToolDisabled => format!("an admin can switch it on: `toolwarden tools enable {named}`"),
        Reason::ServerDisabled => format!("an admin can switch it on: `toolwarden servers enable {}`", quoted(server)),
        Reason::ModeServerOptIn | Reason::ModeServer => {
            format!("let the mode have it: `toolwarden modes set {} --allow-server {}`", mode(), quoted(server))
        }
        Reason::ModeTool => format!("let the mode have it: `toolwarden modes set {} --allow-tool {named}`", mode()),
        _ => return None,
    })
}
