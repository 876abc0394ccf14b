//! Accepts definitions of a server that changed or are new (GATE-12): exactly the versions that are named
//! in the record, whatever the server lists by then.

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;
use toolwarden_pins::{self as pins, NotAccepted, Waiting, short};

use crate::clerk::blocking;
use crate::definitions::{DefinitionView, views};
use crate::seen::{self, Configured};
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role};

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
    /// What was accepted, as it stands by now.
    pub accepted: Vec<DefinitionView>,
    /// The same as it waited, with the changes that are in force from now on.
    pub waited: Vec<DefinitionView>,
    /// Why a running server does not act on it.
    pub not_in_force: Option<String>,
}

impl Operation for ToolsAccept {
    const PATH: &'static str = "/api/v1/tools/accept";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = Outcome;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<Outcome, ControlError> {
        clerk.must_not_answer_itself(actor).await?;
        let (locations, asked) = (clerk.parts.locations.clone(), request.clone());
        let running = Configured::running(clerk);
        let store = clerk.records().await?;
        let asker = actor.clone();
        let (chosen, waited, configured) = blocking(move || {
            let configured = running.or_written(&locations, &store);
            let pins = seen::server(&locations, &asked.server, (&configured, &asker))?;
            // Whose server it is, their word is enough.
            if !configured.is_own(&pins.server, &asker) {
                asker.must_administer("definitions of servers of the whole house")?;
            }
            let only = asked.name.as_deref().map(|name| seen::definition(&pins, name)).transpose()?;
            let chosen = pins::choose(&pins, only, asked.version.as_deref());
            let chosen = chosen.map_err(|why| refused(&asked, &why))?;
            let waited = views(&pins, &configured).into_iter().filter_map(|view| as_it_waited(view, &chosen)).collect();
            Ok((chosen, waited, configured))
        })
        .await?;
        let named = |one: &Waiting| format!("{} (version {})", one.kind.address(&one.name), short(&one.digest));
        let names: Vec<String> = chosen.iter().map(named).collect();
        let words = format!("accept {}: {}", shown(&request.server), shown(&names.join(", ")));
        let (locations, by, now) = (clerk.parts.locations.clone(), actor.user.clone(), clerk.parts.clock.now());
        let accept = move || {
            let accepted = pins::accept(&locations, &request.server, &chosen, (&by, now))?;
            accepted.map_err(|why| refused(&request, &why))?;
            let after = views(&pins::read(&locations, &request.server)?, &configured);
            Ok(after.into_iter().filter(|view| choice_of(view, &chosen).is_some()).collect())
        };
        let (accepted, not_in_force) = clerk.change(actor, "tools_accept", &words, accept).await?;
        Ok(Outcome { accepted, waited, not_in_force })
    }
}

/// What was chosen of a definition.
fn choice_of<'a>(view: &DefinitionView, chosen: &'a [Waiting]) -> Option<&'a Waiting> {
    chosen.iter().find(|one| one.kind == view.kind && one.kind.address(&one.name) == view.name)
}

/// A definition with the version alone that was chosen of it.
fn as_it_waited(mut view: DefinitionView, chosen: &[Waiting]) -> Option<DefinitionView> {
    let one = choice_of(&view, chosen)?;
    view.waiting.retain(|waiting| one.digest.starts_with(&waiting.version));
    Some(view)
}

fn refused(request: &Request, why: &NotAccepted) -> ControlError {
    let what = match &request.name {
        Some(name) => format!("{}:{}", request.server, name),
        None => request.server.clone(),
    };
    let mut message = format!("{}: {why}", shown(&what));
    let help = match why {
        NotAccepted::NoSuchVersion { waiting } => {
            let version = request.version.as_deref().unwrap_or_default();
            message = format!("no version {} of {} waits", shown(version), shown(&what));
            format!("waiting: {}", waiting.join(", "))
        }
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
