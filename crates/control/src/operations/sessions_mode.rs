//! Puts an open conversation in another mode, which acts on its next call (MODE-8).

use serde::{Deserialize, Serialize};
use toolwarden_core::name::shown;

use crate::editing::not_there;
use crate::sessions::Stays;
use crate::{Actor, Clerk, ControlError, Kind, Needs, Operation, Role, SessionView};

/// The operation.
#[derive(Debug)]
pub struct SessionsMode;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Request {
    /// As `sessions list` names it.
    pub id: String,
    /// None = no mode of its own: the default, where there is one.
    pub mode: Option<String>,
}

impl Operation for SessionsMode {
    const PATH: &'static str = "/api/v1/sessions/mode";
    const KIND: Kind = Kind::Post;
    const NEEDS: Needs = Needs::Journal;
    const FOR: Role = Role::User;
    type Request = Request;
    type Outcome = SessionView;

    async fn run(clerk: &Clerk, actor: &Actor, request: Request) -> Result<SessionView, ControlError> {
        let gone =
            || not_there(format!("no session `{}` is open", shown(&request.id)), "see `toolwarden sessions list`");
        let servers = clerk.parts.servers.as_ref().ok_or_else(gone)?;
        let open = servers.sessions().into_iter().find(|session| session.id == request.id);
        let open = open.filter(|session| session.is_for(actor)).ok_or_else(gone)?;
        let named = |mode: &Option<String>| mode.as_deref().map_or("none".to_owned(), |mode| shown(mode).into_owned());
        let words = format!("session {}: mode {} instead of {}", open.id, named(&request.mode), named(&open.mode));
        let stays = |why| match why {
            Stays::Gone => gone(),
            Stays::Refused(why) => ControlError::BadInput(why),
        };
        if let Err(why) = servers.may_switch(&request.id, request.mode.as_deref()) {
            clerk.nothing_changed(actor, "sessions_mode", &words).await?;
            return Err(stays(why));
        }
        clerk.record(actor, "sessions_mode", &words).await?;
        let switched = servers.switch_session(&request.id, request.mode.as_deref());
        if switched.is_err() {
            clerk.nothing_changed(actor, "sessions_mode", &words).await?;
        }
        switched.map_err(stays)
    }
}
