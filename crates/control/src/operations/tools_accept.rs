//! Accepts definitions of a server that changed or are new (GATE-12): exactly the versions that are named
//! in the record, whatever the server lists by then.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_guard::pins::{self, Kind as Pinned, NotAccepted, Waiting, short};

use crate::clerk::blocking;
use crate::definitions::{DefinitionView, views};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation};

/// The operation.
#[derive(Debug)]
pub struct ToolsAccept;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    pub server: String,
    /// As `tools list` names it; none for everything that waits.
    pub name: Option<String>,
    /// The beginning of a version, where several wait; of a whole server, the digest of what waits there.
    pub version: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outcome {
    /// What was accepted, with the changes that are in force from now on.
    pub accepted: Vec<DefinitionView>,
    /// Why a running server does not act on it.
    pub not_in_force: Option<String>,
}

impl Operation for ToolsAccept {
    const PATH: &'static str = "/api/v1/tools/accept";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        let (locations, asked) = (clerk.parts.locations.clone(), request.clone());
        let (chosen, accepted) = blocking(move || {
            let pins = pins::read(&locations, &asked.server)?;
            let only = asked.name.as_deref().map(Pinned::addressed);
            let chosen = pins::choose(&pins, only, asked.version.as_deref());
            let chosen = chosen.map_err(|why| refused(&asked, &why))?;
            let accepted = views(&pins).into_iter().filter_map(|view| picked(view, &chosen)).collect();
            Ok((chosen, accepted))
        })
        .await?;
        let named = |one: &Waiting| format!("{} (version {})", one.kind.address(&one.name), short(&one.digest));
        let names: Vec<String> = chosen.iter().map(named).collect();
        let words = format!("accept {}: {}", shown(&request.server), shown(&names.join(", ")));
        let (locations, by, now) = (clerk.parts.locations.clone(), actor.user.clone(), clerk.parts.clock.now());
        let accept = move || {
            let accepted = pins::accept(&locations, &request.server, &chosen, (&by, now))?;
            accepted.map_err(|why| refused(&request, &why))
        };
        let ((), not_in_force) = clerk.change(actor, "tools_accept", &words, accept).await?;
        Ok(Outcome { accepted, not_in_force })
    }
}

/// A definition with the version alone that was chosen of it.
fn picked(mut view: DefinitionView, chosen: &[Waiting]) -> Option<DefinitionView> {
    let one = chosen.iter().find(|one| one.kind == view.kind && one.kind.address(&one.name) == view.name)?;
    view.waiting.retain(|waiting| one.digest.starts_with(&waiting.version));
    Some(view)
}

fn refused(request: &Request, why: &NotAccepted) -> ControlError {
    let what = match &request.name {
        Some(name) => format!("{}:{}", request.server, name),
        None => request.server.clone(),
    };
    let message = format!("{}: {why}", shown(&what));
    let help = match why {
        NotAccepted::Several(..) => {
            format!("compare them with `toolwarden tools diff {}`, then add --version", shown(&what))
        }
        NotAccepted::Unseen { digest, .. } => {
            let server = shown(&what);
            format!("see `toolwarden tools diff {server}`, then: toolwarden tools accept {server} --version {digest}")
        }
        NotAccepted::OtherWaits => format!("look again with `toolwarden tools diff {}`", shown(&what)),
        _ => "see `toolwarden tools list`".to_owned(),
    };
    ControlError::NotFound { message, help }
}
